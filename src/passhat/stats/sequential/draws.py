"""What all gates share: draws in order, what a gate says, a guard for outages, a test for drift.

Runs are evidence in the order they were *drawn*. In the order they finish, fast passes would count
before slow failures and decide the verdict. In draw order each bet depends only on earlier draws,
whose results do not depend on this one, so the guarantee holds at any concurrency.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b
from math import log, sqrt
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from passhat.arguments import probability, whole_number
from passhat.dataclass import dataclass, result_dataclass
from passhat.errors import ArgumentError
from passhat.stats.arguments import Floats
from passhat.stats.special import ndtr

if TYPE_CHECKING:
    from passhat.stats.estimate import Interval


class SetAside(enum.Enum):
    """Stands in for the result of a run that is no evidence, and says why."""

    OUTAGE = "outage"


Score = float | SetAside
Waiting = tuple[tuple[int, Score], ...]

Observed = float | None | SetAside
"""What a gate observes: a score, None for a run that errored, or a run that was set aside."""
Outcomes = Mapping[int, Observed] | Iterable[Observed]


@dataclass(frozen=True, slots=True)
class DrawTicket:
    """Draw number `index`: run number `repeat` of `task` (all counted from 0)."""

    index: int
    task: int
    repeat: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """How many draws are evidence, how many were issued, and which must be issued again.

    `waiting` holds results that came before those of earlier draws. `missing` are draws that an
    interrupted run never finished: a result for a later draw shows that they were issued.
    """

    taken: int = 0
    issued: int = 0
    missing: tuple[int, ...] = ()
    waiting: Waiting = ()

    def issue(self, count: int, most: int) -> tuple[Self, tuple[int, ...]]:
        """Up to `count` draws to run, missing ones first, and never more than `most` in all."""
        again = self.missing[:count]
        fresh_end = min(self.issued + count - len(again), most)
        fresh = tuple(range(self.issued, max(self.issued, fresh_end)))
        after = type(self)(
            taken=self.taken,
            issued=self.issued + len(fresh),
            missing=self.missing[len(again) :],
            waiting=self.waiting,
        )
        return after, again + fresh

    def arrive(self, index: int, x: Score) -> tuple[Self, tuple[Score, ...]]:
        """The state with one more result, and the results that are evidence now, in draw order.

        >>> draws, ready = Draws(issued=2).arrive(1, 0.0)
        >>> ready
        ()
        >>> draws.arrive(0, 1.0)[1]
        (1.0, 0.0)
        """
        held = dict(self.waiting)
        if index < self.taken or index in held:
            raise ArgumentError("index", "must be a draw not yet observed", index)
        held[index] = x
        ready = list[Score]()
        while self.taken + len(ready) in held:
            ready.append(held.pop(self.taken + len(ready)))
        skipped = tuple(range(self.issued, index))
        after = type(self)(
            taken=self.taken + len(ready),
            issued=max(self.issued, index + 1),
            missing=tuple(i for i in self.missing if i != index) + skipped,
            waiting=tuple(sorted(held.items())),
        )
        return after, tuple(ready)


@lru_cache(maxsize=1 << 16)
def drawn_task(seed: int, index: int, tasks: int) -> int:
    """The task of draw `index`: uniform, independent of other draws, the same on every machine.

    >>> [drawn_task(7, index, 3) for index in range(8)]
    [...]
    """
    digest = blake2b(f"passhat draw {seed} {index}".encode(), digest_size=16).digest()
    return int.from_bytes(digest, "big") % tasks


def indexed(outcomes: Outcomes) -> list[tuple[int, Observed]]:
    """Results with the number of their draw: the key in a mapping, the position in a sequence."""
    if isinstance(outcomes, Mapping):
        return sorted(outcomes.items())
    return list(enumerate(outcomes))


# What a gate says: a verdict with the evidence it rests on, and each step that led there.

GateVerdict = Literal["PASS", "FAIL", "UNDECIDED"]

# A run that broke (infrastructure, grader) never counts as evidence for PASS.
ERRORED_SCORE = 0.0

SET_ASIDE = SetAside.OUTAGE
"""Replaces a result that `OutageGuard` set aside: it changes no evidence."""


@result_dataclass(frozen=True, slots=True, kw_only=True)
class GateResult:
    """A verdict, or None while it is open, with everything needed to recompute it.

    `log_pass` and `log_fail` are log evidence against "not good enough" and "good enough"; the
    gate decided when one of them reached its boundary. `interval` holds at `confidence` however
    often the gate was looked at. `fixed_runs` is the fixed number of runs that a test with the same
    error rates takes (None if there is no such design).
    """

    verdict: GateVerdict | None
    method: str
    value: float | None
    interval: Interval | None
    confidence: float
    runs: int
    fixed_runs: int | None
    max_runs: int
    log_pass: float
    log_fail: float
    alpha: float
    beta: float
    seed: int | None = None

    @property
    def runs_saved(self) -> int | None:
        return None if self.fixed_runs is None else self.fixed_runs - self.runs


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionStep:
    """One line of the decision log: what was observed and the evidence after it."""

    index: int
    task: int
    x: Observed
    log_pass: float
    log_fail: float
    pass_boundary: float
    fail_boundary: float


def observed_score(x: float | None) -> float:
    """An observation in [0, 1]; None stands for a run that errored."""
    if x is None:
        return ERRORED_SCORE
    score = float(x)
    if not 0.0 <= score <= 1.0:
        raise ArgumentError("x", "must lie in [0, 1], or be None for an errored trial", x)
    return score


def error_rates(alpha: float, beta: float) -> None:
    """Check the two error rates that a gate promises."""
    for name, rate in (("alpha", alpha), ("beta", beta)):
        if not 0.0 < rate < 0.5:
            raise ArgumentError(name, "must lie strictly between 0 and 0.5", rate)


# A guard for outages: failures in a row are held back until it is known what they are.
#
# A sequential gate takes runs as independent. When a provider or a tool server is down, runs fail
# together, and a gate that counts them blames the agent. The guard looks at runs in the order
# they were started:
#
# - Failures wait for the next pass. If their number is not surprising, they count, all of them
#   and in their order: then the gate decides exactly as it would without the guard.
# - A stretch that is too long for chance is set aside when a pass ends it, together with that
#   pass. (The agent's own failures next to an outage are set aside with the stretch, so keeping
#   the pass would favour PASS.)
# - Three such stretches with no pass between them count as failures, and two where nothing ever
#   passed: the agent is broken, or nothing can tell. Runs that were already under way when a
#   stretch was recognised belong to that stretch.
# - An outage is told by how the agent does otherwise: while fewer passes count than are expected in
#   half as many runs as were set aside, failures count as they come. So an agent that nearly
#   always fails is not saved by a pass now and then.
#
# It does not recognise outages shorter than the stretch it needs, outages in which some runs
# pass, or a drift. Its error rates are simulated in bench/calibrate/outages.py.

# A stretch is too long for chance when its chance, times the runs so far, is below this.
_FALSE_ALARMS = 0.01

# In the first runs a stretch must be as rare as among a hundred: 6 failures at a rate of 0.8.
_OUTAGE_FEWEST_RUNS = 100
# Fewer failures in a row are no outage, whatever their chance. A further stretch takes more: else
# one outage of a dozen runs would count as several where the times of the runs are not known.
_FEWEST_FAILURES, _FEWEST_FURTHER_FAILURES = 4, 10
# A task's rate is pulled towards the suite's with the weight of 1.5 runs, as in `find_bursts`.
_BORROWED_RUNS = 1.5
# The suite's rate starts at the expected one with the weight of four runs.
_EXPECTED_RUNS = 4.0
# So many stretches without a pass between them are no outage any more; fewer before any pass.
_STRETCHES_THAT_COUNT, _STRETCHES_BEFORE_ANY_PASS = 3, 2
# So many runs may be set aside for each that counts, if those pass as expected.
_MOST_ASIDE = 2.0
# The fields of a state in which no run waits.
_NONE_WAITING: dict[str, Any] = {"waiting": (), "failures": 0, "surprise": 0.0, "recognised": None}


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
        if state.is_hopeless or self._passes_too_rarely(state):
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
        places = max(_OUTAGE_FEWEST_RUNS, state.seen) if state.ever_passed else 1
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

    def _passes_too_rarely(self, state: GuardState) -> bool:
        """Whether too many runs were set aside for an agent with so few passes that count."""
        aside = sum(outage.runs for outage in state.outages) - _EXPECTED_RUNS
        return bool(state.passes.sum() < self.rate * aside / _MOST_ASIDE)

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


# Whether the pass rate moved along the runs of a sequential gate, which assumes it did not.

DRIFT_ALARMS = 0.01
"""The largest share of steady runs in which a drift is reported at the end of a gate."""

# The level of the test. A gate stops when passes (or failures) have piled up, so its runs lean a
# little towards their end: at this level at most 1 % of steady runs are called a drift
# (bench/calibrate/outages.py).
_LEVEL = 0.005
# With fewer runs of tasks that both passed and failed, the normal distribution is too far off.
_DRIFT_FEWEST_RUNS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """The pass rates of the first and the second half of runs that moved beyond chance."""

    first_half: float
    second_half: float
    p_value: float


def find_drift(task: Sequence[int], passed: Sequence[bool]) -> Drift | None:
    """A drift along runs in the order they were started; None if chance explains it.

    The correlation of results with their place, task by task: given how often each task passed,
    every order of its results is equally likely if nothing moves (Mantel 1963). So it does not
    matter which tasks were drawn early.

    >>> find_drift([0] * 60, [True] * 35 + [False, True] * 5 + [False] * 15).second_half < 0.5
    True
    >>> find_drift([0] * 60, [True, True, False] * 20) is None
    True
    """
    codes, x = np.asarray(task, dtype=np.intp), np.asarray(passed, dtype=np.float64)
    place = np.arange(x.size, dtype=np.float64)
    if x.size < _DRIFT_FEWEST_RUNS:
        return None
    runs = np.bincount(codes).astype(np.float64)
    centred = [
        part - (np.bincount(codes, part) / np.maximum(runs, 1))[codes] for part in (x, place)
    ]
    squares = [np.bincount(codes, part**2) for part in centred]
    telling = squares[0] > 0
    variance = float((squares[0] * squares[1] / np.maximum(runs - 1, 1))[telling].sum())
    if variance <= 0 or runs[telling].sum() < _DRIFT_FEWEST_RUNS:
        return None
    z = float((centred[0] * centred[1]).sum()) / sqrt(variance)
    p = float(2 * ndtr(-abs(z)))
    if p >= _LEVEL:
        return None
    half = x.size // 2
    return Drift(first_half=float(x[:half].mean()), second_half=float(x[half:].mean()), p_value=p)
