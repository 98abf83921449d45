"""Two or more runs side by side: compared when there are two systems, ranked when more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from passhat.analysis.comparing.comparison import Comparison
from passhat.analysis.comparing.ranking import RankReport
from passhat.dataclass import dataclass
from passhat.errors import ArgumentError, InputError
from passhat.history import History, Run
from passhat.journeys.analyses import rank_results
from passhat.journeys.overview import ReportCache
from passhat.journeys.stored_runs import StoredSide, compare_stored
from passhat.messages import short_commit
from passhat.records import Tally
from passhat.reporters.formatting import LONGEST_NAME, shorten
from passhat.stats.estimate import Unavailable

MOST_SIDES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One system in one run; `mark` names it in an address."""

    mark: str
    label: str
    run: Run
    tally: Tally
    chosen: bool


def sides_of(
    reports: ReportCache, history: History, runs: Sequence[str], chosen: Sequence[str]
) -> list[Side]:
    """Every system of the named runs; all are chosen if no mark is given."""
    keys = dict.fromkeys([*runs, *(mark.partition(".")[0] for mark in chosen)])
    found = [(run, tally) for run in (history.find_run(key) for key in keys)
             for tally in reports.tallies(history, run)]  # fmt: skip
    names = [tally.system for _, tally in found]
    alone = len(set(names)) == 1
    places: dict[str, int] = {}
    sides = []
    for run, tally in found:
        place = places[run.key] = places.get(run.key, -1) + 1
        mark = f"{run.key}.{place}"
        label = _label(run, tally.system, alone=alone, again=names.count(tally.system) > 1)
        sides.append(
            Side(
                mark=mark, label=label, run=run, tally=tally,
                chosen=mark in chosen if chosen else True,
            )
        )  # fmt: skip
    return sides


def judge_sides(
    history: History, sides: Sequence[Side], *, metric: str
) -> Comparison | RankReport | Unavailable:
    """The answer about the chosen sides."""
    chosen = [side for side in sides if side.chosen]
    if len(chosen) < 2:
        return Unavailable("Choose at least two systems or runs to compare")
    if len(chosen) > MOST_SIDES:
        return Unavailable(f"{len(chosen)} are too many to read at once: choose {MOST_SIDES}")
    try:
        if len(chosen) == 2:
            first, second = (
                StoredSide(run=one.run, system=one.tally.system, label=one.label) for one in chosen
            )
            return compare_stored(history, first, second)
        return rank_results([replace(one.tally, system=one.label) for one in chosen], by=metric)
    except (ArgumentError, InputError) as error:
        return Unavailable(str(error))


def _label(run: Run, system: str, *, alone: bool, again: bool) -> str:
    """One system over several runs goes by run and commit; one that occurs once by its own name."""
    if not again:
        return system
    commit = short_commit(run.checkout.commit)
    called = f"{run.tags[0] if run.tags else run.key} {commit}".strip()
    return called if alone else f"{shorten(system, LONGEST_NAME - len(called) - 3)} ({called})"
