"""Values inside JSON by their dotted path: `choices[0].message.content`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

PART = re.compile(r"\.?([^.\[\]]+)|\[(-?\d+)\]|\[\"([^\"]*)\"\]|\['([^']*)'\]")


class _Missing:
    """The value of a path that leads nowhere."""

    def __repr__(self) -> str:
        return "nothing"


MISSING: Final = _Missing()


@lru_cache(maxsize=256)
def path_parts(path: str) -> tuple[str | int, ...] | None:
    """The names and indices in a path; None if the text is not a path.

    >>> path_parts("choices[0].message"), path_parts("a..b")
    (('choices', 0, 'message'), None)
    """
    parts: list[str | int] = []
    end = 0
    for match in PART.finditer(path):
        if match.start() != end:
            break
        name, index, double, single = match.groups()
        parts.append(name or double or single or "" if index is None else int(index))
        end = match.end()
    return tuple(parts) if end == len(path) and parts else None


def value_at(value: Any, path: str) -> Any:
    """The value at a path, or MISSING.

    >>> value_at({"choices": [{"text": "hi"}]}, "choices[0].text")
    'hi'
    """
    for part in path_parts(path) or ():
        value = inside(value, part)
    return value


def inside(value: Any, part: str | int) -> Any:
    """One step into a mapping or a list."""
    if isinstance(value, Mapping):
        return value.get(part, value.get(str(part), MISSING))
    if isinstance(value, (list, tuple)):
        if part in ("length", "count"):
            return len(value)
        there = isinstance(part, int) and -len(value) <= part < len(value)
        return value[int(part)] if there else MISSING
    return MISSING
