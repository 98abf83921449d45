"""What is measured of one system: parts with their numbers, and a table of its tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from itertools import repeat
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from passhat.analysis.reports.dependence import Disturbance, SeedSpread
from passhat.analysis.reports.evidence import Counts, Evidence, Floats
from passhat.analysis.reports.factors import Factor, HalMetric
from passhat.arguments import HEADLINE_K, probability
from passhat.dataclass import dataclass, lazy_field, replace, result_dataclass
from passhat.errors import ArgumentError
from passhat.messages import plural, quoted, rounded, short_repr
from passhat.records import ErrorPolicy, Tally
from passhat.records.trial import STOPPED_EARLY, natural_key
from passhat.stats.estimate import Estimate, Interval, Number, Scope, Unavailable
from passhat.stats.proportions import proportion_bounds
from passhat.stats.task_labels import label_tasks, runs_to_label
from passhat.stats.variance import FamilyShares, NoiseSources

MUCH_LUCK, LITTLE_LUCK = 0.5, 0.2
"""From this share of luck on, and below that one, sentences say what it means."""


@result_dataclass(frozen=True, slots=True, kw_only=True)
class Corrected:
    """A number as people would have graded the trials, from so many of their labels.

    `limits` are where it lies whatever the judge's errors are, where labels give no number.
    """

    this_suite: Number
    tasks_like_these: Number
    limits: Interval | None
    labels: int


@result_dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One number in both scopes: the value is the same, the intervals are not.

    `this_suite` treats the tasks as fixed, `tasks_like_these` as a sample of more of their kind.
    `corrected` is what labels of people make of it, where a judge graded and there are any.
    Intervals take most of the time and are computed on first use: where both numbers are known to
    have a value, `known_value` is what it is. Of one of many systems it may be known without them
    that the whole interval for these tasks lies below the line: then the number is `refuted`.
    """

    name: str
    this_suite: lazy_field[Number] = lazy_field(shown=True)
    tasks_like_these: lazy_field[Number] = lazy_field(shown=True)
    corrected: Corrected | None = None
    known_value: lazy_field[float | None] = lazy_field(default=None)
    refuted: lazy_field[bool] = lazy_field(default=False)

    @property
    def value(self) -> float | None:
        """The number itself, or None if it cannot be known."""
        if self.known_value is not None:
            return self.known_value
        number = self.this_suite or self.tasks_like_these
        return number.value if isinstance(number, Estimate) else None

    def __str__(self) -> str:
        return rounded(self.this_suite or self.tasks_like_these)

    @property
    def interval(self) -> Interval | None:
        """For these tasks, if it is known."""
        return self.this_suite.interval if isinstance(self.this_suite, Estimate) else None

    @property
    def low(self) -> float | None:
        """The lower end for these tasks."""
        return None if self.interval is None else self.interval.low

    @property
    def high(self) -> float | None:
        """The upper end for these tasks."""
        return None if self.interval is None else self.interval.high

    @property
    def similar_tasks(self) -> Number:
        """The number with its interval for other tasks of the kind: `tasks_like_these`."""
        return self.tasks_like_these

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
    """How much was run: tasks, trials, and how evenly the runs fall on the tasks.

    `conditions` is how many of the tasks each task without its conditions is.
    """

    tasks: int
    trials: int
    errors: int
    fewest_runs: int
    typical_runs: int
    most_runs: int
    conditions: int = 1

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
    """pass@k or pass^k of these tasks at one k; its interval holds for the whole curve at once."""

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
    tasks, where the runs show that but the tasks do not show it for similar tasks. `ranks` are the
    first and the last place that each may truly hold. With `too_few_tasks` no two could be told
    apart, whatever they did.
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
    ranks: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    too_few_tasks: bool = False


# One system: all of its parts, and the k at which it is judged.

