"""Running a suite: `run_trials` takes a suite and returns its trials."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from passhat.dataclass import dataclass
from passhat.errors import ArgumentError
from passhat.messages import plural, short_repr
from passhat.records import Budget, Outcome, Suite, Ticket, Trial, UnansweredCalls
from passhat.records.ledger import NO_CALLS
from passhat.records.suite import model_of
from passhat.runner.attempt import Attempts
from passhat.runner.journal import Cassettes, Journal, JournalWriter, MemoryJournal, reply_spent
from passhat.runner.processes import signals_to
from passhat.runner.resources import RunResources
from passhat.runner.schedule import (
    Allocation,
    BudgetHit,
    Ending,
    ErrorsAlike,
    Event,
    FilesChanged,
    FixedRuns,
    OnEvent,
    OrderedEvidence,
    Paused,
    Restored,
    RunFinished,
    RunStarted,
    Schedule,
    StopRequested,
    TrialFinished,
    TrialStarted,
)
from passhat.runner.spending import Exhausted, RunSpending, spent_by

if TYPE_CHECKING:
    from passhat.records import Trials
    from passhat.runner.grading import Grading

Result = TypeVar("Result")

GRACE = 1.0
"""Seconds that trials under way have to finish when a run is stopped. A user waits two seconds;
the rest of them is for stopping servers and processes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """The result of a run: its trials in the order of evidence, how it ended, what it spent.

    `undone` counts planned trials that were not run because of an early end; `signal` or `limit`
    (of the budget) says what ended it. `asked_again` are calls that were sent and not answered when
    an earlier start of this run died: perhaps paid twice, except for `found` of them, whose answers
    the provider had kept. `given_up` are calls whose answers were lost: perhaps paid, and not in
    `cost`. `tools_offered` are the tools of started servers, `changed_files` the files
    that decide and were changed meanwhile.
    """

    trials: tuple[Trial, ...]
    ending: Ending
    planned: int
    seconds: float
    cost: float
    tokens: int
    calls: int = 0
    asked_again: UnansweredCalls = NO_CALLS
    recovered: int = 0
    given_up: UnansweredCalls = NO_CALLS
    limit: str | None = None
    signal: int | None = None
    tools_offered: frozenset[str] = frozenset()
    changed_files: tuple[str, ...] = ()

    def __repr__(self) -> str:
        made = f"{len(self.trials):,} of {plural(self.planned, 'trial')} in {self.seconds:.3g} s"
        spent = f"${self.cost:.4g}, {plural(self.tokens, 'token')}"
        return short_repr("RunResult", self.ending, made, spent, see=".trials, .table()")

    @property
    def undone(self) -> int:
        early = self.ending in ("budget", "errors", "changed", "interrupted")
        return max(0, self.planned - len(self.trials)) if early else 0

    def as_event(self) -> RunFinished:
        """The event that ends a run with this result."""
        done, undone = len(self.trials), self.undone
        return RunFinished(ending=self.ending, done=done, undone=undone, seconds=self.seconds)

    def table(self) -> Trials:
        """The trials in columns, as the analysis reads them."""
        from passhat.records import Trials

        return Trials.from_records(self.trials, duplicates=None)


def run_trials(
    suite: Suite,
    *,
    stopping_rule: Allocation | None = None,
    journal: Journal | None = None,
    on_event: OnEvent | None = None,
    concurrency: int | None = None,
    budget: Budget | None = None,
    cassettes: Cassettes | None = None,
    grading: Grading | None = None,
    retry_errored: bool = False,
    keep_going: bool = False,
    environment: Mapping[str, str] | None = None,
    handle_signals: bool = True,
) -> RunResult:
    """Run a suite until it is done, settled, out of budget, or interrupted.

    Without `keep_going` it also ends when five trials errored alike and none could be judged.
    Trials that are in `journal` already are not run again. After the first Ctrl-C nothing new is
    started and trials under way have a moment to finish; the second ends the process at once.

    >>> from passhat.records import Behaviour, Model, ModelSystem, Pairing, Task
    >>> model = Model(name="scripted", script=(Behaviour(answer="4"),))
    >>> pairing = Pairing(system=ModelSystem(name="agent", model=model),
    ...                   task=Task(name="sum", prompt="2 + 2?"), runs=3, label="sum")
    >>> len(run_trials(Suite(name="demo", pairings=(pairing,))).trials)
    3
    """
    if not isinstance(suite, Suite):
        raise ArgumentError("suite", "must be a Suite; passhat.run takes a file too", suite)
    at_once = suite.concurrency if concurrency is None else concurrency
    if at_once < 1:
        raise ArgumentError("concurrency", "must be at least 1", at_once)
    with less_garbage_collection():
        run = _Run(
            suite,
            rule=stopping_rule or FixedRuns(suite.pairings),
            journal=journal or MemoryJournal(),
            on_event=on_event,
            concurrency=at_once,
            budget=budget or suite.budget,
            retry_errored=retry_errored,
            errors=None if keep_going else ErrorsAlike(),
        )
        going = run.go(
            cassettes=cassettes,
            grading=grading,
            environment=environment,
            handle_signals=handle_signals,
        )
        return run_coroutine(going)


