"""How the runs of a task are numbered wherever people see them: `refund #1`, `refund #2`.

Logs count trials from 0 or from 1; people count from 1. Data keeps the log's number.
"""

from __future__ import annotations

from collections.abc import Iterable


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
