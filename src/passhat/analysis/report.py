"""The answer: everything measured about some trials, one SystemReport a system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from passhat.analysis.headline import Leaders as Leaders
from passhat.analysis.later import Later
from passhat.analysis.seed_grid import SeedSpread as SeedSpread
from passhat.analysis.task_rows import LABELS, Label, TaskRow, TaskTable
from passhat.brief import brief, brief_fields, few, quoted, rounded
from passhat.errors import ArgumentError, plural
from passhat.records import ErrorPolicy, Source
from passhat.stats.estimate import Estimate, Scope, Unavailable

if TYPE_CHECKING:
    from passhat.analysis.plots import Plots

__all__ = [
    "LABELS",
    "BarCount",
    "CurvePoint",
    "Decay",
    "Design",
    "ErrorSplit",
    "Exclusion",
    "Feature",
    "Label",
    "Leaders",
    "Metric",
    "Number",
    "Options",
    "Provenance",
    "Report",
    "Rounds",
    "RunOrder",
    "SeedSpread",
    "SystemReport",
    "TaskRow",
    "TaskTable",
    "Unsettled",
    "VarianceSplit",
]

Number = Estimate | Unavailable

_LARGEST_SHOWN_K, _MOST_SHOWN = 5, 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One number in both scopes: the value is the same, the intervals are not.

    `this_suite` treats the tasks as fixed, `tasks_like_these` as a sample of more of their kind.
    """

    name: str
    this_suite: Number
    tasks_like_these: Number

    __repr__ = brief_fields

    @property
    def value(self) -> float | None:
        """The number itself, or None where it cannot be known."""
        number = self.this_suite or self.tasks_like_these
        return number.value if isinstance(number, Estimate) else None

    @property
    def reason(self) -> str | None:
        """Why there is no number, where there is none."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class VarianceSplit:
    """Where the spread of scores comes from: tasks that differ in difficulty, and luck.

    `luck_share` is the part of a single run's variance that running it again would redraw (with
    its interval in `luck`), `icc` the rest. `reliability` is how well the mean of the typical
    number of runs tells tasks apart.
    """

    between_tasks: float
    within_tasks: float
    luck_share: float
    luck: Number
    icc: Number
    reliability: Number

    __repr__ = brief_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """The share of tasks that passed in each whole round of the suite: first runs, second runs.

    Leaderboards quote the population standard deviation of these, or the standard error of their
    mean; both say how far rounds differ by luck, not how far another set of tasks would.
    """

    means: tuple[float, ...]
    population_sd: float
    standard_error: float

    __repr__ = brief_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """pass@k or pass^k of this suite at one k; its interval holds for the whole curve at once."""

    k: int
    estimate: Number

    __repr__ = brief_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOrder:
    """Descriptions that depend on the order of runs, 0 to 100, averaged over tasks.

    Where runs are exchangeable they describe a sequence; they do not estimate a property of the
    agent. `decay[k - 1]` is over the tasks with at least k runs.
    """

    decay: tuple[float, ...]
    variance_amplification: float | Unavailable
    graceful_degradation: float
    flips: float | Unavailable
    tasks: int

    __repr__ = brief_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Decay:
    """How reliability falls as more successes in a row are asked for.

    `beyond` continues pass^k past the runs there are, from the beta-binomial model: a model's
    word, not an estimate, and labelled so.
    """

    pass_hat: tuple[CurvePoint, ...]
    pass_at: tuple[CurvePoint, ...]
    beyond: tuple[CurvePoint, ...]
    run_order: RunOrder | Unavailable

    __repr__ = brief_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class BarCount:
    """How many tasks have a pass^k that clears their bar: certified, not guessed from noise.

    `bar` is the one bar of all tasks, None where each has its own in `bars`. `model_share` is
    what the beta-binomial model says of the share, labelled as a model's word.
    """

    k: int
    bar: float | None
    bars: Mapping[str, float]
    above: tuple[str, ...]
    below: tuple[str, ...]
    undetermined: tuple[str, ...]
    model_share: Number

    __repr__ = brief_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorSplit:
    """Errored trials apart from failures, and every metric under the other policy.

    `otherwise` holds the metrics as they would be under the policy that was not chosen; it is
    empty where nothing errored.
    """

    policy: ErrorPolicy
    count: int
    rate: Number
    kinds: Mapping[str, int]
    otherwise: Mapping[str, Metric]

    __repr__ = brief_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """What trials took (tokens, cost, seconds, turns, tool calls), by how they ended.

    `association` is the correlation with passing inside tasks, so that hard tasks being long
    ones does not count. Quantiles need the rows: they are Unavailable where only counts were read.
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

    __repr__ = brief_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion:
    """Tasks that a number leaves out, and why: nothing is dropped in silence."""

    what: str
    tasks: tuple[str, ...]
    reason: str

    __repr__ = brief_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsettled:
    """Something the trials do not decide, and how many more runs would, at the observed rates.

    `more_runs` counts runs of each task named; None means that no number of runs would do.
    """

    what: str
    tasks: tuple[str, ...]
    more_runs: int | None
    advice: str

    __repr__ = brief_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemReport:
    """Everything measured about one system; `levels` and `tags` when they are looked at."""

    name: str
    design: Design
    metrics: Mapping[str, Metric]
    variance: VarianceSplit | Unavailable
    seeds: SeedSpread | Unavailable
    rounds: Rounds | Unavailable
    decay: Decay
    tasks: TaskTable
    bars: tuple[BarCount, ...]
    errors: ErrorSplit
    features: Mapping[str, Feature]
    tools: Mapping[str, Estimate]
    unsettled: tuple[Unsettled, ...]
    excluded: tuple[Exclusion, ...]
    levels: Mapping[str, SystemReport] = field(default_factory=dict)
    tags: Mapping[str, SystemReport] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        known = [k for k in self.ks if self.pass_hat(k).value is not None]
        told = dict.fromkeys([*known[:1], *[k for k in known if k <= _LARGEST_SHOWN_K][-1:]])
        numbers = "".join(f", pass^{k} {rounded(self.pass_hat(k).this_suite)}" for k in told)
        shape = f"{plural(self.design.tasks, 'task')}, {plural(self.design.trials, 'trial')}"
        return f"<SystemReport {quoted(self.name)}: {shape}{numbers}>"

    @property
    def ks(self) -> tuple[int, ...]:
        """The k for which the metrics are stated."""
        return tuple(int(name[5:]) for name in self.metrics if name.startswith("pass^"))

    @property
    def mean_score(self) -> Metric:
        return self.metrics["mean_score"]

    def pass_hat(self, k: int) -> Metric:
        """pass^k: the chance that k attempts at a task all succeed (reliability@k)."""
        return self._of_attempts("^", k)

    def pass_at(self, k: int) -> Metric:
        """pass@k: the chance that at least one of k attempts succeeds."""
        return self._of_attempts("@", k)

    def _of_attempts(self, sign: str, k: int) -> Metric:
        found = self.metrics.get(f"pass{sign}{k}")
        if found is None:
            known = ", ".join(map(str, self.ks)) or "none"
            raise ArgumentError("k", f"must be one that was measured ({known}; see ks=)", k)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the caller chose: enough, with the input, to make the same report again."""

    ks: tuple[int, ...] | None
    confidence: float
    errors: ErrorPolicy
    bars: Mapping[str, float] | float | None
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where a report comes from: input, versions, options."""

    input_sha256: str
    sources: tuple[Source, ...]
    versions: Mapping[str, str]
    options: Options

    __repr__ = brief_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything measured about the systems of one table of trials."""

    systems: tuple[SystemReport, ...]
    provenance: Provenance
    standing: Later[Leaders | Unavailable] = field(repr=False, compare=False)
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        if len(self.systems) == 1:
            return f"<Report: {repr(self.systems[0])[1:-1]}; see .system(), .plots>"
        told = few(f"{quoted(one.name)} {rounded(one.mean_score)}" for one in self.systems)
        head = f"Report of {plural(len(self.systems), 'system')} by mean_score"
        return brief(head, *told, see=".systems, .plots, print()")

    def __str__(self) -> str:
        lines = [f"  {system!r}" for system in self.systems[:_MOST_SHOWN]]
        more = len(self.systems) - len(lines)
        lines += [f"  and {more:,} more"] if more else []
        return "\n".join([f"<Report: {plural(len(self.systems), 'system')}", *lines]) + ">"

    @property
    def leaders(self) -> Leaders | Unavailable:
        """Who is ahead, as `rank` has it at the same pass^k."""
        return self.standing.look()

    @property
    def plots(self) -> Plots:
        """The pictures of this report."""
        from passhat.analysis.plots import Plots  # drawing is loaded by those who draw

        return Plots(self)

    def system(self, name: str | None = None) -> SystemReport:
        """The report of one system (the only one, if none is named)."""
        found = [s for s in self.systems if name is None or s.name == name]
        if len(found) != 1:
            names = ", ".join(repr(s.name) for s in self.systems)
            raise ArgumentError("system", f"must be one of {names}", name)
        return found[0]
