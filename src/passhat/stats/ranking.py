"""More than two systems on the same tasks: which differ, which tie, and the ranks each may hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from passhat.defaults import CONFIDENCE
from passhat.errors import ArgumentError
from passhat.fast_dataclass import short_dataclass
from passhat.messages import plural
from passhat.stats.arguments import (
    Floats,
    RandomSource,
    confidence_level,
    random_generator,
    score_array,
    whole_number,
)
from passhat.stats.derived_intervals import to_zero
from passhat.stats.estimate import Interval, Unavailable
from passhat.stats.population_mean import (
    FEWEST_FAMILIES,
    Families,
    TaskGroups,
    few_families_note,
    grouping,
)
from passhat.stats.special import stdtr, stdtrit

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from passhat.stats.task_sums import Mask

# Sign flips that the critical value is read from: its tail of 5 % holds 200 of them.
DEFAULT_REPLICATES = 4_000

# Beyond this many tasks the sign-flipped sums are normal to every digit that matters.
_FLIPPED_TASKS = 10_000
# Numbers in memory at once: 32 MB.
_CHUNK = 4_000_000
# Variances and ratios that differ by less are equal but for rounding.
_SAME = 1e-12
_TIE = 1e-9


@short_dataclass(frozen=True, slots=True, kw_only=True)
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


@short_dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """What the tasks say about the order of the systems, all statements true at once.

    `means` and `rank_sets` go by the position of the system; `order` lists positions
    from best to worst mean. A tie band is a largest group of systems of which no two differ
    significantly; every two that do not differ share one.
    """

    means: tuple[float, ...]
    order: tuple[int, ...]
    rank_sets: tuple[tuple[int, int], ...]
    tie_bands: tuple[tuple[int, ...], ...]
    pairs: tuple[PairOfSystems, ...]
    critical_value: float | None
    method: str
    confidence: float
    tasks: int
    excluded: tuple[int, ...]
    replicates: int
    seed: int | None
    notes: tuple[str, ...] = ()


def rank_systems(
    values: ArrayLike,
    *,
    confidence: float = CONFIDENCE,
    family: Families | None = None,
    weight: ArrayLike | None = None,
    replicates: int = DEFAULT_REPLICATES,
    rng: RandomSource = None,
) -> Ranking | Unavailable:
    """Rank systems from a table of values in [0, 1]: a row per task, a column per system.

    nan marks a task that a system did not run; only tasks with a value from every system are
    compared, and the others are `excluded`, by position. All pairwise intervals hold at once
    with the stated confidence (max-T over sign-flipped residuals), and so do the rank sets. Two
    systems are told apart only where flipping the signs of the differences themselves says so
    too (max-T of Westfall and Young 1993), which is exact with few tasks, where residuals err;
    and never where the paired t test of these two alone would not. With eight `family` labels
    or more, one per task, families are what was sampled: signs are flipped family by family.

    >>> table = np.random.default_rng(1).binomial(5, [0.3, 0.9, 0.9], size=(40, 3)) / 5
    >>> found = rank_systems(table)
    >>> found.rank_sets, found.tie_bands
    (((3, 3), (1, 2), (1, 2)), ((1, 2), (0,)))
    """
    confidence = confidence_level(confidence)
    replicates = whole_number("replicates", replicates, least=100)
    table = _table(values)
    shared = np.asarray(~np.isnan(table).any(axis=1))
    excluded = tuple(np.flatnonzero(~shared).tolist())
    group = grouping(family, weight, len(table))
    table = table[shared]
    if len(table) < 2:
        return Unavailable(f"ranking needs 2 tasks that every system ran; there are {len(table)}")
    generator, seed = random_generator(rng)
    shared_group = None if group is None else group.taken(shared)
    rows, means, residuals = _sampled(table, shared_group)
    about_means, about_zero = (
        _Flipped(_largest_ratios(each, replicates, generator), confidence)
        for each in (residuals, rows)
    )
    pairs = _pairs(means, residuals, about_means, about_zero, 1 - confidence)
    better = _better(pairs, table.shape[1])
    order = np.argsort(-means, kind="stable").tolist()
    return Ranking(
        means=tuple(means.tolist()),
        order=tuple(order),
        rank_sets=_rank_sets(better),
        tie_bands=_tie_bands(order, better),
        pairs=pairs,
        critical_value=about_means.critical if np.isfinite(about_means.critical) else None,
        method="max-T, sign-flipped residuals",
        confidence=confidence,
        tasks=len(table),
        excluded=excluded,
        replicates=replicates,
        seed=seed,
        notes=(
            *_notes(len(excluded), max(about_means.critical, about_zero.critical)),
            *_family_notes(shared_group),
        ),
    )


def _table(values: ArrayLike) -> Floats:
    table = np.asarray(values, dtype=float)
    if table.ndim != 2 or table.shape[1] < 2:
        rule = "must have a row per task and a column per system, two or more"
        raise ArgumentError("values", rule, table.shape)
    score_array("values", table[~np.isnan(table)])
    return table


def _sampled(table: Floats, group: TaskGroups | None) -> tuple[Floats, Floats, Floats]:
    """What was sampled, a row each; the systems' means; and how the rows differ from these.

    The rows are tasks, or the sums of families, scaled so that their mean is the systems' mean.
    """
    if group is None:
        means = table.mean(axis=0)
        return table, means, table - means
    few = group.repeats and group.families < FEWEST_FAMILIES
    codes = np.arange(len(table)) if few else group.family
    units = int(codes.max()) + 1
    sums, sizes = np.zeros((units, table.shape[1])), np.zeros((units, 1))
    np.add.at(sums, codes, table * group.weight[:, None])
    np.add.at(sizes, codes, group.weight[:, None])
    means = sums.sum(axis=0) / sizes.sum()
    scale = units / sizes.sum()
    return sums * scale, means, (sums - sizes * means) * scale


def _family_notes(group: TaskGroups | None) -> tuple[str, ...]:
    if group is None or not group.repeats or group.families >= FEWEST_FAMILIES:
        return ()
    return (few_families_note(group.families),)


class _Flipped:
    """The largest |t| of tables with flipped signs: how rarely they reach what was seen."""

    def __init__(self, largest: Floats, confidence: float) -> None:
        self.largest = largest
        self.critical = float(np.quantile(largest, confidence, method="higher"))

    def p_value(self, ratio: float) -> float:
        as_large = np.count_nonzero(self.largest >= ratio * (1 - _TIE))
        return float((1 + as_large) / (1 + self.largest.size))


def _largest_ratios(values: Floats, replicates: int, rng: np.random.Generator) -> Floats:
    """The largest |t| over all pairs when each task's values change sign by a coin toss.

    Flipping signs leaves the squares alone, so with u the share of a pair's squares that falls
    on its mean, t^2 = (T - 1) u / (1 - u): one matrix product serves every pair.
    """
    tasks = len(values)
    first, second = np.triu_indices(values.shape[1], 1)
    squares = _pair_squares(values)
    varying = squares > 0
    if not varying.any():
        return np.full(replicates, np.inf)
    largest = np.empty(replicates)
    step = max(1, _CHUNK // max(tasks, squares.size))
    for start in range(0, replicates, step):
        sums = _flipped_sums(values, min(step, replicates - start), rng)
        gaps = sums[:, first[varying]] - sums[:, second[varying]]
        largest[start : start + step] = (gaps**2 / (tasks * squares[varying])).max(axis=1)
    rest = np.maximum(1 - largest, 0.0)
    with np.errstate(divide="ignore"):
        return np.sqrt(np.where(rest > _SAME, (tasks - 1) * largest / rest, np.inf))


def _pair_squares(values: Floats) -> Floats:
    """The sum of squares of each pair's difference; 0 where there is none."""
    first, second = np.triu_indices(values.shape[1], 1)
    gram = values.T @ values
    squares = gram[first, first] + gram[second, second] - 2 * gram[first, second]
    return np.where(squares > len(values) * _SAME, squares, 0.0)


