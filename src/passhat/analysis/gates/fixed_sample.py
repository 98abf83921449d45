"""Verdicts on a fixed number of runs: on a number, on every task, on a change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import ceil, log1p
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from passhat.analysis.comparing.comparison import Comparison, Days, compare
from passhat.analysis.gates.gate import (
    NO_ERRORS,
    BetterRequirement,
    EquivalentRequirement,
    EveryTaskRequirement,
    Gate,
    NoWorseRequirement,
    Status,
    TaskEvidence,
    ThresholdRequirement,
    Verdict,
    VerdictNote,
    bound_words,
    percentage,
    shown,
    tasks_meet,
)
from passhat.analysis.reports.evidence import Evidence, count_evidence
from passhat.analysis.reports.judged import CorrectedDifference
from passhat.analysis.reports.measure import measure, run_sequences
from passhat.analysis.reports.metrics import Bars, SystemTrials, measure_metrics
from passhat.analysis.reports.targets import Target, parse_target
from passhat.errors import ArgumentError
from passhat.messages import capitalised, few, listed, metric_label, percent, plural, signed_points
from passhat.records import Tally, Trials
from passhat.stats.estimate import (
    TASKS_LIKE_THESE,
    THIS_SUITE,
    Estimate,
    Interval,
    Number,
    Scope,
    Unavailable,
    hull,
)
from passhat.stats.judged import limits_of_pass_hat
from passhat.stats.multiple_testing import TaskTests, task_tests
from passhat.stats.paired import SETTLING_POWER, STATE_A_MARGIN, PairedDifference
from passhat.stats.passk import task_values
from passhat.stats.proportions import lower_bound, proportion_interval, upper_bound
from passhat.stats.special import ndtri
from passhat.stats.suite_mean import score_estimate, suite_estimate
from passhat.stats.usage import quantile_estimate

Planned = Mapping[tuple[str, str], int]
"""How many runs each system was to make of each task."""

_POINT = '`evidence="point"` looks at the number alone'
_NO_INTERVAL = "there is no interval for it"
_LABELS = "labels of people"


def judge_number(gate: Gate, subject: SystemTrials, planned: Planned) -> Verdict:
    """PASS when the bound meets the demand, FAIL when the other bound misses it."""
    missing = _missing(subject.tally, planned)
    if any(missing.values()) and counts_passes(gate):
        return _judge_unfinished(gate, subject, planned)
    return _judge_finished(gate, subject)


def is_decided(gate: Gate, tally: Tally, planned: Planned) -> bool:
    """Whether the runs still planned can no longer change the verdict of a gate on passes."""
    return judge_number(gate, SystemTrials.of(tally), planned).status != "UNDECIDED"


def best_and_worst(gate: Gate, subject: SystemTrials, planned: Planned) -> tuple[Verdict, Verdict]:
    """What a gate on passes will say if all runs still planned pass, and if all of them fail."""
    missing = _missing(subject.tally, planned)
    best, worst = (
        _judge_finished(gate, replace(subject, tally=_completed(subject.tally, missing, passing)))
        for passing in (True, False)
    )
    return best, worst


def _judge_finished(gate: Gate, subject: SystemTrials) -> Verdict:
    demand = gate.demand
    assert isinstance(demand, ThresholdRequirement)
    estimate = one_sided(gate, subject)
    verdict = replace(open_verdict(gate, subject, estimate), tasks=task_evidence(gate, subject))
    verdict = _with_tasks_left_out(verdict, demand.target, subject)
    if isinstance(estimate, Unavailable):
        way_out = _way_out(gate, subject)
        return replace(verdict, clauses=(estimate.reason + way_out,))
    if gate.evidence == "point" or estimate.interval is None:
        return _point(verdict, estimate.value, why=_POINT if estimate.interval else _NO_INTERVAL)
    status = status_of(demand, estimate.interval)
    independent = not subject.disturbances and not estimate.by_labels
    # A bound on trials that gates ended promises nothing, and so does one on more of them.
    ended = subject.trials is not None and any(s.ended for s in subject.trials.sources)
    open_ = status == "UNDECIDED" and independent and not ended
    more = runs_to_settle(gate, estimate) if open_ else None
    words = bound_words(gate, status, estimate, more_runs=more)
    seen = "" if status == "UNDECIDED" else bound_words(gate, status, estimate, rate=False)
    return replace(verdict, status=status, more_runs=more, clauses=(words,), seen=seen)


def _with_tasks_left_out(verdict: Verdict, target: Target, subject: SystemTrials) -> Verdict:
    """The verdict, with the tasks that its number is without: fewer trials must not hide a task."""
    estimate = verdict.estimate
    if isinstance(estimate, Unavailable) or not (short := _left_out(target, subject)):
        return verdict
    bounded = estimate.interval is not None and estimate.scope == THIS_SUITE
    bounded = bounded and verdict.gate.evidence != "point"
    total = (estimate.tasks or 0) + len(short)
    without = _without_words(short, total, target.k or 1, str(target))
    note = f"{without}, and the bounds allow for any outcome there" if bounded else without
    return replace(verdict, remarks=(*verdict.remarks, VerdictNote(note, "on screen")))


def _without_words(
    short: Sequence[str], total: int, k: int, number: str, *, where: str = ""
) -> str:
    """That a number is without the tasks that have fewer than k trials which count."""
    have, them = ("has", "it") if len(short) == 1 else ("have", "them")
    few_of = f"fewer than {k:,} trials" if k > 1 else "no trial that counts"
    which = few(short, _NAMED)
    some = f"{len(short):,} of {plural(total, 'task')} {have} {few_of}{where} ({which})"
    return f"{some}: {number} is without {them}"


def _left_out(target: Target, subject: SystemTrials) -> tuple[str, ...]:
    """The tasks with too few trials for a mean score, pass^k or pass@k, of all or of one part."""
    part = _part(target, subject.trials)
    if part is None and not target.is_metric:
        return ()
    tally = subject.tally if part is None else part.tally()
    return _short_of(target.k or 1, count_evidence(tally, subject.options))


def _short_of(k: int, evidence: Evidence) -> tuple[str, ...]:
    """The tasks with fewer than k trials that count."""
    return (*evidence.without, *evidence.short_of(k))


def _part(target: Target, trials: Trials | None) -> Trials | None:
    """The trials with the tag or of the level that a number is about; None if it is about all."""
    kind = next((kind for kind in ("tag", "level") if kind in target.names), None)
    if trials is None or kind is None:
        return None
    column = "tags" if kind == "tag" else "level"
    return trials.take(trials.has_word(column, target.names[kind]))


def _way_out(gate: Gate, subject: SystemTrials) -> str:
    """How many trials would do for a streak that no task has them for, of all or of one part."""
    demand = gate.demand
    assert isinstance(demand, ThresholdRequirement)
    target, part = demand.target, _part(demand.target, subject.trials)
    if part is not None and not len(part):
        return ""
    k = target.k if part is not None or target.is_metric else None
    tally = subject.tally if part is None else part.tally()
    most = int(tally.runs("fail").max(initial=0))
    if k is None or not 0 < most < k:
        return ""
    if not demand.upward:
        return f". Run every task at least {k:,} times"
    if part is not None:
        gate = replace(gate, demand=replace(demand, target=_without_part(target)))
    tasks = len(tally.tasks)
    enough = fewest_runs(lambda runs: passes_if_all_pass(gate, [runs] * tasks), least=k)
    return f". {capitalised(flawless_needs(enough, tasks))} to PASS"


def passes_if_all_pass(gate: Gate, runs: Sequence[int]) -> bool:
    """Whether a suite whose every run passes gets a PASS by so many runs of each task."""
    each = np.array(runs)
    none, all_passed = np.zeros_like(each), each.astype(float)
    perfect = Tally(
        system="", tasks=tuple(map(str, range(len(runs)))), passed=each, failed=none, errored=none,
        score_total=all_passed, score_squares=all_passed,
    )  # fmt: skip
    return judge_number(replace(gate, evidence=None), SystemTrials.of(perfect), {}).status == "PASS"


_MOST_RUNS_TRIED = 1_024
"""Trials of each task up to which `fewest_runs` looks for enough."""


def fewest_runs(are_enough: Callable[[int], bool], *, least: int = 1) -> int | None:
    """The fewest runs of each task that are enough, found by halving; None if too many.

    >>> fewest_runs(lambda runs: runs >= 202, least=60)
    202
    """
    low, high = least - 1, least
    while high > _MOST_RUNS_TRIED or not are_enough(high):
        if high >= _MOST_RUNS_TRIED:
            return None
        low, high = high, min(2 * high, _MOST_RUNS_TRIED)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if are_enough(middle) else (middle, high)
    return high


def flawless_needs(runs: int | None, tasks: int) -> str:
    """How many trials it takes at least to show a rate, in words; None is more than were tried."""
    count = f"more than {_MOST_RUNS_TRIED:,}" if runs is None else f"{runs:,}"
    each = f"{count} of each task" if tasks > 1 else f"{count} trial{'s' * (runs != 1)}"
    return f"an agent that never fails needs {each}"


def _point(verdict: Verdict, value: float, *, why: str) -> Verdict:
    demand = verdict.gate.demand
    assert isinstance(demand, ThresholdRequirement)
    number = shown(value, demand.threshold, share=demand.target.is_share)
    return replace(
        verdict,
        status="PASS" if demand.met_by(value) else "FAIL",
        evidence="point",
        alpha=None,
        beta=None,
        clauses=(
            f"{metric_label(str(demand.target))} is {number}",
            f"{why}, so this verdict has no error rate",
        ),
    )


def _judge_unfinished(gate: Gate, subject: SystemTrials, planned: Planned) -> Verdict:
    """The verdict that holds whether all missing runs pass or all fail, if there is one."""
    best, worst = best_and_worst(gate, subject, planned)
    now = _judge_finished(gate, subject)
    left = sum(_missing(subject.tally, planned).values())
    made, unmade = plural(subject.runs, "trial"), plural(left, "trial")
    if best.status == worst.status != "UNDECIDED":
        words = f"the verdict would be the same whatever the {unmade} not made had shown"
        return replace(
            now, status=best.status, after=made, clauses=(words,), unmade=left, more_runs=None,
            fixed_runs=subject.runs + left,
        )  # fmt: skip
    clauses = (f"{made} made", f"the {unmade} still planned can change the verdict")
    return replace(now, status="UNDECIDED", clauses=clauses, unmade=left, more_runs=left)


def counts_passes(gate: Gate) -> bool:
    """Whether more passes can only help: then the missing runs have a best and a worst case."""
    demand = gate.demand
    assert isinstance(demand, ThresholdRequirement)
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


def open_verdict(gate: Gate, subject: SystemTrials, estimate: Estimate | Unavailable) -> Verdict:
    """UNDECIDED on what was found: what a verdict on a fixed number of runs begins as."""
    reason = estimate.reason if isinstance(estimate, Unavailable) else "nothing is known"
    return Verdict(
        gate=gate,
        system=subject.tally.system,
        status="UNDECIDED",
        clauses=(reason,),
        estimate=estimate,
        evidence="bound",
        method=estimate.method if isinstance(estimate, Estimate) else "none",
        alpha=gate.alpha,
        beta=gate.beta,
        runs=subject.runs,
        errors=error_words(subject),
        error_rule=subject.errors,
        remarks=tuple(map(VerdictNote, getattr(estimate, "notes", ()))),
    )


def error_words(subject: SystemTrials) -> str:
    """How errored runs counted: never for a PASS."""
    count = int(subject.tally.errored.sum())
    if not count:
        return NO_ERRORS
    single = count == 1
    fail = "counts as failed" if single else "count as failed"
    counted = fail if subject.errors == "fail" else f"{'is' if single else 'are'} left out"
    trials = plural(int(subject.tally.runs("fail").sum()), "trial")
    return f"{count:,} of {trials} errored and {counted}"


def task_evidence(gate: Gate, subject: SystemTrials) -> tuple[TaskEvidence, ...]:
    """What each task contributes, so that anybody can add it up."""
    tally = subject.tally
    runs = tally.runs(subject.errors)
    power = gate.demand.target.attempts if isinstance(gate.demand, ThresholdRequirement) else None
    if power is not None:
        values = task_values(runs, tally.passed, power[1], metric=power[0])
    else:
        values = np.divide(tally.score_total, runs, out=np.full(runs.size, np.nan), where=runs > 0)
    columns = tally.tasks, runs.tolist(), tally.passed.tolist(), tally.errored.tolist()
    trials = subject.trials
    order = () if trials is None else zip(trials.tasks, run_sequences(trials) or (), strict=False)
    sequences = dict(order)
    return tuple(
        TaskEvidence(
            task=task,
            runs=n,
            passed=c,
            errored=e,
            value=None if np.isnan(value) else value,
            sequence=sequences.get(task, ""),
        )
        for task, n, c, e, value in zip(*columns, values.tolist(), strict=True)
    )


# A demand of every single task.

_NAMED = 5
"""Tasks named in a sentence."""

_CLEARS, _MISSES = "clears its bar", "misses its bar"


def bars_of(demand: EveryTaskRequirement, bars: Bars, tasks: Sequence[str]) -> dict[str, float]:
    """The bar of each task. One without a bar is refused: it would be gated by nothing."""
    if demand.bar is not None:
        return dict.fromkeys(tasks, demand.bar)
    if bars is None:
        raise ArgumentError("bars", 'must be given: the gate says "its bar"', None)
    if isinstance(bars, Mapping):
        wanted = {task: bars[task] for task in tasks if task in bars}
    else:
        wanted = dict.fromkeys(tasks, bars)
    if without := [task for task in tasks if task not in wanted]:
        raise ArgumentError(
            "bars",
            f'must be given for every task, as the gate says "its bar": {len(without):,} of '
            f"{plural(len(tasks), 'task has', 'tasks have')} none ({few(without)}); one number "
            "stands for all others, and 0 demands nothing of them",
            dict(wanted),
        )
    return wanted


def judge_every_task(gate: Gate, subject: SystemTrials) -> Verdict:
    """PASS when every task is shown to clear its bar, FAIL when one is shown to miss it.

    A wrong PASS needs the one bad task to be certified, so each may use alpha (Berger 1982); any
    of T good tasks could bring a wrong FAIL, so each gets beta / T. Exact: Clopper-Pearson.
    """
    demand = gate.demand
    assert isinstance(demand, EveryTaskRequirement)
    bars = bars_of(demand, subject.options.bars, subject.tally.tasks)
    rows = [task for task in task_evidence(gate, subject) if task.task in bars]
    runs, passed = (np.array([getattr(r, name) for r in rows]) for name in ("runs", "passed"))
    bar = np.array([bars[row.task] for row in rows])
    root = bar ** (1 / demand.k)
    above = lower_bound(passed, runs, confidence=1 - gate.alpha) >= root
    below = upper_bound(passed, runs, confidence=1 - gate.beta / len(rows)) < root
    status: Status = "FAIL" if below.any() else "PASS" if above.all() else "UNDECIDED"
    noted = [
        replace(
            row,
            value=row.passed / row.runs if row.runs else None,
            note=_CLEARS if good else _MISSES if bad else "open",
        )
        for row, good, bad in zip(rows, above, below, strict=True)
    ]
    return _verdict(gate, subject, status, noted)


def _verdict(
    gate: Gate, subject: SystemTrials, status: Status, rows: Sequence[TaskEvidence]
) -> Verdict:
    lowest = min((row.value for row in rows if row.value is not None), default=None)
    return Verdict(
        gate=gate,
        system=subject.name,
        status=status,
        clauses=_every_task_clauses(gate, status, rows),
        estimate=(
            Unavailable("no task has a trial")
            if lowest is None
            else Estimate(
                value=lowest,
                interval=None,
                method="lowest pass rate of a task",
                confidence=1 - gate.alpha,
                tasks=len(rows),
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
        error_rule=subject.errors,
        tasks=tuple(rows),
    )


def _every_task_clauses(
    gate: Gate, status: Status, rows: Sequence[TaskEvidence]
) -> tuple[str, ...]:
    if status == "PASS":
        sure = f"{percentage(1 - gate.alpha)} confidence"
        return (f"{tasks_meet(len(rows), len(rows), met=True)}, each at {sure}",)
    missing = [row for row in rows if row.note == _MISSES]
    if status == "FAIL":
        return (f"{tasks_meet(len(missing), len(rows), met=False)}: {_names(missing)}",)
    still = [row for row in rows if row.note != _CLEARS]
    cleared = tasks_meet(len(rows) - len(still), len(rows), met=True)
    return cleared, f"open: {_names(still)}"


def _names(rows: Sequence[TaskEvidence]) -> str:
    lowest = sorted(rows, key=lambda row: row.passed / max(row.runs, 1))
    return listed((f"{row.task} {row.passed}/{row.runs}" for row in lowest), _NAMED)


# A demand on the difference from a baseline, as a suite and task by task.


def judge_no_worse(
    gate: Gate, subject: SystemTrials, baseline: Trials, days: Days | None = None
) -> Verdict:
    """PASS when the difference is shown to lie above -margin, FAIL when shown to lie below.

    With an indifference zone, FAIL when it is shown to lie below -margin + indifference.
    Paired on the shared tasks; the lower end is missed with chance alpha, the upper with beta.
    `days` is how far runs of the same system differ, where the baseline is of another day.
    """
    demand = gate.demand
    assert isinstance(demand, NoWorseRequirement)
    difference = _difference(gate, demand, subject, baseline, days)
    verdict = open_verdict(gate, subject, difference)
    if isinstance(difference, Unavailable):
        return verdict
    interval = difference.interval
    assert interval is not None, "a paired difference has an interval"
    status = status_of_difference(gate, demand, interval)
    more = None if status != "UNDECIDED" else _runs_to_settle(gate, demand, difference)
    sides = subject, SystemTrials.of(baseline, subject.options)
    rate = demand.metric == "mean_score" and all(side.evidence.all_or_nothing for side in sides)
    changed = metric_label("pass^1" if rate else demand.metric)
    words, seen = _regression_words(gate, status, difference, more, changed)
    new, old = (set(side.tally.tasks) - {*_short_of(demand.k, side.evidence)} for side in sides)
    shared = [task for task in subject.tally.tasks if task in sides[1].tally.tasks]
    if short := [task for task in shared if task not in new & old]:
        note = _without_words(short, len(shared), demand.k, "the change", where=" on one side")
        verdict = replace(verdict, remarks=(*verdict.remarks, VerdictNote(note, "on screen")))
    return replace(verdict, status=status, more_runs=more, clauses=(words,), seen=seen)


def status_of_difference(gate: Gate, demand: NoWorseRequirement, interval: Interval) -> Status:
    """What the interval of the difference says about the demand."""
    if isinstance(demand, EquivalentRequirement):
        if -demand.margin < interval.low and interval.high < demand.margin:
            return "PASS"
        apart = interval.low > demand.margin or interval.high < -demand.margin
        return "FAIL" if apart else "UNDECIDED"
    bar = -demand.margin
    if interval.low > bar or (interval.low == bar and not isinstance(demand, BetterRequirement)):
        return "PASS"
    return "FAIL" if interval.high < bar + (gate.indifference or 0.0) else "UNDECIDED"


def judge_no_task_worse(gate: Gate, subject: SystemTrials, baseline: Tally) -> Verdict:
    """FAIL when a task is shown to be worse: an exact test of each, one Holm family at beta.

    A PASS says that no drop was found which these runs could have found; it has no error rate.
    """
    tests, names, rows = _task_tests(gate, subject, baseline)
    worse = [row for row in rows if row.worse]
    blind = int((~tests.evaluable).sum())
    status: Status = "FAIL" if worse else "UNDECIDED" if blind == len(names) else "PASS"
    estimate = Estimate(
        value=float(len(worse)),
        interval=None,
        method="tasks shown to be worse",
        confidence=1 - gate.beta,
        tasks=len(names),
        runs=subject.runs,
    )
    more = max(0, tests.minimum_runs * len(names) - subject.runs) if status == "UNDECIDED" else None
    return replace(
        open_verdict(gate, subject, estimate),
        status=status,
        alpha=None,
        method=f"{tests.method}, {tests.correction} over {plural(len(names), 'task')}",
        more_runs=more,
        tasks=rows,
        clauses=_task_words(gate, status, worse, len(names), blind, tests),
    )


def _difference(
    gate: Gate,
    demand: NoWorseRequirement,
    subject: SystemTrials,
    baseline: Trials,
    days: Days | None,
) -> Estimate | Unavailable:
    k = demand.k
    ours = subject.tally if subject.trials is None else subject.trials
    ends = {}
    for error in {gate.alpha, gate.beta}:
        level = 1 - 2 * error
        comparison = compare(
            ours, baseline, ks=(k,), confidence=level, errors=subject.errors, days=days
        )
        difference = comparison.differences[demand.metric]
        number = difference.this_suite if gate.scope == THIS_SUITE else difference.tasks_like_these
        if isinstance(number, Unavailable):
            return number
        ends[error] = _difference_by_labels(number, difference.corrected, gate.scope)
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
        by_labels=low.by_labels if isinstance(low, Estimate) else None,
        # the demand itself states a margin, and the verdict names the tasks
        notes=(
            *(n for n in low.notes if n != STATE_A_MARGIN and not n.endswith("left out")),
            *([days.note] if days is not None and not days.known else []),
            *_unshared(comparison),
        ),
    )


def _difference_by_labels(
    judged: PairedDifference | Estimate, corrected: CorrectedDifference | None, scope: Scope
) -> PairedDifference | Estimate:
    """The difference as people would have graded both, where they labelled enough of them."""
    if corrected is None:
        return judged
    count = plural(sum(corrected.labels), "label")
    number = corrected.within(scope)
    if isinstance(number, Unavailable):
        note = f"by the judge's verdicts: {count} of people do not correct them ({number.reason})"
        return replace(judged, notes=(*judged.notes, note))
    size = signed_points(judged.value, digits=1)
    own = f"corrected with {count} of people; by the judge it is {size} points"
    method = f"{_LABELS}: {number.method}"
    return replace(number, method=method, notes=(own, *number.notes), by_labels="value")


def _unshared(comparison: Comparison) -> tuple[str, ...]:
    """Tasks that are new; those that only the baseline has, every gate on one names."""
    names = comparison.only_first
    if not names:
        return ()
    return (f"{plural(len(names), 'task')} not in the baseline: {listed(names, _NAMED)}",)


def _runs_to_settle(gate: Gate, demand: NoWorseRequirement, seen: Estimate) -> int | None:
    """Runs of both sides together that settle it four times in five, by the root law."""
    assert seen.interval is not None
    gap = seen.value + demand.margin
    if gap == 0 or seen.scope == TASKS_LIKE_THESE or seen.by_labels or not seen.runs:
        return None
    reach = seen.value - seen.interval.low if gap > 0 else seen.interval.high - seen.value
    needed = reached_often(gate.alpha if gap > 0 else gate.beta) * reach / abs(gap)
    more = int(np.ceil(2 * seen.runs * (needed**2 - 1)))
    return max(1, more) if more < 10_000_000 else None


def _regression_words(
    gate: Gate, status: Status, seen: Estimate, more: int | None, changed: str
) -> tuple[str, str]:
    """What the difference is, and the same without it where it is decided: its bound alone."""
    assert seen.interval is not None
    low, value, high = (
        signed_points(share, digits=1)
        for share in (seen.interval.low, seen.value, seen.interval.high)
    )
    changed = f"{'The mean score' if changed == 'mean score' else changed} changed by"
    whole = f"{changed} {value} points"
    if status != "UNDECIDED":
        both = isinstance(gate.demand, EquivalentRequirement)
        sure = percentage(1 - (gate.beta if status == "FAIL" and not both else gate.alpha))
        bound, how_low = (
            (f"between {low} and {high}",) * 2
            if both
            else (f"at least {low}", f"no lower than {low}")
            if status == "PASS"
            else (f"at most {high}", f"no higher than {high}")
        )
        return (
            f"{whole}, {how_low} at {sure} confidence",
            f"{changed} {bound} points at {sure} confidence",
        )
    whole += f", between {low} and {high}"
    settle = (
        "more labels of both would decide it, if this difference holds"
        if seen.by_labels
        else "no number of trials would decide it at this difference"
        if more is None
        else f"about {plural(more, 'more trial')} of both together would decide it 4 times in 5"
    )
    return f"{whole}: {settle}", ""


def _task_tests(
    gate: Gate, subject: SystemTrials, baseline: Tally
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
            before=(int(old.passed[there[i]]), int(old_runs[i])),
            worse=tests.answers[i] == "worse",
            note=f"was {old.passed[there[i]]}/{old_runs[i]}; {tests.answers[i]}, "
            f"p = {tests.adjusted[i]:.3g} (Holm)",
        )
        for i, name in enumerate(names)
    )
    return tests, names, evidence


def _task_words(
    gate: Gate, status: Status, worse: list[TaskEvidence], total: int, blind: int, tests: TaskTests
) -> tuple[str, ...]:
    if status == "FAIL":
        named = listed((row.change for row in worse), _NAMED)
        sure = percentage(1 - gate.beta)
        return (f"Worse at {sure} confidence over all tasks: {named}",)
    if status == "UNDECIDED":
        needed = f"that takes {tests.minimum_runs} trials of each task on both sides"
        return "No task has enough trials to tell a drop from luck", needed
    unseen = f" ({blind} with too few trials to tell)" if blind else ""
    return (
        f"None of {plural(total, 'task')} is shown to be worse{unseen}",
        "small drops may go unseen, so this PASS has no error rate",
    )


# One-sided bounds, each at the error rate it guards against. A gate's PASS needs the bound that a
# wrong PASS would have to beat. So the two ends come from two intervals: one at 1 - 2 alpha, whose
# near end is missed with chance alpha, and one at 1 - 2 beta.

_MOST_RUNS = 10_000_000


def one_sided(gate: Gate, subject: SystemTrials) -> Number:
    """The number a gate demands, with a lower and an upper bound at the gate's own error rates."""
    demand = gate.demand
    assert isinstance(demand, ThresholdRequirement)
    # the end that a PASS rests on is missed with chance alpha, the other with chance beta
    errors = (gate.alpha, gate.beta) if demand.upward else (gate.beta, gate.alpha)
    ends = {error: _estimate(gate, demand.target, subject, 1 - 2 * error) for error in {*errors}}
    low, high = (ends[error] for error in errors)
    if not isinstance(low, Estimate) or not isinstance(high, Estimate):
        return low
    if low.interval is None or high.interval is None:
        return replace(low, interval=None)
    interval = Interval(min(low.interval.low, low.value), max(high.interval.high, high.value))
    return replace(
        low,
        interval=interval,
        method=f"{low.method}; each end one-sided",
        confidence=1 - max(errors),
    )


