"""The front page, suite by suite, and a cache of the reports and other answers on stored runs."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from passhat.analysis.reports.metrics import HeadlineNumber
from passhat.analysis.reports.report import Report
from passhat.dataclass import dataclass, replace
from passhat.drawing import Figure, Series, line_chart, sparkline
from passhat.history import History, Run
from passhat.history.queries import (
    SuiteLine,
    TrialMark,
    find_trial,
    list_suites,
    marks_of_tasks,
    suite_spending,
)
from passhat.journeys.analyses import report
from passhat.journeys.results import bars_of_run
from passhat.journeys.stored_runs import (
    explain_run,
    kept_intervals,
    known_verdict,
    numbers_basis,
    numbers_of,
    requests_of,
    tallies_of,
    trend_basis,
    trends_of,
    trials_in_columns,
    verdict_basis,
    verdict_on,
)
from passhat.messages import metric_label, percent, plural, short_day
from passhat.records import Outcome, Tally, Trials

if TYPE_CHECKING:
    from passhat.analysis.comparing.trends import (
        AgentNumbers,
        AgentVerdict,
        RateChange,
        RunVerdict,
        Trends,
    )
    from passhat.analysis.explaining.explain import Explanation

SPENDING_DAYS = 30
SUITES_A_PAGE = 20
RUNS_BACK, PICTURE_SIZE = 12, (440, 200)
"""Runs in the small trend of an agent, and how large it is drawn where the agent fell."""

MOST_TASKS = 8
"""Tasks of a fall that are listed with their trials."""

MOST_JUDGED = 2
"""Runs that a list of runs judges on one visit: a tenth to half of a second each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FallenTask:
    """A task of a fall: how it moved, its trials in the run that is judged, what was first said.

    `reason` is the error of its first failure, or the check that it failed.
    """

    move: RateChange
    marks: Sequence[TrialMark]
    request: str = ""
    reason: str = ""

    @property
    def failure(self) -> TrialMark | None:
        """The first trial that did not pass."""
        return next((mark for mark in self.marks if mark.outcome != Outcome.PASSED), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemLine:
    """One agent of a suite: its newest run, its number there, and how it got there.

    The verdict is on `judged`, its newest run that gates did not end early; `tasks_of_fall` are
    those that fell, with their trials there, and `picture` has the number of its newest runs, where
    it fell.
    """

    name: str
    run: Run
    judged: Run | None
    tasks: int
    trials: int
    headline: HeadlineNumber
    spark: Figure
    verdict: AgentVerdict | None = None
    tasks_of_fall: Sequence[FallenTask] = ()
    picture: Figure | None = None

    @property
    def fell(self) -> bool:
        """Whether it fell by more than noise."""
        return self.verdict is not None and self.verdict.fell


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteBlock:
    """One suite with its agents.

    `gates` are those that `judged`, its newest finished run, failed or left undecided. `spent`
    is what its runs of the last 30 days cost, in dollars.
    """

    suite: SuiteLine
    systems: tuple[SystemLine, ...]
    newest: Run
    judged: Run | None = None
    gates: tuple[tuple[str, str], ...] = ()
    spent: float | None = None

    @property
    def fell(self) -> list[SystemLine]:
        """The agents that fell by more than noise."""
        return [line for line in self.systems if line.fell]

    @property
    def sentences(self) -> list[str]:
        """What is said of the agents that did not fall, as on the page of their run."""
        from passhat.analysis.comparing.trends import RunVerdict

        steady: dict[str, list[AgentVerdict]] = {}
        for line in self.systems:
            if line.judged is not None and line.verdict is not None and not line.fell:
                steady.setdefault(line.judged.key, []).append(line.verdict)
        verdicts = [RunVerdict(run=run, agents=tuple(agents)) for run, agents in steady.items()]
        alone = len(verdicts) == 1 and not self.fell
        return [verdict.sentence if alone else verdict.sentence_by_name for verdict in verdicts]

    @property
    def failed(self) -> list[str]:
        """The gates that failed, as sentences."""
        return [sentence for word, sentence in self.gates if word == "FAIL"]

    @property
    def undecided(self) -> list[str]:
        """The gates that are neither passed nor failed: no alarm, but no all-clear."""
        return [sentence for word, sentence in self.gates if word == "UNDECIDED"]

    @property
    def noticeable(self) -> str:
        """Which fall would be seen here: of several agents the one of whom the least is seen."""
        from passhat.analysis.comparing.trends import sentence_of_noticeable

        falls = [
            line.verdict.noticeable
            for line in self.systems
            if line.verdict is not None and line.verdict.noticeable is not None
        ]
        if not falls:
            return ""
        return sentence_of_noticeable(max(falls, key=lambda fall: fall.rate or 2.0))

    @property
    def needs_attention(self) -> bool:
        """Whether anything fell by more than noise, or a gate failed: what is shown in red."""
        return bool(self.fell or self.failed)


def suites_on_page(history: History, page: int) -> tuple[list[SuiteLine], int]:
    """The suites of one page, the one that ran last first, and how many there are."""
    suites = list_suites(history)
    first = (page - 1) * SUITES_A_PAGE
    return suites[first : first + SUITES_A_PAGE], len(suites)


def look_at_suite(reports: ReportCache, history: History, suite: SuiteLine) -> SuiteBlock:
    """One suite: the newest number of each of its agents, how it got there, and the verdict."""
    runs = history.runs(suite=suite.name, limit=RUNS_BACK)
    systems: dict[str, list[tuple[Run, AgentNumbers]]] = {}
    for run in runs:
        for numbers in reports.numbers(history, run) if run.trials else ():
            systems.setdefault(numbers.system, []).append((run, numbers))
    since = datetime.now(UTC) - timedelta(days=SPENDING_DAYS)
    judged = next((run for run in runs if run.status == "finished" and run.trials), None)
    gates = reports.verdict(history, judged).gates if judged is not None else ()
    return SuiteBlock(
        suite=suite,
        systems=tuple(_line(reports, history, own) for _, own in sorted(systems.items())),
        newest=runs[0],
        judged=judged,
        gates=tuple((word, sentence) for word, sentence in gates if word != "PASS"),
        spent=suite_spending(history, suite.name, since=since.isoformat()),
    )


def _line(
    reports: ReportCache, history: History, runs: Sequence[tuple[Run, AgentNumbers]]
) -> SystemLine:
    """`runs` are newest first; the verdict is on the newest that its gates did not end early."""
    newest, numbers = runs[0]
    name = numbers.system
    whole = (run for run, _ in runs if run.status == "finished" and not run.stopped_early)
    judged = next(whole, None)
    verdict = None if judged is None else reports.verdict(history, judged).of(name)
    return SystemLine(
        name=name,
        run=newest,
        judged=judged,
        tasks=numbers.tasks,
        trials=numbers.trials,
        headline=numbers.headline,
        spark=_spark(
            name,
            numbers.k,
            [own.levels for run, own in reversed(runs) if not run.stopped_early],
        ),
        verdict=verdict,
        tasks_of_fall=()
        if judged is None or verdict is None
        else tasks_of_fall(history, judged, verdict),
        picture=None if verdict is None or not verdict.fell else _picture(runs[::-1], verdict),
    )


def _picture(runs: Sequence[tuple[Run, AgentNumbers]], verdict: AgentVerdict) -> Figure | None:
    """The number that fell in the newest runs, oldest first, as each of them measured it."""
    k = verdict.k
    known = [
        (run.started, own.estimate.value, own.estimate.interval)
        for run, own in runs
        if own.k == k and own.estimate is not None and own.estimate.interval is not None
        if not run.stopped_early
    ]
    if len(known) < 2 or verdict.interval is None:  # it fell in some tasks, not in the mean
        return None
    name = f"pass^{k}"
    among = f"{len(known)} of the last " if len(known) < len(runs) else "the last "
    line = Series(
        name=name,
        x=list(range(len(known))),
        y=[value for _, value, _ in known],
        low=[interval.low for *_, interval in known],
        high=[interval.high for *_, interval in known],
    )
    return line_chart(
        [line],
        title=f"{metric_label(name)} in {among}{plural(len(runs), 'run')}",
        finding="Bands: these tasks.",
        x_label="run, oldest first",
        y_label="",
        y_range=(0, 1),
        y_kind="percent",
        x_names=[short_day(started) for started, *_ in known],
        width=PICTURE_SIZE[0],
        height=PICTURE_SIZE[1],
    )


def tasks_of_fall(history: History, run: Run, verdict: AgentVerdict) -> list[FallenTask]:
    """The tasks that fell, if any did, each with its trials in a run.

    Where no task stands out, those that fell most and have a failing trial here to be read.
    """
    if not verdict.fell:
        return []
    moved = verdict.tasks[:MOST_TASKS] or [move for move in verdict.moved if move.moved < 0]
    marks = marks_of_tasks(history, run, verdict.system, [move.task for move in moved])
    requests = requests_of(history, run)
    tasks = [
        FallenTask(
            move=move,
            marks=marks[move.task],
            request=requests.get((verdict.system, move.task), ""),
        )
        for move in moved
    ]
    from passhat.reporters.page_parts import first_failed_check

    shown = [task for task in tasks if verdict.tasks or task.failure][:MOST_TASKS]
    for place, task in enumerate(shown):
        if (failure := task.failure) is not None:
            named = (verdict.system, task.move.task, failure.trial)
            kept, stored = history.transcript(run, *named), find_trial(history, run, *named)
            error = None if stored is None else stored.trial.error
            shown[place] = replace(task, reason=first_failed_check(kept, error))
    return shown


def _spark(name: str, k: int, levels: Sequence[Sequence[float | None]]) -> Figure:
    """`levels` are pass^1, pass^2, ... of each run."""
    values = [value for level in levels if (value := level[k - 1]) is not None]
    moved = (
        f"from {percent(values[0])} to {percent(values[-1])} over {len(values)} runs"
        if len(values) > 1
        else "one run so far"
        if values
        else "no rate so far"
    )
    return sparkline(values, title=f"pass^{k} of {name}", finding=f"pass^{k}: {moved}.")


# Reports and other answers on stored runs, computed once as long as a run does not change.


MOST_REPORTS, MOST_TALLIES, MOST_TRIALS = 8, 1_000, 2

Answer = TypeVar("Answer")


def _with_labels(history: History, run: Run) -> Hashable:
    """What identifies a run and what people say of it."""
    return numbers_basis(run), history.label_count(run)


class ReportCache:
    """Opens the store for each request, and keeps the reports and counts of runs that ended."""

    def __init__(self, path: Path | str, *, title: str, writable: bool = True) -> None:
        self.path = path
        self.title = title
        self.writable = writable
        self._reports: _Cache[Report] = _Cache(MOST_REPORTS)
        self._trials: _Cache[Trials] = _Cache(MOST_TRIALS)
        self._trends: _Cache[Trends] = _Cache(MOST_REPORTS)
        self._verdicts: _Cache[RunVerdict] = _Cache(MOST_TALLIES)
        self._numbers: _Cache[tuple[AgentNumbers, ...]] = _Cache(MOST_TALLIES)
        self._explanations: _Cache[Explanation] = _Cache(MOST_REPORTS)
        self._tallies: _Cache[list[Tally]] = _Cache(MOST_TALLIES)

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
            trials = self.trials(history, run)
            with kept_intervals(history, run) as computed:
                made = report(trials, bars=bars_of_run(run, trials))
                for system in made.systems:  # all are lazy, and the page of the run shows them
                    _ = system.metrics["mean_score"].this_suite
                    if computed:
                        _ = system.decay
                        _ = [metric.this_suite for metric in system.metrics.values()]
            return made

        return self._reports.get(_with_labels(history, run), measured)

    def verdict(self, history: History, run: Run) -> RunVerdict:
        """What is said of a run."""
        basis = verdict_basis(history, run)
        return self._verdicts.get(basis, lambda: verdict_on(history, run))

    def verdicts(self, history: History, runs: Sequence[Run]) -> dict[str, RunVerdict]:
        """What is said of each of some runs, as far as it is known; some more are judged now."""
        room, verdicts = MOST_JUDGED, {}
        for run in runs:
            if run.status != "finished" or not run.trials:
                continue
            known = self._verdicts.known(verdict_basis(history, run))
            if known is None and (known := known_verdict(history, run)) is None and room:
                known, room = self.verdict(history, run), room - 1
            if known is not None:
                verdicts[run.key] = known
        return verdicts

    def numbers(self, history: History, run: Run) -> tuple[AgentNumbers, ...]:
        """The numbers of each agent of a run."""
        return self._numbers.get(numbers_basis(run), lambda: numbers_of(history, run))

    def explanation(self, history: History, run: Run) -> Explanation:
        """Why runs of a run fail."""
        return self._explanations.get(numbers_basis(run), lambda: explain_run(history, run))

    def trends(self, history: History, runs: Sequence[Run], branch: str | None = None) -> Trends:
        """How the systems of some runs (oldest first) moved."""
        basis = trend_basis(history, runs)
        return self._trends.get(basis, lambda: trends_of(history, runs, branch))

    def trials(self, history: History, run: Run) -> Trials:
        """The trials of a run with what people say of them."""
        key = _with_labels(history, run)
        return self._trials.get(key, lambda: trials_in_columns(history, run))

    def tallies(self, history: History, run: Run) -> list[Tally]:
        """The counts of a run."""
        return self._tallies.get(numbers_basis(run), lambda: tallies_of(history, run))


class _Cache(Generic[Answer]):
    """The latest answers; two requests never compute the same one at the same time."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[Hashable, Answer] = OrderedDict()
        self._lock = threading.Lock()

    def known(self, key: Hashable) -> Answer | None:
        return self._values.get(key)

    def get(self, key: Hashable, make: Callable[[], Answer]) -> Answer:
        with self._lock:
            if key not in self._values:
                self._values[key] = make()
            self._values.move_to_end(key)
            while len(self._values) > self._most:
                self._values.popitem(last=False)
            return self._values[key]
