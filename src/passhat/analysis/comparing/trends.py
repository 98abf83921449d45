"""How reliability moved over history, and which tasks passed and failed over the last runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field, fields
from functools import lru_cache, partial
from statistics import fmean
from typing import TYPE_CHECKING, Literal

import numpy as np

from passhat.analysis.reports.evidence import Evidence, count_evidence
from passhat.analysis.reports.judged import LabelEvidence
from passhat.analysis.reports.metrics import (
    HeadlineNumber,
    RunGroups,
    mean_pass_hat,
    measure_metrics,
)
from passhat.arguments import CONFIDENCE, HEADLINE_K, ReportOptions, whole_number
from passhat.dataclass import Displayed, dataclass, lazy_field, replace, result_dataclass
from passhat.errors import ArgumentError
from passhat.messages import (
    first_few,
    metric_label,
    percent,
    plural,
    points,
    safe_text,
    short,
    short_day,
    short_repr,
    signed_points,
)
from passhat.records import ErrorPolicy, Tally
from passhat.records.trial import graded_by_judge
from passhat.stats.arguments import Counts
from passhat.stats.estimate import THIS_SUITE, Estimate, Interval, Unavailable
from passhat.stats.passk import pass_hat_k
from passhat.stats.proportions import proportion_interval
from passhat.stats.special import ndtri
from passhat.stats.task_labels import BROKEN, FLAKY, SOLID, UNDECIDED, label_tasks
from passhat.stats.trend import (
    DEFAULT_HORIZON,
    ChangePoint,
    Changes,
    DivergingTrend,
    MeanSeries,
    NoticeableFall,
    TaskSeries,
    change_points,
    divergence,
    noticeable_fall,
    runs_to_show,
    task_fall,
)

if TYPE_CHECKING:
    from passhat.drawing import Figure


NOTABLE, MOST_AWAITED = 0.2, 8
"""Where no change is shown: a move that people would want to know of, and runs to wait for it."""

Turn = Literal["became flaky", "got fixed", "broke"]

_NARROWEST = 1e-6
"""The width of a number that is known, where every trial has a label."""

_SCREENED = 0.05
"""The share of the named tasks that may be there by chance."""

_LABELS = {label[0]: label for label in (SOLID, FLAKY, BROKEN, UNDECIDED)}

_TURNS: dict[tuple[str, str], Turn] = {
    ("solid", "flaky"): "became flaky",
    ("solid", "broken"): "broke",
    ("flaky", "broken"): "broke",
    ("flaky", "solid"): "got fixed",
    ("broken", "solid"): "got fixed",
    ("broken", "flaky"): "became flaky",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedRun:
    """One run in history: its key, what people call it (commit, tag, day), and its counts.

    `groupings` are, for each system, what moved its runs together (`groupings_by_system`): with
    them the intervals of a trend are those of the run's own report. `labels` are what people say of
    the trials of each system, where they labelled any. `numbers` are those of each system that are
    known already, and need not be computed again. `stopped_early` by its gates, it has no rate.
    What it did not run is no task of its suite any more if it ran the `whole` suite.
    """

    key: str
    label: str
    started: str
    tallies: Sequence[Tally]
    groupings: Mapping[str, Sequence[RunGroups]] = field(default_factory=dict)
    labels: Mapping[str, LabelEvidence] = field(default_factory=dict)
    numbers: Mapping[str, AgentNumbers] = field(default_factory=dict)
    stopped_early: bool = False
    whole: bool = False


@result_dataclass(frozen=True, slots=True, kw_only=True)
class TrendPoint:
    """The rates in one run; `tasks` and `runs` count what was run then.

    `carried` names tasks that were not: their last counts are used in the rates, so that a run
    with fewer tasks can be compared with one with more. `corrected` has pass^1 and pass^k as people
    would have graded this run's own trials, from so many `labels`, where there are enough. Rates
    of a run that its gates `stopped_early` are not shown: they stopped while they were lucky.
    """

    key: str
    label: str
    started: str
    metrics: Mapping[str, Estimate]
    tasks: int
    runs: int
    carried: tuple[str, ...]
    corrected: Mapping[str, Estimate] = field(default_factory=dict)
    labels: int = 0
    stopped_early: bool = False


@result_dataclass(frozen=True, slots=True, kw_only=True)
class LabelChange:
    """A task whose label changed, in the first run that showed the new one."""

    task: str
    turn: Turn
    before: str
    after: str
    key: str
    label: str


@result_dataclass(frozen=True, slots=True, kw_only=True)
class RateChange:
    """A task before and after a change: passed runs and all runs of each stretch.

    `p_screening` is that of Fisher's exact test in the direction of the change, among all tasks
    (Benjamini-Hochberg): of the tasks with at most 0.05 about 1 in 20 is there by chance.
    """

    task: str
    before: tuple[int, int]
    after: tuple[int, int]
    p_screening: float = 1.0

    @property
    def shown(self) -> bool:
        """Whether the task by itself moved by more than noise."""
        return self.p_screening <= _SCREENED

    @property
    def moved(self) -> float:
        """The rate after the change minus that before it."""
        return self.after[0] / self.after[1] - self.before[0] / self.before[1]


@result_dataclass(frozen=True, slots=True, kw_only=True)
class GradedChanges:
    """Changes of a number as people grade it, over the runs at `places`, which have enough labels.

    A judge that grades otherwise than before moves its verdicts and not this number.
    """

    metric: str
    places: tuple[int, ...]
    changes: Changes

    @property
    def newest(self) -> ChangePoint | None:
        return max(self.changes.points, key=lambda change: change.position, default=None)


@result_dataclass(frozen=True, slots=True, kw_only=True)
class SystemTrend(Displayed):
    """One system over history, oldest run first.

    `moved` are its tasks before and after the newest change of pass^k, the largest move in the
    direction of that change first; without a change there are none. `runs_to_show` is how many
    further runs would show that trials pass `NOTABLE` less (or more) often than in all runs so
    far; None if there is a change, or if more than `MOST_AWAITED` would be needed. `graded` are the
    changes as people grade, where two runs or more have enough labels. `judged` says that a model
    graded runs.
    """

    name: str
    k: int
    points: tuple[TrendPoint, ...]
    changes: Mapping[str, Changes]
    divergence: DivergingTrend | Unavailable
    turns: tuple[LabelChange, ...]
    moved: tuple[RateChange, ...]
    runs_to_show: lazy_field[int | None] = lazy_field()
    graded: GradedChanges | None = None
    judged: bool = False

    @property
    def newest_change(self) -> ChangePoint | None:
        """The newest change of pass^k, the number that a trend is about."""
        changes = self.changes[self.metrics[0]].points
        return max(changes, key=lambda change: change.position, default=None)

    @property
    def metrics(self) -> tuple[str, ...]:
        return tuple(self.changes)

    def levels(self, metric: str, change: ChangePoint) -> tuple[float | None, float | None]:
        """The means of the runs since the change before this one, and until the next.

        None where gates stopped all of them early.
        """
        values = {place: point.metrics[metric].value for place, point in enumerate(self.points)}
        fixed = {place: v for place, v in values.items() if not self.points[place].stopped_early}
        return _levels(self.changes[metric], fixed, change)

    def graded_levels(
        self, graded: GradedChanges, change: ChangePoint
    ) -> tuple[float | None, float | None]:
        """The same as people grade: the means of labelled runs."""
        values = {at: self.points[at].corrected[graded.metric].value for at in graded.places}
        return _levels(graded.changes, values, change)

    @property
    def change(self) -> ChangePoint | None:
        """The newest change that a headline is about: as people grade, where that is known."""
        return self.newest_change if self.graded is None else self.graded.newest

    def plot(self) -> Figure:
        """pass@k and pass^k over the runs, with intervals and change points.

        Where changes are known as people grade: the corrected number over the labelled runs.
        """
        # Imported only to draw.
        from passhat.analysis.comparing.plots import plot_trend

        if (graded := self.graded) is not None:
            labelled = [self.points[place] for place in graded.places]
            changes = [
                replace(point, position=graded.places.index(point.position))
                for point in graded.changes.points
            ]
            called = "pass@1" if graded.metric == "pass^1" else graded.metric
            lines = {f"{called} as people grade": [point.corrected for point in labelled]}
            if graded.metric in self.metrics:
                lines["by the judge"] = [point.metrics for point in labelled]
            return plot_trend(
                self.name,
                runs=[(point.started, point.label) for point in labelled],
                metrics={
                    name: [point[graded.metric] for point in every] for name, every in lines.items()
                },
                changes={next(iter(lines)): replace(graded.changes, points=tuple(changes))},
            )
        places = [place for place, point in enumerate(self.points) if not point.stopped_early]
        places = places or list(range(len(self.points)))
        drawn = [self.points[place] for place in places]
        return plot_trend(
            self.name,
            runs=[(point.started, point.label) for point in drawn],
            metrics={name: [point.metrics[name] for point in drawn] for name in self.metrics},
            changes={
                name: replace(
                    changes,
                    points=tuple(
                        replace(point, position=places.index(point.position))
                        for point in changes.points
                        if point.position in places
                    ),
                )
                for name, changes in self.changes.items()
            },
        )

    def day(self, change: ChangePoint) -> str:
        """The day of the first run after a change."""
        return self.points[change.position].started[:10]


def _levels(
    changes: Changes, values: Mapping[int, float], change: ChangePoint
) -> tuple[float | None, float | None]:
    """The means of the values at places before and after a change, up to the ones next to it."""
    others = [point.position for point in changes.points]
    start = max((other for other in others if other < change.position), default=0)
    end = min((other for other in others if other > change.position), default=math.inf)
    before = [value for place, value in values.items() if start <= place < change.position]
    after = [value for place, value in values.items() if change.position <= place < end]
    return fmean(before) if before else None, fmean(after) if after else None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptTrend:
    """A trend as a store keeps it: nothing waits to be computed, and each field has one type."""

    name: str
    k: int
    points: tuple[TrendPoint, ...]
    changes: Mapping[str, Changes]
    divergence: DivergingTrend | None
    no_divergence: str
    turns: tuple[LabelChange, ...]
    moved: tuple[RateChange, ...]
    runs_to_show: int | None
    graded: GradedChanges | None = None
    judged: bool = False

    @classmethod
    def of(cls, trend: SystemTrend) -> KeptTrend:
        held = {each.name: getattr(trend, each.name) for each in fields(trend)}
        reason = (
            held["divergence"].reason if not isinstance(trend.divergence, DivergingTrend) else ""
        )
        return cls(
            **held | {"no_divergence": reason, "divergence": None if reason else trend.divergence}
        )

    @property
    def trend(self) -> SystemTrend:
        held = {each.name: getattr(self, each.name) for each in fields(SystemTrend)}
        return SystemTrend(
            **held | {"divergence": self.divergence or Unavailable(self.no_divergence)}
        )


class Trends(Displayed, tuple[SystemTrend, ...]):  # as other results: no fields
    """The trend of each agent; prints as its screen."""

    def __repr__(self) -> str:
        return short_repr(
            "Trends", *(f"{trend.name}: {plural(len(trend.points), 'run')}" for trend in self)
        )


def trends(
    history: Sequence[CountedRun],
    *,
    k: int | None = None,
    confidence: float = CONFIDENCE,
    errors: ErrorPolicy = "fail",
    false_alarm: float = 0.05,
    horizon: int = DEFAULT_HORIZON,
) -> Trends:
    """The trend of every system in `history`, a list of runs with the oldest first.

    `false_alarm` is the chance of any change point in `horizon` runs at which nothing changed,
    for each metric.
    """
    if k is not None:
        k = whole_number("k", k)
    names = dict.fromkeys(tally.system for run in history for tally in run.tallies)
    if not names:
        raise ArgumentError("history", "must hold at least one run with trials", len(history))
    return Trends(
        _system_trend(name, history, k, confidence, errors, false_alarm, horizon) for name in names
    )


@dataclass(frozen=True)
class _Snapshot:
    """Runs and passes of each task in one run; what is not `fresh` is carried forward."""

    run: CountedRun
    counts: Mapping[str, tuple[int, int]]
    fresh: Mapping[str, tuple[int, int]]
    weights: Mapping[str, float]

    def arrays(self) -> tuple[Counts, Counts]:
        pairs = np.array(list(self.counts.values()), dtype=np.int64).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]

    @property
    def evidence(self) -> Evidence:
        weight = [self.weights.get(task, 1.0) for task in self.counts] if self.weights else None
        weights = None if weight is None else np.array(weight)
        return Evidence.of_passes(tuple(self.counts), *self.arrays(), weights)

    def known(self, system: str, errors: ErrorPolicy) -> AgentNumbers | None:
        """The numbers of the run alone, if they are those of this point of the history."""
        alone = errors == "fail" and not self.weights and self.counts.keys() == self.fresh.keys()
        return self.run.numbers.get(system) if alone else None


def _system_trend(
    name: str,
    history: Sequence[CountedRun],
    k: int | None,
    confidence: float,
    errors: ErrorPolicy,
    false_alarm: float,
    horizon: int,
) -> SystemTrend:
    snapshots = _snapshots(name, history, errors)
    chosen = _usual_k(snapshots) if k is None else k
    names = ("pass^1",) if chosen == 1 else (f"pass^{chosen}", f"pass@{chosen}")
    points = [_point(name, snapshot, names, chosen, confidence, errors) for snapshot in snapshots]
    first = _task_series(snapshots, chosen)
    series = {metric: first if metric == names[0] else first.by("pass@k") for metric in names}
    changes = {
        metric: _changes(points, false_alarm=false_alarm, horizon=horizon, confidence=confidence)
        for metric, points in series.items()
    }
    both = [series[metric] for metric in reversed(names)]
    return SystemTrend(
        name=name,
        k=chosen,
        points=tuple(points),
        changes=changes,
        divergence=(
            divergence(*both, confidence=confidence)
            if len(both) == 2
            else Unavailable("pass@k and pass^k are the same number with one trial of a task")
        ),
        turns=_turns(name, snapshots, errors),
        graded=graded_changes(
            [point.corrected for point in points],
            chosen,
            false_alarm=false_alarm,
            horizon=horizon,
            confidence=confidence,
        ),
        judged=graded_by_judge(
            source for s in snapshots for tally in s.run.tallies for source in tally.sources
        ),
        moved=_moved(snapshots, changes[names[0]].points),
        runs_to_show=None
        if changes[names[0]].points
        else partial(
            runs_to_show,
            series[names[0]],
            NOTABLE,
            most=MOST_AWAITED,
            false_alarm=false_alarm,
            horizon=horizon,
        ),
    )


def _usual_k(snapshots: Sequence[_Snapshot]) -> int:
    """The largest k up to five that every task has runs for, at every point."""
    return min(HEADLINE_K, *(int(snapshot.arrays()[0].min()) for snapshot in snapshots))


def _stretch(changes: Sequence[ChangePoint]) -> int:
    """Where the newest stretch without a change begins."""
    return max((change.position for change in changes), default=0)


def _snapshots(name: str, history: Sequence[CountedRun], errors: ErrorPolicy) -> list[_Snapshot]:
    options = ReportOptions.checked(errors=errors)
    known: dict[str, tuple[int, int]] = {}
    weights: dict[str, float] = {}
    snapshots = []
    for run in history:
        counted = [count_evidence(tally, options) for tally in run.tallies if tally.system == name]
        fresh = {
            task: (int(n), int(c))
            for evidence in counted
            for task, n, c in zip(evidence.tasks, evidence.runs, evidence.passes, strict=True)
        }
        if not fresh:
            continue
        known = fresh if run.whole else {**known, **fresh}
        for evidence in counted:
            if evidence.weight is not None:
                weights |= dict(zip(evidence.tasks, evidence.weight.tolist(), strict=True))
        snapshots.append(_Snapshot(run, known, fresh, dict(weights)))
    return snapshots


def _point(
    system: str,
    snapshot: _Snapshot,
    names: Sequence[str],
    k: int,
    confidence: float,
    errors: ErrorPolicy,
) -> TrendPoint:
    """The rates in one run.

    What moved its runs together widens the interval of tasks carried forward too: their own runs
    are of another day, of which less is known.
    """
    run = snapshot.run
    known = snapshot.known(system, errors)
    metrics: dict[str, Estimate] = {}
    if known is not None and known.k == k and confidence == CONFIDENCE:
        both = zip(names, (known.estimate, known.pass_at), strict=False)
        metrics = {name: estimate for name, estimate in both if estimate is not None}
    if len(metrics) < len(names):
        measured = measure_metrics(
            snapshot.evidence,
            (k,),
            confidence=confidence,
            groupings=run.groupings.get(system, ()),
            this_suite_only=True,
        )
        for name in names:
            estimate = measured[name].this_suite
            if isinstance(estimate, Unavailable):
                rule = f"must be possible at every run; at {run.label}: {estimate.reason}"
                raise ArgumentError("k", rule, k)
            metrics[name] = estimate
    labels = run.labels.get(system)
    return TrendPoint(
        key=run.key,
        label=run.label,
        started=run.started,
        metrics=metrics,
        tasks=len(snapshot.fresh),
        runs=sum(n for n, _ in snapshot.fresh.values()),
        carried=tuple(task for task in snapshot.counts if task not in snapshot.fresh),
        corrected=_as_people_grade(run, system, k, confidence),
        labels=0 if labels is None else labels.used,
        stopped_early=run.stopped_early,
    )


def _as_people_grade(
    run: CountedRun, system: str, k: int, confidence: float
) -> dict[str, Estimate]:
    """pass^1 and pass^k as people would have graded a run, where its labels say it."""
    labels = run.labels.get(system)
    if labels is None:
        return {}
    numbers = {f"pass^{length}": labels.number(length, THIS_SUITE, confidence) for length in {1, k}}
    return {name: number for name, number in numbers.items() if isinstance(number, Estimate)}


def graded_changes(
    corrected: Sequence[Mapping[str, Estimate]],
    k: int,
    *,
    false_alarm: float,
    horizon: int,
    confidence: float,
) -> GradedChanges | None:
    """Changes of the corrected number over the runs that have it; None if fewer than two do.

    It is pass^k where every labelled run has it, else pass^1. Labels say nothing of the tasks one
    by one, so runs are compared by their numbers, with half the width of each interval as so many
    standard errors. Of 60 histories of 10 unchanged runs with 60 labels each 0 to 2 % raised an
    alarm, 3 % where the judge became stricter (17 % by its verdicts): bench/calibrate/judges.py.
    """
    places = [place for place, number in enumerate(corrected) if "pass^1" in number]
    if len(places) < 2:
        return None
    whole = all(f"pass^{k}" in corrected[place] for place in places)
    metric = f"pass^{k}" if whole else "pass^1"
    rates = [corrected[place][metric] for place in places]
    ends = [rate.interval or Interval(0.0, 1.0) for rate in rates]
    half = float(ndtri(0.5 + confidence / 2))
    series = MeanSeries(
        np.array([rate.value for rate in rates]),
        np.array([max(end.width, _NARROWEST) / 2 / half for end in ends]),
    )
    changes = change_points(series, false_alarm=false_alarm, horizon=horizon, confidence=confidence)
    points = tuple(
        replace(change, position=places[change.position], alarm=places[change.alarm])
        for change in changes.points
    )
    return GradedChanges(
        metric=metric, places=tuple(places), changes=replace(changes, points=points)
    )


_changes = lru_cache(maxsize=4)(change_points)
"""The verdict on a run and its trend ask for the same changes."""


@lru_cache(maxsize=2)
def _one_series(shape: tuple[int, ...], runs: bytes, passes: bytes, k: int) -> TaskSeries:
    """One object for equal counts, with what it found out already."""
    n, c = (np.frombuffer(part, dtype=np.int64).reshape(shape) for part in (runs, passes))
    return TaskSeries(n, c, k=k)


def _task_series(snapshots: Sequence[_Snapshot], k: int) -> TaskSeries:
    """What was run each time, and only that: counts carried forward are no new evidence."""
    tasks = dict.fromkeys(task for snapshot in snapshots for task in snapshot.fresh)
    place = {task: i for i, task in enumerate(tasks)}
    counts = np.zeros((2, len(snapshots), len(place)), dtype=np.int64)
    for row, snapshot in enumerate(snapshots):
        for task, pair in snapshot.fresh.items():
            counts[:, row, place[task]] = pair
    return _one_series(counts.shape[1:], counts[0].tobytes(), counts[1].tobytes(), k)


def _moved(
    snapshots: Sequence[_Snapshot], changes: Sequence[ChangePoint]
) -> tuple[RateChange, ...]:
    """What was run of each task between the last two changes, and what since the newest."""
    if not changes:
        return ()
    positions = sorted(change.position for change in changes)
    newest, previous = positions[-1], positions[-2] if len(positions) > 1 else 0
    down = max(changes, key=lambda change: change.position).direction == "down"
    return _moved_between(snapshots[previous:newest], snapshots[newest:], down=down)


def _moved_between(
    old: Sequence[_Snapshot], new: Sequence[_Snapshot], *, down: bool
) -> tuple[RateChange, ...]:
    """The tasks that both stretches ran, the largest move in the direction of the change first."""
    from passhat.stats.multiple_testing import task_tests

    before, after = _pooled(old), _pooled(new)
    shared = [task for task in after if task in before]
    if not shared:
        return ()
    (c_new, n_new), (c_old, n_old) = (
        np.array([side[task] for task in shared]).T for side in (after, before)
    )
    tests = task_tests(n_new, c_new, n_old, c_old, alternative="less" if down else "greater")
    moves = [
        RateChange(task=task, before=before[task], after=after[task], p_screening=float(p))
        for task, p in zip(shared, tests.screening, strict=True)
    ]
    return tuple(sorted(moves, key=lambda move: move.moved if down else -move.moved))


def _pooled(snapshots: Sequence[_Snapshot]) -> dict[str, tuple[int, int]]:
    """Passed runs and all runs of each task; counts carried forward are no new runs."""
    pooled: dict[str, tuple[int, int]] = {}
    for snapshot in snapshots:
        for task, (runs, passed) in snapshot.fresh.items():
            so_far = pooled.get(task, (0, 0))
            pooled[task] = (so_far[0] + passed, so_far[1] + runs)
    return pooled


def _turns(
    system: str, snapshots: Sequence[_Snapshot], errors: ErrorPolicy
) -> tuple[LabelChange, ...]:
    """Label changes, looking past runs in which a task was undecided."""
    last: dict[str, str] = {}
    turns = []
    for snapshot in snapshots:
        known = snapshot.known(system, errors)
        if known is not None and known.labels:
            labels = dict(zip(snapshot.fresh, map(_LABELS.__getitem__, known.labels), strict=True))
        else:
            own = label_tasks(*snapshot.arrays()).labels.tolist()
            labels = dict(zip(snapshot.counts, own, strict=True))
        for task, label in labels.items():
            if label == UNDECIDED or task not in snapshot.fresh:
                continue
            before = last.get(task, label)
            last[task] = label
            if (turn := _TURNS.get((before, label))) is not None:
                run = snapshot.run
                turns.append(
                    LabelChange(
                        task=task,
                        turn=turn,
                        before=before,
                        after=label,
                        key=run.key,
                        label=run.label,
                    )
                )
    return tuple(turns)


# The verdict on a run: one sentence that every screen and page shows.

FALSE_ALARM, HORIZON = 0.05, DEFAULT_HORIZON
"""`change_points` names a change in at most 5% of the histories of 100 runs without one, as often
upwards: in 30 runs less than 1% are falls. A verdict looks back as far."""

TASKS_FALSE_ALARM, MONTH = 0.04, 30
"""The chance that `task_fall` errs in 30 runs, a month of nights. With the other, a fall is said of
at most 5% of the months in which nothing changed."""

MOST_NAMED, MOST_KEPT = 3, 50
"""Tasks that a sentence names, and that a verdict holds."""

Movement = Literal["fell", "rose", "steady", "first"]


@result_dataclass(frozen=True, slots=True, kw_only=True)
class RunDifference:
    """A run against one other: pass^k of this one minus the other, on the tasks of both.

    The other is tagged as the `baseline`, else it is the run before. Without an interval the two
    share too few trials.
    """

    run: str
    started: str
    baseline: bool
    interval: Interval | None
    k: int | None = None

    @property
    def sentence(self) -> str:
        """The answer in a few words."""
        return f"{self.against}: {self._answer}."

    @property
    def against(self) -> str:
        """The other run, in a few words."""
        which = "the baseline" if self.baseline else "the run"
        named = f"{which} of {short_day(self.started)} ({self.run})"  # a day may have several
        return f"Against {named} alone"

    @property
    def word(self) -> str:
        """Whether this run is "higher" or "lower"; nothing where that is not shown."""
        if self.interval is None or 0 in self.interval:
            return ""
        return "higher" if self.interval.low > 0 else "lower"

    @property
    def _answer(self) -> str:
        if self.interval is None:
            return "they share too few trials to compare"
        low, high = self.interval.low, self.interval.high
        number = "" if self.k is None else f"{metric_label(f'pass^{self.k}')} "
        if self.word:
            near, far = map(points, sorted((abs(low), abs(high))))
            return f"{number}{near} to {far} points {self.word}"
        return f"too few trials to tell ({number}{_ends(self.interval)} points)"


def _ends(interval: Interval) -> str:
    return f"{signed_points(interval.low)} to {signed_points(interval.high)}"


@result_dataclass(frozen=True, slots=True, kw_only=True)
class AgentVerdict:
    """What is said of one agent in one run, against the runs before it.

    `runs_before` are those it was compared with: since the last change. A fall is said until
    pass^k rises again, or a run since then is tagged as the baseline. `before` and `after` are the
    levels of pass^k, and `interval` the size of the change; without one, the fall was shown in some
    tasks and not in the mean. `since` is the first run after the change, `since_day` its day, and
    `moved` are the tasks, those that moved most first. `graded` says how the number moved as people
    grade it, where two runs or more have enough labels: a fall by that number is one of pass^1.
    `in_headline` if the headline above has the change already: then the sentence leaves it out.
    `noticeable` is what the next runs would likely show, known where nothing fell.
    """

    system: str
    k: int
    movement: Movement
    runs_before: int
    value: float
    since: str | None = None
    since_day: str | None = None
    before: float | None = None
    after: float | None = None
    interval: Interval | None = None
    moved: tuple[RateChange, ...] = ()
    alone: RunDifference | None = None
    graded: Movement | None = None
    in_headline: bool = False
    noticeable: NoticeableFall | None = None

    @property
    def fell(self) -> bool:
        """Whether it needs attention."""
        return self.movement == "fell"

    @property
    def tasks(self) -> tuple[RateChange, ...]:
        """The tasks that the change is in: those that moved by more than noise."""
        return tuple(move for move in self.moved if move.shown)

    @property
    def tasks_named(self) -> dict[str, str]:
        """The tasks that its sentence names between brackets, each by how it is written there."""
        if not self.fell or self.interval is not None:
            return {}
        return {_as_named(move): move.task for move in self.tasks[:MOST_NAMED]}

    def fall_of(self, task: str) -> str:
        """The verdict in three words where the fall is in this task; else nothing."""
        return f"Fell on {short_day(self.since_day or '')}" if self.before_fall(task) else ""

    def before_fall(self, task: str) -> tuple[int, int, int] | None:
        """The runs before the fall of a task, with its passes and trials there; None without."""
        move = next((move for move in self.tasks if self.fell and move.task == task), None)
        return None if move is None else (self.runs_before, *move.before)

    @property
    def words(self) -> str:
        """The verdict in two to five words."""
        day = short_day(self.since_day or "")
        if self.movement == "fell" and self.interval is None and self.tasks:
            return f"{plural(len(self.tasks), 'task')} fell on {day}"
        if self._alone_says_it and self.alone is not None and self.alone.word:
            return f"{self.alone.word.capitalize()} than on {short_day(self.alone.started)}"
        return {
            "fell": f"Fell on {day}",
            "rose": f"Rose on {day}",
            "steady": "No change shown",
            "first": "Nothing to compare with",
        }[self.movement]

    @property
    def sentence(self) -> str:
        """The verdict, with the questions that it answers; made here and nowhere else."""
        if self.movement == "first":
            return "There is nothing to compare it with yet."
        known = self.in_headline or self._alone_says_it
        parts = [] if known else [f"Against {self._earlier}: {self.answer}."]
        if self.graded == "steady" or (self.graded == "rose" != self.movement):
            change = "no change shown" if self.graded == "steady" else "it rose"
            parts.append(f"As people grade it: {change}.")
        if self.alone is not None and (self.runs_before > 1 or self._alone_says_it):
            parts.append(self.alone.sentence)
        return " ".join(parts)

    @property
    def _alone_says_it(self) -> bool:
        """With one run before, "no change in the runs before" would say the same twice."""
        return self.runs_before == 1 and self.movement == "steady" and self.alone is not None

    @property
    def _earlier(self) -> str:
        return "the run before" if self.runs_before == 1 else f"the {self.runs_before} runs before"

    @property
    def answer(self) -> str:
        """What changed against the runs before, in a clause."""
        if self.movement == "steady":
            return self.what_changed
        if self.interval is None:
            named = ", ".join(first_few([_as_named(move) for move in self.tasks], MOST_NAMED))
            return f"{self.what_changed} ({named})" if named else self.what_changed
        before, after = (percent(level or 0.0) for level in (self.before, self.after))
        near, far = map(points, sorted(map(abs, (self.interval.low, self.interval.high))))
        return f"{self.what_changed} from {before} to {after}, by {near} to {far} points"

    @property
    def what_changed(self) -> str:
        """The clause without its numbers and the names of tasks."""
        if self.movement == "steady":
            return "no change shown"
        on = f" on {short_day(self.since_day)}" if self.since_day else ""
        if self.interval is None:
            which = plural(len(self.tasks), "task") if self.tasks else "some tasks"
            return f"{which} fell{on}"
        graded = " as people grade it" if self.graded == self.movement else ""
        return f"{metric_label(f'pass^{self.k}')}{graded} {self.movement}{on}"


def _as_named(move: RateChange) -> str:
    return safe_text(short(move.task))


def sentence_of_noticeable(fall: NoticeableFall) -> str:
    """Which fall the front page would see, in a sentence.

    >>> sentence_of_noticeable(NoticeableFall(rate=0.4, tasks=4, suite=20))
    'A fall of 40 points in 4 of these 20 tasks would likely be seen within two runs.'
    >>> sentence_of_noticeable(NoticeableFall(rate=None, tasks=1, suite=3))
    'Two runs are likely too few to see a fall in 1 of these 3 tasks, whatever its size.'
    """
    which = f"{fall.tasks:,} of these {plural(fall.suite, 'task')}"
    if fall.rate is None:
        return f"Two runs are likely too few to see a fall in {which}, whatever its size."
    return f"A fall of {points(fall.rate)} points in {which} would likely be seen within two runs."


@result_dataclass(frozen=True, slots=True, kw_only=True)
class RunVerdict:
    """What is said of a run: of each of its agents, and by its own gates.

    `gates` are pairs of a word (PASS, FAIL, UNDECIDED) and what is said after it.
    """

    run: str
    agents: tuple[AgentVerdict, ...]
    gates: tuple[tuple[str, str], ...] = ()

    @property
    def fell(self) -> bool:
        """Whether any agent fell by more than noise."""
        return any(agent.fell for agent in self.agents)

    def about(self, systems: Sequence[str], *, k: int | None = None) -> RunVerdict:
        """What is said of these agents alone, of all if none is named; and of one pass^k alone."""
        chosen = tuple(
            agent
            for agent in self.agents
            if (not systems or agent.system in systems) and k in (None, agent.k)
        )
        return replace(self, agents=chosen)

    def without_open_differences(self) -> RunVerdict:
        """What is said against all runs before, without "too few trials to tell" of the last."""
        shown = [
            agent if agent.alone is None or agent.alone.word else replace(agent, alone=None)
            for agent in self.agents
        ]
        return replace(self, agents=tuple(shown))

    def of(self, system: str) -> AgentVerdict | None:
        """The verdict on one agent."""
        return next((agent for agent in self.agents if agent.system == system), None)

    @property
    def sentence(self) -> str:
        """What is said of the run; where it has several agents, of each of them."""
        if len({agent.sentence for agent in self.agents}) == 1:
            return self.agents[0].sentence
        if (same := _same_of_all(self.agents)) is not None:
            return same
        return self.sentence_by_name

    @property
    def sentence_by_name(self) -> str:
        """What is said of each of its agents, with its name."""
        sentences = ((safe_text(short(agent.system)), agent.sentence) for agent in self.agents)
        return " ".join(f"{name}: {sentence}" for name, sentence in sentences if sentence)


def _same_of_all(agents: Sequence[AgentVerdict]) -> str | None:
    """Where the same is said of every agent, it is said once; None where something differs."""
    around, ends = set(), []
    for agent in agents:
        if agent.alone is None or agent.alone.interval is None or agent.alone.word:
            return None
        apart = _ends(agent.alone.interval)
        before, _, after = agent.sentence.rpartition(apart)
        around.add((f"{before.rstrip()}: " if before.endswith(" ") else before, after))
        ends.append(f"{safe_text(short(agent.system))} {apart}")
    return ", ".join(ends).join(around.pop()) if len(around) == 1 else None


@result_dataclass(frozen=True, slots=True, kw_only=True)
class AgentNumbers:
    """One agent in one run: its counts, the number of its headline, and pass^1, pass^2, ....

    Where that number cannot be known, `estimate` is None and `reason` says why. `pass_at` is pass@k
    of the same k, and `labels` has the first letter of each task's label.
    """

    system: str
    tasks: int
    trials: int
    k: int
    estimate: Estimate | None
    reason: str = ""
    levels: tuple[float | None, ...] = ()
    pass_at: Estimate | None = None
    labels: str = ""

    @property
    def headline(self) -> HeadlineNumber:
        """The number with its interval for these tasks."""
        return HeadlineNumber(k=self.k, number=self.estimate or Unavailable(self.reason))


def agent_numbers(tally: Tally, groupings: Sequence[RunGroups] = ()) -> AgentNumbers:
    """The numbers of one agent in one run, from its counts."""
    evidence = count_evidence(tally)
    k = int(evidence.runs.min(initial=HEADLINE_K)) if evidence.tasks else 1
    numbers = AgentNumbers(
        system=tally.system,
        tasks=len(tally.tasks),
        trials=tally.trials,
        k=k,
        estimate=None,
        levels=tuple(mean_pass_hat(tally, length) for length in range(1, HEADLINE_K + 1)),
    )
    if not evidence.tasks:
        return replace(numbers, reason="no task has a trial")
    metrics = measure_metrics(
        evidence, (k,), confidence=CONFIDENCE, groupings=groupings, this_suite_only=True
    )
    number, pass_at = (metrics[f"pass{sign}{k}"].this_suite for sign in "^@")
    labels = label_tasks(evidence.runs, evidence.passes).labels.tolist()
    return replace(
        numbers,
        estimate=None if isinstance(number, Unavailable) else number,
        reason=number.reason if isinstance(number, Unavailable) else "",
        pass_at=None if isinstance(pass_at, Unavailable) else pass_at,
        labels="".join(label[0] for label in labels),
    )


def judge_agents(
    history: Sequence[CountedRun],
    *,
    accepted: Sequence[str] = (),
    alone: Mapping[str, RunDifference] | None = None,
) -> tuple[AgentVerdict, ...]:
    """The verdict on each agent of the last run in `history`, which has the oldest run first.

    `accepted` are runs whose level is taken as it is, as that of a baseline: no fall before them is
    said again. `alone` compares an agent with one other run.
    """
    verdicts = []
    for name in (tally.system for tally in history[-1].tallies) if history else ():
        snapshots = _snapshots(name, history, "fail")
        verdict = _with_people(name, snapshots, accepted, (alone or {}).get(name))
        noticeable = None if verdict.fell else _noticeable(verdict, snapshots)
        verdicts.append(replace(verdict, noticeable=noticeable))
    return tuple(verdicts)


def _noticeable(verdict: AgentVerdict, snapshots: Sequence[_Snapshot]) -> NoticeableFall | None:
    """Which fall the next runs would likely show, against those since the last change."""
    newest = len(snapshots) - 1
    start = newest - verdict.runs_before
    if verdict.movement == "rose":
        start = next(
            (i for i, each in enumerate(snapshots) if each.run.key == verdict.since), newest
        )
    series = _task_series(snapshots, verdict.k)
    return noticeable_fall(series, start, false_alarm=TASKS_FALSE_ALARM, horizon=MONTH)


def _with_people(
    name: str, snapshots: Sequence[_Snapshot], accepted: Sequence[str], alone: RunDifference | None
) -> AgentVerdict:
    """The verdict by what the judge says, and by what people say where they labelled two runs.

    Each of the two then has half the chance of a false alarm that `change_points` has alone.
    """
    corrected = [_as_people_grade(snapshot.run, name, 1, CONFIDENCE) for snapshot in snapshots]
    graded = graded_changes(
        corrected, 1, false_alarm=FALSE_ALARM / 2, horizon=HORIZON, confidence=CONFIDENCE
    )
    judged = _judged(
        name, snapshots, accepted, alone, false_alarm=FALSE_ALARM / (1 if graded is None else 2)
    )
    if graded is None:
        return judged
    change = graded.newest
    taken = [i for i, snapshot in enumerate(snapshots) if snapshot.run.key in accepted]
    if change is None or any(place >= change.position for place in taken):
        return replace(judged, graded="steady")
    if change.direction == "up":
        return replace(judged, graded="rose")
    before = [place for place in graded.places if place < change.position]
    return replace(
        judged,
        movement="fell",
        graded="fell",
        k=1,
        value=_level(snapshots[-1], 1),
        runs_before=len(before),
        since=snapshots[change.position].run.key,
        since_day=snapshots[change.position].run.started,
        before=change.before,
        after=change.after,
        interval=change.interval,
    )


def _judged(
    name: str,
    snapshots: Sequence[_Snapshot],
    accepted: Sequence[str],
    alone: RunDifference | None,
    *,
    false_alarm: float,
) -> AgentVerdict:
    k = _usual_k(snapshots)
    value = _level(snapshots[-1], k)
    if len(snapshots) == 1:
        return AgentVerdict(
            system=name, k=k, movement="first", runs_before=0, value=value, alone=alone
        )
    series = _task_series(snapshots, k)
    changes = _changes(
        series, false_alarm=false_alarm, horizon=HORIZON, confidence=CONFIDENCE
    ).points
    start, newest = _stretch(changes), len(snapshots) - 1
    taken = [i for i, snapshot in enumerate(snapshots) if snapshot.run.key in accepted]
    steady = AgentVerdict(
        system=name, k=k, movement="steady", runs_before=newest - start, value=value, alone=alone
    )
    fall = task_fall(series, start, false_alarm=TASKS_FALSE_ALARM, horizon=MONTH)
    if fall is not None:
        split = len(snapshots) - fall.points
        return steady if split in taken else replace(
            steady,
            movement="fell",
            runs_before=split - start,
            since=snapshots[split].run.key,
            since_day=snapshots[split].run.started,
            moved=_moved_between(snapshots[start:split], snapshots[split:], down=True)[:MOST_KEPT],
        )  # fmt: skip
    change = max(changes, key=lambda change: change.position, default=None)
    if change is None or (change.direction == "up" and start < newest):
        return steady if newest > start else replace(steady, runs_before=newest)
    if change.direction == "down" and any(place >= start for place in taken):
        return steady
    previous = _stretch([change for change in changes if change.position < start])
    levels = [_level(snapshot, k) for snapshot in snapshots]
    return replace(
        steady,
        movement="fell" if change.direction == "down" else "rose",
        runs_before=start - previous,
        since=snapshots[start].run.key,
        since_day=snapshots[start].run.started,
        before=fmean(levels[previous:start]),
        after=fmean(levels[start:]),
        interval=change.interval,
        moved=_moved_between(
            snapshots[previous:start], snapshots[start:], down=change.direction == "down"
        )[:MOST_KEPT],
    )


def _level(snapshot: _Snapshot, k: int) -> float:
    """pass^k of one run, as its trend has it."""
    evidence = snapshot.evidence
    values = pass_hat_k(evidence.runs, evidence.passes, k)
    return float(np.average(values, weights=evidence.weight))


# Which tasks passed and failed over the last runs, and how often.

PASSED, FAILED, MIXED, ABSENT = "P", "F", "~", "."
"""What a task did in one run: all trials passed, all failed, some of each, not run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlakyTask:
    """A task that passed and failed: its trials over all runs, and what it did in each run.

    `label` is flaky, broken, solid or "undecided" for all trials together; `marks` has a letter
    for each run, oldest first: P all passed, F all failed, ~ some of each, . not run.
    """

    system: str
    task: str
    label: str
    trials: int
    passed: int
    rate: float
    interval: Interval
    marks: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FlakyTasks(Displayed):
    """The tasks that passed and failed over some runs; `tasks_seen` counts all that were run.

    `days` are when the runs began, `keys` what they are called. `counts` has, by system and task,
    the trials and passes of each run, None where it has none; also of the tasks that always passed
    or never did.
    """

    tasks: tuple[FlakyTask, ...]
    tasks_seen: int
    runs: int
    confidence: float
    days: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    counts: Mapping[tuple[str, str], Sequence[tuple[int, int] | None]] = field(default_factory=dict)

    def __repr__(self) -> str:
        shown = (
            f"{len(self.tasks)} of {plural(self.tasks_seen, 'task')} in {plural(self.runs, 'run')}"
        )
        return short_repr("FlakyTasks", shown, see=".tasks")


