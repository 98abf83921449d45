"""What a stored run is asked beside its report: its baseline, its gates, why its runs fail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from passhat.errors import PasshatError
from passhat.messages import repr_fields

if TYPE_CHECKING:
    from collections.abc import Sequence

    from passhat.analysis.comparing.comparison import Comparison
    from passhat.analysis.explaining.explain import Explanation
    from passhat.analysis.gates.verdict import Verdicts
    from passhat.history import History, Run
    from passhat.records import Tally

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
    now: Sequence[Tally], baseline: Run, before: Sequence[Tally], *, k: int | None = None
) -> BaselineChange | None:
    """The only system of a run against the same one in the baseline; None where there is none."""
    from passhat.analysis.comparing.comparison import compare

    if len(now) != 1:
        return None
    then = next((tally for tally in before if tally.system == now[0].system), None)
    if then is None or not set(then.tasks) & set(now[0].tasks):
        return None
    try:
        found = compare(now[0], then, ks=None if k is None else [k])
    except PasshatError:  # too few shared runs for this k
        return None
    return BaselineChange(baseline=baseline, tagged=BASELINE in baseline.tags, comparison=found)


def explain_run(history: History, run: Run) -> Explanation:
    """Why do runs of a stored run fail?"""
    from passhat.analysis.explaining.explain import explain
    from passhat.history.lookups import all_transcripts

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
