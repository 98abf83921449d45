"""Numbers as people write them: with a decimal comma, or with a mark of money or of percent."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from passhat.errors import ReadError
from passhat.ingest.rows import Sheet
from passhat.messages import few, short, short_value
from passhat.records import FEATURES
from passhat.records.columns import ColumnCondition, as_number, is_missing

SEPARATORS = (";", "\t")
"""With these between cells, a comma may be part of a number."""

_POWER = r"(?:[eE][+-]?\d+)?"
_COMMA = re.compile(rf"[+-]?\d*,\d+{_POWER}")
_WHOLE = re.compile(rf"[+-]?\d+{_POWER}")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(?:,\d{3})+")
# A decimal comma may stay: whether it is one is seen once the marks are gone.
_NUMBER = r"[+-]?[.,]?\d[\d.,]*(?:[eE][+-]?\d+)?"
_CURRENCY = r"[$€£¥]|USD|EUR|GBP|JPY"
_MONEY = re.compile(rf"(?P<mark>{_CURRENCY})\s?({_NUMBER})|({_NUMBER})\s?(?P<after>{_CURRENCY})")
_PERCENT = re.compile(rf"({_NUMBER})\s?%")


def with_points(cells: Sequence[Any]) -> list[str] | None:
    """The cells of a column with points for their decimal commas.

    None if there is no comma, if a cell is no such number, or if every comma may be a
    thousands separator.

    >>> with_points(["0,9", "1", "0,25"])
    ['0.9', '1', '0.25']
    >>> with_points(["1,234", "2,500"]) is with_points(["0,9", "0.8"]) is None
    True
    """
    numbers = [str(cell).strip() for cell in cells if not is_missing(cell)]
    written = [text for text in numbers if _COMMA.fullmatch(text)]
    if all(_THOUSANDS.fullmatch(text) for text in written):  # or there is none
        return None
    if not all(_COMMA.fullmatch(text) or _WHOLE.fullmatch(text) for text in numbers):
        return None
    return [str(cell).replace(",", ".") for cell in cells]


def without_commas(
    sheet: Sheet, found: Mapping[str, str], tests: Sequence[ColumnCondition]
) -> tuple[Sheet, list[str]]:
    """Decimal commas as points where the separator leaves them free, and the note that says so."""
    if sheet.separator not in SEPARATORS:
        return sheet, []
    compared = [found.get(test.column, test.column) for test in tests]
    read = {
        column: points
        for column in dict.fromkeys((*number_columns(found), *compared))
        if (points := with_points(sheet.cells(column))) is not None
    }
    if not read:
        return sheet, []
    column, points = next(iter(read.items()))
    at = next(i for i, cell in enumerate(sheet.cells(column)) if cell != points[i])
    example = f"{sheet.cells(column)[at]} is {points[at]}"
    note = f"decimal commas were read as points in {few(read)} ({example})"
    return replace(sheet, columns={**sheet.columns, **read}), [note]


def number_columns(found: Mapping[str, str]) -> list[str]:
    """The columns that may hold numbers."""
    return [found[meaning] for meaning in ("passed", "score", *FEATURES) if meaning in found]


def comma_fault(cell: Any) -> str | None:
    """The error for a cell that is a number but for its comma; None for any other.

    >>> comma_fault("1,234")
    "'1,234' may be 1.234 or 1234; write numbers with a point, or without any mark"
    """
    text = cell.strip() if isinstance(cell, str) else ""
    if _THOUSANDS.fullmatch(text):
        meant = f"{text.replace(',', '.')} or {text.replace(',', '')}"
        meant = meant if text.count(",") == 1 else short(text.replace(",", ""))
        hint = "write numbers with a point, or without any mark"
        return f"{short_value(cell)} may be {meant}; {hint}"
    if _COMMA.fullmatch(text):
        return (
            f"{short_value(cell)} has a decimal comma; write {short(text.replace(',', '.'))} with "
            "a point (commas are read where ; or tabs separate cells and the whole column is "
            "written so)"
        )
    return None


def without_marks(
    name: str, sheet: Sheet, found: Mapping[str, str], tests: Sequence[ColumnCondition]
) -> tuple[Sheet, frozenset[str], list[str]]:
    """The sheet with plain numbers, which of its columns were percentages, and notes on both.

    Looked at are costs, for money; scores, for percentages; and what is compared with a number.
    """
    compared = [found.get(t.column, t.column) for t in tests if isinstance(t.value, float)]
    plain: dict[str, list[Any]] = {}
    notes, percents = [], []
    for column in dict.fromkeys((*_named("cost", found), *compared)):
        if (money := _without_money(name, column, sheet.cells(column))) is not None:
            plain[column], note = money
            notes.append(note)
    for column in dict.fromkeys((*_named("score", found), *compared)):
        if (numbers := _without_percent(name, column, sheet.cells(column))) is not None:
            _refuse_shares(name, column, tests, found)
            plain[column] = numbers
            percents.append(column)
            notes += _percent_notes(column, compared, found)
    if plain:
        sheet = replace(sheet, columns={**sheet.columns, **plain})
    return sheet, frozenset(percents), notes


def shares(cells: Iterable[Any]) -> list[float]:
    """Percentages without their mark as shares of 1.

    >>> shares(["66", "100"])
    [0.66, 1.0]
    """
    return [as_number(cell) / 100 for cell in cells]


def _named(meaning: str, found: Mapping[str, str]) -> list[str]:
    return [found[meaning]] if meaning in found else []


def _percent_notes(column: str, compared: Sequence[str], found: Mapping[str, str]) -> list[str]:
    which = f'percentages of "{short(column)}" were'
    notes = [f"{which} compared as they are: 66% is 66"] if column in compared else []
    if column == found.get("score"):
        notes.append(f"{which} read as shares: 66% is a score of 0.66")
    return notes


def _without_money(name: str, column: str, cells: Sequence[Any]) -> tuple[list[Any], str] | None:
    amounts = [_MONEY.fullmatch(_text(cell)) for cell in cells]
    marked = [amount for amount in amounts if amount]
    if not marked:
        return None
    marks = list(dict.fromkeys(amount["mark"] or amount["after"] for amount in marked))
    if len(marks) > 1:
        raise ReadError(
            f'{name}, column "{short(column)}": holds several currencies ({" and ".join(marks)}); '
            "write all amounts in one"
        )
    plain = [
        amount[2] or amount[3] if amount else cell
        for amount, cell in zip(amounts, cells, strict=True)
    ]
    example = f"{marked[0][0]} is {marked[0][2] or marked[0][3]}"
    return plain, f'"{short(column)}" was read without its {marks[0]}: {example}'


def _without_percent(name: str, column: str, cells: Sequence[Any]) -> list[Any] | None:
    shown = [_PERCENT.fullmatch(_text(cell)) for cell in cells]
    if not any(shown):
        return None
    for cell, percent in zip(cells, shown, strict=True):
        if percent is None and not is_missing(cell):
            marked = next(one[0] for one in shown if one)
            raise ReadError(
                f'{name}, column "{short(column)}": holds {marked}, but also {short_value(cell)}; '
                "write all of them as percentages, or none"
            )
    return [percent[1] if percent else cell for cell, percent in zip(cells, shown, strict=True)]


def _refuse_shares(
    name: str, column: str, tests: Sequence[ColumnCondition], found: Mapping[str, str]
) -> None:
    """Refuse to compare percentages with a share such as 0.6: nearly all of them are above it."""
    for test in tests:
        value = test.value
        own = found.get(test.column, test.column) == column
        if own and isinstance(value, float) and 0 < value <= 1:
            raise ReadError(
                f'{name}, column "{short(column)}": holds percentages, which are compared as they '
                f"are: write `pass_if='{short(test.column)}{test.symbol}{100 * value:g}'` for "
                f"{100 * value:g}%, not {value:g}"
            )


def _text(cell: Any) -> str:
    return cell.strip() if isinstance(cell, str) else ""
