"""The ledger of one run, kept in the history store: what makes a run resumable."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from passhat.history.artefacts import add_artefacts
from passhat.history.leases import Lease, OpenCall, SentCallLog, marks_path, read_open_calls
from passhat.history.queries import read_trials_from
from passhat.history.runs import Run
from passhat.history.store import History
from passhat.records import ledger

MICRO = 1_000_000
"""Money is kept in millionths of a dollar, so that sums are exact."""

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
    "session = excluded.session, remote = NULL"
)
THIS_CALL = "WHERE run = ? AND system = ? AND task = ? AND trial = ? AND step = ?"
_FORGET_OPEN = f"DELETE FROM answers {THIS_CALL}"  # noqa: S608  our words, as below
_FORGET_INTENT = f"{_FORGET_OPEN} AND reply IS NULL"
_KEEP_REMOTE = f"UPDATE answers SET session = 0, reserved_cost = 0, reserved_tokens = 0 {THIS_CALL}"  # noqa: S608
ACCEPTED = f"UPDATE answers SET remote = ? {THIS_CALL} AND reply IS NULL"  # noqa: S608
_ACCOUNT = (
    "lost_calls", "lost_cost", "unpriced", "unsure_calls", "found_calls",
    "given_up_calls", "given_up_cost", "given_up_unpriced",
)  # fmt: skip
_ADD_TO_ACCOUNT = (
    f"INSERT INTO accounts (run, {', '.join(_ACCOUNT)}) "  # noqa: S608  our names
    f"VALUES (?{', ?' * len(_ACCOUNT)}) ON CONFLICT (run) DO UPDATE SET "
    + ", ".join(f"{name} = accounts.{name} + excluded.{name}" for name in _ACCOUNT)
)


Kinds = Mapping[type, Sequence[Any]]
"""Entries by their type."""


class RunJournal:
    """What was launched, asked, answered and finished in one run; durable when `write` returns.

    With a `lease`, every write is checked against it: a process that lost the run changes nothing.
    """

    def __init__(self, history: History, run: Run, lease: Lease | None = None) -> None:
        self.history = history
        self.run = run
        self._lease = lease
        self._marks = SentCallLog(history.database, run, None if lease is None else lease.session)

    @property
    def key(self) -> str:
        """The key of the run."""
        return self.run.key

    def write(self, entries: Sequence[ledger.Entry], /) -> None:
        """Everything in one transaction: all of it is kept, or none."""
        kinds = _by_kind(entries)
        finished = kinds.get(ledger.Finished, ())
        if ledger.CallIntent in kinds:
            self._marks.open()
        with self.history.writing():
            if self._lease is not None:
                self._lease.renew(self.history.database)
            self._insert_tickets(kinds.get(ledger.Ticket, ()))
            parts = (
                map(_by_kind, ledger.one_entry_a_call(entries))
                if ledger.Refused in kinds
                else (kinds,)
            )
            for part in parts:
                self._write_calls(part)
            if finished:
                self.history.insert_trials(
                    self.run.id, [(f.ticket.number, f.trial) for f in finished], replace=True
                )
                files = {f.trial.key: f.artefacts for f in finished}
                ids = self.history.name_ids(n for system, task, _ in files for n in (system, task))
                add_artefacts(self.history.database, self.run.id, files, ids)
            for entry in finished:
                if entry.transcript is not None:
                    self.history.add_transcript(self.run.id, entry.trial, entry.transcript)
        self._marks.settle(entries)

    def mark_sent(self, call: ledger.CallKey) -> None:
        """Mark a call that is about to be sent; the mark outlives this process."""
        self._marks.add(call)

    def unmark_sent(self, call: ledger.CallKey) -> None:
        """Remove the mark: the provider refused the call, which costs nothing."""
        self._marks.remove(call)

    def close(self) -> None:
        """Remove what only a start after a crash would need."""
        self._marks.close()

    def launched(self) -> Sequence[ledger.Ticket]:
        """All tickets, by number."""
        rows = self.history.database.execute(
            "SELECT number, s.text, t.text, trial, stamp FROM tickets "
            "JOIN names s ON s.id = system JOIN names t ON t.id = task "
            "WHERE run = ? ORDER BY number",
            (self.run.id,),
        )
        return [
            ledger.Ticket(number=number, system=system, task=task, trial=trial, stamp=stamp)
            for number, system, task, trial, stamp in rows
        ]

    def answered(self) -> Sequence[ledger.Answer]:
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
            ledger.Answer(call=ledger.CallKey(*call), request=request, reply=reply)
            for *call, request, reply in rows
        ]

    def finished(self) -> Sequence[ledger.Finished]:
        """All finished trials, by the number of their ticket (without their transcripts)."""
        # One query, and the tickets after it: workers finish trials while a driver reads.
        trials = read_trials_from(self.history, self.run, 0)
        stamps = {ticket.number: ticket.stamp for ticket in self.launched()} if trials else {}
        return [
            ledger.Finished(
                ticket=ledger.Ticket(
                    number=number,
                    system=trial.system,
                    task=trial.task,
                    trial=trial.trial,
                    stamp=stamps.get(number),
                ),
                trial=trial,
            )
            for number, trial in trials
        ]

    def calls(self) -> int:
        """How many model calls were answered so far."""
        row = self.history.database.execute(
            "SELECT count(*) FROM answers WHERE run = ? AND reply IS NOT NULL "
            "AND substr(request, 1, 6) = 'model:'",
            (self.run.id,),
        ).fetchone()
        return int(row[0]) if row else 0

    def asked_again(self) -> ledger.UnansweredCalls:
        """All calls of earlier starts that were sent, brought no answer, and are asked again.

        Their intents are counted into the run's account and removed, because the same calls are
        now asked again under the same keys.
        """
        database = self.history.database
        with self.history.writing():
            if self._lease is not None:
                self._lease.renew(database)
            calls = read_open_calls(database, self.run)
            self._add_to_account(calls)
            for statement, chosen in (
                (_FORGET_OPEN, [call for call in calls if call.remote is None]),
                (_KEEP_REMOTE, [call for call in calls if call.remote is not None]),
            ):
                database.executemany(statement, [(self.run.id, *call.key) for call in chosen])
        for session in {call.session for call in calls} - {None}:
            marks_path(database, self.run, int(session or 0)).unlink(missing_ok=True)
        calls_lost, cost, unpriced, unsure, *_ = self._account()
        return ledger.UnansweredCalls(
            calls=calls_lost, cost=cost / MICRO, unpriced=unpriced, unsure=unsure
        )

    def recovered(self) -> int:
        """How many answers of lost calls the provider still had."""
        return self._account()[4]

    def given_up(self) -> ledger.UnansweredCalls:
        """Calls that were sent, brought no answer, and are not asked again."""
        *_, number, cost, unpriced = self._account()
        known = ledger.UnansweredCalls(calls=number, cost=cost / MICRO, unpriced=unpriced)
        late = [c for c in read_open_calls(self.history.database, self.run) if c.fate == "given up"]
        return known + ledger.UnansweredCalls(
            calls=len(late),
            cost=sum(call.cost for call in late) / MICRO,
            unpriced=sum(not call.priced for call in late),
        )

    def remotes(self) -> dict[ledger.CallKey, str]:
        """The provider's names of answers that it prepared in the background for lost calls."""
        rows = self.history.database.execute(
            "SELECT s.text, t.text, a.trial, a.step, a.remote FROM answers a "
            "JOIN names s ON s.id = a.system JOIN names t ON t.id = a.task "
            "WHERE a.run = ? AND a.reply IS NULL AND a.remote IS NOT NULL",
            (self.run.id,),
        )
        return {ledger.CallKey(*call): remote for *call, remote in rows}

    def _account(self) -> tuple[int, ...]:
        row = self.history.database.execute(
            f"SELECT {', '.join(_ACCOUNT)} FROM accounts WHERE run = ?",  # noqa: S608  our names
            (self.run.id,),
        ).fetchone()
        return tuple(map(int, row)) if row else (0,) * len(_ACCOUNT)

    def _add_to_account(self, calls: Sequence[OpenCall], *, recovered: int = 0) -> None:
        again = [call for call in calls if call.fate in ("lost", "unsure")]
        late = [call for call in calls if call.fate == "given up"]
        amounts = (
            len(again),
            sum(call.cost for call in again),
            sum(not call.priced for call in again),
            sum(call.fate == "unsure" for call in again),
            recovered,
            len(late),
            sum(call.cost for call in late),
            sum(not call.priced for call in late),
        )
        if any(amounts):
            self.history.database.execute(_ADD_TO_ACCOUNT, (self.run.id, *amounts))

    def _write_calls(self, kinds: Kinds) -> None:
        """Write the entries about calls, at most one for each call."""
        answers = [*kinds.get(ledger.CallIntent, ()), *kinds.get(ledger.Answer, ())]
        if answers:
            self.history.database.executemany(
                _UPSERT_ANSWER, [(*self._key(entry), *self._rest(entry)) for entry in answers]
            )
        if refused := kinds.get(ledger.Refused):
            self.history.database.executemany(_FORGET_INTENT, map(self._key, refused))
        if accepted := kinds.get(ledger.AcceptedCall):
            rows = [(entry.remote, *self._key(entry)) for entry in accepted]
            self.history.database.executemany(ACCEPTED, rows)
        lost = [
            OpenCall(
                session=None,
                key=(0, 0, 0, 0),
                cost=micro(entry.most.cost),
                priced=entry.most.cost is not None,
                remote=None,
                fate="given up",
            )
            for entry in kinds.get(ledger.LostAnswer, ())
        ]
        recovered = sum(entry.recovered for entry in kinds.get(ledger.Answer, ()))
        if lost or recovered:
            self._add_to_account(lost, recovered=recovered)

    def _insert_tickets(self, tickets: Sequence[ledger.Ticket]) -> None:
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

    def _key(self, entry: ledger.CallEntry) -> tuple[int, int, int, int, int]:
        name_id, call = self.history.name_id, entry.call
        return self.run.id, name_id(call.system), name_id(call.task), call.trial, call.step

    def _rest(self, entry: ledger.CallIntent | ledger.Answer) -> tuple[object, ...]:
        """Request, reply, reserved cost and tokens, whether it has a price, and the session."""
        session = None if self._lease is None else self._lease.session
        if isinstance(entry, ledger.Answer):
            return entry.request, entry.reply, 0, 0, 1, session
        cost, tokens = entry.most.cost, entry.most.tokens
        return entry.request, None, micro(cost), tokens, int(cost is not None), session


def _by_kind(entries: Sequence[ledger.Entry]) -> Kinds:
    kinds: dict[type, list[Any]] = {}
    for entry in entries:
        kinds.setdefault(type(entry), []).append(entry)
    return kinds


def micro(dollars: float | None) -> int:
    """Dollars in micro-dollars, rounded up: what is reserved must be enough.

    >>> micro(0.0000012), micro(0.25), micro(None)
    (2, 250000, 0)
    """
    # The product may exceed the whole number it means by a rounding error.
    return 0 if dollars is None else math.ceil(round(dollars * MICRO, 3))
