"""Where trials run: workers that share a run through its store, and the driver that leads it."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Protocol, TypeVar

from passhat.dataclass import dataclass
from passhat.errors import LostRun
from passhat.records import Budget, Outcome, Suite, Ticket, Trial, UnansweredCalls
from passhat.records.ledger import CallKey, Claim, Entry, QueueState
from passhat.records.suite import model_of
from passhat.records.trial import TrialKey
from passhat.runner import schedule
from passhat.runner.attempt import Attempts
from passhat.runner.guarding import DecidingFiles
from passhat.runner.journal import Journal, JournalWriter
from passhat.runner.processes import signals_to, signals_to_thread
from passhat.runner.resources import RunResources
from passhat.runner.run import GRACE, RunResult, less_garbage_collection
from passhat.runner.spending import Exhausted, RunSpending, spent_by

# The driver: gives tickets to workers, takes their evidence in order, and ends the run.

DRIVER_POLL_SECONDS = 0.25

READ_AT_ONCE = 5_000
AHEAD_OF_FIXED = 20_000
"""How many tickets of a fixed plan are ready at most: enough for ten thousand trials a poll."""

CHANGED = "changed"
"""Why a worker stops a run in which a file that decides is not what it was; the files follow it,
one a line."""


class TicketQueue(Protocol):
    """The tickets of a run in its store."""

    def open(self, budget: Budget, *, retry_errored: bool = False) -> None: ...

    def publish(self, tickets: Sequence[Ticket]) -> None: ...

    def finished_from(self, number: int, *, limit: int) -> list[tuple[int, Trial]]: ...

    def state(self) -> QueueState: ...

    def stop(self, why: str) -> None: ...

    def limit_reached(self) -> str: ...

    def lost(self) -> UnansweredCalls: ...


def drive(
    suite: Suite,
    queue: TicketQueue,
    journal: Journal,
    *,
    stopping_rule: schedule.Allocation | None = None,
    on_event: schedule.OnEvent | None = None,
    budget: Budget | None = None,
    retry_errored: bool = False,
    keep_going: bool = False,
    handle_signals: bool = True,
    check: Callable[[], None] | None = None,
) -> RunResult:
    """Direct a run whose trials workers run, and return when it is over.

    The driver runs no trial. It may be killed and started again: everything it knows is in the
    store. `check` is called at every poll, and raises if no worker is left. Without `keep_going`
    the run ends when five trials errored alike and none could be judged, and always when a file
    that decides has changed.
    """
    rule = stopping_rule or schedule.FixedRuns(suite.pairings)
    errors = None if keep_going else schedule.ErrorsAlike()
    driver = _Driver(suite, queue, journal, rule, on_event, budget or suite.budget, check, errors)
    with less_garbage_collection():
        return driver.go(retry_errored=retry_errored, handle_signals=handle_signals)


class _Driver:
    def __init__(
        self,
        suite: Suite,
        queue: TicketQueue,
        journal: Journal,
        rule: schedule.Allocation,
        on_event: schedule.OnEvent | None,
        budget: Budget,
        check: Callable[[], None] | None,
        errors: schedule.ErrorsAlike | None,
    ) -> None:
        self._errors = errors
        self._check = check or (lambda: None)
        self._suite = suite
        self._queue = queue
        self._journal = journal
        self._rule = rule
        self._on_event = on_event or (lambda event: None)
        self._budget = budget
        self._fixed = isinstance(rule, schedule.FixedRuns)
        self._planned: int = getattr(rule, "planned", suite.trials)
        self._ending: schedule.Ending = "finished" if self._fixed else "settled"
        self._limit: str | None = None
        self._signal: int | None = None
        self._stop = threading.Event()
        self._evidence = schedule.OrderedEvidence(rule)
        self._spending = RunSpending(budget)
        self._tickets: dict[int, Ticket] = {}
        self._rows = {(p.system.name, p.task.name): p for p in suite.pairings}
        self._files = DecidingFiles.of(suite)
        self._changed_files: tuple[str, ...] = ()
        self._over = False
        # A run that starts its own workers is not told that there are none yet.
        self._crew = (-1, -1) if check is None else (0, 0)

    def go(self, *, retry_errored: bool, handle_signals: bool) -> RunResult:
        clock = time.perf_counter()
        self._queue.open(self._budget, retry_errored=retry_errored)
        self._take_up(
            schedule.Restored(self._journal, retry_errored=retry_errored, count_lost=False)
        )
        self._on_event(
            schedule.RunStarted(planned=self._planned, kept=len(self._evidence), concurrency=0)
        )
        with signals_to_thread(self._interrupt, enabled=handle_signals):
            while self._step(clock):
                self._stop.wait(DRIVER_POLL_SECONDS)
        self._changed_files = self._changed_files or self._files.changed()
        if self._changed_files:
            self._on_event(schedule.FilesChanged(files=self._changed_files))
        return self._result(time.perf_counter() - clock)

    def _take_up(self, restored: schedule.Restored) -> None:
        """Continue where an earlier start was interrupted."""
        self._tickets = {ticket.number: ticket for ticket in restored.launched}
        self._rule.restore(restored.launched)
        for entry in restored.finished:
            self._take(entry.ticket.number, entry.trial, announce=False)

    def _step(self, clock: float) -> bool:
        """Take evidence and publish tickets; returns whether there is more to do."""
        self._gather()
        state = self._queue.state()
        if (state.workers, state.hands) != self._crew:
            self._crew = (state.workers, state.hands)
            self._on_event(schedule.WorkersChanged(workers=state.workers, hands=state.hands))
        minutes = self._budget.max_minutes
        if state.stopped == "budget" and self._limit is None:
            self._end_early(self._queue.limit_reached())
        if minutes is not None and time.perf_counter() - clock > minutes * 60 and not self._limit:
            self._end_early("max_minutes")
        if self._limit is None and self._signal is None and self._ending != "changed":
            self._end_if_changed(state)
        if self._signal is not None:
            self._queue.stop("interrupted")
            return False
        if not self._over:
            self._hand_out(state)
            self._check()
            return True
        if state.ready:
            self._queue.stop(self._limit or "settled")  # a dead worker's tickets came back
        if state.leased or state.ready:
            return True
        self._gather()
        return False

    def _end_if_changed(self, state: QueueState) -> None:
        """End a run whose graders changed: a worker could not grade by them, or none may begin.

        A worker refuses to begin with files that are not those of the run: where tickets wait and
        nobody takes them, this machine's own files may be why.
        """
        word, *files = (state.stopped or "").split("\n")
        if state.ready and not state.workers:
            files = files or list(self._files.changed())
        if word == CHANGED or files:
            self._changed_files, self._ending, self._over = tuple(files), "changed", True
            self._queue.stop(CHANGED)

    def _hand_out(self, state: QueueState) -> None:
        # A sequential rule is asked for no more than can run at once: what it decides depends on
        # the evidence it has.
        ahead = AHEAD_OF_FIXED if self._fixed else max(1, state.hands)
        room = ahead - state.ready - (0 if self._fixed else state.leased)
        if room <= 0:
            return
        batch = self._rule.next(room)
        if batch is None:
            # No more tickets: a fixed plan runs to its end, a settled one stops.
            if not self._fixed:
                self._queue.stop("settled")
            self._over = not self._fixed or not (state.ready or state.leased)
        elif batch:
            self._queue.publish(batch)
            self._tickets.update({ticket.number: ticket for ticket in batch})

    def _gather(self) -> None:
        while rows := self._queue.finished_from(self._evidence.seen, limit=READ_AT_ONCE):
            before = self._evidence.seen
            for number, trial in rows:
                self._take(number, trial, announce=True)
            if self._evidence.seen == before or len(rows) < READ_AT_ONCE:
                return

    def _take(self, number: int, trial: Trial, *, announce: bool) -> None:
        if self._evidence.has(number):
            return
        ticket = self._tickets.pop(number)
        self._evidence.add(ticket, trial)
        spent = spent_by(trial)
        errored = trial.outcome is Outcome.ERRORED
        self._spending.take(spent, "" if errored else trial.system)
        self._spending.refuse_uncounted()
        if spent.cost is not None or spent.tokens is not None:
            self._spending.learn(trial.system, spent)
        if self._errors is not None and not announce and not errored:
            self._errors = None  # an earlier start could judge some
        if announce:
            alike = self._errors is not None and self._errors.take(trial)
            if alike and not self._over and len(self._evidence) < self._planned:
                self._ending, self._over = "errors", True
                self._queue.stop("errors")
            row = self._rows[ticket.system, ticket.task].row(ticket.trial)
            self._on_event(schedule.TrialStarted(ticket=ticket, row=row))
            self._on_event(schedule.TrialFinished(ticket=ticket, trial=trial, row=row))

    def _end_early(self, limit: str) -> None:
        self._limit, self._ending, self._over = limit, "budget", True
        self._on_event(schedule.BudgetHit(limit=limit, spent=self._spending.describe()))
        self._queue.stop(limit)

    def _interrupt(self, signal_number: int) -> None:
        """Publish nothing more: workers finish what they have, and the run can be resumed."""
        self._signal, self._ending = signal_number, "interrupted"
        self._on_event(schedule.StopRequested(signal=signal_number, grace=GRACE))
        self._stop.set()

    def _result(self, seconds: float) -> RunResult:
        models = {p.system.name for p in self._suite.pairings if model_of(p.system) is not None}
        agents = sum(trial.system not in models for trial in self._evidence.trials())
        result = RunResult(
            trials=self._evidence.trials(),
            ending=self._ending,
            planned=self._planned,
            seconds=seconds,
            cost=self._spending.cost,
            tokens=self._spending.tokens,
            calls=self._journal.calls() + agents,
            asked_again=self._queue.lost(),
            recovered=self._journal.recovered(),
            given_up=self._journal.given_up(),
            limit=self._limit,
            signal=self._signal,
            changed_files=self._changed_files,
        )
        self._on_event(result.as_event())
        return result


# A worker: claims tickets of a run, runs their trials, and writes them to the store.

WORKER_POLL_SECONDS = 0.3
"""How often a worker with nothing to do looks for tickets."""

UNSEEN_ANSWER = 4096
"""Tokens reserved for the first answer of a model whose requests set no limit: workers cannot
wait for one another as the calls of one process do. The value in most providers' examples."""

