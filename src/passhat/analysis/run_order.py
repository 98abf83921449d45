"""The runs of each task in the order they were made, and what that order looks like."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from passhat.analysis.report import Rounds, RunOrder
from passhat.records import ErrorPolicy, Trials
from passhat.stats.decay import SequenceDecay, decay_summary
from passhat.stats.estimate import Unavailable

MOST_TRIALS = 200_000
"""Beyond this many trials, sequences are neither kept nor described: nobody reads them."""

_LETTERS = np.frombuffer(b"FPE", dtype=np.uint8)


def run_sequences(trials: Trials) -> tuple[str, ...] | None:
    """For each task of one system, its runs in order of the trial number: P, F or E each.

    >>> run_sequences(Trials.from_columns(task=["a", "b", "a"], passed=[True, None, False]))
    ('PF', 'E')
    """
    if len(trials) > MOST_TRIALS:
        return None
    order = np.lexsort((trials.trial, trials.task.codes))
    text = _LETTERS[trials.outcome[order]].tobytes().decode("ascii")
    ends = np.cumsum(np.bincount(trials.task.codes, minlength=len(trials.tasks))).tolist()
    return tuple(text[start:end] for start, end in zip([0, *ends], ends, strict=False))


def describe_run_order(
    sequences: Sequence[str] | None, *, errors: ErrorPolicy
) -> RunOrder | Unavailable:
    """The order-dependent descriptions, averaged over tasks."""
    if sequences is None:
        return Unavailable("the order of runs was not read, only their counts")
    kept = [text.replace("E", "F" if errors == "fail" else "") for text in sequences]
    outcomes = [[letter == "P" for letter in text] for text in kept if text]
    if not outcomes:
        return Unavailable("no task has a run")
    found = decay_summary(outcomes, k=1).sequences
    return RunOrder(
        decay=_mean_curve([one.curve for one in found]),
        variance_amplification=_mean_known(found, "variance_amplification"),
        graceful_degradation=float(np.mean([one.graceful_degradation for one in found])),
        flips=_mean_known(found, "flips"),
        tasks=len(found),
    )


def measure_rounds(sequences: Sequence[str] | None, *, errors: ErrorPolicy) -> Rounds | Unavailable:
    """Pass rates of the rounds that every task took part in.

    >>> measure_rounds(["PPF", "PFF"], errors="fail").means
    (1.0, 0.5, 0.0)
    """
    if sequences is None:
        return Unavailable("rounds need the trials themselves; only their counts were read")
    if len(sequences) < 2:
        return Unavailable("rounds of a single task are its runs")
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


def _mean_curve(curves: Sequence[Sequence[int]]) -> tuple[float, ...]:
    longest = max(map(len, curves))
    reaching = ([curve[k] for curve in curves if len(curve) > k] for k in range(longest))
    return tuple(float(np.mean(values)) for values in reaching)


def _mean_known(found: Sequence[SequenceDecay], name: str) -> float | Unavailable:
    values: list[int | Unavailable] = [getattr(one, name) for one in found]
    known = [value for value in values if not isinstance(value, Unavailable)]
    if known:
        return float(np.mean(known))
    reasons = [value for value in values if isinstance(value, Unavailable)]
    return reasons[0]
