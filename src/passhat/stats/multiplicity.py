"""Many tests at once: p-values adjusted so that the family's error rate is the stated one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from passhat.errors import ArgumentError
from passhat.stats.arguments import Counts, Floats, score_array
from passhat.stats.roots import crossing
from passhat.stats.special import ndtr, ndtri

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import ArrayLike

    from passhat.stats.null_laws import NullLaws

# Statistics that should be equal differ by rounding, and a tie counts as at least as extreme.
_TIE = 1e-9
# For the range of normal values (scipy.stats.studentized_range has it, but takes a second to load):
# beyond eight standard deviations there is nothing to sum, and steps of a tenth are exact to the
# last digit (the trapezoid rule on a smooth bell).
_NODE_STEP = 0.1
_NODES = np.arange(-8, 8.05, _NODE_STEP)
_LEAST_P, _FAR_OUT = 1e-300, 1e-9
# So many p-values at a time: a table of the nodes of each then fits into a processor's cache.
_BLOCK = 1024


def holm(p: ArrayLike) -> Floats:
    """P-values adjusted so that rejecting below alpha errs anywhere with probability alpha.

    Holm (1979). Valid under any dependence: the correction for gates.

    >>> holm([0.01, 0.04, 0.03]).round(6).tolist()
    [0.03, 0.06, 0.06]
    """
    values = _p_values(p)
    order = np.argsort(values, kind="stable")
    factors = np.arange(values.size, 0, -1)
    stepped = np.maximum.accumulate(values[order] * factors)
    return _restored(stepped, order)


def benjamini_hochberg(p: ArrayLike) -> Floats:
    """P-values adjusted so that, of what is rejected below alpha, a share alpha is false.

    Benjamini and Hochberg (1995): the correction for screening, where a false lead costs little.

    >>> benjamini_hochberg([0.01, 0.04, 0.03]).round(6).tolist()
    [0.03, 0.04, 0.04]
    """
    values = _p_values(p)
    order = np.argsort(values, kind="stable")[::-1]
    factors = values.size / np.arange(values.size, 0, -1)
    stepped = np.minimum.accumulate(values[order] * factors)
    return _restored(stepped, order)


def tukey(p: ArrayLike, systems: int) -> Floats:
    """P-values of all pairs among so many systems, adjusted so that all hold at once.

    The chance that the widest of all pairs is as extreme: the range of independent normal values
    (Tukey 1953), which unequal variances do not make larger (Hayter 1984). Each adjusted p-value
    depends on its own pair alone, unlike one that is stepped down.

    >>> tukey([0.02], 2).round(6).tolist(), tukey([0.02], 3).round(3).tolist()
    ([0.02], [0.052])
    """
    values = _p_values(p)
    pairs = systems * (systems - 1) / 2
    tail = _range_tails(values, systems)
    # Far out the pairs exclude one another, and 1 - inside has no digits left.
    return np.minimum(np.where(values * pairs < _FAR_OUT, values * pairs, tail), 1.0)


def tukey_level(alpha: float, systems: int) -> float:
    """The p-value of a pair whose `tukey` adjustment is alpha.

    >>> round(tukey_level(0.05, 6), 5)  # Bonferroni: 0.00333
    0.00438
    """

    def below(log: Floats) -> Floats:
        return alpha - tukey(np.exp(log), systems)

    bonferroni = alpha / (systems * (systems - 1) / 2)
    low, high = np.log([bonferroni / 2]), np.log([alpha])
    return alpha if systems == 2 else float(np.exp(crossing(below, low, high))[0])


def discrete_holm(p: ArrayLike, laws: NullLaws) -> Floats:
    """Like `holm`, if it is known which p-values each test can take.

    A test that cannot reach a p-value costs nothing at it: Westfall and Wolfinger (1997), stepped
    down. Valid under any dependence.

    >>> import numpy as np
    >>> from passhat.stats.null_laws import NullLaws
    >>> laws = NullLaws(kind=np.array([0, 1]), attainable=(np.array([0.02, 1.0]), np.array([1.0])))
    >>> discrete_holm([0.02, 1.0], laws).tolist()
    [0.02, 1.0]
    """
    values = _p_values(p)
    order = np.argsort(values, kind="stable")
    ordered, kinds = values[order], laws.kind[order]
    reached = np.zeros(values.size)
    for kind in np.unique(kinds).tolist():
        left = np.cumsum((kinds == kind)[::-1])[::-1]  # not yet rejected, this one included
        reached += left * laws.chance(kind, ordered)
    return _restored(np.maximum.accumulate(reached), order)


def discrete_benjamini_hochberg(p: ArrayLike, laws: NullLaws) -> Floats:
    """Like `benjamini_hochberg`, if it is known which p-values each test can take.

    Heyse (2011) uses the sum of the tests' laws in place of their number. Doehler, Durand and
    Roquain (2018) prove the bound for laws divided by 1 - F, which at small p is nearly the same
    and finds less; for the plain sum the false share is simulated (at most 0.04 at 0.05).

    >>> import numpy as np
    >>> from passhat.stats.null_laws import NullLaws
    >>> laws = NullLaws(kind=np.array([0, 1]), attainable=(np.array([0.02, 1.0]), np.array([1.0])))
    >>> discrete_benjamini_hochberg([0.02, 1.0], laws).tolist()
    [0.02, 1.0]
    """
    values = _p_values(p)
    order = np.argsort(values, kind="stable")[::-1]
    ordered, reached = values[order], np.zeros(values.size)
    for kind, size in zip(*np.unique(laws.kind, return_counts=True), strict=True):
        reached += size * laws.chance(kind, ordered)
    shares = reached / np.arange(values.size, 0, -1)
    return np.maximum(_restored(np.minimum.accumulate(shares), order), values)


def shuffled_in_strata(
    labels: NDArray[np.bool_], strata: Counts, *, shuffles: int, rng: Generator
) -> NDArray[np.bool_]:
    """The labels as they are, in the first row, then shuffled inside their strata, row by row.

    Each stratum is a block of consecutive labels.

    >>> rng = np.random.default_rng(0)
    >>> rows = shuffled_in_strata(np.array([1, 0, 1, 1], bool), np.array([0, 0, 1, 1]),
    ...                           shuffles=5, rng=rng)
    >>> rows.shape, rows[:, :2].sum(axis=1).tolist()
    ((6, 4), [1, 1, 1, 1, 1, 1])
    """
    rows = np.empty((shuffles + 1, labels.size), dtype=bool)
    rows[0] = labels
    bounds = np.flatnonzero(np.r_[True, np.diff(strata) != 0, True])
    whole = labels.astype(np.int64)  # permuted moves whole words in half the time of single bytes
    for start, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        block = np.broadcast_to(whole[start:end], (shuffles, end - start))
        rows[1:, start:end] = rng.permuted(block, axis=1)
    return rows


def standardised(statistics: Floats) -> Floats:
    """Statistics in units of their spread over all rows, the observed row among them.

    Without the observed row, an extreme value would be measured by a spread that does not include
    it, and false positives would exceed their level. A statistic that never varies becomes 0.
    """
    centred = statistics - statistics.mean(axis=0)
    spread = np.sqrt(np.mean(centred**2, axis=0))
    return np.where(spread > _TIE, centred / np.where(spread > _TIE, spread, 1.0), 0.0)


def step_down_p(statistics: Floats) -> Floats:
    """P-values of the first row, adjusted so that any false rejection has probability alpha.

    Rows are the observed statistics and those of shuffled outcomes, columns are hypotheses, and
    larger is more extreme: Westfall and Young (1993), algorithms 2.8 and 4.1 (free step-down
    maxT; pass negative p-values for minP). The shuffles keep how the tests depend on one another,
    which makes it more powerful than Holm.

    >>> step_down_p(np.array([[3.0, 0.5], [1.0, 0.7], [0.2, 0.1], [0.3, 0.4]])).tolist()
    [0.25, 0.5]
    """
    observed = statistics[0]
    order = np.argsort(-observed, kind="stable")
    # The most extreme of each hypothesis and all that were less extreme than it as observed.
    most = np.maximum.accumulate(statistics[:, order[::-1]], axis=1)[:, ::-1]
    reached = (most >= observed[order] - _TIE).mean(axis=0)
    adjusted = np.empty(observed.size)
    adjusted[order] = np.maximum.accumulate(reached)
    return adjusted


def _range_tails(p: Floats, systems: int) -> Floats:
    """The chance that the range of so many normal values exceeds the gap of a pair with this p.

    Pairs of many systems often have the same p, as few tasks allow only so many: each distinct one
    is computed once.
    """
    if p.size > _BLOCK:
        distinct, places = np.unique(p, return_inverse=True)
        blocks = [distinct[i : i + _BLOCK] for i in range(0, distinct.size, _BLOCK)]
        return np.concatenate([_range_tails(one, systems) for one in blocks])[places]
    gap = -np.sqrt(2) * ndtri(np.maximum(p, _LEAST_P) / 2)
    # P(range < q) = S * integral of phi(z) (Phi(z) - Phi(z - q))^(S - 1)
    inside = (ndtr(_NODES) - ndtr(_NODES - gap[..., None])) ** (systems - 1)
    bell = np.exp(-(_NODES**2) / 2) / np.sqrt(2 * np.pi)
    return np.asarray(1 - systems * _NODE_STEP * (inside @ bell))


def _p_values(p: ArrayLike) -> Floats:
    values = score_array("p", p)
    if values.ndim != 1:
        raise ArgumentError("p", "must be a flat list of p-values", f"{values.ndim} dimensions")
    return values


def _restored(stepped: Floats, order: np.ndarray) -> Floats:
    adjusted = np.empty_like(stepped)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted
