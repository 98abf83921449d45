"""The scheduler: runs the trials that a rule asks for, a number of them at once."""

from __future__ import annotations

import asyncio
import re
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Literal, Protocol

from passhat.dataclass import dataclass
from passhat.errors import RunError
from passhat.records import Answer, Finished, Outcome, Pairing, Ticket, Trial
from passhat.records.ledger import NO_CALLS
from passhat.records.trial import TrialKey
from passhat.runner.journal import Journal

Work = Callable[[Ticket], Awaitable[None]]


class Schedule:
    """Keeps up to `concurrency` trials under way.

    `launch` gets every new ticket, `work` runs one. A rule that waits for evidence is asked again
    after each trial.
    """

    def __init__(
        self,
        rule: Allocation,
        *,
        work: Work,
        launch: Callable[[Ticket], None],
        concurrency: int,
        first: Sequence[Ticket] = (),
    ) -> None:
        self._rule = rule
        self._work = work
        self._launch = launch
        self._concurrency = concurrency
        self._ready = deque(first)
        self._idle = 0
        self._over = False
        self._changed = asyncio.Event()
        self._workers: list[asyncio.Task[None]] = []

    async def run(self) -> None:
        """Run trials until the rule ends the run, or `stop` is called."""
        try:
            async with asyncio.TaskGroup() as group:
                self._workers = [
                    group.create_task(self._worker()) for _ in range(self._concurrency)
                ]
        except BaseExceptionGroup as group_error:
            raise _first(group_error) from None

    def stop(self) -> None:
        """Start nothing more; let trials under way finish."""
        self._over = True
        self._wake()

    def abandon(self) -> None:
        """Cancel the trials under way."""
        self.stop()
        for worker in self._workers:
            worker.cancel()

    async def _worker(self) -> None:
        while (ticket := await self._take()) is not None:
            await self._work(ticket)
            self._wake()

    async def _take(self) -> Ticket | None:
        self._idle += 1
        try:
            while not self._over:
                # read before the rule is asked: a pause that ends meanwhile is not an error
                pause: float = getattr(self._rule, "pause_seconds", 0.0)
                if not self._ready:
                    self._refill()
                if self._ready:
                    return self._ready.popleft()
                await self._evidence(pause)
            return None
        finally:
            self._idle -= 1

    def _refill(self) -> None:
        """Ask the rule for as many tickets as there are idle workers."""
        batch = self._rule.next(self._idle)
        if batch is None:
            self.stop()
            return
        for ticket in batch:
            self._launch(ticket)
        self._ready.extend(batch)
        if len(batch) > 1:
            self._wake()

    async def _evidence(self, pause: float) -> None:
        """Wait until another trial has ended, or the run, or the pause for an outage."""
        if self._over:
            return
        if self._idle == len(self._workers) and not pause:
            raise RunError(
                "the stopping rule waits for evidence, but no trial is under way: its `next` must "
                "return tickets, or None to end the run"
            )
        # not wait_for, which in 3.11 loses a cancellation that comes with what it waits for
        with suppress(TimeoutError):
            async with asyncio.timeout(pause or None):
                await self._changed.wait()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def _first(error: BaseExceptionGroup[BaseException]) -> BaseException:
    inner = error.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner


# Finished trials, shown to the stopping rule in the order in which it asked for them.


class OrderedEvidence:
    """Finished trials by the number of their ticket; the rule sees them in order, without gaps."""

    def __init__(self, rule: Allocation) -> None:
        self._rule = rule
        self._trials: dict[int, Trial] = {}
        self._tickets: dict[int, Ticket] = {}
        self._seen = 0

    def add(self, ticket: Ticket, trial: Trial) -> None:
        """Add a finished trial, and show the rule every trial that is next in the order."""
        self._trials[ticket.number] = trial
        self._tickets[ticket.number] = ticket  # only until the rule has seen it
        while (next_ticket := self._tickets.pop(self._seen, None)) is not None:
            self._rule.observe(next_ticket, self._trials[self._seen])
            self._seen += 1

    def trials(self) -> tuple[Trial, ...]:
        """All finished trials, by number."""
        return tuple(self._trials[number] for number in sorted(self._trials))

    @property
    def seen(self) -> int:
        """How many trials the rule has seen: the number of the first that is missing."""
        return self._seen

    def has(self, number: int) -> bool:
        """Whether the trial of this ticket has finished."""
        return number in self._trials

    def __len__(self) -> int:
        return len(self._trials)


