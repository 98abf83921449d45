"""How reliability decays with more attempts, and what the order of runs shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from passhat.analysis.reports.disturbances import LETTERS
from passhat.analysis.reports.evidence import Evidence
from passhat.analysis.reports.parts import CurvePoint, Decay, Rounds, RunOrder
from passhat.analysis.reports.provenance import ReportOptions
from passhat.records import ErrorPolicy, Trials
from passhat.stats.decay import (
    LONGEST_DEFAULT,
    TOO_SHORT_TO_FLIP,
    DecayCurve,
    SequenceColumns,
    by_length,
    decay_curves,
    describe_columns,
    extrapolate_pass_hat_ks,
)
from passhat.stats.estimate import THIS_SUITE, Number, Unavailable

MOST_TRIALS = 200_000
"""Beyond this many trials, sequences are neither kept nor described."""

# Beyond the longest curve the model is evaluated at up to three round numbers of attempts.
_ROUND_KS = (8, 16, 32, 64, 100)
_STEPS_BEYOND = 3


def run_sequences(trials: Trials) -> tuple[str, ...] | None:
    """For each task of one system, its runs in order of the trial number: P, F or E each.

    >>> run_sequences(Trials.from_columns(task=["a", "b", "a"], outcome=[1, 2, 0]))
    ('PF', 'E')
    """
    if len(trials) > MOST_TRIALS:
        return None
    order = np.lexsort((trials.trial, trials.task.codes))
    text = LETTERS[trials.outcome[order]].tobytes().decode("ascii")
    ends = np.cumsum(np.bincount(trials.task.codes, minlength=len(trials.tasks))).tolist()
    return tuple(text[start:end] for start, end in zip([0, *ends], ends, strict=False))


def describe_run_order(
    sequences: Sequence[str] | None, *, errors: ErrorPolicy
) -> RunOrder | Unavailable:
    """The order-dependent descriptions, averaged over tasks."""
    if sequences is None:
        return Unavailable("the order of runs was not read, only their counts")
    kept = [text.replace("E", "F" if errors == "fail" else "") for text in sequences]
    kept = [text for text in kept if text]
    if not kept:
        return Unavailable("no task has a run")
    groups = [
        describe_columns(_passed([kept[i] for i in places]))
        for places in by_length([len(text) for text in kept])
    ]
    decay = _mean_curve(groups)
    return RunOrder(
        decay=decay,
        variance_amplification=_mean([g.variance_amplification for g in groups]),
        graceful_degradation=_mean([g.graceful_degradation for g in groups]),
        flips=_mean_known([g.flips for g in groups], TOO_SHORT_TO_FLIP),
        tasks=len(kept),
    )


def measure_rounds(sequences: Sequence[str] | None, *, errors: ErrorPolicy) -> Rounds | Unavailable:
    """Pass rates of the rounds that every task took part in.

    >>> measure_rounds(["PPF", "PFF"], errors="fail").means
    (1.0, 0.5, 0.0)
    """
    if sequences is None:
        return Unavailable("rounds need the trials themselves; only their counts were read")
    if len(sequences) < 2:
        return Unavailable("rounds need at least two tasks")
    rounds = list(zip(*sequences, strict=False))
    if errors == "exclude":
        kept = (tuple(letter for letter in text if letter != "E") for text in rounds)
        rounds = [text for text in kept if text]
    if len(rounds) < 2:
        return Unavailable("there are fewer than two rounds of all tasks")
    means = np.array([text.count("P") / len(text) for text in rounds])
    return Rounds(
        means=tuple(means.tolist()),
        population_sd=float(means.std()),
        standard_error=float(means.std(ddof=1) / np.sqrt(means.size)),
    )


def _passed(texts: Sequence[str]) -> NDArray[np.bool_]:
    """One row per task, one column per run."""
    letters = np.frombuffer("".join(texts).encode("ascii"), dtype=np.uint8)
    return np.asarray(letters.reshape(len(texts), -1) == ord("P"))


def _mean_curve(groups: Sequence[SequenceColumns]) -> tuple[float, ...]:
    """At each run, the mean over the tasks that have that many runs."""
    longest = max(group.curve.shape[1] for group in groups)
    total, count = np.zeros(longest), np.zeros(longest)
    for group in groups:
        tasks, runs = group.curve.shape
        total[:runs] += group.curve.sum(axis=0)
        count[:runs] += tasks
    return tuple((total / count).tolist())


def _mean(columns: Sequence[NDArray[Any]]) -> float:
    return float(np.concatenate(columns).mean())


def _mean_known(columns: Sequence[NDArray[Any]], none: Unavailable) -> float | Unavailable:
    known = [column[~np.isnan(column)] for column in columns]
    return _mean(known) if any(column.size for column in known) else none


def measure_decay(
    evidence: Evidence,
    sequences: Sequence[str] | None,
    options: ReportOptions,
    *,
    curves: bool = True,
) -> Decay:
    """The curves up to the runs that every task has (ten at most), and a model beyond them.

    Each point of a curve is over the same tasks, and equal to the metric of its k.
    """
    order = describe_run_order(sequences, errors=options.errors)
    if not curves:
        return Decay(pass_hat=(), pass_at=(), beyond=(), run_order=order)
    hats, ats = _curves(evidence, options)
    return Decay(
        pass_hat=hats,
        pass_at=ats,
        beyond=_beyond(evidence),
        run_order=order,
    )


def _curves(
    evidence: Evidence, options: ReportOptions
) -> tuple[tuple[CurvePoint, ...], tuple[CurvePoint, ...]]:
    """Those of pass^k and of pass@k."""
    if not evidence.tasks:
        return (), ()
    longest = int(evidence.runs.min(initial=LONGEST_DEFAULT))
    counts = evidence.runs, evidence.passes
    hats, ats = decay_curves(*counts, k=longest, scope=THIS_SUITE, confidence=options.confidence)
    return _drawn(hats, longest), _drawn(ats, longest)


def _drawn(curve: DecayCurve | Unavailable, longest: int) -> tuple[CurvePoint, ...]:
    points: Sequence[Number] = [curve] * longest if isinstance(curve, Unavailable) else curve.points
    return tuple(CurvePoint(k=k, estimate=point) for k, point in enumerate(points, 1))


def _beyond(evidence: Evidence) -> tuple[CurvePoint, ...]:
    # One run of a task says nothing about how tasks differ, nor one task about others.
    if len(evidence.tasks) < 2 or evidence.typical_runs < 2:
        return ()
    most = int(evidence.runs.max())
    ks = [k for k in _ROUND_KS if k > most][:_STEPS_BEYOND]
    found = extrapolate_pass_hat_ks(evidence.runs, evidence.passes, ks)
    return tuple(CurvePoint(k=k, estimate=one) for k, one in zip(ks, found, strict=True))
