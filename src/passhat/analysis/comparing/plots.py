"""Pictures of comparisons: paired differences, ranks with their ties, trends over a history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from math import fsum
from typing import TYPE_CHECKING

from passhat.analysis.comparing.comparison import Comparison, TaskDifference
from passhat.analysis.comparing.ranking import RankedSystem, RankReport
from passhat.analysis.reports.plots import metric_row, next_fifth
from passhat.drawing import Figure, IntervalRow, Level, Marker, Series, interval_rows, line_chart
from passhat.messages import percent, plural, short_day, shorten_apart, signed_points
from passhat.records.trial import natural_key
from passhat.stats.estimate import Estimate, Interval, Unavailable

if TYPE_CHECKING:
    from passhat.stats.trend import ChangePoint, Changes

MOST_ROWS = 60
"""Tasks drawn in one picture; those that differ most, if there are more."""

_LONGEST_TITLE = 110
_COLOURS = {"better": "a", "worse": "b"}
# Room for a day and a commit below every few runs.
_TREND_WIDTH = 640
_MARKED = 0.05
"""Changes of pass@k from this size on have a mark; smaller ones would hide those of pass^k."""


def plot_differences(comparison: Comparison, *, most: int = MOST_ROWS) -> Figure:
    """A dumbbell per task that moved, from the second's pass rate (hollow) to the first's (filled).

    The row of the mean carries the interval of the mean difference, laid from the second's mean as
    in a Gardner-Altman plot (Ho et al. 2019): where it crosses the line, noise explains the
    difference.

    >>> from passhat import compare, simulate
    >>> comparison = compare(simulate(tasks=8, runs=6, rate={"new": 0.9, "old": 0.5}, seed=1))
    >>> print(plot_differences(comparison).text.splitlines()[1][:9])
    mean of 8
    """
    moved = [task for task in comparison.tasks if task.rate_difference] or comparison.tasks
    tasks = sorted(moved, key=lambda task: (-abs(task.rate_difference), natural_key(task.name)))
    tasks = tasks[:most]
    tasks.sort(key=lambda task: (task.rate_difference, natural_key(task.name)))
    mean = _mean_row(comparison)
    first, second = shorten_apart([comparison.first, comparison.second], 20)
    still = len(comparison.tasks) - len(moved)
    cut = f" ({still:,} did not move)" if still else ""
    if len(tasks) < len(moved):
        cut = f" (the {len(tasks)} that differ most)"
    return interval_rows(
        ([mean] if mean else []) + [_task_row(task) for task in tasks],
        title=_title(comparison) + cut,
        finding=_finding(comparison),
        x_label=f"pass rate: ● {first} ○ {second}",
        x_range=(0, 1),
        x_kind="percent",
        zero=mean.other if mean else None,
    )


def plot_ranks(report: RankReport) -> Figure:
    """Each system's value with both intervals and the ranks it may hold; a line joins ties.

    >>> from passhat import rank, simulate
    >>> ranking = rank(simulate(tasks=40, runs=8, rate={"a": 0.9, "b": 0.88, "c": 0.4}, seed=1))
    >>> plot_ranks(ranking).title
    'b and a are tied; c stands alone at rank 3'
    """
    places = {system.name: i for i, system in enumerate(report.systems)}
    ties = [[places[name] for name in band] for band in report.tie_bands if len(band) > 1]
    rows = [_ranked_row(system) for system in report.systems]
    return interval_rows(
        rows,
        title=_rank_title(report),
        finding="Thick: these tasks; thin: similar tasks; beside them the ranks that may be true. "
        "Agents on one vertical line are tied.",
        x_label=report.metric_name,
        x_range=(0, next_fifth([max(row.value, row.high or 0.0) for row in rows])),
        x_kind="percent",
        ties=ties,
    )


def _ranked_row(system: RankedSystem) -> IntervalRow:
    first, last = system.ranks
    ranks = f"{first}" if first == last else f"{first} to {last}"
    row = metric_row(system.name, system.metric)
    colour = "a" if first == 1 else "n"
    note = f"{row.note}, {ranks}"
    return replace(row, value=system.value, colour=colour, note=note, brief=ranks)


def plot_trend(
    system: str,
    *,
    runs: Sequence[tuple[str, str]],
    metrics: Mapping[str, Sequence[Estimate]],
    changes: Mapping[str, Changes],
) -> Figure:
    """pass@k and pass^k over a history, with intervals and change points.

    `runs` has the start and the label of each run; the first of `metrics` is what the trend is
    about.
    """
    lead = next(iter(metrics))
    moves = changes[lead].points
    newest = max(moves, key=lambda change: change.position, default=None)
    changed: dict[tuple[int, str], list[str]] = {}
    for name, series in changes.items():
        for change in series.points:
            if name == lead or abs(change.after - change.before) >= _MARKED:
                changed.setdefault((change.position, change.direction), []).append(name)
    now = ", ".join(f"{name} {percent(numbers[-1].value)}" for name, numbers in metrics.items())
    lines = "" if newest is None else " Level lines: before and since a change."
    levels = _levels(moves, [estimate.value for estimate in metrics[lead]])
    draw = partial(
        line_chart,
        [_series(name, points) for name, points in metrics.items()],
        title=f"{system}: {_trend_words(lead, newest, levels, runs)}",
        finding=f"Newest run: {now}. Bands: these tasks.{lines}",
        x_label="run, oldest first",
        y_label="chance",
        y_range=(0, 1),
        y_kind="percent",
        x_names=[short_day(started) for started, _ in runs],
        x_notes=[label.split(" ")[0][:9] for _, label in runs],
        markers=[
            Marker(name=f"{' and '.join(names)} {direction}", x=position)
            for (position, direction), names in changed.items()
        ],
        levels=levels,
    )
    return replace(draw(width=_TREND_WIDTH), narrow=draw())


def _mean_row(comparison: Comparison) -> IntervalRow | None:
    """The pass rates' mean; their difference in the scope of these tasks, else of such tasks."""
    difference = comparison.differences.get("pass^1") or comparison.mean_score
    if difference.first is None or difference.second is None:
        return None
    number = difference.this_suite
    if isinstance(number, Unavailable):
        number = difference.tasks_like_these
    interval = None if isinstance(number, Unavailable) else number.interval
    return IntervalRow(
        name=f"mean of {plural(len(comparison.tasks), 'task')}",
        value=difference.first,
        other=difference.second,
        low=None if interval is None else _within(difference.second + interval.low),
        high=None if interval is None else _within(difference.second + interval.high),
        colour="d",
        note=_signed(difference.first - difference.second, interval),
    )


