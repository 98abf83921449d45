"""A guard for outages: failures in a row are held back until it is known what they are.

A sequential gate takes runs as independent. When a provider or a tool server is down, runs fail
together, and a gate that counts them blames the agent. The guard looks at runs in the order they
were started:

- Failures wait for the next pass. If their number is not surprising, they count, all of them and
  in their order: then the gate decides exactly as it would without the guard.
- A stretch that is too long for chance is set aside when a pass ends it, together with that pass.
  (The agent's own failures next to an outage are set aside with the stretch, so keeping the pass
  would favour PASS.)
- Three such stretches with no pass between them count as failures, and two where nothing ever
  passed: the agent is broken, or nothing can tell. Runs that were already under way when a stretch
  was recognised belong to that stretch.

It does not recognise outages shorter than the stretch it needs, outages in which some runs pass, or
a drift. Its error rates are simulated in bench/calibrate/outages.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import log
from typing import Any

import numpy as np

from passhat.arguments import probability, whole_number
from passhat.dataclass import dataclass
from passhat.errors import ArgumentError
from passhat.stats.arguments import Floats
from passhat.stats.sequential.verdicts import SET_ASIDE, SetAside

# A stretch is too long for chance when its chance, times the runs so far, is below this.
_FALSE_ALARMS = 0.01
# In the first runs a stretch must be as rare as among a hundred: 6 failures at a rate of 0.8.
_FEWEST_RUNS = 100
# Fewer failures in a row are no outage, whatever their chance. A further stretch takes more: else
# one outage of a dozen runs would count as several where the times of the runs are not known.
_FEWEST_FAILURES, _FEWEST_FURTHER_FAILURES = 4, 10
# A task's rate is pulled towards the suite's with the weight of 1.5 runs, as in `find_bursts`.
_BORROWED_RUNS = 1.5
# The suite's rate starts at the expected one with the weight of four runs.
_EXPECTED_RUNS = 4.0
# So many stretches without a pass between them are no outage any more; fewer before any pass.
_STRETCHES_THAT_COUNT, _STRETCHES_BEFORE_ANY_PASS = 3, 2
# The fields of a state in which no run waits.
_NONE_WAITING: dict[str, Any] = {
    "waiting": (),
    "failures": 0,
    "surprise": 0.0,
    "recognised": None,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """Runs `first` to `last` (counted from 0 in the order of their start) that were set aside."""

    first: int
    last: int

    @property
    def runs(self) -> int:
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GuardState:
    """What the guard knows: rates of tasks, failures that wait, and what was set aside.

    `stretches` counts those recognised since the last pass, `recognised` is the time of the last
    one; `failures` and `surprise` belong to the stretch that may be recognised next.
    """

    runs: Floats
    passes: Floats
    seen: int = 0
    waiting: tuple[int, ...] = ()
    failures: int = 0
    surprise: float = 0.0
    stretches: int = 0
    recognised: float | None = None
    ever_passed: bool = False
    outages: tuple[Outage, ...] = ()

    @property
    def is_hopeless(self) -> bool:
        """Whether failures count as they come: too many stretches had no pass between them."""
        enough = _STRETCHES_THAT_COUNT if self.ever_passed else _STRETCHES_BEFORE_ANY_PASS
        return self.stretches >= enough


@dataclass(frozen=True, slots=True, kw_only=True)
class OutageGuard:
    """Recognises outages among the failures of runs, in the order they were started.

    `rate` is the pass rate that is expected before any run. `least_failure` is the smallest failure
    chance assumed when the chance of a stretch is computed: for a gate on one task, 1 - p0, so that
    a stretch is as surprising as it is for an agent that only just deserves a FAIL.

    >>> guard = OutageGuard(tasks=1, rate=0.8, least_failure=0.2)
    >>> runs = [True] * 10 + [False] * 9 + [True] * 3
    >>> [x for x in guard.set_aside(runs) if x is not SET_ASIDE] == [True] * 12
    True
    """

    tasks: int
    rate: float = 0.5
    least_failure: float = 0.0

    def __post_init__(self) -> None:
        whole_number("tasks", self.tasks)
        probability("rate", self.rate)
        probability("least_failure", self.least_failure)

    def start(self) -> GuardState:
        return GuardState(runs=np.zeros(self.tasks), passes=np.zeros(self.tasks))

    def observe(
        self,
        state: GuardState,
        task: int,
        passed: bool,
        *,
        began: float | None = None,
        ended: float | None = None,
    ) -> tuple[GuardState, tuple[bool, ...]]:
        """The state after the next run, and of the runs now decided whether each counts.

        Those decided are the earliest that waited, in order. `began` and `ended` are times in
        seconds, if they are known.
        """
        if not 0 <= task < self.tasks:
            raise ArgumentError("task", f"must be one of {self.tasks}, counted from 0", task)
        state = replace(state, seen=state.seen + 1)
        if passed:
            return self._closed(state, task)
        if state.is_hopeless:
            return _counted(state, (task,), passed=False), (True,)
        return self._failed(state, task, began, ended)

    def finish(self, state: GuardState) -> tuple[GuardState, tuple[bool, ...]]:
        """No more runs will come: whether those that wait count.

        A stretch that is too long for chance does not, unless nothing ever passed: then nothing
        says that it was an outage.
        """
        if state.stretches and state.ever_passed:
            return _set_aside(state, len(state.waiting)), (False,) * len(state.waiting)
        return _counted(state, state.waiting, passed=False), (True,) * len(state.waiting)

    def set_aside(
        self,
        outcomes: Iterable[float | None],
        *,
        tasks: Sequence[int] | None = None,
        finished: bool = True,
    ) -> list[float | SetAside | None]:
        """Outcomes in the order of their start, with those of outages set aside.

        `tasks` says which task each run is of; with `finished` no more runs will come.
        """
        kept, flags, state = list(outcomes), list[bool](), self.start()
        for place, x in enumerate(kept):
            task = 0 if tasks is None else tasks[place]
            state, decided = self.observe(state, task, bool(x))
            flags.extend(decided)
        if finished:
            flags.extend(self.finish(state)[1])
        return [x if flag else SET_ASIDE for x, flag in zip(kept, flags, strict=False)]

    def _closed(self, state: GuardState, task: int) -> tuple[GuardState, tuple[bool, ...]]:
        """A pass ends the stretch."""
        released = len(state.waiting) + 1
        if state.stretches and not state.is_hopeless:
            state = replace(_set_aside(state, released), ever_passed=True)
            return state, (False,) * released
        state = _counted(state, state.waiting, passed=False)
        state = replace(_counted(state, (task,), passed=True), stretches=0, ever_passed=True)
        return state, (True,) * released

    def _failed(
        self, state: GuardState, task: int, began: float | None, ended: float | None
    ) -> tuple[GuardState, tuple[bool, ...]]:
        state = replace(state, waiting=(*state.waiting, task))
        if state.recognised is not None and began is not None and began <= state.recognised:
            return state, ()  # it was under way when the stretch was recognised
        surprise = state.surprise + log(self._failure_chance(state, task))
        state = replace(state, failures=state.failures + 1, surprise=surprise)
        # Before any pass there is one place where a stretch can begin.
        places = max(_FEWEST_RUNS, state.seen) if state.ever_passed else 1
        limit = log(_FALSE_ALARMS / places)
        fewest = _FEWEST_FURTHER_FAILURES if state.stretches else _FEWEST_FAILURES
        if surprise > limit or state.failures < fewest:
            return state, ()
        stretches = state.stretches + 1
        state = replace(state, failures=0, surprise=0.0, stretches=stretches, recognised=ended)
        if not state.is_hopeless:
            return state, ()
        released = len(state.waiting)
        return _counted(state, state.waiting, passed=False), (True,) * released

    def _failure_chance(self, state: GuardState, task: int) -> float:
        mean = (state.passes.sum() + _EXPECTED_RUNS * self.rate) / (
            state.runs.sum() + _EXPECTED_RUNS
        )
        rate = (state.passes[task] + _BORROWED_RUNS * mean) / (state.runs[task] + _BORROWED_RUNS)
        return max(1 - float(rate), self.least_failure, 1e-12)


def _counted(state: GuardState, tasks: Sequence[int], *, passed: bool) -> GuardState:
    """These runs count; no run waits any more."""
    runs, passes = state.runs.copy(), state.passes.copy()
    np.add.at(runs, list(tasks), 1.0)
    if passed:
        np.add.at(passes, list(tasks), 1.0)
    return replace(state, runs=runs, passes=passes, **_NONE_WAITING)


def _set_aside(state: GuardState, released: int) -> GuardState:
    """The last runs are set aside; no run waits any more."""
    outage = Outage(first=state.seen - released, last=state.seen - 1)
    return replace(state, stretches=0, outages=(*state.outages, outage), **_NONE_WAITING)