def status_of(demand: ThresholdRequirement, interval: Interval) -> Status:
    """PASS when the whole interval meets the demand, FAIL when none of it does."""
    met = demand.met_by(interval.low), demand.met_by(interval.high)
    return "PASS" if all(met) else "UNDECIDED" if any(met) else "FAIL"


def runs_to_settle(gate: Gate, estimate: Estimate) -> int | None:
    """Further runs that settle an undecided gate four times in five, if the rate is what was seen.

    Bounds close in with the root of the number of runs; if nothing varied, the logarithm of what
    they leave does with the number, as error^(1/n) does. The chance is that of `compare` and
    `plan`, so that all three name the same number of runs.
    """
    demand = gate.demand
    assert isinstance(demand, ThresholdRequirement)
    interval, runs = estimate.interval, estimate.runs
    gap = abs(estimate.value - demand.threshold)
    if interval is None or not runs or gap == 0 or estimate.scope != THIS_SUITE:
        return None
    upper = demand.upward != demand.met_by(estimate.value)
    distance = interval.high - estimate.value if upper else estimate.value - interval.low
    error = gate.alpha if upper != demand.upward else gate.beta
    growth = (reached_often(error) * distance / gap) ** 2
    if estimate.value in (0.0, 1.0):  # nothing varied
        growth = distance / gap
        if demand.target.is_share and distance < 1:
            growth = log1p(-distance) / log1p(-gap)
    more = max(1, ceil(runs * (growth - 1)))
    return more if more <= _MOST_RUNS else None


