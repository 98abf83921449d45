"""The differences of all pairs of systems on the same tasks, coherent and simultaneous."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from passhat.dataclass import dataclass
from passhat.stats.arguments import Floats
from passhat.stats.dirichlet_mean import (
    lower_quantile,
    lower_ratio_quantile,
    lower_ratio_tail,
    lower_tail,
)
from passhat.stats.multiplicity import tukey, tukey_level
from passhat.stats.paired_exact import MONTE_CARLO_FLIPS, sign_flip_tests
from passhat.stats.paired_fit import UNSEEN_OF_PAIRS
from passhat.stats.population_mean import TaskGroups

Places = NDArray[np.intp]

# Values that differ by less are equal but for rounding.
_SAME = 1e-12
# Expected draws beyond the level that a pair needs: with fewer its test would depend on the seed.
_DRAWS_BEYOND = 3.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AllPairs:
    """System `first` minus system `second`, an entry for each pair.

    An interval is that of `paired_difference` for tasks like these at the level of a pair, and
    reaches 0 if the sign-flip test does not tell the two apart. `p_value` is adjusted for the
    number of systems, `level` is the p-value that a pair needs by itself.
    """

    first: Places
    second: Places
    value: Floats
    low: Floats
    high: Floats
    error: Floats
    p_value: Floats
    level: float
    method: str


def all_pairs(
    table: Floats, group: TaskGroups | None, alpha: float, rng: np.random.Generator
) -> AllPairs:
    """From a row of values for each task and a column for each system, without nan."""
    systems = table.shape[1]
    first, second = np.triu_indices(systems, 1)
    sums, sizes = _unit_sums(table, group)
    gaps = (sums[:, first] - sums[:, second]).T
    value = gaps.sum(axis=-1) / sizes.sum()
    units = sizes.size
    # Half a task is added to how often a side passes, so that a side that never did may still.
    passing = (sums.sum(axis=0) / sizes.sum() * units + 0.5) / (units + 1)
    law = _Laws(gaps=gaps, sizes=sizes, unseen=(-passing[second], -passing[first]))
    level = tukey_level(alpha, systems)
    draws = max(MONTE_CARLO_FLIPS, int(_DRAWS_BEYOND / level))
    flips = sign_flip_tests(sums, (first, second), rng, draws=draws, mid=False)
    p = np.where(value == 0, 1.0, np.maximum(law.p_values(value), flips.p_values))
    low, high = law.bounds(level / 2)
    tied = p > level
    return AllPairs(
        first=first,
        second=second,
        value=value,
        low=np.minimum(np.where(tied, np.minimum(low, 0.0), low), value),
        high=np.maximum(np.where(tied, np.maximum(high, 0.0), high), value),
        error=_errors(gaps, sizes, value),
        p_value=tukey(p, systems),
        level=level,
        method=f"paired, Dirichlet weights and {flips.method}{_tukey(systems)}",
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Laws:
    """The Dirichlet law of each pair's mean difference (`paired_fit.SampledFit`), all at once.

    `unseen` is the worst value that an unseen task could have, for the first side and the second.
    """

    gaps: Floats
    sizes: Floats
    unseen: tuple[Floats, Floats]

    def bounds(self, tail: float) -> tuple[Floats, Floats]:
        low, high = (
            self._lower(sign, unseen, tail)
            for sign, unseen in zip((1.0, -1.0), self.unseen, strict=True)
        )
        return low, -high

    def p_values(self, value: Floats) -> Floats:
        """Twice the chance that the side which is ahead is not."""
        ahead = value > 0
        sign, unseen = np.where(ahead, 1.0, -1.0)[:, None], np.where(ahead, *self.unseen)
        if not self._equal:
            gaps = sign * self.gaps
            tail = lower_ratio_tail(gaps, self.sizes, 0.0, unseen=unseen, share=UNSEEN_OF_PAIRS)
        else:
            values, tasks = self._distinct
            tail = lower_tail(sign * values, tasks, 0.0, unseen=unseen, share=UNSEEN_OF_PAIRS)
        return np.maximum(2 * tail, np.finfo(float).tiny)

    def _lower(self, sign: float, unseen: Floats, tail: float) -> Floats:
        if not self._equal:
            return lower_ratio_quantile(
                sign * self.gaps, self.sizes, tail, unseen=unseen, share=UNSEEN_OF_PAIRS
            )
        values, tasks = self._distinct
        return lower_quantile(sign * values, tasks, tail, unseen=unseen, share=UNSEEN_OF_PAIRS)

    @property
    def _equal(self) -> bool:
        return bool(np.ptp(self.sizes) == 0)

    @property
    def _distinct(self) -> tuple[Floats, Floats]:
        """The distinct values of all pairs and how many tasks have them, if that is shorter."""
        means = self.gaps / self.sizes
        values, places = np.unique(np.round(means, 12), return_inverse=True)
        if values.size >= means.shape[1]:
            return means, np.ones(means.shape)
        rows = np.arange(len(means))[:, None] * values.size
        cells = len(means) * values.size
        counts = np.bincount((rows + places.reshape(means.shape)).ravel(), minlength=cells)
        return values, counts.reshape(len(means), values.size).astype(np.float64)


def _tukey(systems: int) -> str:
    return f", Tukey over {systems} systems" if systems > 2 else ""


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
    residuals = gaps - value[:, None] * sizes
    units = sizes.size
    error = np.sqrt((residuals**2).sum(axis=-1) * units / (units - 1)) / sizes.sum()
    return np.where(np.ptp(gaps / sizes, axis=-1) < _SAME, 0.0, error)
