"""How reliability changed over the stored runs of a suite, and which tasks are flaky."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from passhat import arguments
from passhat.arguments import CONFIDENCE, STORE
from passhat.errors import HistoryError
from passhat.journeys.results import Names, chosen_names, is_store, open_store
from passhat.journeys.stored_runs import run_groupings
from passhat.messages import listed

if TYPE_CHECKING:
    from passhat.analysis.comparing.trends import FlakyTasks, Moment, SystemTrend
    from passhat.analysis.reports.metrics import RunGroups
    from passhat.history import History, Run
    from passhat.records import Tally

MOST_SUITES = 20
"""Suites that a message names."""

LAST, FLAKY_LAST = 50, 20
"""How many stored runs a trend and `flaky` look at by default."""


def trend_of_runs(
    suite: str | None = None,
    *,
    store: str | Path = STORE,
    branch: str | None = None,
    last: int = LAST,
    only: Names = (),
    k: int | None = None,
    confidence: float = CONFIDENCE,
) -> tuple[SystemTrend, ...]:
    """How did the reliability of each agent change over the newest `last` runs of a suite?"""
    from passhat.analysis.comparing.trends import trends

    with _open(store, suite) as history:
        chosen = suite or only_suite(history, "passhat trend")
        moments = read_moments(history, suite=chosen, branch=branch, last=last, only=only)
    return trends(moments, k=k, confidence=confidence)


def flaky_tasks(
    suite: str | None = None,
    *,
    store: str | Path = STORE,
    branch: str | None = None,
    last: int = FLAKY_LAST,
    only: Names = (),
    confidence: float = CONFIDENCE,
) -> FlakyTasks:
    """Which tasks passed and failed over the newest `last` runs of a suite?"""
    from passhat.analysis.comparing.trends import find_flaky

    with _open(store, suite) as history:
        chosen = suite or only_suite(history, "passhat flaky")
        moments = read_moments(history, suite=chosen, branch=branch, last=last, only=only)
    return find_flaky(moments, confidence=confidence)


def _open(store: str | Path, suite: str | None) -> History:
    """The store; if there is none, a file in the place of the suite is the first thing to mend."""
    try:
        return open_store(store)
    except HistoryError:
        _refuse_file(suite)
        raise


def _refuse_file(suite: str | None) -> None:
    """Refuse a file that was named in the place of a suite, and say where it belongs."""
    if suite is None or not Path(suite).is_file():
        return
    if is_store(suite):
        way = f"is a history store: give it as `store={suite!r}`"
    elif Path(suite).suffix in (".yml", ".yaml"):
        way = "is a file: give the name of the suite, as `name:` in the file says"
    else:
        name = shlex.quote(suite)
        way = (
            "is a file, but this looks at stored runs; store it with "
            f"`passhat history add {name}`, or look at it alone with `passhat report {name}`"
        )
    raise HistoryError(f"{suite}: {way}")


def read_moments(
    history: History, *, suite: str, branch: str | None, last: int, only: Names = ()
) -> list[Moment]:
    """The newest `last` runs of one suite that have trials, oldest first."""
    last = arguments.whole_number("last", last)
    runs = [run for run in history.runs(suite=suite, branch=branch, limit=last) if run.trials]
    if not runs:
        _refuse_file(suite)
        asked = suite + (f" on branch {branch}" if branch else "")
        raise HistoryError(f"{history.name}: no stored run of {asked}; {_offered(history)}")
    counted = [(run, history.tallies(run)) for run in reversed(runs)]
    systems = dict.fromkeys(tally.system for _, tallies in counted for tally in tallies)
    wanted = chosen_names(only, list(systems))
    return [
        moment_of(run, [t for t in counts if t.system in wanted], run_groupings(history, run))
        for run, counts in counted
    ]


def only_suite(history: History, command: str) -> str:
    """The suite of a store that has just one; an error lists several as calls of `command`."""
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
        return "it has no run yet: `passhat run` and `passhat history add` store one"
    return f"its suites: {listed(suites, MOST_SUITES)}"


def _suites(history: History) -> list[str]:
    return sorted({run.suite for run in history.runs()})


def moment_of(
    run: Run, tallies: Sequence[Tally], groupings: Mapping[str, Sequence[RunGroups]]
) -> Moment:
    """A stored run as a point of a trend."""
    from passhat.analysis.comparing.trends import Moment
    from passhat.history.queries import run_label

    return Moment(
        key=run.key,
        label=run_label(run),
        started=run.started,
        tallies=tallies,
        groupings=groupings,
    )
