"""Pictures of a report: each states its finding in words as well."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import compress, groupby
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from passhat.analysis.reports.parts import (
    CurvePoint,
    Leaders,
    Metric,
    common_k,
    is_judged,
    system_named,
)
from passhat.dataclass import dataclass
from passhat.drawing import (
    CellRow,
    Column,
    ColumnGroup,
    Figure,
    IntervalRow,
    Marker,
    NamedShare,
    Point,
    Series,
    cell_grid,
    column_chart,
    front,
    interval_rows,
    line_chart,
    matrix,
    scatter,
    stacked_bar,
)
from passhat.drawing.figure import WIDTH
from passhat.messages import few, halves_away, metric_label, percent, plural, points
from passhat.records.trial import natural_key
from passhat.stats.estimate import Estimate, Interval, Unavailable

if TYPE_CHECKING:
    from passhat.analysis.reports.parts import Label, SystemReport, TaskRow, TaskTable


WIDE_FROM = 30
"""Tasks from which the matrix is drawn twice as wide."""

FEWEST_COUNTED, MOST_COUNTED = 4, 8
"""Tasks from which they are counted by passes; runs up to which each count has a column."""

MOST_ROWS = 60
"""Tasks drawn in one picture; the least reliable ones, if there are more."""

_COLOURS: dict[Label, str] = {"solid": "a", "flaky": "e", "broken": "b", "undecided": "n"}


@dataclass(frozen=True, slots=True)
class Plots:
    """The pictures of a report; `system` may stay out if there is only one.

    >>> from passhat import simulate
    >>> from passhat.analysis.reports.measure import measure
    >>> figure = measure(simulate(tasks=5, runs=4, seed=1)).plots.decay()
    >>> figure._repr_svg_()[:4]
    '<svg'
    """

    systems: Sequence[SystemReport]

    def decay(self, system: str | None = None) -> Figure | Unavailable:
        """pass@k and pass^k as k grows, with bands, and where a model takes over."""
        shown = system_named(self.systems, system)
        decay, whose = shown.decay, "By the judge: " if shown.is_corrected else ""
        measured = [p for p in decay.pass_hat if isinstance(p.estimate, Estimate)]
        if len(measured) < 2:
            return Unavailable("a curve over k needs at least two trials of every task")
        modelled = [p for p in decay.beyond if isinstance(p.estimate, Estimate)]
        last = measured[-1].k if modelled else None
        hat = _series("pass^k", [*measured, *modelled], model_from=last)
        at = replace(_series("pass@k", decay.pass_at), colour="n")
        return line_chart(
            [hat, at],
            title=f"{whose}{decay_title(measured, decay.pass_at)}",
            finding=f"{whose}{decay_finding(measured, decay.pass_at)}",
            x_label="attempts in a row (k)",
            y_label="chance",
            y_range=(0, 1),
            y_kind="percent",
            x_kind="doublings",
            markers=[Marker(name="model beyond", x=last)] if last is not None else [],
        )

    def forest(self, system: str | None = None, *, most: int = MOST_ROWS) -> Figure:
        """The pass rate of every task with its interval, the lowest first."""
        tasks = system_named(self.systems, system).tasks
        rows = _lowest(tasks, most)
        return interval_rows(
            [_forest_row(row) for row in rows],
            title=labels_title(tasks) + _cut(len(rows), len(tasks)),
            finding=_labels_finding(tasks),
            x_label="pass rate, with its interval",
            x_range=(0, 1),
            x_kind="percent",
        )

    def runs(self, system: str | None = None, *, most: int = MOST_ROWS) -> Figure | Unavailable:
        """Which attempts at which task passed, failed or errored."""
        tasks = system_named(self.systems, system).tasks
        if tasks.sequences is None:
            return Unavailable("only counts were read: the order of trials is not known")
        rows = _lowest(tasks, most)
        return cell_grid(
            [CellRow(name=row.name, cells=row.sequence or "") for row in rows],
            title=labels_title(tasks) + _cut(len(rows), len(tasks)),
            finding=_labels_finding(tasks),
        )

    def variance(self, system: str | None = None) -> Figure | Unavailable:
        """How much of the spread is the tasks', and how much is luck."""
        split = system_named(self.systems, system).variance
        if isinstance(split, Unavailable):
            return split
        if split.leaves_luck_open:
            return Unavailable("too few tasks or trials to say how much of the spread is luck")
        assert isinstance(split.luck, Estimate), "it is not open"
        luck = split.luck.interval
        assert luck is not None
        low, high = _whole_percent(luck.low), _whole_percent(luck.high)
        parts = [
            NamedShare(name="tasks differ", share=1 - split.luck_share),
            NamedShare(name="luck of the trial", share=split.luck_share),
        ]
        return stacked_bar(
            parts,
            title=f"{_whole_percent(split.luck_share)} of the spread of a single trial is luck",
            finding=f"Somewhere from {low} to {high}. The rest is tasks that differ in difficulty.",
            edge=(1 - luck.high, 1 - luck.low),
        )

    def passes(self, system: str | None = None) -> Figure | Unavailable:
        """How many tasks passed none, some and all of their runs."""
        tasks = system_named(self.systems, system).tasks
        runs = set(tasks.runs.tolist())
        if len(tasks) < FEWEST_COUNTED or max(runs) < 2:
            return Unavailable(
                "tasks are counted by their passes from four tasks with two trials on"
            )
        equal = max(runs) if len(runs) == 1 and max(runs) <= MOST_COUNTED else None
        names, counted = (
            ["none", "under half", "half or more", "all"],
            "the share of their trials that",
        )
        if equal:
            names = [f"{passed} of {equal}" for passed in range(equal + 1)]
            counted = f"how many of {equal} trials"
        counts = [0] * len(names)
        for passed, of in zip(tasks.passed.tolist(), tasks.runs.tolist(), strict=True):
            counts[passed if equal else _pass_bin(passed, of)] += 1
        last = len(names) - 1
        return column_chart(
            [
                Column(name=name, count=count, colour="b" if i == 0 else "a" if i == last else "e")
                for i, (name, count) in enumerate(zip(names, counts, strict=True))
            ],
            title=labels_title(tasks),
            finding=f"Tasks by {counted} passed; reliability is lost in the middle.",
            x_label="trials passed" if equal else "share of trials passed",
        )

    def compared(
        self, leaders: Leaders | Unavailable | None = None, *, k: int | None = None
    ) -> Figure | Unavailable:
        """pass^k of every system with both intervals; a line joins systems that are tied."""
        k = common_k(self.systems) if k is None else k
        rows = [(s, s.pass_hat(k)) for s in self.systems if is_judged(s, k)]
        rows.sort(key=lambda pair: (-(pair[1].value or 0.0), natural_key(pair[0].name)))
        if len(rows) < 2:
            return Unavailable(f"fewer than two agents have a pass^{k}")
        place = {system.name: i for i, (system, _) in enumerate(rows)}
        ties = leaders.ties if isinstance(leaders, Leaders) else ()
        return interval_rows(
            [metric_row(system.name, metric) for system, metric in rows],
            title=compared_title(rows, leaders, k),
            finding=compared_finding(
                k, ties=bool(ties), left_out=[s.name for s in self.systems if s.name not in place]
            ),
            x_label=metric_label(f"pass^{k}"),
            x_range=(0, next_fifth([_upper_end(metric) for _, metric in rows])),
            x_kind="percent",
            ties=[[place[name] for name in group] for group in ties],
        )

    def curves(self, leaders: Leaders | Unavailable | None = None) -> Figure | Unavailable:
        """pass^k of every system as k grows; of many systems the `leaders` alone have a colour."""
        known = {s.name: _known(s.decay.pass_hat) for s in self.systems}
        series = [
            Series(name=name, x=[float(k) for k, _ in points], y=[value for _, value in points])
            for name, points in known.items()
            if len(points) > 1
        ]
        if len(series) < 2:
            return Unavailable("curves are compared if two agents have two trials of every task")
        whose = "By the judge: " if any(system.is_corrected for system in self.systems) else ""
        first = leaders.names if isinstance(leaders, Leaders) and len(series) > 5 else ()
        if first:
            series = [replace(line, colour="a", faint=line.name not in first) for line in series]
        return line_chart(
            series,
            title=f"{whose}{curves_title(series)}",
            finding=f"{whose}{curves_finding(series, first, len(known) - len(series))}",
            x_label="attempts in a row (k)",
            y_label="pass^k",
            y_range=(0, next_fifth([value for line in series for value in line.y])),
            y_kind="percent",
        )

    def matrix(self) -> Figure | Unavailable:
        """Which task passes with which system: one cell each, similar tasks side by side."""
        rates = {
            system.name: dict(zip(system.tasks.names, system.tasks.rate.tolist(), strict=True))
            for system in self.systems
        }
        if len(self.systems) < 2 or not any(rates.values()):
            return Unavailable("a matrix takes two agents")
        clusters = cluster_tasks(rates)
        order = clusters.tasks
        shares = [[rates[name].get(task) for task in order] for name in clusters.systems]
        columns = list(zip(*shares, strict=True))
        errored = {
            (system.name, task)
            for system in self.systems
            for task in compress(system.tasks.names, system.tasks.errored == system.tasks.runs)
        }
        return matrix(
            clusters.systems,
            shares,
            errored=[[(name, task) in errored for task in order] for name in clusters.systems]
            if errored
            else (),
            title=matrix_title(
                clusters,
                always=sum(all(x == 1 for x in column) for column in columns),
                never=sum(all(x == 0 for x in column) for column in columns),
            ),
            finding=matrix_finding(clusters),
            x_label=f"{plural(len(order), 'task')}, the easiest group first",
            columns_named=order,
            groups=[ColumnGroup(name=c.sentence, columns=len(c.tasks)) for c in clusters.clusters],
            width=2 * WIDTH if len(order) > WIDE_FROM else WIDTH,
        )

    def cost(self, *, feature: str = "cost", k: int | None = None) -> Figure | Unavailable:
        """What a success costs against how reliable it is, one point per system."""
        k = k or common_k(self.systems)
        points = [point for s in self.systems if (point := _cost_point(s, feature, k)) is not None]
        if not points:
            return Unavailable(f"no agent has trials that say their {feature}")
        best, unit = front(points), "dollars" if feature == "cost" else feature
        drawn = {point.name for point in points}
        return scatter(
            points,
            title=cost_title(best, points, unit),
            finding=cost_finding(
                best, unit, k, [s.name for s in self.systems if s.name not in drawn]
            ),
            x_label=f"{unit} per success",
            y_label=metric_label(f"pass^{k}"),
            y_range=(0, next_fifth([p.y_interval[1] if p.y_interval else p.y for p in points])),
            y_kind="percent",
        )