def _task_row(task: TaskDifference) -> IntervalRow:
    return IntervalRow(
        name=task.name,
        value=task.first[0] / task.first[1],
        other=task.second[0] / task.second[1],
        colour=_COLOURS.get(task.answer, "n"),
        note=_signed(task.rate_difference, None),
    )


def _title(comparison: Comparison) -> str:
    up = sum(task.rate_difference > 0 for task in comparison.tasks)
    down = sum(task.rate_difference < 0 for task in comparison.tasks)
    return (
        f"{comparison.first} passes more often than {comparison.second} on {up} of "
        f"{plural(len(comparison.tasks), 'task')} and less often on {down}"
    )


def _finding(comparison: Comparison) -> str:
    shown = sum(task.answer in _COLOURS for task in comparison.tasks)
    mean = _mean_row(comparison)
    whole = f"; the mean pass rate moves by {mean.note} points" if mean else ""
    real = f"{shown} of these differences are" if shown > 1 else "1 of these differences is"
    return (
        f"{real if shown else 'None of these differences is'} more than noise{whole}. "
        f"Filled: {comparison.first}; hollow: {comparison.second}."
    )


def _rank_title(report: RankReport) -> str:
    """Who is tied and who stands alone; of many groups, how many are tied at the top."""
    tied = [band for band in report.tie_bands if len(band) > 1]
    parts = [f"{', '.join(band[:-1])} and {band[-1]} are tied" for band in tied]
    alone = [system for system in report.systems if system.ranks[0] == system.ranks[1]]
    parts += [f"{system.name} stands alone at rank {system.ranks[0]}" for system in alone]
    whole = "; ".join(parts) if parts else "Every rank is open"
    if len(whole) <= _LONGEST_TITLE:
        return whole
    first = sum(system.ranks[0] == 1 for system in report.systems)
    top = f"{first} agents are tied at the top" if first > 1 else parts[-1]
    return f"{top}; {plural(len(tied), 'tie')} in all"


def _within(share: float) -> float:
    return min(max(share, 0.0), 1.0)


def _signed(difference: float, interval: Interval | None) -> str:
    if interval is None:
        return signed_points(difference)
    value, low, high = map(signed_points, (difference, interval.low, interval.high))
    return f"{value} [{low}, {high}]"


def _trend_words(
    name: str, newest: ChangePoint | None, levels: Sequence[Level], runs: Sequence[tuple[str, str]]
) -> str:
    if newest is None:
        return f"no change of {name} shown over {plural(len(runs), 'run')}"
    moved = "fell" if newest.direction == "down" else "rose"
    before, after = levels[-2].name, levels[-1].name
    return f"{name} {moved} from {before} to {after} on {short_day(runs[newest.position][0])}"


def _levels(changes: Sequence[ChangePoint], values: Sequence[float]) -> list[Level]:
    """The mean of the runs before and after each change, as the sentences have them."""
    if not changes:
        return []
    places = sorted(change.position for change in changes)
    return [
        Level(name=percent(level), y=level, start=start, stop=end - 1)
        for start, end in pairwise([0, *places, len(values)])
        for level in [fsum(values[start:end]) / (end - start)]
    ]


def _series(name: str, estimates: Sequence[Estimate]) -> Series:
    bounds = [e.interval for e in estimates]
    return Series(
        name=name,
        x=list(range(len(estimates))),
        y=[e.value for e in estimates],
        low=[b.low if b else e.value for b, e in zip(bounds, estimates, strict=True)],
        high=[b.high if b else e.value for b, e in zip(bounds, estimates, strict=True)],
        colour="n" if "@" in name else "a",
    )