def _flipped_sums(values: Floats, replicates: int, rng: np.random.Generator) -> Floats:
    tasks, systems = values.shape
    if tasks > _FLIPPED_TASKS:
        spread, axes = np.linalg.eigh(values.T @ values)
        normal = rng.standard_normal((replicates, systems))
        return np.asarray((normal * np.sqrt(np.maximum(spread, 0))) @ axes.T)
    signs = 2.0 * rng.integers(0, 2, size=(replicates, tasks), dtype=np.int8) - 1.0
    return np.asarray(signs @ values)


def _pairs(
    means: Floats, residuals: Floats, about_means: _Flipped, about_zero: _Flipped, alpha: float
) -> tuple[PairOfSystems, ...]:
    tasks, systems = residuals.shape
    errors = np.sqrt(_pair_squares(residuals) / ((tasks - 1) * tasks))
    count = errors.size
    found = []
    for a, b, error in zip(*np.triu_indices(systems, 1), errors.tolist(), strict=True):
        value = float(means[a] - means[b])
        if error == 0:
            interval, p = _constant_pair(value, tasks, count, alpha)
        else:
            # Scores on a grid tie with the critical value: a tie does not tell apart.
            ratio = abs(value) / error
            critical = max(about_means.critical, float(stdtrit(tasks - 1, 1 - alpha / 2)))
            interval = _clipped(value, critical * error * (1 + _TIE))
            if ratio <= about_zero.critical * (1 + _TIE):
                interval = to_zero(interval)
            alone = 2 * float(stdtr(tasks - 1, -ratio * (1 - _TIE)))
            p = max(about_means.p_value(ratio), about_zero.p_value(ratio), alone)
        found.append(
            PairOfSystems(
                first=int(a),
                second=int(b),
                value=value,
                interval=interval,
                standard_error=error,
                p_value=p,
            )
        )
    return tuple(found)