def find_flaky(
    history: Sequence[CountedRun], *, confidence: float = CONFIDENCE, errors: ErrorPolicy = "fail"
) -> FlakyTasks:
    """The tasks that both passed and failed over these runs, oldest run first.

    Tasks labelled flaky come first; within each label, those nearest to a coin toss.
    """
    counts = _counts(history, errors)
    keys = list(counts)
    totals = [tuple(map(sum, zip(*counts[key].values(), strict=True))) for key in keys]
    labels = label_tasks(*zip(*totals, strict=True)).labels.tolist() if totals else []
    flaky = [
        FlakyTask(
            system=key[0],
            task=key[1],
            label=label,
            trials=n,
            passed=c,
            rate=c / n,
            interval=proportion_interval(c, n, confidence=confidence),
            marks="".join(_mark(counts[key].get(i)) for i in range(len(history))),
        )
        for key, label, (n, c) in zip(keys, labels, totals, strict=True)
        if 0 < c < n
    ]
    flaky.sort(key=lambda a: (a.label != "flaky", abs(a.rate - 0.5), a.system, a.task))
    return FlakyTasks(
        tasks=tuple(flaky),
        tasks_seen=len(keys),
        runs=len(history),
        confidence=confidence,
        days=tuple(run.started for run in history),
        keys=tuple(run.key for run in history),
        counts={
            key: tuple(by_run.get(i) for i in range(len(history))) for key, by_run in counts.items()
        },
    )


def _counts(
    history: Sequence[CountedRun], errors: ErrorPolicy
) -> dict[tuple[str, str], dict[int, tuple[int, int]]]:
    """For each system and task: the trials and passes of each run, by its number."""
    counts: dict[tuple[str, str], dict[int, tuple[int, int]]] = {}
    for number, run in enumerate(history):
        for tally in run.tallies:
            runs = tally.runs(errors).tolist()
            for task, n, c in zip(tally.tasks, runs, tally.passed.tolist(), strict=True):
                if n:
                    counts.setdefault((tally.system, task), {})[number] = (n, c)
    return counts


def _mark(counts: tuple[int, int] | None) -> str:
    """The letter of one run, from its trials and passes."""
    if counts is None:
        return ABSENT
    trials, passed = counts
    return PASSED if passed == trials else FAILED if passed == 0 else MIXED