def reached_often(error: float) -> float:
    """How much shorter than the gap the arm of a one-sided bound must be to settle it 4 in 5 times.

    With an arm of just the gap it is settled half of the time.
    """
    return 1 + float(ndtri(SETTLING_POWER)) / float(ndtri(1 - error))


def _estimate(gate: Gate, target: Target, subject: SystemTrials, confidence: float) -> Number:
    target = _of_every_task(target, subject.trials)
    if target.is_metric:
        by_verdicts = _metric(gate, target, subject, confidence)
        return _by_labels(by_verdicts, gate, target, subject, confidence)
    if target.name == "error_rate" or target.tool:
        return _share_of_trials(target, subject, confidence)
    if target.quantile:
        feature, share = target.quantile
        if subject.trials is None or feature not in subject.trials.features:
            return Unavailable(f"no trial recorded its {feature}")
        return quantile_estimate(subject.trials.features[feature], share, confidence=confidence)
    return _any_target(gate, target, subject, confidence)


def _of_every_task(target: Target, trials: Trials | None) -> Target:
    """The number itself where all tasks have the tag or level: reports leave such a part out."""
    part = _part(target, trials)
    every = trials is not None and part is not None and len(part) == len(trials)
    return _without_part(target) if every else target


def _without_part(target: Target) -> Target:
    """The number of all tasks that a number of those with one tag or level is."""
    return parse_target(target.name.rpartition("].")[2])


