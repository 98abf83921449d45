"""Gates that decide as runs come in: which run is next, and what each makes of those that ended."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from math import ceil, log
from typing import Any

from passhat.analysis.gates.gate import (
    EveryTaskRequirement,
    Gate,
    NoWorseRequirement,
    ThresholdRequirement,
    VerdictNote,
    failing_list,
    passing_list,
)
from passhat.dataclass import dataclass
from passhat.errors import ArgumentError
from passhat.messages import listed, percent, plural
from passhat.records import Outcome, Trial
from passhat.stats.estimate import THIS_SUITE, Estimate, Interval, Unavailable, hull
from passhat.stats.passk import pass_at_k, pass_hat_k
from passhat.stats.sequential import (
    SET_ASIDE,
    BlockMetric,
    DrawTicket,
    EveryTaskGate,
    EveryTaskState,
    GateResult,
    Observed,
    Outage,
    OutageGuard,
    ScoreGate,
    SetAside,
    SuiteGate,
    TaskGate,
    TaskState,
    block_outcomes,
)
from passhat.stats.sequential import DecisionStep as DesignStep
from passhat.stats.sequential.designs import error_of_all_looks, first_runs, last_runs
from passhat.stats.sequential.draws import drawn_task, find_drift
from passhat.stats.sequential.task_gate import TaskDesign

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
class GateProgress:
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


class SharedDraws:
    """Draws of tasks at random, seen by every gate on the same tasks of the same system.

    The task of a draw follows from the seed and its number alone. A draw is one run, or up to k
    where a gate asks for pass^k; each gate takes the runs that its own result needs. Draws in an
    outage are set aside (see `OutageGuard`).
    """

    def __init__(
        self, system: str, tasks: Sequence[str], gates: Sequence[Gate], *, seed: int
    ) -> None:
        self.systems = (system,)
        self.tasks = tuple(tasks)
        self.seed = seed
        designs = [draw_gate(gate, tasks=len(self.tasks), seed=seed) for gate in gates]
        self.watches = [GateProgress(gate=design, state=design.start()) for design in designs]
        self.runs: dict[int, list[Trial]] = {}
        rate = min(watch.gate.expected_rate for watch in self.watches)
        least = 1 - rate if len(self.tasks) == 1 else 0
        guard = OutageGuard(tasks=len(self.tasks), rate=rate, least_failure=least)
        self.outages = OutageFilter([guard])
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

    @property
    def planned(self) -> int | None:
        """The runs of the plan, for the stamps of its tickets; None where no gate has one."""
        plans = {
            watch.gate.design.plan
            for watch in self.watches
            if isinstance(watch.gate.design, TaskGate) and watch.gate.design.design == "planned"
        }
        return plans.pop() if len(plans) == 1 and len(self.watches) == 1 else None

    def restore(self, draw: int, run: int, planned: int | None = None) -> None:
        """A run that was handed out before an interruption, and the runs planned then."""
        if (
            planned is not None
            and self.planned is not None
            and (planned != self.planned or draw >= self.watches[0].gate.max_draws)
        ):
            # Extended since: the suite may state fewer runs than were made.
            (watch,) = self.watches
            design = watch.gate.design
            assert isinstance(design, TaskGate)
            most = max(planned, draw + 1, design.boundaries.max_runs)
            design = replace(design, planned_runs=planned, max_runs=most)
            watch.gate = replace(watch.gate, design=design)
        self._made += 1
        self._launched[draw] = max(self._launched.get(draw, 0), run + 1)
        self._issued = max(self._issued, draw + 1)

    def observe(self, draw: int, trial: Trial) -> None:
        """A run of a draw has ended; its runs come in the order they were made."""
        self._seen += 1
        self.runs.setdefault(draw, []).append(trial)
        while first := self.runs.get(self.outages.seen, [])[:1]:
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
        batches: list[tuple[list[Trial], bool]] = []
        while (known := self._draw(len(batches), gate)) is not None:
            batches.append(known)
        return batches

    @property
    def _most(self) -> int:
        return max(watch.gate.max_draws for watch in self.watches if watch.is_open)

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
        runs = self.runs.get(draw, [])
        return self._launched[draw] == len(runs) and any(
            watch.is_open and not watch.gate.is_complete(runs) for watch in self.watches
        )

    def _launch(self, draw: int) -> Draw:
        run = self._launched.get(draw, 0)
        self.restore(draw, run)
        task = self.tasks[self.task(draw)]
        return Draw(index=draw, run=run, system=self.systems[0], task=task)


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
        rate = sum(gate.p0 for gate in design.gates) / len(design.gates)
        least = 1 - rate if len(self.tasks) == 1 else 0.0
        guard = OutageGuard(tasks=len(self.tasks), rate=rate, least_failure=least)
        self.outages = OutageFilter([guard])
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

    @property
    def planned(self) -> int:
        """The runs of the plan, without those that extend it."""
        each = self.design.planned_runs_per_task
        return self.max_runs if each is None else each * len(self.tasks)

    @property
    def errors(self) -> tuple[float, float]:
        """The chances of a wrong PASS and of a wrong FAIL, with what an extension adds."""
        fraction = self.max_runs / self.planned
        alpha, beta = (
            error_of_all_looks(error, fraction) for error in (self.gate.alpha, self.gate.beta)
        )
        return alpha, beta

    def extending(self, planned: int | None) -> EveryTaskWatch:
        """The same watch before any run, beyond a plan of so many runs."""
        most = self.design.max_runs_per_task
        if planned is None or most is None or self.design.design != "planned":
            return self
        each = planned // len(self.tasks)
        if not 0 < each < most:
            return self
        design = replace(self.design, planned_runs_per_task=each)
        return EveryTaskWatch(self.gate, design, self.system, self.tasks)

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


# Which runs are evidence: those in an outage are set aside and named.

LONGEST_PAUSE = 600.0
"""Seconds that a run waits at most before it tries again."""

_NAMED = 3


class OutageFilter:
    """Sees the runs of every system in the order of their tickets, and decides which count.

    `counted` says whether each decided draw counts, in order. A draw is set aside where any of its
    systems was in an outage.
    """

    def __init__(self, guards: Sequence[OutageGuard]) -> None:
        self._guards = tuple(guards)
        self._states = [guard.start() for guard in self._guards]
        self._flags: list[list[bool]] = [[] for _ in self._guards]
        self._seen: list[list[Trial | None]] = []
        self.counted: list[bool] = []
        self.resume_at: float | None = None
        """Until when (seconds since 1970) no run should be started: the outage may pass."""

    @property
    def seen(self) -> int:
        """How many draws it was shown."""
        return len(self._seen)

    @property
    def waiting(self) -> int:
        """How many draws are not decided yet."""
        return self.seen - len(self.counted)

    @property
    def outages(self) -> tuple[Outage, ...]:
        outages = {outage for state in self._states for outage in state.outages}
        return tuple(sorted(outages, key=lambda outage: outage.first))

    @property
    def is_hopeless(self) -> bool:
        """Whether so many stretches came without a pass that failures count as they come."""
        return any(state.is_hopeless for state in self._states)

    def take(self, task: int, trials: Sequence[Trial | None]) -> None:
        """The next draw: the first run of each system on this task, None if it made none."""
        self._seen.append(list(trials))
        for place, trial in enumerate(trials):
            if trial is None:  # it has left the contest
                self._finish(place)
                self._flags[place].append(True)
            else:
                self._observe(place, task, trial)
        self._decide()

    def finish(self) -> None:
        """No more draws will come: those that wait are decided as they are."""
        for place in range(len(self._guards)):
            self._finish(place)
        self._decide()

    def _observe(self, place: int, task: int, trial: Trial) -> None:
        before = self._states[place]
        began, ended = _times(trial)
        state, decided = self._guards[place].observe(
            before, task, earned_something(trial), began=began, ended=ended
        )
        self._states[place] = state
        self._flags[place].extend(decided)
        if state.stretches > before.stretches and state.waiting and ended is not None:
            first = self._seen[self.seen - len(state.waiting)][place]
            self._pause(first, ended, state.stretches)

    def _pause(self, first: Trial | None, ended: float, stretches: int) -> None:
        """Wait twice as long as the stretch took, after the second one four times."""
        began = None if first is None else _times(first)[0]
        if began is not None:
            self.resume_at = ended + min((ended - began) * 2**stretches, LONGEST_PAUSE)

    def _finish(self, place: int) -> None:
        self._states[place], decided = self._guards[place].finish(self._states[place])
        self._flags[place].extend(decided)

    def _decide(self) -> None:
        ready = min(map(len, self._flags))
        for draw in range(len(self.counted), ready):
            self.counted.append(all(flags[draw] for flags in self._flags))


def earned_something(trial: Trial) -> bool:
    """Whether a run passed or scored; one that errored or scored 0 may belong to an outage."""
    return trial.outcome is not Outcome.ERRORED and (trial.score or 0.0) > 0.0


def outage_words(
    watch: OutageFilter, draws: int, unit: str, *, kept: Collection[int] = ()
) -> tuple[str, ...]:
    """What a verdict on its first draws says about stretches of failures; often nothing.

    `kept` are draws that it counts though they were set aside.
    """
    inside = [
        replace(outage, last=min(outage.last, draws - 1))
        for outage in watch.outages
        if outage.first < draws and outage.first not in kept
    ]
    sentence = _set_aside_sentence(inside, draws, unit=unit)
    words = [] if sentence is None else [sentence]
    if watch.is_hopeless:
        words.append(_HOPELESS_SENTENCE)
    elif watch.waiting:
        held = plural(watch.waiting, unit)
        verb = "waits" if watch.waiting == 1 else "wait"
        words.append(f"{held} {verb} for the next pass, to tell failures from an outage.")
    return tuple(words)


def drift_words(runs: Sequence[Trial]) -> tuple[str, ...]:
    """What a verdict says where the pass rate moved along its runs; mostly nothing."""
    places = {name: place for place, name in enumerate(dict.fromkeys(run.task for run in runs))}
    passed = [run.outcome is Outcome.PASSED for run in runs]
    drift = find_drift([places[run.task] for run in runs], passed)
    if drift is None:
        return ()
    first, second = percent(drift.first_half), percent(drift.second_half)
    words = (
        f"The pass rate changed during these trials, from {first} in their first "
        f"half to {second} in the second, by more than "
        "chance: the verdict is on their mean, not on the agent as it is now."
    )
    return (words,)


def notes_in_sentence(sentences: Sequence[str]) -> tuple[VerdictNote, ...]:
    """Notes that are sentences of the verdict too."""
    return tuple(VerdictNote(words.rstrip("."), ending=words) for words in sentences)


def _set_aside_sentence(outages: Sequence[Outage], draws: int, *, unit: str) -> str | None:
    if not outages:
        return None
    named = listed((f"{outage.first + 1} to {outage.last + 1}" for outage in outages), _NAMED)
    aside = sum(outage.runs for outage in outages)
    return (
        f"{plural(aside, unit)} of {draws:,} ({named}) were set aside as an outage: failures one "
        "after another, too many for chance, and the pass that ended them. The error rates hold "
        "for the trials outside it."
    )


_HOPELESS_SENTENCE = (
    "Trial after trial failed, far too many for chance and with no pass between them. They count "
    "as failures: a broken agent and an outage that lasts look the same."
)


def _times(trial: Trial) -> tuple[float | None, float | None]:
    """When a run began and ended, in seconds since 1970."""
    if trial.started is None:
        return None, None
    try:
        began = datetime.fromisoformat(trial.started).timestamp()
    except ValueError:
        return None, None
    return began, began + (trial.seconds or 0.0)


# The design behind a demand, and how it reads a run.

PAIR = 2
"""Runs of a slot that compares: one of the system, one of its baseline."""

BETTER_BY = 0.1
"""The difference a gate on "better" is planned for, if no indifference is stated."""

_ANY_BAR = 0.8
"""The bar of tasks that state their own, where only their number is known."""

_PAIRS_BY_DEFAULT = 500
"""They show a margin of 0.1 four times in five where passes and failures differ most."""

_NEARLY_NEVER, _NEARLY_ALWAYS = 1e-6, 1 - 1e-6


def systems_of(gate: Gate) -> int:
    """How many agents make a trial of each task for a gate: two where it compares."""
    return PAIR if isinstance(gate.demand, NoWorseRequirement) else 1


def lists_in_words(
    pass_steps: Sequence[tuple[int, int]],
    fail_steps: Sequence[tuple[int, int]],
    *,
    in_rounds: bool = False,
) -> tuple[str, ...]:
    """When counts PASS and when they FAIL: `first_runs` of failures, and `last_runs` of them.

    >>> for words in lists_in_words([(0, 3), (1, 5)], [(2, 2), (3, 3), (4, 5)]):
    ...     print(words)
    PASS with no failure after 3 trials, at most 1 after 5
    FAIL with 2 failures by trial 2, 3 by 3, 4 by 5
    """
    return (
        *([f"PASS with {passing_list(pass_steps, in_rounds=in_rounds)}"] if pass_steps else []),
        *([f"FAIL with {failing_list(fail_steps, in_rounds=in_rounds)}"] if fail_steps else []),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawGate:
    """A gate whose evidence is draws: a task at random, up to k runs of it.

    A draw ends when its result is known: pass^k at the first failure, pass@k at the first pass.
    `power` is set where one task's own rate is tested: its pass^k is the rate to that power.
    """

    gate: Gate
    demand: ThresholdRequirement
    design: TaskGate | SuiteGate | ScoreGate
    k: int = 1
    metric: BlockMetric = "pass^k"
    power: tuple[BlockMetric, int] | None = None

    @property
    def max_draws(self) -> int:
        if isinstance(self.design, TaskGate):
            return self.design.boundaries.max_runs
        return self.design.max_draws

    @property
    def max_runs(self) -> int:
        return self.max_draws * self.k

    @property
    def errors(self) -> tuple[float, float]:
        """The chances of a wrong PASS and of a wrong FAIL, with what an extension adds."""
        alpha, beta = self.gate.alpha, self.gate.beta
        if not isinstance(self.design, TaskGate) or self.design.planned_runs is None:
            return alpha, beta
        fraction = self.design.boundaries.max_runs / self.design.planned_runs
        return error_of_all_looks(alpha, fraction), error_of_all_looks(beta, fraction)

    @property
    def is_guarded(self) -> bool:
        """Whether runs in an outage are set aside: not where errors or times are asked for."""
        return self.demand.target.is_metric

    @property
    def expected_rate(self) -> float:
        """The pass rate of a single run that the demand asks for."""
        if isinstance(self.design, TaskGate):
            return self.design.p0
        return rate_of_one_run(self.design.mu0, (self.metric, self.k))

    @property
    def pass_steps(self) -> tuple[tuple[int, int], ...]:
        """Each number of failures, with the first run after which one task may have that many."""
        pass_at = self.design.boundaries.pass_at if isinstance(self.design, TaskGate) else ()
        return first_runs([n - passes for n, passes in enumerate(pass_at, start=1)])

    @property
    def soonest(self) -> int | None:
        """After how many runs one task that never fails passes; None if no number of them does."""
        return next((run for _, run in self.pass_steps), None)

    @property
    def soonest_pass(self) -> str | None:
        """After how many runs an agent that never fails passes, in words; None if not known."""
        if not isinstance(self.design, TaskGate):
            return None
        soonest = self.soonest
        if soonest is not None:
            return f"PASS after {plural(soonest, 'trial')} without a failure"
        enough = ceil(log(self.design.alpha) / log(self.design.p0))
        return (
            f"so few can never show it: an agent that never fails needs {plural(enough, 'trial')}"
        )

    @property
    def boundaries(self) -> tuple[str, ...]:
        """The two lists by which counts of one task decide, in words."""
        if not isinstance(self.design, TaskGate) or self.k > 1:
            return ()
        return lists_in_words(self.pass_steps, last_runs(self.design.boundaries.fail_at))

    def start(self) -> Any:
        return TaskState() if isinstance(self.design, TaskGate) else self.design.start()

    def read(self, trial: Trial) -> float | None:
        """How well a run meets the demand: from 0, not at all, to 1; None if it errored."""
        value = self.demand.target.read(trial)
        if value is None:
            return None
        if self.demand.target.quantile is not None:
            return float(self.demand.met_by(value))
        return value if self.demand.upward else 1 - value

    def score(self, runs: Sequence[Trial]) -> float | None:
        """The result of a draw whose runs are these."""
        if self.k == 1:
            return self.read(runs[0])
        return float(block_outcomes(map(self.read, runs), k=self.k, metric=self.metric)[0][0])

    def is_complete(self, runs: Sequence[Trial]) -> bool:
        """Whether these runs of a draw settle its result."""
        if self.k == 1:
            return bool(runs)
        return bool(block_outcomes(map(self.read, runs), k=self.k, metric=self.metric)[0])

    def observe(self, state: Any, index: int, task: int, runs: Sequence[Trial] | SetAside) -> Any:
        """The state after the next draw: its runs, or that it was set aside."""
        x, size = (runs, 1) if isinstance(runs, SetAside) else (self.score(runs), len(runs))
        if isinstance(self.design, TaskGate):
            return self.design.observe(state, x, index=index)
        return self.design.observe(state, DrawTicket(index, task, 0), x, runs=size)

    def result(self, state: Any) -> GateResult:
        confidence = 1 - max(self.gate.alpha, self.gate.beta)
        return self.design.result(state, confidence=confidence)

    def steps(self, draws: Sequence[tuple[Sequence[Trial], bool]]) -> tuple[DesignStep, ...]:
        """The decision log of these draws in their order, with whether each counts."""
        return self.design.steps(
            [self.score(runs) if counts else SET_ASIDE for runs, counts in draws]
        )

    def estimate(self, result: GateResult) -> Estimate | Unavailable:
        """The number demanded, with an interval that holds however often one looked."""
        if result.value is None:
            return Unavailable("no trial has come in yet")
        value, ends = self._point(result.value, result.runs), result.interval
        return Estimate(
            value=value,
            # The rate seen lies between the ends; the unbiased estimate of its power may not.
            interval=None if ends is None else hull(self._interval(ends), Interval(value, value)),
            method=f"{result.method}; the interval holds at all times at once",
            confidence=result.confidence,
            scope=THIS_SUITE,
            runs=result.runs,
            seed=result.seed,
        )

    def own_rate(self, truth: float) -> float:
        """The rate of a single run at which one task's number (the share of good runs) is this."""
        return truth if self.power is None else rate_of_one_run(truth, self.power)

    def _point(self, mean: float, runs: int) -> float:
        """The number that a report states of these runs; it states none of fewer than k."""
        if self.power is None or runs < self.power[1]:
            return self._as_demanded(mean)
        metric, k = self.power
        return (pass_hat_k if metric == "pass^k" else pass_at_k)(runs, round(mean * runs), k)

    def _interval(self, ends: Interval) -> Interval:
        low, high = sorted((self._as_demanded(ends.low), self._as_demanded(ends.high)))
        return Interval(low, high)

    def _as_demanded(self, mean: float) -> float:
        if self.power is not None:
            metric, k = self.power
            return float(mean**k) if metric == "pass^k" else 1 - float((1 - mean) ** k)
        # The design watches the share of runs that are *not* what the demand counts.
        mirrored = not self.demand.upward and self.demand.target.quantile is None
        return 1 - mean if mirrored else mean


