"""Suites drawn from what is known so far, and how wide the intervals of their reports are.

A width depends on what will be seen, so no formula of an expected rate can promise it. Instead,
suites are drawn whose tasks pass at rates that the runs so far leave possible, and their intervals
are computed as a report does. A plan then states the width that most of those suites reach (the
"assurance" of Kupper and Hafner 1989, for intervals).
"""

from __future__ import annotations

from copy import deepcopy
from functools import cached_property, partial
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from passhat.dataclass import dataclass, replace
from passhat.stats import special
from passhat.stats.arguments import Floats
from passhat.stats.beta_binomial import prior_weights
from passhat.stats.paired import UNSEEN_IN_TEST
from passhat.stats.passk import share_of_passing_subsets
from passhat.stats.population_bounds import (
    TaskGroups,
    family_bounds,
    lower_quantile,
    lower_ratio_quantile,
    population_bounds,
)
from passhat.stats.sample_size import smallest_count
from passhat.stats.sufficient_statistics import Cells, count_cells, task_counts
from passhat.stats.suite_bounds import suite_bounds

ASSURANCE = 0.8
"""The share of reports that are to be as narrow as planned."""

CLOSE, CLOSE_SHARE = 1.25, 0.95
"""A share of 0.95 of the reports are to be no wider than 1.25 times what was planned."""

WIDTH_SUITES, POWER_SUITES = 100, 600
"""Suites that are drawn: they give a quantile of 0.8 to 1 %, and a power to 0.016."""

# Beyond so many runs of each task the width for these tasks falls with the root of their number.
_MOST_RUNS_DRAWN = 200
# With more tasks the interval is stricter than the sign-flip test, which need not be computed.
_FLIPPED_TASKS = 12
# Comparisons that are judged before looking whether they settle the question.
_COMPARED_AT_ONCE = 100
# Shapes of a beta below this draw 0 or 1 and nothing else.
_LEAST_SHAPE = 1e-3
_SEED = 20_261_116


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PossibleSuites:
    """Pass rates that tasks may have: a row for each suite drawn, a column for each task.

    `a` and `b` are the beta of each suite, from which further tasks come.
    """

    rates: Floats
    a: Floats
    b: Floats
    group: TaskGroups | None = None

    @property
    def tasks(self) -> int:
        return int(self.rates.shape[1])

    @property
    def by_family(self) -> bool:
        """Whether families are what is sampled, as in the interval of a report."""
        return self.group is not None and self.group.many_families

    def reports(
        self, runs: int, *, k: int, confidence: float, assurance: float = ASSURANCE
    ) -> PossibleReports:
        """Reports of so many runs of each task."""
        drawn = min(runs, _MOST_RUNS_DRAWN)
        return PossibleReports(
            suites=self,
            passes=np.random.default_rng(_SEED + 2).binomial(drawn, self.rates),
            drawn=drawn,
            runs=runs,
            k=k,
            confidence=confidence,
            assurance=assurance,
        )

    def taken(self, kept: NDArray[np.bool_]) -> PossibleSuites:
        """Some of the tasks, which have families."""
        assert self.group is not None, "tasks have families"
        return replace(self, rates=self.rates[:, kept], group=self.group.taken(kept))


@dataclass(frozen=True, kw_only=True, eq=False)
class PossibleReports:
    """How wide the intervals in reports of drawn suites are: the half-widths that can be promised.

    A share `assurance` of the reports is as narrow, and 95 % are within 1.25 times that.
    """

    suites: PossibleSuites
    passes: NDArray[np.int64]
    drawn: int
    runs: int
    k: int
    confidence: float
    assurance: float

    @property
    def this_suite(self) -> float:
        return _assured_width(self._here, self.assurance)

    @property
    def tasks_like_these(self) -> float:
        return _assured_width(np.maximum(self._here, self._there), self.assurance)

    def are_within(self, half_width: float) -> bool:
        """Whether the half-width for similar tasks is at most this: often one part says no."""
        wide = _assured_width(self._there, self.assurance) > half_width
        return not wide and self.tasks_like_these <= half_width

    @cached_property
    def _cells(self) -> Cells:
        return _counted(self.passes, self.drawn)

    @cached_property
    def _here(self) -> Floats:
        low, high = suite_bounds(self._cells, (self.k,), self.confidence, drawn=True)
        unequal = _unequal(self.suites.group)
        return np.asarray((high - low)[:, 0] / 2 * sqrt(self.drawn / self.runs) * unequal)

    @cached_property
    def _there(self) -> Floats:
        cells, group, k = self._cells, self.suites.group, self.k
        if self.suites.tasks < 2:
            return np.full(len(self.passes), 0.5)
        if group is None:
            values = share_of_passing_subsets(cells.n, cells.c, k)
            low, high = population_bounds(values, cells.tasks, self.confidence)
        else:
            group = group.alone() if group.few_families else group
            counts = np.full(self.drawn + 1, self.drawn), np.arange(self.drawn + 1)
            every = share_of_passing_subsets(*counts, k)
            low, high = family_bounds(every[self.passes], group, self.confidence)
        return np.asarray((high - low) / 2)


