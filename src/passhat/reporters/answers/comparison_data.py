"""A comparison as JSON, and the sentence that opens it: schema "passhat.comparison/1"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NotRequired, TypedDict, cast

from passhat.analysis.comparing.comparison import Comparison, Difference, TaskDifference
from passhat.records.trial import NaturalKey, natural_key
from passhat.reporters.blocks import SHORTEST_HEADING, Bar, Table
from passhat.reporters.data import NumberObject, ProvenanceObject, UnavailableObject, plain, shaped
from passhat.reporters.headline import not_for_others
from passhat.reporters.noise_words import NoiseObject, noise_object
from passhat.reporters.numbers import end_cells, points, signed_points, signed_span
from passhat.reporters.safe_text import LONGEST_NAME, shorten_apart
from passhat.stats.estimate import TASKS_LIKE_THESE, THIS_SUITE, Estimate, Scope, Unavailable
from passhat.stats.paired import Answer, Needed, PairedDifference


class ScopedDifference(TypedDict):
    """A difference in one scope: its interval, and what follows from it."""

    low: float | None
    high: float | None
    verdict: Answer | None
    method: str
    confidence: float
    tasks: int | None
    p_value: NotRequired[float]
    standard_error: NotRequired[float]
    needed: NotRequired[Needed | None]
    notes: NotRequired[list[str]]


class DifferenceObject(TypedDict):
    """One metric of the first system minus the second, in both scopes."""

    first: float | None
    second: float | None
    value: float | None
    this_suite: ScopedDifference | UnavailableObject
    tasks_like_these: ScopedDifference | UnavailableObject


class ComparisonObject(TypedDict):
    """Two systems on the tasks that both ran."""

    schema: Literal["passhat.comparison/1"]
    verdict: str
    first: str
    second: str
    margin: float | None
    differences: dict[str, DifferenceObject]
    seeded: NumberObject
    noise: NoiseObject | UnavailableObject
    tasks: list[TaskDifference]
    only_first: list[str]
    only_second: list[str]
    provenance: ProvenanceObject
    notes: list[str]


def comparison_object(comparison: Comparison) -> ComparisonObject:
    """Schema "passhat.comparison/1"."""
    return shaped(
        comparison,
        ComparisonObject,
        schema="passhat.comparison/1",
        verdict=verdict(comparison),
        differences={
            name: _difference(one, comparison.margin)
            for name, one in comparison.differences.items()
        },
        noise=noise_object(comparison.noise, systems=2),
    )


def verdict(comparison: Comparison) -> str:
    """Which of the two is better, in one sentence, by what was asked for."""
    first, second = called(comparison)
    asked, by = comparison.headline, _by(comparison)
    here, there = (
        asked.answer(scope, comparison.margin) for scope in (THIS_SUITE, TASKS_LIKE_THESE)
    )
    number = stated(asked)
    if isinstance(number, Unavailable):
        said = f"{first} and {second} cannot be compared{by}: {number.reason}"
        return f"{said}{_mean_beside(comparison)}."
    # As in the table, the first minus the second, whichever of the two is ahead.
    size, bounds = f"{signed_points(number.value, digits=1)} points", signed_span(number.interval)
    bounds += _mean_beside(comparison)
    answer = here or there
    if answer == "undecided":
        if not number.value:
            return f"{first} and {second} cannot be told apart yet{by}: they are level {bounds}."
        within = f"the difference of {size} is within noise {bounds}"
        return f"{first} and {second} cannot be told apart yet{by}: {within}."
    if answer == "equivalent":
        margin = points(comparison.margin or 0.0)
        return f"{first} and {second} are equivalent to within {margin} points{by} {bounds}."
    limit = "" if there == answer else f", though {not_for_others(len(comparison.tasks))}"
    return f"{first} is {answer} than {second}{by} on this suite: {size} {bounds}{limit}."


def stated(difference: Difference) -> PairedDifference | Estimate | Unavailable:
    """The difference for this suite or, if that is unknown, for tasks like these."""
    here = difference.this_suite
    return difference.tasks_like_these if isinstance(here, Unavailable) else here


def _by(comparison: Comparison) -> str:
    """The metric of the verdict, if it is not the mean score."""
    name = comparison.headline.name
    return "" if name == "mean_score" else f" by {name}"


def _mean_beside(comparison: Comparison) -> str:
    """The mean score beside what was asked for, if it is another number."""
    mean = stated(comparison.mean_score)
    same = comparison.headline.value == comparison.mean_score.value
    if isinstance(mean, Unavailable) or same:
        return ""
    return f" (mean score {signed_points(mean.value, digits=1)} {signed_span(mean.interval)})"


def called(comparison: Comparison) -> tuple[str, str]:
    """What the two are called in sentences: cut if they are long, and never alike."""
    first, second = shorten_apart((comparison.first, comparison.second), LONGEST_NAME)
    return (first, second) if first != second else (f"{first} (first)", f"{second} (second)")


def _difference(one: Difference, margin: float | None) -> DifferenceObject:
    here, there = (_scoped(one, scope, margin) for scope in (THIS_SUITE, TASKS_LIKE_THESE))
    return shaped(one, DifferenceObject, this_suite=here, tasks_like_these=there)


def _scoped(
    one: Difference, scope: Scope, margin: float | None
) -> ScopedDifference | UnavailableObject:
    number = one.this_suite if scope == THIS_SUITE else one.tasks_like_these
    if isinstance(number, Unavailable):
        return {"value": None, "reason": number.reason}
    names = ["method", "confidence", "tasks"]
    if isinstance(number, PairedDifference):
        names += ["p_value", "standard_error", "needed", "notes"]
    ends, verdict = end_cells("", number.interval), one.answer(scope, margin)
    found = {**ends, "verdict": verdict, **{name: plain(getattr(number, name)) for name in names}}
    return cast(ScopedDifference, found)


MOST_TASKS = 10
"""Tasks that a table lists."""

_ROUNDING = 1e-9  # how far two ways to compute one rate may differ
_P_VALUES = (
    "Both p values allow for the number of tasks tested. Of the tasks with p (Holm) below 0.05, "
    "the chance that any does not really differ is at most 5 %; of those with p (BH) below 0.05, "
    "about 5 % may not really differ."
)


def differing_tasks(comparison: Comparison) -> list[TaskDifference]:
    """The tasks that are shown to differ, or flipped and may differ; the most telling first.

    A flip with an adjusted p of 1 says no more than the count of flips does.
    """
    found = [
        task
        for task in comparison.tasks
        if task.answer in ("better", "worse") or (task.flip and min(_p_values(task)) < "1")
    ]
    return sorted(found, key=_most_telling)


def differing_table(comparison: Comparison, rows: Sequence[TaskDifference]) -> Table:
    """A row a task: both sides, their difference, and what the tests say."""
    partial = any(abs(task.difference - task.rate_difference) > _ROUNDING for task in rows)
    what = "score diff." if partial else "diff."
    return Table(
        header=("task", *called(comparison), what, "", "", "p (Holm)", "p (BH)"),
        rows=tuple(
            (
                task.name,
                f"{task.first[0]}/{task.first[1]}",
                f"{task.second[0]}/{task.second[1]}",
                signed_points(task.difference),
                signed_span(task.interval, digits=0),
                Bar(value=task.difference, inner=task.interval),
                *_p_values(task),
            )
            for task in rows
        ),
        left=(0, 4),
        spare=(7,),
        cut=((1, SHORTEST_HEADING), (2, SHORTEST_HEADING)),
        scale=(-1, 1),
        ends=("-100", "+100"),
    )


def legend(comparison: Comparison, rows: Sequence[TaskDifference]) -> list[str]:
    """What the p values are, why a task has none, and why an interval may disagree with them."""
    level = comparison.provenance.options.confidence
    tested = any(task.answer != "unevaluable" for task in rows)
    texts = [_P_VALUES] if tested else []
    if any(task.answer == "unevaluable" for task in rows):
        texts.append(
            "A dash means that a task has too few runs to be tested among so many, even if its "
            "interval excludes 0."
        )
    if any(_is_open(task, level) for task in rows):
        texts.append(
            "Each interval is of one task by itself; the p values allow for all tasks that were "
            "looked at, so that one may leave out 0 where the other shows nothing."
        )
    return texts


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
