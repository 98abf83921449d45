"""Pictures of a report: each states its finding in words as well."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from passhat.analysis.reports import figure_words as words
from passhat.analysis.reports.headline_k import common_k, is_judged
from passhat.analysis.reports.parts import CurvePoint, Leaders, Metric, system_named
from passhat.analysis.reports.task_clusters import cluster_tasks
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
from passhat.messages import plural
from passhat.records.trial import natural_key
from passhat.stats.estimate import Estimate, Interval, Unavailable

if TYPE_CHECKING:
    from passhat.analysis.reports.system_report import SystemReport
    from passhat.analysis.reports.tasks import Label, TaskRow

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

    >>> from passhat import measure, simulate
    >>> figure = measure(simulate(tasks=5, runs=4, seed=1)).plots.decay()
    >>> figure._repr_svg_()[:4]
    '<svg'
    """

    systems: Sequence[SystemReport]

    def decay(self, system: str | None = None) -> Figure | Unavailable:
        """pass@k and pass^k as k grows, with bands, and where a model takes over."""
        decay = system_named(self.systems, system).decay
        measured = [p for p in decay.pass_hat if isinstance(p.estimate, Estimate)]
        if len(measured) < 2:
            return Unavailable("a curve over k needs at least two runs of every task")
        reach = 2 * measured[-1].k  # farther out, the measured part is squeezed
        modelled = [p for p in decay.beyond if p.k <= reach and isinstance(p.estimate, Estimate)]
        last = measured[-1].k if modelled else None
        hat = _series("pass^k", [*measured, *modelled], model_from=last)
        at = replace(_series("pass@k", decay.pass_at), colour="n")
        return line_chart(
            [hat, at],
            title=words.decay_title(measured, decay.pass_at),
            finding=words.decay_finding(measured, decay.pass_at),
            x_label="attempts in a row (k)",
            y_label="chance",
            y_range=(0, 1),
            y_kind="percent",
            markers=[Marker(name="model beyond", x=last)] if last is not None else [],
        )

    def forest(self, system: str | None = None, *, most: int = MOST_ROWS) -> Figure:
        """The pass rate of every task with its interval, the lowest first."""
        tasks = system_named(self.systems, system).tasks
        rows = _lowest(tasks, most)
        return interval_rows(
            [_forest_row(row) for row in rows],
            title=words.labels_title(tasks) + _cut(len(rows), len(tasks)),
            finding=_labels_finding(system_named(self.systems, system)),
            x_label="pass rate, with its interval",
            x_range=(0, 1),
            x_kind="percent",
        )

    def runs(self, system: str | None = None, *, most: int = MOST_ROWS) -> Figure | Unavailable:
        """Which attempts at which task passed, failed or errored; by seed, if seeds are shared."""
        tasks = system_named(self.systems, system).tasks
        if tasks.sequences is None:
            return Unavailable("only counts were read: the order of runs is not known")
        rows = _lowest(tasks, most)
        seeds = system_named(self.systems, system).seeds
        grid = None if isinstance(seeds, Unavailable) else seeds.grid
        cells = {row.name: row.sequence or "" for row in rows} if grid is None else grid.cells
        return cell_grid(
            [CellRow(name=row.name, cells=cells[row.name]) for row in rows],
            title=words.labels_title(tasks) + _cut(len(rows), len(tasks)),
            finding=_labels_finding(system_named(self.systems, system)),
            column_label="run" if grid is None else "seed",
            groups=[] if grid is None else [(at, str(s)) for s, at in grid.columns.items()],
        )

    def variance(self, system: str | None = None) -> Figure | Unavailable:
        """How much of the spread is the tasks', and how much is luck."""
        split = system_named(self.systems, system).variance
        if isinstance(split, Unavailable):
            return split
        luck = split.luck.interval if isinstance(split.luck, Estimate) else None
        parts = [
            NamedShare(name="tasks differ", share=1 - split.luck_share),
            NamedShare(name="luck of the run", share=split.luck_share),
        ]
        return stacked_bar(
            parts,
            title=words.luck_title(split),
            finding=words.luck_finding(split.luck),
            edge=(1 - luck.high, 1 - luck.low) if luck else None,
        )

    def passes(self, system: str | None = None) -> Figure | Unavailable:
        """How many tasks passed none, some and all of their runs."""
        tasks = system_named(self.systems, system).tasks
        runs = set(tasks.runs.tolist())
        if len(tasks) < FEWEST_COUNTED or max(runs) < 2:
            return Unavailable("tasks are counted by their passes from four tasks with two runs on")
        equal = max(runs) if len(runs) == 1 and max(runs) <= MOST_COUNTED else None
        names = words.pass_counts(equal)
        counts = [0] * len(names)
        for passed, of in zip(tasks.passed.tolist(), tasks.runs.tolist(), strict=True):
            counts[passed if equal else _pass_bin(passed, of)] += 1
        last = len(names) - 1
        return column_chart(
            [
                Column(name=name, count=count, colour="b" if i == 0 else "a" if i == last else "e")
                for i, (name, count) in enumerate(zip(names, counts, strict=True))
            ],
            title=words.labels_title(tasks),
            finding=words.passes_finding(equal),
            x_label="runs passed" if equal else "share of runs passed",
        )

    def compared(
        self, leaders: Leaders | Unavailable | None = None, *, k: int | None = None
    ) -> Figure | Unavailable:
        """pass^k of every system with both intervals; a line joins systems that are tied."""
        k = common_k(self.systems) if k is None else k
        rows = [(s, s.pass_hat(k)) for s in self.systems if is_judged(s, k)]
        rows.sort(key=lambda pair: (-(pair[1].value or 0.0), natural_key(pair[0].name)))
        if len(rows) < 2:
            return Unavailable(f"fewer than two systems have a pass^{k}")
        place = {system.name: i for i, (system, _) in enumerate(rows)}
        ties = leaders.ties if isinstance(leaders, Leaders) else ()
        return interval_rows(
            [_system_row(system, metric) for system, metric in rows],
            title=words.compared_title(rows, leaders, k),
            finding=words.compared_finding(
                k, ties=bool(ties), left_out=[s.name for s in self.systems if s.name not in place]
            ),
            x_label=f"pass^{k}",
            x_range=(0, _next_fifth([_upper_end(metric) for _, metric in rows])),
            x_kind="percent",
            ties=[[place[name] for name in group] for group in ties],
        )

    def curves(self, leaders: Leaders | Unavailable | None = None) -> Figure | Unavailable:
        """pass^k of every system as k grows; of many systems the `leaders` alone have a colour."""
        known = [
            (s, [p for p in s.decay.pass_hat if isinstance(p.estimate, Estimate)])
            for s in self.systems
        ]
        series = [_curve(s.name, points) for s, points in known if len(points) > 1]
        if len(series) < 2:
            return Unavailable("curves are compared if two systems have two runs of every task")
        first = leaders.names if isinstance(leaders, Leaders) and len(series) > 5 else ()
        if first:
            series = [replace(one, colour="a", faint=one.name not in first) for one in series]
        return line_chart(
            series,
            title=words.curves_title(series),
            finding=words.curves_finding(series, first, len(known) - len(series)),
            x_label="attempts in a row (k)",
            y_label="pass^k",
            y_range=(0, _next_fifth([value for one in series for value in one.y])),
            y_kind="percent",
        )

    def matrix(self) -> Figure | Unavailable:
        """Which task passes with which system: one cell each, similar tasks side by side."""
        rates = {s.name: _rates(s) for s in self.systems}
        if len(self.systems) < 2 or not any(rates.values()):
            return Unavailable("a matrix takes two systems")
        found = cluster_tasks(rates)
        order = found.tasks
        shares = [[rates[name].get(task) for task in order] for name in found.systems]
        columns = list(zip(*shares, strict=True))
        return matrix(
            found.systems,
            shares,
            title=words.matrix_title(
                found,
                always=sum(all(x == 1 for x in column) for column in columns),
                never=sum(all(x == 0 for x in column) for column in columns),
            ),
            finding=words.matrix_finding(found),
            x_label=f"{plural(len(order), 'task')}, the easiest group first",
            columns_named=order,
            groups=[
                ColumnGroup(name=one.sentence, columns=len(one.tasks)) for one in found.clusters
            ],
            width=2 * WIDTH if len(order) > WIDE_FROM else WIDTH,
        )

    def cost(self, *, feature: str = "cost", k: int | None = None) -> Figure | Unavailable:
        """What a success costs against how reliable it is, one point per system."""
        k = k or common_k(self.systems)
        points = [point for s in self.systems if (point := _cost_point(s, feature, k)) is not None]
        if not points:
            return Unavailable(f"no system has trials that say their {feature}")
        best, unit = front(points), "dollars" if feature == "cost" else feature
        drawn = {point.name for point in points}
        return scatter(
            points,
            title=words.cost_title(best, points, unit),
            finding=words.cost_finding(
                best, unit, k, [s.name for s in self.systems if s.name not in drawn]
            ),
            x_label=f"{unit} per success",
            y_label=f"pass^{k}",
            y_range=(0, _next_fifth([p.y_interval[1] if p.y_interval else p.y for p in points])),
            y_kind="percent",
        )