def _metric(gate: Gate, target: Target, subject: SystemTrials, confidence: float) -> Number:
    evidence = subject.evidence
    if not evidence.tasks:
        return Unavailable(f"{target} needs a trial; no task has one")
    # Without partial credit the mean score is pass^1, by the same interval as in a report.
    power = target.attempts or (("pass^k", 1) if evidence.all_or_nothing else None)
    grouped: dict[str, Any] = {"family": evidence.family, "weight": evidence.weight}
    if power is None:
        estimate = score_estimate(
            *evidence.score_sums, scope=gate.scope, confidence=confidence, **grouped
        )
    else:
        metric, k = power
        counts = evidence.runs, evidence.passes
        estimate = suite_estimate(
            *counts, metric=metric, k=k, scope=gate.scope, confidence=confidence, **grouped
        )
    estimate = _including_groups(estimate, gate, target, subject, confidence)
    if isinstance(estimate, Unavailable) or gate.scope != THIS_SUITE:
        return estimate
    if len(evidence.tasks) == 1 and power:
        estimate = _one_task(estimate, evidence, power, confidence)
    short = len(_left_out(target, subject))
    known = _with_unknown_tasks(estimate, short)
    if not short or power is None or evidence.family or evidence.weight is not None:
        return known
    interval = _interval_of_all(evidence, power, confidence)
    if subject.groupings and known.interval is not None:
        interval = hull(interval, known.interval)
    return replace(estimate, interval=interval)


