"""What a plan promises: runs and tasks after which most reports are as narrow as asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

from passhat.analysis.reports.evidence import Evidence
from passhat.dataclass import dataclass, short_dataclass
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
    guessed_suites,
    possible_suites,
    with_families,
    with_tasks,
)
from passhat.stats.estimate import Unavailable
from passhat.stats.population_bounds import grouping

Bought = Literal["runs", "tasks", "families"]

# Nobody runs a task so often, or writes so many: beyond it the width is called out of reach.
_MOST_RUNS, _MOST_TASKS = 5_000, 5_000

_PARTIAL_CREDIT = Unavailable(
    "suites are simulated from passes and failures, and these scores have partial credit"
)
ONE_TASK = Unavailable("telling two agents apart needs at least 2 tasks")


@dataclass(frozen=True, slots=True, kw_only=True)
class Purchase:
    """What as many runs as there are, spent again on one thing, make of tasks like these."""

    buys: Bought
    runs_in_all: int
    tasks: int
    families: int | None
    runs_of_each: int
    tasks_like_these: float


@short_dataclass(frozen=True, slots=True, kw_only=True)
class Assured:
    """The runs and tasks after which most reports are as narrow as asked.

    A share `assurance` of the reports has a half-width of at most `half_width`, and 95 % come
    within 1.25 of it: suites drawn from what is known, with the intervals that reports print.
    `runs` are for this suite; `tasks` (or `families` of them) at `runs_of_each` for tasks like
    these. `this_suite` and `tasks_like_these` are the half-widths at the runs that were asked
    about, and `purchases` what the next dollar buys.
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
    effective_tasks: float | None = None

    @property
    def best(self) -> Purchase | None:
        """What reduces the width for tasks like these most, for the same runs."""
        return min(self.purchases, key=lambda one: one.tasks_like_these, default=None)


@short_dataclass(frozen=True, slots=True, kw_only=True)
class AssuredComparison:
    """What tells two agents apart with the power asked for, by comparisons that were drawn.

    `detectable` is the smallest difference that the design shows, None if it shows none;
    `tasks` (in so many `families`), or `runs` of each of those there are, show `difference`.
    """

    power: float
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
    difference: float | None,
    power: float,
    task_correlation: float,
    confidence: float,
) -> AssuredComparison | Unavailable:
    """The difference that a design shows, and what a wanted difference takes."""
    if tasks < 2:
        return ONE_TASK
    if evidence is not None and not evidence.all_or_nothing:
        return _PARTIAL_CREDIT
    suites = _suites(evidence, rate, icc, tasks, drawn=POWER_SUITES)

    def compared(some: PossibleSuites, times: int) -> PossibleComparisons:
        return PossibleComparisons(
            suites=some, runs=times, task_correlation=task_correlation, confidence=confidence
        )

    here = compared(suites, runs)
    found = AssuredComparison(
        power=power,
        detectable=_smallest(lambda size: here.show(size, power)),
        difference=difference,
    )
    if difference is None:
        return found
    gap = abs(difference)
    count, families = _sample(suites, lambda some: compared(some, runs).show(gap, power))
    needed = None
    if compared(suites, _MOST_RUNS).show(gap, power):
        needed = fewest(lambda n: compared(suites, n).show(gap, power), least=1, most=_MOST_RUNS)
    return replace(
        found,
        tasks=count or Unavailable(f"more than {_MOST_TASKS:,} tasks"),
        families=families,
        runs=needed or Unavailable(f"no number of runs on these {tasks:,} tasks would do"),
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
    half_width: float,
    k: int,
    confidence: float,
    assurance: float = ASSURANCE,
) -> Assured | Unavailable:
    """What the half-width asked for takes, from runs that were made or from a guess."""
    if evidence is not None and not evidence.all_or_nothing and k == 1:
        return _PARTIAL_CREDIT
    if tasks < 2:
        return Unavailable("a width over tasks needs at least 2 tasks")
    suites = _suites(evidence, rate, icc, tasks, drawn=WIDTH_SUITES)
    often = max(runs, k)

    def reports(some: PossibleSuites, times: int) -> PossibleReports:
        return some.reports(times, k=k, confidence=confidence, assurance=assurance)

    now = reports(suites, often)
    needed = fewest(lambda n: reports(suites, n).this_suite <= half_width, least=k, most=_MOST_RUNS)
    count, families = _sample(suites, lambda some: reports(some, often).are_within(half_width))
    return Assured(
        metric=f"pass^{k}" if k > 1 else "mean",
        half_width=half_width,
        assurance=assurance,
        close=CLOSE,
        close_share=CLOSE_SHARE,
        runs=needed or Unavailable(f"more than {_MOST_RUNS:,} runs of each task"),
        tasks=count or Unavailable(f"more than {_MOST_TASKS:,} tasks"),
        families=families,
        runs_of_each=often,
        this_suite=now.this_suite,
        tasks_like_these=now.tasks_like_these,
        purchases=tuple(
            Purchase(
                buys=buys,
                runs_in_all=2 * suites.tasks * often,
                tasks=some.tasks,
                families=some.group.families if some.by_family and some.group else None,
                runs_of_each=times,
                tasks_like_these=min(now.tasks_like_these, reports(some, times).tasks_like_these),
            )
            for buys, some, times in _purchases(suites, often)
        ),
        effective_tasks=_effective(evidence),
    )


def _suites(
    evidence: Evidence | None, rate: float, icc: float, tasks: int, *, drawn: int
) -> PossibleSuites:
    if evidence is None or not evidence.tasks:
        return guessed_suites(rate, icc, tasks, suites=drawn)
    group = grouping(evidence.family, evidence.weight, len(evidence.tasks))
    suites = possible_suites(evidence.runs, evidence.passes, group, suites=drawn)
    return suites if tasks == suites.tasks else with_tasks(suites, tasks)


def _sample(
    suites: PossibleSuites, enough: Callable[[PossibleSuites], bool]
) -> tuple[int | None, int | Unavailable | None]:
    """The tasks, and where they come in families the families, that are enough."""
    if not suites.by_family or suites.group is None:
        found = fewest(lambda t: enough(with_tasks(suites, t)), least=2, most=_MOST_TASKS)
        return found, None
    size = suites.tasks / suites.group.families
    most = int(_MOST_TASKS / size)
    families = fewest(lambda g: enough(with_families(suites, g)), least=2, most=most)
    if families is None:
        return None, Unavailable(f"more than {most:,} families")
    return with_families(suites, families).tasks, families


def _purchases(suites: PossibleSuites, runs: int) -> Sequence[tuple[Bought, PossibleSuites, int]]:
    """As many runs again: twice the runs, twice the tasks, twice the families."""
    found: list[tuple[Bought, PossibleSuites, int]] = [
        ("runs", suites, 2 * runs),
        ("tasks", with_tasks(suites, 2 * suites.tasks), runs),
    ]
    if suites.by_family and suites.group is not None:
        found.append(("families", with_families(suites, 2 * suites.group.families), runs))
    return found


def _effective(evidence: Evidence | None) -> float | None:
    """How many equal tasks the weighted ones amount to (Kish)."""
    if evidence is None or evidence.weight is None:
        return None
    weight = evidence.weight
    return float(weight.sum() ** 2 / (weight**2).sum())
