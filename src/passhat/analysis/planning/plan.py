"""How many runs and tasks an answer needs: before any run, or from the trials there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache, partial
from itertools import count, takewhile
from math import floor, hypot, sqrt
from operator import attrgetter
from typing import Any, Literal

import numpy as np

from passhat.analysis.reports.evidence import Evidence, count_evidence
from passhat.analysis.reports.factors import level_p_values, level_tables
from passhat.analysis.reports.metrics import RunGroups, SystemTrials, measure_metrics
from passhat.analysis.reports.unsettled import half_width as printed_half_width
from passhat.analysis.reports.unsettled import seen_design
from passhat.arguments import (
    CONFIDENCE,
    ReportOptions,
    confidence_level,
    instance,
    probability,
    whole_number,
)
from passhat.dataclass import Displayed, dataclass, lazy_field, result_dataclass
from passhat.errors import ArgumentError
from passhat.messages import plural, points, rounded, short, short_repr
from passhat.records import ErrorPolicy, Tally, Trials
from passhat.records.trials import one_tally
from passhat.stats.arguments import Floats
from passhat.stats.assurance import (
    ASSURANCE,
    CLOSE,
    CLOSE_SHARE,
    POWER_SUITES,
    WIDTH_SUITES,
    PossibleComparisons,
    PossibleReports,
    PossibleSuites,
    fewest,
    possible_suites,
    prior_suites,
    with_families,
    with_tasks,
)
from passhat.stats.estimate import TASKS_LIKE_THESE, THIS_SUITE, Estimate, Interval, Unavailable
from passhat.stats.factors import SIGNIFICANT, level_components
from passhat.stats.population_bounds import grouping
from passhat.stats.sample_size import (
    GUESSED_ICC,
    NO_SPREAD,
    UNKNOWN,
    WIDEST,
    DetectableDifference,
    GroupSpread,
    ObservedDesign,
    Spread,
    SuitePlan,
    bounded_variance,
    confidence_band,
    detectable_difference,
    expected_half_widths,
    observed_variance,
    plan_from,
    plan_suite,
    recommend_runs,
    runs_for_difference,
    smallest_count,
    tasks_for_difference,
    zero_failure_runs,
)
from passhat.stats.variance import icc, variance_components

ZERO_FAILURE_RATES = (0.9, 0.95, 0.99)
"""Rates for which a plan says how many runs without a failure show them."""

DEFAULT_TASKS = 20

# A report whose interval is wider than planned by less is as planned.
_CLOSE = 1.25
_MOST_RUNS = 100_000
_RUN_STEPS = (1, 2, 3, 5, 10, 20, 50)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Displayed):
    """What a design shows, what a target takes, and where more runs stop helping.

    `designs` are half-widths at growing numbers of runs; `chosen` is the design asked about. Where
    no runs are given, it is the one that was run, or else the one that reaches the target. Both
    are of the mean, by formula; `assured` is what most reports will reach, also of pass^k, and
    `assured_comparison` what tells two agents apart by it with the power asked for: both are drawn
    at first look, and for a `k` above 1 the difference has no formula. Where neither runs nor a
    difference are asked about, `detectable` and the tasks that similar tasks take are at the runs
    that reach the target: a plan names one number of them.
    """

    assumptions: Assumptions
    chosen: SuitePlan
    designs: tuple[SuitePlan, ...]
    one_task_runs: int
    zero_failures: tuple[tuple[float, int], ...]
    detectable: DetectableDifference | Unavailable
    difference: float | None
    tasks_for_difference: int | None
    runs_for_difference: int | Unavailable | None
    budgets: tuple[BudgetPlan, ...]
    power: float
    confidence: float
    notes: tuple[str, ...] = ()
    assured: lazy_field[Assured | Unavailable] = lazy_field()
    assured_comparison: lazy_field[AssuredComparison | Unavailable] = lazy_field()

    # Old names, for one release.
    promise = property(attrgetter("assured"))
    comparison = property(attrgetter("assured_comparison"))

    @property
    def advised_runs(self) -> int | Unavailable | None:
        """Trials of each task that reach the target on these tasks, as the screen advises them."""
        drawn = self.assured
        return drawn.runs if isinstance(drawn, Assured) else self.chosen.runs_this_suite

    def __repr__(self) -> str:
        chosen, drawn = self.chosen, self.assured
        designs = drawn.designs if isinstance(drawn, Assured) else self.designs
        design = next((row for row in designs if row.runs == self.advised_runs), chosen)
        size = f"{plural(chosen.tasks, 'task')} x {plural(design.runs, 'trial')}"
        here = f"±{rounded(design.this_suite)} for these tasks"
        there = f"±{rounded(design.tasks_like_these)} for similar tasks"
        return short_repr(
            "Plan", f"{size} give {here}", there, see=".chosen, .designs, .detectable"
        )


MOST_TASKS = 10_000
"""A hundred possible suites are drawn: with more tasks they take gigabytes."""


def plan(
    trials: Trials | Tally | None = None,
    *,
    tasks: int | None = None,
    runs: int | None = None,
    half_width: float = 0.05,
    difference: float | None = None,
    power: float = 0.8,
    rate: float | None = None,
    correlation: float | None = None,
    task_correlation: float = 0.5,
    cost_ratio: float | None = None,
    spending: Spending | None = None,
    k: int = 1,
    assurance: float = ASSURANCE,
    confidence: float = CONFIDENCE,
    errors: ErrorPolicy = "fail",
) -> Plan:
    """How many runs and tasks are needed; `trials` replace the guesses by what was observed.

    `rate` is the expected pass rate and `correlation` the ICC: how far the task decides the
    outcome. `half_width` is the wanted precision of the mean, `difference` the difference of two
    agents to detect. `cost_ratio` is what a new task costs, in runs of one. With `k` both are of
    pass^k; `assurance` is the share of reports that are to be as narrow as asked.

    >>> planned = plan(tasks=50, runs=5, half_width=0.05)
    >>> planned.one_task_runs, planned.chosen.tasks_needed
    (385, 231)
    """
    options = ReportOptions.checked(confidence=confidence, errors=errors)
    tally = None if trials is None else one_tally("trials", trials, purpose="to plan from")
    evidence = None if tally is None else count_evidence(tally, options)
    k = whole_number("k", k)
    if evidence is not None and k > 1:  # whatever else a trial earns, pass^k asks if it passed
        scores = evidence.passes.astype(np.float64)
        evidence = replace(evidence, score_total=scores, score_squares=scores)
    level = options.confidence
    base = assume(evidence, rate, correlation, task_correlation, level)
    groupings = () if trials is None else SystemTrials.of(trials, options).groupings
    if evidence is not None:
        base = replace(base, groups=spread_of_groups(evidence, groupings, "mean_score", 1, level))
    seen = seen_before(evidence, level)
    if seen is not None and seen.constant and (rate is not None or correlation is not None):
        # Runs that all ended alike say nothing of how others will spread.
        seen, base = None, replace(base, measured=False, icc_interval=None)
    power = probability("power", power, open_ends=True)
    if tasks is not None and tasks > MOST_TASKS:
        raise ArgumentError("tasks", f"can be planned up to {MOST_TASKS:,}", tasks)
    target = _Target(
        base=base,
        seen=seen,
        pass_rate=evidence is None or evidence.all_or_nothing,
        half_width=half_width,
        cost_ratio=cost_ratio,
        confidence=level,
    )
    precision_asked = runs is None and difference is None
    tasks, runs = _size(evidence, tasks, runs, target)
    chosen = target.design(tasks, runs)
    known = evidence if seen is not None and rate is None and correlation is None else None
    design: dict[str, Any] = {
        "rate": base.rate, "icc": base.icc, "tasks": tasks, "confidence": level,
    }  # fmt: skip
    by_formula = (chosen.runs_this_suite if precision_asked else None) or runs
    if k > 1 and tasks == 1:
        rule = (
            "must be 1 to plan for one task; gates can be planned for it, such as 'pass^5 >= 0.8'"
        )
        raise ArgumentError("k", rule, k)
    assurance = probability("assurance", assurance, open_ends=True)
    bought = budgets(target.design, tasks, priced(spending or Spending(), tally))

    @cache
    def promise() -> Assured | Unavailable:
        return assure(
            known,
            groupings=groupings,
            **design,
            runs=runs,
            runs_asked=not precision_asked,
            half_width=half_width,
            k=k,
            assurance=assurance,
            bought=[buy.design.runs for buy in bought if not isinstance(buy.design, Unavailable)],
        )

    def comparison() -> AssuredComparison | Unavailable:
        promised = promise()
        return assure_comparison(
            known,
            **design,
            runs=promised.runs_of_each if isinstance(promised, Assured) else by_formula,
            k=k,
            difference=difference,
            power=power,
            task_correlation=base.task_correlation,
            groups=base.groups
            if known is None or k == 1
            else spread_of_groups(known, groupings, f"pass^{k}", k, level),
        )

    return Plan(
        assumptions=base,
        chosen=chosen,
        designs=target.designs(tasks, {runs, chosen.runs_this_suite or 1}),
        one_task_runs=target.one_task_runs,
        zero_failures=tuple(
            (rate, zero_failure_runs(rate, confidence=level)) for rate in ZERO_FAILURE_RATES
        ),
        difference=difference,
        **_apart(base, tasks, by_formula, difference, power, level, k),
        budgets=bought,
        power=power,
        confidence=level,
        notes=(
            *_all_errored(tally, evidence),
            *(target.notes(tasks, runs) if k == 1 else ()),
            *_levels_or_trials(trials, errors, difference, cost_ratio),
        ),
        assured=promise,
        assured_comparison=comparison,
    )


_GIVEN = ("fault", "environment", "judge")
"""Factors whose levels are what they are: nobody samples more of them."""


def _levels_or_trials(
    trials: Trials | Tally | None,
    errors: ErrorPolicy,
    difference: float | None,
    price: float | None,
) -> Iterator[str]:
    """For each factor of the trials: do more levels tell more, or more trials?

    More levels do for the mean over levels like these; one level that is worse is found by trials,
    at as many levels as must be looked at.
    """
    if not isinstance(trials, Trials):
        return
    tables = dict(level_tables(trials, ReportOptions.checked(errors=errors)))
    p_values = level_p_values(tables)
    for name, table in tables.items():
        components = level_components(table.runs, table.passes)
        if isinstance(components, Unavailable):
            continue
        factor, tasks, total = short(name), len(table.runs), int(table.runs.sum(axis=1).max())
        if name not in _GIVEN and p_values.get(name, 1.0) > SIGNIFICANT:
            yield f"levels of {factor} are not shown to matter: trials tell as much as levels"
        elif name not in _GIVEN:
            many, take = max(2, total // 2), ""
            least, most = (
                points(components.error(tasks=tasks, levels=n, runs=total // n), digits=1)
                for n in (1, many)
            )
            if price is not None:
                best = max(1, round(min(components.best_runs(tasks=tasks, price=price), total)))
                costs = f"; where a task at one more level costs as much as {price:g} trials, take "
                take = f"{costs}{plural(best, 'trial')} at each"
            yield (
                f"more levels of {factor} tell more than more trials: at {plural(total, 'trial')} "
                f"of each task the error for levels like these is {least} points with "
                f"1 x {total:,} and {most} with {many:,} x {total // many:,}{take}"
            )
        if difference is not None:
            chances = ", ".join(
                f"{components.power(difference, tasks=tasks, levels=n, runs=total // n):.2f} with "
                f"{n:,} levels x {plural(total // n, 'trial')}"
                for n in sorted({2, 4, total // 2})
                if 2 <= n <= total
            )
            yield (
                f"one level of {factor} that is {100 * difference:g} points worse than the others "
                f"is found with a chance of {chances}: to find a bad level buy trials, not levels"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """What every design is compared with."""

    base: Assumptions
    seen: ObservedDesign | None
    pass_rate: bool
    half_width: float
    cost_ratio: float | None
    confidence: float

    @property
    def one_task_runs(self) -> int:
        """By Wald's width, as published tables have it; at an end, where that is 0, by Wilson's."""
        rate = self.base.rate
        method = "wilson" if rate in (0, 1) else "wald"
        return recommend_runs(self.half_width, p=rate, confidence=self.confidence, method=method)

    def design(self, tasks: int, runs: int) -> SuitePlan:
        """What a design shows; trials at the same seeds or days leave the spread between those."""
        design, groups = self._of_runs(tasks, runs), self.base.groups
        if groups is None:
            return design

        def widths(tasks: int, runs: int) -> tuple[float, float]:
            alone = self._of_runs(tasks, runs)
            return groups.added_to((alone.this_suite, alone.tasks_like_these), runs)

        here, there = widths(tasks, runs)
        wanted, levels = self.half_width, these_levels(groups)
        fewest_runs = partial(smallest_count, least=1, most=_MOST_RUNS)
        floor = hypot(design.floor, groups.least[1])
        enough: int | Unavailable | None = fewest_runs(lambda n: widths(tasks, n)[1] <= wanted)
        if groups.least[1] >= wanted:
            reach = f"gets below ±{int(100 * floor)} points for similar tasks"
            enough = Unavailable(f"no number of trials at {levels} {reach}")
        return replace(
            design,
            this_suite=here,
            tasks_like_these=there,
            floor=floor,
            runs_this_suite=fewest_runs(lambda n: widths(tasks, n)[0] <= wanted),
            runs_tasks_like_these=enough or design.runs_tasks_like_these,
            tasks_needed=smallest_count(
                lambda t: widths(t, runs)[1] <= wanted, least=2, most=_MOST_RUNS
            ),
            method=f"{design.method}, with the spread between {groups.name}s",
        )

    def _of_runs(self, tasks: int, runs: int) -> SuitePlan:
        design = self._of_a_mean(tasks, runs)
        if tasks > 1 or not self.pass_rate:
            return design
        # The pass rate of one task is no mean over tasks: a report gives Wilson's interval.
        width = confidence_band(runs, p=self.base.rate, confidence=self.confidence, method="wilson")
        seen = self.seen
        if seen and (seen.tasks, seen.runs) == (1, runs) and not self.base.rate_given:
            width = seen.this_suite or width
        return replace(design, this_suite=width, runs_this_suite=self.one_task_runs)

    def notes(self, tasks: int, runs: int) -> tuple[str, ...]:
        """Before any run: how far the reports to come will be from the approximation."""
        if self.seen is not None or tasks == 1:
            return ()
        design = self._of_a_mean(tasks, runs)
        here, there = self._expected(tasks, runs)
        if here <= _CLOSE * design.this_suite and there <= _CLOSE * design.tasks_like_these:
            return ()
        enough = smallest_count(
            lambda n: self._expected(tasks, n)[0] <= self.half_width, least=1, most=_MOST_RUNS
        )
        wide = smallest_count(
            lambda t: self._expected(t, runs)[1] <= self.half_width, least=2, most=_MOST_RUNS
        )
        ways = [f"{plural(enough, 'trial')} of each task for the first"] if enough else []
        ways += (
            [f"{plural(wide, 'task')} at {plural(runs, 'trial')} for the second"] if wide else []
        )
        rare = "failures" if self.base.rate > 0.5 else "passes"
        these, similar = (points(width, digits=1) for width in (here, there))
        note = (
            f"with so few {rare} expected in {plural(tasks * runs, 'trial')}, a report will say "
            f"about ±{these} points for these tasks and ±{similar} for similar tasks"
        )
        target = f"±{points(self.half_width, digits=1)}"
        return (f"{note}; {target} takes {' and '.join(ways)}" if ways else note,)

    def _expected(self, tasks: int, runs: int) -> tuple[float, float]:
        widths = partial(expected_half_widths, self.base.rate, self.base.spread)
        return widths(tasks=tasks, runs=runs, confidence=self.confidence)

    def _of_a_mean(self, tasks: int, runs: int) -> SuitePlan:
        base = self.base
        terms: dict[str, Any] = {
            "tasks": tasks, "runs": runs, "half_width": self.half_width,
            "cost_ratio": self.cost_ratio, "confidence": self.confidence,
        }  # fmt: skip
        if self.seen is not None:
            return plan_from(self.seen, base.spread, **terms)
        plan = plan_suite(variance=base.variance, icc=base.icc, **terms)
        return replace(
            plan,
            this_suite=min(WIDEST, plan.this_suite),
            tasks_like_these=min(WIDEST, plan.tasks_like_these),
            floor=min(WIDEST, plan.floor),
        )

    def designs(self, tasks: int, more: set[int]) -> tuple[SuitePlan, ...]:
        """At growing numbers of runs: the usual steps, and those that matter here."""
        return tuple(self.design(tasks, runs) for runs in sorted({*_RUN_STEPS, *more}))


def _apart(
    base: Assumptions,
    tasks: int,
    runs: int,
    difference: float | None,
    power: float,
    confidence: float,
    k: int,
) -> dict[str, Any]:
    """What tells two agents apart on the same tasks, by formula; pass^k has none."""
    if k > 1:
        none = Unavailable(f"pass^{k} has no formula: assured_comparison is drawn for it")
        return {"detectable": none, "tasks_for_difference": None, "runs_for_difference": None}
    terms = {
        "variance": base.variance,
        "icc": base.icc,
        "task_correlation": base.task_correlation,
        "power": power,
        "confidence": confidence,
    }

    left = partial((base.groups or NO_SPREAD).left_of, power=power, confidence=confidence)
    detectable: DetectableDifference | Unavailable = ONE_TASK
    if tasks > 1:
        detectable = alone = detectable_difference(tasks=tasks, runs=runs, **terms)
        if base.groups is not None:
            shown = _smallest(lambda size: left(size, runs) >= alone.value) or 1.0
            detectable = replace(alone, value=shown)
    more_tasks: int | None = None
    more_runs: int | Unavailable | None = None
    if difference is not None:
        now, most = (left(abs(difference), count) for count in (runs, _MOST_RUNS))
        more_tasks = tasks_for_difference(now, runs=runs, **terms) if now else None
        more_runs = ONE_TASK
        if tasks > 1 and base.groups is not None and not most:
            more_runs = Unavailable(f"no number of trials at {these_levels(base.groups)} would do")
        elif tasks > 1:
            more_runs = runs_for_difference(most, tasks=tasks, **terms)
    return {
        "detectable": detectable,
        "tasks_for_difference": more_tasks,
        "runs_for_difference": more_runs,
    }


def _all_errored(tally: Tally | None, evidence: Evidence | None) -> tuple[str, ...]:
    if tally is None or evidence is None or (tally.passed + tally.failed).any():
        return ()
    meaning = "counted as failures" if evidence.tasks else "left out, so nothing is measured"
    return (f"every one of these trials errored, {meaning}: a plan from them is a guess",)


def _size(
    evidence: Evidence | None, tasks: int | None, runs: int | None, target: _Target
) -> tuple[int, int]:
    """What the user gave, else what was run, else the runs that reach the target."""
    seen = evidence if evidence and evidence.tasks else None
    if tasks is None:
        tasks = len(seen.tasks) if seen else DEFAULT_TASKS
    tasks = whole_number("tasks", tasks)
    if runs is None:
        runs = seen.typical_runs if seen else target.design(tasks, 1).runs_this_suite or 1
    return tasks, whole_number("runs", runs)


# What a plan assumes of the agent: what the user gave, what was observed, or a cautious guess.


@result_dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """What the plan assumes: guessed before any run, measured where there are trials.

    `icc_interval` is how well the ICC is known, None if it was guessed and no wider than the
    number itself if it was given.
    `task_correlation` is how far two agents find the same tasks hard. `groups` is what seeds, days
    or rounds add to the half-widths of the mean, if they moved the trials together.
    """

    rate: float
    variance: float
    icc: float
    icc_interval: Interval | None
    task_correlation: float
    measured: bool
    rate_given: bool = False
    groups: GroupSpread | None = None

    @property
    def spread(self) -> Spread:
        """The variance of a single run, and how much of it is between tasks."""
        return Spread(variance=self.variance, icc=self.icc, icc_interval=self.icc_interval)


def assume(
    evidence: Evidence | None,
    rate: float | None,
    correlation: float | None,
    task_correlation: float,
    confidence: float,
) -> Assumptions:
    """What the user gave, else what was observed, else the most cautious guess."""
    seen_rate, seen = _observed(evidence, confidence)
    mean = seen_rate if rate is None else probability("rate", rate)
    variance = seen.variance if rate is None else mean * (1 - mean)
    return Assumptions(
        rate=mean,
        variance=bounded_variance(variance),
        icc=seen.icc if correlation is None else probability("correlation", correlation),
        icc_interval=seen.icc_interval
        if correlation is None
        else Interval(correlation, correlation),
        task_correlation=probability("task_correlation", task_correlation),
        measured=evidence is not None and bool(evidence.tasks),
        rate_given=rate is not None,
    )


def _observed(evidence: Evidence | None, confidence: float) -> tuple[float, Spread]:
    """The mean and how single runs spread; a coin flip and an even split where unknown."""
    if evidence is None or not evidence.tasks:
        return 0.5, Spread(variance=0.25, icc=GUESSED_ICC, icc_interval=None)
    mean = float((evidence.score_total / evidence.runs).mean())
    sums = evidence.score_sums
    split, share = variance_components(*sums), icc(*sums, confidence=confidence)
    if isinstance(split, Unavailable) or isinstance(share, Unavailable):
        # A rate at an end still varies: as if half a run had ended the other way.
        runs = int(evidence.runs.sum())
        rate = (mean * runs + 0.5) / (runs + 1)
        bounds = UNKNOWN if mean in (0, 1) else None
        luck = bounded_variance(rate * (1 - rate))
        return mean, Spread(variance=luck, icc=GUESSED_ICC, icc_interval=bounds)
    return mean, observed_variance(
        variance=split.total,
        icc=share.value,
        icc_interval=share.interval,
        tasks=len(evidence.tasks),
        runs=int(evidence.runs.sum()),
    )


def seen_before(evidence: Evidence | None, confidence: float) -> ObservedDesign | None:
    """What a report prints of these trials: a plan from them begins there."""
    if evidence is None or not evidence.tasks:
        return None
    _, spread = _observed(evidence, confidence)
    mean = measure_metrics(evidence, (1,), confidence=confidence)["mean_score"]
    return seen_design(evidence, spread, mean)


def spread_of_groups(
    evidence: Evidence, groupings: Sequence[RunGroups], metric: str, k: int, confidence: float
) -> GroupSpread | None:
    """What groups of runs add to the half-widths that a report prints; None if they add nothing."""
    if not groupings:
        return None
    alone, together = (
        measure_metrics(evidence, (k,), confidence=confidence, groupings=some)[metric]
        for some in ((), groupings)
    )
    here, there = (
        sqrt(max(0.0, (after or 0.0) ** 2 - (before or 0.0) ** 2))
        for before, after in (
            (printed_half_width(alone, scope), printed_half_width(together, scope))
            for scope in (THIS_SUITE, TASKS_LIKE_THESE)
        )
    )
    if not here + there:
        return None
    # Levels that do not become more with trials are what limits them; of several, the fewest.
    fewest = min(groupings, key=lambda grouping: (grouping.grows, grouping.passes.groups))
    return GroupSpread(
        name=fewest.name,
        levels=fewest.passes.groups,
        grows=fewest.grows,
        this_suite=here,
        tasks_like_these=there,
    )


def these_levels(groups: GroupSpread) -> str:
    """The levels that trials were at, in words, such as "these 8 seeds"."""
    return f"these {plural(groups.levels, groups.name)}"


# What a plan promises: runs and tasks after which most reports are as narrow as asked.

Bought = Literal["runs", "tasks", "families"]

# Nobody runs a task so often, or writes so many: beyond it the width is called out of reach.
_MOST_ASSURED_RUNS, _MOST_ASSURED_TASKS = 5_000, 5_000
_MANY_TASKS, _FEWEST_POWER_SUITES = 1_000, 60

PARTIAL_CREDIT = Unavailable(
    "suites are simulated from passes and failures, and these scores have partial credit"
)
ONE_TASK = Unavailable("telling two agents apart needs at least 2 tasks")


@dataclass(frozen=True, slots=True, kw_only=True)
class Purchase:
    """What as many runs as there are, spent again on one thing, make of similar tasks."""

    buys: Bought
    runs_in_all: int
    tasks: int
    families: int | None
    runs_of_each: int
    tasks_like_these: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AssuredDesign:
    """So many runs of each task, and the half-widths that most of their reports have."""

    runs: int
    this_suite: float
    tasks_like_these: float


@result_dataclass(frozen=True, slots=True, kw_only=True)
class Assured:
    """The runs and tasks after which most reports are as narrow as asked.

    A share `assurance` of the reports has a half-width of at most `half_width`, and 95% come
    within 1.25 of it: suites drawn from what is known, with the intervals that reports print.
    `runs` are for these tasks; `tasks` (or `families` of them) at `runs_of_each` for similar
    tasks. `this_suite` and `tasks_like_these` are the half-widths at the runs that were asked
    about, `designs` those at growing numbers of runs, `runs` among them, and `purchases` what the
    next dollar buys.
    """

    metric: str
    half_width: float
    assurance: float
    close: float
    close_share: float
    runs: int | Unavailable
    tasks: int | Unavailable
    families: int | Unavailable | None
    runs_of_each: int
    this_suite: float
    tasks_like_these: float
    purchases: tuple[Purchase, ...]
    designs: tuple[AssuredDesign, ...] = ()
    effective_tasks: float | None = None

    @property
    def best(self) -> Purchase | None:
        """What reduces the width for similar tasks most, for the same runs."""
        return min(self.purchases, key=lambda purchase: purchase.tasks_like_these, default=None)


@result_dataclass(frozen=True, slots=True, kw_only=True)
class AssuredComparison:
    """What tells two agents apart with the power asked for, by comparisons that were drawn.

    `detectable` is the smallest difference that `runs_of_each` of these tasks show, None if they
    show none; `tasks` (in so many `families`) at as many, or `runs` of each of those there are,
    show `difference`.
    """

    power: float
    runs_of_each: int
    detectable: float | None
    difference: float | None
    tasks: int | Unavailable | None = None
    families: int | Unavailable | None = None
    runs: int | Unavailable | None = None


def assure_comparison(
    evidence: Evidence | None,
    *,
    rate: float,
    icc: float,
    tasks: int,
    runs: int,
    k: int,
    difference: float | None,
    power: float,
    task_correlation: float,
    confidence: float,
    groups: GroupSpread | None,
) -> AssuredComparison | Unavailable:
    """The difference that a design shows, and what a wanted difference takes."""
    if tasks < 2:
        return ONE_TASK
    if evidence is not None and not evidence.all_or_nothing:
        return PARTIAL_CREDIT
    # A comparison errs by 1 / sqrt(tasks): over more tasks, fewer drawn suites tell its power at a
    # difference as exactly.
    drawn = max(_FEWEST_POWER_SUITES, min(POWER_SUITES, POWER_SUITES * _MANY_TASKS // tasks))
    suites = _suites(evidence, rate, icc, tasks, drawn=drawn)

    def compared(some: PossibleSuites, times: int) -> PossibleComparisons:
        return PossibleComparisons(
            suites=some, runs=times, k=k, task_correlation=task_correlation, confidence=confidence
        )

    def shows(pairs: PossibleComparisons, size: float) -> bool:
        left = (groups or NO_SPREAD).left_of(size, pairs.runs, power=power, confidence=confidence)
        return left > 0 and pairs.show(left, power)

    here = compared(suites, runs)
    assured = AssuredComparison(
        power=power,
        runs_of_each=runs,
        detectable=_smallest(lambda size: shows(here, size)),
        difference=difference,
    )
    if difference is None:
        return assured
    gap = abs(difference)
    several, families = _sample(suites, lambda some: shows(compared(some, runs), gap))
    needed = None
    if shows(compared(suites, _MOST_ASSURED_RUNS), gap):
        needed = fewest(lambda n: shows(compared(suites, n), gap), least=k, most=_MOST_ASSURED_RUNS)
    return replace(
        assured,
        tasks=several or Unavailable(f"more than {_MOST_ASSURED_TASKS:,} tasks"),
        families=families,
        runs=needed or Unavailable(f"no number of trials on these {tasks:,} tasks would do"),
    )


def _smallest(enough: Callable[[float], bool]) -> float | None:
    """The smallest difference that is enough, to a thousandth; None if none is."""
    low, high = 0.0, 1.0
    if not enough(high):
        return None
    while high - low > 0.001:
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def assure(
    evidence: Evidence | None,
    *,
    rate: float,
    icc: float,
    tasks: int,
    runs: int,
    runs_asked: bool,
    half_width: float,
    k: int,
    confidence: float,
    assurance: float = ASSURANCE,
    groupings: Sequence[RunGroups] = (),
    bought: Sequence[int] = (),
) -> Assured | Unavailable:
    """What the half-width asked for takes, from runs that were made or from a guess.

    With `runs_asked`, tasks for similar tasks are counted at `runs`; else at those it takes. The
    designs hold the runs that budgets have `bought` too.
    """
    if evidence is not None and not evidence.all_or_nothing:
        return PARTIAL_CREDIT
    if tasks < 2:
        return Unavailable("a width over tasks needs at least 2 tasks")
    suites = _suites(evidence, rate, icc, tasks, drawn=WIDTH_SUITES)
    often = max(runs, k)

    @lru_cache(maxsize=1)
    def reports(some: PossibleSuites, times: int) -> PossibleReports:
        return some.reports(times, k=k, confidence=confidence, assurance=assurance)

    groups, scale = None, (1.0, 1.0)
    if evidence is not None and evidence.tasks:
        same = suites
        if tasks != len(evidence.tasks):
            same = _suites(evidence, rate, icc, len(evidence.tasks), drawn=WIDTH_SUITES)
        most = min(k, int(evidence.runs.min()))
        groups = spread_of_groups(evidence, groupings, f"pass^{most}", most, confidence)
        scale = _understated(evidence, partial(reports, same), k, confidence)

    def widths(some: PossibleSuites, times: int) -> tuple[float, float]:
        half_widths = reports(some, times)
        here = scale[0] * half_widths.this_suite
        alone = here, max(here, scale[1] * half_widths.tasks_like_these)
        return alone if groups is None else groups.added_to(alone, times)

    @cache
    def at(times: int) -> AssuredDesign:
        here, there = widths(suites, times)
        return AssuredDesign(runs=times, this_suite=here, tasks_like_these=there)

    least = (groups or NO_SPREAD).least
    weight = None if evidence is None else evidence.weight
    now = at(often)
    needed = None
    if least[0] < half_width:
        needed = fewest(lambda n: at(n).this_suite <= half_width, least=k, most=_MOST_ASSURED_RUNS)
    # The search has looked at most of the doublings.
    end = needed or (_MOST_ASSURED_RUNS if least[0] < half_width else 4 * often)
    beyond = 4 * needed if needed else end
    doublings = takewhile(lambda n: n < beyond, (k << i for i in count()))
    each = often if runs_asked or needed is None else needed
    # For similar tasks: what the levels there are leave of the half-width.
    added = (groups or NO_SPREAD).added_to((0.0, 0.0), each)[1]
    left = sqrt(max(0.0, half_width**2 - added**2)) / scale[1]
    several, families = None, None
    if left:
        several, families = _sample(suites, lambda some: reports(some, each).are_within(left))
    return Assured(
        metric=f"pass^{k}" if k > 1 else "mean",
        half_width=half_width,
        assurance=assurance,
        close=CLOSE,
        close_share=CLOSE_SHARE,
        runs=needed or out_of_reach(groups, now.this_suite, half_width),
        tasks=several or _no_tasks(groups, added, half_width),
        families=families,
        runs_of_each=each,
        this_suite=now.this_suite,
        tasks_like_these=now.tasks_like_these,
        purchases=tuple(
            Purchase(
                buys=buys,
                runs_in_all=2 * suites.tasks * often,
                tasks=some.tasks,
                families=some.group.families if some.by_family and some.group else None,
                runs_of_each=times,
                # What more runs of these tasks show is a row of the table.
                tasks_like_these=min(
                    now.tasks_like_these,
                    at(times).tasks_like_these if some is suites else widths(some, times)[1],
                ),
            )
            for buys, some, times in _purchases(suites, often)
        ),
        designs=tuple(
            at(n) for n in sorted({*doublings, end, often, *(n for n in bought if n >= k)})
        ),
        # How many equal tasks the weighted ones amount to (Kish).
        effective_tasks=None if weight is None else float(weight.sum() ** 2 / (weight**2).sum()),
    )


def _understated(
    evidence: Evidence,
    reports: Callable[[int], PossibleReports],
    k: int,
    confidence: float,
) -> tuple[float, float]:
    """How much wider than drawn ones the report of the trials there are is, in both scopes.

    It may be one of the wide ones; and draws take the conditions of a task for independent.
    """
    runs = evidence.runs
    if runs.min() < runs.max() or k > runs[0]:
        return 1.0, 1.0  # if all tasks had the usual number of trials they would do better
    metric = measure_metrics(evidence, (k,), confidence=confidence)[f"pass^{k}"]
    drawn = reports(int(runs[0]))
    here, there = (printed_half_width(metric, scope) for scope in (THIS_SUITE, TASKS_LIKE_THESE))
    return (
        max(1.0, (here or 0.0) / drawn.this_suite),
        max(1.0, (there or 0.0) / drawn.tasks_like_these),
    )


def out_of_reach(groups: GroupSpread | None, now: float, half_width: float) -> Unavailable:
    """Why no number of trials of each task will do; where levels hinder, how many of those will."""
    if groups is None or groups.least[0] < half_width:
        return Unavailable(f"more than {_MOST_ASSURED_RUNS:,} trials of each task")
    several = plural(groups.needed(now, half_width), groups.name)
    rest = points(groups.least[0], digits=1)
    leave = f"more trials at {these_levels(groups)} leave ±{rest} points"
    return Unavailable(f"about {several}: {leave}")


def _no_tasks(groups: GroupSpread | None, added: float, half_width: float) -> Unavailable:
    if groups is None or added < half_width:
        return Unavailable(f"more than {_MOST_ASSURED_TASKS:,} tasks")
    levels = these_levels(groups)
    return Unavailable(f"no number of tasks at {levels} reaches ±{100 * half_width:g} points")


def _suites(
    evidence: Evidence | None, rate: float, icc: float, tasks: int, *, drawn: int
) -> PossibleSuites:
    if evidence is None or not evidence.tasks:
        return prior_suites(rate, icc, tasks, suites=drawn)
    group = grouping(evidence.family, evidence.weight, len(evidence.tasks))
    suites = possible_suites(evidence.runs, evidence.passes, group, suites=drawn)
    return suites if tasks == suites.tasks else with_tasks(suites, tasks)


def _sample(
    suites: PossibleSuites, enough: Callable[[PossibleSuites], bool]
) -> tuple[int | None, int | Unavailable | None]:
    """The tasks, and where they come in families the families, that are enough."""
    if not suites.by_family or suites.group is None:
        tasks = fewest(lambda t: enough(with_tasks(suites, t)), least=2, most=_MOST_ASSURED_TASKS)
        return tasks, None
    size = suites.tasks / suites.group.families
    most = int(_MOST_ASSURED_TASKS / size)
    families = fewest(lambda g: enough(with_families(suites, g)), least=2, most=most)
    if families is None:
        return None, Unavailable(f"more than {most:,} families")
    return with_families(suites, families).tasks, families


def _purchases(suites: PossibleSuites, runs: int) -> Sequence[tuple[Bought, PossibleSuites, int]]:
    """As many runs again: twice the runs, twice the tasks, twice the families."""
    bought: list[tuple[Bought, PossibleSuites, int]] = [
        ("runs", suites, 2 * runs),
        ("tasks", with_tasks(suites, 2 * suites.tasks), runs),
    ]
    if suites.by_family and suites.group is not None:
        bought.append(("families", with_families(suites, 2 * suites.group.families), runs))
    return bought


Design = Callable[[int, int], SuitePlan]
"""What so many tasks and runs of each show."""

_MOST_BOUGHT = 1e12
FEWEST_TRIALS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """Limits in money and minutes, and what one run takes of each."""

    max_cost: float | None = None
    cost_per_run: float | None = None
    max_minutes: float | None = None
    seconds_per_run: float | None = None
    at_once: int = 1

    def __post_init__(self) -> None:
        whole_number("at_once", self.at_once)
        for name in ("max_cost", "cost_per_run", "max_minutes", "seconds_per_run"):
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise ArgumentError(name, "must be a number above 0", value)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetPlan:
    """What a limit buys: whole runs of every task, and the half-widths they give."""

    limit: float
    unit: str
    per_run: float
    runs_in_all: int
    design: SuitePlan | Unavailable


def priced(spending: Spending, tally: Tally | None) -> Spending:
    """What a run takes, from the trials if the user did not say."""
    instance("spending", spending, Spending, "must be Spending(...)")
    if tally is None:
        return spending
    features = tally.features

    def seen(name: str, given: float | None) -> float | None:
        if given is not None or name not in features or not features[name].count.any():
            return given
        mean = float(features[name].total.sum() / features[name].count.sum())
        return mean if mean > 0 else None

    return replace(
        spending,
        cost_per_run=seen("cost", spending.cost_per_run),
        seconds_per_run=seen("seconds", spending.seconds_per_run),
    )


def budgets(design: Design, tasks: int, spending: Spending) -> tuple[BudgetPlan, ...]:
    """What each limit buys, shared equally by the tasks."""
    bought = []
    if spending.max_cost is not None:
        if spending.cost_per_run is None:
            raise ArgumentError("cost_per_run", "must be given with `max_cost`", None)
        bought.append(_budget(design, tasks, spending.max_cost, spending.cost_per_run, "money"))
    if spending.max_minutes is not None:
        if spending.seconds_per_run is None:
            raise ArgumentError("seconds_per_run", "must be given with `max_minutes`", None)
        minutes = spending.seconds_per_run / 60 / spending.at_once
        bought.append(_budget(design, tasks, spending.max_minutes, minutes, "minutes"))
    return tuple(bought)


def expected_cost(
    trials: Trials, planned: Mapping[tuple[str, str], int], *, confidence: float = CONFIDENCE
) -> Estimate | Unavailable:
    """The cost of so many runs of each (system, task), with the range the next bill falls in.

    The range is a prediction interval: it holds both what is not known of the mean cost of a task
    and the luck of the runs still to be made.

    >>> past = Trials.from_columns(task=["a"] * 4, passed=[True] * 4, cost=[0.1, 0.1, 0.2, 0.2])
    >>> round(expected_cost(past, {("system", "a"): 10}).value, 3)
    1.5
    """
    from passhat.stats.special import ndtri

    costs = trials.features.get("cost")
    if costs is None:
        return Unavailable("no earlier trial recorded its cost")
    total, variance, seen = 0.0, 0.0, 0
    for (system, task), runs in planned.items():
        known = _known(trials, costs, system, task)
        if len(known) < FEWEST_TRIALS:
            return Unavailable(f"fewer than {FEWEST_TRIALS} earlier trials of {task} by {system}")
        spread = float(known.var(ddof=1))
        total += runs * float(known.mean())
        variance += spread * (runs + runs**2 / len(known))
        seen += len(known)
    reach = float(ndtri((1 + confidence_level(confidence)) / 2)) * variance**0.5
    return Estimate(
        value=total,
        interval=Interval(max(0.0, total - reach), total + reach),
        method="normal prediction interval over earlier trials",
        confidence=confidence,
        runs=seen,
    )


def _budget(design: Design, tasks: int, limit: float, per_run: float, unit: str) -> BudgetPlan:
    if limit / per_run > _MOST_BOUGHT:
        rule = f"must buy at most {_MOST_BOUGHT:.0e} trials at {per_run:g} each"
        raise ArgumentError("max_cost" if unit == "money" else "max_minutes", rule, limit)
    in_all = floor(limit / per_run * (1 + 1e-12))
    per_task = in_all // tasks
    return BudgetPlan(
        limit=limit,
        unit=unit,
        per_run=per_run,
        runs_in_all=in_all,
        design=(
            design(tasks, per_task)
            if per_task
            else Unavailable(f"{in_all:,} trials do not reach all {tasks:,} tasks once")
        ),
    )


def _known(trials: Trials, costs: Floats, system: str, task: str) -> Floats:
    if system not in trials.systems or task not in trials.tasks:
        return costs[:0]
    rows = trials.system.codes == trials.system.code(system)
    rows &= trials.task.codes == trials.task.code(task)
    return np.asarray(costs[rows & ~np.isnan(costs)])
