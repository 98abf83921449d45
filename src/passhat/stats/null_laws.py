"""Exact tests of one task at a time, each with the p-values it can take if nothing changed.

If the systems do not differ on a task, chance alone decides which of its results belong to which
system: that gives each test its p-value, and the law of that p-value. Passes have few values
(Fisher's exact test); scores are permuted.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb
from typing import Literal

import numpy as np

from passhat.dataclass import dataclass
from passhat.stats.arguments import Counts, Floats
from passhat.stats.hypergeometric import log_probability

Alternative = Literal["two-sided", "less", "greater"]

# Differences closer than this are the same: sums of the same scores in another order.
_TIE = 1e-9
# Up to so many divisions of the runs (8 against 8) all are enumerated; beyond, some are drawn.
_MOST_DIVISIONS = 20_000
# Draws for every task, and for those whose p is small after them: a correction for many tasks needs
# p-values far below 1 / 1,000.
_FIRST_LOOK, _CLOSE_LOOK = 999, 49_999
_WORTH_A_CLOSE_LOOK = 0.02
# Divisions times tasks whose p-values are kept: bounds the memory.
_MOST_KEPT = 4_000_000


@dataclass(frozen=True, slots=True, eq=False)
class NullLaws:
    """The law of each test's p-value if nothing changed.

    `kind[i]` says which of the `attainable` lists test i has: the p-values that it can take,
    ascending. A p-value of at most x has the chance x, for every x in the list. None is a law
    without gaps.

    >>> laws = NullLaws(kind=np.array([0, 1]), attainable=(np.array([0.1, 1.0]), None))
    >>> laws.chance(0, np.array([0.05, 0.3])).tolist(), laws.chance(1, np.array([0.3])).tolist()
    ([0.0, 0.1], [0.3])
    """

    kind: Counts
    attainable: tuple[Floats | None, ...]

    def chance(self, kind: int, p: Floats) -> Floats:
        """The chance that a test of this kind has a p-value of at most each of these."""
        reached = self.attainable[kind]
        if reached is None:
            return np.minimum(p, 1.0)
        steps = np.concatenate(([0.0], reached))
        return steps[np.searchsorted(reached, p * (1 + _TIE), side="right")]


def pass_tests(
    n_a: Counts, c_a: Counts, n_b: Counts, c_b: Counts, alternative: Alternative = "two-sided"
) -> tuple[Floats, NullLaws]:
    """Fisher's exact p of every task, by the difference of the two pass rates, and its laws.

    >>> p, laws = pass_tests(*(np.array([x]) for x in (4, 4, 4, 0)))
    >>> p.round(4).tolist(), laws.attainable[0].round(4).tolist()
    ([0.0286], [0.0286, 0.4857, 1.0])
    """
    rows = np.column_stack((n_a, n_b, c_a + c_b))
    kinds, kind = np.unique(rows, axis=0, return_inverse=True)
    p, laws = np.ones(len(rows)), list[Floats | None]()
    for j, (runs_a, runs_b, passes) in enumerate(kinds.tolist()):
        members = np.flatnonzero(kind.ravel() == j)
        fewest = max(0, passes - runs_b)
        x = np.arange(fewest, min(runs_a, passes) + 1)
        chance = np.exp(log_probability(x, runs_a, runs_b, passes))
        gap = x / max(runs_a, 1) - (passes - x) / max(runs_b, 1)
        values = _tail_chances(gap, chance, alternative)
        p[members] = values[c_a[members] - fewest]
        laws.append(_distinct(values))
    return p, NullLaws(kind.ravel().astype(np.int64), tuple(laws))


def score_tests(
    a: Sequence[Floats],
    b: Sequence[Floats],
    alternative: Alternative = "two-sided",
    *,
    ranks: bool = False,
    rng: np.random.Generator,
) -> tuple[Floats, NullLaws]:
    """The permutation p of every task's mean scores, and its laws.

    With `ranks`, scores are replaced by their ranks in the task: Wilcoxon's rank-sum test.
    """
    p = np.ones(len(a))
    kind, laws = np.arange(len(a)), list[Floats | None]([None] * len(a))
    shapes = [(len(x), len(y)) for x, y in zip(a, b, strict=True)]
    for shape in sorted(set(shapes)):
        if min(shape) == 0:
            continue
        members = [i for i, own in enumerate(shapes) if own == shape]
        pooled = np.array([np.concatenate((a[i], b[i])) for i in members])
        values = _midranks(pooled) if ranks else pooled
        if comb(sum(shape), shape[0]) <= _MOST_DIVISIONS:
            p[members], found = _enumerated(values, shape, alternative)
            for i, law in zip(members, found, strict=True):
                laws[i] = law
        else:
            p[members] = _drawn(values, shape, alternative, rng)
    return p, NullLaws(kind, tuple(laws))


def _tail_chances(gap: Floats, chance: Floats, alternative: Alternative) -> Floats:
    """The chance of a difference at least as far out as each."""
    reach = _reach(gap, alternative)
    order = np.argsort(-reach, kind="stable")
    total = np.cumsum(chance[order])
    # Ties share the chance of all of them: the last place that is not closer.
    last = np.searchsorted(-reach[order], -reach + _TIE, side="right") - 1
    return np.minimum(total[last], 1.0)


def _reach(gap: Floats, alternative: Alternative) -> Floats:
    if alternative == "two-sided":
        return np.abs(gap)
    return gap if alternative == "greater" else -gap


def _distinct(values: Floats) -> Floats:
    ordered = np.sort(values)
    new = np.concatenate(([True], np.diff(ordered) > _TIE * ordered[1:]))
    return ordered[new]


def _enumerated(
    pooled: Floats, shape: tuple[int, int], alternative: Alternative
) -> tuple[Floats, list[Floats | None]]:
    """Exact p-values over all divisions of the runs, and their laws where there is room."""
    sides = np.zeros((comb(sum(shape), shape[0]), sum(shape)))
    places = np.array(list(combinations(range(sum(shape)), shape[0])))
    np.put_along_axis(sides, places, 1.0, axis=1)
    equal = np.full(len(sides), 1 / len(sides))
    room = sides.shape[0] * len(pooled) <= _MOST_KEPT
    p, laws = np.empty(len(pooled)), list[Floats | None]()
    for i, scores in enumerate(pooled):
        gaps = _gaps(sides, scores, shape)  # the first division is the one that was seen
        if room:
            tails = _tail_chances(gaps, equal, alternative)
            p[i] = tails[0]
            laws.append(_distinct(tails))
        else:
            reach = _reach(gaps, alternative)
            p[i] = float((reach >= reach[0] - _TIE).mean())
            laws.append(None)
    return p, laws


def _drawn(
    pooled: Floats, shape: tuple[int, int], alternative: Alternative, rng: np.random.Generator
) -> Floats:
    """Monte Carlo p-values: a first look at every task, a closer one if it is worth it."""
    p = _drawn_once(pooled, shape, alternative, _FIRST_LOOK, rng)
    close = np.flatnonzero(p <= _WORTH_A_CLOSE_LOOK)
    if close.size:
        p[close] = _drawn_once(pooled[close], shape, alternative, _CLOSE_LOOK, rng)
    return p


def _drawn_once(
    pooled: Floats,
    shape: tuple[int, int],
    alternative: Alternative,
    draws: int,
    rng: np.random.Generator,
) -> Floats:
    sides = np.zeros((draws + 1, sum(shape)))
    sides[0, : shape[0]] = 1.0
    places = np.argsort(rng.random((draws, sum(shape))), axis=1)[:, : shape[0]]
    np.put_along_axis(sides[1:], places, 1.0, axis=1)
    found = np.empty(len(pooled))
    for i, scores in enumerate(pooled):
        reach = _reach(_gaps(sides, scores, shape), alternative)
        found[i] = float((reach >= reach[0] - _TIE).mean())
    return found


def _gaps(sides: Floats, scores: Floats, shape: tuple[int, int]) -> Floats:
    first = sides @ scores
    return np.asarray(first / shape[0] - (scores.sum() - first) / shape[1])


def _midranks(pooled: Floats) -> Floats:
    """The rank of each score in its row, ties sharing the middle of their ranks."""
    below = (pooled[:, :, None] > pooled[:, None, :]).sum(axis=2)
    tied = (pooled[:, :, None] == pooled[:, None, :]).sum(axis=2)
    return np.asarray(below + (tied + 1) / 2)
