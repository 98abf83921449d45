"""Names of tasks and runs: how they are ordered, numbered and grouped into families.

People count runs from 1 (`refund #1`, `refund #2`); logs count them from 0 or from 1, and data
keeps the log's number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_DIGITS = re.compile("([0-9]+)")

NaturalKey = tuple[tuple[str | tuple[int, str], ...], str]

# A name up to its last number, such as the "refund-" of "refund-12", or up to a slash or colon.
_PREFIX = re.compile(r"^(.*?[^\d\s])[-_ #.]?\d+$|^(.+)[/:]")


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


def first_number(trials: Iterable[int]) -> int:
    """The number that a log gives its first trial: 0 or 1.

    >>> first_number([0, 1, 2]), first_number([1, 2]), first_number([])
    (0, 1, 0)
    """
    return max(0, min(1, min(trials, default=0)))


def run_number(trial: int, first: int = 0) -> str:
    """The number of a run as people see it.

    >>> run_number(0), run_number(3, first=1)
    ('#1', '#3')
    """
    return f"#{trial - first + 1}"


def families_by_name(tasks: Iterable[str], pattern: re.Pattern[str]) -> list[str | None]:
    r"""The first group of the pattern in each name (the whole match without one), or None.

    >>> families_by_name(["refund-1", "refund-2", "hello"], re.compile(r"^(\w+)-\d+"))
    ['refund', 'refund', None]
    """
    found = (pattern.search(task) for task in tasks)
    return [None if one is None else one[1 if pattern.groups else 0] for one in found]


def families_by_prefix(tasks: Sequence[str]) -> list[str | None]:
    """What the names of tasks seem to say about their families; None if they say nothing.

    >>> families_by_prefix(["refund-1", "refund-2", "repo/a", "alone"])
    ['refund', 'refund', 'repo', None]
    """
    return [
        None if (found := _PREFIX.match(task)) is None else found[1] or found[2] for task in tasks
    ]