def _interval_of_all(evidence: Evidence, power: tuple[str, int], confidence: float) -> Interval:
    """The interval for all tasks: runs that one is short of k fail, or pass for the upper end.

    So a further failure raises no lower end either where a task gets its k-th run by it.
    """
    metric, k = power
    none = np.zeros(len(evidence.without), dtype=np.int64)
    runs, passes = (np.append(counts, none) for counts in (evidence.runs, evidence.passes))
    missing, ends = np.maximum(k - runs, 0), []
    for passing in (0, missing):
        estimate = suite_estimate(
            runs + missing, passes + passing, metric=metric, k=k, confidence=confidence
        )
        assert isinstance(estimate, Estimate)
        assert estimate.interval is not None
        ends.append(estimate.interval)
    return Interval(ends[0].low, ends[1].high)


def _by_labels(
    result: Number, gate: Gate, target: Target, subject: SystemTrials, confidence: float
) -> Number:
    """The number as people would have graded the trials, where they labelled enough of them.

    Without a corrected pass^k, its limits hold whatever the judge's errors depend on.
    """
    labels = subject.labels
    metric, k = target.attempts or ("pass^k", 1)
    partial = target.attempts is None and not subject.evidence.all_or_nothing
    if (
        labels is None
        or isinstance(result, Unavailable)
        or partial
        or (metric != "pass^k" and k > 1)
    ):
        return result
    number = labels.number(k, gate.scope, confidence)
    known: Literal["value", "limits"] = "value"
    if isinstance(number, Unavailable) and k > 1:
        rate = labels.number(1, gate.scope, confidence)
        if isinstance(rate, Estimate):
            known = "limits"
            number = replace(
                rate,
                value=rate.value**k,
                interval=limits_of_pass_hat(rate, k),
                method="limits from pass@1",
                notes=(f"for a number in place of limits {number.reason}",),
            )
    count = plural(labels.used, "label")
    if isinstance(number, Unavailable):
        note = f"by the judge's verdicts: {count} of people do not correct them ({number.reason})"
        return replace(result, notes=(*result.notes, note))
    value = percent(result.value, digits=1)
    own = f"corrected with {count} of people; by the judge {target} is {value}"
    return replace(
        number, scope=gate.scope, method=f"{_LABELS}: {number.method}", by_labels=known,
        notes=(own, *number.notes),
    )  # fmt: skip