def _pass_bin(passed: int, runs: int) -> int:
    """0 for none, 3 for all, and one for each half between."""
    if passed in (0, runs):
        return 3 if passed else 0
    return 1 if 2 * passed < runs else 2


def _next_fifth(values: Sequence[float]) -> float:
    """Where an axis that begins at 0 may stop: the next 20 % above all values.

    >>> _next_fifth([0.12, 0.41]), _next_fifth([1.0])
    (0.6, 1.0)
    """
    return min(1.0, max(1, math.ceil(5 * max(values, default=1.0) - 1e-9)) / 5)


def _upper_end(metric: Metric) -> float:
    """The upper end of a metric's intervals, or its value if it has none."""
    both = (metric.this_suite, metric.tasks_like_these)
    ends = [one.interval.high for one in both if isinstance(one, Estimate) and one.interval]
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


def _labels_finding(system: SystemReport) -> str:
    labels = sorted(row.label for row in system.tasks)
    counts = [f"{len(list(same))} {label}" for label, same in groupby(labels)]
    return f"{plural(len(labels), 'task')}: {', '.join(counts)}."


def _system_row(system: SystemReport, metric: Metric) -> IntervalRow:
    inner, outer = metric.this_suite, metric.tasks_like_these
    suite = _ends(inner.interval if isinstance(inner, Estimate) else None)
    low, high = _ends(outer.interval if isinstance(outer, Estimate) else None) or (None, None)
    return IntervalRow(
        name=system.name,
        value=metric.value or 0.0,
        low=low,
        high=high,
        inner=suite,
        note=f"{100 * (metric.value or 0.0):.1f} %",
    )


def _curve(name: str, points: Sequence[CurvePoint]) -> Series:
    values = [(float(p.k), p.estimate.value) for p in points if isinstance(p.estimate, Estimate)]
    return Series(name=name, x=[k for k, _ in values], y=[value for _, value in values])


def _rates(system: SystemReport) -> dict[str, float]:
    return dict(zip(system.tasks.names, system.tasks.rate.tolist(), strict=True))


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