def _constant_pair(value: float, tasks: int, pairs: int, alpha: float) -> tuple[Interval, float]:
    """A difference that never varied: no t; the tasks not seen bound it (Bonferroni)."""
    q = (alpha / (2 * pairs)) ** (1 / tasks)
    p = min(1.0, 2 * pairs * (1 + abs(value)) ** -float(tasks))
    return _clipped(q * value, 1 - q), float(p)


def _clipped(centre: float, half: float) -> Interval:
    return Interval(max(-1.0, centre - half), min(1.0, centre + half))


def _better(pairs: tuple[PairOfSystems, ...], systems: int) -> Mask:
    """better[i, j]: system i is significantly above system j."""
    better = np.zeros((systems, systems), dtype=bool)
    for pair in pairs:
        if pair.told_apart:
            above = pair.value > 0
            better[pair.first, pair.second] = above
            better[pair.second, pair.first] = not above
    return better


def _rank_sets(better: Mask) -> tuple[tuple[int, int], ...]:
    best = 1 + better.sum(axis=0)
    worst = len(better) - better.sum(axis=1)
    return tuple(zip(best.tolist(), worst.tolist(), strict=True))


def _tie_bands(order: list[int], better: Mask) -> tuple[tuple[int, ...], ...]:
    """Groups that no pair among them tells apart, none of which could be larger.

    Bands may overlap and skip systems in between, for some differences are known better than
    others. Every pair that does not differ shares a band; a system without such a pair is alone.
    """
    tied = ~(better | better.T)
    bands: list[tuple[int, ...]] = []
    joined = np.zeros_like(tied)
    for place, one in enumerate(order):
        below = [other for other in order[place + 1 :] if tied[one, other]]
        for other in below:
            if not joined[one, other]:
                band = _widened([one, other], [*below, *reversed(order[:place])], tied)
                bands.append(tuple(sorted(band, key=order.index)))
                joined[np.ix_(band, band)] = True
        if tied[one].sum() == 1:  # with itself
            bands.append((one,))
    return tuple(sorted(bands, key=lambda band: [order.index(one) for one in band]))


def _widened(band: list[int], others: list[int], tied: Mask) -> list[int]:
    for other in others:
        if other not in band and tied[band, other].all():
            band.append(other)
    return band


def _notes(excluded: int, critical: float) -> tuple[str, ...]:
    notes = []
    if excluded:
        lacking = plural(excluded, "task lacks", "tasks lack")
        is_out = "is" if excluded == 1 else "are"
        notes.append(f"{lacking} a value from some system and {is_out} left out")
    if np.isinf(critical):
        notes.append("too few tasks differ to tell any two systems apart at this confidence")
    return tuple(notes)
