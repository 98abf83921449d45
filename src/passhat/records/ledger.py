"""What a run writes down as it goes: what was launched, what was answered, what was finished."""

from __future__ import annotations

from dataclasses import dataclass

from passhat.records.trial import Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """The order to run one trial.

    `number` counts the launches of a run from 0 and is the order in which evidence is taken.
    `stamp` is JSON text of whoever gave the order: what it had decided when it did.
    """

    number: int
    system: str
    task: str
    trial: int
    stamp: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One paid-for exchange of a trial: of a model, a tool, or a whole agent.

    `step` counts the exchanges of a trial from 0; `request` is the hash of what was asked;
    `reply` is the JSON of what came back.
    """

    system: str
    task: str
    trial: int
    step: int
    request: str
    reply: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A trial that ended, by the ticket it ran on; `transcript` is JSON text of what was said."""

    ticket: Ticket
    trial: Trial
    transcript: str | None = None


Entry = Ticket | Answer | Finished
"""One line of the ledger. A Ticket stands for "launched"."""
