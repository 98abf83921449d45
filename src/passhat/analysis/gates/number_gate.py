"""The verdict on one number of the report: by a bound, by a bare point, or before all runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from passhat.analysis.gates.bounds import one_sided, runs_to_settle, word_of
from passhat.analysis.gates.demands import Gate, NumberDemand
from passhat.analysis.gates.sentences import bound_sentence, opening, point_sentence
from passhat.analysis.gates.verdict import TaskEvidence, Verdict, Word
from passhat.analysis.reports.subject import Subject
from passhat.analysis.reports.targets import Target
from passhat.messages import plural
from passhat.records import Tally
from passhat.stats.estimate import Estimate, Unavailable
from passhat.stats.passk import task_values

Planned = Mapping[tuple[str, str], int]
"""How many runs each system was to make of each task."""

_POINT = 'evidence "point" looks at the number alone'
_NO_INTERVAL = "there is no interval for it"


def judge_number(gate: Gate, subject: Subject, planned: Planned) -> Verdict:
    """PASS when the bound meets the demand, FAIL when the other bound misses it."""
    missing = _missing(subject.tally, planned)
    if any(missing.values()) and counts_passes(gate):
        return _judge_unfinished(gate, subject, missing)
    return _judge_finished(gate, subject)


def is_decided(gate: Gate, tally: Tally, planned: Planned) -> bool:
    """Whether the runs still planned can no longer change the verdict of a gate on passes."""
    subject = Subject(tally=tally, trials=None)
    return judge_number(gate, subject, planned).word != "UNDECIDED"


def _judge_finished(gate: Gate, subject: Subject) -> Verdict:
    demand = gate.demand
    assert isinstance(demand, NumberDemand)
    found = one_sided(gate, subject)
    verdict = replace(open_verdict(gate, subject, found), tasks=task_evidence(gate, subject))
    if isinstance(found, Unavailable):
        return replace(verdict, sentence=verdict.sentence + _way_out(demand.target, subject.tally))
    if gate.evidence == "point" or found.interval is None:
        return _point(verdict, found.value, why=_POINT if found.interval else _NO_INTERVAL)
    word = word_of(demand, found.interval)
    independent = not subject.disturbances
    more = runs_to_settle(gate, found) if word == "UNDECIDED" and independent else None
    sentence = bound_sentence(gate, verdict.system, word, found, more_runs=more)
    return replace(verdict, word=word, more_runs=more, sentence=sentence)


def _way_out(target: Target, tally: Tally) -> str:
    """What to do about a streak that no task has the runs for."""
    asked, most = target.attempts, int(tally.runs("fail").max(initial=0))
    if asked is None or not 0 < most < asked[1]:
        return ""
    return f" Run every task at least {asked[1]:,} times, or ask for a k of at most {most}."


def _point(verdict: Verdict, value: float, *, why: str) -> Verdict:
    gate = verdict.gate
    assert isinstance(gate.demand, NumberDemand)
    word: Word = "PASS" if gate.demand.met_by(value) else "FAIL"
    return replace(
        verdict,
        word=word,
        evidence="point",
        alpha=None,
        beta=None,
        sentence=point_sentence(gate, verdict.system, word, value, why=why),
    )


def _judge_unfinished(gate: Gate, subject: Subject, missing: Mapping[str, int]) -> Verdict:
    """The verdict that holds whether all missing runs pass or all fail, if there is one."""
    best, worst = (
        _judge_finished(gate, replace(subject, tally=_completed(subject.tally, missing, passing)))
        for passing in (True, False)
    )
    now, left = _judge_finished(gate, subject), sum(missing.values())
    made, unmade = plural(subject.runs, "run"), plural(left, "run")
    if best.word == worst.word != "UNDECIDED":
        sentence = (
            f"{opening(gate, now.system, best.word)} after {made}: the verdict would be the same "
            f"whatever the {unmade} not made had shown."
        )
        whole = subject.runs + left
        return replace(now, word=best.word, sentence=sentence, more_runs=None, fixed_runs=whole)
    sentence = (
        f"{opening(gate, now.system, 'UNDECIDED')}. {made} made; the {unmade} still planned can "
        "change the verdict."
    )
    return replace(now, word="UNDECIDED", sentence=sentence, more_runs=left)


def counts_passes(gate: Gate) -> bool:
    """Whether more passes can only help: then the missing runs have a best and a worst case."""
    demand = gate.demand
    assert isinstance(demand, NumberDemand)
    return demand.target.is_metric


def _missing(tally: Tally, planned: Planned) -> dict[str, int]:
    """Runs planned and not made, by task; tasks without any run included."""
    made = dict(zip(tally.tasks, tally.runs("fail").tolist(), strict=True))
    wanted = {task: runs for (system, task), runs in planned.items() if system == tally.system}
    return {
        task: runs - made.get(task, 0) for task, runs in wanted.items() if runs > made.get(task, 0)
    }


def _completed(tally: Tally, missing: Mapping[str, int], passing: bool) -> Tally:
    """The tally as if every missing run had passed, or failed."""
    unseen = [task for task in missing if task not in tally.tasks]
    tasks = (*tally.tasks, *unseen)
    more = np.array([missing.get(task, 0) for task in tasks])
    gained = more if passing else np.zeros_like(more)

    def grown(values: NDArray[Any], by: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(np.concatenate([values, np.zeros(len(unseen), values.dtype)]) + by)

    none = np.zeros_like(more)
    return Tally(
        system=tally.system,
        tasks=tasks,
        passed=grown(tally.passed, gained),
        failed=grown(tally.failed, more - gained),
        errored=grown(tally.errored, none),
        score_total=grown(tally.score_total, gained),
        score_squares=grown(tally.score_squares, gained),
    )


def open_verdict(gate: Gate, subject: Subject, found: Estimate | Unavailable) -> Verdict:
    """UNDECIDED on what was found: what a verdict on a fixed number of runs begins as."""
    system = subject.tally.system
    reason = found.reason if isinstance(found, Unavailable) else "nothing is known"
    return Verdict(
        gate=gate,
        system=system,
        word="UNDECIDED",
        sentence=f"{opening(gate, system, 'UNDECIDED')}. {reason}.",
        estimate=found,
        evidence="bound",
        method=found.method if isinstance(found, Estimate) else "none",
        alpha=gate.alpha,
        beta=gate.beta,
        runs=subject.runs,
        errors=error_words(subject),
        notes=found.notes if isinstance(found, Estimate) else (),
    )


def error_words(subject: Subject) -> str:
    """How errored runs counted: never for a PASS."""
    count = int(subject.tally.errored.sum())
    if not count:
        return "no run errored"
    counted = "counted as failures" if subject.errors == "fail" else "left out"
    return f"{plural(count, 'errored run')} {counted}"


def task_evidence(gate: Gate, subject: Subject) -> tuple[TaskEvidence, ...]:
    """What each task contributes, so that anybody can add it up."""
    tally = subject.tally
    runs = tally.runs(subject.errors)
    power = gate.demand.target.attempts if isinstance(gate.demand, NumberDemand) else None
    if power is not None:
        values = task_values(runs, tally.passed, power[1], metric=power[0])
    else:
        values = np.divide(tally.score_total, runs, out=np.full(runs.size, np.nan), where=runs > 0)
    columns = tally.tasks, runs.tolist(), tally.passed.tolist(), tally.errored.tolist()
    return tuple(
        TaskEvidence(
            task=task, runs=n, passed=c, errored=e, value=None if np.isnan(value) else value
        )
        for task, n, c, e, value in zip(*columns, values.tolist(), strict=True)
    )
