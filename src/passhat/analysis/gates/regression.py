"""The verdict on a change: no worse than a baseline, as a suite and task by task."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from passhat.analysis.comparing.comparison import Comparison, compare
from passhat.analysis.comparing.days import Days
from passhat.analysis.gates.bounds import reached_often
from passhat.analysis.gates.demands import BetterDemand, EquivalentDemand, Gate, NoWorseDemand
from passhat.analysis.gates.number_gate import open_verdict
from passhat.analysis.gates.sentences import opening, percentage
from passhat.analysis.gates.verdict import TaskEvidence, Verdict, Word
from passhat.analysis.reports.subject import Subject
from passhat.messages import listed, plural
from passhat.records import Tally, Trials
from passhat.stats.estimate import TASKS_LIKE_THESE, THIS_SUITE, Estimate, Interval, Unavailable
from passhat.stats.multiple_testing import TaskTests, task_tests
from passhat.stats.paired import STATE_A_MARGIN

_NAMED = 5


def judge_no_worse(
    gate: Gate, subject: Subject, baseline: Trials, days: Days | None = None
) -> Verdict:
    """PASS when the difference is shown to lie above -margin, FAIL when shown to lie below.

    With an indifference zone, FAIL when it is shown to lie below -margin + indifference.
    Paired on the shared tasks; the lower end is missed with chance alpha, the upper with beta.
    `days` is how far runs of the same system differ, where the baseline is of another day.
    """
    demand = gate.demand
    assert isinstance(demand, NoWorseDemand)
    found = _difference(gate, demand, subject, baseline, days)
    verdict = open_verdict(gate, subject, found)
    if isinstance(found, Unavailable):
        return verdict
    interval = found.interval
    assert interval is not None, "a paired difference has an interval"
    word = _word(gate, demand, interval)
    more = None if word != "UNDECIDED" else _runs_to_settle(gate, demand, found)
    return replace(
        verdict, word=word, more_runs=more, sentence=_sentence(gate, verdict, word, found, more)
    )


def _word(gate: Gate, demand: NoWorseDemand, interval: Interval) -> Word:
    """What the interval of the difference says about the demand."""
    if isinstance(demand, EquivalentDemand):
        if -demand.margin < interval.low and interval.high < demand.margin:
            return "PASS"
        apart = interval.low > demand.margin or interval.high < -demand.margin
        return "FAIL" if apart else "UNDECIDED"
    bar = -demand.margin
    if interval.low > bar or (interval.low == bar and not isinstance(demand, BetterDemand)):
        return "PASS"
    return "FAIL" if interval.high < bar + (gate.indifference or 0.0) else "UNDECIDED"


def judge_no_task_worse(gate: Gate, subject: Subject, baseline: Tally) -> Verdict:
    """FAIL when a task is shown to be worse: an exact test of each, one Holm family at beta.

    A PASS says that no drop was found which these runs could have found; it has no error rate.
    """
    tests, names, rows = _task_tests(gate, subject, baseline)
    worse = [row for row, answer in zip(rows, tests.answers, strict=True) if answer == "worse"]
    blind = int((~tests.evaluable).sum())
    word: Word = "FAIL" if worse else "UNDECIDED" if blind == len(names) else "PASS"
    found = Estimate(
        value=float(len(worse)),
        interval=None,
        method="tasks shown to be worse",
        confidence=1 - gate.beta,
        tasks=len(names),
        runs=subject.runs,
    )
    more = max(0, tests.minimum_runs * len(names) - subject.runs) if word == "UNDECIDED" else None
    start = opening(gate, subject.tally.system, word)
    return replace(
        open_verdict(gate, subject, found),
        word=word,
        alpha=None,
        method=f"{tests.method}, {tests.correction} over {plural(len(names), 'task')}",
        more_runs=more,
        tasks=rows,
        sentence=f"{start}. {_task_words(gate, word, worse, len(names), blind, tests)}",
    )


def _difference(
    gate: Gate, demand: NoWorseDemand, subject: Subject, baseline: Trials, days: Days | None
) -> Estimate | Unavailable:
    k = int(demand.metric[5:]) if demand.metric != "mean_score" else 1
    ours = subject.tally if subject.trials is None else subject.trials
    ends = {}
    for error in {gate.alpha, gate.beta}:
        found = compare(
            ours,
            baseline,
            ks=(k,),
            confidence=1 - 2 * error,
            errors=subject.errors,
            days=days,
        )
        difference = found.differences[demand.metric]
        number = difference.this_suite if gate.scope == THIS_SUITE else difference.tasks_like_these
        if isinstance(number, Unavailable):
            return number
        ends[error] = number
    low, high = ends[gate.alpha], ends[gate.beta]
    assert low.interval is not None
    assert high.interval is not None
    return Estimate(
        value=low.value,
        interval=Interval(low.interval.low, high.interval.high),
        method=low.method,
        confidence=1 - max(gate.alpha, gate.beta),
        scope=gate.scope,
        tasks=low.tasks,
        runs=subject.runs,
        # the demand itself states a margin
        notes=(
            *(note for note in low.notes if note != STATE_A_MARGIN),
            *([days.note] if days is not None and not days.known else []),
            *_unshared(found),
        ),
    )


def _unshared(found: Comparison) -> tuple[str, ...]:
    notes = []
    for names, where in ((found.only_first, "the baseline"), (found.only_second, "these trials")):
        if names:
            notes.append(f"{plural(len(names), 'task')} not in {where}: {listed(names, _NAMED)}")
    return tuple(notes)


def _runs_to_settle(gate: Gate, demand: NoWorseDemand, found: Estimate) -> int | None:
    """Runs of both sides together that settle it four times in five, by the root law."""
    assert found.interval is not None
    gap = found.value + demand.margin
    if gap == 0 or found.scope == TASKS_LIKE_THESE or not found.runs:
        return None
    reach = found.value - found.interval.low if gap > 0 else found.interval.high - found.value
    needed = reached_often(gate.alpha if gap > 0 else gate.beta) * reach / abs(gap)
    more = int(np.ceil(2 * found.runs * (needed**2 - 1)))
    return max(1, more) if more < 10_000_000 else None


def _sentence(gate: Gate, verdict: Verdict, word: Word, found: Estimate, more: int | None) -> str:
    demand = gate.demand
    assert isinstance(demand, NoWorseDemand)
    assert found.interval is not None
    low, high = (f"{100 * end:+.1f}" for end in (found.interval.low, found.interval.high))
    changed = "The mean score" if demand.metric == "mean_score" else demand.metric
    start = f"{opening(gate, verdict.system, word)}. {changed} changed by "
    start += f"{100 * found.value:+.1f} points"
    if isinstance(demand, EquivalentDemand) and word != "UNDECIDED":
        return f"{start}, between {low} and {high} at {percentage(1 - gate.alpha)} confidence."
    if word == "PASS":
        return f"{start}, no lower than {low} at {percentage(1 - gate.alpha)} confidence."
    if word == "FAIL":
        return f"{start}, no higher than {high} at {percentage(1 - gate.beta)} confidence."
    settle = (
        "no number of further runs would settle it at this difference"
        if more is None
        else f"about {plural(more, 'further run')} of both together would settle it 4 times in 5"
    )
    return f"{start}, between {low} and {high}: {settle}."


def _task_tests(
    gate: Gate, subject: Subject, baseline: Tally
) -> tuple[TaskTests, list[str], tuple[TaskEvidence, ...]]:
    new, old = subject.tally, baseline
    places = {name: j for j, name in enumerate(old.tasks)}
    names = [task for task in new.tasks if task in places]
    here = np.array([i for i, task in enumerate(new.tasks) if task in places], dtype=np.intp)
    there = np.array([places[task] for task in names], dtype=np.intp)
    new_runs, old_runs = new.runs(subject.errors)[here], old.runs(subject.errors)[there]
    tests = task_tests(
        new_runs,
        new.passed[here],
        old_runs,
        old.passed[there],
        alternative="less",
        confidence=1 - gate.beta,
    )
    evidence = tuple(
        TaskEvidence(
            task=name,
            runs=int(new_runs[i]),
            passed=int(new.passed[here[i]]),
            errored=int(new.errored[here[i]]),
            value=float(tests.value[i]),
            note=f"was {old.passed[there[i]]}/{old_runs[i]}; {tests.answers[i]}, "
            f"p = {tests.adjusted[i]:.3g} (Holm)",
        )
        for i, name in enumerate(names)
    )
    return tests, names, evidence


def _task_words(
    gate: Gate, word: Word, worse: list[TaskEvidence], total: int, blind: int, tests: TaskTests
) -> str:
    if word == "FAIL":
        named = listed(
            (
                f"{row.task} ({row.note.split(';')[0]}, now {row.passed}/{row.runs})"
                for row in worse
            ),
            _NAMED,
        )
        sure = percentage(1 - gate.beta)
        return f"Worse at {sure} confidence over all tasks: {named}."
    if word == "UNDECIDED":
        needed = f"that takes {tests.minimum_runs} runs of each task on both sides"
        return f"No task has enough runs to tell a drop from luck; {needed}."
    unseen = f" ({blind} with too few runs to tell)" if blind else ""
    return (
        f"None of {plural(total, 'shared task')} is shown to be worse{unseen}; "
        "small drops may go unseen, so this PASS has no error rate."
    )