fewest = partial(smallest_count, to_within=1 / 32)
"""`smallest_count` to 3 %: widths of drawn suites vary by about 1 %, which hides the rest."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PossibleComparisons:
    """Comparisons of drawn suites with a second system, at so many runs of each task, by pass^k.

    For the second system a share `task_correlation` of the tasks is as hard as for the first, and
    the others are as hard as other tasks of their kind.
    """

    suites: PossibleSuites
    runs: int
    k: int
    task_correlation: float
    confidence: float

    def show(self, difference: float, power: float) -> bool:
        """Whether they call the better of two systems better with so much power.

        The pass^k of the second system is lower by `difference`. Judged as a comparison for similar
        tasks is: by the interval, and with few tasks by the sign-flip test too.
        """
        first, rates, generator = self._drawn
        rates = rates * max(0.0, 1 - difference / float((rates**self.k).mean())) ** (1 / self.k)
        rng = deepcopy(generator)  # every difference is judged on the same draws
        better, left = 0, len(rates)
        for start in range(0, len(rates), _COMPARED_AT_ONCE):
            some = slice(start, start + _COMPARED_AT_ONCE)
            second = self._seen[rng.binomial(self.runs, rates[some])]
            called = _called_better(
                first[some],
                second,
                self.suites,
                1 - self.confidence,
                steps=self.runs if self.k == 1 else None,
            )
            better, left = better + int(called.sum()), left - called.size
            # Far from the difference that is looked for, some of the suites settle it.
            if better / len(rates) >= power or (better + left) / len(rates) < power:
                break
        return better / len(rates) >= power

    @cached_property
    def _seen(self) -> Floats:
        """The pass^k of a task by its passes."""
        passes = np.arange(self.runs + 1)
        if self.k == 1:
            return passes / self.runs
        return share_of_passing_subsets(np.full(passes.size, self.runs), passes, self.k)

    @cached_property
    def _drawn(self) -> tuple[Floats, Floats, np.random.Generator]:
        """pass^k seen of the first system, true rates of the second, the generator after both."""
        rng, suites = np.random.default_rng(_SEED + 3), self.suites
        others = _tasks(rng, suites.a, suites.b, suites.tasks)
        same = rng.random(suites.rates.shape) < self.task_correlation
        first = self._seen[rng.binomial(self.runs, suites.rates)]
        return first, np.where(same, suites.rates, others), rng


def possible_suites(
    n: ArrayLike, c: ArrayLike, group: TaskGroups | None = None, *, suites: int = WIDTH_SUITES
) -> PossibleSuites:
    """Suites of these tasks, at rates that their runs leave possible.

    >>> drawn = possible_suites([5] * 8, [5, 5, 5, 5, 4, 4, 3, 1])
    >>> reports = drawn.reports(20, k=1, confidence=0.95)
    >>> 0.05 < reports.this_suite < 0.09 < reports.tasks_like_these
    True
    """
    runs, passes = task_counts(n, c)
    priors = prior_weights(count_cells(runs, passes).having(1))
    rng = np.random.default_rng(_SEED)
    chosen = rng.choice(priors.weight.size, size=suites, p=priors.weight)
    a, b = priors.a[chosen], priors.b[chosen]
    rates = _beta(rng, a[:, None] + passes, b[:, None] + runs - passes)
    return PossibleSuites(rates=rates, a=a, b=b, group=group)


def prior_suites(
    rate: float, icc: float, tasks: int, *, suites: int = WIDTH_SUITES
) -> PossibleSuites:
    """Suites before any run: tasks of a beta with this mean and this correlation of their runs."""
    # Runs of a task whose rate is Beta(a, b) correlate by 1 / (a + b + 1).
    weight = (1 - icc) / max(icc, 1e-6)
    a, b = np.full(suites, rate * weight), np.full(suites, (1 - rate) * weight)
    rng = np.random.default_rng(_SEED)
    return PossibleSuites(rates=_tasks(rng, a, b, tasks), a=a, b=b)


def with_tasks(suites: PossibleSuites, tasks: int) -> PossibleSuites:
    """The same suites with so many tasks: the first of them, or further ones of their kind.

    Tasks in families are copied, family by family, until there are enough: a copy is another task
    at the same rates.
    """
    if suites.group is not None:
        every = _copied(suites, -(-tasks // suites.tasks), same_families=suites.group.repeats)
        return every.taken(np.arange(every.tasks) < tasks)
    if tasks <= suites.tasks:
        return replace(suites, rates=suites.rates[:, :tasks])
    rng = np.random.default_rng(_SEED + 1)
    more = _tasks(rng, suites.a, suites.b, tasks - suites.tasks)
    return replace(suites, rates=np.concatenate((suites.rates, more), axis=1))


def with_families(suites: PossibleSuites, families: int) -> PossibleSuites:
    """The same suites with so many families, each like one of those there are."""
    assert suites.group is not None, "tasks have families"
    every = _copied(suites, -(-families // suites.group.families), same_families=False)
    assert every.group is not None, "copies keep their families"
    return every.taken(every.group.family < families)


def _copied(suites: PossibleSuites, copies: int, *, same_families: bool) -> PossibleSuites:
    """Every task so many times, in its family or in copies of that family.

    Copies take the rates of other drawn suites, so that they vary as much as the rates are unknown.
    """
    group = suites.group
    assert group is not None, "tasks have families"
    rows = [np.roll(suites.rates, copy, axis=0) for copy in range(copies)]
    step = 0 if same_families else group.families
    family = np.concatenate([group.family + copy * step for copy in range(copies)])
    groups = TaskGroups(family=family, weight=np.tile(group.weight, copies))
    return replace(suites, rates=np.concatenate(rows, axis=1), group=groups)


def _called_better(
    first: Floats, second: Floats, suites: PossibleSuites, alpha: float, *, steps: int | None
) -> np.ndarray:
    """For which suites (rows) a comparison for similar tasks calls the first system better.

    Rates are multiples of 1 / `steps`; None if they are not.
    """
    gaps, tasks = first - second, suites.tasks
    weight = np.ones(tasks) if suites.group is None else suites.group.weight
    # Half a task is added, as in a comparison: a side that never passed may still.
    share = (second @ weight / weight.sum() * tasks + 0.5) / (tasks + 1)
    sums = gaps * weight
    if suites.by_family and suites.group is not None:
        members = np.eye(suites.group.families)[suites.group.family] * weight[:, None]
        sums = gaps @ members
        low = lower_ratio_quantile(
            sums, members.sum(axis=0), alpha / 2, unseen=-share, share=UNSEEN_IN_TEST
        )
    else:
        values, counts = gaps, weight
        if suites.group is None and steps is not None and 2 * steps + 1 < tasks:
            # Tasks that differ by as many passes are one value, however many there are.
            values, counts = np.arange(-steps, steps + 1) / steps, _by_difference(gaps, steps)
        low = lower_quantile(values, counts, alpha / 2, unseen=-share, share=UNSEEN_IN_TEST)
    few = tasks <= _FLIPPED_TASKS and not suites.by_family
    return np.asarray((low > 0) & ((_sign_flip_p(gaps) if few else _flip_limit(sums)) <= alpha))


def _by_difference(gaps: Floats, runs: int) -> Floats:
    """How many tasks of each suite (row) differ by -runs, ..., +runs passes."""
    rows, kinds = len(gaps), 2 * runs + 1
    keys = np.arange(rows)[:, None] * kinds + np.rint(gaps * runs).astype(np.intp) + runs
    return np.bincount(keys.ravel(), minlength=rows * kinds).reshape(rows, kinds).astype(np.float64)


def _flip_limit(sums: Floats) -> Floats:
    """The limit of that p-value for many tasks or families: flipped sums are normal."""
    square = np.maximum((sums**2).sum(axis=1), np.finfo(float).tiny)
    return np.asarray(2 * special.ndtr(-np.abs(sums.sum(axis=1)) / np.sqrt(square)))


def _sign_flip_p(gaps: Floats) -> Floats:
    """Two-sided mid-p of flipped signs, for every row at once (`sign_flip_test`)."""
    tasks = gaps.shape[1]
    # Every way to flip signs, a row each: the bits of its number.
    signs = 1 - 2 * ((np.arange(1 << tasks)[:, None] >> np.arange(tasks)) & 1)
    flipped, seen = np.abs(signs @ gaps.T), np.abs(gaps.sum(axis=1))
    tied = np.abs(flipped - seen) < 1e-9  # the same gaps in another order differ by rounding
    return np.asarray(((flipped > seen) & ~tied).mean(axis=0) + tied.mean(axis=0) / 2)


def _assured_width(widths: Floats, assurance: float) -> float:
    most, nearly_all = np.quantile(widths, (assurance, CLOSE_SHARE))
    return float(max(most, nearly_all / CLOSE))


def _counted(passes: np.ndarray, runs: int) -> Cells:
    """Suites (rows) of tasks with as many runs each, counted by their passes."""
    suites = len(passes)
    keys = np.arange(suites)[:, None] * (runs + 1) + passes
    tasks = np.bincount(keys.ravel(), minlength=suites * (runs + 1)).reshape(suites, runs + 1)
    seen = tasks.any(axis=0)
    return Cells(
        n=np.full(runs + 1, float(runs))[seen],
        c=np.arange(runs + 1.0)[seen],
        tasks=tasks[:, seen].astype(np.float64),
    )


def _unequal(group: TaskGroups | None) -> float:
    """How much wider unequal weights make an interval: the root of Kish's design effect."""
    if group is None:
        return 1.0
    weight = group.weight
    return sqrt(weight.size * float((weight**2).sum())) / float(weight.sum())


def _tasks(rng: np.random.Generator, a: Floats, b: Floats, tasks: int) -> Floats:
    """The pass rates of so many tasks of each suite."""
    return _beta(rng, np.tile(a[:, None], tasks), np.tile(b[:, None], tasks))


def _beta(rng: np.random.Generator, a: Floats, b: Floats) -> Floats:
    return rng.beta(np.maximum(a, _LEAST_SHAPE), np.maximum(b, _LEAST_SHAPE))