def draw_gate(gate: Gate, *, tasks: int, seed: int) -> DrawGate:
    """The sequential design of a demand on a suite of so many tasks.

    Of one task the rate itself is tested, exactly; of several, tasks are drawn at random. Without
    an indifference zone there is one threshold, and a truth too near to it stays UNDECIDED.

    >>> from passhat.analysis.gates.gate import parse_gate
    >>> gate = parse_gate({"require": "pass^3 >= 0.6", "indifference": 0.1})
    >>> draw_gate(gate, tasks=20, seed=0).design.fixed_runs
    744
    """
    demand = gate.demand
    assert isinstance(demand, ThresholdRequirement), "other demands have gates of their own"
    power = block_of(demand)
    if tasks == 1 and not demand.target.is_mean_score:
        own = power if demand.target.attempts else None
        return DrawGate(gate=gate, demand=demand, design=_task_design(gate, demand), power=own)
    design = _suite_design(gate, demand, tasks, seed)
    return DrawGate(gate=gate, demand=demand, design=design, metric=power[0], k=power[1])


def every_task_gate(gate: Gate, bars: Sequence[float]) -> EveryTaskGate:
    """The sequential design of a demand on every task, with the bars in the order of tasks."""
    demand = gate.demand
    assert isinstance(demand, EveryTaskRequirement)
    low = [min(max(bar, _NEARLY_NEVER), _NEARLY_ALWAYS) for bar in bars]
    per_task = None if gate.max_runs is None else max(1, gate.max_runs // len(bars))
    planned = None if gate.planned_runs is None else max(1, gate.planned_runs // len(bars))
    high = [min(bar + (gate.indifference or 0.0), (bar + 1) / 2) for bar in low]
    rates = [tuple(bar ** (1 / demand.k) for bar in ends) for ends in (low, high)]
    errors = gate.alpha, gate.beta / len(bars)
    designs = {
        _task_design_of(gate, p0, p1, *errors, per_task) for p0, p1 in zip(*rates, strict=True)
    }
    design: TaskDesign = "planned" if len(designs) > 1 else designs.pop()
    return EveryTaskGate(
        p0=rates[0], p1=rates[1], alpha=gate.alpha, beta=gate.beta, design=design,
        max_runs_per_task=None if design == "truncated" else per_task,
        planned_runs_per_task=planned if design == "planned" else None,
    )  # fmt: skip


def default_trials(gate: Gate, tasks: int = 1) -> int:
    """The trials to plan where nobody said how many: an agent that never fails passes with fewer.

    >>> from passhat.analysis.gates.gate import parse_gate
    >>> default_trials(parse_gate("pass^3 >= 0.8"))
    99
    """
    demand, unlimited = gate.demand, replace(gate, max_runs=None, planned_runs=None)
    if isinstance(demand, EveryTaskRequirement):
        bar = _ANY_BAR if demand.bar is None else demand.bar
        return sum(g.boundaries.max_runs for g in every_task_gate(unlimited, [bar] * tasks).gates)
    if isinstance(demand, ThresholdRequirement):
        return max(tasks * block_of(demand)[1], _task_design(unlimited, demand).boundaries.max_runs)
    return PAIR * _PAIRS_BY_DEFAULT


def block_of(demand: ThresholdRequirement) -> tuple[BlockMetric, int]:
    """The metric and the runs of one draw; everything but pass^k and pass@k takes one run."""
    metric, k = demand.target.attempts or ("pass^k", 1)
    return ("pass^k" if metric == "pass^k" else "pass@k"), k


def least_share(demand: ThresholdRequirement) -> float:
    """The share of runs that just meets a demand."""
    if demand.target.quantile is not None:
        return demand.target.quantile[1]
    return demand.threshold if demand.upward else 1 - demand.threshold


def rate_of_one_run(number: float, power: tuple[BlockMetric, int]) -> float:
    """The pass rate of a single run at which pass^k, or pass@k, is this number."""
    metric, k = power
    return float(number ** (1 / k) if metric == "pass^k" else 1 - (1 - number) ** (1 / k))


def _task_design(gate: Gate, demand: ThresholdRequirement) -> TaskGate:
    power = block_of(demand)
    p0, p1 = (rate_of_one_run(share, power) for share in _rates(gate, demand))
    design = _task_design_of(gate, p0, p1, gate.alpha, gate.beta, gate.max_runs)
    return TaskGate(
        p0=p0, p1=p1, alpha=gate.alpha, beta=gate.beta, design=design,
        max_runs=None if design == "truncated" else gate.max_runs,
        planned_runs=gate.planned_runs if design == "planned" else None,
    )  # fmt: skip


def _task_design_of(
    gate: Gate, p0: float, p1: float, alpha: float, beta: float, runs: int | None
) -> TaskDesign:
    """The design that was asked for; else the one that decides sooner with so many runs.

    Between two rates the truncated ratio test needs fewer runs than a plan, if it may use the
    tenth more than the fixed design that it takes at most.
    """
    if p0 == p1:
        return "planned"
    if gate.design is not None or runs is None:
        return gate.design or "truncated"
    longest = TaskGate(p0=p0, p1=p1, alpha=alpha, beta=beta, design="truncated").boundaries.max_runs
    return "truncated" if runs >= longest else "planned"


def _suite_design(
    gate: Gate, demand: ThresholdRequirement, tasks: int, seed: int
) -> SuiteGate | ScoreGate:
    low, high = _rates(gate, demand)
    metric, k = block_of(demand)
    if demand.target.is_mean_score or low == high:
        return ScoreGate(
            tasks=tasks, mu0=low, mu1=high, alpha=gate.alpha, beta=gate.beta, seed=seed,
            max_runs=None if gate.max_runs is None else max(1, gate.max_runs // k),
        )  # fmt: skip
    return SuiteGate(
        tasks=tasks, mu0=low, mu1=high, alpha=gate.alpha, beta=gate.beta, seed=seed,
        max_runs=None if gate.max_runs is None else max(k, gate.max_runs), k=k, metric=metric,
    )  # fmt: skip


def _rates(gate: Gate, demand: ThresholdRequirement) -> tuple[float, float]:
    """The share that must FAIL and the share expected to PASS, of runs that meet the demand."""
    low = least_share(demand)
    high = low + (gate.indifference or 0.0)
    if high >= 1:
        rule = f"must leave room above {low:g}: {high:g} is beyond every rate"
        raise ArgumentError("indifference", rule, gate.indifference)
    return low, high
