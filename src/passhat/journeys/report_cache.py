"""Reports and other answers on stored runs, computed once as long as a run does not change."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from passhat.analysis.comparing.trends import SystemTrend, trends
from passhat.analysis.reports.metrics import HeadlineNumber, headline_k, headline_number
from passhat.analysis.reports.report import Report
from passhat.errors import PasshatError
from passhat.history import History, Run
from passhat.journeys.analyses import report_results
from passhat.journeys.gating import gate_results
from passhat.journeys.stored_runs import (
    BaselineChange,
    baseline_of,
    change_since,
    explain_run,
    run_groupings,
    stored_gates,
)
from passhat.journeys.trend_runs import moment_of
from passhat.records import Tally

if TYPE_CHECKING:
    from passhat.analysis.explaining.explain import Explanation
    from passhat.analysis.gates.gate import Verdicts
    from passhat.analysis.reports.metrics import RunGroups

MOST_REPORTS, MOST_TALLIES = 8, 1_000

Answer = TypeVar("Answer")


class ReportCache:
    """Opens the store for each request, and keeps the reports and counts of runs that ended."""

    def __init__(self, path: Path | str, *, title: str) -> None:
        self.path = path
        self.title = title
        self._reports: _Kept[Report] = _Kept(MOST_REPORTS)
        self._trends: _Kept[tuple[SystemTrend, ...]] = _Kept(MOST_REPORTS)
        self._verdicts: _Kept[Verdicts | None] = _Kept(MOST_TALLIES)
        self._changes: _Kept[BaselineChange | None] = _Kept(MOST_TALLIES)
        self._explanations: _Kept[Explanation] = _Kept(MOST_REPORTS)
        self._tallies: _Kept[list[Tally]] = _Kept(MOST_TALLIES)
        self._groupings: _Kept[Mapping[str, Sequence[RunGroups]]] = _Kept(MOST_TALLIES)

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
        return self._reports.get(_mark(run), lambda: report_results(history.trials(run)))

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
        moments = (
            moment_of(run, self.tallies(history, run), self.groupings(history, run)) for run in runs
        )
        return self._trends.get(marks, lambda: trends(list(moments)))

    def tallies(self, history: History, run: Run) -> list[Tally]:
        """The counts of a run."""
        return self._tallies.get(_mark(run), lambda: history.tallies(run))

    def groupings(self, history: History, run: Run) -> Mapping[str, Sequence[RunGroups]]:
        """What moved the runs of each system together, as its report finds it."""
        return self._groupings.get(_mark(run), lambda: run_groupings(history, run))


class _Kept(Generic[Answer]):
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
    require = stored_gates(run)
    if not require or run.status != "finished":
        return None
    try:
        return gate_results(history.trials(run), require=[gate.terms for gate in require])
    except PasshatError:  # a gate against another run or file, which is not available here
        return None
