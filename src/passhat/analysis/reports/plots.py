"""Pictures of a report: each states its finding in words as well."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from passhat.analysis.reports.headline_k import common_k, is_judged
from passhat.analysis.reports.parts import CurvePoint, Leaders, Metric
from passhat.analysis.reports.system_report import SystemReport, system_named
from passhat.analysis.reports.tasks import Label, TaskRow
from passhat.drawing import (
    CellRow,
    Figure,
    IntervalRow,
    Marker,
    NamedShare,
    Point,
    Series,
    cell_grid,
    interval_rows,
    line_chart,
    matrix,
    scatter,
    stacked_bar,
)
from passhat.drawing.figure import WIDTH
from passhat.messages import plural
from passhat.records.task_names import natural_key
from passhat.stats.estimate import Estimate, Number, Unavailable

WIDE_FROM = 30
"""Tasks from which the matrix is drawn twice as wide."""

MOST_ROWS = 60
"""Tasks drawn in one picture; the least reliable ones, where there are more."""

_COLOURS: dict[Label, str] = {"solid": "a", "flaky": "e", "broken": "b", "undecided": "n"}


@dataclass(frozen=True, slots=True)
class Plots:
    """The pictures of a report; `system` may stay out where there is only one.

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
            title="Can it ever, does it always",
            finding=_decay_finding(measured, decay.pass_at),
            x_label="k attempts",
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
            title="Pass rate of each task" + _cut(len(rows), len(tasks)),
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
            title="Every run of each task" + _cut(len(rows), len(tasks)),
            finding=_labels_finding(system_named(self.systems, system)),
            column_label="run" if grid is None else "seed",
            groups=[] if grid is None else [(at, str(s)) for s, at in grid.columns.items()],
        )

    def variance(self, system: str | None = None) -> Figure | Unavailable:
        """How much of the spread is the tasks', and how much is luck."""
        split = system_named(self.systems, system).variance
        if isinstance(split, Unavailable):
            return split
        parts = [
            NamedShare(name="tasks differ", share=1 - split.luck_share),
            NamedShare(name="luck of the run", share=split.luck_share),
        ]
        return stacked_bar(
            parts,
            title="Where the spread comes from",
            finding=f"{_percent(split.luck_share)} of the spread of a single run is luck"
            f"{_between(split.luck)}.",
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
            title=f"{k} in a row (pass^{k}) of each system",
            finding=_compared_finding(rows, leaders, k),
            x_label=f"pass^{k}: thick this suite, thin tasks like these",
            x_range=(0, _next_fifth([_upper_end(metric) for _, metric in rows])),
            x_kind="percent",
            ties=[[place[name] for name in group] for group in ties],
            width=520,
        )

    def curves(self) -> Figure | Unavailable:
        """pass^k of every system as k grows, in one picture."""
        known = [
            (s, [p for p in s.decay.pass_hat if isinstance(p.estimate, Estimate)])
            for s in self.systems
        ]
        series = [_curve(s.name, points) for s, points in known if len(points) > 1]
        if len(series) < 2:
            return Unavailable("curves are compared where two systems have two runs of every task")
        falls = [(one.y[0] - one.y[-1], one.name) for one in series]
        least, most = min(falls), max(falls)
        return line_chart(
            series,
            title="How reliability falls with every further success in a row",
            finding=f"The curves fall by {100 * least[0]:.0f} points ({least[1]}) to "
            f"{100 * most[0]:.0f} points ({most[1]}).",
            x_label="k attempts, all of them successful",
            y_label="pass^k",
            y_range=(0, _next_fifth([value for one in series for value in one.y])),
            y_kind="percent",
        )

    def matrix(self) -> Figure | Unavailable:
        """Which task passes with which system: a cell each, systems and tasks by their means."""
        shared = sorted({name for s in self.systems for name in s.tasks.names}, key=natural_key)
        rates = {
            s.name: dict(zip(s.tasks.names, s.tasks.rate.tolist(), strict=True))
            for s in self.systems
        }
        if len(self.systems) < 2 or not shared:
            return Unavailable("a matrix takes two systems")
        order = sorted(
            shared, key=lambda task: -_mean([r[task] for r in rates.values() if task in r])
        )
        systems = sorted(self.systems, key=lambda s: (-_mean(list(rates[s.name].values())), s.name))
        shares = [[rates[s.name].get(task) for task in order] for s in systems]
        every = sum(all(row[i] == 1 for row in shares) for i in range(len(order)))
        none = sum(all(row[i] == 0 for row in shares) for i in range(len(order)))
        return matrix(
            [s.name for s in systems],
            shares,
            title="Which tasks pass with which system",
            finding=f"Of {plural(len(order), 'task')}, every system passes {every} in every run; "
            f"{none} pass with no system.",
            x_label="tasks, the easiest first",
            columns_named=order,
            width=2 * WIDTH if len(order) > WIDE_FROM else WIDTH,
        )

    def cost(self, *, feature: str = "cost", k: int | None = None) -> Figure | Unavailable:
        """What a success costs against how reliable it is, a point a system."""
        k = k or common_k(self.systems)
        points = [point for s in self.systems if (point := _cost_point(s, feature, k)) is not None]
        if not points:
            return Unavailable(f"no system has trials that say their {feature}")
        return scatter(
            points,
            title="What reliability costs",
            finding=_cost_finding(points, feature, k),
            x_label=f"{feature} per success{' in dollars' if feature == 'cost' else ''}",
            y_label=f"pass^{k}",
            y_range=(0, _next_fifth([p.y_interval[1] if p.y_interval else p.y for p in points])),
            y_kind="percent",
        )