def _pass_bin(passed: int, runs: int) -> int:
    """0 for none, 3 for all, and one for each half between."""
    if passed in (0, runs):
        return 3 if passed else 0
    return 1 if 2 * passed < runs else 2


def next_fifth(values: Sequence[float]) -> float:
    """Where an axis that begins at 0 may stop: the next 20% above all values.

    >>> next_fifth([0.12, 0.41]), next_fifth([1.0])
    (0.6, 1.0)
    """
    return min(1.0, max(1, math.ceil(5 * max(values, default=1.0) - 1e-9)) / 5)


def _upper_end(metric: Metric) -> float:
    """The upper end of a metric's intervals, or its value if it has none."""
    both = (metric.this_suite, metric.tasks_like_these)
    ends = [n.interval.high for n in both if isinstance(n, Estimate) and n.interval]
    return max([*ends, metric.value or 0.0])


def _series(name: str, points: Sequence[CurvePoint], *, model_from: float | None = None) -> Series:
    known = [(p.k, p.estimate) for p in points if isinstance(p.estimate, Estimate)]
    bands = [_ends(e.interval) or (e.value, e.value) for _, e in known]
    return Series(
        name=name,
        x=[k for k, _ in known],
        y=[e.value for _, e in known],
        low=[low for low, _ in bands],
        high=[high for _, high in bands],
        model_from=model_from,
    )


