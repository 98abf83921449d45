"""The front page, suite by suite, and a cache of the reports and other answers on stored runs."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from passhat.analysis.comparing.trends import SystemTrend, trends
from passhat.analysis.reports.metrics import HeadlineNumber, headline_number, mean_pass_hat
from passhat.analysis.reports.parts import headline_k
from passhat.analysis.reports.report import Report
from passhat.dataclass import dataclass
from passhat.drawing import Figure, sparkline
from passhat.errors import PasshatError
from passhat.history import History, Run
from passhat.history.queries import SuiteLine, list_suites, suite_spending
from passhat.journeys.analyses import counted_run, report
from passhat.journeys.gating import looks_at
from passhat.journeys.results import bars_of_run
from passhat.journeys.stored_runs import (
    BaselineChange,
    baseline_of,
    change_since,
    explain_run,
    run_groupings,
    run_labels,
    stored_gates,
)
from passhat.messages import first_few, plural
from passhat.records import Tally
from passhat.stats.estimate import Unavailable

if TYPE_CHECKING:
    from passhat.analysis.explaining.explain import Explanation
    from passhat.analysis.gates.gate import Verdicts
    from passhat.analysis.reports.metrics import RunGroups

SPENDING_DAYS = 30
SUITES_A_PAGE = 20
CHANGES_BACK = 30
"""Runs in which a change is looked for."""

RUNS_BACK = 12
"""Runs in the small trend of a system."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemLine:
    """One system of a suite: its newest run, its number there, and how it got there.

    `attention` says what got worse since the run before: one sentence each.
    """

    name: str
    run: Run
    tasks: int
    trials: int
    headline: HeadlineNumber
    spark: Figure
    attention: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteBlock:
    """One suite with its systems; `gates` are those that its newest run failed or left undecided.

    `spent` is what its runs of the last 30 days cost, in dollars.
    """

    suite: SuiteLine
    systems: tuple[SystemLine, ...]
    newest: Run
    gates: tuple[str, ...] = ()
    spent: float | None = None

    @property
    def needs_attention(self) -> bool:
        """Whether anything got worse, or a gate failed or is undecided."""
        return bool(self.gates or self.attention)

    @property
    def attention(self) -> list[tuple[SystemLine, str]]:
        """What got worse, by system."""
        return [(line, sentence) for line in self.systems for sentence in line.attention]


def suites_on_page(history: History, page: int) -> tuple[list[SuiteLine], int]:
    """The suites of one page, the one that ran last first, and how many there are."""
    suites = list_suites(history)
    first = (page - 1) * SUITES_A_PAGE
    return suites[first : first + SUITES_A_PAGE], len(suites)


