"""How reliability falls with k: curves with bands, the model's continuation, the order of runs."""

from __future__ import annotations

from collections.abc import Sequence

from passhat.analysis.evidence import Evidence
from passhat.analysis.report import CurvePoint, Decay, Options
from passhat.analysis.run_order import describe_run_order
from passhat.stats.decay import LONGEST_DEFAULT, decay_curve
from passhat.stats.estimate import THIS_SUITE, Unavailable
from passhat.stats.extrapolation import extrapolate_pass_hat_k

# Beyond the longest curve, at round numbers of attempts.
_ROUND_KS = (8, 16, 32, 64, 100)
_STEPS_BEYOND = 3


def measure_decay(
    evidence: Evidence, sequences: Sequence[str] | None, options: Options, *, curves: bool = True
) -> Decay:
    """The curves reach as far as every task has runs (ten at most); a model goes on from there.

    So each point is over the same tasks, and equal to the metric of its k.
    """
    order = describe_run_order(sequences, errors=options.errors)
    if not curves:
        return Decay(pass_hat=(), pass_at=(), beyond=(), run_order=order)
    return Decay(
        pass_hat=_curve(evidence, "pass^k", options),
        pass_at=_curve(evidence, "pass@k", options),
        beyond=_beyond(evidence),
        run_order=order,
    )


def _curve(evidence: Evidence, metric: str, options: Options) -> tuple[CurvePoint, ...]:
    if not evidence.tasks:
        return ()
    longest = int(evidence.runs.min(initial=LONGEST_DEFAULT))
    curve = decay_curve(
        evidence.runs,
        evidence.passes,
        metric=metric,
        k=longest,
        scope=THIS_SUITE,
        confidence=options.confidence,
    )
    if isinstance(curve, Unavailable):
        return tuple(CurvePoint(k=k, estimate=curve) for k in range(1, longest + 1))
    return tuple(CurvePoint(k=k, estimate=point) for k, point in enumerate(curve.points, 1))


def _beyond(evidence: Evidence) -> tuple[CurvePoint, ...]:
    # One run of a task says nothing about how tasks differ, nor one task about others.
    if len(evidence.tasks) < 2 or evidence.typical_runs < 2:
        return ()
    most = int(evidence.runs.max())
    ks = [k for k in _ROUND_KS if k > most][:_STEPS_BEYOND]
    return tuple(
        CurvePoint(k=k, estimate=extrapolate_pass_hat_k(evidence.runs, evidence.passes, k))
        for k in ks
    )
