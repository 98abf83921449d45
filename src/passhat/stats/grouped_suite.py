"""A suite whose tasks come in families, or weigh unequally: its mean pass^k and their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from passhat.errors import ArgumentError
from passhat.fast_dataclass import dataclass
from passhat.messages import plural
from passhat.stats.arguments import Floats
from passhat.stats.cells import count_cells
from passhat.stats.estimate import THIS_SUITE, Scope
from passhat.stats.passk import share_of_passing_subsets
from passhat.stats.population_mean import (
    FEWEST_FAMILIES,
    TaskGroups,
    family_bounds,
    few_families_note,
)
from passhat.stats.proportions import Bounds
from passhat.stats.suite_law import suite_bounds


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupedBounds:
    """Values and bounds of a question for each k, and what is said of families and weights.

    `family_bounds` is the interval over families where there are too few of them to print it.
    """

    values: Floats
    bounds: Bounds
    family_bounds: Bounds | None
    method: str
    notes: tuple[str, ...]


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
    few = group.repeats and group.families < FEWEST_FAMILIES
    over_families = family_bounds(values, group, confidence)
    alone = replace(group, family=np.arange(group.family.size))
    unit = "task" if few or not group.repeats else "family"
    return GroupedBounds(
        values=mean,
        bounds=family_bounds(values, alone, confidence) if few else over_families,
        family_bounds=over_families if few else None,
        method=f"{unit} mean, Dirichlet weights",
        notes=(
            *((few_families_note(group.families),) if few else ()),
            *weight_notes(group),
        ),
    )


def weight_notes(group: TaskGroups) -> tuple[str, ...]:
    """How many equal tasks the weighted ones amount to, where they are not equal."""
    if np.ptp(group.weight) == 0:
        return ()
    alone = replace(group, family=np.arange(group.family.size))
    tasks = plural(group.family.size, "weighted task")
    return (f"{tasks}, as good as {alone.effective:.1f} equal ones",)


def shares_to_weights(stratum: ArrayLike, shares: Mapping[str, float]) -> Floats:
    """The weight of each task, from its stratum and the share that each stratum stands for.

    >>> shares_to_weights(["easy", "easy", "hard"], {"easy": 0.9, "hard": 0.1}).tolist()
    [0.45, 0.45, 0.1]
    """
    labels = [str(label) for label in np.asarray(stratum, dtype=object).tolist()]
    missing = sorted(set(labels) - set(shares))
    if missing:
        raise ArgumentError("shares", f"must name every stratum; {missing[0]!r} is not", shares)
    counts = {label: labels.count(label) for label in set(labels)}
    return np.array([shares[label] / counts[label] for label in labels])


def _stratified(
    n: Floats, c: Floats, group: TaskGroups, mean: Floats, ks: Sequence[int], confidence: float
) -> Bounds:
    """Bounds of strata of equal weight, joined: the distances of their ends add up as squares do.

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
