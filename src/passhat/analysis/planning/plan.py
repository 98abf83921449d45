"""How many runs and tasks an answer needs: before any run, or from the trials there are."""

from __future__ import annotations

from dataclasses import field, replace
from functools import partial
from typing import Any

from passhat.analysis.planning.assumptions import Assumptions, assume, seen_before
from passhat.analysis.planning.assured import (
    ONE_TASK,
    Assured,
    AssuredComparison,
    assure,
    assure_comparison,
)
from passhat.analysis.planning.budgets import BudgetPlan, Spending, budgets, priced
from passhat.analysis.reports.evidence import Evidence, error_policy, gather
from passhat.arguments import CONFIDENCE, probability, whole_number
from passhat.dataclass import Displayed, Later, dataclass
from passhat.messages import plural, rounded, short_repr
from passhat.records import ErrorPolicy, Tally, Trials
from passhat.records.trials import one_tally
from passhat.stats.arguments import confidence_level
from passhat.stats.assurance import ASSURANCE
from passhat.stats.estimate import Unavailable
from passhat.stats.sample_size import (
    WIDEST,
    DetectableDifference,
    Expected,
    Seen,
    Spread,
    SuitePlan,
    confidence_band,
    detectable_difference,
    expected_half_widths,
    plan_from,
    plan_suite,
    recommend_runs,
    runs_for_difference,
    smallest_count,
    tasks_for_difference,
    zero_failure_runs,
)

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
    are of the mean, by formula; `promise` is what most reports will reach, also of pass^k.
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
    assured: Later[Assured | Unavailable] = field(repr=False, compare=False)
    assured_comparison: Later[AssuredComparison | Unavailable] = field(repr=False, compare=False)

    @property
    def promise(self) -> Assured | Unavailable:
        """Runs and tasks after which most reports are as narrow as asked; drawn at first look."""
        return self.assured.look()

    @property
    def comparison(self) -> AssuredComparison | Unavailable:
        """What tells two agents apart with the power asked for; drawn at first look."""
        return self.assured_comparison.look()

    def __repr__(self) -> str:
        chosen = self.chosen
        size = f"{plural(chosen.tasks, 'task')} x {plural(chosen.runs, 'run')}"
        here = f"±{rounded(chosen.this_suite)} for this suite"
        there = f"±{rounded(chosen.tasks_like_these)} for tasks like these"
        return short_repr(
            "Plan", f"{size} give {here}", there, see=".chosen, .designs, .detectable"
        )


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
    agents to detect. `cost_ratio` is what a new task costs, in runs of one. With `k` the promise
    is for pass^k; `assurance` is the share of reports that are to be as narrow as asked.

    >>> found = plan(tasks=50, runs=5, half_width=0.05)
    >>> found.one_task_runs, found.chosen.tasks_needed
    (385, 231)
    """
    error_policy(errors)
    tally = None if trials is None else one_tally("trials", trials, purpose="to plan from")
    evidence = None if tally is None else gather(tally, errors)
    level = confidence_level(confidence)
    base = assume(evidence, rate, correlation, task_correlation, level)
    seen = seen_before(evidence, level)
    if seen is not None and seen.constant and (rate is not None or correlation is not None):
        # Runs that all ended alike say nothing of how others will spread.
        seen, base = None, replace(base, measured=False, icc_interval=None)
    power = probability("power", power, open_ends=True)
    target = _Target(
        base=base,
        seen=seen,
        pass_rate=evidence is None or evidence.all_or_nothing,
        half_width=half_width,
        cost_ratio=cost_ratio,
        confidence=level,
    )
    tasks, runs = _size(evidence, tasks, runs, target)
    chosen = target.design(tasks, runs)
    known = evidence if seen is not None and rate is None and correlation is None else None
    design: dict[str, Any] = {
        "rate": base.rate, "icc": base.icc, "tasks": tasks, "runs": runs, "confidence": level,
    }  # fmt: skip
    return Plan(
        assumptions=base,
        chosen=chosen,
        designs=target.designs(tasks, {runs, chosen.runs_this_suite or 1}),
        one_task_runs=target.one_task_runs,
        zero_failures=tuple(
            (rate, zero_failure_runs(rate, confidence=level)) for rate in ZERO_FAILURE_RATES
        ),
        difference=difference,
        **_apart(base, tasks, runs, difference, power, level),
        budgets=budgets(target.design, tasks, priced(spending or Spending(), tally)),
        power=power,
        confidence=level,
        notes=(*_all_errored(tally, evidence), *target.notes(tasks, runs)),
        assured=Later(
            partial(
                assure,
                known,
                **design,
                half_width=half_width,
                k=whole_number("k", k),
                assurance=probability("assurance", assurance, open_ends=True),
            )
        ),
        assured_comparison=Later(
            partial(
                assure_comparison,
                known,
                **design,
                difference=difference,
                power=power,
                task_correlation=base.task_correlation,
            )
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """What every design is compared with."""

    base: Assumptions
    seen: Seen | None
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
        ways = [f"{plural(enough, 'run')} of each task for the first"] if enough else []
        ways += [f"{plural(wide, 'task')} at {plural(runs, 'run')} for the second"] if wide else []
        rare = "failures" if self.base.rate > 0.5 else "passes"
        note = (
            f"with so few {rare} expected in {plural(tasks * runs, 'run')}, a report will say "
            f"about ±{100 * here:.1f} points for this suite and ±{100 * there:.1f} for tasks like "
            "these"
        )
        target = f"±{100 * self.half_width:.1f}"
        return (f"{note}; {target} takes {' and '.join(ways)}" if ways else note,)

    def _expected(self, tasks: int, runs: int) -> tuple[float, float]:
        base = self.base
        expected = Expected(rate=base.rate, variance=base.variance, icc=base.icc)
        return expected_half_widths(expected, tasks=tasks, runs=runs, confidence=self.confidence)

    def _of_a_mean(self, tasks: int, runs: int) -> SuitePlan:
        if self.seen is not None:
            return plan_from(
                self.seen,
                Spread(
                    variance=self.base.variance,
                    icc=self.base.icc,
                    icc_interval=self.base.icc_interval,
                ),
                tasks=tasks,
                runs=runs,
                half_width=self.half_width,
                cost_ratio=self.cost_ratio,
                confidence=self.confidence,
            )
        plan = plan_suite(
            tasks=tasks,
            runs=runs,
            variance=self.base.variance,
            icc=self.base.icc,
            half_width=self.half_width,
            cost_ratio=self.cost_ratio,
            confidence=self.confidence,
        )
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
) -> dict[str, Any]:
    """What tells two agents apart on the same tasks, by formula."""
    terms = {
        "variance": base.variance,
        "icc": base.icc,
        "task_correlation": base.task_correlation,
        "power": power,
        "confidence": confidence,
    }
    detectable: DetectableDifference | Unavailable = ONE_TASK
    if tasks > 1:
        detectable = detectable_difference(tasks=tasks, runs=runs, **terms)
    more_tasks, more_runs = None, None
    if difference is not None:
        more_tasks = tasks_for_difference(difference, runs=runs, **terms)
        more_runs = runs_for_difference(difference, tasks=tasks, **terms) if tasks > 1 else ONE_TASK
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
