"""The difference of two systems in one metric, and task by task: which differ, which flipped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from passhat.analysis.reports.disturbances import has_partial_credit
from passhat.analysis.reports.evidence import Evidence, Floats
from passhat.analysis.reports.provenance import ReportOptions
from passhat.dataclass import short_dataclass
from passhat.records import ErrorPolicy, Trials
from passhat.stats.estimate import THIS_SUITE, Estimate, Interval, Scope, Unavailable
from passhat.stats.multiple_testing import TaskAnswer, score_task_tests, task_tests
from passhat.stats.paired import Answer, PairedDifference

Flip = Literal["gained", "lost"]

Scores = tuple[list[Floats], list[Floats]]
"""The scores of every run of each shared task, of both systems."""


@short_dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One metric of the first system minus the second, in both scopes, with a verdict in each.

    `first` and `second` are the two values over the shared tasks.
    """

    name: str
    first: float | None
    second: float | None
    this_suite: PairedDifference | Estimate | Unavailable
    tasks_like_these: PairedDifference | Unavailable

    @property
    def value(self) -> float | None:
        for number in (self.this_suite, self.tasks_like_these):
            if not isinstance(number, Unavailable):
                return number.value
        return None

    def answer(self, scope: Scope, margin: float | None = None) -> Answer | None:
        """Whether the first is better, worse, equivalent, or undecided; None if unavailable."""
        number = self.this_suite if scope == THIS_SUITE else self.tasks_like_these
        if isinstance(number, Unavailable):
            return None
        if isinstance(number, PairedDifference):
            return number.answer
        return _read_off(number.interval, margin)


@short_dataclass(frozen=True, slots=True, kw_only=True)
class TaskDifference:
    """One task: passes and runs of both, the difference, and the tests.

    `p_holm` never calls a wrong difference on any task; `p_screening` (Benjamini-Hochberg) lets a
    known share of its finds be wrong. A task flipped when most runs passed for one and not for
    the other.
    """

    name: str
    first: tuple[int, int]
    second: tuple[int, int]
    difference: float
    interval: Interval
    p_value: float
    p_holm: float
    p_screening: float
    answer: TaskAnswer
    flip: Flip | None

    @property
    def rate_difference(self) -> float:
        """The difference of the pass rates; `difference` is that of scores with partial credit."""
        return self.first[0] / self.first[1] - self.second[0] / self.second[1]


def task_scores(
    tables: tuple[Trials, Trials] | None, names: Sequence[str], errors: ErrorPolicy
) -> Scores | None:
    """The scores of the shared tasks if they say more than passes do; else None."""
    if tables is None or not any(has_partial_credit(table) for table in tables):
        return None
    first, second = (_scores_by_task(table, names, errors) for table in tables)
    return first, second


def task_differences(
    left: Evidence, right: Evidence, options: ReportOptions, *, scores: Scores | None = None
) -> tuple[TaskDifference, ...]:
    """An exact test of every task, corrected for testing many in both ways.

    Both sides have the same tasks, in the same order.

    If runs earn partial credit, their scores are tested: a task that never passes can still
    have got worse.
    """
    level = options.confidence
    found = task_tests(left.runs, left.passes, right.runs, right.passes, confidence=level)
    if scores is not None:
        found = score_task_tests(*scores, confidence=level, rng=options.seed)
    return tuple(
        TaskDifference(
            name=name,
            first=(int(left.passes[i]), int(left.runs[i])),
            second=(int(right.passes[i]), int(right.runs[i])),
            difference=float(found.value[i]),
            interval=Interval(float(found.low[i]), float(found.high[i])),
            p_value=float(found.p_values[i]),
            p_holm=float(found.adjusted[i]),
            p_screening=float(found.screening[i]),
            answer=found.answers[i],
            flip=_flip(left, right, i),
        )
        for i, name in enumerate(left.tasks)
    )


def _read_off(interval: Interval | None, margin: float | None) -> Answer:
    if interval is None:
        return "undecided"
    if margin is not None and -margin < interval.low and interval.high < margin:
        return "equivalent"
    if 0 in interval:
        return "undecided"
    return "better" if interval.low > 0 else "worse"


def _scores_by_task(trials: Trials, names: Sequence[str], errors: ErrorPolicy) -> list[Floats]:
    score = np.nan_to_num(trials.score)  # an error that counts scores nothing
    kept = trials.outcome != 2 if errors == "exclude" else np.ones(len(trials), dtype=bool)
    codes = np.where(kept, trials.task.codes, -1)
    return [score[codes == trials.task.code(name)] for name in names]


def _flip(left: Evidence, right: Evidence, i: int) -> Flip | None:
    mostly = [2 * int(side.passes[i]) > int(side.runs[i]) for side in (left, right)]
    if mostly[0] == mostly[1]:
        return None
    return "gained" if mostly[0] else "lost"
