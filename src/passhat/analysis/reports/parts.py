"""What a report is made of: each part a frozen value with its numbers and their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from passhat.dataclass import dataclass, result_dataclass
from passhat.errors import ArgumentError
from passhat.records import ErrorPolicy
from passhat.stats.estimate import Estimate, Number, Scope, Unavailable
from passhat.stats.variance import FamilyShares

if TYPE_CHECKING:
    from passhat.analysis.reports.report import SystemReport

MUCH_LUCK, LITTLE_LUCK = 0.5, 0.2
"""From this share of luck on, and below that one, sentences say what it means."""


@result_dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One number in both scopes: the value is the same, the intervals are not.

    `this_suite` treats the tasks as fixed, `tasks_like_these` as a sample of more of their kind.
    """

    name: str
    this_suite: Number
    tasks_like_these: Number

    @property
    def value(self) -> float | None:
        """The number itself, or None if it cannot be known."""
        number = self.this_suite or self.tasks_like_these
        return number.value if isinstance(number, Estimate) else None

    @property
    def reason(self) -> str | None:
        """Why there is no number, if there is none."""
        both = (self.this_suite, self.tasks_like_these)
        reasons = [number.reason for number in both if isinstance(number, Unavailable)]
        return reasons[0] if len(reasons) == len(both) else None

    def within(self, scope: Scope) -> Number:
        return self.this_suite if scope == "this suite" else self.tasks_like_these


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """How much was run: tasks, trials, and how evenly the runs fall on the tasks."""

    tasks: int
    trials: int
    errors: int
    fewest_runs: int
    typical_runs: int
    most_runs: int

    @property
    def equal_runs(self) -> bool:
        return self.fewest_runs == self.most_runs


@result_dataclass(frozen=True, slots=True, kw_only=True)
class VarianceSplit:
    """Where the spread of scores comes from: tasks that differ in difficulty, and luck.

    `luck_share` is the part of a single run's variance that running it again would redraw (with
    its interval in `luck`), `icc` the rest. `reliability` is how well the mean of the typical
    number of runs tells tasks apart. `families` splits what is between tasks into families and the
    tasks inside them, where tasks have families.
    """

    between_tasks: float
    within_tasks: float
    luck_share: float
    luck: Number
    icc: Number
    reliability: Number
    families: FamilyShares | Unavailable | None = None

    @property
    def leaves_luck_open(self) -> bool:
        """Whether the share of luck has no interval, or one from little luck to much."""
        bounds = self.luck.interval if isinstance(self.luck, Estimate) else None
        return bounds is None or (bounds.low < LITTLE_LUCK and bounds.high >= MUCH_LUCK)


@result_dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """The share of tasks that passed in each whole round of the suite: first runs, second runs.

    Leaderboards quote the population standard deviation of these, or the standard error of their
    mean; both say how far rounds differ by luck, not how far another set of tasks would.
    """

    means: tuple[float, ...]
    population_sd: float
    standard_error: float


@result_dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """pass@k or pass^k of this suite at one k; its interval holds for the whole curve at once."""

    k: int
    estimate: Number


@result_dataclass(frozen=True, slots=True, kw_only=True)
class RunOrder:
    """Descriptions that depend on the order of runs, 0 to 100, averaged over tasks.

    If runs are exchangeable they describe a sequence; they do not estimate a property of the
    agent. `decay[k - 1]` is over the tasks with at least k runs.
    """

    decay: tuple[float, ...]
    variance_amplification: float | Unavailable
    graceful_degradation: float
    flips: float | Unavailable
    tasks: int


@result_dataclass(frozen=True, slots=True, kw_only=True)
class Decay:
    """How reliability falls as more successes in a row are asked for.

    `beyond` continues pass^k past the runs there are, by the beta-binomial model, and is labelled
    as such.
    """

    pass_hat: tuple[CurvePoint, ...]
    pass_at: tuple[CurvePoint, ...]
    beyond: tuple[CurvePoint, ...]
    run_order: RunOrder | Unavailable


@result_dataclass(frozen=True, slots=True, kw_only=True)
class BarCount:
    """How many tasks have a pass^k that clears their bar: certified, not guessed from noise.

    `bar` is the one bar of all tasks, None if each has its own in `bars`. `model_share` is
    the share by the beta-binomial model, labelled as such.
    """

    k: int
    bar: float | None
    bars: Mapping[str, float]
    above: tuple[str, ...]
    below: tuple[str, ...]
    undetermined: tuple[str, ...]
    model_share: Number


@result_dataclass(frozen=True, slots=True, kw_only=True)
class ErrorSplit:
    """Errored trials apart from failures, and every metric under the other policy.

    `otherwise` holds the metrics as they would be under the policy that was not chosen; it is
    empty if nothing errored.
    """

    policy: ErrorPolicy
    count: int
    rate: Number
    kinds: Mapping[str, int]
    otherwise: Mapping[str, Metric]


@result_dataclass(frozen=True, slots=True, kw_only=True)
class ResourceUse:
    """What trials took (tokens, cost, seconds, turns, tool calls), by how they ended.

    `association` is the correlation with passing inside tasks, so that hard tasks being long
    ones does not count. Quantiles need the rows: they are Unavailable if only counts were read.
    """

    name: str
    trials: int
    mean: Number
    passed: Number
    failed: Number
    errored: Number
    difference: Number
    association: Number
    median: Number
    p95: Number
    per_success: Number
    per_streak: Mapping[int, Number]


@result_dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion:
    """Tasks that a number leaves out, and why."""

    what: str
    tasks: tuple[str, ...]
    reason: str


@result_dataclass(frozen=True, slots=True, kw_only=True)
class Unsettled:
    """Something the trials do not decide, and how many more runs would, at the observed rates.

    `more_runs` counts runs of each task named; None means that no number of runs would do.
    """

    what: str
    tasks: tuple[str, ...]
    more_runs: int | None
    advice: str


@result_dataclass(frozen=True, slots=True, kw_only=True)
class Leaders:
    """The systems that may truly be first at pass^k, the best first; `values` are their pass^k.

    A single one is ahead of all others that were `compared`; several are tied with one another.
    `ties` are all groups of tied systems. `left_out` counts the tasks of which some system compared
    has no pass^k. `here` is the system that is ahead of all others in `names` on these very
    tasks, where the runs show that but the tasks do not show it for tasks like these.
    """

    k: int
    names: tuple[str, ...]
    values: tuple[float, ...]
    compared: tuple[str, ...]
    tasks: int
    left_out: int
    scope: Scope
    method: str
    confidence: float
    ties: tuple[tuple[str, ...], ...] = ()
    here: str | None = None


def system_named(systems: Sequence[SystemReport], name: str | None = None) -> SystemReport:
    """The report of one system (the only one, if none is named)."""
    found = [one for one in systems if name is None or one.name == name]
    if len(found) != 1:
        names = ", ".join(repr(one.name) for one in systems)
        raise ArgumentError("system", f"must be one of {names}", name)
    return found[0]
