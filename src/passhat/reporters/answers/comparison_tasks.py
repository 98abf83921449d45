"""The tasks on which two systems differ: which they are, and what the tests say of each."""

from __future__ import annotations

from collections.abc import Sequence

from passhat.analysis.comparing.comparison import Comparison
from passhat.analysis.comparing.differences import TaskDifference
from passhat.records.task_names import NaturalKey, natural_key
from passhat.reporters.blocks import Table
from passhat.reporters.numbers import signed_span

MOST_TASKS = 10
"""Tasks that a table lists."""

_P_VALUES = (
    "Both p values allow for the number of tasks tested. Of the tasks with p (Holm) below 0.05, "
    "the chance that any does not really differ is at most 5 %; of those with p (BH) below 0.05, "
    "about 5 % may not really differ."
)


def differing_tasks(comparison: Comparison) -> list[TaskDifference]:
    """The tasks that flipped or are shown to differ, the most telling first."""
    told = [task for task in comparison.tasks if task.flip or task.answer in ("better", "worse")]
    return sorted(told, key=_most_telling)


def differing_table(rows: Sequence[TaskDifference], headings: tuple[str, str]) -> Table:
    """A row a task: both sides, their difference, and what the tests say."""
    return Table(
        header=("task", *headings, "diff.", "", "p (Holm)", "p (BH)"),
        rows=tuple(
            (
                task.name,
                f"{task.first[0]}/{task.first[1]}",
                f"{task.second[0]}/{task.second[1]}",
                f"{100 * task.difference:+.0f}",
                signed_span(task.interval, digits=0),
                *_p_values(task),
            )
            for task in rows
        ),
        left=(0, 4),
        spare=(6,),
    )


def legend(comparison: Comparison, rows: Sequence[TaskDifference]) -> list[str]:
    """What the p values are, why a task has none, and why an interval may disagree with them."""
    level = comparison.provenance.options.confidence
    tested = any(task.answer != "unevaluable" for task in rows)
    told = [_P_VALUES] if tested else []
    if any(task.answer == "unevaluable" for task in rows):
        told.append(
            "A dash stands where a task has too few runs to be tested among so many, whatever its "
            "interval."
        )
    if any(_is_open(task, level) for task in rows):
        told.append(
            "Each interval is of one task by itself; the p values allow for all tasks that were "
            "looked at, so that one may leave out 0 where the other shows nothing."
        )
    return told


def _most_telling(task: TaskDifference) -> tuple[bool, float, float, float, NaturalKey]:
    """Those that could be tested first, the surest of them on top."""
    untested = task.answer == "unevaluable"
    return (
        untested,
        1.0 if untested else task.p_holm,
        1.0 if untested else task.p_screening,
        -abs(task.difference),
        natural_key(task.name),
    )


def _p_values(task: TaskDifference) -> tuple[str, str]:
    if task.answer == "unevaluable":
        return "-", "-"
    return f"{task.p_holm:.3f}", f"{task.p_screening:.3f}"


def _is_open(task: TaskDifference, confidence: float) -> bool:
    tested = task.answer != "unevaluable"
    return tested and 0 not in task.interval and task.p_holm > 1 - confidence