def _ends(interval: Interval | None) -> tuple[float, float] | None:
    return None if interval is None else (interval.low, interval.high)


def _lowest(tasks: Sequence[TaskRow], most: int) -> list[TaskRow]:
    return sorted(tasks, key=lambda row: (row.rate.value, natural_key(row.name)))[:most]


def _cut(shown: int, all_of_them: int) -> str:
    return "" if shown == all_of_them else f" (the {shown} lowest of {all_of_them})"


def _forest_row(row: TaskRow) -> IntervalRow:
    low, high = _ends(row.rate.interval) or (None, None)
    return IntervalRow(
        name=row.name,
        value=row.rate.value,
        low=low,
        high=high,
        colour=_COLOURS[row.label],
        note=f"{row.passed}/{row.runs} {row.label if row.label != 'undecided' else '?'}",
    )


def _labels_finding(tasks: Sequence[TaskRow]) -> str:
    labels = sorted(row.label for row in tasks)
    counts = [f"{len(list(same))} {label}" for label, same in groupby(labels)]
    return f"{plural(len(labels), 'task')}: {', '.join(counts)}."


def metric_row(name: str, metric: Metric) -> IntervalRow:
    """A number with both of its intervals, as a row of a picture."""
    inner, outer = metric.this_suite, metric.tasks_like_these
    suite = _ends(inner.interval if isinstance(inner, Estimate) else None)
    low, high = _ends(outer.interval if isinstance(outer, Estimate) else None) or (None, None)
    return IntervalRow(
        name=name,
        value=metric.value or 0.0,
        low=low,
        high=high,
        inner=suite,
        note=percent(metric.value or 0.0, digits=1),
    )


