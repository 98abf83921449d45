"""How each row of a table ended: by its verdict column, its score, or the user's comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from passhat.fast_dataclass import dataclass
from passhat.records.column_names import is_weak, verdict_columns
from passhat.records.outcome_words import (
    LETTER_GRADES,
    ColumnCondition,
    is_missing,
    letter_grades,
    number,
    outcomes_of,
)
from passhat.records.trial import Outcome

Cells = Callable[[str], Sequence[Any]]
"""The cells of a column, by its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """A row of which one column says that it passed, and another that it failed."""

    row: int
    columns: tuple[str, str]
    cells: tuple[Any, Any]


def told_outcomes(
    found: Mapping[str, str], cells: Cells, scores: Sequence[Any]
) -> list[Outcome | None]:
    """How each row ended by its own word, or by a score of 1; None where that says nothing."""
    if "passed" in found:
        return outcomes_of(cells(found["passed"]))
    return [_by_score(score) for score in scores]


def judged_outcomes(
    tests: Sequence[ColumnCondition], found: Mapping[str, str], cells: Cells
) -> list[Outcome | None]:
    """Whether all comparisons hold in each row; None where a cell cannot be compared."""
    columns = [cells(found.get(test.column, test.column)) for test in tests]
    return [_holds(tests, row) for row in zip(*columns, strict=True)]


def with_errors(
    told: Iterable[Outcome | None], errors: Iterable[str | None]
) -> list[Outcome | None]:
    """A row whose error column names an error is errored, unless its verdict says it passed."""
    return [
        one if error is None or one is Outcome.PASSED else Outcome.ERRORED
        for one, error in zip(told, errors, strict=True)
    ]


def letter_scores(found: Mapping[str, str], cells: Cells) -> list[float | None] | None:
    """The scores that Inspect's letters stand for, in a table without other scores."""
    if "score" in found:
        return letter_grades(cells(found["score"]))
    return letter_grades(cells(found["passed"])) if "passed" in found else None


def find_conflict(names: Iterable[str], found: Mapping[str, str], cells: Cells) -> Conflict | None:
    """The first row that passed by one column and failed by another, both surely verdicts.

    >>> table = {"passed": [True, True], "outcome": ["pass", "fail"]}
    >>> find_conflict(table, {"passed": "outcome"}, table.__getitem__).row
    1
    """
    if "passed" not in found:
        return None
    chosen = found["passed"]
    others = [name for name in verdict_columns(names) if name != chosen and not is_weak(name)]
    opposite = {Outcome.PASSED: Outcome.FAILED, Outcome.FAILED: Outcome.PASSED}
    own = outcomes_of(cells(chosen)) if others else []
    for other in others:
        for row, (one, two) in enumerate(zip(own, outcomes_of(cells(other)), strict=True)):
            if one is not None and opposite.get(one) is two and two is not None:
                shown = cells(chosen)[row], cells(other)[row]
                return Conflict(row=row, columns=(chosen, other), cells=shown)
    return None


def _by_score(cell: Any) -> Outcome | None:
    if isinstance(cell, str) and cell.strip().lower() in LETTER_GRADES:
        return Outcome(LETTER_GRADES[cell.strip().lower()] >= 1)
    try:
        return None if is_missing(cell) else Outcome(number(cell) >= 1)
    except ValueError:
        return None


def _holds(tests: Sequence[ColumnCondition], cells: Sequence[Any]) -> Outcome | None:
    try:
        if any(is_missing(cell) for cell in cells):
            return None
        return Outcome(all(test.holds(cell) for test, cell in zip(tests, cells, strict=True)))
    except ValueError:
        return None
