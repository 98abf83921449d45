"""The driver: gives tickets to workers, takes their evidence in order, and ends the run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from passhat.records import Budget, ModelSystem, Suite, Ticket, Trial, UnansweredCalls
from passhat.records.ledger import BoardState
from passhat.runner.allocation import Allocation, FixedRuns
from passhat.runner.events import (
    BudgetHit,
    Ending,
    OnEvent,
    RunStarted,
    StopRequested,
    TrialFinished,
    TrialStarted,
    WorkersChanged,
)
from passhat.runner.evidence import OrderedEvidence, Restored
from passhat.runner.garbage_collection import rare_collections
from passhat.runner.interruption import signals_to_thread
from passhat.runner.journal import Journal
from passhat.runner.run import GRACE, RunResult
from passhat.runner.spending import RunSpending, spent_by

POLL_SECONDS = 0.25
READ_AT_ONCE = 5_000
AHEAD_OF_FIXED = 20_000
"""How many tickets of a fixed plan are ready at most: enough for ten thousand trials a poll."""


class Board(Protocol):
    """The tickets of a run in its store."""

    def open(self, budget: Budget, *, retry_errored: bool = False) -> None: ...

    def publish(self, tickets: Sequence[Ticket]) -> None: ...

    def finished_from(self, number: int, *, limit: int) -> list[tuple[int, Trial]]: ...

    def state(self) -> BoardState: ...

    def stop(self, why: str) -> None: ...

    def limit_reached(self) -> str: ...

    def lost(self) -> UnansweredCalls: ...


def drive(
    suite: Suite,
    board: Board,
    journal: Journal,
    *,
    stopping_rule: Allocation | None = None,
    on_event: OnEvent | None = None,
    budget: Budget | None = None,
    retry_errored: bool = False,
    handle_signals: bool = True,
    check: Callable[[], None] | None = None,
) -> RunResult:
    """Direct a run whose trials workers run, and return when it is over.

    The driver runs no trial. It may be killed and started again: everything it knows is in the
    store. `check` is called at every poll, and raises if no worker is left.
    """
    rule = stopping_rule or FixedRuns(suite.pairings)
    driver = _Driver(suite, board, journal, rule, on_event, budget or suite.budget, check)
    with rare_collections():
        return driver.go(retry_errored=retry_errored, handle_signals=handle_signals)


class _Driver:
    def __init__(
        self,
        suite: Suite,
        board: Board,
        journal: Journal,
        rule: Allocation,
        on_event: OnEvent | None,
        budget: Budget,
        check: Callable[[], None] | None,
    ) -> None:
        self._check = check or (lambda: None)
        self._suite = suite
        self._board = board
        self._journal = journal
        self._rule = rule
        self._on_event = on_event or (lambda event: None)
        self._budget = budget
        self._fixed = isinstance(rule, FixedRuns)
        self._planned: int = getattr(rule, "planned", suite.trials)
        self._ending: Ending = "finished" if self._fixed else "settled"
        self._limit: str | None = None
        self._signal: int | None = None
        self._stop = threading.Event()
        self._evidence = OrderedEvidence(rule)
        self._spending = RunSpending(budget)
        self._tickets: dict[int, Ticket] = {}
        self._rows = {(p.system.name, p.task.name): p for p in suite.pairings}
        self._over = False
        # A run that starts its own workers is not told that there are none yet.
        self._crew = (-1, -1) if check is None else (0, 0)

    def go(self, *, retry_errored: bool, handle_signals: bool) -> RunResult:
        clock = time.perf_counter()
        self._board.open(self._budget, retry_errored=retry_errored)
        self._take_up(Restored(self._journal, retry_errored=retry_errored, count_lost=False))
        self._on_event(RunStarted(planned=self._planned, kept=len(self._evidence), concurrency=0))
        with signals_to_thread(self._interrupt, enabled=handle_signals):
            while self._step(clock):
                self._stop.wait(POLL_SECONDS)
        return self._result(time.perf_counter() - clock)

    def _take_up(self, restored: Restored) -> None:
        """Continue where an earlier start was interrupted."""
        self._tickets = {ticket.number: ticket for ticket in restored.launched}
        self._rule.restore(restored.launched)
        for entry in restored.finished:
            self._take(entry.ticket.number, entry.trial, announce=False)

    def _step(self, clock: float) -> bool:
        """Take evidence and publish tickets; returns whether there is more to do."""
        self._gather()
        state = self._board.state()
        self._tell_crew(state)
        minutes = self._budget.max_minutes
        if state.stopped == "budget" and self._limit is None:
            self._end_early(self._board.limit_reached())
        if minutes is not None and time.perf_counter() - clock > minutes * 60 and not self._limit:
            self._end_early("max_minutes")
        if self._signal is not None:
            self._board.stop("interrupted")
            return False
        if not self._over:
            self._hand_out(state)
            self._check()
            return True
        if state.ready:
            self._board.stop(self._limit or "settled")  # a dead worker's tickets came back
        if state.leased or state.ready:
            return True
        self._gather()
        return False

    def _hand_out(self, state: BoardState) -> None:
        # A sequential rule is asked for no more than can run at once: what it decides depends on
        # the evidence it has.
        ahead = AHEAD_OF_FIXED if self._fixed else max(1, state.hands)
        room = ahead - state.ready - (0 if self._fixed else state.leased)
        if room <= 0:
            return
        batch = self._rule.next(room)
        if batch is None:
            self._no_more(state)
        elif batch:
            self._board.publish(batch)
            self._tickets.update({ticket.number: ticket for ticket in batch})

    def _no_more(self, state: BoardState) -> None:
        """The rule gives no more tickets: a fixed plan runs to its end, a settled one stops."""
        if not self._fixed:
            self._board.stop("settled")
            self._over = True
        elif not state.ready and not state.leased:
            self._over = True

    def _gather(self) -> None:
        while rows := self._board.finished_from(self._evidence.seen, limit=READ_AT_ONCE):
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
        self._spending.take(spent_by(trial))
        if announce:
            row = self._rows[ticket.system, ticket.task].row(ticket.trial)
            self._on_event(TrialStarted(ticket=ticket, row=row))
            self._on_event(TrialFinished(ticket=ticket, trial=trial, row=row))

    def _end_early(self, limit: str) -> None:
        self._limit, self._ending, self._over = limit, "budget", True
        self._on_event(BudgetHit(limit=limit, spent=self._spending.describe()))
        self._board.stop(limit)

    def _interrupt(self, signal_number: int) -> None:
        """Publish nothing more: workers finish what they have, and the run can be resumed."""
        self._signal, self._ending = signal_number, "interrupted"
        self._on_event(StopRequested(signal=signal_number, grace=GRACE))
        self._stop.set()

    def _tell_crew(self, state: BoardState) -> None:
        if (state.workers, state.hands) != self._crew:
            self._crew = (state.workers, state.hands)
            self._on_event(WorkersChanged(workers=state.workers, hands=state.hands))

    def _result(self, seconds: float) -> RunResult:
        models = {p.system.name for p in self._suite.pairings if isinstance(p.system, ModelSystem)}
        agents = sum(trial.system not in models for trial in self._evidence.trials())
        result = RunResult(
            trials=self._evidence.trials(),
            ending=self._ending,
            planned=self._planned,
            seconds=seconds,
            cost=self._spending.cost,
            tokens=self._spending.tokens,
            calls=self._journal.calls() + agents,
            asked_again=self._board.lost(),
            found=self._journal.found(),
            given_up=self._journal.given_up(),
            limit=self._limit,
            signal=self._signal,
        )
        self._on_event(result.as_event())
        return result
