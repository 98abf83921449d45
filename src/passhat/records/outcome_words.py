"""What a cell says about how a trial ended: words, numbers, and the user's own comparison."""

from __future__ import annotations

import contextlib
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, SupportsFloat

from passhat.dataclass import dataclass
from passhat.errors import ArgumentError
from passhat.messages import short_value
from passhat.records.trial import Outcome

WORDS: Mapping[str, Outcome] = {
    **dict.fromkeys(
        (
            *("1", "1.0", "true", "t", "yes", "y", "pass", "passed", "success", "succeeded"),
            *("successful", "resolved", "solved", "correct", "c", "ok", "accepted"),
            *("✓", "✔", "✔\ufe0f", "✅", "☑", "☑\ufe0f"),
        ),
        Outcome.PASSED,
    ),
    **dict.fromkeys(
        (
            *("0", "0.0", "false", "f", "no", "n", "fail", "failed", "failure", "unsuccessful"),
            *("unresolved", "unsolved", "incorrect", "i", "wrong", "rejected"),
            *("✗", "✘", "✖", "✖\ufe0f", "❌", "✕"),
        ),
        Outcome.FAILED,
    ),
    **dict.fromkeys(
        ("error", "errored", "err", "infrastructure_error", "crashed", "exception"), Outcome.ERRORED
    ),
}
"""The words that say how a trial ended, in lower case."""

LETTER_GRADES: Mapping[str, float] = {"c": 1.0, "p": 0.5, "i": 0.0, "n": 0.0}
"""Inspect's letters: correct, partly correct, incorrect, no answer."""

NO_ERROR = frozenset(("", "0", "0.0", "false", "no", "none", "null", "nan", "ok", "unset"))
"""The words of an error column that mean there was none."""

MISSING = frozenset(("", "nan", "none", "null", "na", "n/a"))

_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "!=": operator.ne,
    "==": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
    "=": operator.eq,
}
_COMPARISON = re.compile(r"\s*([^<>=!]+?)\s*(>=|<=|!=|==|>|<|=)\s*([^<>=!]+?)\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnCondition:
    """One comparison of a column with a number or a word."""

    column: str
    symbol: str
    value: float | str

    def holds(self, cell: object) -> bool:
        """Whether the cell satisfies it.

        ValueError for a cell that is no number, if it is compared with one.

        >>> parse_pass_if("score >= 0.8")[0].holds("0.85")
        True
        """
        compare = _OPERATORS[self.symbol]
        if isinstance(self.value, float):
            return compare(number(cell), self.value)
        return compare(str(cell).strip().lower(), self.value.lower())


def parse_pass_if(text: str) -> tuple[ColumnCondition, ...]:
    """The comparisons of `pass_if`, all of which must hold; nothing in it is executed.

    >>> parse_pass_if("score>=0.8 and status==done")[1]
    ColumnCondition(column='status', symbol='==', value='done')
    """
    return tuple(_comparison(part, text) for part in re.split(r"\s+and\s+|\s*&&\s*", text))


def outcome_of(cell: object) -> Outcome | None:
    """How a trial ended by its cell, or None for a value that says nothing known.

    >>> outcome_of("PASS"), outcome_of(0.0), outcome_of("maybe")
    (<Outcome.PASSED: 1>, <Outcome.FAILED: 0>, None)
    """
    return WORDS.get(str(cell).strip().lower())


def letter_grades(cells: Iterable[object]) -> list[float | None] | None:
    """The scores of a column of Inspect's letters, None for an empty cell.

    None for any other column: P means "passed" beside F, and "partly correct" beside C, I or N.

    >>> letter_grades(["C", "P", ""]), letter_grades(["P", "F"])
    ([1.0, 0.5, None], None)
    """
    words = ["" if is_missing(cell) else str(cell).strip().lower() for cell in cells]
    seen_words = set(words) - {""}
    if not seen_words <= LETTER_GRADES.keys() or not seen_words & {"c", "i"}:
        return None
    return [LETTER_GRADES.get(word) for word in words]


def outcomes_of(cells: Iterable[object]) -> list[Outcome | None]:
    """How trials ended by their cells; None for a cell that holds nothing, or nothing known.

    >>> [one.name for one in outcomes_of(["P", "F", "F"])]
    ['PASSED', 'FAILED', 'FAILED']
    """
    words = ["" if is_missing(cell) else str(cell).strip().lower() for cell in cells]
    known: dict[str, Outcome | None] = {word: WORDS.get(word) for word in set(words)}
    if "p" in known:  # of Inspect's letters only "correct" passes
        letters = known.keys() - {""} <= LETTER_GRADES.keys() and known.keys() & {"c", "i"}
        known["p"] = Outcome.FAILED if letters else Outcome.PASSED if "f" in known else None
    return [known[word] for word in words]


def is_missing(cell: object) -> bool:
    """Whether a cell holds nothing: None, NaN, or an empty word."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return True
    return isinstance(cell, str) and cell.strip().lower() in MISSING


def error_text(cell: object) -> str | None:
    """What an error column says, or None if it says that there was no error."""
    if cell is None or cell != cell or cell is False:
        return None
    text = str(cell).strip()
    return None if text.lower() in NO_ERROR else ("error" if cell is True else text)


def number(cell: object) -> float:
    """A cell as a number, NaN where it holds nothing; ValueError for anything else."""
    if isinstance(cell, float):
        return float(cell)
    if is_missing(cell):
        return math.nan
    if isinstance(cell, (int, str, SupportsFloat)):  # the last is a Decimal of Parquet
        with contextlib.suppress(ValueError, OverflowError):  # hundreds of digits overflow
            return float(cell)
    raise ValueError(f"{short_value(cell)} is not a number")


def score_of(cell: object) -> float:
    """A cell as a score: one of Inspect's letters, else as `number` reads it.

    >>> score_of("P"), score_of("0.7")
    (0.5, 0.7)
    """
    grade = LETTER_GRADES.get(cell.strip().lower()) if isinstance(cell, str) else None
    return number(cell) if grade is None else grade


def seen(cells: Iterable[object], most: int = 8) -> str:
    """The distinct values of a column, for a message."""
    shown = ("nothing" if is_missing(cell) else repr(cell)[:40] for cell in cells)
    distinct = list(dict.fromkeys(shown))
    return ", ".join(distinct[:most]) + (", ..." if len(distinct) > most else "")


def _comparison(part: str, text: str) -> ColumnCondition:
    found = _COMPARISON.fullmatch(part)
    if found is None:
        rule = "must be comparisons such as 'score>=0.8', joined by 'and'"
        raise ArgumentError("pass_if", rule, text)
    column, symbol, value = found.groups()
    try:
        return ColumnCondition(column=column, symbol=symbol, value=float(value))
    except ValueError:
        if symbol not in ("==", "!=", "="):
            rule = f"can compare with a word only by == or !=, not {symbol}"
            if re.fullmatch(r"[+-]?\d*,\d+", value):
                rule = f"must write {value.replace(',', '.')} with a point"
            if marked := re.fullmatch(r"[$€£¥]?\s*([+-]?[\d.]+)\s*[%$€£¥]?", value):
                rule = f"must write {marked[1]}, without the mark: cells are compared without it"
            raise ArgumentError("pass_if", rule, text) from None
    return ColumnCondition(column=column, symbol=symbol, value=value.strip("\"'"))
