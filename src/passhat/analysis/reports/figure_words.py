"""What the pictures of a report show in words: a heading with the finding, and a caption."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from passhat.analysis.reports.parts import CurvePoint, Leaders, Metric, VarianceSplit
from passhat.analysis.reports.task_clusters import METHOD, TaskClusters
from passhat.drawing import Point, Series
from passhat.messages import few, plural
from passhat.stats.estimate import Estimate, Number, Unavailable

if TYPE_CHECKING:
    from passhat.analysis.reports.system_report import SystemReport
    from passhat.analysis.reports.tasks import TaskRow

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
            start, stop = f"{_percent(first)} at k = {first_k}", f"{_percent(last)} at k = {last_k}"
            ends.append(f"{words}: from {start} to {stop}")
    return "; ".join(ends) + "." if ends else "Nothing is known."


def labels_title(tasks: Sequence[TaskRow]) -> str:
    """How many tasks pass only sometimes: there reliability is lost."""
    mixed = sum(0 < row.passed < row.runs for row in tasks)
    if not mixed:
        return f"Every run of a task ended alike, in {_all(len(tasks))}"
    passes = "passes" if mixed == 1 else "pass"
    return f"{mixed:,} of {plural(len(tasks), 'task')} {passes} only sometimes"


def pass_counts(runs: int | None) -> list[str]:
    """The names of the columns that tasks are counted in; without one number of runs, by halves."""
    if runs is None:
        return ["none", "under half", "half or more", "all"]
    return [f"{passed} of {runs}" for passed in range(runs + 1)]


def passes_finding(runs: int | None) -> str:
    """What is counted."""
    what = f"how many of {runs} runs passed" if runs else "the share of their runs that passed"
    return f"Tasks by {what}; reliability is lost in the middle."


def luck_title(split: VarianceSplit) -> str:
    """How much of the spread running again would redraw, if that is known."""
    if split.leaves_luck_open:
        return "Too few tasks or runs to say how much of the spread is luck"
    return f"{_percent(split.luck_share)} of the spread of a single run is luck"


def luck_finding(luck: Number) -> str:
    """How far the share is known, and what the rest is."""
    rest = "The rest is tasks that differ in difficulty."
    if not isinstance(luck, Estimate) or luck.interval is None:
        return f"No task varied between its runs, which leaves the share open. {rest}"
    low, high = _percent(luck.interval.low), _percent(luck.interval.high)
    return f"Somewhere from {low} to {high}. {rest}"


def compared_title(
    rows: Sequence[tuple[SystemReport, Metric]], leaders: Leaders | Unavailable | None, k: int
) -> str:
    """Who leads or is tied, if that was tested; otherwise what is drawn."""
    if isinstance(leaders, Leaders) and leaders.k == k:
        *others, last = leaders.names
        if len(others) > 3:
            tied = plural(len(leaders.names), "system")
            return f"{tied} cannot be told apart at the top, {_in_a_row(k)}"
        if others:
            return f"{', '.join(others)} and {last} cannot be told apart, {_in_a_row(k)}"
        return f"{last} has the highest pass^{k}, {_percent(leaders.values[0])}"
    low, high = (_percent(metric.value or 0.0) for _, metric in (rows[-1], rows[0]))
    return f"pass^{k} of {len(rows)} systems, from {low} to {high}"


def compared_finding(k: int, *, ties: bool, left_out: Sequence[str]) -> str:
    """How the picture is read, and which systems it leaves out."""
    parts = ["Thick: this suite; thin: tasks like these."]
    if ties:
        parts.append("Systems on one vertical line cannot be told apart.")
    if left_out:
        parts.append(f"Left out, as they have no pass^{k}: {few(left_out, 3)}.")
    return " ".join(parts)


def curves_title(series: Sequence[Series]) -> str:
    """How many points the systems lose between the ends of their curves."""
    falls = [one.y[0] - one.y[-1] for one in series]
    least, most = 100 * min(falls), 100 * max(falls)
    last = f"{max(one.x[-1] for one in series):.0f}"
    lost = f"{most:.0f}" if round(least) == round(most) else f"{least:.0f} to {most:.0f}"
    return f"From one try to {last} in a row, systems lose {lost} points"


def curves_finding(series: Sequence[Series], coloured: Sequence[str], left_out: int) -> str:
    """Whose curves fall least and most, and what the colours mean."""
    falls = sorted((one.y[0] - one.y[-1], one.name) for one in series)
    ends = [f"{name} {100 * fall:.0f}" for fall, name in (falls[0], falls[-1])]
    parts = [f"The smallest and the largest fall, in points: {', '.join(dict.fromkeys(ends))}."]
    if coloured:
        parts.append("Blue: not told apart from the first.")
    if left_out:
        parts.append(f"{plural(left_out, 'system')} without a curve left out.")
    return " ".join(parts)


def matrix_title(found: TaskClusters, *, always: int, never: int) -> str:
    """On how many tasks systems or runs differ at all."""
    tasks = len(found.tasks)
    apart = tasks - always - never
    parts = [f"Results differ on {apart:,} of {plural(tasks, 'task')}"]
    if never:
        parts.append(f"{plural(never, 'defeats', 'defeat')} every system")
    if always:
        parts.append(f"{plural(always, 'passes', 'pass')} always")
    return "; ".join(parts)


def matrix_finding(found: TaskClusters) -> str:
    """How the picture is read, and by which method its rows and columns were ordered."""
    groups = plural(len(found.clusters), "group")
    return (
        "Every task is a column, every system a row; the stronger the colour, the more runs passed."
        f" Tasks and systems with similar results are side by side, tasks in {groups} ({METHOD})."
    )


def cost_title(best: Sequence[Point], points: Sequence[Point], unit: str) -> str:
    """Which systems no other beats on both axes."""
    if len(points) == 1:
        return f"A success takes {amount(points[0].x, unit)}"
    if len(best) == 1:
        less = "less money" if unit == "dollars" else f"fewer {unit}"
        return f"No system is as reliable as {best[0].name} for {less}"
    if len(best) == len(points):
        more = "more it costs" if unit == "dollars" else f"more {unit} it takes"
        return f"The more reliable a system is here, the {more}"
    less = "costs no more" if unit == "dollars" else f"takes no more {unit}"
    beaten = f"{len(points) - len(best)} of {len(points)} systems"
    return f"For {beaten}, another is as reliable and {less}"


def cost_finding(best: Sequence[Point], unit: str, k: int, left_out: Sequence[str]) -> str:
    """What the line joins, by the estimates: whether one is truly ahead was not tested here."""
    front = ", ".join(f"{p.name} ({_percent(p.y)}, {amount(p.x, unit)})" for p in best[:6])
    parts = [f"pass^{k} against {unit} for each success; thin lines: this suite."]
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
    return "in one try" if k == 1 else f"{k} in a row"


def _all(tasks: int) -> str:
    return "the one task" if tasks == 1 else f"all {tasks:,} tasks"


def _points(share: float) -> str:
    return plural(round(100 * share), "point")


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"
