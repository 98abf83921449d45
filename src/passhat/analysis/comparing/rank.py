"""Several systems on the same tasks: who is ahead, and who cannot be told apart."""

from __future__ import annotations

from collections.abc import Sequence

from passhat.analysis.reports.evidence import too_few_runs
from passhat.analysis.reports.parts import Metric
from passhat.analysis.reports.provenance import Provenance, ReportOptions, stamp
from passhat.analysis.reports.ranked_subjects import rank_subjects
from passhat.analysis.reports.subject import Subject
from passhat.arguments import CONFIDENCE, instance, whole_number
from passhat.dataclass import Displayed, dataclass, short_dataclass
from passhat.errors import ArgumentError
from passhat.messages import first_few, plural, quoted, rounded, short_repr
from passhat.records import ErrorPolicy, Tally, Trials
from passhat.records.data_frames import refuse_frame
from passhat.stats.estimate import TASKS_LIKE_THESE, Interval, Scope, Unavailable
from passhat.stats.ranking import PairOfSystems

_METRICS = "must be mean_score, pass^k or pass@k such as pass^3"
_MOST_NAMED = 5
_LONGEST_COUNT = 10


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
    instance("by", metric, str, _METRICS)
    k = _attempts(metric)
    every = [Subject.of(one, errors=options.errors) for one in _systems(trials)]
    able = _able(every, k)
    if len(able) < 2:
        return Unavailable(_too_few(metric, k, every))
    ranked = rank_subjects(able, metric, k, confidence=options.confidence, seed=options.seed)
    found = ranked.ranking
    if isinstance(found, Unavailable):
        return Unavailable(_too_few_tasks(metric, k, able, every))
    names = [one.name for one in able]
    metrics = [ranked.metric_of(i, confidence=options.confidence) for i in range(len(able))]
    ahead = ranked.ahead_here(found)
    return RankReport(
        metric=metric,
        systems=tuple(
            _ranked(names[i], found.means[i], found.rank_sets[i], metrics[i]) for i in found.order
        ),
        tie_bands=tuple(tuple(names[i] for i in band) for band in found.tie_bands),
        pairs=tuple(_named(pair, names) for pair in found.pairs),
        tasks=found.tasks,
        unshared=tuple(ranked.tasks[i] for i in found.excluded),
        unranked=tuple(
            Unranked(name=one.name, reason=f"{too_few_runs(one.evidence.runs, k)}, so no {metric}")
            for one in every
            if one.name not in names
        ),
        scope=TASKS_LIKE_THESE,
        method=found.method,
        confidence=found.confidence,
        provenance=stamp(trials, options),
        notes=found.notes,
        here=None if ahead is None else names[ahead],
    )


def _systems(trials: object) -> list[Trials] | list[Tally]:
    """The trials of each system, or their counts."""
    refuse_frame("trials", "must be Trials or a list of Tally", trials)
    if isinstance(trials, Trials):
        names, found = trials.systems, [trials.where(system=name) for name in trials.systems]
    elif isinstance(trials, Sequence) and all(isinstance(one, Tally) for one in trials):
        names, found = tuple(tally.system for tally in trials), list(trials)
    else:
        raise ArgumentError("trials", "must be Trials or a list of Tally", trials)
    if len(names) < 2:
        raise ArgumentError("trials", "must hold at least two systems to rank", list(names))
    return found


def _able(sides: Sequence[Subject], k: int) -> list[Subject]:
    """Those with k runs of most tasks or, where that leaves fewer than two, of any.

    Otherwise one system with few runs would remove the tasks of all others from the ranking.
    """
    able = [one for one in sides if one.evidence.typical_runs >= k]
    return able if len(able) > 1 else [one for one in sides if (one.evidence.runs >= k).any()]


def _too_few(metric: str, k: int, sides: Sequence[Subject]) -> str:
    """Which systems are in the way of a ranking."""
    runs = {one.name: one.evidence.runs for one in sides}
    short = [f"{name} has {too_few_runs(n, k)}" for name, n in runs.items() if not (n >= k).any()]
    more = len(short) - _MOST_NAMED
    named = [*short[:_MOST_NAMED], *([f"{more:,} more have too few"] if more > 0 else [])]
    needs = f"needs two systems with {plural(k, 'run')} of a task"
    return f"ranking by {metric} {needs}; {', '.join(named)}"


def _too_few_tasks(metric: str, k: int, able: Sequence[Subject], every: Sequence[Subject]) -> str:
    """How many tasks have the runs, and up to which k two of them do."""
    found = sum(runs >= k for runs in _fewest_runs(able))
    ran = "that every system ran" if k == 1 else f"with {k} runs of every system"
    reason = (
        f"ranking by {metric} needs 2 tasks {ran}; there {'is' if found == 1 else 'are'} {found}"
    )
    most = sorted([0, 0, *_fewest_runs(every)])[-2]
    return f"{reason} ({metric[:5]}{most} can be ranked by)" if 0 < most < k else reason


def _fewest_runs(sides: Sequence[Subject]) -> list[int]:
    """Of each task that all of these ran, the runs of the one that ran it least."""
    found = [one.evidence for one in sides]
    tables = [dict(zip(side.tasks, side.runs.tolist(), strict=True)) for side in found]
    shared = set.intersection(*(set(table) for table in tables))
    return [min(table[task] for table in tables) for task in shared]


def _attempts(metric: str) -> int:
    """The k of a pass^k or pass@k; 1 for mean_score."""
    if metric == "mean_score":
        return 1
    sign, number = metric[4:5], metric[5:]
    is_count = number.isascii() and number.isdigit() and len(number) < _LONGEST_COUNT
    if not metric.startswith("pass") or sign not in ("^", "@") or not is_count:
        raise ArgumentError("by", _METRICS, metric)
    return whole_number("k", int(number))


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
