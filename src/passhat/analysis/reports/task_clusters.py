"""Groups of tasks that pass with the same systems, and a sentence for each group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from passhat.dataclass import dataclass
from passhat.messages import few, plural
from passhat.records.trial import natural_key

METHOD = "Ward's method on pass rates"
"""Groups of least variance within (Ward 1963), their leaves ordered so that neighbours differ least
(Bar-Joseph, Gifford and Jaakkola 2001). Average linkage was tried: of 127 tasks it made one group
of 65 and four of one or two."""

MOST_CLUSTERS = 6
"""Groups beside "always" and "never": more sentences than that nobody reads."""

MOST_PATTERNS = 400
"""Distinct columns that are clustered: ordering the leaves takes the cube of their number."""

MOSTLY = 0.5
"""The share of runs from which a system is said to pass the tasks of a group mostly."""

_MOST_NAMES = 3

Rates = Mapping[str, Mapping[str, float]]
"""The pass rate of each system on each task that it ran."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCluster:
    """Tasks that pass with the same systems: what they have in common, and their names in order."""

    sentence: str
    tasks: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskClusters:
    """All tasks in groups, the easiest group first, and the systems in an order to match."""

    systems: tuple[str, ...]
    clusters: tuple[TaskCluster, ...]

    @property
    def tasks(self) -> list[str]:
        return [task for cluster in self.clusters for task in cluster.tasks]


def cluster_tasks(rates: Rates) -> TaskClusters:
    """Tasks that every system always passes, that none ever passes, and groups between these.

    >>> found = cluster_tasks({"a": {"x": 1.0, "y": 0.0}, "b": {"x": 1.0, "y": 1.0}})
    >>> [cluster.sentence for cluster in found.clusters]
    ['1 task that every system passes in every run', '1 task that only b passes, in every run']
    """
    tasks = sorted({task for of_system in rates.values() for task in of_system}, key=natural_key)
    systems = tuple(sorted(rates, key=lambda name: (-_mean(list(rates[name].values())), name)))
    table = np.array([[rates[s].get(task, np.nan) for s in systems] for task in tasks], float)
    filled = _filled(table)
    groups = [group for group in _groups(filled) if len(group)]
    groups.sort(key=lambda group: (-float(filled[group].mean()), group[0]))
    clusters = [
        TaskCluster(
            sentence=_sentence(len(same), systems, table[same]),
            tasks=tuple(tasks[i] for i in same),
        )
        for same in _merged(groups, filled)
    ]
    order = _leaves(filled.T, better=filled.mean(axis=0))
    return TaskClusters(systems=tuple(systems[i] for i in order), clusters=tuple(clusters))