Answered = TypeVar("Answered")


class LeasedSession(Protocol):
    """A worker's session in the store; every call raises LostRun once others have closed it."""

    @property
    def key(self) -> str:
        """The key of the run."""
        ...

    @property
    def beat_seconds(self) -> float:
        """How often the lease is renewed while trials are silent."""
        ...

    def claim(self, count: int) -> Sequence[Claim]: ...

    def write(self, entries: Sequence[Entry], /) -> Collection[int]: ...

    def mark_sent(self, call: CallKey, /) -> None: ...

    def unmark_sent(self, call: CallKey, /) -> None: ...

    def give_back(self, ticket: Ticket) -> None: ...

    def stop(self, why: str) -> None: ...

    def renew(self) -> None: ...

    def draw(self, name: str, per_minute: float, amount: float) -> float: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkDone:
    """The result of a worker's session, and why it ended: idle, stopped by a signal, or lost."""

    trials: int
    ending: str
    signal: int | None = None


def run_worker(
    suite: Suite,
    session: LeasedSession,
    *,
    concurrency: int,
    idle_seconds: float | None = None,
    budget: Budget | None = None,
    environment: Mapping[str, str] | None = None,
    handle_signals: bool = True,
    stop: threading.Event | None = None,
) -> WorkDone:
    """Run tickets until none came for `idle_seconds` (None: no limit), or a signal arrives.

    If no signal can arrive, in a thread, setting `stop` does the same.
    """
    worker = _Worker(suite, session, concurrency=concurrency, idle_seconds=idle_seconds, stop=stop)
    with less_garbage_collection():
        return asyncio.run(worker.go(budget or suite.budget, environment, handle_signals))


