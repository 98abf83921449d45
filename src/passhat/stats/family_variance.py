"""How much of the spread of scores lies between families, between their tasks, and in luck."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from passhat.fast_dataclass import dataclass
from passhat.messages import repr_fields
from passhat.stats import special
from passhat.stats.arguments import Floats
from passhat.stats.estimate import Unavailable
from passhat.stats.population_mean import Families, TaskGroups, grouping
from passhat.stats.variance import variance_components

# Less variance than this is a rounding error of equal values.
_ROUNDING = 1e-12
# Shuffles that can show a chance of 0.1 %, and the tasks up to which they take milliseconds.
_SHUFFLES, _MOST_SHUFFLED = 3_999, 200


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyComponents:
    """The variance of a single run's score, split into families, tasks inside them, and luck."""

    between_families: float
    between_tasks: float
    within_tasks: float
    families: int
    tasks: int

    __repr__ = repr_fields

    @property
    def total(self) -> float:
        return self.between_families + self.between_tasks + self.within_tasks

    @property
    def family_share(self) -> float:
        """The share of the variance between tasks that their family explains."""
        between = self.between_families + self.between_tasks
        return self.between_families / between if between > 0 else 0.0


def family_components(
    n: ArrayLike, total: ArrayLike, squares: ArrayLike | None = None, *, family: Families
) -> FamilyComponents | Unavailable:
    """Split the variance of the scores into families, tasks and runs (nested analysis of variance).

    The sums are those of `variance_components`; `family` labels each task. Task means count
    equally; negative components are 0.

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
    """The variances of tasks inside families and of families, from one mean a task."""
    codes = np.asarray(family)
    sizes = np.bincount(codes).astype(np.float64)
    centres = np.bincount(codes, means) / sizes
    tasks, families = means.size, sizes.size
    square = float(((means - centres[codes]) ** 2).sum()) / max(tasks - families, 1)
    spread = float((sizes * (centres - means.mean()) ** 2).sum()) / max(families - 1, 1)
    typical = (tasks - float((sizes**2).sum()) / tasks) / max(families - 1, 1)
    return max(0.0, square - luck), max(0.0, (spread - square) / typical)
