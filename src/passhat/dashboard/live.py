"""A run in progress: what changed in the store since the page last heard, as server-sent events."""

from __future__ import annotations

import json
import re
import time
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, Literal

import anyio
import numpy as np
from starlette.concurrency import run_in_threadpool

from passhat.analysis.gates.gate import (
    NoWorseRequirement,
    Requirement,
    ThresholdRequirement,
    parse_gate,
)
from passhat.dashboard.responses import render
from passhat.dataclass import dataclass
from passhat.drawing import Figure, Guide, Series, line_chart
from passhat.drawing.figure import escape
from passhat.errors import PasshatError
from passhat.history import History, Run
from passhat.history.queries import (
    EndedTrial,
    StoredProgress,
    TaskProgress,
    change_mark,
    ended_trials,
    has_partial_scores,
    outcomes_over_time,
    read_progress,
    tags_of_tasks,
)
from passhat.history.runs import named_baseline
from passhat.journeys.overview import ReportCache
from passhat.journeys.stored_runs import StoredGate, rate_so_far, stored_gates
from passhat.messages import capitalised, metric_label
from passhat.records import Outcome
from passhat.reporters import headline
from passhat.reporters.answer import WORD_TONES, StatusLabel
from passhat.reporters.answers.report import ReportAnswer
from passhat.reporters.formatting import percent, points, span

POLL_SECONDS = 0.5
# Proxies close a connection that sends nothing for long.
BEAT_SECONDS = 15.0
MOST_TASKS, MOST_RECENT, MOST_FAILING = 500, 20, 5
MOST_MARKS_LINKED = 1_000
"""Marks that lead to their trials: a link weighs as much as a hundred marks, and the page of a task
has all of its trials."""
RUNNING = "running"

_ENOUGH = 5
"""Trials that must end while the page is open before their pace is taken for the run's."""

_UNITS = (("s", 1, 90), ("min", 60, 5_400), ("h", 3_600, 0))
"""Units of time, in seconds, and up to how many seconds each is used."""

_LETTERS = {str(int(outcome)): outcome.name[0] for outcome in Outcome}
_NOT_PASSED = re.compile(rf"(\d+):([{int(Outcome.FAILED)}{int(Outcome.ERRORED)}])")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    """What is known of a run before it ends: how many trials, its gates, and when it began.

    A run that ends when its gates are settled has no `planned` trials, but `at_most` so many.
    """

    planned: int | None = None
    at_most: int | None = None
    gates: tuple[StoredGate, ...] = ()
    started: float | None = None

    @classmethod
    def of(cls, run: Run) -> PlannedRun:
        planned, at_most = (_count(run.options.get(name)) for name in ("planned", "at_most"))
        began = datetime.fromisoformat(run.started).timestamp() if run.started else None
        return cls(
            planned=planned,
            at_most=at_most,
            gates=stored_gates(run),
            started=began,
        )


