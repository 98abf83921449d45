"""The ledger of one run, kept in the history store: what makes a run resumable."""

from __future__ import annotations

from collections.abc import Sequence

from passhat.history.runs import Run
from passhat.history.store import History
from passhat.records.ledger import Answer, Entry, Finished, Ticket


class RunJournal:
    """What was launched, answered and finished in one run; durable when `write` returns."""

    def __init__(self, history: History, run: Run) -> None:
        self.history = history
        self.run = run

    def write(self, entries: Sequence[Entry], /) -> None:
        """Everything in one transaction: all of it is kept, or none."""
        tickets = [entry for entry in entries if isinstance(entry, Ticket)]
        answers = [entry for entry in entries if isinstance(entry, Answer)]
        finished = [entry for entry in entries if isinstance(entry, Finished)]
        with self.history.writing():
            self._insert_tickets(tickets)
            self._insert_answers(answers)
            self.history.insert_trials(
                self.run.id, [(f.ticket.number, f.trial) for f in finished], replace=True
            )
            for entry in finished:
                if entry.transcript is not None:
                    self.history.add_transcript(self.run.id, entry.trial, entry.transcript)

    def launched(self) -> Sequence[Ticket]:
        """All tickets, by number."""
        rows = self.history.connection.execute(
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
        rows = self.history.connection.execute(
            "SELECT s.text, t.text, a.trial, a.step, a.request, a.reply FROM answers a "
            "JOIN names s ON s.id = a.system JOIN names t ON t.id = a.task "
            "WHERE a.run = ? AND NOT EXISTS (SELECT 1 FROM trials x WHERE x.run = a.run "
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
        order = self.history.connection.execute(
            "SELECT sequence FROM trials WHERE run = ? ORDER BY sequence", (self.run.id,)
        ).fetchall()
        if not order:
            return []  # and a new run loads nothing that holds numbers in columns
        stamps = {ticket.number: ticket.stamp for ticket in self.launched()}
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
            for (number,), trial in zip(order, self.history.trials(self.run), strict=True)
        ]

    def _insert_tickets(self, tickets: Sequence[Ticket]) -> None:
        name_id = self.history.name_id
        self.history.connection.executemany(
            "INSERT OR REPLACE INTO tickets VALUES (?, ?, ?, ?, ?, ?)",
            [
                (self.run.id, t.number, name_id(t.system), name_id(t.task), t.trial, t.stamp)
                for t in tickets
            ],
        )

    def _insert_answers(self, answers: Sequence[Answer]) -> None:
        name_id = self.history.name_id
        self.history.connection.executemany(
            "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                (
                    self.run.id,
                    name_id(a.system),
                    name_id(a.task),
                    a.trial,
                    a.step,
                    a.request,
                    a.reply,
                )
                for a in answers
            ],
        )
