"""Streams of draws: which run comes next, and what each watching gate makes of those that ended."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from passhat.analysis.gates.demands import Gate
from passhat.analysis.gates.sequential import PAIR, DrawGate, draw_gate
from passhat.records import Trial
from passhat.stats.sequential import DrawTicket, EveryTaskGate, EveryTaskState
from passhat.stats.sequential.draws import drawn_task

ALWAYS_AHEAD = 8
"""Runs that may be under way whatever is known."""


def may_go_ahead(under_way: int, evidence: int) -> bool:
    """Whether one more run may be started: at most half as many are under way as are evidence.

    Runs under way when the verdict falls are paid for and wasted. So many hands wait in the
    beginning, and work as the evidence grows.
    """
    return under_way < max(ALWAYS_AHEAD, evidence // 2)


@dataclass(slots=True, kw_only=True)
class GateWatch:
    """A gate that watches a stream, and how far it has come."""

    gate: DrawGate
    state: Any

    @property
    def is_open(self) -> bool:
        return self.state.verdict is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """One run to be made: `run` counts the runs of the draw from 0."""

    index: int
    run: int
    system: str
    task: str


class Stream:
    """Draws of tasks at random, seen by every gate on the same tasks of the same system.

    The task of a draw follows from the seed and its number alone. A draw is one run, or up to k
    where a gate asks for pass^k; each gate takes the runs that its own result needs. With two
    systems, a draw is a run of each.
    """

    def __init__(
        self, systems: tuple[str, ...], tasks: Sequence[str], gates: Sequence[Gate], *, seed: int
    ) -> None:
        self.systems = systems
        self.tasks = tuple(tasks)
        self.seed = seed
        designs = [draw_gate(gate, tasks=len(self.tasks), seed=seed) for gate in gates]
        self.watches = [GateWatch(gate=design, state=design.start()) for design in designs]
        self.runs: dict[int, list[Trial]] = {}
        self._launched: dict[int, int] = {}
        self._issued = self._made = self._seen = 0
        self._continued: deque[int] = deque()

    @property
    def name(self) -> str:
        """Tells this stream from others on a ticket's stamp."""
        parts = "\x1f".join((*self.systems, "", *self.tasks, str(self.seed)))
        return hashlib.blake2b(parts.encode(), digest_size=4).hexdigest()

    @property
    def is_open(self) -> bool:
        return any(watch.is_open for watch in self.watches)

    @property
    def max_runs(self) -> int:
        return max(watch.gate.max_runs for watch in self.watches)

    @property
    def seen(self) -> int:
        """How many of its runs have ended."""
        return self._seen

    @property
    def paired(self) -> bool:
        return len(self.systems) == PAIR

    def task(self, draw: int) -> int:
        return drawn_task(self.seed, draw, len(self.tasks))

    def next_run(self) -> Draw | None:
        """The next run to make: of a draw that goes on, or of a new one; None to wait or stop."""
        if not self.is_open or not may_go_ahead(self._made - self._seen, self._seen):
            return None
        while self._continued:
            draw = self._continued.popleft()
            if self._goes_on(draw):
                return self._launch(draw)
        most = max(watch.gate.max_draws for watch in self.watches if watch.is_open)
        if self._issued >= most:
            return None
        return self._launch(self._issued)

    def restore(self, draw: int, run: int) -> None:
        """A run that was handed out before an interruption."""
        self._made += 1
        self._launched[draw] = max(self._launched.get(draw, 0), run + 1)
        self._issued = max(self._issued, draw + 1)
        if self.paired and run == 0:
            self._continued.append(draw)

    def observe(self, draw: int, trial: Trial) -> None:
        """A run of a draw has ended; its runs come in the order they were made."""
        self._seen += 1
        runs = self.runs.setdefault(draw, [])
        runs.append(trial)
        for watch in self.watches:
            gate = watch.gate
            if watch.is_open and gate.is_complete(runs) and not gate.is_complete(runs[:-1]):
                watch.state = gate.observe(watch.state, draw, self.task(draw), runs)
        if self._goes_on(draw):
            self._continued.append(draw)

    def evidence(self, gate: DrawGate) -> list[list[Trial]]:
        """The draws that are evidence for a gate, in order, up to the first that is missing."""
        found: list[list[Trial]] = []
        while (runs := self.runs.get(len(found))) is not None and gate.is_complete(runs):
            size = next(n for n in range(1, len(runs) + 1) if gate.is_complete(runs[:n]))
            found.append(runs[:size])
        return found

    def _goes_on(self, draw: int) -> bool:
        if self.paired:
            return self._launched[draw] < PAIR
        runs = self.runs.get(draw, [])
        return self._launched[draw] == len(runs) and any(
            watch.is_open and not watch.gate.is_complete(runs) for watch in self.watches
        )

    def _launch(self, draw: int) -> Draw:
        self._made += 1
        run = self._launched.get(draw, 0)
        self._launched[draw] = run + 1
        self._issued = max(self._issued, draw + 1)
        if self.paired and run == 0:
            self._continued.append(draw)
        system = self.systems[run] if self.paired else self.systems[0]
        return Draw(index=draw, run=run, system=system, task=self.tasks[self.task(draw)])


class EveryTaskWatch:
    """A gate on every task of a system; each run of a task is evidence, whoever asked for it."""

    def __init__(
        self, gate: Gate, design: EveryTaskGate, system: str, tasks: Sequence[str]
    ) -> None:
        self.gate = gate
        self.design = design
        self.system = system
        self.tasks = tuple(tasks)
        self.state: EveryTaskState = design.start()
        self.outcomes: list[list[float | None]] = [[] for _ in tasks]
        self._launched = dict.fromkeys(tasks, 0)
        self._most = [gate.boundaries.max_runs for gate in design.gates]

    @property
    def is_open(self) -> bool:
        return self.state.verdict is None

    @property
    def max_runs(self) -> int:
        return sum(self._most)

    def next_task(self) -> str | None:
        """The open task with the fewest runs under way or made."""
        seen = sum(map(len, self.outcomes))
        if not self.is_open or not may_go_ahead(sum(self._launched.values()) - seen, seen):
            return None
        still_open = [
            (self._launched[task], i)
            for i, task in enumerate(self.tasks)
            if self.state.tasks[i].verdict is None and self._launched[task] < self._most[i]
        ]
        return self.tasks[min(still_open)[1]] if still_open else None

    def launched(self, system: str, task: str) -> None:
        if system == self.system and task in self._launched:
            self._launched[task] += 1

    def observe(self, trial: Trial, x: float | None) -> None:
        if trial.system != self.system or trial.task not in self._launched or not self.is_open:
            return
        place = self.tasks.index(trial.task)
        index = len(self.outcomes[place])
        self.outcomes[place].append(x)
        self.state = self.design.observe(self.state, DrawTicket(index, place, index), x)