def run_coroutine(going: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine to its end, even if this thread already runs an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(going)
    # A notebook runs a loop in this thread: ours gets another thread.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, going).result()


class _Run:
    def __init__(
        self,
        suite: Suite,
        *,
        rule: Allocation,
        journal: Journal,
        on_event: OnEvent | None,
        concurrency: int,
        budget: Budget,
        retry_errored: bool,
        errors: ErrorsAlike | None,
    ) -> None:
        self._suite = suite
        self._rule = rule
        self._journal = journal
        self._on_event = on_event
        # More workers than trials would only wait, and take memory for it.
        self._concurrency = min(concurrency, max(1, getattr(rule, "planned", concurrency)))
        self._spending = RunSpending(budget)
        self._planned: int = getattr(rule, "planned", suite.trials)
        self._ending: Ending = "finished" if isinstance(rule, FixedRuns) else "settled"
        self._limit: str | None = None
        self._signal: int | None = None
        self._changed_files: tuple[str, ...] = ()
        self._paused = False
        self._errors = errors
        self._restored = Restored(journal, retry_errored=retry_errored)
        self._evidence = OrderedEvidence(rule)

    async def go(
        self,
        *,
        cassettes: Cassettes | None,
        grading: Grading | None,
        environment: Mapping[str, str] | None,
        handle_signals: bool,
    ) -> RunResult:
        clock = time.perf_counter()
        self._take_up()
        async with (
            JournalWriter(self._journal) as self._writer,
            RunResources(
                self._suite,
                writer=self._writer,
                spending=self._spending,
                cassettes=cassettes,
                on_event=self._on_event,
                environment=environment,
                run=self._journal.key,
                cut_short=self._restored.cut_short(),
            ) as resources,
        ):
            self._resources = resources
            self._attempts = Attempts(self._suite, resources, grading=grading)
            self._schedule = Schedule(
                self._rule,
                work=self._work,
                launch=self._writer.note,
                concurrency=self._concurrency,
                first=self._restored.missing(),
            )
            self._restored.forget_trials()
            self._check_spending()
            with signals_to(self._interrupt, enabled=handle_signals):
                minutes = self._spending.budget.max_minutes
                if minutes is not None:
                    loop = asyncio.get_running_loop()
                    loop.call_later(minutes * 60, self._out_of_time)
                await self._schedule.run()
            self._changed_files = self._attempts.changed_files
            if self._changed_files:
                self._tell(FilesChanged(files=self._changed_files))
        return self._result(time.perf_counter() - clock)

    def _take_up(self) -> None:
        """Continue where an earlier start was interrupted."""
        restored = self._restored
        systems = {pairing.system.name: pairing.system for pairing in self._suite.pairings}
        agents = {name for name, each in systems.items() if model_of(each) is None}
        self._rule.restore(restored.launched)
        for entry in restored.finished:
            self._evidence.add(entry.ticket, entry.trial)
            if entry.trial.outcome is not Outcome.ERRORED:
                self._errors = None
            spent = spent_by(entry.trial)
            self._spending.take(spent)
            known = spent.cost is not None or spent.tokens is not None
            if known and entry.ticket.system in agents:
                self._spending.learn(entry.ticket.system, spent)
        for answers in restored.answers.values():
            for answer in answers.values():
                self._spending.take(reply_spent(answer.request, answer.reply))
        # An attempt of an agent that makes its own calls counts as one call.
        attempts = sum(entry.ticket.system in agents for entry in restored.finished)
        self._spending.calls = restored.calls + attempts
        self._spending.unsettled = restored.asked_again.cost + restored.given_up.cost
        self._spending.given_up = restored.given_up
        self._spending.recovered = restored.recovered
        self._tell(
            RunStarted(
                planned=self._planned, kept=len(self._evidence), concurrency=self._concurrency
            )
        )

    async def _work(self, ticket: Ticket) -> None:
        if self._on_event is not None:
            row = self._attempts.pairing(ticket).row(ticket.trial)
            self._tell(TrialStarted(ticket=ticket, row=row))
        try:
            kept = self._restored.answers.pop(ticket.key, None)
            finished = await self._attempts.run(ticket, kept)
        except Exhausted:
            self._check_spending()
            return
        await self._writer.keep(finished)
        self._evidence.add(ticket, finished.trial)
        self._spending.refuse_uncounted()
        if self._on_event is not None:
            row = self._attempts.pairing(ticket).row(ticket.trial)
            self._tell(TrialFinished(ticket=ticket, trial=finished.trial, row=row))
            wait: float = getattr(self._rule, "pause_seconds", 0.0)
            if wait > 0 and not self._paused:
                self._tell(Paused(wait=wait))
            self._paused = wait > 0
        alike = self._errors is not None and self._errors.take(finished.trial)
        if alike and len(self._evidence) < self._planned and not self._limit:
            self._ending = "errors"
            self._schedule.stop()
        if self._attempts.cannot_decide and not self._limit and self._signal is None:
            self._ending = "changed"
            self._schedule.stop()
        self._check_spending()

    def _check_spending(self) -> None:
        limit = self._spending.over()
        if limit is not None and self._limit is None:
            self._hit(limit)

    def _hit(self, limit: str) -> None:
        self._limit, self._ending = limit, "budget"
        self._tell(BudgetHit(limit=limit, spent=self._spending.describe()))
        self._schedule.stop()

    def _out_of_time(self) -> None:
        self._hit("max_minutes")
        asyncio.get_running_loop().call_later(GRACE, self._schedule.abandon)

    def _interrupt(self, signal_number: int) -> None:
        self._signal, self._ending = signal_number, "interrupted"
        self._tell(StopRequested(signal=signal_number, grace=GRACE))
        self._schedule.stop()
        asyncio.get_running_loop().call_later(GRACE, self._schedule.abandon)

    def _result(self, seconds: float) -> RunResult:
        result = RunResult(
            trials=self._evidence.trials(),
            ending=self._ending,
            planned=self._planned,
            seconds=seconds,
            cost=self._spending.cost,
            tokens=self._spending.tokens,
            calls=self._spending.calls,
            asked_again=self._restored.asked_again,
            recovered=self._spending.recovered,
            given_up=self._spending.given_up,
            limit=self._limit,
            signal=self._signal,
            tools_offered=frozenset(self._resources.tools_offered),
            changed_files=self._changed_files,
        )
        self._tell(result.as_event())
        return result

    def _tell(self, event: Event) -> None:
        if self._on_event is not None:
            self._on_event(event)


ALLOCATIONS = 50_000
"""Objects made before the collector looks for unused ones; Python's own number is 700.

With 700, objects of trials under way are taken for long-lived ones, and each time there are enough
of them the collector visits every trial of the run: 0.08 ms a trial after 10,000 trials, 0.14 ms
after 60,000, and growing. With 50,000 it takes 0.002 ms at both, and no more memory is in use.
"""

_lock = threading.Lock()
_runs = 0
_before: tuple[int, int, int] = (0, 0, 0)


@contextmanager
def less_garbage_collection() -> Iterator[None]:
    """Let the collector run rarely; Python's setting is back when the last run has ended.

    >>> with less_garbage_collection():
    ...     gc.get_threshold()[0] >= ALLOCATIONS
    True
    """
    global _runs, _before
    with _lock:
        _runs += 1
        if _runs == 1:
            _before = gc.get_threshold()
            if 0 < _before[0] < ALLOCATIONS:  # 0: the collector is switched off
                gc.set_threshold(ALLOCATIONS, *_before[1:])
    try:
        yield
    finally:
        with _lock:
            _runs -= 1
            if _runs == 0:
                gc.set_threshold(*_before)
