"""Runs of the history store as moments of a trend."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from passhat.analysis.trends import Moment
from passhat.errors import HistoryError
from passhat.history.lookups import run_label

if TYPE_CHECKING:
    from passhat.history import History, Run


def read_moments(
    history: History,
    *,
    suite: str | None,
    branch: str | None,
    last: int,
    only: Collection[str] = (),
) -> list[Moment]:
    """The newest `last` runs of one suite that have trials, oldest first."""
    chosen = suite or _only_suite(history)
    runs = [run for run in history.runs(suite=chosen, branch=branch, limit=last) if run.trials]
    moments = [_moment(history, run, only) for run in reversed(runs)]
    if not any(moment.tallies for moment in moments):
        asked = ", ".join(filter(None, [chosen, branch, *only]))
        raise HistoryError(f"{history.name}: no run with trials of {asked}")
    return moments


def _only_suite(history: History) -> str:
    suites = sorted({run.suite for run in history.runs()})
    if len(suites) != 1:
        named = ", ".join(suites) or "none"
        raise HistoryError(f"{history.name}: name one of its suites: {named}")
    return suites[0]


def _moment(history: History, run: Run, only: Collection[str]) -> Moment:
    tallies = [t for t in history.tallies(run) if not only or t.system in only]
    return Moment(key=run.key, label=run_label(run), started=run.started, tallies=tallies)
