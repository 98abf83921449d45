"""Groups of tasks and each one's share of the traffic, turned into weights."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from math import inf

import numpy as np

from passhat.errors import ArgumentError
from passhat.messages import few
from passhat.records.trials import Trials


def weight_by_traffic(trials: Trials, shares: Mapping[str, float]) -> Trials:
    """The trials with the weights that make each group of tasks count as its share says.

    A group is a tag, a level or a family; every task must be in exactly one of those named. The
    tasks of a group divide its share by their own weights, equally if they have none.

    >>> table = Trials.from_columns(task=["a", "b", "c"], passed=[1, 0, 1],
    ...                             tags=[["easy"], ["easy"], ["hard"]])
    >>> weight_by_traffic(table, {"easy": 0.9, "hard": 0.1}).weight.tolist()
    [0.45, 0.45, 0.1]
    """
    if not isinstance(shares, Mapping):
        raise ArgumentError("shares", "must be shares by group, such as {'easy': 0.9}", shares)
    weights = task_weights(_groups(trials), shares, _own_weights(trials))
    by_code = np.array([weights[name] for name in trials.tasks], dtype=np.float64)
    return replace(trials, weight=by_code[trials.task.codes])


def task_weights(
    groups: Mapping[str, Collection[str]],
    shares: Mapping[str, float],
    own: Mapping[str, float],
) -> dict[str, float]:
    """The weight of each task, from the groups it is in, their shares and its own weight.

    >>> task_weights({"a": ["x"], "b": ["x"], "c": ["y"]}, {"x": 3, "y": 1}, {"b": 2})
    {'a': 1.0, 'b': 2.0, 'c': 1.0}
    """
    for name, share in shares.items():
        if not 0 < share < inf:
            raise ArgumentError("shares", f"must be above 0 and finite for {name}", share)
    chosen = {task: _one_of(task, found, shares) for task, found in groups.items()}
    total = dict.fromkeys(shares, 0.0)
    for task, name in chosen.items():
        total[name] += own.get(task, 1.0)
    empty = [name for name, sum_ in total.items() if not sum_]
    if empty:
        known = sorted({name for found in groups.values() for name in found})
        rule = f"must name tags, levels or families of tasks, which are {few(known) or 'none'}"
        raise ArgumentError("shares", rule, empty[0])
    return {task: shares[name] * own.get(task, 1.0) / total[name] for task, name in chosen.items()}


def parse_shares(texts: Iterable[str]) -> dict[str, float]:
    """Shares as the command line states them.

    >>> parse_shares(["refunds=0.7", "search=0.3"])
    {'refunds': 0.7, 'search': 0.3}
    """
    shares: dict[str, float] = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        if name in shares:
            raise ArgumentError("shares", "must name each group only once", text)
        try:
            shares[name] = float(number)
        except ValueError:
            name = ""
        if not name:
            raise ArgumentError("shares", "must be GROUP=SHARE, such as refunds=0.7", text)
    return shares


def _one_of(task: str, found: Collection[str], shares: Mapping[str, float]) -> str:
    named = [name for name in shares if name in found]
    if len(named) == 1:
        return named[0]
    where = f"is in {' and '.join(named)}" if named else f"is in none (it has {few(found)})"
    if not found:
        where = "has no tag, level or family"
    raise ArgumentError("shares", f"must hold every task once; {task} {where}", list(shares))


def _groups(trials: Trials) -> dict[str, set[str]]:
    """The tags, level and family of each task, over all of its trials."""
    groups: dict[str, set[str]] = {name: set() for name in trials.tasks}
    for labels in (trials.tags, trials.level, trials.family):
        if labels is None:
            continue
        pairs = np.unique(np.column_stack([trials.task.codes, labels.codes]), axis=0)
        for task, code in pairs.tolist():
            if code >= 0:
                groups[trials.tasks[task]].update(labels.names[code].split("\0"))
    return groups


def _own_weights(trials: Trials) -> dict[str, float]:
    if trials.weight is None:
        return {}
    known = ~np.isnan(trials.weight)
    codes, first = np.unique(trials.task.codes[known], return_index=True)
    weights = trials.weight[known][first]
    return {trials.tasks[code]: float(weight) for code, weight in zip(codes, weights, strict=True)}
