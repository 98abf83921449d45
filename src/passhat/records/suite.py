"""What to run and what to demand, as the runner and the gates see it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import field
from datetime import date
from pathlib import Path
from typing import Any, Literal

from passhat.dataclass import dataclass
from passhat.messages import quoted, short_repr
from passhat.records.budget import Budget, RateLimit, Resources
from passhat.records.system import Model, ModelSystem, Server, System
from passhat.records.task import Task

CassetteMode = Literal["none", "record", "append", "replay", "replay-or-live"]
ServerMode = Literal["live", "recorded"]

DEFAULT_CONCURRENCY = 8
DEFAULT_RETRIES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """One system on one task, `runs` times. No two pairings share both names.

    `only` names single runs, counted from 0; None means all of them.

    >>> from passhat.records import CommandSystem
    >>> agent = CommandSystem(name="gpt-5", argv=("agent",))
    >>> task = Task(name="weather selection")
    >>> Pairing(system=agent, task=task, runs=10, label="weather selection [gpt-5]").row(2)
    'weather selection [gpt-5] #3'
    """

    system: System
    task: Task
    runs: int
    label: str
    only: tuple[int, ...] | None = None

    @property
    def planned(self) -> int:
        """How many trials are planned."""
        return self.runs if self.only is None else len(self.only)

    def row(self, trial: int) -> str:
        """The name of one trial (counted from 0) as people see it; a lone run has no number."""
        return f"{self.label} #{trial + 1}" if self.runs > 1 else self.label


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantine:
    """A task known to be flaky: run and shown, not gated, until the date (inclusive)."""

    task: str
    until: date
    reason: str = ""

    def in_force(self, today: date) -> bool:
        return today <= self.until


@dataclass(frozen=True, slots=True, kw_only=True)
class CassetteSettings:
    """Where recorded runs are kept and how they are used; `mode` None lets the run decide."""

    mode: CassetteMode | None = None
    directory: Path = Path("cassettes")
    servers: ServerMode = "recorded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """The model that reads rubrics, and how often it is asked about each answer."""

    model: Model
    repeats: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """Everything a suite file says. `gates` are sentences or long forms, as they were written.

    `directory` is where relative paths start; `digest` is the hash of the file.
    """

    name: str
    pairings: tuple[Pairing, ...]
    servers: Mapping[str, Server] = field(default_factory=dict)
    gates: tuple[str | Mapping[str, Any], ...] = ()
    seed: int = 0
    seeds: tuple[int, ...] = ()
    budget: Budget = field(default_factory=Budget)
    trial_budget: Budget = field(default_factory=Budget)
    concurrency: int = DEFAULT_CONCURRENCY
    resources: Resources = field(default_factory=Resources)
    rate_limits: Mapping[str, RateLimit] = field(default_factory=dict)
    retries: int = DEFAULT_RETRIES
    cassette: CassetteSettings = CassetteSettings()
    quarantine: tuple[Quarantine, ...] = ()
    judge: Judge | None = None
    ks: tuple[int, ...] = ()
    confidence: float | None = None
    path: Path | None = None
    directory: Path = Path()
    digest: str = ""

    def __repr__(self) -> str:
        see = ".pairings, .tasks, .systems"
        return short_repr(f"Suite {quoted(self.name)}", self.size, see=see)

    @property
    def systems(self) -> tuple[str, ...]:
        """The names of the systems, in the order of the file."""
        return tuple(dict.fromkeys(p.system.name for p in self.pairings))

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks, each once, in the order of the file."""
        return tuple({p.task.name: p.task for p in self.pairings}.values())

    @property
    def model_systems(self) -> tuple[ModelSystem, ...]:
        """The system of each pairing that passhat runs by calling a model.

        Two with one name may differ, in their scripts or faults.
        """
        return tuple(p.system for p in self.pairings if isinstance(p.system, ModelSystem))

    @property
    def models(self) -> tuple[Model, ...]:
        """The model of each pairing that has one, and that of the judge."""
        judging = () if self.judge is None else (self.judge.model,)
        return (*(system.model for system in self.model_systems), *judging)

    @property
    def used_servers(self) -> tuple[Server, ...]:
        """The servers whose tools a system is given."""
        names = dict.fromkeys(name for system in self.model_systems for name in system.servers)
        return tuple(self.servers[name] for name in names)

    @property
    def bars(self) -> dict[str, float]:
        """The bar of each task that has one."""
        return {task.name: task.bar for task in self.tasks if task.bar is not None}

    @property
    def trials(self) -> int:
        """How many trials the whole suite asks for."""
        return sum(pairing.planned for pairing in self.pairings)

    @property
    def runs_once(self) -> bool:
        """Whether each task is run once, as where a suite does not say `runs:`."""
        return all(pairing.planned == 1 for pairing in self.pairings)

    @property
    def size(self) -> str:
        """How big it is, in words: `3 tasks, 1 system, 60 trials`."""
        counts = (("task", len(self.tasks)), ("system", len(self.systems)), ("trial", self.trials))
        return ", ".join(f"{count} {noun}{'s' * (count != 1)}" for noun, count in counts)

    def recorded_seed(self, trial: int) -> int:
        """The seed written with a trial: the seed of the re-run of the suite that it belongs to.

        The same for every task, so that the spread between re-runs can be measured. The seeds of
        `seeds:` take turns, which keeps an early stop fair.
        """
        return self.seeds[trial % len(self.seeds)] if self.seeds else self.seed + trial

    def sampling_seed(self, pairing: Pairing, trial: int) -> int:
        """The seed of everything random in one trial: different for every trial of the suite."""
        parts = (self.recorded_seed(trial), pairing.system.name, pairing.task.name, trial)
        text = "\x1f".join(map(str, parts)).encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=4).digest(), "big") >> 1
