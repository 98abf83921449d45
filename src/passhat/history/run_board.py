"""The driver's side of a run in PostgreSQL: it publishes tickets and reads evidence in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from passhat.errors import HistoryError
from passhat.history.database import is_postgres
from passhat.history.dead_workers import WORKER, reap
from passhat.history.leases import Lease
from passhat.history.lookups import read_trials_from
from passhat.history.run_journal import MICRO, micro
from passhat.history.runs import Run
from passhat.history.store import History
from passhat.records import Budget, Trial, UnansweredCalls
from passhat.records.ledger import BoardState, Ticket


class RunBoard:
    """The tickets of one run. Only the holder of the run's lease may change them."""

    def __init__(self, history: History, run: Run, lease: Lease) -> None:
        if not is_postgres(history.name):
            raise HistoryError(f"{history.name}: workers can share a run only through a server")
        self._history = history
        self._database = history.database
        self._run = run
        self._lease = lease
        self._opened = False

    def open(self, budget: Budget, *, retry_errored: bool = False) -> None:
        """Set the limits that all workers share, and make unfinished tickets ready again.

        When it is opened again after an outage of the store, errors are not retried again.
        """
        limits = (
            None if budget.max_cost is None else micro(budget.max_cost),
            budget.max_tokens,
            budget.max_calls,
        )
        with self._database.writing():
            self._lease.renew(self._database)
            if retry_errored and not self._opened:
                self._database.execute(
                    "DELETE FROM trials WHERE run = ? AND outcome = 2", (self._run.id,)
                )
            self._database.execute(
                "INSERT INTO accounts (run, max_cost, max_tokens, max_calls) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (run) DO UPDATE SET max_cost = excluded.max_cost, "
                "max_tokens = excluded.max_tokens, max_calls = excluded.max_calls, stopped = NULL",
                (self._run.id, *limits),
            )
            self._database.execute(
                "UPDATE tickets AS t SET state = CASE WHEN EXISTS (SELECT 1 FROM trials x "
                "WHERE x.run = t.run AND x.sequence = t.number) THEN 2 ELSE 0 END, session = NULL "
                "WHERE t.run = ? AND t.state <> 1",
                (self._run.id,),
            )
        self._opened = True

    def publish(self, tickets: Sequence[Ticket]) -> None:
        """Make tickets ready for any worker."""
        with self._database.writing():
            self._lease.renew(self._database)
            ids = self._history.name_ids(name for t in tickets for name in (t.system, t.task))
            self._database.insert(
                "tickets",
                ("run", "number", "system", "task", "trial", "stamp"),
                [
                    (self._run.id, t.number, ids[t.system], ids[t.task], t.trial, t.stamp)
                    for t in tickets
                ],
            )

    def finished_from(self, number: int, *, limit: int) -> list[tuple[int, Trial]]:
        """Finished trials by the number of their ticket, from one on."""
        return read_trials_from(self._history, self._run, number, limit=limit)

    def state(self) -> BoardState:
        """The progress of the run; this also frees the tickets of dead workers."""
        reap(self._database, self._run)
        self._lease.renew(self._database)
        row = self._row(
            "SELECT (SELECT count(*) FROM tickets WHERE run = ?1 AND state = 0), "
            "(SELECT count(*) FROM tickets WHERE run = ?1 AND state = 1), "
            "(SELECT count(*) FROM sessions WHERE run = ?1 AND alive = 1 AND role = ?2), "
            "(SELECT coalesce(sum(hands), 0) FROM sessions WHERE run = ?1 AND alive = 1 "
            "AND role = ?2), (SELECT stopped FROM accounts WHERE run = ?1)",
            (self._run.id, WORKER),
        )
        ready, leased, workers, hands, stopped = row
        return BoardState(
            ready=ready, leased=leased, workers=workers, hands=int(hands), stopped=stopped
        )

    def stop(self, why: str) -> None:
        """Start nothing more: what is ready is dropped, what is under way may finish."""
        with self._database.writing():
            self._lease.renew(self._database)
            self._database.execute(
                "UPDATE accounts SET stopped = coalesce(stopped, ?) WHERE run = ?",
                (why, self._run.id),
            )
            self._database.execute(
                "UPDATE tickets SET state = 3 WHERE run = ? AND state = 0", (self._run.id,)
            )

    def limit_reached(self) -> str:
        """The limit that stopped the run, by what was spent."""
        cost, tokens, calls = self._row(
            "SELECT (cost + lost_cost + given_up_cost) / nullif(CAST(max_cost AS FLOAT), 0), "
            "tokens / nullif(CAST(max_tokens AS FLOAT), 0), "
            "(calls + lost_calls) / nullif(CAST(max_calls AS FLOAT), 0) "
            "FROM accounts WHERE run = ?",
            (self._run.id,),
        )
        shares = {"max_cost": cost or 0.0, "max_tokens": tokens or 0.0, "max_calls": calls or 0.0}
        return max(shares, key=shares.__getitem__)

    def lost(self) -> UnansweredCalls:
        """Calls that were on the wire when their worker died."""
        calls, cost, unpriced, unsure = self._row(
            "SELECT lost_calls, lost_cost, unpriced, unsure_calls FROM accounts WHERE run = ?",
            (self._run.id,),
        )
        return UnansweredCalls(calls=calls, cost=cost / MICRO, unpriced=unpriced, unsure=unsure)

    def _row(self, sql: str, values: tuple[Any, ...]) -> tuple[Any, ...]:
        row = self._database.execute(sql, values).fetchone()
        assert row is not None
        return row
