"""Which task is drawn when, and how runs that finish out of order become evidence in order.

Runs are evidence in the order they were *drawn*. In the order they finish, fast passes would count
before slow failures and decide the verdict. In draw order each bet depends only on earlier draws,
whose results do not depend on this one, so the guarantee holds at any concurrency.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import Self

from passhat.dataclass import dataclass
from passhat.errors import ArgumentError
from passhat.stats.sequential.verdicts import Observed, SetAside

Score = float | SetAside
Waiting = tuple[tuple[int, Score], ...]
Outcomes = Mapping[int, Observed] | Iterable[Observed]


@dataclass(frozen=True, slots=True)
class DrawTicket:
    """Draw number `index`: run number `repeat` of `task` (all counted from 0)."""

    index: int
    task: int
    repeat: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """How many draws are evidence, how many were issued, and which must be issued again.

    `waiting` holds results that came before those of earlier draws. `missing` are draws that an
    interrupted run never finished: a result for a later draw shows that they were issued.
    """

    taken: int = 0
    issued: int = 0
    missing: tuple[int, ...] = ()
    waiting: Waiting = ()

    def issue(self, count: int, most: int) -> tuple[Self, tuple[int, ...]]:
        """Up to `count` draws to run, missing ones first, and never more than `most` in all."""
        again = self.missing[:count]
        fresh_end = min(self.issued + count - len(again), most)
        fresh = tuple(range(self.issued, max(self.issued, fresh_end)))
        after = type(self)(
            taken=self.taken,
            issued=self.issued + len(fresh),
            missing=self.missing[len(again) :],
            waiting=self.waiting,
        )
        return after, again + fresh

    def arrive(self, index: int, x: Score) -> tuple[Self, tuple[Score, ...]]:
        """The state with one more result, and the results that are evidence now, in draw order.

        >>> draws, ready = Draws(issued=2).arrive(1, 0.0)
        >>> ready
        ()
        >>> draws.arrive(0, 1.0)[1]
        (1.0, 0.0)
        """
        held = dict(self.waiting)
        if index < self.taken or index in held:
            raise ArgumentError("index", "must be a draw not yet observed", index)
        held[index] = x
        ready = list[Score]()
        while self.taken + len(ready) in held:
            ready.append(held.pop(self.taken + len(ready)))
        skipped = tuple(range(self.issued, index))
        after = type(self)(
            taken=self.taken + len(ready),
            issued=max(self.issued, index + 1),
            missing=tuple(i for i in self.missing if i != index) + skipped,
            waiting=tuple(sorted(held.items())),
        )
        return after, tuple(ready)


@lru_cache(maxsize=1 << 16)
def drawn_task(seed: int, index: int, tasks: int) -> int:
    """The task of draw `index`: uniform, independent of other draws, the same on every machine.

    >>> [drawn_task(7, index, 3) for index in range(8)]
    [...]
    """
    digest = blake2b(f"passhat draw {seed} {index}".encode(), digest_size=16).digest()
    return int.from_bytes(digest, "big") % tasks


def indexed(outcomes: Outcomes) -> list[tuple[int, Observed]]:
    """Results with the number of their draw: the key in a mapping, the position in a sequence."""
    if isinstance(outcomes, Mapping):
        return sorted(outcomes.items())
    return list(enumerate(outcomes))