@dataclass(slots=True)
class PageState:
    """What a page already knows of a run: the trials of each task, and how the rates closed in."""

    sent: dict[tuple[str, str], str] = field(default_factory=dict)
    begun: bool = False
    replayed: int = 0
    expected: PlannedRun = field(default_factory=PlannedRun)
    funnels: list[Funnel] = field(default_factory=list)
    tags: dict[str, frozenset[str]] = field(default_factory=dict)
    baselines: Mapping[str, float] = field(default_factory=dict)
    first_look: tuple[float, int] | None = None
    failing: list[list[Any]] = field(default_factory=list)

    def news(self, progress: StoredProgress) -> dict[str, Any]:
        """The state now: all counts, and only the tasks and trials that are new.

        Trials that ended before the page was opened are not news.
        """
        changed = [t for t in progress.tasks if self.sent.get((t.system, t.task)) != t.runs]
        fresh = [
            [task.system, task.task, int(trial), _LETTERS[outcome]]
            for task in (changed if self.begun else ())
            for trial, outcome in self._fresh(task)
        ]
        systems = _counts(progress)
        finished = {name: sum(counts) for name, counts in systems.items()}
        done = sum(finished.values())
        new = self.begun or done != self.replayed  # else `watching` has seen all of them
        grouped = [funnel for funnel in self.funnels if not funnel.counts_suffice]
        ended = [t for task in changed for t in self._ended(task)] if new and grouped else []
        for funnel in self.funnels:
            if funnel.counts_suffice:
                funnel.add_counts(systems)
            else:
                funnel.replay(ended)
        self.begun = True
        self.sent |= {(task.system, task.task): task.runs for task in changed}
        fewest, most = self._trials_expected(finished)
        return {
            "status": progress.status,
            "launched": progress.launched,
            "done": done,
            "planned": most,
            "total": trials_in_all(fewest, most),
            "left": time_left(done, fewest, most, pace=self._pace(done, time.time())),
            "spent": None if progress.cost is None else f"${progress.cost:.2f}",
            "in_all": cost_in_all(progress.cost, done, fewest, most),
            "gates": [self._gate_text(gate, progress, done) for gate in self.expected.gates],
            "funnel": self._pictures(len(systems), most, ended=progress.status != RUNNING),
            "systems": [[name, *counts] for name, counts in systems.items()],
            "rates": {name: points(_rate(*counts), digits=1) for name, counts in systems.items()},
            "intervals": {name: _interval(*counts) for name, counts in systems.items()},
            "tasks": list(_task_rows(changed)),
            "recent": fresh[-MOST_RECENT:],
            "failing": self._failing(progress, fresh) if progress.status == RUNNING else [],
            "so_far": so_far(systems.values()),
        }

    def _failing(self, progress: StoredProgress, fresh: Sequence[list[Any]]) -> list[list[Any]]:
        """The newest trials that did not pass; of those before the page was opened, the last."""
        if self.failing:
            self.failing += [row for row in fresh if row[3] != "P"]
        else:
            self.failing = [
                [task.system, task.task, int(trial), _LETTERS[outcome]]
                for task in progress.tasks
                if task.failed or task.errored
                for trial, outcome in _NOT_PASSED.findall(task.runs)
            ]
            self.failing.sort(key=itemgetter(2))
        del self.failing[:-MOST_FAILING]
        return self.failing[::-1]

    def _gate_text(self, gate: StoredGate, progress: StoredProgress, done: int) -> str:
        """What is known of a gate while the run lasts: no verdict, but where it is heading."""
        drawn = {asked for funnel in self.funnels for asked, _ in funnel.number.gates}
        if gate.require in drawn:
            return "gate: drawn below, judged when the run has ended"
        demand = demand_of(gate)
        if (
            isinstance(demand, ThresholdRequirement)
            and demand.target.name.startswith("cost.")
            and progress.cost
        ):
            return f"gate: ${progress.cost / done:.4g} a trial on average so far, judged at the end"
        if isinstance(demand, NoWorseRequirement) and demand.baseline in self.baselines:
            return (
                f"gate: {demand.baseline} passed {percent(self.baselines[demand.baseline])} of its "
                "trials; compared when the run has ended"
            )
        return "gate: cannot be watched, judged when the run has ended"

    def _fresh(self, task: TaskProgress) -> Iterator[tuple[str, str]]:
        """Number and outcome of the trials that the page does not have yet."""
        known = set(self.sent.get((task.system, task.task), "").split())
        for run in task.runs.split():
            if run not in known:
                trial, _, outcome = run.partition(":")
                yield trial, outcome

    def _ended(self, task: TaskProgress) -> Iterator[EndedTrial]:
        for trial, outcome in self._fresh(task):
            yield EndedTrial(
                system=task.system, task=task.task, trial=int(trial), outcome=int(outcome)
            )

    def _trials_expected(self, done: Mapping[str, int]) -> tuple[int | None, int | None]:
        """How many trials the run takes, from and to; None if nothing is known."""
        expected = self.expected
        if expected.planned is not None or expected.at_most is None:
            return expected.planned, expected.planned
        gated = [funnel for funnel in self.funnels if funnel.number.gates]
        watched = sum(len(funnel.number.gates) for funnel in gated)
        if not gated or watched < len(expected.gates):  # what cannot be watched may take longer
            return sum(done.values()), expected.at_most
        return runs_expected(gated, done, expected.at_most), expected.at_most

    def _pace(self, done: int, now: float) -> float | None:
        """Seconds a trial takes: since the page was opened, or else since the run began.

        The time since the page was opened is better, as an interrupted run did nothing for a while.
        """
        if self.first_look is None:
            self.first_look = (now, done)
        since, before = self.first_look
        if done - before >= _ENOUGH:
            return (now - since) / (done - before)
        began = self.expected.started
        return (now - began) / done if began is not None and done else None

    def _pictures(self, systems: int, most: int | None, *, ended: bool) -> str:
        """Headings and pictures in the order of the page, those of gates first."""
        runs = None if most is None else most // max(systems, 1)
        order = sorted(self.funnels, key=lambda funnel: not funnel.number.gates)
        drawn = (panel.figure(runs, ended=ended) for panel in order)
        return "".join(
            f"<figure><h3>{escape(figure.title)}</h3><figcaption>{escape(figure.finding)}</figcaption>"
            f"{figure.svg()}</figure>"
            for figure in drawn
            if figure is not None
        )


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
                    ended = await run_in_threadpool(ending, reports, history, run)
                    yield event("end", {"hero": ended})
                    return
            elif begun - spoke > BEAT_SECONDS:
                spoke = begun
                if (await run_in_threadpool(progress_of, history, run)).status != RUNNING:
                    mark = -1  # its process died, which changes nothing in the store
                yield ": still here\n\n"
            # A large run takes longer to read; then it is read less often.
            await anyio.sleep(max(POLL_SECONDS, 4 * (time.monotonic() - begun)))
    finally:
        history.close()


