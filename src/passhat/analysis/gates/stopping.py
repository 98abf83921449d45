"""The stopping rule of a run: which trial comes next, until every gate is settled."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from time import time
from typing import Any

from passhat.analysis.gates.fixed_sample import bars_of, counts_passes, is_decided
from passhat.analysis.gates.gate import (
    BestOfRequirement,
    EveryTaskRequirement,
    Gate,
    NoWorseRequirement,
    ThresholdRequirement,
    Verdict,
    Verdicts,
    parse_gate,
    why_not_sequential,
)
from passhat.analysis.gates.judge import GateLike, gated_tables, judge
from passhat.analysis.gates.rounds import RoundGate, Rounds, decides_in_rounds
from passhat.analysis.gates.sequential import Draw, EveryTaskWatch, SharedDraws, every_task_gate
from passhat.analysis.gates.sequential_verdicts import (
    BestSystemGate,
    every_task_verdict,
    runs_needed,
    stream_verdict,
)
from passhat.analysis.reports.targets import passed
from passhat.dataclass import dataclass
from passhat.errors import ArgumentError
from passhat.messages import plural
from passhat.records import Finished, Pairing, Source, Ticket, Trial, Trials

_EVERY = "every"
"""The stream of the tickets that gates on every task asked for."""

_STOPPED = (Source(name="run", format="passhat run", sha256="", ended="by gates"),)
"""The source of runs that other gates asked for: how many there are depends on their results."""


class StoppingRule:
    """Decides what is run next, and ends the run when every gate is settled.

    Gates whose evidence is sequential draw tasks at random and stop when they know; with
    `until_settled`, so do all gates that say nothing about their evidence. Gates on a bound get
    their fixed runs, which end early (with `until_settled`) once arithmetic decides. Everything
    that no gate asks for is run as often as its pairing says: systems without a gate, and tasks in
    quarantine, which are shown and not gated.

    What it decides follows from the seed and the results in the order of tickets alone, so a
    resumed run continues the same evidence, and the verdicts can be asked for at any time.
    """

    def __init__(
        self,
        pairings: Sequence[Pairing],
        gates: Iterable[GateLike],
        *,
        until_settled: bool = False,
        quarantined: Sequence[str] = (),
        baselines: Mapping[str, Trials] | None = None,
        seed: int = 0,
    ) -> None:
        self.gates = tuple(parse_gate(gate) for gate in gates)
        self._pairings = tuple(pairings)
        self._quarantined = tuple(quarantined)
        self._baselines = dict(baselines or {})
        self._bars = {p.task.name: p.task.bar for p in pairings if p.task.bar is not None}
        self._seed = seed
        self._sequential = [g for g in self.gates if self._is_sequential(g, until_settled)]
        self._fixed_gates = [
            g
            for g in self.gates
            if g not in self._sequential
            and (not self._sequential or g.evidence in ("bound", "point"))
        ]
        self.streams = self._make_streams()
        self.contests = self._make_contests()
        self.every_task = self._make_every_task_watches()
        self._gated, self._ungated = self._fixed_parts(until_settled)
        self._seen: list[Trial] = []
        self._number = 0
        self._next_trial = Counter(self._gated.planned | self._ungated.planned)
        self._turns: deque[Any] = deque([self._gated, self._ungated, *self.streams, *self.contests])

    @property
    def planned(self) -> int:
        """The most trials there can be."""
        fixed = self._gated.max_runs + self._ungated.max_runs
        drawn = sum(source.max_runs for source in self._sources)
        return fixed + drawn + sum(watch.max_runs for watch in self.every_task)

    @property
    def soonest_pass(self) -> str | None:
        """When an agent that never fails passes, in words, where one gate watches one task."""
        trials = [
            watch.soonest_pass if isinstance(watch, RoundGate) else watch.gate.soonest_pass
            for stream in self.streams
            for watch in stream.watches
        ]
        return trials[0] if len(trials) == 1 else None

    @property
    def is_settled(self) -> bool:
        """Whether every gate that watches has its verdict."""
        drawing = any(source.is_open for source in self._sources)
        return not drawing and not any(watch.is_open for watch in self.every_task)

    def restore(self, tickets: Sequence[Ticket], /) -> None:
        """The tickets that an interrupted run gave out."""
        streams = {source.name: source for source in self._sources}
        stamps = [Stamp.read(ticket.stamp) for ticket in tickets]
        first = next((stamp.planned for stamp in stamps if stamp and stamp.stream == _EVERY), None)
        self.every_task = [watch.extending(first) for watch in self.every_task]
        for ticket in tickets:
            self._number = max(self._number, ticket.number + 1)
            key = (ticket.system, ticket.task)
            self._next_trial[key] = max(self._next_trial[key], ticket.trial + 1)
            for watch in self.every_task:
                watch.launched(*key)
            stamp = Stamp.read(ticket.stamp)
            if stamp is not None and stamp.stream in streams:
                source = streams[stamp.stream]
                if isinstance(source, BestSystemGate):
                    source.restore(stamp.draw, stamp.run)
                else:
                    source.restore(stamp.draw, stamp.run, stamp.planned)
            elif stamp is None:
                run = (*key, ticket.trial)
                _ = self._gated.restore(run) or self._ungated.restore(run)

    @property
    def pause_seconds(self) -> float:
        """How long no run should be started: many failed one after another, and it may pass.

        It changes when runs are made and not what they say, so a replay has no pauses.
        """
        watched = (watch.outages for watch in self._watching_outages() if watch.is_open)
        return max(0.0, max((watch.resume_at or 0.0 for watch in watched), default=0.0) - time())

    def end_pause(self) -> None:
        """Start runs again at once."""
        for watch in self._watching_outages():
            watch.outages.resume_at = None

    def _watching_outages(self) -> list[SharedDraws | Rounds | BestSystemGate | EveryTaskWatch]:
        return [*self._sources, *self.every_task]

    def next(self, count: int, /) -> Sequence[Ticket] | None:
        """At most `count` tickets; none to wait for evidence, None to end the run."""
        if self.pause_seconds:
            return ()
        tickets: list[Ticket] = []
        while len(tickets) < count and (ticket := self._next_ticket()) is not None:
            tickets.append(ticket)
        if tickets:
            return tickets
        return None if self.is_settled else ()

    def observe(self, ticket: Ticket, trial: Trial, /) -> None:
        """A trial has ended; they come in the order of their tickets."""
        self._seen.append(trial)
        stamp = Stamp.read(ticket.stamp)
        for source in self._sources:
            if stamp is not None and source.name == stamp.stream:
                source.observe(stamp.draw, trial)
        for part in (self._gated, self._ungated):
            if stamp is None and part.holds(trial):
                part.observe(trial)
        for watch in self.every_task:
            watch.observe(trial, passed(trial))

    def verdicts(self) -> Verdicts:
        """What every gate says now, in the order of the gates."""
        verdicts: list[Verdict] = []
        for gate in self.gates:
            if gate in self._sequential:
                verdicts += self._watching(gate)
            else:
                verdicts += self._judged(gate)
        return Verdicts(tuple(verdicts))

    @property
    def late(self) -> int | None:
        """How many trials were run that no verdict counts; None where that is not known."""
        if self.every_task or self.contests or not self.is_settled:
            return None  # what a gate on every task needs is not counted run by run
        return sum(
            stream.seen - (stream.used if isinstance(stream, Rounds) else runs_needed(stream))
            for stream in self.streams
        )

    @property
    def late_sentence(self) -> str | None:
        """The same in words."""
        if not (late := self.late):
            return None
        be, it = ("is", "it was") if late == 1 else ("are", "they were")
        return (
            f"{plural(late, 'more trial')} {be} in the report and not in the verdict: {it} under "
            "way when the last gate was decided, or ran to tell its failures from an outage"
        )

    def _next_ticket(self) -> Ticket | None:
        for _ in range(len(self._turns)):
            self._turns.rotate(-1)
            run = self._turns[-1].next_run()
            if run is not None:
                return self._ticket_for(run, self._turns[-1])
        for watch in self.every_task:
            # draws of the same system are evidence for it too: it asks when they have ended
            busy = any(watch.system in s.systems and s.is_open for s in self._sources)
            task = None if busy else watch.next_task()
            if task is not None:
                return self._ticket(
                    watch.system, task, Stamp(stream=_EVERY, draw=0, run=0, planned=watch.planned)
                )
        return None

    def _ticket_for(self, run: Any, source: Any) -> Ticket:
        if isinstance(run, Draw):
            planned = None if isinstance(source, BestSystemGate) else source.planned
            stamp = Stamp(stream=source.name, draw=run.index, run=run.run, planned=planned)
            return self._ticket(run.system, run.task, stamp)
        return self._ticket(run[0], run[1], None, trial=run[2])

    def _ticket(
        self, system: str, task: str, stamp: Stamp | None, *, trial: int | None = None
    ) -> Ticket:
        key = (system, task)
        if trial is None:
            trial = self._next_trial[key]
            self._next_trial[key] += 1
        for watch in self.every_task:
            watch.launched(*key)
        self._number += 1
        return Ticket(
            number=self._number - 1,
            system=system,
            task=task,
            trial=trial,
            stamp=None if stamp is None else stamp.text,
        )

    def _watching(self, gate: Gate) -> Iterator[Verdict]:
        for stream in self.streams:
            if isinstance(stream, Rounds):
                yield from (stream.verdict(watch) for watch in stream.watches if watch.gate is gate)
                continue
            for watch in stream.watches:
                if watch.gate.gate is gate:
                    yield stream_verdict(stream, watch)
        yield from (every_task_verdict(watch) for watch in self.every_task if watch.gate is gate)
        yield from (contest.verdict() for contest in self.contests if contest.gate is gate)

    def _judged(self, gate: Gate) -> Iterator[Verdict]:
        """A gate on a bound: on the runs fixed for it, or on all that others asked for."""
        fixed = gate in self._fixed_gates
        trials = self._gated.trials if fixed else self._seen
        if not trials:
            return
        ran = {trial.task for trial in trials}
        yield from judge(
            Trials.from_records(trials, duplicates=None, sources=() if fixed else _STOPPED),
            [gate],
            bars={task: bar for task, bar in self._bars.items() if task in ran} or None,
            baseline=self._baselines,
            planned=self._gated.planned if fixed else None,
            quarantined=self._quarantined,
            seed=self._seed,
        )

    def _is_sequential(self, gate: Gate, until_settled: bool) -> bool:
        if gate.evidence == "sequential" or isinstance(gate.demand, BestOfRequirement):
            return True
        if gate.evidence is not None or not until_settled or why_not_sequential(gate):
            return False
        demand = gate.demand
        # a baseline that is not run beside the system has its runs already: it is compared
        return not isinstance(demand, NoWorseRequirement) or demand.baseline in self._systems()

    def _systems(self, gate: Gate | None = None) -> tuple[str, ...]:
        names = tuple(dict.fromkeys(pairing.system.name for pairing in self._pairings))
        if gate is None:
            return names
        if gate.system is not None:
            if gate.system not in names:
                rule = f"must be one of {', '.join(names)}"
                raise ArgumentError(f"agent of the gate {gate.label!r}", rule, gate.system)
            return (gate.system,)
        baseline = getattr(gate.demand, "baseline", None)
        return tuple(name for name in names if name != baseline)

    def _tasks(self, gate: Gate, system: str) -> tuple[str, ...]:
        """The gated tasks of a system, by name: a log alone has them in the same order."""
        names = {
            pairing.task.name
            for pairing in self._pairings
            if pairing.system.name == system
            and pairing.task.name not in self._quarantined
            and (not gate.tags or set(gate.tags) & set(pairing.task.tags))
        }
        return tuple(sorted(names))

    def _gated_tasks(self, gate: Gate, system: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        tasks, demand = self._tasks(gate, system), gate.demand
        systems: tuple[str, ...] = (system,)
        if isinstance(demand, NoWorseRequirement):
            if demand.baseline not in self._systems():
                rule = "must be an agent of the suite to be compared trial by trial"
                raise ArgumentError(f"baseline of the gate {gate.label!r}", rule, demand.baseline)
            systems = (system, demand.baseline)
            shared = set(self._tasks(gate, demand.baseline))
            tasks = tuple(task for task in tasks if task in shared)
        if not tasks:
            raise ArgumentError(f"gate {gate.label!r}", f"finds no task of {system} to gate", 0)
        return systems, tasks

    @property
    def _sources(self) -> list[SharedDraws | Rounds | BestSystemGate]:
        return [*self.streams, *self.contests]

    def _make_contests(self) -> list[BestSystemGate]:
        """A contest for each demand of the best, over the tasks that all systems share."""
        contests = []
        for gate in self._sequential:
            if isinstance(gate.demand, BestOfRequirement):
                systems = self._systems()
                self._systems(gate)  # a system that the gate names must be one of them
                shared = set.intersection(*(set(self._tasks(gate, name)) for name in systems))
                if not shared:
                    rule = "finds no task that all agents share"
                    raise ArgumentError(f"gate {gate.label!r}", rule, 0)
                contests.append(BestSystemGate(gate, systems, sorted(shared), seed=self._seed))
        return contests

    def _make_streams(self) -> list[SharedDraws | Rounds]:
        """One stream for all gates on the same tasks of the same systems that run alike."""
        grouped: dict[tuple[tuple[str, ...], tuple[str, ...], bool], list[Gate]] = {}
        for gate in self._sequential:
            if not isinstance(gate.demand, EveryTaskRequirement | BestOfRequirement):
                for system in self._systems(gate):
                    systems, tasks = self._gated_tasks(gate, system)
                    kind = systems, tasks, decides_in_rounds(gate, len(tasks))
                    grouped.setdefault(kind, []).append(gate)
        stated = {(p.system.name, p.task.name): p.runs for p in self._pairings}
        return [
            Rounds(
                systems, tasks, gates, seed=self._seed,
                stated={task: stated[systems[0], task] for task in tasks},
            )
            if rounds
            else SharedDraws(systems[0], tasks, gates, seed=self._seed)
            for (systems, tasks, rounds), gates in grouped.items()
        ]  # fmt: skip

    def _make_every_task_watches(self) -> list[EveryTaskWatch]:
        watches = []
        for gate in self._sequential:
            if isinstance(gate.demand, EveryTaskRequirement):
                for system in self._systems(gate):
                    bars = bars_of(gate.demand, self._bars, self._gated_tasks(gate, system)[1])
                    design = every_task_gate(gate, tuple(bars.values()))
                    watches.append(EveryTaskWatch(gate, design, system, tuple(bars)))
        return watches

    def _fixed_parts(self, until_settled: bool) -> tuple[FixedPart, FixedPart]:
        watched = {(s, t) for source in self._sources for s in source.systems for t in source.tasks}
        watched |= {(watch.system, task) for watch in self.every_task for task in watch.tasks}
        held = {
            (system, task)
            for gate in self._fixed_gates
            for system in self._systems(gate)
            for task in self._tasks(gate, system)
        }

        def chosen(wanted: bool) -> list[Pairing]:
            keys = [((p.system.name, p.task.name), p) for p in self._pairings]
            return [
                p for key, p in keys if (key in held) is wanted and (wanted or key not in watched)
            ]

        gates = self._fixed_gates if until_settled else ()
        return FixedPart(chosen(True), gates), FixedPart(chosen(False))


def replay_run(
    rule: StoppingRule, tickets: Sequence[Ticket], finished: Iterable[Finished]
) -> Verdicts:
    """The verdicts of a run from its journal: the same evidence in the same order.

    `rule` is a fresh stopping rule with the gates of the run.
    """
    rule.restore(tickets)
    ended = sorted(finished, key=lambda entry: entry.ticket.number)
    for number, entry in enumerate(ended):
        if entry.ticket.number != number:
            break  # evidence is taken without gaps
        rule.observe(entry.ticket, entry.trial)
    return rule.verdicts()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """What a ticket is for: the run of a draw of a stream. Fixed runs have none.

    `planned` are the rounds, or the runs of one task, that were planned at first.
    """

    stream: str
    draw: int
    run: int
    planned: int | None = None

    @property
    def text(self) -> str:
        known = {"stream": self.stream, "draw": self.draw, "run": self.run}
        return json.dumps(known if self.planned is None else known | {"planned": self.planned})

    @classmethod
    def read(cls, text: str | None) -> Stamp | None:
        if text is None:
            return None
        known = json.loads(text)
        if not isinstance(known, dict) or set(known) - {"planned"} != {"stream", "draw", "run"}:
            raise ArgumentError("stamp", "must be of a run that its gates ended", text)
        return cls(**known)


Run = tuple[str, str, int]
"""System, task and number of a trial."""

# How often the runs are looked at to see whether arithmetic has decided.
_LOOKS = 25


class FixedPart:
    """Pairings run as often as they ask for, interleaved.

    With `gates`, it ends as soon as the runs still planned can change none of their verdicts:
    the same verdicts, for less.
    """

    def __init__(self, pairings: Sequence[Pairing], gates: Sequence[Gate] = ()) -> None:
        self.planned = {(p.system.name, p.task.name): p.runs for p in pairings}
        self.trials: list[Trial] = []
        self._gates = tuple(gates)
        self._done: set[Run] = set()
        self._rest = self._interleaved(pairings)
        self._decided = False
        self._next_look = self._look_every

    @property
    def max_runs(self) -> int:
        return sum(self.planned.values())

    def next_run(self) -> Run | None:
        """The next run, or None when all were handed out or none matters any more."""
        return None if self._decided else next(self._rest, None)

    def restore(self, run: Run) -> bool:
        """Whether a run handed out before an interruption belongs here."""
        system, task, trial = run
        mine = trial < self.planned.get((system, task), 0)
        if mine:
            self._done.add(run)
        return mine

    def holds(self, trial: Trial) -> bool:
        return trial.trial < self.planned.get((trial.system, trial.task), 0)

    def observe(self, trial: Trial) -> None:
        self.trials.append(trial)
        if self._gates and len(self.trials) >= self._next_look and not self._decided:
            self._next_look += self._look_every
            self._decided = self._is_decided()

    @property
    def _look_every(self) -> int:
        return max(1, self.max_runs // _LOOKS)

    def _is_decided(self) -> bool:
        if not all(
            isinstance(g.demand, ThresholdRequirement) and counts_passes(g) for g in self._gates
        ):
            return False
        table = Trials.from_records(self.trials, duplicates=None)
        return all(
            is_decided(gate, part.tally(), self.planned)
            for gate in self._gates
            for part in gated_tables(table, gate)
        )

    def _interleaved(self, pairings: Sequence[Pairing]) -> Iterator[Run]:
        for trial in range(max((pairing.runs for pairing in pairings), default=0)):
            for pairing in pairings:
                run = (pairing.system.name, pairing.task.name, trial)
                if trial < pairing.runs and run not in self._done:
                    yield run
