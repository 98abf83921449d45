"""Several systems on the same tasks: who is ahead, and who cannot be told apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from passhat.analysis.reports.evidence import (
    Evidence,
    Floats,
    gather,
    too_few_runs,
    value_table,
)
from passhat.analysis.reports.metrics import measure_metrics
from passhat.analysis.reports.parts import Metric
from passhat.analysis.reports.provenance import Provenance, ReportOptions, stamp
from passhat.defaults import CONFIDENCE
from passhat.display import Displayed
from passhat.errors import ArgumentError
from passhat.fast_dataclass import dataclass, short_dataclass
from passhat.messages import first_few, plural, quoted, rounded, short_repr
from passhat.records import ErrorPolicy, Tally, Trials
from passhat.records.frames import refuse_frame
from passhat.stats.arguments import whole_number
from passhat.stats.derived_intervals import independent_difference
from passhat.stats.estimate import TASKS_LIKE_THESE, Estimate, Interval, Scope, Unavailable
from passhat.stats.passk import task_values
from passhat.stats.ranking import PairOfSystems, Ranking, rank_systems

_MOST_NAMED = 5
_LONGEST_COUNT = 10

_Side = tuple[str, Evidence]
"""A system's name and its counts."""


@short_dataclass(frozen=True, slots=True, kw_only=True)
class RankedSystem:
    """One system: its value over the shared tasks, and the ranks it may truly have."""

    name: str
    value: float
    ranks: tuple[int, int]
    metric: Metric


@short_dataclass(frozen=True, slots=True, kw_only=True)
class PairDifference:
    """The first system minus the second, with an interval that holds for all pairs at once."""

    first: str
    second: str
    value: float
    interval: Interval
    p_value: float

    @property
    def told_apart(self) -> bool:
        return 0 not in self.interval