def ending(reports: ReportCache, history: History, run: Run) -> str:
    """The top of the page of a run that has ended: its verdict, as its own page says it."""
    if run.status == RUNNING:  # as it was when the page was opened
        run = history.find_run(run.key)
    answer, verdict = f"{capitalised(run.status)} without a trial.", None
    chip: StatusLabel | None = None
    if run.trials:
        report = ReportAnswer(reports.report(history, run)).shown
        verdict = reports.verdict(history, run)
        answer = headline.opening(report)
        chip = headline.overview_chip(report)
    worst = (
        min((word for word, _ in verdict.gates), key=_WORST.index)
        if verdict and verdict.gates
        else ""
    )
    if worst:
        chip = StatusLabel(worst, WORD_TONES[worst])
    return render("live_end.html", run=run, answer=answer, chip=chip, said=verdict)


_WORST = ("ERROR", "FAIL", "UNDECIDED", "PASS")


def progress_of(history: History, run: Run) -> StoredProgress:
    """The progress of a run at this moment; one whose process died is no longer running."""
    progress = read_progress(history, run)
    if progress.status != RUNNING:
        return progress
    return replace(progress, status=history.find_run(run.key).status)


def watching(history: History, run: Run) -> PageState:
    """A watch that knows how the rates of a run got where they are."""
    expected = PlannedRun.of(run)
    # Both look at every trial: they are asked only for gates that need them.
    on_scores = any("mean_score" in gate.require for gate in expected.gates)
    partial = on_scores and has_partial_scores(history, run)
    numbers = watched_numbers(expected.gates, whole_scores=not partial)
    tags = tags_of_tasks(history, run) if any(number.tags for number in numbers) else {}
    watch = PageState(
        expected=expected,
        funnels=[Funnel(number, tags=tags) for number in numbers],
        tags=tags,
        baselines=dict(_baseline_rates(history, run, expected.gates)),
    )
    sums: dict[str, list[int]] = {}
    for _, part in groupby(outcomes_over_time(history, run, MOST_POINTS), key=itemgetter(0)):
        for _, system, *counts in part:
            sums[system] = [a + b for a, b in zip(sums.get(system, [0] * 3), counts, strict=True)]
        for funnel in watch.funnels:
            if funnel.counts_suffice:
                funnel.add_counts(sums)
    grouped = [funnel for funnel in watch.funnels if not funnel.counts_suffice]
    trials = ended_trials(history, run) if grouped else []
    for funnel in grouped:
        funnel.replay(trials)
    watch.replayed = sum(map(sum, sums.values()))
    return watch