ERRORS_ALIKE = 5
"""Trials that error in the same way before a run in which no trial could be judged ends."""

_VARYING = re.compile(r"\b(?:req_|0x)?[0-9a-f]*[0-9][0-9a-f-]*\b", re.IGNORECASE)
"""Numbers, addresses and names of requests, which differ between errors of the same kind."""


class ErrorsAlike:
    """Notices that a run can only err: `ERRORS_ALIKE` trials errored alike, none could be judged.

    >>> from passhat.records import Trial
    >>> errors = ErrorsAlike()
    >>> failing = Trial(system="a", task="t", trial=0, outcome=Outcome.ERRORED, error="401 (req 7)")
    >>> [errors.take(failing) for _ in range(5)]
    [False, False, False, False, True]
    """

    def __init__(self) -> None:
        self._errors: Counter[str] = Counter()
        self._judged = False

    def take(self, trial: Trial) -> bool:
        """Count a trial that has just ended; returns whether the run should end with it."""
        if trial.outcome is not Outcome.ERRORED:
            self._judged = True
        if self._judged:
            return False
        error = _VARYING.sub("#", trial.error or "")
        self._errors[error] += 1
        return self._errors[error] >= ERRORS_ALIKE


class Restored:
    """What an earlier start of this run left in its journal."""

    def __init__(self, journal: Journal, *, retry_errored: bool, count_lost: bool = True) -> None:
        self.launched: Sequence[Ticket] = journal.launched()
        self.finished: list[Finished] = [
            entry
            for entry in journal.finished()
            if not (retry_errored and entry.trial.outcome is Outcome.ERRORED)
        ]
        self.calls = journal.calls()
        self.asked_again = journal.asked_again() if count_lost else NO_CALLS
        self.given_up = journal.given_up() if count_lost else NO_CALLS
        self.recovered = journal.recovered()
        self.remotes = journal.remotes() if count_lost else {}
        self.answers: dict[TrialKey, dict[int, Answer]] = {}
        for answer in journal.answered():
            self.answers.setdefault(answer.call[:3], {})[answer.call.step] = answer

    def cut_short(self) -> dict[TrialKey, dict[int, str]]:
        """Trials that did not finish, with the provider's names for answers to their lost calls."""
        lost: dict[TrialKey, dict[int, str]] = {ticket.key: {} for ticket in self.missing()}
        for call, remote in self.remotes.items():
            lost.setdefault(call[:3], {})[call.step] = remote
        return lost

    def forget_trials(self) -> None:
        """Free what only the start of a run needs: most of the memory of a long run."""
        self.launched, self.finished = (), []

    def missing(self) -> list[Ticket]:
        """Tickets whose trials did not finish."""
        done = {entry.ticket.number for entry in self.finished}
        return [ticket for ticket in self.launched if ticket.number not in done]


# Which trial comes next: the stopping rule that the scheduler asks.


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


# The events of a run, for progress displays and logs.

Ending = Literal["finished", "settled", "budget", "errors", "changed", "interrupted"]
"""How a run ended; "errors" is too many of the same kind, with no trial that could be judged, and
"changed" that a file which decides is no longer what it was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    """A run begins: `planned` trials at most, of which `kept` had finished before."""

    planned: int
    kept: int
    concurrency: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialStarted:
    """An attempt begins."""

    ticket: Ticket
    row: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialFinished:
    """An attempt ended and is stored; `row` is the name that people see."""

    ticket: Ticket
    trial: Trial
    row: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """A provider was busy; it is asked again after `wait` seconds."""

    system: str
    attempt: int
    wait: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused:
    """Many trials in a row failed; nothing is started for `wait` seconds."""

    wait: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetHit:
    """The suite has used up its budget; nothing new is started."""

    limit: str
    spent: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesChanged:
    """Files that decide (the suite, its graders, its snapshots) were changed during the run."""

    files: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRequested:
    """A signal asked the run to stop; trials under way have `grace` seconds."""

    signal: int
    grace: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished:
    """A run is over: how it ended, and how many planned trials were not run."""

    ending: Ending
    done: int
    undone: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkersChanged:
    """Workers came or went: how many there are, and how many trials they run at once."""

    workers: int
    hands: int


Event = (
    WorkersChanged
    | RunStarted
    | TrialStarted
    | TrialFinished
    | Retry
    | Paused
    | BudgetHit
    | FilesChanged
    | StopRequested
    | RunFinished
)
OnEvent = Callable[[Event], None]
