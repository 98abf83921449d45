"""pass^k and pass@k of a suite, seen one block of k runs at a time.

The mean of p_i^k is not linear in single runs, so a bet on single runs says nothing about it. A
block of k runs of one task is: "all k passed" is a pass with chance p_i^k exactly, and "any of k
passed" one with chance 1 - (1 - p_i)^k. A block ends as soon as its result is known.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from passhat.stats.arguments import one_of, whole_number

BlockMetric = Literal["pass^k", "pass@k"]

BLOCK_METRICS = ("pass^k", "pass@k")


def block_outcomes(
    outcomes: Iterable[float | bool | None], *, k: int, metric: BlockMetric = "pass^k"
) -> tuple[tuple[bool, ...], int]:
    """The results of the finished blocks of one task's runs, and the runs in the unfinished one.

    An errored run (None) counts as failed.

    >>> block_outcomes([True, True, True, False, True, True], k=3)
    ((True, False), 2)
    >>> block_outcomes([True, False, False, True], k=2, metric="pass@k")
    ((True, False, True), 0)
    """
    whole_number("k", k)
    one_of("metric", metric, BLOCK_METRICS)
    ends_at = metric == "pass@k"  # the single result that settles a block at once
    finished, length = list[bool](), 0
    for x in outcomes:
        length += 1
        if bool(x) is ends_at or length == k:
            finished.append(bool(x))
            length = 0
    return tuple(finished), length