class _Worker:
    def __init__(
        self,
        suite: Suite,
        session: LeasedSession,
        *,
        concurrency: int,
        idle_seconds: float | None,
        stop: threading.Event | None,
    ) -> None:
        self._asked_to_stop = stop
        self._suite = suite
        self._session = session
        self._concurrency = concurrency
        self._idle_seconds = idle_seconds
        self._tasks: set[asyncio.Task[None]] = set()
        self._cut_short: dict[TrialKey, Mapping[int, str]] = {}
        self._changed = asyncio.Event()
        self._done = 0
        self._stopping = False
        self._signal: int | None = None
        self._error: BaseException | None = None
        # One connection, one thread: claims and batches take turns on it.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="passhat-worker")

    async def go(
        self, budget: Budget, environment: Mapping[str, str] | None, handle_signals: bool
    ) -> WorkDone:
        # The store has the limits that all workers share; here calls are only given a bound.
        spending = RunSpending(Budget(), unseen=UNSEEN_ANSWER)
        async with (
            JournalWriter(self._session, thread=self._thread) as self._writer,
            RunResources(
                self._suite,
                writer=self._writer,
                spending=spending,
                environment=environment,
                must_price=budget.max_cost is not None,
                draw=self._draw,
                count_free=budget.max_calls is not None,
                run=self._session.key,
                cut_short=self._cut_short,
            ) as resources,
        ):
            self._attempts = Attempts(self._suite, resources)
            beside = [asyncio.create_task(self._beat()), asyncio.create_task(self._listen())]
            try:
                with signals_to(self._stop, enabled=handle_signals):
                    await self._take_turns()
            finally:
                for task in beside:
                    task.cancel()
                await self._end()
        lost = isinstance(self._error, LostRun)
        if self._error is not None and not lost:
            raise self._error
        ending = "lost" if lost else "stopped" if self._signal else "idle"
        return WorkDone(trials=self._done, ending=ending, signal=self._signal)

    async def _take_turns(self) -> None:
        since = time.monotonic()
        while not self._stopping:
            free = self._concurrency - len(self._tasks)
            claims = await self._call(self._session.claim, free) if free else ()
            for claim in claims:
                self._start(claim)
            if claims or self._tasks:
                since = time.monotonic()
            elif self._idle_seconds is not None and time.monotonic() - since > self._idle_seconds:
                return
            if len(claims) < free or not free:
                await self._pause(free)

    def _start(self, claim: Claim) -> None:
        task = asyncio.create_task(self._run(claim))
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._error = self._error or error
            self._stopping = True
        self._changed.set()

    async def _run(self, claim: Claim) -> None:
        ticket = claim.ticket
        if claim.cut_short:
            self._cut_short[ticket.key] = claim.remotes
        try:
            finished = await self._attempts.run(ticket, claim.answers)
        except Exhausted:
            await self._call(self._session.give_back, ticket)
            await asyncio.sleep(WORKER_POLL_SECONDS)  # other calls may cost less than they reserved
            return
        if self._attempts.cannot_decide:  # told before the trial is: the driver may end with it
            why = "\n".join([CHANGED, *self._attempts.changed_files])
            await self._call(self._session.stop, why)
        await self._writer.keep(finished)
        self._done += 1

    async def _pause(self, free: int) -> None:
        """Wait until a trial ends, or, if another could start, until the next look for tickets."""
        self._changed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(WORKER_POLL_SECONDS if free else None):
                await self._changed.wait()

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._session.beat_seconds)
            try:
                await self._call(self._session.renew)
            except Exception as error:
                self._error = self._error or error
                self._stopping = True
                self._changed.set()
                return

    async def _listen(self) -> None:
        while self._asked_to_stop is not None:
            if self._asked_to_stop.is_set():
                self._stop(signal.SIGTERM)
                return
            await asyncio.sleep(WORKER_POLL_SECONDS)

    def _stop(self, signal_number: int) -> None:
        self._signal, self._stopping = signal_number, True
        self._changed.set()

    async def _end(self) -> None:
        """Give trials under way a moment to finish, then leave them to other workers."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=0 if self._error else GRACE)
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _draw(self, name: str, per_minute: float, amount: float) -> float:
        return await self._call(self._session.draw, name, per_minute, amount)

    async def _call(self, function: Callable[..., Answered], *arguments: object) -> Answered:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)
