"""The ledger of one run, kept in the history store: what makes a run resumable."""

from __future__ import annotations

import math
from collections.abc import Sequence

from passhat.history.leases import Lease
from passhat.history.lookups import read_trials_from
from passhat.history.runs import Run
from passhat.history.store import History
from passhat.records.ledger import (
    Answer,
    CallIntent,
    Entry,
    Finished,
    Refused,
    Ticket,
    UnansweredCalls,
)

_UPSERT_TICKET = (
    "INSERT INTO tickets (run, number, system, task, trial, stamp) VALUES (?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (run, number) DO UPDATE SET system = excluded.system, task = excluded.task, "
    "trial = excluded.trial, stamp = excluded.stamp"
)
_UPSERT_ANSWER = (
    "INSERT INTO answers (run, system, task, trial, step, request, reply, reserved_cost, "
    "reserved_tokens, priced, session) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (run, system, task, trial, step) DO UPDATE SET request = excluded.request, "
    "reply = excluded.reply, reserved_cost = excluded.reserved_cost, "
    "reserved_tokens = excluded.reserved_tokens, priced = excluded.priced, "
    "session = excluded.session"
)
_FORGET_INTENT = (
    "DELETE FROM answers WHERE run = ? AND system = ? AND task = ? AND trial = ? AND step = ? "
    "AND reply IS NULL"
)
# Calls without an answer whose trials will run again: they are asked a second time.
_TO_ASK_AGAIN = (
    "a.run = ? AND a.reply IS NULL AND NOT EXISTS (SELECT 1 FROM trials x WHERE x.run = a.run "
    "AND x.system = a.system AND x.task = a.task AND x.trial = a.trial)"
)

# An agent that keeps its own accounts is paid where one of its finished trials says so.
_PERHAPS_PAID = _TO_ASK_AGAIN + (  # noqa: S608  our words
    " AND (substr(a.request, 1, 6) <> 'agent:' OR EXISTS (SELECT 1 FROM trials y "
    "WHERE y.run = a.run AND y.system = a.system AND y.cost > 0))"
)


