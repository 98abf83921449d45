"""What a stored run is asked beside its report: its baseline, its gates, why its runs fail."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from passhat.errors import PasshatError
from passhat.journeys.results import COUNTED_IN_STORE, open_store, renamed
from passhat.journeys.stored_days import days_around
from passhat.messages import repr_fields

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from passhat.analysis.comparing.comparison import Comparison
    from passhat.analysis.explaining.explain import Explanation
    from passhat.analysis.gates.verdict import Verdicts
    from passhat.analysis.reports.grouped_metrics import RunGroups
    from passhat.history import History, Run
    from passhat.records import Tally, Trials

BASELINE = "baseline"
"""The tag of the run that others are compared with: `passhat history tag latest baseline`."""

_BACK = 20  # runs that are looked through for the one before


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineChange:
    """One system in a run against the baseline; not `tagged`, that is only the run before."""

    baseline: Run
    tagged: bool
    comparison: Comparison

    __repr__ = repr_fields


def baseline_of(history: History, run: Run) -> Run | None:
    """The run of the same suite with the tag "baseline", else the finished run before this one."""
    before = [
        one
        for one in history.runs(suite=run.suite, limit=_BACK)
        if one.key != run.key and one.status == "finished" and one.started <= run.started
    ]
    try:
        tagged = history.find_run(BASELINE)
    except PasshatError:
        tagged = None
    if tagged is not None and tagged.suite == run.suite and BASELINE in tagged.tags:
        return None if tagged.key == run.key else tagged
    return before[0] if before else None


def change_since(
    history: History, run: Run, baseline: Run, *, k: int | None = None
) -> BaselineChange | None:
    """The only system of a run against the same one in the baseline; None where there is none."""
    now = {tally.system: tally for tally in history.tallies(run)}
    before = {tally.system: tally for tally in history.tallies(baseline)}
    (system, *others) = now or ("",)
    if others or system not in before or not set(before[system].tasks) & set(now[system].tasks):
        return None
    sides = StoredSide(run=run, system=system), StoredSide(run=baseline, system=system)
    try:
        found = compare_stored(history, *sides, ks=None if k is None else [k])
    except PasshatError:  # too few shared runs for this k
        return None
    return BaselineChange(baseline=baseline, tagged=BASELINE in baseline.tags, comparison=found)


def change_of_run(store: str | Path, key: str) -> BaselineChange | None:
    """A stored run of one system against its baseline; None where there is none to compare with."""
    from passhat.analysis.reports.headline import glance

    with open_store(store) as history:
        run = history.find_run(key)
        baseline = baseline_of(history, run)
        if baseline is None or not run.trials or not baseline.trials:
            return None
        return change_since(history, run, baseline, k=glance(history.tallies(run)[0]).k)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSide:
    """One system in one stored run; `label` is what an answer calls it."""

    run: Run
    system: str
    label: str | None = None

    def subject(self, history: History) -> Trials | Tally:
        """Its trials; of a huge run its counts."""
        name = self.label or self.system
        if self.run.trials >= COUNTED_IN_STORE:
            found = next(one for one in history.tallies(self.run) if one.system == self.system)
            return replace(found, system=name)
        return renamed(history.trials(self.run).where(system=self.system), name)


def compare_stored(
    history: History, first: StoredSide, second: StoredSide, *, ks: Sequence[int] | None = None
) -> Comparison:
    """Is one system of a stored run better than another, as `compare` says it of those runs?

    Seeds, rounds and the spread between days are part of the answer.
    """
    from passhat.analysis.comparing.comparison import compare

    days = None
    if first.run.id != second.run.id:
        days = days_around(history, second.run, first.run, "fail", system=second.system)
    return compare(first.subject(history), second.subject(history), ks=ks, days=days)


def run_groupings(history: History, run: Run) -> Mapping[str, Sequence[RunGroups]]:
    """What the report of a stored run finds that moved the runs of each system together.

    Of a run so large that its report is made from counts, that is nothing.
    """
    from passhat.analysis.reports.grouped_metrics import groupings_by_system
    from passhat.history.trial_rows import ROUND_COLUMNS

    if not 0 < run.trials < COUNTED_IN_STORE:
        return {}
    return groupings_by_system(history.trials(run, columns=ROUND_COLUMNS))


def explain_run(history: History, run: Run) -> Explanation:
    """Why do runs of a stored run fail?"""
    from passhat.analysis.explaining.explain import explain
    from passhat.history.transcripts import all_transcripts

    return explain(history.trials(run), all_transcripts(history, run))


def gates_of(run: Run) -> tuple[str, ...]:
    """The gates that a run was started with."""
    found = run.options.get("gates")
    return tuple(map(str, found)) if isinstance(found, list) else ()


def judge_run(history: History, run: Run) -> Verdicts | None:
    """The verdicts on a stored run by its own gates; None where it has none, or needs more."""
    from passhat.journeys.gating import gate_results

    require = gates_of(run)
    if not require or run.status != "finished":
        return None
    try:
        return gate_results(history.trials(run), require=require)
    except PasshatError:  # a gate against another run or file, which is not at hand here
        return None