def _including_groups(
    estimate: Number, gate: Gate, target: Target, subject: SystemTrials, confidence: float
) -> Number:
    """No narrower than a report of the same trials, which includes what moved runs together."""
    if isinstance(estimate, Unavailable) or not subject.groupings:
        return estimate
    _, k = target.attempts or ("", 1)
    metrics = measure_metrics(
        subject.evidence, (k,), confidence=confidence, groupings=subject.groupings
    )
    wider = metrics[target.name].within(gate.scope)
    if isinstance(wider, Unavailable) or estimate.interval is None or wider.interval is None:
        return estimate
    interval = hull(estimate.interval, wider.interval)
    return replace(estimate, interval=interval, method=wider.method, notes=wider.notes)


def _one_task(
    estimate: Estimate, evidence: Evidence, power: tuple[str, int], confidence: float
) -> Estimate:
    """One task needs no approximation: Clopper-Pearson, its ends to the power k."""
    runs, passes = int(evidence.runs[0]), int(evidence.passes[0])
    p = proportion_interval(passes, runs, method="clopper-pearson", confidence=confidence)
    metric, k = power
    if metric == "pass^k":
        interval = Interval(p.low**k, p.high**k)
    else:
        interval = Interval(1 - (1 - p.low) ** k, 1 - (1 - p.high) ** k)
    return replace(estimate, interval=interval, method="one task: Clopper-Pearson, exact")


