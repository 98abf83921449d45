"""The order in which people list names: task 2 before task 10."""

from __future__ import annotations

import re

_DIGITS = re.compile("([0-9]+)")

NaturalKey = tuple[tuple[str | tuple[int, str], ...], str]


def natural_key(name: str) -> NaturalKey:
    """What to sort names by, so that the numbers in them count as numbers.

    >>> sorted(["10", "3", "task-10", "task-9", "0"], key=natural_key)
    ['0', '3', '10', 'task-9', 'task-10']
    """
    # Text and digits alternate, so like meets like. Digits are compared by length, then as text:
    # a name from data may have more of them than `int` takes.
    parts = tuple(
        part if i % 2 == 0 else (len(part.lstrip("0")), part.lstrip("0"))
        for i, part in enumerate(_DIGITS.split(name))
    )
    return parts, name