@short_dataclass(frozen=True, slots=True, kw_only=True)
class Unranked:
    """A system that has too few runs for the metric, and what it has instead."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RankReport(Displayed):
    """Systems from best to worst, bands of ties, and every pairwise difference.

    Ranks, ties and differences are about `scope`, and hold for all systems at once. `unranked`
    are the systems without the runs that the metric needs. `here` is the first system where, on
    these very tasks, it is ahead of all others that may be first for tasks like these.
    """

    metric: str
    systems: tuple[RankedSystem, ...]
    tie_bands: tuple[tuple[str, ...], ...]
    pairs: tuple[PairDifference, ...]
    tasks: int
    unshared: tuple[str, ...]
    unranked: tuple[Unranked, ...]
    scope: Scope
    method: str
    confidence: float
    provenance: Provenance
    notes: tuple[str, ...] = ()
    here: str | None = None

    def __repr__(self) -> str:
        shown = first_few(f"{quoted(one.name)} {rounded(one.value)}" for one in self.systems)
        head = f"RankReport by {self.metric} over {plural(self.tasks, 'task')}"
        return short_repr(head, *shown, see=".systems, .tie_bands, .pairs")


def rank(
    trials: Trials | Sequence[Tally],
    *,
    by: str = "mean_score",
    metric: str | None = None,
    confidence: float = CONFIDENCE,
    errors: ErrorPolicy = "fail",
    seed: int = 0,
) -> RankReport | Unavailable:
    """Rank the systems of a table by mean_score, pass^k or pass@k over the tasks all of them ran.

    `metric` is another word for `by`.

    >>> from passhat.analysis.planning.simulate import simulate
    >>> found = rank(simulate(tasks=40, runs=8, rate={"a": 0.9, "b": 0.88, "c": 0.4}, seed=1))
    >>> [system.ranks for system in found.systems]
    [(1, 2), (1, 2), (3, 3)]
    """
    options = ReportOptions.checked(ks=None, confidence=confidence, errors=errors, seed=seed)
    metric = by if metric is None else metric
    sign, k = _parse(metric)
    found_sides = [(tally.system, gather(tally, options.errors)) for tally in _tallies(trials)]
    able = _able(found_sides, k)
    if len(able) < 2:
        return Unavailable(_too_few(metric, k, found_sides))
    titles, sides = [name for name, _ in able], [side for _, side in able]
    tasks, values = value_table(
        [side.tasks for side in sides], [_values(side, sign, k) for side in sides]
    )
    found = rank_systems(
        values,
        confidence=options.confidence,
        # As the first system that names any has them.
        family=next((one for side in sides if (one := side.families_of(tasks))), None),
        weight=_first_weights(sides, tasks),
        rng=options.seed,
    )
    if isinstance(found, Unavailable):
        return Unavailable(_too_few_tasks(metric, k, able, found_sides))
    left_out = set(found.excluded)
    shared = [name for i, name in enumerate(tasks) if i not in left_out]
    metrics = [_metric_on(side, shared, metric, k, options.confidence) for side in sides]
    return RankReport(
        metric=metric,
        systems=tuple(
            _ranked(titles[i], found.means[i], found.rank_sets[i], metrics[i]) for i in found.order
        ),
        tie_bands=tuple(tuple(titles[i] for i in band) for band in found.tie_bands),
        pairs=tuple(_named(pair, titles) for pair in found.pairs),
        tasks=found.tasks,
        unshared=tuple(tasks[i] for i in found.excluded),
        unranked=tuple(
            Unranked(name=name, reason=f"{too_few_runs(side.runs, k)}, so no {metric}")
            for name, side in found_sides
            if name not in titles
        ),
        scope=TASKS_LIKE_THESE,
        method=found.method,
        confidence=found.confidence,
        provenance=stamp(trials, options),
        notes=found.notes,
        here=_ahead_here(able, found, shared, metric, k),
    )


def _ahead_here(
    able: Sequence[_Side], found: Ranking, shared: Sequence[str], metric: str, k: int
) -> str | None:
    """The first in order, where its runs on these tasks show it ahead of those tied with it."""
    first = [i for i in found.order if found.rank_sets[i][0] == 1]
    if len(first) < 2:
        return None
    confidence = 1 - found.pair_level
    best, *others = (
        _metric_on(able[i][1], shared, metric, k, confidence).this_suite for i in first
    )
    leads = [independent_difference(best, other) for other in others]
    clear = all(
        isinstance(one, Estimate) and one.interval and one.interval.low > 0 for one in leads
    )
    return able[first[0]][0] if clear else None


def _tallies(trials: object) -> list[Tally]:
    refuse_frame("trials", "must be Trials or a list of Tally", trials)
    if isinstance(trials, Trials):
        found = [trials.tally(name) for name in trials.systems]
    elif isinstance(trials, Sequence) and all(isinstance(one, Tally) for one in trials):
        found = list(trials)
    else:
        raise ArgumentError("trials", "must be Trials or a list of Tally", trials)
    if len(found) < 2:
        names = [tally.system for tally in found]
        raise ArgumentError("trials", "must hold at least two systems to rank", names)
    return found


def _able(sides: Sequence[_Side], k: int) -> list[_Side]:
    """Those with k runs of most tasks or, where that leaves fewer than two, of any.

    Otherwise one system with few runs would remove the tasks of all others from the ranking.
    """
    able = [one for one in sides if one[1].typical_runs >= k]
    return able if len(able) > 1 else [one for one in sides if (one[1].runs >= k).any()]


def _too_few(metric: str, k: int, sides: Sequence[_Side]) -> str:
    """Who is in the way of a ranking, by name."""
    short = [one for one in sides if not (one[1].runs >= k).any()]
    named = [f"{name} has {too_few_runs(side.runs, k)}" for name, side in short[:_MOST_NAMED]]
    named += [f"{len(short) - _MOST_NAMED:,} more have too few"] if len(short) > _MOST_NAMED else []
    needs = f"needs two systems with {plural(k, 'run')} of a task"
    return f"ranking by {metric} {needs}; {', '.join(named)}"


def _too_few_tasks(metric: str, k: int, able: Sequence[_Side], sides: Sequence[_Side]) -> str:
    """How many tasks have the runs, and up to which k two of them do."""
    found = sum(runs >= k for runs in _fewest_runs(able))
    ran = "that every system ran" if k == 1 else f"with {k} runs of every system"
    reason = (
        f"ranking by {metric} needs 2 tasks {ran}; there {'is' if found == 1 else 'are'} {found}"
    )
    most = sorted([0, 0, *_fewest_runs(sides)])[-2]
    return f"{reason} ({metric[:5]}{most} can be ranked by)" if 0 < most < k else reason


def _fewest_runs(sides: Sequence[_Side]) -> list[int]:
    """Of each task that all of these ran, the runs of the one that ran it least."""
    tables = [dict(zip(side.tasks, side.runs.tolist(), strict=True)) for _, side in sides]
    shared = set.intersection(*(set(table) for table in tables))
    return [min(table[task] for table in tables) for task in shared]


def _parse(metric: str) -> tuple[str, int]:
    """("score", 1), ("^", k) or ("@", k)."""
    if metric == "mean_score":
        return "score", 1
    sign, number = metric[4:5], metric[5:]
    is_count = number.isascii() and number.isdigit() and len(number) < _LONGEST_COUNT
    if not metric.startswith("pass") or sign not in ("^", "@") or not is_count:
        raise ArgumentError("metric", "must be mean_score, pass^k or pass@k such as pass^3", metric)
    return sign, whole_number("k", int(number))


def _values(side: Evidence, sign: str, k: int) -> Floats:
    if sign == "score":
        return np.clip(side.score_total / side.runs, 0.0, 1.0)
    return task_values(side.runs, side.passes, k, metric=f"pass{sign}k")


def _first_weights(sides: Sequence[Evidence], tasks: Sequence[str]) -> Floats | None:
    return next((one for side in sides if (one := side.weights_of(tasks)) is not None), None)


def _metric_on(
    side: Evidence, names: Sequence[str], metric: str, k: int, confidence: float
) -> Metric:
    kept = np.isin(side.tasks, names)
    part = Evidence(
        tasks=tuple(name for name, keep in zip(side.tasks, kept, strict=True) if keep),
        runs=side.runs[kept],
        passes=side.passes[kept],
        score_total=side.score_total[kept],
        score_squares=side.score_squares[kept],
        rows=side.rows[kept],
        without=(),
        family=None if side.family is None else tuple(np.array(side.family, object)[kept]),
        weight=None if side.weight is None else side.weight[kept],
    )
    return measure_metrics(part, (k,), confidence=confidence)[metric]


def _ranked(name: str, mean: float, ranks: tuple[int, int], metric: Metric) -> RankedSystem:
    """The value is the report's own, to the last bit: a mean in another order differs there."""
    value = mean if metric.value is None else metric.value
    return RankedSystem(name=name, value=value, ranks=ranks, metric=metric)


def _named(pair: PairOfSystems, titles: Sequence[str]) -> PairDifference:
    return PairDifference(
        first=titles[pair.first],
        second=titles[pair.second],
        value=pair.value,
        interval=pair.interval,
        p_value=pair.p_value,
    )
