"""The front page: every suite, its systems, where they stand and how they moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from passhat.analysis.reports.headline import Glance, glance, mean_pass_hat
from passhat.dashboard.shelf import Shelf
from passhat.drawing import Figure, sparkline
from passhat.history import History, Run
from passhat.history.lookups import SuiteLine, list_suites
from passhat.records import Tally

SUITES_A_PAGE = 20
RUNS_BACK = 12
"""Runs that the small trend of a system looks back on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemLine:
    """One system of a suite: its newest run, its number there, and how it got there."""

    name: str
    run: Run
    tasks: int
    trials: int
    glance: Glance
    spark: Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteBlock:
    """One suite with its systems."""

    suite: SuiteLine
    systems: tuple[SystemLine, ...]
    newest: Run


def suites_on_page(history: History, page: int) -> tuple[list[SuiteLine], int]:
    """The suites of one page, the one that ran last first, and how many there are."""
    suites = list_suites(history)
    first = (page - 1) * SUITES_A_PAGE
    return suites[first : first + SUITES_A_PAGE], len(suites)


def look_at_suite(shelf: Shelf, history: History, suite: SuiteLine) -> SuiteBlock:
    """One suite: the newest number of each of its systems, and how it got there."""
    runs = history.runs(suite=suite.name, limit=RUNS_BACK)
    seen: dict[str, list[tuple[Run, Tally]]] = {}
    for run in runs:
        for tally in shelf.tallies(history, run) if run.trials else ():
            seen.setdefault(tally.system, []).append((run, tally))
    return SuiteBlock(
        suite=suite,
        systems=tuple(_line(name, found) for name, found in sorted(seen.items())),
        newest=runs[0],
    )


def _line(name: str, found: Sequence[tuple[Run, Tally]]) -> SystemLine:
    """`found` is newest first."""
    run, tally = found[0]
    now = glance(tally)
    return SystemLine(
        name=name,
        run=run,
        tasks=len(tally.tasks),
        trials=tally.trials,
        glance=now,
        spark=_spark(name, now.k, [tally for _, tally in reversed(found)]),
    )


def _spark(name: str, k: int, tallies: Sequence[Tally]) -> Figure:
    known = [mean_pass_hat(tally, k) for tally in tallies]
    values = [value for value in known if value is not None]
    moved = (
        f"from {100 * values[0]:.0f} % to {100 * values[-1]:.0f} % over {len(values)} runs"
        if len(values) > 1
        else "one run so far"
    )
    return sparkline(values, title=f"pass^{k} of {name}", finding=f"pass^{k}: {moved}.")
