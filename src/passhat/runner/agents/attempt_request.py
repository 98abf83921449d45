"""One trial as an agent sees it, and the interface that every agent has."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import msgspec

from passhat.dataclass import dataclass
from passhat.records import Observation, Task
from passhat.records.ledger import CallKey


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRequest:
    """What an agent is asked: the task, the place of the trial in the run, its seed and its time.

    `workdir` is the directory of this trial, which `make_workdir` makes; `directory` is that of the
    suite. For one step of a task, `said` is its prompt and `history` the messages before it.
    """

    task: Task
    place: CallKey
    seed: int
    timeout: float | None
    workdir: Path
    directory: Path
    said: str | None = None
    history: tuple[Mapping[str, str], ...] = ()

    @property
    def prompt(self) -> str:
        """What the agent is asked: the text of the task, or of one of its steps."""
        return self.task.prompt if self.said is None else self.said

    def for_step(
        self, number: int, *, history: Sequence[Mapping[str, str]], timeout: float | None
    ) -> AttemptRequest:
        """The request for one step of the task, with the messages before it."""
        return replace(
            self,
            place=self.place._replace(step=number),
            said=self.task.steps[number].prompt,
            history=tuple(history),
            timeout=timeout,
        )

    def make_workdir(self) -> Path:
        """The directory of this trial, made on first use."""
        self.workdir.mkdir(parents=True, exist_ok=True)
        return self.workdir

    def describe(self) -> dict[str, Any]:
        """The request as plain data, for agents outside this process."""
        return {
            "task": self.task.name,
            "prompt": self.prompt,
            "trial": self.place.trial,
            "seed": self.seed,
            "tags": list(self.task.tags),
            "values": dict(self.task.values),
            "workdir": str(self.workdir),
            "images": [str(path) for path in self.task.images],
            "step": self.place.step + 1,
            "history": [dict(message) for message in self.history],
        }

    def fingerprint(self, clean: Callable[[str], str] = str) -> str:
        """A hash of what the agent is asked; `clean` takes secrets out."""
        seen = (self.task.name, self.prompt, dict(self.task.values), self.seed)
        text = clean(msgspec.json.encode(seen, order="sorted", enc_hook=str).decode())
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


class Agent(Protocol):
    """Anything that takes a request and returns what was seen of the attempt.

    It raises TimeoutError when its own time is over, and RunError when something around it broke.
    """

    async def attempt(self, request: AttemptRequest, /) -> Observation: ...