def look_at_suite(reports: ReportCache, history: History, suite: SuiteLine) -> SuiteBlock:
    """One suite: the newest number of each of its systems, and how it got there."""
    every = history.runs(suite=suite.name, limit=CHANGES_BACK)
    runs = every[:RUNS_BACK]
    ended = [run for run in reversed(every) if run.trials and run.status == "finished"]
    moved = reports.trends(history, ended) if len(ended) > 1 else ()
    trends = {trend.name: trend for trend in moved}
    systems: dict[str, list[_SystemInRun]] = {}
    for run in runs:
        groupings = partial(reports.groupings, history, run)
        for tally in reports.tallies(history, run) if run.trials else ():
            in_run = _SystemInRun(run=run, tally=tally, groupings=groupings)
            systems.setdefault(tally.system, []).append(in_run)
    since = datetime.now(UTC) - timedelta(days=SPENDING_DAYS)
    return SuiteBlock(
        suite=suite,
        systems=tuple(_line(name, own, trends.get(name)) for name, own in sorted(systems.items())),
        newest=runs[0],
        gates=tuple(_gates_not_passed(reports.verdicts(history, runs[0]))),
        spent=suite_spending(history, suite.name, since=since.isoformat()),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _SystemInRun:
    """One system in one run; `groupings` reads what moved trials together, if it is needed."""

    run: Run
    tally: Tally
    groupings: Callable[[], Mapping[str, Sequence[RunGroups]]]

    def headline(self, k: int | None = None) -> HeadlineNumber:
        """Its number, with the interval that the report of the run has."""
        groupings = self.groupings().get(self.tally.system, ())
        return headline_number(self.tally, k=k, groupings=groupings)


def _gates_not_passed(verdicts: Verdicts | None) -> Iterator[str]:
    """The gates of the newest run that did not pass, those that failed first."""
    if verdicts is None:  # verdicts that did not pass are false, as a condition
        return
    for word in ("FAIL", "UNDECIDED"):
        yield from (one.sentence for one in verdicts if one.word == word)


def _line(name: str, runs: Sequence[_SystemInRun], trend: SystemTrend | None) -> SystemLine:
    """`runs` are newest first."""
    newest = runs[0]
    now = newest.headline()
    return SystemLine(
        name=name,
        run=newest.run,
        tasks=len(newest.tally.tasks),
        trials=newest.tally.trials,
        headline=now,
        spark=_spark(name, now.k, [in_run.tally for in_run in reversed(runs)]),
        attention=(*_fall(trend), *_attention(runs)),
    )


def _fall(trend: SystemTrend | None) -> Iterator[str]:
    """The newest fall, as long as the newest run still excludes the level before it."""
    change = None if trend is None else trend.newest_change
    if trend is None or change is None or change.direction != "down":
        return
    name = trend.metrics[0]
    now = trend.points[-1].metrics[name].interval
    if now is not None and now.high < change.before:
        yield (
            f"{name} fell from {100 * change.before:.0f}% to {100 * change.after:.0f}% on "
            f"{trend.day(change)}, {trend.points[change.position].label}"
        )


def _attention(runs: Sequence[_SystemInRun]) -> Iterator[str]:
    """What the two newest finished runs show; a run in progress is not judged."""
    finished = [in_run for in_run in runs if in_run.run.status == "finished"]
    if len(finished) < 2 or runs[0].run.status != "finished":
        return
    new, old = finished[:2]
    if (drop := _drop(new, old)) is not None:
        yield drop
    if began := tasks_that_began_to_fail(new.tally, old.tally):
        yield (
            f"{plural(len(began), 'task')} passed every run before and not every run now: "
            f"{', '.join(first_few(began))}"
        )


def _drop(new: _SystemInRun, old: _SystemInRun) -> str | None:
    """A fall on the same tasks that is so large that the two intervals do not overlap."""
    if new.tally.tasks != old.tally.tasks:
        return None
    k = min(headline_number(new.tally).k, headline_number(old.tally).k)
    if (mean_pass_hat(new.tally, k) or 0.0) >= (mean_pass_hat(old.tally, k) or 0.0):
        return None  # the common case, without the cost of two intervals
    now, before = new.headline(k).number, old.headline(k).number
    if isinstance(now, Unavailable) or isinstance(before, Unavailable):
        return None
    if now.interval is None or before.interval is None or now.interval.high >= before.interval.low:
        return None
    return f"pass^{k} dropped from {100 * before.value:.0f}% to {100 * now.value:.0f}%"


def tasks_that_began_to_fail(new: Tally, old: Tally) -> list[str]:
    """Tasks whose every trial passed in the old run, and not in the new one."""
    solid = {task for task, runs, passed in _counts(old) if runs > 1 and passed == runs}
    return [task for task, runs, passed in _counts(new) if task in solid and passed < runs]


def _counts(tally: Tally) -> list[tuple[str, int, int]]:
    runs = (tally.passed + tally.failed + tally.errored).tolist()
    return list(zip(tally.tasks, runs, tally.passed.tolist(), strict=True))


def _spark(name: str, k: int, tallies: Sequence[Tally]) -> Figure:
    known = [mean_pass_hat(tally, k) for tally in tallies]
    values = [value for value in known if value is not None]
    moved = (
        f"from {100 * values[0]:.0f}% to {100 * values[-1]:.0f}% over {len(values)} runs"
        if len(values) > 1
        else "one run so far"
    )
    return sparkline(values, title=f"pass^{k} of {name}", finding=f"pass^{k}: {moved}.")


# Reports and other answers on stored runs, computed once as long as a run does not change.


MOST_REPORTS, MOST_TALLIES = 8, 1_000

Answer = TypeVar("Answer")


class ReportCache:
    """Opens the store for each request, and keeps the reports and counts of runs that ended."""

    def __init__(self, path: Path | str, *, title: str) -> None:
        self.path = path
        self.title = title
        self._reports: _Cache[Report] = _Cache(MOST_REPORTS)
        self._trends: _Cache[tuple[SystemTrend, ...]] = _Cache(MOST_REPORTS)
        self._verdicts: _Cache[Verdicts | None] = _Cache(MOST_TALLIES)
        self._changes: _Cache[BaselineChange | None] = _Cache(MOST_TALLIES)
        self._explanations: _Cache[Explanation] = _Cache(MOST_REPORTS)
        self._tallies: _Cache[list[Tally]] = _Cache(MOST_TALLIES)
        self._groupings: _Cache[Mapping[str, Sequence[RunGroups]]] = _Cache(MOST_TALLIES)

    def open(self, *, moving: bool = False) -> History:
        """A new connection that can only read.

        Everything is read as it is now, even if a run writes meanwhile, unless it is `moving`.
        """
        history = History.open(self.path, read_only=True)
        if not moving:
            history.database.hold_still()
        return history

    def report(self, history: History, run: Run) -> Report:
        """Everything measured about a run."""

        def measured() -> Report:
            trials = history.trials(run)
            return report(trials, bars=bars_of_run(run, trials))

        return self._reports.get(_mark(run), measured)

    def headlines(self, history: History, run: Run) -> list[tuple[Tally, HeadlineNumber]]:
        """The counts of each system of a run, with the number of its headline."""
        groups = self.groupings(history, run)
        return [
            (tally, headline_number(tally, groupings=groups.get(tally.system, ())))
            for tally in (self.tallies(history, run) if run.trials else ())
        ]

    def verdicts(self, history: History, run: Run) -> Verdicts | None:
        """The verdicts on a run by its own gates, if it has any."""
        return self._verdicts.get(_mark(run), lambda: judge_run(history, run))

    def change(self, history: History, run: Run, report: Report) -> BaselineChange | None:
        """A run of one system against the baseline of its suite."""
        if len(report.systems) != 1 or (baseline := baseline_of(history, run)) is None:
            return None
        k = headline_k(report.systems[0])
        key = (_mark(run), _mark(baseline))
        return self._changes.get(key, lambda: change_since(history, run, baseline, k=k))

    def explanation(self, history: History, run: Run) -> Explanation:
        """Why runs of a run fail."""
        return self._explanations.get(_mark(run), lambda: explain_run(history, run))

    def trends(self, history: History, runs: Sequence[Run]) -> tuple[SystemTrend, ...]:
        """How the systems of some runs (oldest first) moved."""
        marks = tuple(map(_mark, runs))
        counted = (
            counted_run(
                run,
                self.tallies(history, run),
                self.groupings(history, run),
                run_labels(history, run),
            )
            for run in runs
        )
        return self._trends.get(marks, lambda: trends(list(counted)))

    def tallies(self, history: History, run: Run) -> list[Tally]:
        """The counts of a run."""
        return self._tallies.get(_mark(run), lambda: history.tallies(run))

    def groupings(self, history: History, run: Run) -> Mapping[str, Sequence[RunGroups]]:
        """What moved the runs of each system together, as its report finds it."""
        return self._groupings.get(_mark(run), lambda: run_groupings(history, run))


class _Cache(Generic[Answer]):
    """The latest answers; two requests never compute the same one at the same time."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[Hashable, Answer] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Answer]) -> Answer:
        with self._lock:
            if key not in self._values:
                self._values[key] = make()
            self._values.move_to_end(key)
            while len(self._values) > self._most:
                self._values.popitem(last=False)
            return self._values[key]


def _mark(run: Run) -> Hashable:
    """Identifies one state of a run: a resumed run grows and ends again."""
    return run.key, run.status, run.finished, run.trials, run.passed, run.errored


def judge_run(history: History, run: Run) -> Verdicts | None:
    """The verdicts on a stored run by its own gates; None without gates, or if they lack a run."""
    from passhat.analysis.gates.judge import judge

    require = stored_gates(run)
    if not require or run.status != "finished":
        return None
    try:
        return judge(history.trials(run), [one.terms for one in require], looks=looks_at(run))
    except PasshatError:  # a gate against another run or file, which is not available here
        return None