class RunJournal:
    """What was launched, asked, answered and finished in one run; durable when `write` returns.

    With a `lease`, every write is checked against it: a process that lost the run changes nothing.
    """

    def __init__(self, history: History, run: Run, lease: Lease | None = None) -> None:
        self.history = history
        self.run = run
        self._lease = lease

    @property
    def key(self) -> str:
        """The key of the run."""
        return self.run.key

    def write(self, entries: Sequence[Entry], /) -> None:
        """Everything in one transaction: all of it is kept, or none."""
        finished = [entry for entry in entries if isinstance(entry, Finished)]
        with self.history.writing():
            if self._lease is not None:
                self._lease.renew(self.history.database)
            self._forget_intents([entry for entry in entries if isinstance(entry, Refused)])
            self._insert_tickets([entry for entry in entries if isinstance(entry, Ticket)])
            self._insert_answers(
                [entry for entry in entries if isinstance(entry, CallIntent | Answer)]
            )
            if finished:
                self.history.insert_trials(
                    self.run.id, [(f.ticket.number, f.trial) for f in finished], replace=True
                )
            for entry in finished:
                if entry.transcript is not None:
                    self.history.add_transcript(self.run.id, entry.trial, entry.transcript)

    def launched(self) -> Sequence[Ticket]:
        """All tickets, by number."""
        rows = self.history.database.execute(
            "SELECT number, s.text, t.text, trial, stamp FROM tickets "
            "JOIN names s ON s.id = system JOIN names t ON t.id = task "
            "WHERE run = ? ORDER BY number",
            (self.run.id,),
        )
        return [
            Ticket(number=number, system=system, task=task, trial=trial, stamp=stamp)
            for number, system, task, trial, stamp in rows
        ]

    def answered(self) -> Sequence[Answer]:
        """The answers of trials that were launched and did not finish."""
        rows = self.history.database.execute(
            "SELECT s.text, t.text, a.trial, a.step, a.request, a.reply FROM answers a "
            "JOIN names s ON s.id = a.system JOIN names t ON t.id = a.task "
            "WHERE a.run = ? AND a.reply IS NOT NULL "
            "AND NOT EXISTS (SELECT 1 FROM trials x WHERE x.run = a.run "
            "AND x.system = a.system AND x.task = a.task AND x.trial = a.trial) "
            "ORDER BY a.system, a.task, a.trial, a.step",
            (self.run.id,),
        )
        return [
            Answer(system=system, task=task, trial=trial, step=step, request=request, reply=reply)
            for system, task, trial, step, request, reply in rows
        ]

    def finished(self) -> Sequence[Finished]:
        """All finished trials, by the number of their ticket (without their transcripts)."""
        # One query, for workers finish trials while a driver reads; and the tickets after it.
        found = read_trials_from(self.history, self.run, 0)
        stamps = {ticket.number: ticket.stamp for ticket in self.launched()} if found else {}
        return [
            Finished(
                ticket=Ticket(
                    number=number,
                    system=trial.system,
                    task=trial.task,
                    trial=trial.trial,
                    stamp=stamps.get(number),
                ),
                trial=trial,
            )
            for number, trial in found
        ]

    def calls(self) -> int:
        """How many model calls were answered so far."""
        row = self.history.database.execute(
            "SELECT count(*) FROM answers WHERE run = ? AND reply IS NOT NULL "
            "AND substr(request, 1, 6) = 'model:'",
            (self.run.id,),
        ).fetchone()
        return int(row[0]) if row else 0

    def asked_again(self) -> UnansweredCalls:
        """All calls, of every earlier start, that were on the wire when it ended.

        Their intents are counted into the run's account and removed, because the same calls are
        now asked again under the same keys.
        """
        database = self.history.database
        with self.history.writing():
            if self._lease is not None:
                self._lease.renew(database)
            row = database.execute(
                "SELECT count(*), coalesce(sum(reserved_cost), 0), "  # noqa: S608  our words
                f"coalesce(sum(1 - priced), 0) FROM answers a WHERE {_PERHAPS_PAID}",
                (self.run.id,),
            ).fetchone()
            if row is not None and row[0]:
                database.execute(
                    "INSERT INTO accounts (run, lost_calls, lost_cost, unpriced) "
                    "VALUES (?, ?, ?, ?) ON CONFLICT (run) DO UPDATE SET "
                    "lost_calls = accounts.lost_calls + excluded.lost_calls, "
                    "lost_cost = accounts.lost_cost + excluded.lost_cost, "
                    "unpriced = accounts.unpriced + excluded.unpriced",
                    (self.run.id, *map(int, row)),
                )
            database.execute(f"DELETE FROM answers AS a WHERE {_TO_ASK_AGAIN}", (self.run.id,))  # noqa: S608  our words
            total = database.execute(
                "SELECT lost_calls, lost_cost, unpriced FROM accounts WHERE run = ?",
                (self.run.id,),
            ).fetchone() or (0, 0, 0)
        calls, cost, unpriced = map(int, total)
        return UnansweredCalls(calls=calls, cost=cost / MICRO, unpriced=unpriced)

    def _insert_tickets(self, tickets: Sequence[Ticket]) -> None:
        if not tickets:
            return
        ids = self.history.name_ids(name for t in tickets for name in (t.system, t.task))
        self.history.database.executemany(
            _UPSERT_TICKET,
            [
                (self.run.id, t.number, ids[t.system], ids[t.task], t.trial, t.stamp)
                for t in tickets
            ],
        )

    def _insert_answers(self, entries: Sequence[CallIntent | Answer]) -> None:
        if entries:
            self.history.database.executemany(
                _UPSERT_ANSWER, [(*self._key(entry), *self._rest(entry)) for entry in entries]
            )

    def _forget_intents(self, entries: Sequence[Refused]) -> None:
        if entries:
            self.history.database.executemany(_FORGET_INTENT, map(self._key, entries))

    def _key(self, entry: CallIntent | Answer | Refused) -> tuple[int, int, int, int, int]:
        name_id = self.history.name_id
        return self.run.id, name_id(entry.system), name_id(entry.task), entry.trial, entry.step

    def _rest(self, entry: CallIntent | Answer) -> tuple[object, ...]:
        """Request, reply, reserved cost and tokens, whether it has a price, and the session."""
        session = None if self._lease is None else self._lease.session
        if isinstance(entry, Answer):
            return entry.request, entry.reply, 0, 0, 1, session
        cost, tokens = entry.most.cost, entry.most.tokens
        return entry.request, None, micro(cost), tokens, int(cost is not None), session


MICRO = 1_000_000


def micro(dollars: float | None) -> int:
    """Dollars in micro-dollars, rounded up: what is reserved must be enough.

    >>> micro(0.0000012), micro(0.25), micro(None)
    (2, 250000, 0)
    """
    # The product may be a hair above a whole number that it stands for.
    return 0 if dollars is None else math.ceil(round(dollars * MICRO, 3))
