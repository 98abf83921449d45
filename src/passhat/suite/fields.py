"""The parts that a suite file is made of, and the kinds of value that their keys take.

A part is a class whose annotated names are the keys, with their defaults and a docstring each.
`validation` reads a file by these declarations, and `document` makes the schema and the reference
from them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, KeysView, Mapping, Sequence
from datetime import date
from functools import cache
from inspect import get_annotations
from typing import Annotated, Any, get_args

from msgspec import Meta

DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h)\s*")
SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(kB|[MGT]B|[KMGT]iB)\s*")
SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
BYTES = {"k": 1, "K": 1, "M": 2, "G": 3, "T": 4}
"""The power of 1000, or of 1024 before an i, that a unit of memory stands for."""


class Part:
    """A part of the suite file. A key that the file leaves out has the default of its class."""

    def __init__(self, **written: Any) -> None:
        vars(self).update(written)

    @property
    def written(self) -> KeysView[str]:
        """The fields that the file gives, whatever their values."""
        return vars(self).keys()

    def values(self) -> dict[str, Any]:
        """Every field with its value, the default where the file leaves it out."""
        return {name: getattr(self, name) for name in self.field_types()}

    def broken_rule(self) -> str | None:
        """What is wrong with the keys together, though each is right by itself."""
        return None

    @classmethod
    @cache
    def field_types(cls) -> Mapping[str, Any]:
        """The fields and their types."""
        # Half the time of typing.get_type_hints, whose further checks no declaration here needs.
        owned = (get_annotations(owner, eval_str=True) for owner in reversed(cls.__mro__))
        return {name: kind for fields in owned for name, kind in fields.items()}

    @classmethod
    @cache
    def spellings(cls) -> Mapping[str, Sequence[str]]:
        """The fields, and the keys under which each may be written."""
        return {
            name: next((n.names for n in get_args(kind) if isinstance(n, Spelled)), (name,))
            for name, kind in cls.field_types().items()
        }


class Spelled:
    """The keys under which a field may be written; the documentation shows the first."""

    def __init__(self, *names: str) -> None:
        self.names = names


class Short:
    """A part that may be written as the value of one of its keys alone: `number: 42`."""

    def __init__(self, key: str) -> None:
        self.key = key


class Reads:
    """A function that reads texts (or lists and so on) before the type is checked.

    It raises ValueError where it can say what is wrong. `schema` is what it lets a file write
    besides what the type says.
    """

    def __init__(self, function: Callable[[Any], Any], schema: Any = None, of: Any = str) -> None:
        self.function, self.schema, self.of = function, schema, of


def _seconds(value: str) -> float:
    match = DURATION.fullmatch(value)
    if match is None:
        raise ValueError("must be seconds, or a text such as 500ms, 30s, 2m")
    return float(match[1]) * SECONDS[match[2]]


def _bytes(value: str) -> int:
    match = SIZE.fullmatch(value)
    if match is None:
        raise ValueError("must be bytes, or a text such as 200MB, 1.5GB, 2GiB")
    unit = 1024.0 if "i" in match[2] else 1000.0
    # An endless number has no whole one; the reader refuses whole numbers from 2**63.
    return round(min(float(match[1]) * unit ** BYTES[match[2][0]], 2.0**63))


def _words(value: str) -> list[str]:
    try:
        return shlex.split(value)
    except ValueError as error:
        raise ValueError(f"cannot be split into words: {error}") from None


def _day(value: str) -> date:
    try:
        return date.fromisoformat(value)
    except ValueError:
        raise ValueError("must be a date such as 2027-01-31") from None


def _text(pattern: str) -> dict[str, str]:
    return {"type": "string", "pattern": pattern}


Seconds = Annotated[float, Meta(gt=0), Reads(_seconds, _text(f"^{DURATION.pattern}$"))]
"""Seconds, or a text such as 500ms, 30s, 2m."""

Bytes = Annotated[int, Meta(ge=1), Reads(_bytes, _text(f"^{SIZE.pattern}$"))]
"""Bytes, or a text such as 200MB, 1.5GB, 2GiB."""

Argv = Annotated[Sequence[str], Meta(min_length=1), Reads(_words, _text(r"\S"))]
"""A command and its arguments, as a list or as one text."""

Texts = Annotated[Sequence[str], Reads(lambda value: [value], {"type": "string"})]
"""One text or several."""

Day = Annotated[date, Reads(_day)]
"""A date such as 2027-01-31."""

Url = Annotated[
    str,
    Meta(pattern=r"^https?://", description="an address that begins with http:// or https://"),
]
FunctionName = Annotated[str, Meta(pattern=r"^[\w.]+:[\w.]+$", description="module:function")]
Name = Annotated[str, Meta(min_length=1, max_length=200)]
Count = Annotated[int, Meta(ge=1)]
CountOrZero = Annotated[int, Meta(ge=0)]
Positive = Annotated[float, Meta(gt=0)]
Weight = Annotated[float, Meta(gt=0, le=1e100)]
"""As large as a table takes them: their squares have an end."""
NotNegative = Annotated[float, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]
"""From 0 to 1, both included."""
Chance = Annotated[float, Meta(gt=0, lt=1)]
"""Between 0 and 1, both excluded."""
PassScore = Annotated[float, Meta(gt=0, le=1)]
