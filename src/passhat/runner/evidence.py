"""Finished trials, shown to the stopping rule in the order in which it asked for them."""

from __future__ import annotations

from collections.abc import Sequence

from passhat.records import Answer, Finished, Outcome, Ticket, Trial
from passhat.records.ledger import NO_CALLS, TrialKey
from passhat.runner.allocation import Allocation
from passhat.runner.journal import Journal


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
        self.found = journal.found()
        self.remotes = journal.remotes() if count_lost else {}
        self.answers: dict[TrialKey, dict[int, Answer]] = {}
        for answer in journal.answered():
            self.answers.setdefault(answer.call[:3], {})[answer.call.step] = answer

    def cut_short(self) -> dict[TrialKey, dict[int, str]]:
        """Trials that did not finish, with the provider's names for answers to their lost calls."""
        found: dict[TrialKey, dict[int, str]] = {ticket.key: {} for ticket in self.missing()}
        for call, remote in self.remotes.items():
            found.setdefault(call[:3], {})[call.step] = remote
        return found

    def forget_trials(self) -> None:
        """Free what only the start of a run needs: most of the memory of a long run."""
        self.launched, self.finished = (), []

    def missing(self) -> list[Ticket]:
        """Tickets whose trials did not finish."""
        done = {entry.ticket.number for entry in self.finished}
        return [ticket for ticket in self.launched if ticket.number not in done]