def _baseline_rates(
    history: History, run: Run, gates: Sequence[StoredGate]
) -> Iterator[tuple[str, float]]:
    """The pass rate of each stored baseline that a gate compares with."""
    for gate in gates:
        demand = demand_of(gate)
        if isinstance(demand, NoWorseRequirement):
            with suppress(PasshatError):  # a file, or a run that is not kept here
                rate = named_baseline(history, demand.baseline, judged=run).run.pass_rate
                if rate is not None:
                    yield demand.baseline, rate


def so_far(counts: Iterable[Sequence[int]]) -> str:
    """How many trials passed, failed and errored until now, in words.

    >>> so_far([[79, 20, 1]]), so_far([])
    ('79% of trials passed so far, 20 failed, 1 errored.', 'No trial has ended yet.')
    """
    passed, failed, errored = np.sum([[0, 0, 0], *counts], axis=0).tolist()
    if not (done := passed + failed + errored):
        return "No trial has ended yet."
    also = f", {errored:,} errored" if errored else ""
    return f"{percent(passed / done)} of trials passed so far, {failed:,} failed{also}."


def trials_in_all(fewest: int | None, most: int | None) -> str:
    """How many trials a run takes, in words; empty if that is not known.

    >>> trials_in_all(160, 160), trials_in_all(120, 300), trials_in_all(None, None)
    ('160', 'about 120 to 300', '')
    """
    if fewest is None or most is None:
        return ""
    return f"{most:,}" if fewest == most else f"about {fewest:,} to {most:,}"


def time_left(done: int, fewest: int | None, most: int | None, *, pace: float | None) -> str | None:
    """How long the rest takes where a trial takes `pace` seconds; None if that is not known.

    >>> time_left(50, 150, 150, pace=1.2), time_left(50, 60, 400, pace=12)
    ('about 2 min', '2 to 70 min')
    """
    if fewest is None or most is None or pace is None:
        return None
    least, longest = (pace * max(0, total - done) for total in (fewest, most))
    unit, size = next(
        (unit, size) for unit, size, limit in _UNITS if longest < limit or limit == _UNITS[-1][2]
    )
    low, high = (f"{value / size:.{int(size == 3600)}f}" for value in (least, longest))
    return f"about {high} {unit}" if low == high else f"{low} to {high} {unit}"


def cost_in_all(cost: float | None, done: int, fewest: int | None, most: int | None) -> str:
    """What all trials come to at the mean price so far.

    >>> cost_in_all(0.5, 50, 100, 100), cost_in_all(0.5, 50, 60, 100)
    ('spent, about $1.00 if all 100 run', 'spent, about $0.60 to $1.00 in all')
    """
    if cost is None:
        return "spent: no trial has a price"
    if not done or fewest is None or most is None:
        return "spent"
    low, high = (cost / done * total for total in (fewest, most))
    if fewest == most:
        return f"spent, about ${high:.2f} if all {most:,} run"
    return f"spent, about ${low:.2f} to ${high:.2f} in all"


def event(name: str, data: Any) -> str:
    r"""One server-sent event; JSON has no line break that could end it early.

    >>> event("news", {"a": "x\n\ny"})
    'event: news\ndata: {"a": "x\\n\\ny"}\n\n'
    """
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and value > 0 else None