def _filled(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Pass rates in which a task that a system did not run has the mean of the others."""
    known = ~np.isnan(table)
    means = np.where(known, table, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    return np.where(known, table, means[:, np.newaxis])


def _groups(table: NDArray[np.float64]) -> list[list[int]]:
    """Rows that are 1 throughout, rows that are 0 throughout, and the clusters of the others."""
    always = (table == 1).all(axis=1)
    never = (table == 0).all(axis=1)
    rest = np.flatnonzero(~always & ~never)
    return [
        np.flatnonzero(always).tolist(),
        *([rest[i] for i in group] for group in _clusters(table[rest])),
        np.flatnonzero(never).tolist(),
    ]


def _clusters(table: NDArray[np.float64]) -> list[list[int]]:
    """The rows in at most `MOST_CLUSTERS` groups, like rows side by side within each."""
    if len(table) < 3:
        return [[i] for i in range(len(table))]
    patterns, member = np.unique(table, axis=0, return_inverse=True)
    order = _leaves(patterns, better=patterns.mean(axis=1))
    if len(order) > MOST_PATTERNS:
        return [sorted(range(len(table)), key=lambda i: (-float(table[i].mean()), i))]
    place = {int(pattern): i for i, pattern in enumerate(order)}
    rows = sorted(range(len(table)), key=lambda i: (place[int(member[i])], i))
    cut = _cut(patterns)
    return [list(same) for _, same in groupby(rows, key=lambda i: cut[int(member[i])])]


def _cut(patterns: NDArray[np.float64]) -> list[int]:
    """The cluster of each pattern."""
    if len(patterns) < 2:
        return [0] * len(patterns)
    from scipy.cluster.hierarchy import fcluster

    found = fcluster(_linkage(patterns), MOST_CLUSTERS, criterion="maxclust")
    return [int(number) for number in found]


def _leaves(rows: NDArray[np.float64], *, better: NDArray[np.float64]) -> list[int]:
    """Rows in an order in which neighbours differ least, the better end first."""
    if len(rows) < 3 or len(rows) > MOST_PATTERNS:
        return sorted(range(len(rows)), key=lambda i: (-float(better[i]), i))
    from scipy.cluster.hierarchy import leaves_list

    order = [int(i) for i in leaves_list(_linkage(rows))]
    half = len(order) // 2
    return order if better[order[:half]].mean() >= better[order[-half:]].mean() else order[::-1]


def _linkage(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import pdist

    # Of rows, linkage would warn where they happen to look like a matrix of distances.
    return np.asarray(linkage(pdist(rows), "ward", optimal_ordering=True))


def _merged(groups: Sequence[Sequence[int]], table: NDArray[np.float64]) -> list[list[int]]:
    """Neighbouring groups that the same systems mostly pass are one; exact groups stay alone."""
    kinds = groupby(groups, key=lambda group: _kind(table[list(group)]))
    return [[int(i) for group in same for i in group] for _, same in kinds]


def _kind(rows: NDArray[np.float64]) -> tuple[str, bytes]:
    exact = "always" if (rows == 1).all() else "never" if (rows == 0).all() else ""
    return exact, (rows.mean(axis=0) >= MOSTLY).tobytes()


def _sentence(count: int, systems: Sequence[str], rows: NDArray[np.float64]) -> str:
    """What the tasks of a group have in common, in counts that anybody can check."""
    means = _filled(rows).mean(axis=0)
    mostly = [name for name, mean in zip(systems, means, strict=True) if mean >= MOSTLY]
    tasks = f"{plural(count, 'task')} that"
    if (means == 1).all():
        return f"{tasks} every system passes in every run"
    if (means == 0).all():
        return f"{tasks} no system passes even once"
    if not mostly:
        best = int(means.argmax())
        return f"{tasks} no system mostly passes: {systems[best]} comes to {_percent(means[best])}"
    if len(mostly) == len(systems):
        return f"{tasks} every system mostly passes, in {_percent(float(means.mean()))} of runs"
    inside = means[[name in mostly for name in systems]]
    outside = means[[name not in mostly for name in systems]]
    return f"{tasks} {_who(mostly, systems, float(inside.mean()), float(outside.mean()))}"


def _who(mostly: Sequence[str], systems: Sequence[str], inside: float, outside: float) -> str:
    others = [name for name in systems if name not in mostly]
    rest = "" if outside == 0 else f"; the others in {_percent(outside)}"
    runs = "in every run" if inside == 1 else f"in {_percent(inside)} of runs"
    if len(mostly) == 1:
        passes = "passes" if outside == 0 else "mostly passes"
        return f"only {mostly[0]} {passes}, {runs}{rest}"
    if len(others) <= 2 < len(mostly):
        behind = " and ".join(others)
        return f"all but {behind} mostly pass, {runs}; {behind} in {_percent(outside)}"
    if len(mostly) <= _MOST_NAMES:
        names = f"{', '.join(mostly[:-1])} and {mostly[-1]}"
        return f"only {names} mostly pass, {runs}{rest}"
    names = few(mostly, 3)
    return f"{len(mostly)} of {len(systems)} systems mostly pass ({names}), {runs}{rest}"


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
