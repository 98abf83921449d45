"""How reliability moved over the runs of a history store."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from passhat.defaults import CONFIDENCE, STORE
from passhat.errors import HistoryError
from passhat.journeys.results import Results, open_store
from passhat.messages import listed

if TYPE_CHECKING:
    from passhat.analysis.comparing.days import Days
    from passhat.analysis.comparing.flaky import FlakyTasks
    from passhat.analysis.comparing.trends import Moment, SystemTrend
    from passhat.history import History, Run
    from passhat.records import ErrorPolicy

MOST_SUITES = 20
"""Suites that a message names."""

LAST, FLAKY_LAST = 50, 20
"""Runs that a trend and the flaky tasks look at, where nothing else is said."""


def trend_of_runs(
    suite: str | None = None,
    *,
    store: str | Path = STORE,
    branch: str | None = None,
    last: int = LAST,
    only: Collection[str] = (),
    k: int | None = None,
    confidence: float = CONFIDENCE,
) -> tuple[SystemTrend, ...]:
    """How did the reliability of each agent move over the newest `last` runs of a suite?"""
    from passhat.analysis.comparing.trends import trends

    with open_store(store) as history:
        chosen = suite or only_suite(history, "passhat trend")
        moments = read_moments(history, suite=chosen, branch=branch, last=last, only=only)
    return trends(moments, k=k, confidence=confidence)


def flaky_tasks(
    suite: str | None = None,
    *,
    store: str | Path = STORE,
    branch: str | None = None,
    last: int = FLAKY_LAST,
    only: Collection[str] = (),
    confidence: float = CONFIDENCE,
) -> FlakyTasks:
    """Which tasks passed and failed over the newest `last` runs of a suite?"""
    from passhat.analysis.comparing.flaky import find_flaky

    with open_store(store) as history:
        chosen = suite or only_suite(history, "passhat flaky")
        moments = read_moments(history, suite=chosen, branch=branch, last=last, only=only)
    return find_flaky(moments, confidence=confidence)


def read_moments(
    history: History,
    *,
    suite: str,
    branch: str | None,
    last: int,
    only: Collection[str] = (),
) -> list[Moment]:
    """The newest `last` runs of one suite that have trials, oldest first."""
    runs = [run for run in history.runs(suite=suite, branch=branch, limit=last) if run.trials]
    moments = [_moment(history, run, only) for run in reversed(runs)]
    if not any(moment.tallies for moment in moments):
        asked = ", ".join(filter(None, [suite, branch, *only]))
        raise HistoryError(f"{history.name}: no run with trials of {asked}; {_offered(history)}")
    return moments


def only_suite(history: History, command: str) -> str:
    """The suite of a store that has one; of several, `command` must name one."""
    suites = _suites(history)
    if not suites:
        raise HistoryError(f"{history.name}: {_offered(history)}")
    if len(suites) > 1:
        store = "" if history.name == STORE else f" --store {shlex.quote(history.name)}"
        commands = [f"  {command} {shlex.quote(one)}{store}" for one in suites[:MOST_SUITES]]
        question = f"{history.name} has runs of {len(suites)} suites; choose one:"
        raise HistoryError("\n".join([question, *commands]))
    return suites[0]


def _offered(history: History) -> str:
    """The suites that a trend can be of, or the way to have one."""
    suites = _suites(history)
    if not suites:
        return "it holds no run yet: `passhat run` and `passhat history add` keep some"
    return f"its suites: {listed(suites, MOST_SUITES)}"


def _suites(history: History) -> list[str]:
    return sorted({run.suite for run in history.runs()})


def _moment(history: History, run: Run, only: Collection[str]) -> Moment:
    from passhat.analysis.comparing.trends import Moment
    from passhat.history.lookups import run_label

    tallies = [t for t in history.tallies(run) if not only or t.system in only]
    return Moment(key=run.key, label=run_label(run), started=run.started, tallies=tallies)


def stored_days(results: Results, name: str, judged: Run | None, errors: ErrorPolicy) -> Days:
    """Of the system of the named baseline, from the newest runs of its suite."""
    from passhat.history.references import look_up_baseline

    with open_store(results.store) as history:
        run = look_up_baseline(history, name, judged=judged).run
        return days_around(history, run, judged, errors)


def days_around(history: History, run: Run, judged: Run | None, errors: ErrorPolicy) -> Days:
    """Of the system of one run, from the newest runs of its suite but the one that is judged."""
    from passhat.analysis.comparing.days import MOST_RUNS, days_of

    alike = history.runs(suite=run.suite, limit=MOST_RUNS)
    past = [one for one in alike if one.trials and (judged is None or one.id != judged.id)]
    system = next((tally.system for tally in history.tallies(run)), "")
    counted = [tally for one in reversed(past) for tally in history.tallies(one)]
    return days_of([tally for tally in counted if tally.system == system], errors)


def days_between(results: Results, errors: ErrorPolicy) -> Days | None:
    """Between two results of which one or both are runs of the history.

    None where neither is, or where both are the same run: those were not run on different days.
    """
    from passhat.history.references import look_up

    named = [name if results.names_a_run(name) else None for name in results.paths]
    if not any(named):
        return None
    with open_store(results.store) as history:
        first, second = (look_up(history, name).run if name else None for name in named)
        if first is not None and second is not None and first.id == second.id:
            return None
        baseline, judged = (first, None) if second is None else (second, first)
        assert baseline is not None, "one of the two is a run"
        return days_around(history, baseline, judged, errors)
