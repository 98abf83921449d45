"""Which trial comes next: the stopping rule that the scheduler asks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Protocol

from passhat.dataclass import dataclass
from passhat.records import Pairing, Ticket, Trial
from passhat.records.ledger import TrialKey


class Allocation(Protocol):
    """Decides what is run next, and when enough has been run.

    The rule sees evidence in the order of the tickets, in whatever order the trials finish: else
    it would see quick passes before slow failures, and no error rate would hold. What a rule
    decided when it gave out a ticket (a bet, for example) can be put into the ticket's `stamp`,
    which is stored with it. So the rule sees the same evidence in the same order at any
    concurrency, and after an interruption.
    """

    def restore(self, tickets: Sequence[Ticket], /) -> None:
        """Called once, before anything else, with the tickets that an interrupted run gave out."""
        ...

    def next(self, count: int, /) -> Sequence[Ticket] | None:
        """At most `count` tickets to start now; their numbers continue those before.

        None ends the run. An empty list waits for evidence of trials under way, or for the end of
        the rule's `pause_seconds`, if it has any.
        """
        ...

    def observe(self, ticket: Ticket, trial: Trial, /) -> None:
        """Called when a trial has ended, once for each ticket, in the order of their numbers."""
        ...


@dataclass(frozen=True, slots=True)
class Shard:
    """One of several equal parts of a fixed plan; the whole plan is shard 1 of 1.

    >>> [place for place in range(7) if Shard(2, 3).has(place)], Shard(2, 3).share(7)
    ([1, 4], 2)
    """

    number: int = 1
    of: int = 1

    def has(self, place: int) -> bool:
        """Whether the trial at this place of the plan is in this part."""
        return place % self.of == self.number - 1

    def share(self, trials: int) -> int:
        """How many of a plan's trials are in this part: len(range(number - 1, trials, of)).

        That call fails for plans of more than 2**63 trials, which a budget may end.
        """
        return -((self.number - 1 - trials) // self.of)


class FixedRuns:
    """Every pairing as many times as it says, interleaved so that an early stop is fair.

    >>> from passhat.records import CommandSystem, Task
    >>> agent = CommandSystem(name="agent", argv=("agent",))
    >>> pairs = [Pairing(system=agent, task=Task(name=t), runs=2, label=t) for t in "ab"]
    >>> [(ticket.task, ticket.trial) for ticket in FixedRuns(pairs).next(9)]
    [('a', 0), ('b', 0), ('a', 1), ('b', 1)]
    """

    def __init__(self, pairings: Sequence[Pairing], *, shard: Shard | None = None) -> None:
        self._shard = shard or Shard()
        self.planned = self._shard.share(sum(pairing.planned for pairing in pairings))
        self._done: set[TrialKey] = set()
        self._number = 0
        self._rest = self._interleaved(pairings)

    def restore(self, tickets: Sequence[Ticket], /) -> None:
        self._done = {ticket.key for ticket in tickets}
        self._number = max((ticket.number for ticket in tickets), default=-1) + 1

    def next(self, count: int, /) -> Sequence[Ticket] | None:
        return list(islice(self._rest, count)) or None

    def observe(self, ticket: Ticket, trial: Trial, /) -> None:
        """Does nothing: evidence does not change a fixed plan."""

    def _interleaved(self, pairings: Sequence[Pairing]) -> Iterator[Ticket]:
        place = -1
        for trial in range(max((pairing.runs for pairing in pairings), default=0)):
            for pairing in pairings:
                wanted = pairing.only is None or trial in pairing.only
                if not wanted or trial >= pairing.runs:
                    continue
                place += 1
                key = (pairing.system.name, pairing.task.name, trial)
                if self._shard.has(place) and key not in self._done:
                    yield Ticket(number=self._number, system=key[0], task=key[1], trial=trial)
                    self._number += 1
