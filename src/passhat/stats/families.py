"""Tasks in families or with unequal weights: intervals, and how much families explain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from passhat.arguments import CONFIDENCE
from passhat.dataclass import dataclass, short_dataclass
from passhat.messages import plural
from passhat.stats import special
from passhat.stats.arguments import Floats, confidence_level
from passhat.stats.cells import count_cells
from passhat.stats.estimate import THIS_SUITE, Estimate, Interval, Scope, Unavailable
from passhat.stats.passk import share_of_passing_subsets
from passhat.stats.population_mean import (
    FEWEST_FAMILIES,
    Families,
    TaskGroups,
    family_bounds,
    few_families_note,
    grouping,
)
from passhat.stats.proportions import Bounds
from passhat.stats.suite_law import suite_bounds
from passhat.stats.variance import variance_components

# Less variance than this is a rounding error of equal values.
_ROUNDING = 1e-12
# Shuffles enough to show a chance of 0.1 %, and the tasks up to which they take milliseconds.
_SHUFFLES, _MOST_SHUFFLED = 3_999, 200


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupedBounds:
    """Values and bounds for each k, and notes on families and weights.

    `family_bounds` is the interval over families where there are too few for it to be the main one.
    """

    values: Floats
    bounds: Bounds
    family_bounds: Bounds | None
    method: str
    notes: tuple[str, ...]


@short_dataclass(frozen=True, slots=True, kw_only=True)
class FamilyComponents:
    """The variance of a single run's score, split into families, tasks inside them, and luck."""

    between_families: float
    between_tasks: float
    within_tasks: float
    families: int
    tasks: int

    @property
    def total(self) -> float:
        return self.between_families + self.between_tasks + self.within_tasks

    @property
    def shares(self) -> tuple[float, float, float]:
        """The shares of families, of tasks inside them and of runs; they add up to 1."""
        parts = self.between_families, self.between_tasks, self.within_tasks
        family, task, run = (part / self.total for part in parts)
        return family, task, run

    @property
    def family_share(self) -> float:
        """The share of the variance between tasks that their family explains."""
        between = self.between_families + self.between_tasks
        return self.between_families / between if between > 0 else 0.0


def grouped_bounds(
    n: Floats, c: Floats, group: TaskGroups, *, ks: Sequence[int], scope: Scope, confidence: float
) -> GroupedBounds:
    """The mean pass^k over weighted tasks, all with at least k runs, and its interval."""
    values = np.stack([share_of_passing_subsets(n, c, k) for k in ks])
    mean = values @ group.weight / group.weight.sum()
    notes = weight_notes(group)
    if scope == THIS_SUITE:
        bounds = _stratified(n, c, group, mean, ks, confidence)
        return GroupedBounds(
            values=mean,
            bounds=bounds,
            family_bounds=None,
            method="run noise within tasks, ordered laws",
            notes=notes,
        )
    return population_of(values, mean, group, confidence)


def population_of(
    values: Floats, mean: Floats, group: TaskGroups, confidence: float
) -> GroupedBounds:
    """The interval of a weighted mean of one value per task, for tasks or families like these."""
    few = group.few_families
    over_families = family_bounds(values, group, confidence)
    return GroupedBounds(
        values=mean,
        bounds=family_bounds(values, group.alone(), confidence) if few else over_families,
        family_bounds=over_families if few else None,
        method=f"{'family' if group.many_families else 'task'} mean, Dirichlet weights",
        notes=(*few_families_note(group), *weight_notes(group)),
    )


def weight_notes(group: TaskGroups) -> tuple[str, ...]:
    """How many equal tasks the weighted ones amount to, if they are not equal."""
    if np.ptp(group.weight) == 0:
        return ()
    tasks = plural(group.family.size, "weighted task")
    return (f"{tasks}, as good as {group.alone().effective:.1f} equal ones",)


@short_dataclass(frozen=True, slots=True, kw_only=True)
class FamilyShares:
    """The shares of a single run's variance: of families, of tasks inside them, and of luck.

    They add up to 1. `family` is the correlation of two runs of different tasks of one family;
    `family` and `task` together are the ICC.
    """

    family: Estimate
    task: Estimate
    run: Estimate
    families: int


