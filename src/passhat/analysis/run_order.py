"""The runs of each task in the order they were made, and what that order looks like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from passhat.analysis.report import Rounds, RunOrder
from passhat.records import ErrorPolicy, Trials
from passhat.stats.estimate import Unavailable
from passhat.stats.run_sequences import (
    NOTHING_TO_AMPLIFY,
    TOO_SHORT_TO_FLIP,
    TOO_SHORT_TO_HALVE,
    SequenceColumns,
    by_length,
    describe_columns,
)

MOST_TRIALS = 200_000
"""Beyond this many trials, sequences are neither kept nor described: nobody reads them."""

_LETTERS = np.frombuffer(b"FPE", dtype=np.uint8)


def run_sequences(trials: Trials) -> tuple[str, ...] | None:
    """For each task of one system, its runs in order of the trial number: P, F or E each.

    >>> run_sequences(Trials.from_columns(task=["a", "b", "a"], outcome=[1, 2, 0]))
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
    kept = [text for text in kept if text]
    if not kept:
        return Unavailable("no task has a run")
    groups = [
        describe_columns(_passed([kept[i] for i in places]))
        for places in by_length([len(text) for text in kept])
    ]
    decay = _mean_curve(groups)
    still = NOTHING_TO_AMPLIFY if len(decay) > 1 else TOO_SHORT_TO_HALVE
    return RunOrder(
        decay=decay,
        variance_amplification=_mean_known([g.variance_amplification for g in groups], still),
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


def _passed(texts: Sequence[str]) -> NDArray[np.bool_]:
    """A row a task, a column a run."""
    letters = np.frombuffer("".join(texts).encode("ascii"), dtype=np.uint8)
    return np.asarray(letters.reshape(len(texts), -1) == ord("P"))


def _mean_curve(groups: Sequence[SequenceColumns]) -> tuple[float, ...]:
    """At each run, the mean over the tasks that have so many."""
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