def _with_unknown_tasks(estimate: Estimate, unknown: int) -> Estimate:
    """Tasks with too few runs may have any value: the bounds of the suite allow for it."""
    if not unknown or estimate.interval is None:
        return estimate
    known = estimate.tasks or 0
    share = known / (known + unknown)
    low, high = estimate.interval.low * share, estimate.interval.high * share + 1 - share
    return replace(estimate, interval=Interval(low, high))


def _share_of_trials(target: Target, subject: SystemTrials, confidence: float) -> Number:
    """A share of all trials, by Clopper-Pearson.

    Tasks with different rates make the count less spread than one coin would (Hoeffding 1956), so
    with the same runs for every task the bounds err on the wide side.
    """
    tool = target.tool
    runs = subject.tally.trials
    if tool is None:
        count = int(subject.tally.errored.sum())
    elif subject.trials is None:
        return Unavailable("which tools were called needs the trials themselves")
    else:
        count = int(np.count_nonzero(subject.trials.has_word("tools", tool)))
    if not runs:
        return Unavailable(f"{target} needs a trial")
    return Estimate(
        value=count / runs,
        interval=proportion_interval(count, runs, method="clopper-pearson", confidence=confidence),
        method="Clopper-Pearson over all trials",
        confidence=confidence,
        scope=THIS_SUITE,
        tasks=len(subject.tally.tasks),
        runs=runs,
    )


def _any_target(gate: Gate, target: Target, subject: SystemTrials, confidence: float) -> Number:
    """Any other number, as the report has it; a bare one has no interval.

    The report is about the first level of each factor, and says what is kept at the others.
    """
    trials = subject.trials if subject.every is None else subject.every
    report = measure(
        [subject.tally] if trials is None else trials,
        ks=None if target.k is None else (target.k,),
        confidence=confidence,
        errors=subject.errors,
        bars=subject.options.bars,
    )
    number = target.value_in(report.systems[0], gate.scope)
    if isinstance(number, Estimate) and gate.scope == THIS_SUITE:
        return _with_unknown_tasks(number, len(_left_out(target, subject)))
    if not isinstance(number, float):
        return number
    return Estimate(value=number, interval=None, method="as described", confidence=gate.confidence)