def _cost_point(system: SystemReport, feature: str, k: int) -> Point | None:
    if feature not in system.features or k not in system.ks:
        return None
    spent = system.features[feature].per_success
    rate = system.pass_hat(k).this_suite
    if not isinstance(spent, Estimate) or not isinstance(rate, Estimate):
        return None
    return Point(
        name=system.name,
        x=spent.value,
        y=rate.value,
        x_interval=_ends(spent.interval),
        y_interval=_ends(rate.interval),
    )


# Titles and findings.

CLOSE = 0.05
"""How far apart pass@k and pass^k may be for an agent to count as doing what it can."""


def decay_title(hat: Sequence[CurvePoint], at: Sequence[CurvePoint]) -> str:
    """How far apart "it can" and "it always does" are at the largest k that was measured."""
    always, can = dict(_known(hat)), dict(_known(at))
    k = max(always.keys() & can.keys(), default=None)
    if k is None:
        return "How the chance falls with every further success in a row"
    gap = can[k] - always[k]
    if gap <= CLOSE:
        return f"What it can do, it does: pass@{k} and pass^{k} are {_points(gap)} apart"
    return f'Able is not dependable: {_points(gap)} lie between "can" and "always"'


def decay_finding(hat: Sequence[CurvePoint], at: Sequence[CurvePoint]) -> str:
    """Where both curves begin and end."""
    ends = []
    for words, curve in (
        ("All k attempts succeed (pass^k)", hat),
        ("at least one does (pass@k)", at),
    ):
        if known := _known(curve):
            (first_k, first), (last_k, last) = known[0], known[-1]
            start, stop = (
                f"{_whole_percent(first)} at k = {first_k}",
                f"{_whole_percent(last)} at k = {last_k}",
            )
            ends.append(f"{words}: from {start} to {stop}")
    return "; ".join(ends) + "." if ends else "Nothing is known."


def labels_title(tasks: TaskTable) -> str:
    """How many tasks pass only sometimes: there reliability is lost."""
    mixed = int(np.count_nonzero((tasks.passed > 0) & (tasks.passed < tasks.runs)))
    if not mixed:
        where = "the one task" if len(tasks) == 1 else f"all {plural(len(tasks), 'task')}"
        return f"Every trial of a task ended alike, in {where}"
    passes = "passes" if mixed == 1 else "pass"
    return f"{mixed:,} of {plural(len(tasks), 'task')} {passes} only sometimes"


def compared_title(
    rows: Sequence[tuple[SystemReport, Metric]], leaders: Leaders | Unavailable | None, k: int
) -> str:
    """Who leads or is tied, if that was tested; otherwise what is drawn."""
    if isinstance(leaders, Leaders) and leaders.k == k:
        *others, last = leaders.names
        if len(others) > 3:
            tied = plural(len(leaders.names), "agent")
            return f"{tied} are tied at the top, {_in_a_row(k)}"
        if others:
            return f"{', '.join(others)} and {last} are tied, {_in_a_row(k)}"
        name = metric_label(f"pass^{k}")
        return f"{last} has the highest {name}, {_whole_percent(leaders.values[0])}"
    low, high = (_whole_percent(metric.value or 0.0) for _, metric in (rows[-1], rows[0]))
    return f"{metric_label(f'pass^{k}')} of {len(rows)} agents, from {low} to {high}"


