"""Metrics whose intervals include what moved groups of runs together: rounds, seeds."""

from __future__ import annotations

from collections.abc import Sequence

from passhat.analysis.reports.disturbances import round_table
from passhat.analysis.reports.parts import Metric
from passhat.analysis.reports.seed_grid import seeded_runs
from passhat.dataclass import dataclass, replace
from passhat.records import ErrorPolicy, Trials
from passhat.stats.dependent_runs import (
    Arms,
    GroupedRuns,
    SeedVariance,
    arm_ratios,
    mean_variance,
    streak_variance,
    stretched,
    widened,
    with_excess,
)
from passhat.stats.estimate import Estimate

_ROUNDS = "includes the spread between rounds"
_SEEDS = "includes the spread between re-runs of the suite (one seed each)"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunGroups:
    """The runs of one system by round or by seed: their passes and scores; `note` names it."""

    passes: GroupedRuns
    scores: GroupedRuns
    note: str


def groupings_of(trials: Trials, errors: ErrorPolicy, *, disturbed: bool) -> tuple[RunGroups, ...]:
    """What moves runs of one system together: rounds, if `disturbed`, and seeds, from five on."""
    rounds = _rounds(trials, errors) if disturbed else None
    return tuple(one for one in (rounds, _seeds(trials, errors)) if one is not None)


def include_groups(metrics: Sequence[Metric], groupings: Sequence[RunGroups]) -> list[Metric]:
    """The same metrics, their intervals no narrower than the spread between groups allows."""
    found = list(metrics)
    for grouping in groupings:
        found = _include(found, grouping)
    return found


def group_variance(name: str, grouping: RunGroups) -> float | None:
    """The variance that the spread between groups gives a metric; None if it is not known."""
    if name == "mean_score":
        return mean_variance(grouping.scores)
    passes = grouping.passes
    if name.startswith("pass@"):
        passes = replace(passes, total=passes.runs - passes.total)
    return streak_variance(passes, int(name[5:]))


def _rounds(trials: Trials, errors: ErrorPolicy) -> RunGroups | None:
    tables = [round_table(trials, errors, scores=scores) for scores in (False, True)]
    if tables[0].shape[1] < 2:
        return None
    passes, scores = (GroupedRuns.of_table(table) for table in tables)
    return RunGroups(passes=passes, scores=scores, note=_ROUNDS)


def _seeds(trials: Trials, errors: ErrorPolicy) -> RunGroups | None:
    """Seeds that can be distinguished from tasks and move the suite by more than chance."""
    runs = seeded_runs(trials, errors)
    spread = None if runs is None else runs.variance()
    if runs is None or not isinstance(spread, SeedVariance) or spread.between.value <= 0:
        return None
    return RunGroups(
        passes=GroupedRuns.of(runs.task, runs.seed, runs.passed),
        scores=GroupedRuns.of(runs.task, runs.seed, runs.score),
        note=_SEEDS,
    )


def _include(metrics: list[Metric], grouping: RunGroups) -> list[Metric]:
    """Where one group less leaves too few runs for k, the interval grows as for the k before."""
    grown: Arms = (1.0, 1.0)
    found = []
    for metric in sorted(metrics, key=_k):
        suite = metric.this_suite
        if not isinstance(suite, Estimate):
            found.append(metric)
            continue
        variance = group_variance(metric.name, grouping)
        if variance is None:
            wider = stretched(suite, grown, grouping.note) if grown != (1.0, 1.0) else suite
        else:
            wider = widened(suite, variance, grouping.passes.groups, grouping.note)
            grown = arm_ratios(suite, wider)
        found.append(_replaced(metric, suite, wider, grouping.note))
    place = {metric.name: metric for metric in found}
    return [place[metric.name] for metric in metrics]


def _k(metric: Metric) -> int:
    return 0 if metric.name == "mean_score" else int(metric.name[5:])


def _replaced(metric: Metric, before: Estimate, after: Estimate, note: str) -> Metric:
    alike = metric.tasks_like_these
    if after.interval == before.interval:
        return metric
    if isinstance(alike, Estimate):
        alike = with_excess(alike, before, after, note)
    return replace(metric, this_suite=after, tasks_like_these=alike)
