"""More than two systems on the same tasks: which differ, which tie, and the ranks each may hold."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from passhat.arguments import CONFIDENCE, confidence_level
from passhat.dataclass import dataclass, lazy_field, replace, result_dataclass
from passhat.errors import ArgumentError
from passhat.messages import plural
from passhat.stats.arguments import Floats, RandomSource, float_array, random_generator, score_array
from passhat.stats.dependent_runs import Margins, larger_ps, wider_bounds
from passhat.stats.estimate import Interval, Unavailable
from passhat.stats.exact_tests import MONTE_CARLO_FLIPS, sign_flip_tests
from passhat.stats.multiple_testing import tukey, tukey_level
from passhat.stats.numerics import distinct_rows
from passhat.stats.paired import SAME, UNSEEN_OF_PAIRS, without_rounding
from passhat.stats.population_bounds import (
    Families,
    TaskGroups,
    few_families_note,
    grouping,
    lower_quantile,
    lower_ratio_quantile,
    lower_ratio_tail,
    lower_tail,
)
from passhat.stats.special import ndtri

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from passhat.stats.sufficient_statistics import Mask


@result_dataclass(frozen=True, slots=True, kw_only=True)
class PairOfSystems:
    """System `first` minus system `second` (by position), with a simultaneous interval."""

    first: int
    second: int
    value: float
    interval: Interval
    standard_error: float
    p_value: float

    @property
    def told_apart(self) -> bool:
        return 0 not in self.interval


@result_dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """What the tasks say about the order of the systems, all statements true at once.

    `means` and `rank_sets` go by the position of the system; `order` lists positions
    from best to worst mean. `pair_level` is the p-value that a pair needs by itself.

    A tie band is a largest group of systems of which no two differ significantly; every two
    systems that do not differ share one.
    """

    means: tuple[float, ...]
    order: tuple[int, ...]
    rank_sets: tuple[tuple[int, int], ...]
    tie_bands: tuple[tuple[int, ...], ...]
    pairs: lazy_field[tuple[PairOfSystems, ...]] = lazy_field()
    pair_level: float
    method: str
    confidence: float
    tasks: int
    excluded: tuple[int, ...]
    seed: int | None
    notes: tuple[str, ...] = ()

    @property
    def too_few_tasks(self) -> bool:
        """Whether no two systems could be told apart, even if all tasks agreed."""
        return _too_few(self.tasks, self.pair_level)

    @property
    def first(self) -> list[int]:
        """The positions of the systems that may truly be first, the best mean first."""
        return [i for i in self.order if self.rank_sets[i][0] == 1]


def rank_systems(
    values: ArrayLike,
    *,
    confidence: float = CONFIDENCE,
    family: Families | None = None,
    weight: ArrayLike | None = None,
    more: Sequence[Margins] = (),
    rng: RandomSource = None,
) -> Ranking | Unavailable:
    """Rank systems from a table of values in [0, 1]: a row per task, a column per system.

    nan marks a task that a system did not run; only tasks with a value from every system are
    compared, and the others are `excluded`, by position. Each pair is judged as
    `paired_difference` judges it for similar tasks, at the level at which all pairs, and so the
    rank sets, hold at once (Tukey); with few tasks a little more strictly, as ties in the sign-flip
    test count whole. The answer for two systems depends on their own values and on how many systems
    there are, so one more failure never improves a system's rank set.
    With eight `family` labels or more, one per task, families are what was sampled. `more` are
    errors of each system that the tasks do not show, such as what an outage adds: margins at this
    confidence.

    >>> table = np.random.default_rng(1).binomial(5, [0.3, 0.9, 0.9], size=(40, 3)) / 5
    >>> ranking = rank_systems(table)
    >>> ranking.rank_sets, ranking.tie_bands
    (((3, 3), (1, 2), (1, 2)), ((1, 2), (0,)))
    """
    confidence = confidence_level(confidence)
    table = _table(values)
    shared = np.asarray(~np.isnan(table).any(axis=1))
    excluded = tuple(np.flatnonzero(~shared).tolist())
    group = grouping(family, weight, len(table))
    table = table[shared]
    if len(table) < 2:
        return Unavailable(f"ranking needs 2 tasks that every agent ran; there are {len(table)}")
    generator, seed = random_generator(rng)
    kept = None if group is None else group.taken(shared)
    means = np.average(table, axis=0, weights=None if kept is None else kept.weight)
    every = all_pairs(table, kept, 1 - confidence, generator)
    every = _with_margins(every, more, confidence)
    ranks = rank_sets(means, _better(every, table.shape[1]))
    return Ranking(
        means=tuple(means.tolist()),
        order=ranks.order,
        rank_sets=ranks.sets,
        tie_bands=ranks.tie_bands,
        pairs=partial(_pairs, every),  # 400 systems have 80,000
        pair_level=every.level,
        method=every.method,
        confidence=confidence,
        tasks=len(table),
        excluded=excluded,
        seed=seed,
        notes=(*_notes(len(excluded), len(table), every.level), *few_families_note(kept)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RankSets:
    """What differences of all pairs say of ranks; as the fields of `Ranking` of these names."""

    order: tuple[int, ...]
    sets: tuple[tuple[int, int], ...]
    tie_bands: tuple[tuple[int, ...], ...]


def rank_sets(means: ArrayLike, better: Mask) -> RankSets:
    """The ranks that each system may have, where better[i, j] says that i is shown above j."""
    order = np.argsort(-np.asarray(means), kind="stable").tolist()
    best, worst = 1 + better.sum(axis=0), len(better) - better.sum(axis=1)
    return RankSets(
        order=tuple(order),
        sets=tuple(zip(best.tolist(), worst.tolist(), strict=True)),
        tie_bands=_tie_bands(order, better),
    )


def _with_margins(every: AllPairs, more: Sequence[Margins], confidence: float) -> AllPairs:
    """The pairs, each with the margins of both systems at its own, stricter level."""
    margins = np.array(more)
    if not margins.any():
        return every
    margins *= float(ndtri(every.level / 2) / ndtri((1 - confidence) / 2))
    # The far margin of the second side is its low one.
    (a_low, a_high), (b_low, b_high) = margins[every.first].T, margins[every.second].T
    before, grown = (every.low, every.high), (np.hypot(a_low, b_high), np.hypot(a_high, b_low))
    after = wider_bounds(before, every.value, grown)
    p = larger_ps(every.p_value, every.value, before, after, level=every.level)
    return replace(every, low=after[0], high=after[1], p_value=p)


def _table(values: ArrayLike) -> Floats:
    table = float_array("values", values)
    if table.ndim != 2 or table.shape[1] < 2:
        rule = "must have a row per task and a column per agent, two or more"
        raise ArgumentError("values", rule, table.shape)
    score_array("values", table[~np.isnan(table)])
    return table


def _pairs(every: AllPairs) -> tuple[PairOfSystems, ...]:
    columns = (
        every.first,
        every.second,
        every.value,
        every.low,
        every.high,
        every.error,
        every.p_value,
    )
    return tuple(
        PairOfSystems(
            first=first,
            second=second,
            value=value,
            interval=Interval(low, high),
            standard_error=error,
            p_value=p,
        )
        for first, second, value, low, high, error, p in zip(
            *(column.tolist() for column in columns), strict=True
        )
    )


def _better(every: AllPairs, systems: int) -> Mask:
    """better[i, j]: system i is significantly above system j."""
    better = np.zeros((systems, systems), dtype=bool)
    told_apart, above = (every.low > 0) | (every.high < 0), every.value > 0
    better[every.first, every.second] = told_apart & above
    better[every.second, every.first] = told_apart & ~above
    return better


def _tie_bands(order: list[int], better: Mask) -> tuple[tuple[int, ...], ...]:
    """The largest groups of systems in which no pair differs significantly.

    Bands may overlap and skip systems in between, because some differences are known better than
    others. Every pair that does not differ shares a band; a system without such a pair is alone.
    """
    tied = ~(better | better.T)
    bands: list[tuple[int, ...]] = []
    joined = np.zeros_like(tied)
    for place, system in enumerate(order):
        below = [other for other in order[place + 1 :] if tied[system, other]]
        for other in below:
            if not joined[system, other]:
                band = [system, other]
                for third in (*below, *reversed(order[:place])):
                    if third not in band and tied[band, third].all():
                        band.append(third)
                bands.append(tuple(sorted(band, key=order.index)))
                joined[np.ix_(band, band)] = True
        if tied[system].sum() == 1:  # with itself
            bands.append((system,))
    return tuple(sorted(bands, key=lambda band: [order.index(system) for system in band]))


def _too_few(tasks: int, level: float) -> bool:
    return 2 * 0.5**tasks > level  # the p-value of a sign-flip test where all tasks agree


def _notes(excluded: int, tasks: int, level: float) -> tuple[str, ...]:
    notes = []
    if excluded:
        lacking = plural(excluded, "task lacks", "tasks lack")
        is_out = "is" if excluded == 1 else "are"
        notes.append(f"{lacking} a value from some agent and {is_out} left out")
    if _too_few(tasks, level):
        notes.append(f"{plural(tasks, 'task is', 'tasks are')} too few to tell any two apart")
    return tuple(notes)


# The differences of all pairs of systems on the same tasks, coherent and simultaneous.

Places = NDArray[np.intp]

# Expected draws beyond the level that a pair needs: with fewer its test would depend on the seed.
_DRAWS_BEYOND = 3.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AllPairs:
    """System `first` minus system `second`, an entry for each pair.

    An interval is that of `paired_difference` for similar tasks at the level of a pair, and
    reaches 0 if the sign-flip test does not tell the two apart. `p_value` is adjusted for the
    number of systems, `level` is the p-value that a pair needs by itself. Errors and the p-values
    of pairs whose interval holds 0 say nothing of ranks: they are computed on first use.
    """

    first: Places
    second: Places
    value: Floats
    low: Floats
    high: Floats
    error: lazy_field[Floats] = lazy_field()
    p_value: lazy_field[Floats] = lazy_field()
    level: float
    method: str


def all_pairs(
    table: Floats, group: TaskGroups | None, alpha: float, rng: np.random.Generator
) -> AllPairs:
    """From a row of values for each task and a column for each system, without nan."""
    systems = table.shape[1]
    first, second = np.triu_indices(systems, 1)
    sums, sizes = _unit_sums(table, group)
    units = sizes.size
    # Half a task is added to how often a side passes, so that a side that never did may still.
    passing = (sums.sum(axis=0) / sizes.sum() * units + 0.5) / (units + 1)
    differences = _DirichletMeans(
        sums=sums, pairs=(first, second), sizes=sizes, unseen=(-passing[second], -passing[first])
    )
    gaps = differences.gaps
    value = without_rounding(gaps.sum(axis=-1) / sizes.sum())
    level = tukey_level(alpha, systems)
    draws = max(MONTE_CARLO_FLIPS, int(_DRAWS_BEYOND / level))
    flips = sign_flip_tests(sums, (first, second), rng, draws=draws, mid=False)
    low, high = differences.bounds(level / 2)
    outside = (low > 0) | (high < 0)

    def p_values(some: Mask) -> Floats:
        if not some.any():
            return np.empty(0)
        # Two systems are told apart where the interval and the sign-flip test agree: the larger p.
        p = np.maximum(differences.taken(some).p_values(value[some]), flips.p_values[some])
        return np.where(value[some] == 0, 1.0, p)

    p_outside = p_values(outside)

    def adjusted_ps() -> Floats:
        p = np.empty(value.size)
        p[outside], p[~outside] = p_outside, p_values(~outside)
        return tukey(p, systems)

    # An interval says what the p-value says, and holds its own value.
    apart = outside.copy()
    apart[outside] = p_outside <= level
    adjusted = f", Tukey over {systems} systems" if systems > 2 else ""
    return AllPairs(
        first=first,
        second=second,
        value=value,
        low=np.minimum(np.where(apart, low, np.minimum(low, 0.0)), value),
        high=np.maximum(np.where(apart, high, np.maximum(high, 0.0)), value),
        error=partial(_errors, gaps, sizes, value),
        p_value=adjusted_ps,
        level=level,
        method=f"paired, Dirichlet weights and {flips.method}{adjusted}",
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _DirichletMeans:
    """The Dirichlet mean of each pair's differences (see `paired.SampledFit`), all at once.

    `unseen` is the worst value that an unseen task could have, for the first side and the second.
    """

    sums: Floats
    pairs: tuple[Places, Places]
    sizes: Floats
    unseen: tuple[Floats, Floats]

    @cached_property
    def gaps(self) -> Floats:
        """A row for each pair, a column for each unit that was sampled."""
        first, second = self.pairs
        return np.asarray((self.sums[:, first] - self.sums[:, second]).T)

    def taken(self, kept: Mask) -> _DirichletMeans:
        """Those of some of the pairs."""
        (first, second), (lower, upper) = self.pairs, self.unseen
        return _DirichletMeans(
            sums=self.sums,
            pairs=(first[kept], second[kept]),
            sizes=self.sizes,
            unseen=(lower[kept], upper[kept]),
        )

    def bounds(self, tail: float) -> tuple[Floats, Floats]:
        low, high = (
            self._lower(sign, unseen, tail)
            for sign, unseen in zip((1.0, -1.0), self.unseen, strict=True)
        )
        return low, -high

    def p_values(self, value: Floats) -> Floats:
        """Twice the chance that the side which is ahead is not."""
        ahead = value > 0
        sign, unseen = np.where(ahead, 1.0, -1.0), np.where(ahead, *self.unseen)
        if not self._equal:
            gaps = sign[:, None] * self.gaps
            tail = lower_ratio_tail(gaps, self.sizes, 0.0, unseen=unseen, share=UNSEEN_OF_PAIRS)
        else:
            values, tasks, unseen, places = self._alike(sign, unseen)
            tail = lower_tail(values, tasks, 0.0, unseen=unseen, share=UNSEEN_OF_PAIRS)[places]
        return np.maximum(2 * tail, np.finfo(float).tiny)

    def _lower(self, sign: float, unseen: Floats, tail: float) -> Floats:
        if not self._equal:
            return lower_ratio_quantile(
                sign * self.gaps, self.sizes, tail, unseen=unseen, share=UNSEEN_OF_PAIRS
            )
        values, tasks, unseen, places = self._alike(np.full(len(self.gaps), sign), unseen)
        return lower_quantile(values, tasks, tail, unseen=unseen, share=UNSEEN_OF_PAIRS)[places]

    def _alike(self, sign: Floats, unseen: Floats) -> tuple[Floats, Floats, Floats, Places]:
        """Values, tasks and unseen value of each different question, and which one a pair asks."""
        values, tasks = self._distinct
        if values.ndim > 1:
            return sign[:, None] * values, tasks, unseen, np.arange(len(values))
        first, places = distinct_rows(np.column_stack((tasks, unseen, sign)))
        return sign[first, None] * values, tasks[first], unseen[first], places

    @property
    def _equal(self) -> bool:
        return bool(np.ptp(self.sizes) == 0)

    @cached_property
    def _distinct(self) -> tuple[Floats, Floats]:
        """The distinct values of all pairs and how many tasks have them, if that is shorter."""
        sums, codes = np.unique(self.sums, return_inverse=True)
        # Rates are fractions of few runs, so that many pairs share few values.
        if sums.size**2 > self.gaps.size:
            differences, places = self.gaps, None
        else:
            differences, codes = sums[:, None] - sums, codes.reshape(self.sums.shape)
            places = (codes[:, self.pairs[0]] * sums.size + codes[:, self.pairs[1]]).T
        means = np.round(differences / self.sizes[0], 12)
        values, kinds = np.unique(means, return_inverse=True)
        pairs, tasks = self.gaps.shape
        if values.size >= tasks:
            return self.gaps / self.sizes, np.ones(self.gaps.shape)
        kinds = kinds.reshape(self.gaps.shape) if places is None else kinds.ravel()[places]
        rows = np.arange(pairs)[:, None] * values.size
        counts = np.bincount((rows + kinds).ravel(), minlength=pairs * values.size)
        return values, counts.reshape(pairs, values.size).astype(np.float64)


def _unit_sums(table: Floats, group: TaskGroups | None) -> tuple[Floats, Floats]:
    """The summed values and the size of each unit that was sampled: families, or else tasks."""
    if group is None:
        return table, np.ones(len(table))
    codes = group.alone().family if group.few_families else group.family
    sizes = np.bincount(codes, group.weight).astype(np.float64)
    sums = np.zeros((sizes.size, table.shape[1]))
    np.add.at(sums, codes, table * group.weight[:, None])
    return sums, sizes


def _errors(gaps: Floats, sizes: Floats, value: Floats) -> Floats:
    """The standard error of each difference; 0 if it never varies."""
    # That of a ratio of sums (Cochran 1977, chapter 6): units are of unequal size.
    residuals = gaps - value[:, None] * sizes
    units = sizes.size
    error = np.sqrt((residuals**2).sum(axis=-1) * units / (units - 1)) / sizes.sum()
    return np.where(np.ptp(gaps / sizes, axis=-1) < SAME, 0.0, error)