def _news(watch: PageState, history: History, run: Run) -> dict[str, Any]:
    progress = progress_of(history, run)
    if any(
        funnel.number.tags for funnel in watch.funnels
    ):  # tasks may have come that were not known
        watch.tags |= tags_of_tasks(history, run)
    return watch.news(progress)


def _counts(progress: StoredProgress) -> dict[str, list[int]]:
    """Passed, failed and errored of each system."""
    by_system: dict[str, list[int]] = {}
    for task in progress.tasks:
        counts = by_system.setdefault(task.system, [0, 0, 0])
        for i, number in enumerate((task.passed, task.failed, task.errored)):
            counts[i] += number
    return by_system


def _rate(passed: int, failed: int, errored: int) -> float:
    return passed / (passed + failed + errored)


def _interval(passed: int, failed: int, errored: int) -> str:
    """The pass rate's interval in percent; it holds at every look at once, for it is watched."""
    return span(rate_so_far(passed + failed + errored, passed), digits=0)


def _task_rows(tasks: Sequence[TaskProgress]) -> Iterator[list[Any]]:
    """The tasks with failures first: agent, task, marks, and the trials that the marks lead to."""
    links = 0
    for row in sorted(tasks, key=lambda task: not task.failed + task.errored)[:MOST_TASKS]:
        pairs = (run.split(":") for run in row.runs.split())
        runs = sorted((int(trial), outcome) for trial, outcome in pairs)
        links += len(runs)
        marks = "".join(_LETTERS[outcome] for _, outcome in runs)
        linked = [trial for trial, _ in runs] if links <= MOST_MARKS_LINKED else []
        yield [row.system, row.task, marks, linked]


# The numbers that gates ask for while a run lasts: how each closes in on its line.

MOST_POINTS = 60
"""Points of a line: a screen cannot show more."""

MOST_SYSTEMS = 3
"""Systems that are drawn; the bands of more would cover one another."""

_NAME = re.compile(r"(?:tags\[(.+)\]\.)?(?:(pass\^|pass@)(\d+)|(mean_score|error_rate))")