def compared_finding(k: int, *, ties: bool, left_out: Sequence[str]) -> str:
    """How the picture is read, and which systems it leaves out."""
    parts = ["Thick: these tasks; thin: similar tasks."]
    if ties:
        parts.append("Agents on one vertical line are tied.")
    if left_out:
        parts.append(f"Left out, as they have no {metric_label(f'pass^{k}')}: {few(left_out, 3)}.")
    return " ".join(parts)


def curves_title(series: Sequence[Series]) -> str:
    """How many points the systems lose between the ends of their curves."""
    falls = [line.y[0] - line.y[-1] for line in series]
    least, most = points(min(falls)), points(max(falls))
    last = f"{max(line.x[-1] for line in series):.0f}"
    lost = most if least == most else f"{least} to {most}"
    return f"From one trial to {last} in a row, agents lose {lost} points"


def curves_finding(series: Sequence[Series], coloured: Sequence[str], left_out: int) -> str:
    """Whose curves fall least and most, and what the colours mean."""
    falls = sorted((line.y[0] - line.y[-1], line.name) for line in series)
    ends = [f"{name} {points(fall)}" for fall, name in (falls[0], falls[-1])]
    parts = [f"The smallest and the largest fall, in points: {', '.join(dict.fromkeys(ends))}."]
    if coloured:
        parts.append("Blue: tied with the first.")
    if left_out:
        parts.append(f"{plural(left_out, 'agent')} without a curve left out.")
    return " ".join(parts)


def matrix_title(clusters: TaskClusters, *, always: int, never: int) -> str:
    """On how many tasks systems or runs differ at all."""
    tasks = len(clusters.tasks)
    apart = tasks - always - never
    parts = [f"Results differ on {apart:,} of {plural(tasks, 'task')}"]
    if never:
        parts.append(f"{plural(never, 'defeats', 'defeat')} every agent")
    if always:
        parts.append(f"{plural(always, 'passes', 'pass')} always")
    return "; ".join(parts)


def matrix_finding(clusters: TaskClusters) -> str:
    """How the picture is read, and by which method its rows and columns were ordered."""
    groups = plural(len(clusters.clusters), "group")
    return (
        "Every task is a column, every agent a row; the stronger the colour, the more trials "
        f"passed. Tasks and agents with similar results are side by side, tasks in {groups} "
        f"({METHOD})."
    )


def cost_title(best: Sequence[Point], points: Sequence[Point], unit: str) -> str:
    """Which systems no other beats on both axes."""
    if len(points) == 1:
        return f"A success takes {amount(points[0].x, unit)}"
    if len(best) == 1:
        less = "less money" if unit == "dollars" else f"fewer {unit}"
        return f"No agent is as reliable as {best[0].name} for {less}"
    if len(best) == len(points):
        more = "more it costs" if unit == "dollars" else f"more {unit} it takes"
        return f"The more reliable an agent is here, the {more}"
    less = "costs no more" if unit == "dollars" else f"takes no more {unit}"
    beaten = f"{len(points) - len(best)} of {len(points)} agents"
    return f"For {beaten}, another is as reliable and {less}"


def cost_finding(best: Sequence[Point], unit: str, k: int, left_out: Sequence[str]) -> str:
    """What the line joins, by the estimates: whether one is truly ahead was not tested here."""
    front = ", ".join(f"{p.name} ({_whole_percent(p.y)}, {amount(p.x, unit)})" for p in best[:6])
    parts = [
        f"{metric_label(f'pass^{k}')} against {unit} for each success; thin lines: these tasks."
    ]
    if len(best) > 1:
        parts.append(f"By these estimates none is as reliable for less than {front}.")
    if left_out:
        parts.append(f"Left out: {few(left_out, 3)}.")
    return " ".join(parts)


def amount(value: float, unit: str) -> str:
    """A price with its unit, in as many digits as anybody reads.

    >>> amount(1_240_000, "tokens"), amount(0.00954, "dollars"), amount(930, "tokens")
    ('1.24 M tokens', '$0.00954', '930 tokens')
    """
    if unit == "dollars":
        return f"${value:.3g}"
    shown = f"{value / 1e6:.3g} M" if value >= 1e6 else f"{float(f'{value:.3g}'):,.0f}"
    return f"{shown} {unit}"


def _known(curve: Sequence[CurvePoint]) -> list[tuple[int, float]]:
    return [(p.k, p.estimate.value) for p in curve if isinstance(p.estimate, Estimate)]


