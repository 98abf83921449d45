"""A run in progress: what changed in the store since the page last heard, as server-sent events."""

from __future__ import annotations

import json
import re
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import anyio
from starlette.concurrency import run_in_threadpool

from passhat.drawing import Guide, Series, line_chart
from passhat.history import History, Run
from passhat.history.lookups import (
    StoredProgress,
    TaskProgress,
    change_mark,
    outcomes_in_order,
    read_progress,
)
from passhat.journeys.report_cache import ReportCache
from passhat.journeys.stored_runs import gates_of, rate_so_far
from passhat.records import Outcome
from passhat.reporters.numbers import span

POLL_SECONDS = 0.5
# A connection that says nothing for long is closed by whatever stands between.
BEAT_SECONDS = 15.0
MOST_TASKS, MOST_RECENT = 500, 20
RUNNING = "running"

_LETTERS = {str(int(outcome)): outcome.name[0] for outcome in Outcome}


_MOST_POINTS = 60
"""Points of a line: more cannot be told apart on a screen."""

_MOST_SYSTEMS = 3
"""Systems that are drawn; the bands of more would cover one another."""

_ONE_TRY = re.compile(r"(?:pass[@^]1|mean_score)\s*>=?\s*([0-9.]+)\s*(%?)", re.IGNORECASE)