def _next_fifth(values: Sequence[float]) -> float:
    """Where an axis that begins at 0 may stop: the next 20 % above all values.

    >>> _next_fifth([0.12, 0.41]), _next_fifth([1.0])
    (0.6, 1.0)
    """
    return min(1.0, max(1, math.ceil(5 * max(values, default=1.0) - 1e-9)) / 5)


def _upper_end(metric: Metric) -> float:
    """The upper end of a metric's intervals, or its value where it has none."""
    both = (metric.this_suite, metric.tasks_like_these)
    ends = [one.interval.high for one in both if isinstance(one, Estimate) and one.interval]
    return max([*ends, metric.value or 0.0])


def _series(name: str, points: Sequence[CurvePoint], *, model_from: float | None = None) -> Series:
    known = [(p.k, p.estimate) for p in points if isinstance(p.estimate, Estimate)]
    bands = [(e.interval.low, e.interval.high) if e.interval else (e.value,) * 2 for _, e in known]
    return Series(
        name=name,
        x=[k for k, _ in known],
        y=[e.value for _, e in known],
        low=[low for low, _ in bands],
        high=[high for _, high in bands],
        model_from=model_from,
    )


def _decay_finding(hat: Sequence[CurvePoint], at: Sequence[CurvePoint]) -> str:
    ends = []
    for verb, curve in (("pass^k goes", hat), ("pass@k goes", at)):
        known = [(p.k, p.estimate.value) for p in curve if isinstance(p.estimate, Estimate)]
        if known:
            (first_k, first), (last_k, last) = known[0], known[-1]
            start, stop = f"{_percent(first)} at k = {first_k}", f"{_percent(last)} at k = {last_k}"
            ends.append(f"{verb} from {start} to {stop}")
    return "; ".join(ends) + "." if ends else "Nothing is known."


def _lowest(tasks: Sequence[TaskRow], most: int) -> list[TaskRow]:
    return sorted(tasks, key=lambda row: (row.rate.value, natural_key(row.name)))[:most]


def _cut(shown: int, all_of_them: int) -> str:
    return "" if shown == all_of_them else f" (the {shown} lowest of {all_of_them})"


def _forest_row(row: TaskRow) -> IntervalRow:
    interval = row.rate.interval
    return IntervalRow(
        name=row.name,
        value=row.rate.value,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        colour=_COLOURS[row.label],
        note=f"{row.passed}/{row.runs} {row.label if row.label != 'undecided' else '?'}",
    )


def _labels_finding(system: SystemReport) -> str:
    labels = sorted(row.label for row in system.tasks)
    counts = [f"{len(list(same))} {label}" for label, same in groupby(labels)]
    return f"{plural(len(labels), 'task')}: {', '.join(counts)}."


def _system_row(system: SystemReport, metric: Metric) -> IntervalRow:
    inner, outer = metric.this_suite, metric.tasks_like_these
    suite = inner.interval if isinstance(inner, Estimate) else None
    like = outer.interval if isinstance(outer, Estimate) else None
    return IntervalRow(
        name=system.name,
        value=metric.value or 0.0,
        low=like.low if like else None,
        high=like.high if like else None,
        inner=(suite.low, suite.high) if suite else None,
        note=f"{100 * (metric.value or 0.0):.1f} %",
    )


def _compared_finding(
    rows: Sequence[tuple[SystemReport, Metric]], leaders: Leaders | Unavailable | None, k: int
) -> str:
    """Who leads or is tied, where that was tested; otherwise what is drawn."""
    if isinstance(leaders, Leaders) and leaders.k == k:
        *others, last = leaders.names
        if others:
            return f"{', '.join(others)} and {last} cannot be told apart at {k} in a row."
        return f"{last} has the highest pass^{k}, {_percent(leaders.values[0])}."
    low, high = (_percent(metric.value or 0.0) for _, metric in (rows[-1], rows[0]))
    return f"pass^{k} of {len(rows)} systems, from {low} to {high}."


def _curve(name: str, points: Sequence[CurvePoint]) -> Series:
    values = [(float(p.k), p.estimate.value) for p in points if isinstance(p.estimate, Estimate)]
    return Series(name=name, x=[k for k, _ in values], y=[value for _, value in values])


def _rates(system: SystemReport) -> dict[str, float]:
    return dict(zip(system.tasks.names, system.tasks.rate.tolist(), strict=True))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _cost_finding(points: Sequence[Point], feature: str, k: int) -> str:
    """What is drawn: whether any system is ahead was not tested here."""
    spent, rates = [point.x for point in points], [point.y for point in points]
    unit = "$" if feature == "cost" else ""
    low, high = f"{unit}{min(spent):.3g}", f"{unit}{max(spent):.3g}"
    return (
        f"pass^{k} is {_reach(_percent(min(rates)), _percent(max(rates)))}; "
        f"a success takes {_reach(low, high)}{'' if unit else f' {feature}'}."
    )


def _reach(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


def _cost_point(system: SystemReport, feature: str, k: int | None) -> Point | None:
    if feature not in system.features or (k or 1) not in system.ks:
        return None
    spent = system.features[feature].per_success
    rate = system.pass_hat(k or max(system.ks)).this_suite
    if not isinstance(spent, Estimate) or not isinstance(rate, Estimate):
        return None
    return Point(
        name=system.name,
        x=spent.value,
        y=rate.value,
        x_interval=(spent.interval.low, spent.interval.high) if spent.interval else None,
        y_interval=(rate.interval.low, rate.interval.high) if rate.interval else None,
    )


def _between(luck: Number) -> str:
    """How far the share is known."""
    if not isinstance(luck, Estimate) or luck.interval is None:
        return ", but no task varied between its runs, which leaves it open"
    return f" (somewhere from {_percent(luck.interval.low)} to {_percent(luck.interval.high)})"


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"