def _in_a_row(k: int) -> str:
    return "in one trial" if k == 1 else f"{k} in a row"


def _points(share: float) -> str:
    return plural(round(halves_away(100 * share)), "point")


def _whole_percent(share: float) -> str:
    return percent(share)


# Groups of tasks that pass with the same systems, and a sentence for each group.

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

    >>> clustering = cluster_tasks({"a": {"x": 1.0, "y": 0.0}, "b": {"x": 1.0, "y": 1.0}})
    >>> [cluster.sentence for cluster in clustering.clusters]
    ['1 task that every agent passes in every trial', '1 task that only b passes, in every trial']
    """
    tasks = sorted({task for of_system in rates.values() for task in of_system}, key=natural_key)
    means = {name: sum(own.values()) / max(len(own), 1) for name, own in rates.items()}
    systems = tuple(sorted(rates, key=lambda name: (-means[name], name)))
    table = np.array([[rates[s].get(task, np.nan) for s in systems] for task in tasks], float)
    filled = _filled(table)
    groups = [group for group in _groups(filled) if len(group)]
    groups.sort(key=lambda group: (-float(filled[group].mean()), group[0]))
    clusters = [
        TaskCluster(
            sentence=_sentence(len(same), systems, table[same]), tasks=tuple(tasks[i] for i in same)
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
    cut = _cut_tree(patterns)
    return [list(same) for _, same in groupby(rows, key=lambda i: cut[int(member[i])])]


def _cut_tree(patterns: NDArray[np.float64]) -> list[int]:
    """The cluster of each pattern."""
    if len(patterns) < 2:
        return [0] * len(patterns)
    from scipy.cluster.hierarchy import fcluster

    numbers = fcluster(_linkage(patterns), MOST_CLUSTERS, criterion="maxclust")
    return [int(number) for number in numbers]


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

    def kind(group: Sequence[int]) -> tuple[str, bytes]:
        rows = table[list(group)]
        exact = "always" if (rows == 1).all() else "never" if (rows == 0).all() else ""
        return exact, (rows.mean(axis=0) >= MOSTLY).tobytes()

    return [[int(i) for group in same for i in group] for _, same in groupby(groups, key=kind)]


def _sentence(count: int, systems: Sequence[str], rows: NDArray[np.float64]) -> str:
    """What the tasks of a group have in common, in counts that anybody can check."""
    means = _filled(rows).mean(axis=0)
    mostly = [name for name, mean in zip(systems, means, strict=True) if mean >= MOSTLY]
    tasks = f"{plural(count, 'task')} that"
    if (means == 1).all():
        return f"{tasks} every agent passes in every trial"
    if (means == 0).all():
        return f"{tasks} no agent passes even once"
    if not mostly:
        best = int(means.argmax())
        reached = _whole_percent(means[best])
        return f"{tasks} no agent mostly passes: {systems[best]} comes to {reached}"
    if len(mostly) == len(systems):
        reached = _whole_percent(float(means.mean()))
        return f"{tasks} every agent mostly passes, in {reached} of trials"
    inside = means[[name in mostly for name in systems]]
    outside = means[[name not in mostly for name in systems]]
    return f"{tasks} {_who(mostly, systems, float(inside.mean()), float(outside.mean()))}"


def _who(mostly: Sequence[str], systems: Sequence[str], inside: float, outside: float) -> str:
    others = [name for name in systems if name not in mostly]
    rest = "" if outside == 0 else f"; the others in {_whole_percent(outside)}"
    runs = "in every trial" if inside == 1 else f"in {_whole_percent(inside)} of trials"
    if len(mostly) == 1:
        passes = "passes" if outside == 0 else "mostly passes"
        return f"only {mostly[0]} {passes}, {runs}{rest}"
    if len(others) <= 2 < len(mostly):
        behind = " and ".join(others)
        return f"all but {behind} mostly pass, {runs}; {behind} in {_whole_percent(outside)}"
    if len(mostly) <= _MOST_NAMES:
        names = f"{', '.join(mostly[:-1])} and {mostly[-1]}"
        return f"only {names} mostly pass, {runs}{rest}"
    names = few(mostly, 3)
    return f"{len(mostly)} of {len(systems)} agents mostly pass ({names}), {runs}{rest}"