_LARGEST_SHOWN_K = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class StepChain:
    """How far runs of tasks with steps get.

    `steps` has the pass rate of each step among the runs that reached it, in order. `all_steps` is
    their product: the chance that a run passes every step.
    """

    steps: Mapping[str, Estimate]
    all_steps: Estimate | Unavailable

    @property
    def weakest(self) -> str:
        """The step at which most of those that reach it fail."""
        return min(self.steps, key=lambda name: self.steps[name].value)


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemReport:
    """Everything measured about one system.

    Parts that few people look at (lazy fields, levels, tags) are measured on first use: `noise` is
    how much of the mean's interval comes from runs and how much from tasks, `decay` what more
    attempts at every task would show and in what order the runs came, `unsettled` what the trials
    do not decide and how many more runs would, `factors` what moves the result, `hal` metrics
    under the names of another tool. In a report of one system, for each k above half of a task's
    runs, `width_at_2k` is about how wide the interval of pass^k for these tasks would be with 2k
    runs of each. `asked_k` is the k that a gate asked about: every sentence speaks of it;
    `asked_share` is the pass^k that it demanded. `counts_only` says that gates ended its run early,
    and that it is read without its rates.
    """

    name: str
    design: Design
    metrics: Mapping[str, Metric]
    variance: lazy_field[VarianceSplit | Unavailable] = lazy_field()
    noise: lazy_field[NoiseSources | Unavailable] = lazy_field()
    seeds: SeedSpread | Unavailable
    rounds: Rounds | Unavailable
    disturbances: tuple[Disturbance, ...]
    decay: lazy_field[Decay] = lazy_field()
    tasks: TaskTable
    bars: tuple[BarCount, ...]
    errors: ErrorSplit
    features: Mapping[str, ResourceUse]
    tools: Mapping[str, Estimate]
    unsettled: lazy_field[tuple[Unsettled, ...]] = lazy_field()
    excluded: tuple[Exclusion, ...]
    factors: lazy_field[tuple[Factor, ...]] = lazy_field()
    hal: lazy_field[Mapping[str, HalMetric]] = lazy_field()
    levels: Mapping[str, SystemReport] = field(default_factory=dict)
    tags: Mapping[str, SystemReport] = field(default_factory=dict)
    width_at_2k: Mapping[int, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    asked_k: int | None = None
    asked_share: float | None = None
    steps: StepChain | None = None
    counts_only: bool = False

    def __repr__(self) -> str:
        known = [k for k in self.ks if self.pass_hat(k).value is not None]
        shown = dict.fromkeys([*known[:1], *[k for k in known if k <= _LARGEST_SHOWN_K][-1:]])
        numbers = ", ".join(
            f"{'pass@1' if k == 1 else f'pass^{k}'} {rounded(self.pass_hat(k).this_suite)}"
            for k in shown
        )
        shape = f"{plural(self.design.tasks, 'task')}, {plural(self.design.trials, 'trial')}"
        return f"<SystemReport {quoted(self.name)}: {numbers or 'no number'}; {shape}>"

    @property
    def ks(self) -> tuple[int, ...]:
        """The k for which the metrics are stated."""
        return tuple(int(name[5:]) for name in self.metrics if name.startswith("pass^"))

    @property
    def mean_score(self) -> Metric:
        """The mean score of a run."""
        return self.metrics["mean_score"]

    @property
    def is_corrected(self) -> bool:
        """Whether labels of people correct its pass@1; what they do not is by the judge."""
        rate = self.metrics.get("pass^1")
        return rate is not None and rate.corrected is not None and bool(rate.corrected.this_suite)

    def pass_hat(self, k: int) -> Metric:
        """pass^k: the chance that k attempts at a task all succeed (reliability@k)."""
        return self._of_attempts("^", k)

    def pass_at(self, k: int) -> Metric:
        """pass@k: the chance that at least one of k attempts succeeds."""
        return self._of_attempts("@", k)

    def _of_attempts(self, sign: str, k: int) -> Metric:
        metric = self.metrics.get(f"pass{sign}{k}")
        if metric is None:
            known = ", ".join(map(str, self.ks)) or "none"
            raise ArgumentError("k", f"must be one that was measured ({known}; see ks=)", k)
        return metric


def without_rates(system: SystemReport) -> SystemReport:
    """The system as people read it where gates ended its run early: counts, and no rate."""
    none = Unavailable(STOPPED_EARLY)
    metrics = {
        name: Metric(name=metric.name, this_suite=none, tasks_like_these=none)
        for name, metric in system.metrics.items()
    }
    return replace(
        system,
        metrics=metrics,
        variance=none,
        noise=none,
        seeds=none,
        rounds=none,
        disturbances=(),
        decay=Decay(pass_hat=(), pass_at=(), beyond=(), run_order=none),
        bars=(),
        unsettled=(),
        factors=(),
        hal={},
        levels={},
        tags={},
        width_at_2k={},
        steps=None,
        counts_only=bool(metrics),
    )


def system_named(
    systems: Sequence[SystemReport], name: str | None = None, *, then: str = ""
) -> SystemReport:
    """The report of one system (the only one, if none is named); `then` is what it is asked."""
    chosen = [system for system in systems if name is None or system.name == name]
    if len(chosen) != 1:
        names = ", ".join(repr(system.name) for system in systems)
        rule = f"must be one of {names}"
        if name is None and systems:
            rule = f"must be given, one of {names}: report.system({systems[0].name!r}){then}"
        raise ArgumentError("system", rule, name)
    return chosen[0]


def headline_k(system: SystemReport) -> int:
    """The k of the opening sentence: the largest up to five that every task has runs for.

    Over fewer tasks at a larger k, the number would be of another suite. What a gate asked about
    comes first.
    """
    asked, ks = system.asked_k, system.ks
    if asked in ks and system.pass_hat(asked).value is not None:
        return asked
    for k in sorted(ks, reverse=True):
        modest = k <= min(HEADLINE_K, system.design.fewest_runs)
        if modest and system.pass_hat(k).value is not None:
            return k
    known = [k for k in ks if system.pass_hat(k).value is not None]
    whole = [k for k in known if k <= system.design.fewest_runs] or known
    return min(whole, default=min(ks, default=1))


def common_k(systems: Iterable[SystemReport]) -> int:
    """The largest headline k that most systems have runs for; one with fewer is left blank."""
    every = list(systems)
    measured = [system for system in every if not all_errored(system)] or every
    leads = [headline_k(system) for system in measured]
    judged = {k: sum(map(_is_judged, measured, repeat(k), leads)) for k in sorted(set(leads))}
    fit = [k for k, count in judged.items() if 2 * count > len(measured)]
    some = [k for k, count in judged.items() if count]
    return max(fit) if fit else min(some or leads)


def is_judged(system: SystemReport, k: int) -> bool:
    """Whether pass^k is known over as many tasks as the system's own headline."""
    return _is_judged(system, k, headline_k(system))


def _is_judged(system: SystemReport, k: int, headline: int) -> bool:
    metric = system.metrics.get(f"pass^{k}")
    if metric is None or metric.value is None or all_errored(system):
        return False
    return k <= headline or not is_partial(metric)


def all_errored(system: SystemReport) -> bool:
    """Whether every trial errored: then nothing was measured, however errors are counted."""
    return 0 < system.design.trials == system.design.errors


def is_partial(metric: Metric) -> bool:
    """Whether a number leaves out tasks that have too few runs."""
    number = metric.this_suite
    return isinstance(number, Estimate) and number.excluded_tasks > 0


# The tasks of a system, in columns and as rows.

Label = Literal["solid", "flaky", "broken", "undecided"]

LABELS: tuple[Label, ...] = ("solid", "flaky", "broken", "undecided")


@result_dataclass(frozen=True, slots=True, kw_only=True)
class TaskRow:
    """One task: how often it passed, and its label.

    `sequence` writes the runs in order as P, F and E; it is None if only counts were read.
    """

    name: str
    runs: int
    passed: int
    failed: int
    errored: int
    rate: Estimate
    mean_score: float
    label: Label
    chance: float
    more_runs: int | None
    sequence: str | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelColumns:
    """The label of each task, its chance, and the runs that would give it one if it has none."""

    labels: NDArray[np.int8]
    chance: Floats
    more_runs: Counts


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TaskTable(Sequence[TaskRow]):
    """The tasks of a system in columns; rows and labels are made on first use.

    `more_runs` is 0 where a task has its label, or where no number of runs would give it one.
    """

    names: tuple[str, ...]
    passed: NDArray[np.int64]
    failed: NDArray[np.int64]
    errored: NDArray[np.int64]
    runs: NDArray[np.int64]
    rate: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    mean_score: NDArray[np.float64]
    judged: lazy_field[LabelColumns] = lazy_field()
    sequences: tuple[str, ...] | None
    confidence: float

    @property
    def labels(self) -> NDArray[np.int8]:
        """The place of each task's label in LABELS."""
        return self.judged.labels

    @property
    def chance(self) -> Floats:
        """The posterior chance of each task's likeliest label."""
        return self.judged.chance

    @property
    def more_runs(self) -> Counts:
        return self.judged.more_runs

    def __repr__(self) -> str:
        counts = ", ".join(f"{count:,} {label}" for label in LABELS if (count := self.count(label)))
        size = plural(len(self), "task") + (f" ({counts})" if counts else "")
        rate = [f"mean rate {self.rate.mean():.3g}"] if len(self) else []
        return short_repr("TaskTable", size, *rate, see="[0], .labelled('flaky'), .names")

    def __len__(self) -> int:
        return len(self.names)

    @overload
    def __getitem__(self, index: int) -> TaskRow: ...
    @overload
    def __getitem__(self, index: slice) -> list[TaskRow]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [self._row(i) for i in range(*index.indices(len(self)))]
        return self._row(range(len(self))[index])

    def __iter__(self) -> Iterator[TaskRow]:
        return (self._row(i) for i in range(len(self)))

    def count(self, value: Any) -> int:
        """How many tasks have a label: solid, flaky, broken or undecided (or equal a row)."""
        if value in LABELS:
            return int(np.count_nonzero(self.labels == LABELS.index(value)))
        return sum(row == value for row in self)

    def labelled(self, label: Label, most: int | None = None) -> list[TaskRow]:
        """The tasks with a label (at most so many), the least settled first."""
        return [self._row(i) for i in self._places(label)[:most]]

    def names_labelled(self, label: Label) -> tuple[str, ...]:
        """Their names alone: cheap, however many there are."""
        return tuple(self.names[i] for i in self._places(label))

    def failing(self, most: int | None = None) -> list[TaskRow]:
        """The tasks that did not always pass (at most so many), those that also passed first."""
        rows = np.flatnonzero(self.passed < self.runs)
        return [self._row(i) for i in self._least_settled(rows)[:most]]

    def wider_than(self, width: float) -> list[TaskRow]:
        """The tasks whose interval is wider than `width`, widest first: those to run more often."""
        wide = self.high - self.low
        places = np.flatnonzero(wide > probability("width", width)).tolist()
        order = sorted(places, key=lambda i: (-wide[i], natural_key(self.names[i])))
        return [self._row(i) for i in order]

    def named(self, name: str) -> TaskRow:
        return self._row(self.names.index(name))

    def _places(self, label: Label) -> list[int]:
        return self._least_settled(np.flatnonzero(self.labels == LABELS.index(label)))

    def _least_settled(self, rows: NDArray[np.intp]) -> list[int]:
        """Those nearest to a coin flip first; of equals, by name as people sort names."""
        away = np.abs(self.rate - 0.5)
        return sorted(rows.tolist(), key=lambda i: (away[i], natural_key(self.names[i])))

    def _row(self, i: int) -> TaskRow:
        return TaskRow(
            name=self.names[i],
            runs=int(self.runs[i]),
            passed=int(self.passed[i]),
            failed=int(self.failed[i]),
            errored=int(self.errored[i]),
            rate=Estimate(
                value=float(self.rate[i]),
                interval=Interval(float(self.low[i]), float(self.high[i])),
                method="Wilson",
                confidence=self.confidence,
                scope="this suite",
                tasks=1,
                runs=int(self.runs[i]),
            ),
            mean_score=float(self.mean_score[i]),
            label=LABELS[self.labels[i]],
            chance=float(self.chance[i]),
            more_runs=int(self.more_runs[i]) or None,
            sequence=None if self.sequences is None else self.sequences[i],
        )


def tabulate_tasks(
    tally: Tally, evidence: Evidence, sequences: tuple[str, ...] | None, *, confidence: float
) -> TaskTable:
    """All tasks of a system that have a run."""
    low, high = proportion_bounds(evidence.passes, evidence.runs, confidence=confidence)
    rows = evidence.rows
    return TaskTable(
        names=evidence.tasks,
        passed=evidence.passes,
        failed=tally.failed[rows],
        errored=tally.errored[rows],
        runs=evidence.runs,
        rate=evidence.passes / evidence.runs,
        low=low,
        high=high,
        mean_score=evidence.score_total / evidence.runs,
        judged=partial(_labels, evidence.runs, evidence.passes),
        sequences=None if sequences is None else tuple(sequences[i] for i in rows),
        confidence=confidence,
    )


def _labels(runs: Counts, passes: Counts) -> LabelColumns:
    if not runs.size:
        none = np.zeros(0, dtype=np.int64)
        return LabelColumns(labels=none.astype(np.int8), chance=np.zeros(0), more_runs=none)
    labelled = label_tasks(runs, passes)
    codes = np.select([labelled.labels == label for label in LABELS], range(len(LABELS)))
    return LabelColumns(
        labels=codes.astype(np.int8),
        chance=np.max((labelled.solid, labelled.flaky, labelled.broken), axis=0),
        more_runs=runs_to_label(runs, passes, labelled.labels),
    )