def family_shares(
    n: ArrayLike,
    total: ArrayLike,
    squares: ArrayLike | None = None,
    *,
    family: Families,
    confidence: float = CONFIDENCE,
) -> FamilyShares | Unavailable:
    """How much of the variance lies between families, between their tasks, and between runs.

    Components of the nested analysis of variance (Searle, Casella and McCulloch 1992, chapter 3).
    Intervals leave out one family at a time (the jackknife, with Student's t), from eight families
    on; with fewer there is none, and a note says why.

    >>> found = family_shares([4] * 4, [4, 3, 1, 0], family=["a", "a", "b", "b"])
    >>> round(found.family.value, 2), found.family.interval is None
    (0.68, True)
    """
    level = confidence_level(confidence)
    whole = family_components(n, total, squares, family=family)
    if isinstance(whole, Unavailable):
        return whole
    if whole.total <= 0:
        return Unavailable("there is no variance to split: every run scored the same")
    left_out = np.array(list(_leaving_one_out(n, total, squares, family)))
    # Cut off at 0, a component that is often negative would seem to be known exactly.
    raw = family_components(n, total, squares, family=family, below_zero=True)
    assert isinstance(raw, FamilyComponents)
    shares = [_share_estimate(place, whole, raw, left_out, level) for place in range(3)]
    return FamilyShares(family=shares[0], task=shares[1], run=shares[2], families=whole.families)


def _leaving_one_out(
    n: ArrayLike, total: ArrayLike, squares: ArrayLike | None, family: Families
) -> Iterator[tuple[float, float, float]]:
    """The shares without each family in turn; none if there are too few families."""
    runs, sums = np.atleast_1d(n), np.atleast_1d(total)
    powers = sums if squares is None else np.atleast_1d(squares)
    group = grouping(family, None, runs.size)
    if group is None or group.families < FEWEST_FAMILIES:
        return
    for code in range(group.families):
        kept = group.family != code
        some = runs[kept], sums[kept], powers[kept]
        found = family_components(*some, family=group.family[kept], below_zero=True)
        if isinstance(found, FamilyComponents) and found.total > 0:
            yield found.shares


def _share_estimate(
    place: int,
    whole: FamilyComponents,
    raw: FamilyComponents,
    left_out: Floats,
    confidence: float,
) -> Estimate:
    value, groups = whole.shares[place], len(left_out)
    interval: Interval | None = None
    notes: tuple[str, ...] = ()
    if groups < FEWEST_FAMILIES:
        notes = (f"no interval: {plural(whole.families, 'family', 'families')} are too few",)
    else:
        spread = left_out[:, place] - left_out[:, place].mean()
        error = float(np.sqrt((groups - 1) / groups * (spread**2).sum()))
        reach = float(special.stdtrit(groups - 1, (1 + confidence) / 2)) * error
        low, high = (float(np.clip(raw.shares[place] + end, 0.0, 1.0)) for end in (-reach, reach))
        interval = Interval(min(low, value), max(high, value))
    return Estimate(
        value=value,
        interval=interval,
        method="nested analysis of variance, jackknife over families",
        confidence=confidence,
        tasks=whole.tasks,
        notes=notes,
    )


def family_components(
    n: ArrayLike,
    total: ArrayLike,
    squares: ArrayLike | None = None,
    *,
    family: Families,
    below_zero: bool = False,
) -> FamilyComponents | Unavailable:
    """Split the variance of the scores into families, tasks and runs (nested analysis of variance).

    The sums are those of `variance_components`; `family` labels each task. Task means count
    equally; negative components are 0, unless `below_zero` lets them be what they are.

    >>> split = family_components([4] * 4, [4, 3, 1, 0], family=["a", "a", "b", "b"])
    >>> split.families, round(split.family_share, 2)
    (2, 1.0)
    """
    runs = np.atleast_1d(np.asarray(n, dtype=np.float64))
    sums = np.atleast_1d(np.asarray(total, dtype=np.float64))
    group = grouping(family, None, runs.size)
    if group is None or not group.repeats:
        return Unavailable("no family has more than one task")
    if group.families < 2:
        return Unavailable("all tasks are of one family")
    plain = variance_components(n, total, squares)
    if isinstance(plain, Unavailable):
        return plain
    kept = runs > 0
    some = group.taken(kept)
    luck = plain.within * float((1 / runs[kept]).mean())
    inner, outer = _components(sums[kept] / runs[kept], some.family, luck)
    if not below_zero:
        inner, outer = max(0.0, inner), max(0.0, outer)
    return FamilyComponents(
        between_families=outer,
        between_tasks=inner,
        within_tasks=plain.within,
        families=some.families,
        tasks=int(kept.sum()),
    )


