"""Which of several systems is ahead, on the tasks that all of them ran."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from passhat.analysis.reports.evidence import value_table
from passhat.analysis.reports.headline_k import common_k, is_judged
from passhat.analysis.reports.parts import Leaders
from passhat.analysis.reports.system_report import SystemReport
from passhat.records import Tally
from passhat.stats.derived_intervals import independent_difference
from passhat.stats.estimate import TASKS_LIKE_THESE, THIS_SUITE, Estimate, Scope, Unavailable
from passhat.stats.group_spread import arm_ratios, stretched
from passhat.stats.multiplicity import tukey_level
from passhat.stats.passk import task_values
from passhat.stats.suite_mean import suite_estimate

if TYPE_CHECKING:
    from passhat.stats.ranking import Ranking


def find_leaders(
    systems: Sequence[SystemReport],
    tallies: Sequence[Tally] = (),
    *,
    confidence: float,
    seed: int,
    k: int | None = None,
) -> Leaders | Unavailable:
    """Who may be first, and who is tied, at the pass^k that the systems are judged by.

    The answer is the one of `rank`. `k` asks for another pass^k.

    `tallies` name the families and weights of tasks, where they have any.

    >>> from passhat.analysis.reports.measure import measure
    >>> from passhat.analysis.planning.simulate import simulate
    >>> trials = simulate(tasks=30, runs=8, rate={"a": 0.9, "b": 0.5, "c": 0.88}, seed=1)
    >>> find_leaders(measure(trials).systems, confidence=0.95, seed=0).names
    ('a', 'c')
    """
    k = common_k(systems) if k is None else k
    judged = [one for one in systems if is_judged(one, k)]
    if len(judged) < 2:
        return Unavailable(f"being ahead takes two systems with a pass^{k}")
    return _leaders_among(judged, tallies, k, confidence, seed)


_First = tuple[Sequence[int], Sequence[Sequence[int]], Scope, str]
"""The places of those that may be first, groups of ties, the scope, and the method."""


def _leaders_among(
    judged: Sequence[SystemReport], tallies: Sequence[Tally], k: int, confidence: float, seed: int
) -> Leaders | Unavailable:
    from passhat.stats.ranking import rank_systems

    tasks, values = value_table(
        [one.tasks.names for one in judged],
        [task_values(one.tasks.runs, one.tasks.passed, k) for one in judged],
    )
    known = ~np.isnan(values)
    shared = known.all(axis=1)
    if not shared.any():
        return Unavailable(f"the systems share no task{f' with {k} runs' if k > 1 else ''}")
    family, weight = _families(tallies, tasks), _weights(tallies, tasks)
    means = np.average(
        values[shared], axis=0, weights=None if weight is None else np.array(weight)[shared]
    )
    ranking = rank_systems(values, confidence=confidence, family=family, weight=weight, rng=seed)
    first, ties, scope, method = _first_ranked(ranking) or _first_on_one_task(
        judged, tasks[int(shared.argmax())], k, confidence
    )
    left_out = int(np.count_nonzero(known.any(axis=1) & ~shared))
    return Leaders(
        k=k,
        names=tuple(judged[i].name for i in first),
        values=tuple(_value(judged[i], k, means[i], whole=not left_out) for i in first),
        compared=tuple(one.name for one in judged),
        ties=tuple(tuple(judged[i].name for i in group) for group in ties if len(group) > 1),
        tasks=int(np.count_nonzero(shared)),
        left_out=left_out,
        scope=scope,
        method=method,
        confidence=confidence,
        here=(
            _ahead_here(
                judged,
                first,
                [tasks[i] for i in np.flatnonzero(shared).tolist()],
                k,
                {} if weight is None else dict(zip(tasks, weight, strict=True)),
                confidence,
            )
            if scope == TASKS_LIKE_THESE
            else None
        ),
    )


def _ahead_here(
    systems: Sequence[SystemReport],
    first: Sequence[int],
    tasks: Sequence[str],
    k: int,
    weights: Mapping[str, float],
    confidence: float,
) -> str | None:
    """Of several that may be first, the one that on these tasks is ahead of the others.

    Given the tasks, the runs of two systems are independent. The level is that at which all pairs
    of all systems hold at once.
    """
    if len(first) < 2:
        return None
    level = 1 - tukey_level(1 - confidence, len(systems))
    found = [_on_tasks(systems[i], tasks, k, weights, confidence, level) for i in first]
    best = max(range(len(found)), key=lambda i: found[i].value)
    clear = all(_behind(one, found[best]) for i, one in enumerate(found) if i != best)
    return systems[first[best]].name if clear else None


def _on_tasks(
    system: SystemReport,
    tasks: Sequence[str],
    k: int,
    weights: Mapping[str, float],
    confidence: float,
    level: float,
) -> Estimate:
    """The pass^k on these tasks, with what moved the runs together as the report includes it."""
    rows = [system.tasks.named(task) for task in tasks]
    weight = [weights.get(task, 1.0) for task in tasks] if weights else None
    plain, wide = (
        suite_estimate(
            [row.runs for row in rows],
            [row.passed for row in rows],
            k=k,
            confidence=at,
            weight=weight,
        )
        for at in (confidence, level)
    )
    assert isinstance(plain, Estimate), "tasks that systems share have k runs of each"
    assert isinstance(wide, Estimate), "tasks that systems share have k runs of each"
    printed = system.pass_hat(k).this_suite
    if not isinstance(printed, Estimate) or len(rows) < len(system.tasks):
        return wide
    below, above = arm_ratios(plain, printed)
    return stretched(wide, (max(1.0, below), max(1.0, above)), "as the report")


def _families(tallies: Sequence[Tally], tasks: Sequence[str]) -> list[str | None] | None:
    """The families of these tasks, as the first system that names any has them."""
    for one in tallies:
        if one.family is not None:
            known = dict(zip(one.tasks, one.family, strict=True))
            return [known.get(name) for name in tasks]
    return None


def _weights(tallies: Sequence[Tally], tasks: Sequence[str]) -> list[float] | None:
    for one in tallies:
        if one.weight is not None:
            known = dict(zip(one.tasks, one.weight.tolist(), strict=True))
            return [known.get(name, 1.0) for name in tasks]
    return None


def _first_ranked(ranking: Ranking | Unavailable) -> _First | None:
    """None with a single shared task, which cannot tell how others would differ."""
    if isinstance(ranking, Unavailable):
        return None
    first = [i for i in ranking.order if ranking.rank_sets[i][0] == 1]
    return first, ranking.tie_bands, TASKS_LIKE_THESE, ranking.method


def _first_on_one_task(
    systems: Sequence[SystemReport], task: str, k: int, confidence: float
) -> _First:
    """Given the task, the runs of two systems are independent; all differences hold at once."""
    level = 1 - (1 - confidence) / (len(systems) - 1)
    found = [_on_task(one, task, k, level) for one in systems]
    order = sorted(range(len(found)), key=lambda i: -found[i].value)
    first = [i for i in order if not _behind(found[i], found[order[0]])]
    return first, [first], THIS_SUITE, "intervals of one task, Bonferroni"


def _on_task(system: SystemReport, task: str, k: int, confidence: float) -> Estimate:
    row = system.tasks.named(task)
    found = suite_estimate([row.runs], [row.passed], k=k, confidence=confidence)
    assert isinstance(found, Estimate), "a task that systems share has k runs of each"
    return found


def _behind(one: Estimate, top: Estimate) -> bool:
    lead = independent_difference(top, one)
    return isinstance(lead, Estimate) and lead.interval is not None and lead.interval.low > 0


def _value(system: SystemReport, k: int, mean: float, *, whole: bool) -> float:
    """Over all tasks the report's own, to the last bit: a mean in another order differs there."""
    own = system.pass_hat(k).value
    return own if whole and own is not None else float(mean)