@dataclass(slots=True)
class _Funnel:
    """Runs and passes of each system, from the beginning of the run to now."""

    counts: dict[str, list[tuple[int, int]]] = field(default_factory=dict)

    def replay(self, outcomes: Sequence[tuple[str, int]]) -> None:
        """What happened before anybody looked."""
        so_far: dict[str, tuple[int, int]] = {}
        step = max(1, len(outcomes) // _MOST_POINTS)
        for place, (system, outcome) in enumerate(outcomes, 1):
            runs, passed = so_far.get(system, (0, 0))
            so_far[system] = (runs + 1, passed + (outcome == Outcome.PASSED))
            if place % step == 0 or place == len(outcomes):
                self.add(so_far)

    def add(self, now: Mapping[str, tuple[int, int]]) -> None:
        """The counts at this moment; where there are too many points every other one goes."""
        for system, point in now.items():
            points = self.counts.setdefault(system, [])
            if not points or points[-1] != point:
                points.append(point)
            if len(points) > 2 * _MOST_POINTS:
                del points[1:-1:2]

    def drawn(self, expected: PlannedRun) -> str:
        """The picture as SVG; empty until there is something to draw."""
        shown = [(name, points) for name, points in self.counts.items() if len(points) > 1]
        if not shown:
            return ""
        series = [_series(name, points) for name, points in shown[:_MOST_SYSTEMS]]
        longest = max(points[-1][0] for _, points in shown)
        whole = expected.planned or longest
        figure = line_chart(
            series,
            title="The interval closes in",
            finding=_finding(series[0], expected.gates),
            x_label="runs done",
            y_label="passed",
            y_range=(0, 1),
            y_kind="percent",
            x_range=(0, max(longest, whole // max(1, len(self.counts)))),
            guides=[
                Guide(name=f"gate: {text}", y=level)
                for text in expected.gates
                if (level := _gate_level(text)) is not None
            ],
        )
        return figure.svg()


def _gate_level(gate: str) -> float | None:
    """The level that a gate on single attempts asks for; None for any other gate.

    >>> _gate_level("pass^1 >= 80%"), gate_level("pass^3 >= 0.8")
    (0.8, None)
    """
    match = _ONE_TRY.fullmatch(gate.strip())
    if match is None:
        return None
    level = float(match[1]) / (100 if match[2] else 1)
    return level if 0 <= level <= 1 else None


def _series(name: str, points: Sequence[tuple[int, int]]) -> Series:
    intervals = [rate_so_far(runs, passed) for runs, passed in points]
    return Series(
        name=name,
        x=[runs for runs, _ in points],
        y=[passed / runs for runs, passed in points],
        low=[one.low for one in intervals],
        high=[one.high for one in intervals],
        dots=False,
    )


def _finding(series: Series, gates: Sequence[str]) -> str:
    low, high = (series.low or [0.0])[-1], (series.high or [1.0])[-1]
    said = f"{series.name}: {100 * series.y[-1]:.0f} % so far, from {100 * low:.0f} to "
    said += f"{100 * high:.0f} % at every look."
    levels = [level for gate in gates if (level := _gate_level(gate)) is not None]
    inside = [level for level in levels if low <= level <= high]
    if inside:
        said += f" The gate's line of {100 * inside[0]:.0f} % is still inside."
    elif levels:
        said += f" The gate's line of {100 * levels[0]:.0f} % is outside."
    return said


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    """What is known of a run before it ends: how many trials, its gates, and when it began."""

    planned: int | None = None
    gates: tuple[str, ...] = ()
    started: float | None = None

    @classmethod
    def of(cls, run: Run) -> PlannedRun:
        planned = run.options.get("planned")
        began = datetime.fromisoformat(run.started).timestamp() if run.started else None
        return cls(
            planned=planned if isinstance(planned, int) and planned > 0 else None,
            gates=gates_of(run),
            started=began,
        )


@dataclass(slots=True)
class PageState:
    """What a page already knows of a run: the trials of each task, and how the rates closed in."""

    told: dict[tuple[str, str], str] = field(default_factory=dict)
    begun: bool = False
    expected: PlannedRun = field(default_factory=PlannedRun)
    funnel: _Funnel = field(default_factory=_Funnel)

    def news(self, progress: StoredProgress) -> dict[str, Any]:
        """The state now: all counts, and only the tasks and trials that are new.

        Trials that ended before anybody looked are not news.
        """
        changed = [t for t in progress.tasks if self.told.get((t.system, t.task)) != t.runs]
        fresh = [
            [task.system, task.task, int(trial), _LETTERS[outcome]]
            for task in (changed if self.begun else ())
            for trial, outcome in self._fresh(task)
        ]
        self.begun = True
        self.told |= {(task.system, task.task): task.runs for task in changed}
        systems = _counts(progress)
        done = sum(sum(counts) for counts in systems.values())
        self.funnel.add({name: (sum(counts), counts[0]) for name, counts in systems.items()})
        return {
            "status": progress.status,
            "launched": progress.launched,
            "done": done,
            "planned": self.expected.planned,
            "left": time_left(done, self.expected, now=time.time()),
            "spent": None if progress.cost is None else f"${progress.cost:.2f}",
            "in_all": cost_in_all(progress.cost, done, self.expected),
            "funnel": self.funnel.drawn(self.expected),
            "systems": [[name, *counts] for name, counts in systems.items()],
            "intervals": {name: _interval(*counts) for name, counts in systems.items()},
            "tasks": [[t.system, t.task, _marks(t.runs)] for t in changed[:MOST_TASKS]],
            "recent": fresh[-MOST_RECENT:],
        }

    def _fresh(self, task: TaskProgress) -> Iterator[tuple[str, str]]:
        """Number and outcome of the trials that were not told yet."""
        known = set(self.told.get((task.system, task.task), "").split())
        for run in task.runs.split():
            if run not in known:
                trial, _, outcome = run.partition(":")
                yield trial, outcome


async def follow(reports: ReportCache, run: Run) -> AsyncIterator[str]:
    """Events until the run ends: "news" with what changed, at last "end"."""
    history = await run_in_threadpool(reports.open, moving=True)
    watch, mark, spoke = await run_in_threadpool(watching, history, run), -1, time.monotonic()
    try:
        while True:
            begun = time.monotonic()
            if (now := await run_in_threadpool(change_mark, history)) != mark:
                mark, spoke = now, begun
                news = await run_in_threadpool(_news, watch, history, run)
                yield event("news", news)
                if news["status"] != RUNNING:
                    yield event("end", {"status": news["status"]})
                    return
            elif begun - spoke > BEAT_SECONDS:
                spoke = begun
                yield ": still here\n\n"
            # A large run takes longer to read; then it is read less often.
            await anyio.sleep(max(POLL_SECONDS, 4 * (time.monotonic() - begun)))
    finally:
        history.close()


def watching(history: History, run: Run) -> PageState:
    """A watch that knows how the rates of a run got where they are."""
    watch = PageState(expected=PlannedRun.of(run))
    watch.funnel.replay(outcomes_in_order(history, run))
    return watch


def time_left(done: int, expected: PlannedRun, *, now: float) -> str | None:
    """How long the rest takes at the pace so far; None where that is not known yet.

    >>> time_left(50, PlannedRun(planned=150, started=0.0), now=60.0)
    'about 2 min'
    """
    if not done or expected.planned is None or expected.started is None:
        return None
    seconds = (now - expected.started) / done * max(0, expected.planned - done)
    if seconds < 90:
        return f"about {seconds:.0f} s"
    minutes = seconds / 60
    shown = f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"
    return f"about {shown}"


def cost_in_all(cost: float | None, done: int, expected: PlannedRun) -> str:
    """What all trials come to at the mean price so far.

    >>> cost_in_all(0.5, 50, PlannedRun(planned=100))
    'spent, about $1.00 if all 100 run'
    """
    if cost is None:
        return "spent: no trial has a price"
    if not done or expected.planned is None:
        return "spent"
    whole = cost / done * expected.planned
    return f"spent, about ${whole:.2f} if all {expected.planned:,} run"


def event(name: str, data: Any) -> str:
    r"""One server-sent event; JSON has no line break that could end it early.

    >>> event("news", {"a": "x\n\ny"})
    'event: news\ndata: {"a": "x\\n\\ny"}\n\n'
    """
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"


def _news(watch: PageState, history: History, run: Run) -> dict[str, Any]:
    return watch.news(read_progress(history, run))


def _counts(progress: StoredProgress) -> dict[str, list[int]]:
    """Passed, failed and errored of each system."""
    found: dict[str, list[int]] = {}
    for task in progress.tasks:
        counts = found.setdefault(task.system, [0, 0, 0])
        for i, number in enumerate((task.passed, task.failed, task.errored)):
            counts[i] += number
    return found


def _interval(passed: int, failed: int, errored: int) -> str:
    """The pass rate's interval in percent; it holds at every look at once, for it is watched."""
    return span(rate_so_far(passed + failed + errored, passed), digits=0)


def _marks(runs: str) -> str:
    """The runs of a task by number, as P, F and E."""
    pairs = (run.split(":") for run in runs.split())
    by_number = sorted((int(trial), outcome) for trial, outcome in pairs)
    return "".join(_LETTERS[outcome] for _, outcome in by_number)
