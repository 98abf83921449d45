"""The verdict on a demand of every single task, on a fixed number of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from passhat.analysis.gates.demands import EveryTaskDemand, Gate
from passhat.analysis.gates.number_gate import error_words, task_evidence
from passhat.analysis.gates.sentences import opening, percentage
from passhat.analysis.gates.verdict import TaskEvidence, Verdict, Word
from passhat.analysis.reports.bars import Bars
from passhat.analysis.reports.subject import Subject
from passhat.errors import ArgumentError
from passhat.messages import listed, plural
from passhat.stats.estimate import Estimate, Unavailable
from passhat.stats.proportions import lower_bound, upper_bound

_NAMED = 5
"""Tasks named in a sentence."""

_CLEARS, _MISSES = "clears its bar", "misses its bar"


def bars_of(demand: EveryTaskDemand, bars: Bars, tasks: Sequence[str]) -> dict[str, float]:
    """The bar of each task; those without one of their own are not gated."""
    if demand.bar is not None:
        return dict.fromkeys(tasks, demand.bar)
    if bars is None:
        raise ArgumentError("bars", 'must be given: the gate says "its bar"', None)
    if isinstance(bars, Mapping):
        found = {task: bars[task] for task in tasks if task in bars}
    else:
        found = dict.fromkeys(tasks, bars)
    if not found:
        raise ArgumentError("bars", 'must be given for some task: the gate says "its bar"', 0)
    return found


def judge_every_task(gate: Gate, subject: Subject) -> Verdict:
    """PASS when every task is shown to clear its bar, FAIL when one is shown to miss it.

    A wrong PASS needs the one bad task to be certified, so each may use alpha (Berger 1982); any
    of T good tasks could bring a wrong FAIL, so each gets beta / T. Exact: Clopper-Pearson.
    """
    demand = gate.demand
    assert isinstance(demand, EveryTaskDemand)
    bars = bars_of(demand, subject.bars, subject.tally.tasks)
    rows = [task for task in task_evidence(gate, subject) if task.task in bars]
    runs, passed = (np.array([getattr(r, name) for r in rows]) for name in ("runs", "passed"))
    bar = np.array([bars[row.task] for row in rows])
    root = bar ** (1 / demand.k)
    above = lower_bound(passed, runs, confidence=1 - gate.alpha) >= root
    below = upper_bound(passed, runs, confidence=1 - gate.beta / len(rows)) < root
    word: Word = "FAIL" if below.any() else "PASS" if above.all() else "UNDECIDED"
    noted = [
        replace(
            row,
            value=row.passed / row.runs if row.runs else None,
            note=_CLEARS if good else _MISSES if bad else "open",
        )
        for row, good, bad in zip(rows, above, below, strict=True)
    ]
    return _verdict(gate, subject, word, noted)


def _verdict(gate: Gate, subject: Subject, word: Word, rows: Sequence[TaskEvidence]) -> Verdict:
    system, total = subject.name, len(rows)
    lowest = min((row.value for row in rows if row.value is not None), default=None)
    return Verdict(
        gate=gate,
        system=system,
        word=word,
        sentence=_sentence(gate, system, word, rows),
        estimate=(
            Unavailable("no task has a run")
            if lowest is None
            else Estimate(
                value=lowest,
                interval=None,
                method="lowest pass rate of a task",
                confidence=1 - gate.alpha,
                tasks=total,
                runs=subject.runs,
                notes=("the verdict rests on the bounds of each task",),
            )
        ),
        evidence="bound",
        method="one-sided Clopper-Pearson a task, exact",
        alpha=gate.alpha,
        beta=gate.beta,
        runs=subject.runs,
        errors=error_words(subject),
        tasks=tuple(rows),
    )


def _sentence(gate: Gate, system: str, word: Word, rows: Sequence[TaskEvidence]) -> str:
    start = opening(gate, system, word)
    if word == "PASS":
        sure = f"{percentage(1 - gate.alpha)} confidence"
        return f"{start}. All {plural(len(rows), 'task')} clear the bar, each at {sure}."
    if word == "FAIL":
        missing = [row for row in rows if row.note == _MISSES]
        return f"{start}. {_names(missing)} {'miss' if len(missing) > 1 else 'misses'} the bar."
    still = [row for row in rows if row.note != _CLEARS]
    cleared = f"{len(rows) - len(still)} of {plural(len(rows), 'task')}"
    return f"{start}. {cleared} clear the bar; open: {_names(still)}."


def _names(rows: Sequence[TaskEvidence]) -> str:
    return listed((f"{row.task} ({row.passed}/{row.runs})" for row in rows), _NAMED)
