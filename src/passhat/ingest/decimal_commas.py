"""Numbers with a decimal comma, as half of the world writes them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from passhat.messages import short, short_value
from passhat.records.outcome_words import is_missing

SEPARATORS = (";", "\t")
"""Between cells, these leave the comma free to stand inside of numbers."""

_POWER = r"(?:[eE][+-]?\d+)?"
_COMMA = re.compile(rf"[+-]?\d*,\d+{_POWER}")
_WHOLE = re.compile(rf"[+-]?\d+{_POWER}")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(?:,\d{3})+")


def with_points(cells: Sequence[Any]) -> list[str] | None:
    """The cells of a column with points for their decimal commas.

    None where there is no comma, where a cell is no number so written, or where every comma may
    as well part thousands.

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


def comma_fault(cell: Any) -> str | None:
    """What to say of a cell that is a number but for its comma; None for any other.

    >>> comma_fault("1,234")
    "'1,234' may be 1.234 or 1234; write numbers with a point, or without any mark"
    """
    text = cell.strip() if isinstance(cell, str) else ""
    if _THOUSANDS.fullmatch(text):
        meant = f"{text.replace(',', '.')} or {text.replace(',', '')}"
        meant = meant if text.count(",") == 1 else short(text.replace(",", ""))
        told = "write numbers with a point, or without any mark"
        return f"{short_value(cell)} may be {meant}; {told}"
    if _COMMA.fullmatch(text):
        return (
            f"{short_value(cell)} has a decimal comma; write {short(text.replace(',', '.'))} with "
            "a point (commas are read where ; or tabs separate cells and the whole column is "
            "written so)"
        )
    return None
