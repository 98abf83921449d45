"""Streams of draws: which run comes next, and what each watching gate makes of those that ended."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Sequence
from typing import Any

from passhat.analysis.gates.demands import Gate
from passhat.analysis.gates.outages import OutageWatch
from passhat.analysis.gates.sequential import PAIR, DrawGate, draw_gate
from passhat.dataclass import dataclass
from passhat.records import Trial
from passhat.stats.sequential import (
    SET_ASIDE,
    DrawTicket,
    EveryTaskGate,
    EveryTaskState,
    Observed,
    OutageGuard,
)
from passhat.stats.sequential.draws import drawn_task

ALWAYS_AHEAD = 8
"""Runs that may be under way whatever is known."""


def may_go_ahead(under_way: int, ended: int, waiting: int) -> bool:
    """Whether one more run may be started: at most half as many are open as are evidence.

    Runs under way when the verdict falls are paid for and wasted, so there are few of them in the
    beginning and more as the evidence grows. Failures that may yet turn out to be an outage
    are open too: while there are many, runs are started one by one.
    """
    return not under_way or under_way + waiting < max(ALWAYS_AHEAD, (ended - waiting) // 2)


@dataclass(slots=True, kw_only=True)
class GateWatch:
    """A gate that watches a stream, and how far it has come."""

    gate: DrawGate
    state: Any
    taken: int = 0

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
    systems, a draw is a run of each. Draws in an outage are set aside (see `OutageGuard`).
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
        self.outages = OutageWatch([self._guard() for _ in systems])
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
        """The next run: of an unfinished draw, or of a new one; None to wait or stop."""
        if not self.is_open or not may_go_ahead(
            self._made - self._seen, self._seen, self.outages.waiting
        ):
            return None
        while self._continued:
            draw = self._continued.popleft()
            if self._is_unfinished(draw):
                return self._launch(draw)
        if self._issued >= self._most:
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
        self.runs.setdefault(draw, []).append(trial)
        size = len(self.systems)
        while len(first := self.runs.get(self.outages.seen, [])[:size]) == size:
            self.outages.take(self.task(self.outages.seen), first)
        self._take_draws()
        if self.is_open and self.outages.seen >= self._most:
            self.finish()
        if self._is_unfinished(draw):
            self._continued.append(draw)

    def finish(self) -> None:
        """No more draws will come: failures that wait are decided as they are."""
        self.outages.finish()
        self._take_draws()

    def evidence(self, gate: DrawGate) -> list[tuple[list[Trial], bool]]:
        """The draws of a gate in order, up to the first that is open, and whether each counts."""
        found: list[tuple[list[Trial], bool]] = []
        while (known := self._draw(len(found), gate)) is not None:
            found.append(known)
        return found

    @property
    def _most(self) -> int:
        return max(watch.gate.max_draws for watch in self.watches if watch.is_open)

    def _guard(self) -> OutageGuard:
        rate = min(watch.gate.expected_rate for watch in self.watches)
        one = len(self.tasks) == 1 and not self.paired
        return OutageGuard(tasks=len(self.tasks), rate=rate, least_failure=1 - rate if one else 0)

    def _take_draws(self) -> None:
        """Hand every gate the draws that are decided, in order."""
        for watch in self.watches:
            while watch.is_open and (known := self._draw(watch.taken, watch.gate)) is not None:
                runs, counts = known
                task = self.task(watch.taken)
                watch.state = watch.gate.observe(
                    watch.state, watch.taken, task, runs if counts else SET_ASIDE
                )
                watch.taken += 1

    def _draw(self, draw: int, gate: DrawGate) -> tuple[list[Trial], bool] | None:
        """The runs of a draw that a gate takes and whether they count; None if it must wait."""
        runs = self.runs.get(draw, [])
        counts = True
        if gate.is_guarded:
            if draw >= len(self.outages.counted):
                return None
            counts = self.outages.counted[draw]
        sizes = (n for n in range(1, len(runs) + 1) if gate.is_complete(runs[:n]))
        size = next(sizes, None if counts else len(runs))
        return None if size is None else (runs[:size], counts)

    def _is_unfinished(self, draw: int) -> bool:
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
    """A gate on every task of a system; each run of a task is evidence, whichever gate asked."""

    def __init__(
        self, gate: Gate, design: EveryTaskGate, system: str, tasks: Sequence[str]
    ) -> None:
        self.gate = gate
        self.design = design
        self.system = system
        self.tasks = tuple(tasks)
        self.state: EveryTaskState = design.start()
        self.outcomes: list[list[Observed]] = [[] for _ in tasks]
        rate = sum(one.p0 for one in design.gates) / len(design.gates)
        least = 1 - rate if len(self.tasks) == 1 else 0.0
        guard = OutageGuard(tasks=len(self.tasks), rate=rate, least_failure=least)
        self.outages = OutageWatch([guard])
        self._taken: list[tuple[int, float | None]] = []
        self._decided = 0
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
        seen = len(self._taken)
        under_way = sum(self._launched.values()) - seen
        if not self.is_open or not may_go_ahead(under_way, seen, self.outages.waiting):
            return None
        still_open = self._still_open()
        return self.tasks[min(still_open)[1]] if still_open else None

    def launched(self, system: str, task: str) -> None:
        if system == self.system and task in self._launched:
            self._launched[task] += 1

    def observe(self, trial: Trial, x: float | None) -> None:
        if trial.system != self.system or trial.task not in self._launched or not self.is_open:
            return
        place = self.tasks.index(trial.task)
        self._taken.append((place, x))
        self.outages.take(place, [trial])
        self._take_decided()
        launched = sum(self._launched.values())
        all_ended = 0 < launched <= len(self._taken)
        if all_ended and self.state.verdict is None and not self._still_open():
            self.finish()

    def finish(self) -> None:
        """No more runs will come: failures that wait are decided as they are."""
        self.outages.finish()
        self._take_decided()

    def _still_open(self) -> list[tuple[int, int]]:
        """Tasks that may be run again: how often they were launched, and their place."""
        return [
            (self._launched[task], i)
            for i, task in enumerate(self.tasks)
            if self.state.tasks[i].verdict is None and self._launched[task] < self._most[i]
        ]

    def _take_decided(self) -> None:
        for draw in range(self._decided, len(self.outages.counted)):
            place, x = self._taken[draw]
            shown = x if self.outages.counted[draw] else SET_ASIDE
            index = len(self.outcomes[place])
            self.outcomes[place].append(shown)
            if self.is_open:
                self.state = self.design.observe(self.state, DrawTicket(index, place, index), shown)
        self._decided = len(self.outages.counted)