def families_differ(values: ArrayLike, family: Families, *, level: float = 0.001) -> bool:
    """Whether the means of families differ by a one-way F test of one value a task.

    Where failures are rare, F is far from its law in small suites: up to 200 tasks, shuffled labels
    must agree (a permutation test at the same level, with a fixed seed).

    >>> rates = [1.0, 0.9, 1.0, 1.0, 0.8, 0.9, 0.1, 0.0, 0.2, 0.1, 0.0, 0.3]
    >>> families_differ(rates, ["a"] * 6 + ["b"] * 6, level=0.01)
    True
    """
    found = np.asarray(values, dtype=np.float64)
    group = grouping(family, None, found.size)
    if group is None or not 1 < group.families < found.size:
        return False
    sizes = np.bincount(group.family)
    centres = np.bincount(group.family, found) / sizes
    degrees = group.families - 1, found.size - group.families
    between = float((sizes * (centres - found.mean()) ** 2).sum()) / degrees[0]
    within = float(((found - centres[group.family]) ** 2).sum()) / degrees[1]
    if between <= within * float(special.fdtri(*degrees, 1 - level)) + _ROUNDING:
        return False
    return found.size > _MOST_SHUFFLED or _shuffled_p(found, group) <= level


def _stratified(
    n: Floats, c: Floats, group: TaskGroups, mean: Floats, ks: Sequence[int], confidence: float
) -> Bounds:
    """Bounds of strata of equal weight, joined: the arms of their intervals add up as squares do.

    The method of variance estimates recovery (Zou and Donner 2008). It is coherent: an end rises
    with the mean of each stratum and with its bound.
    """
    below, above = np.zeros(len(ks)), np.zeros(len(ks))
    for weight in np.unique(group.weight):
        kept = group.weight == weight
        cells = count_cells(n[kept], c[kept])
        share = weight * kept.sum() / group.weight.sum()
        values = np.array([cells.mean(share_of_passing_subsets(cells.n, cells.c, k)) for k in ks])
        low, high = suite_bounds(cells, ks, confidence)
        below += (share * (values - low)) ** 2
        above += (share * (high - values)) ** 2
    return np.maximum(mean - np.sqrt(below), 0.0), np.minimum(mean + np.sqrt(above), 1.0)


def _shuffled_p(values: Floats, group: TaskGroups) -> float:
    """The chance that shuffled labels put the means of families as far apart."""
    sizes = np.bincount(group.family)
    members = np.eye(group.families)[group.family] / np.sqrt(sizes)
    rng = np.random.default_rng(0)
    shuffled = rng.permuted(np.broadcast_to(values, (_SHUFFLES, values.size)), axis=1)
    seen = float(((values @ members) ** 2).sum())
    as_far = ((shuffled @ members) ** 2).sum(axis=1) >= seen - _ROUNDING
    return (1 + int(as_far.sum())) / (1 + _SHUFFLES)


def _components(means: Floats, family: ArrayLike, luck: float) -> tuple[float, float]:
    """The variances of tasks inside families and of families, from one mean a task, uncut at 0."""
    codes = np.asarray(family)
    sizes = np.bincount(codes).astype(np.float64)
    centres = np.bincount(codes, means) / sizes
    tasks, families = means.size, sizes.size
    square = float(((means - centres[codes]) ** 2).sum()) / max(tasks - families, 1)
    spread = float((sizes * (centres - means.mean()) ** 2).sum()) / max(families - 1, 1)
    typical = (tasks - float((sizes**2).sum()) / tasks) / max(families - 1, 1)
    return square - luck, (spread - square) / typical