Counts = tuple[int, int]
"""Groups of runs, and how many of them count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedNumber:
    """A share of groups of `k` runs of a task: all passed, any passed, or errored.

    Groups are disjoint (runs 1 to k, k+1 to 2k), so each is one more independent look at pass^k,
    and an interval that holds at every look can be drawn for it. `gates` ask for it, each with its
    level. It may be on tasks with one of `tags` only, or on one `system`.
    """

    name: str
    k: int
    counts: Literal["all", "any", "errored"]
    gates: tuple[tuple[str, float], ...] = ()
    tags: frozenset[str] = frozenset()
    system: str | None = None

    @property
    def title(self) -> str:
        """Its name, and which tasks it is on if that is not all."""
        part = f" of tasks tagged {' or '.join(sorted(self.tags))}" if self.tags else ""
        return f"{metric_label(self.name)}{part}"

    def is_on(self, trial: EndedTrial, tags: Mapping[str, frozenset[str]]) -> bool:
        """Whether it counts a trial, given the tags of its task."""
        if self.system not in (None, trial.system):
            return False
        return not self.tags or bool(self.tags & tags.get(trial.task, frozenset()))

    def hit(self, outcomes: Collection[int]) -> bool:
        """Whether a complete group counts."""
        if self.counts == "errored":
            return Outcome.ERRORED in outcomes
        if self.counts == "any":
            return Outcome.PASSED in outcomes
        return all(outcome == Outcome.PASSED for outcome in outcomes)


def watched_numbers(
    gates: Iterable[StoredGate | str], *, whole_scores: bool = True
) -> list[WatchedNumber]:
    """The pass rate, then the other numbers that gates ask for and that can be watched.

    A mean score can be watched as the pass rate it is, if every score is 0 or 1.

    >>> [one.name for one in watched_numbers(["pass^3 >= 0.8", "error_rate <= 5%", "cost <= 1"])]
    ['pass^1', 'pass^3', 'error_rate']
    """
    first = WatchedNumber(name="pass^1", k=1, counts="all")
    numbers = {(first.name, first.tags, first.system): first}
    for gate in gates:
        asked = StoredGate(require=gate) if isinstance(gate, str) else gate
        if (number := watched_number(asked, whole_scores=whole_scores)) is not None:
            key = number.name, number.tags, number.system
            before = numbers.get(key, number)
            levels = dict.fromkeys([*before.gates, *number.gates])
            numbers[key] = replace(number, gates=tuple(levels))
    return list(numbers.values())


def watched_number(gate: StoredGate, *, whole_scores: bool = True) -> WatchedNumber | None:
    """The number that a gate asks for; None if its interval cannot be drawn while it runs."""
    demand = demand_of(gate)
    match = (
        _NAME.fullmatch(demand.target.name) if isinstance(demand, ThresholdRequirement) else None
    )
    if match is None or not isinstance(demand, ThresholdRequirement):
        return None
    tag, sign, k, other = match.groups()
    if tag and gate.tags:  # tasks with both: rare, and judged at the end
        return None
    number = WatchedNumber(
        name="pass^1",
        k=1,
        counts="all",
        gates=((gate.require, demand.threshold),),
        tags=frozenset([tag] if tag else gate.tags),
        system=gate.system,
    )
    if other == "mean_score":
        return number if whole_scores else None
    if other == "error_rate":
        return replace(number, name=other, counts="errored")
    if int(k) == 1:
        return number
    return replace(number, name=f"{sign}{k}", k=int(k), counts="all" if sign == "pass^" else "any")


def demand_of(gate: StoredGate) -> Requirement | None:
    """What a gate demands; None of one that a later version knows or that names levels."""
    try:
        parsed = parse_gate(gate.require)
    except PasshatError:
        return None
    return None if parsed.at else parsed.demand  # levels are judged at the end


@dataclass(slots=True)
class Funnel:
    """One number of each system, from the beginning of the run to now."""

    number: WatchedNumber
    groups: dict[tuple[str, str, int], dict[int, int]] = field(default_factory=dict)
    now: dict[str, Counts] = field(default_factory=dict)
    points: dict[str, list[Counts]] = field(default_factory=dict)
    tags: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def counts_suffice(self) -> bool:
        """Whether it is known from how many trials of a system ended how."""
        return self.number.k == 1 and not self.number.tags

    def add_counts(self, systems: Mapping[str, Sequence[int]]) -> None:
        """How many trials of each system passed, failed and errored so far."""
        for system, (passed, failed, errored) in systems.items():
            if self.number.system in (None, system):
                hits = errored if self.number.counts == "errored" else passed
                self.now[system] = (passed + failed + errored, hits)
        self._mark()

    def replay(self, trials: Sequence[EndedTrial]) -> None:
        """Trials that ended, in this order; a line gets a point every so many of them."""
        step = max(1, len(trials) // MOST_POINTS)
        for first in range(0, len(trials), step):
            self._add(trials[first : first + step])
            self._mark()

    def _add(self, trials: Sequence[EndedTrial]) -> None:
        """A trial that was known already, and ran again when a run was resumed, changes nothing."""
        number, k, known = self.number, self.number.k, self.groups
        of_all = not number.tags and number.system is None
        for trial in trials:
            if not (of_all or number.is_on(trial, self.tags)):
                continue
            system, task, place, outcome = trial
            group = known.setdefault((system, task, place // k), {})
            if place in group:
                continue
            group[place] = outcome
            if len(group) == k:
                groups, hits = self.now.get(system, (0, 0))
                self.now[system] = (groups + 1, hits + number.hit(group.values()))

    def _mark(self) -> None:
        """The counts at this moment; if there are too many points every other one goes."""
        for system, counts in self.now.items():
            points = self.points.setdefault(system, [])
            if not points or points[-1] != counts:
                points.append(counts)
            if len(points) > 2 * MOST_POINTS:
                del points[1:-1:2]

    def figure(self, runs: int | None, *, ended: bool = False) -> Figure | None:
        """How the interval of each system closes in; `runs` of each system are expected at most."""
        shown = [(name, points) for name, points in self.points.items() if len(points) > 1]
        if not shown:
            return None
        number = self.number
        series = [_series(name, points) for name, points in shown[:MOST_SYSTEMS]]
        longest = max(points[-1][0] for _, points in shown)
        left_out = len(shown) - len(series)
        return line_chart(
            series,
            title=_title(series[0], number, ended=ended),
            finding=_finding(number) + (f" {left_out} more agents not drawn." if left_out else ""),
            x_label="trials done"
            if number.k == 1
            else f"groups of {number.k} trials of a task done",
            y_label=number.title,
            y_range=(0, 1),
            y_kind="percent",
            x_range=(0, max(longest, (runs or 0) // number.k)),
            guides=[Guide(name=f"gate: {text}", y=level) for text, level in number.gates],
        )

    def runs_to_settle(self, system: str, most: int) -> int:
        """Runs after which every gate's line is outside of the interval, if the rate stays.

        At most `most`; that many, too, if nothing has ended yet or the rate is on a line.
        """
        counts = self.now.get(system)
        if self.number.system not in (None, system):
            return 0
        if counts is None:
            return most
        return max(
            (self._runs_for(counts, level, most) for _, level in self.number.gates), default=0
        )

    def _runs_for(self, counts: Counts, level: float, most: int) -> int:
        groups, hits = counts
        share, k = hits / groups, self.number.k
        low, high = groups, max(groups, most // k)
        if _excludes(low, share, level):
            return low * k
        if not _excludes(high, share, level):
            return most
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if _excludes(middle, share, level) else (middle, high)
        return high * k


def _excludes(groups: int, share: float, level: float) -> bool:
    interval = rate_so_far(groups, round(share * groups))
    return not interval.low <= level <= interval.high


def runs_expected(funnels: Sequence[Funnel], done: Mapping[str, int], most: int) -> int:
    """About how many trials a run takes that ends when its gates are settled, at most `most`."""
    systems = list(done) or [""]
    share = most // len(systems)
    needed = (
        max([done.get(name, 0), *(funnel.runs_to_settle(name, share) for funnel in funnels)])
        for name in systems
    )
    return min(most, sum(needed))


def _series(name: str, points: Sequence[Counts]) -> Series:
    intervals = [rate_so_far(groups, hits) for groups, hits in points]
    return Series(
        name=name,
        x=[groups for groups, _ in points],
        y=[hits / groups for groups, hits in points],
        low=[interval.low for interval in intervals],
        high=[interval.high for interval in intervals],
        dots=False,
    )


def _title(series: Series, number: WatchedNumber, *, ended: bool) -> str:
    """The number so far, and on which side of it each line is; the verdict takes their place."""
    if ended:
        return f"{series.name}: {number.title} as it was watched"
    low, high = (series.low or [0.0])[-1], (series.high or [1.0])[-1]
    share = f"{series.name}: {number.title} is {percent(series.y[-1])} so far"
    return "; ".join([share, *_sides(number, low, high)])


def _sides(number: WatchedNumber, low: float, high: float) -> Iterator[str]:
    for _, level in number.gates:
        inside = low <= level <= high
        yield f"the line of {100 * level:.4g}% is {'still inside' if inside else 'outside'}"


def _finding(number: WatchedNumber) -> str:
    if number.k == 1:
        return "The band holds at every look at once, with 95%."
    return (
        f"Trials 1 to {number.k} of a task are one look, {number.k + 1} to {2 * number.k} the "
        "next. The band holds at every look at once, with 95%."
    )
