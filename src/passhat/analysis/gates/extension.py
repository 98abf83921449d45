"""Gates that are judged again on more trials: stricter bounds, and the errors of all looks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from passhat.analysis.gates.gate import Gate, Verdict, Verdicts, percentage
from passhat.stats.sequential.planned import error_of_all_looks, look_levels


def at_later_look(gate: Gate, looks: Sequence[int]) -> Gate:
    """The gate at the levels of the last of several looks, after so many trials each.

    The first look was the plan, at the stated error rates. Later ones may add to them what
    `extension_share` says, fixed beforehand, so that anybody may stop or extend at will.
    """
    if len(looks) < 2 or looks[-1] <= looks[0]:
        return gate
    fractions = tuple(look / looks[0] for look in sorted({*looks}))
    alpha, beta = (look_levels(fractions, error)[-1] for error in (gate.alpha, gate.beta))
    return replace(gate, alpha=alpha, beta=beta)


def with_all_looks(verdicts: Verdicts, gates: Sequence[Gate], looks: Sequence[int]) -> Verdicts:
    """Verdicts of the last look, each with its own gate and the errors of all looks together."""
    if len(looks) < 2 or looks[-1] <= looks[0]:
        return verdicts
    stated = {gate.label: gate for gate in gates}
    return Verdicts(tuple(_with_sum(one, stated[one.gate.label], looks) for one in verdicts))


def _with_sum(verdict: Verdict, gate: Gate, looks: Sequence[int]) -> Verdict:
    fraction = looks[-1] / looks[0]
    sums = [error_of_all_looks(error, fraction) for error in (gate.alpha, gate.beta)]
    alpha, beta = (
        None if kept is None else both
        for kept, both in zip((verdict.alpha, verdict.beta), sums, strict=True)
    )
    if alpha is None and beta is None:
        return replace(verdict, gate=gate)
    words = (
        f"Wrong PASS at most {percentage(gate.alpha)} within the {looks[0]:,} trials planned, "
        f"{percentage(sums[0])} within these {looks[-1]:,}."
    )
    sentence = f"{verdict.sentence} {words}"
    return replace(verdict, gate=gate, alpha=alpha, beta=beta, sentence=sentence)
