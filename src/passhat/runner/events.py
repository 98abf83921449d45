"""The events of a run, for progress displays and logs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from passhat.dataclass import dataclass
from passhat.records import Ticket, Trial

Ending = Literal["finished", "settled", "budget", "interrupted"]


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
    | StopRequested
    | RunFinished
)
OnEvent = Callable[[Event], None]
