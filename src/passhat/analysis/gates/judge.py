"""From trials and gates to verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import zip_longest
from typing import Any, Unpack

import numpy as np

from passhat.analysis.comparing.comparison import Days
from passhat.analysis.gates import fixed_sample
from passhat.analysis.gates.gate import (
    AS_JUDGED,
    BestOfRequirement,
    EveryTaskRequirement,
    Gate,
    NoTaskWorseRequirement,
    NoWorseRequirement,
    ThresholdRequirement,
    Verdict,
    VerdictNote,
    Verdicts,
    parse_gate,
    percentage,
    why_not_sequential,
)
from passhat.analysis.gates.rounds import Rounds, decides_in_rounds
from passhat.analysis.gates.sequential import Draw, EveryTaskWatch, SharedDraws, every_task_gate
from passhat.analysis.gates.sequential_verdicts import (
    BestSystemGate,
    every_task_verdict,
    stream_verdict,
)
from passhat.analysis.reports.dependence import Disturbance, disturbance_sentence, dropped_note
from passhat.analysis.reports.metrics import Bars, SystemTrials, checked_bars
from passhat.analysis.reports.targets import passed
from passhat.arguments import CountingTerms, ReportOptions, names, several, takes
from passhat.dataclass import dataclass
from passhat.errors import ArgumentError
from passhat.messages import capitalised, few, listed, plural
from passhat.records import Outcome, Trial, Trials
from passhat.records.trial import (
    STOPPED_EARLY,
    counting_notes,
    first_ended,
    graded_by_judge,
    levels_of,
    tags_of_tasks,
)
from passhat.records.trials import check_trials_argument, is_sampled, refuse_file
from passhat.stats.estimate import Unavailable
from passhat.stats.sequential.designs import error_of_all_looks, look_levels
from passhat.stats.sufficient_statistics import Mask

GateLike = Gate | str | Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _JudgeContext:
    """What else a verdict depends on: options, baselines, what was planned, what is not gated."""

    options: ReportOptions
    baselines: Mapping[str, Trials] = field(default_factory=dict)
    planned: fixed_sample.Planned = field(default_factory=dict)
    quarantined: tuple[str, ...] = ()
    days: Mapping[str, Days] = field(default_factory=dict)

    def name_of(self, baseline: str) -> str:
        """The name by which a baseline is found here; one given apart from the demand has none."""
        return baseline if baseline in self.baselines else ""


@takes(CountingTerms)
def judge(
    trials: Trials,
    gates: GateLike | Iterable[GateLike],
    *,
    bars: Bars = None,
    baseline: Trials | Mapping[str, Trials] | None = None,
    planned: fixed_sample.Planned | None = None,
    quarantined: Sequence[str] = (),
    days: Mapping[str, Days] | None = None,
    looks: Sequence[int] = (),
    **terms: Unpack[CountingTerms],
) -> Verdicts:
    """The verdict of every gate (one, or several) on every system of these trials.

    A gate whose evidence is sequential takes the runs of each task in order and stops when it is
    settled. `baseline` is what no_worse_than speaks of (one table, or several by name); where it
    holds several systems, each system is compared with its namesake. `planned` says how many runs
    there should be: a verdict on fewer holds whatever the missing ones do, or is UNDECIDED. Tasks
    in `quarantined` are not gated. `days` says, by baseline, how far runs of the same system
    differ, where the baseline is of another day. `looks` says after how many trials the gates were
    judged, this time last: later looks at more trials are stricter.

    >>> table = Trials.from_columns(task=["a"] * 60, passed=[True] * 60)
    >>> verdicts = judge(table, ["pass^3 >= 0.8"])
    >>> verdicts.status, verdicts.exit_code
    ('PASS', 0)
    """
    refuse_file("trials", trials, instead="passhat.gate")
    check_trials_argument("trials", trials, counts=False)
    named = _named_baselines(baseline)
    around = _JudgeContext(
        options=ReportOptions.checked(bars=checked_bars(bars, trials.tasks), **terms),
        baselines=named | {name: trials.where(system=name) for name in trials.systems},
        planned=planned or {},
        quarantined=names("quarantined", quarantined),
        days=days or {},
    )
    parsed = [parse_gate(gate) for gate in several(gates, str, Mapping)]
    if not parsed:
        raise ArgumentError("gates", "must hold at least one demand", 0)
    if len(looks) > 1 and looks[-1] > looks[0]:
        return Verdicts(
            tuple(
                _with_all_looks(verdict, gate, looks)
                for gate in parsed
                for verdict in _judged(_at_last_look(gate, looks), trials, around)
            )
        )
    return Verdicts(tuple(v for gate in parsed for v in _judged(gate, trials, around)))


def _at_last_look(gate: Gate, looks: Sequence[int]) -> Gate:
    """The gate at the levels of the last of several looks, after so many trials each.

    The first look was the plan, at the stated error rates. Later ones may add to them what
    `extension_share` says, fixed beforehand, so that anybody may stop or extend at will.
    """
    fractions = tuple(look / looks[0] for look in sorted({*looks}))
    alpha, beta = (look_levels(fractions, error)[-1] for error in (gate.alpha, gate.beta))
    return replace(gate, alpha=alpha, beta=beta)


def _with_all_looks(verdict: Verdict, gate: Gate, looks: Sequence[int]) -> Verdict:
    """The verdict of the last look, with its own gate and the errors of all looks together."""
    fraction = looks[-1] / looks[0]
    sums = [error_of_all_looks(error, fraction) for error in (gate.alpha, gate.beta)]
    alpha, beta = (
        None if kept is None else both
        for kept, both in zip((verdict.alpha, verdict.beta), sums, strict=True)
    )
    if alpha is None and beta is None:
        return replace(verdict, gate=gate)
    side = verdict.status == "FAIL"
    words = (
        f"Wrong {'FAIL' if side else 'PASS'} at most {percentage((gate.alpha, gate.beta)[side])} "
        f"within the {looks[0]:,} trials planned, {percentage(sums[side])} within these "
        f"{looks[-1]:,}."
    )
    return replace(verdict, gate=gate, alpha=alpha, beta=beta, all_looks=words)


def _named_baselines(baseline: Trials | Mapping[str, Trials] | None) -> dict[str, Trials]:
    """Baselines by name; one that comes alone has none."""
    if not isinstance(baseline, Mapping):
        baseline = {} if baseline is None else {"": baseline}
    for trials in baseline.values():
        refuse_file("baseline", trials, instead="passhat.read_trials")
        check_trials_argument("baseline", trials, counts=False)
    return dict(baseline)


def _judged(gate: Gate, trials: Trials, around: _JudgeContext) -> Iterator[Verdict]:
    if gate.at:
        trials, around = _at_levels(gate, trials, around)
    tables = gated_tables(trials, gate, around.quarantined)
    if isinstance(gate.demand, BestOfRequirement):
        plain = (table.at_reference() for table in tables)
        yield _with_quarantine(_judge_best(gate, plain, seed=around.options.seed), around)
    else:
        yield from (_judge_one(gate, table, around) for table in tables)


def _at_levels(gate: Gate, trials: Trials, around: _JudgeContext) -> tuple[Trials, _JudgeContext]:
    """The trials at the levels that a gate names, and its baseline at the same."""
    try:
        name = around.name_of(getattr(gate.demand, "baseline", ""))
        baseline = around.baselines.get(name)
        if baseline is not None:
            at_levels = baseline.at_levels(gate.at)
            around = replace(around, baselines={**around.baselines, name: at_levels})
        return trials.at_levels(gate.at), around
    except ArgumentError as error:
        raise ArgumentError(f"gate {gate.label!r}", error.rule, error.value) from None


def _judge_one(gate: Gate, trials: Trials, around: _JudgeContext) -> Verdict:
    """The verdict of one gate on the trials of one system."""
    demand = gate.demand
    subject = SystemTrials.of(trials, around.options)
    every, trials = trials, trials.at_reference()  # gates judge the first level of each factor
    if gate.evidence == "sequential":
        verdict = _judge_sequentially(gate, trials, around)
    elif isinstance(demand, EveryTaskRequirement):
        verdict = fixed_sample.judge_every_task(gate, subject)
    elif isinstance(demand, NoWorseRequirement):
        days = around.days.get(around.name_of(demand.baseline))
        verdict = fixed_sample.judge_no_worse(
            gate, subject, _baseline(demand, subject.name, around), days
        )
    elif isinstance(demand, NoTaskWorseRequirement):
        other = _baseline(demand, subject.name, around)
        verdict = fixed_sample.judge_no_task_worse(gate, subject, other.tally())
    else:
        verdict = fixed_sample.judge_number(gate, subject, around.planned)
    bounded = verdict.evidence == "bound"
    sides = _sides(gate, trials, around)
    ended = first_ended(source.ended for side in sides for source in side.sources)
    if ended == "early" and verdict.evidence != "sequential":
        verdict = _without_rate(verdict, sides, around)
    if bounded and ended is not None:
        verdict = _without_error_rates(verdict)
    included = bounded and isinstance(demand, ThresholdRequirement) and demand.target.is_metric
    verdict = _with_disturbances(verdict, trials, subject.disturbances, included=included)
    if bounded and len(sides) == 2:
        verdict = _beside_missing(verdict, trials, sides[1], around)
    verdict = _as_judged(verdict, sides)
    notes = counting_notes(source for side in sides for source in side.sources)
    notes += [] if "all" in [word.partition("=")[2] for word in gate.at] else _over_all(trials)
    verdict = _noted(verdict, *(VerdictNote(note, "on screen") for note in notes))
    return _with_quarantine(_beside_users(verdict, every, around), around)


def _noted(verdict: Verdict, *remarks: VerdictNote) -> Verdict:
    return replace(verdict, remarks=(*verdict.remarks, *remarks)) if remarks else verdict


def _over_all(trials: Trials) -> list[str]:
    """A note on each factor without a reference whose levels are judged together."""
    return [
        f"over all {plural(len(levels), 'level')} of {name} ({few(levels, 3)}): add `at "
        f"{name}={levels[0]}` to the demand to judge one"
        for name, levels in levels_of(trials.conditions()).items()
        if len(levels) > 1 and not is_sampled(name)
    ]


def _beside_users(verdict: Verdict, trials: Trials, around: _JudgeContext) -> Verdict:
    """The verdict, UNDECIDED where it rests on trials whose simulated user broke a rule.

    Sequential evidence is left as it was run: what came later was chosen by what came before.
    """
    flagged = trials.at_reference().flagged()
    if not flagged.any() or flagged.all() or verdict.evidence == "sequential":
        return verdict
    kept = trials.take(~trials.flagged())
    without = _judge_one(verdict.gate, kept, replace(around, planned={}, quarantined=()))
    if without.status == verdict.status or verdict.status == "UNDECIDED":
        return verdict
    note = (
        f"without the {plural(int(flagged.sum()), 'trial')} in which the user broke a rule it is "
        f"{without.status}, as run {verdict.status}"
    )
    verdict = replace(verdict, status="UNDECIDED", alpha=None, beta=None)
    return _noted(verdict, VerdictNote(note, ending=f"{capitalised(note)}."))


def _sides(gate: Gate, trials: Trials, around: _JudgeContext) -> list[Trials]:
    """What a verdict rests on: the trials, and the baseline where the gate is about one."""
    if isinstance(gate.demand, NoWorseRequirement | NoTaskWorseRequirement):
        return [trials, _baseline(gate.demand, trials.systems[0], around)]
    return [trials]


def _beside_missing(
    verdict: Verdict, trials: Trials, baseline: Trials, around: _JudgeContext
) -> Verdict:
    """The verdict, with the tasks of the baseline that were not run.

    Of those nothing is known: that no task is worse stays UNDECIDED.
    """
    gate = verdict.gate
    held = baseline.take(_gated(baseline, gate, around.quarantined)).tasks
    missing = [task for task in held if task not in trials.tasks]
    if not missing:
        return verdict
    name = getattr(gate.demand, "baseline", "") or "the baseline"
    run = len(held) - len(missing)
    are = "is missing" if len(missing) == 1 else "are missing"
    some = f"only {run:,} of {plural(len(held), 'task')} of {name}"
    note = VerdictNote(f"{some} were run: {listed(missing)} {are}", "missing tasks")
    verdict = replace(verdict, remarks=(note, *verdict.remarks))
    if verdict.status != "PASS" or not isinstance(gate.demand, NoTaskWorseRequirement):
        return verdict
    were = "was" if len(missing) == 1 else "were"
    unknown = f"{len(missing):,} of {plural(len(held), 'task')} {were} not run"
    clauses = unknown, "none of the others is shown to be worse"
    return replace(verdict, status="UNDECIDED", clauses=clauses)


def _as_judged(verdict: Verdict, sides: Sequence[Trials]) -> Verdict:
    """The verdict, with a note where a judge graded and no labels of people correct it."""
    judged = any(graded_by_judge(side.sources) for side in sides)
    if verdict.rests_on_labels or not judged:
        return verdict
    return _noted(verdict, VerdictNote(AS_JUDGED, "on screen"))


def _without_rate(verdict: Verdict, sides: Sequence[Trials], around: _JudgeContext) -> Verdict:
    """The verdict on a run that gates ended early, as people read it: counts, and no rate."""
    demand = verdict.gate.demand
    if isinstance(demand, ThresholdRequirement) and not demand.target.is_share:
        return verdict
    clauses = verdict.clauses
    if isinstance(demand, ThresholdRequirement | NoWorseRequirement):
        gated = [side.take(_gated(side, verdict.gate, around.quarantined)) for side in sides]
        errors = isinstance(demand, ThresholdRequirement) and demand.target.name == "error_rate"
        outcome, word = (Outcome.ERRORED, "errored") if errors else (Outcome.PASSED, "passed")
        own, *before = (
            f"{np.count_nonzero(side.outcome == outcome):,} of {len(side):,}" for side in gated
        )
        clauses = (f"{own} trials {word}{''.join(f', {count} before' for count in before)}",)
    return replace(
        verdict,
        clauses=clauses,
        estimate=Unavailable(STOPPED_EARLY),
        more_runs=None,
        tasks=tuple(replace(task, value=None) for task in verdict.tasks),
    )


def _without_error_rates(verdict: Verdict) -> Verdict:
    """The verdict of bounds on runs that gates ended: their error rates are for a fixed number.

    Looking at a 95% bound again and again passes an agent at the threshold far more often than
    one time in twenty (Armitage, McPherson and Rowe, JRSS A 132, 1969).
    """
    note = "its gates decide when the run ends, and bounds are for a fixed number of trials"
    way = "" if why_not_sequential(verdict.gate) else '; `evidence="sequential"` has one'
    ending = f"The verdict has no known error rate: {note}{way}."
    return _noted(replace(verdict, alpha=None, beta=None), VerdictNote(note, ending=ending))


def _with_disturbances(
    verdict: Verdict, trials: Trials, disturbances: Sequence[Disturbance], *, included: bool
) -> Verdict:
    """The verdict, with a note where runs moved together or rounds were left out."""
    if dropped := dropped_note(trials):
        verdict = _noted(verdict, VerdictNote(dropped, ending=f"({dropped}.)"))
    seen = disturbance_sentence(disturbances)
    if seen is None:
        return verdict
    allows = (
        "The bounds include the spread between rounds."
        if included
        else "The error rates of this verdict hold for independent trials only."
    )
    note = VerdictNote(seen.rstrip("."), ending=f"{seen} {allows}")
    return _noted(replace(verdict, more_runs=None), note)


def gated_tables(trials: Trials, gate: Gate, quarantined: Sequence[str] = ()) -> Iterator[Trials]:
    """The trials of each system that the gate is about."""
    if gate.system is not None and gate.system not in trials.systems:
        rule = f"must be one of {', '.join(trials.systems)}"
        raise ArgumentError(f"agent of the gate {gate.label!r}", rule, gate.system)
    table = trials.take(_gated(trials, gate, quarantined))
    if gate.system is not None and not isinstance(gate.demand, BestOfRequirement):
        systems = [gate.system]
    else:  # a baseline among them is not compared with itself
        baseline = getattr(gate.demand, "baseline", None)
        systems = [name for name in trials.systems if name != baseline]
    if not systems:
        rule = "finds no agent to judge beside the one that it compares with"
        raise ArgumentError(f"gate {gate.label!r}", rule, trials.systems)
    for name in systems:
        if name not in table.systems:
            rule, came = f"finds no trial of {name} to judge", ", ".join(gate.tags) or 0
            if gate.tags:
                words = listed(tags_of_tasks(trials.where(system=name).words("tags")), 5)
                rule += f" with one of its tags; there are {words or 'none'}"
            raise ArgumentError(f"gate {gate.label!r}", rule, came)
        yield table.where(system=name)


def _gated(trials: Trials, gate: Gate, quarantined: Sequence[str]) -> Mask:
    """Which trials are of tasks that the gate is about."""
    kept = np.ones(len(trials), dtype=bool)
    if quarantined:
        shut = [trials.task.code(name) for name in quarantined if name in trials.tasks]
        kept &= ~np.isin(trials.task.codes, shut)
    if gate.tags:
        kept &= np.any([trials.has_word("tags", tag) for tag in gate.tags], axis=0)
    return kept


def _baseline(
    demand: NoWorseRequirement | NoTaskWorseRequirement, system: str, around: _JudgeContext
) -> Trials:
    """What the system is compared with: the only system of the baseline, or its namesake there.

    It is at the reference of its factors, as the system is.
    """
    name = demand.baseline
    baseline = around.baselines.get(around.name_of(name))
    if baseline is None:
        known = ", ".join(filter(None, around.baselines)) or "none"
        rule = f"must name an agent of these trials or a baseline handed in (known: {known})"
        raise ArgumentError("no_worse_than", rule, name)
    if len(baseline.systems) == 1:
        return baseline.at_reference()
    if system not in baseline.systems:
        way = "`trials.where(system=SYSTEM)` takes one out"
        rule = f"must hold {system}, or one agent only ({way})"
        raise ArgumentError(f"baseline {name}".strip(), rule, baseline.systems)
    return baseline.where(system=system).at_reference()


def _with_quarantine(verdict: Verdict, around: _JudgeContext) -> Verdict:
    if not around.quarantined:
        return verdict
    names = ", ".join(around.quarantined)
    note = f"{plural(len(around.quarantined), 'task')} in quarantine, not gated: {names}"
    return _noted(verdict, VerdictNote(note))


def _judge_sequentially(gate: Gate, trials: Trials, around: _JudgeContext) -> Verdict:
    """A sequential gate on a log of one system, its runs taken task by task in their order.

    Tasks are drawn at random with the seed; each draw takes the next runs of its task. If a task
    has no more, the gate stays open: stopping there depends on no later result, so the error rates
    hold.
    """
    if isinstance(gate.demand, EveryTaskRequirement):
        return _every_task(gate, gate.demand, trials, around.options.bars)
    sides = _sides(gate, trials, around)
    queues = [_in_order(side) for side in sides]
    shared = [task for task in queues[0] if all(task in queue for queue in queues)]
    if decides_in_rounds(gate, len(shared)):
        return _judge_rounds(gate, sides, sorted(shared), seed=around.options.seed)
    stream = SharedDraws(trials.systems[0], sorted(shared), [gate], seed=around.options.seed)
    empty = _draw_all(stream, lambda draw: queues[0][draw.task])
    return _out_of_runs(stream_verdict(stream, stream.watches[0]), empty)


def _judge_rounds(
    gate: Gate, sides: Sequence[Trials], tasks: Sequence[str], *, seed: int
) -> Verdict:
    """Rounds over a log, its runs in their order: those that it has of each task were the plan.

    Where results decided how many there are, they were no plan: the demand says how many.
    """
    queues = [_in_order(side) for side in sides]
    stated = (
        {}
        if any(source.ended for side in sides for source in side.sources)
        else {
            task: min(int((side.task.codes == side.task.code(task)).sum()) for side in sides)
            for task in tasks
        }
    )
    rounds = Rounds(
        tuple(side.systems[0] for side in sides), tasks, [gate], stated=stated, seed=seed
    )
    empty = _draw_all(rounds, lambda draw: queues[draw.run][draw.task])
    return _out_of_runs(rounds.verdict(rounds.watches[0]), empty)


def _judge_best(gate: Gate, tables: Iterable[Trials], *, seed: int) -> Verdict:
    """Which system of a log is the best: its runs are taken task by task, in their order."""
    queues = {table.systems[0]: _in_order(table) for table in tables}
    shared = [t for t in next(iter(queues.values())) if all(t in q for q in queues.values())]
    if not shared:
        raise ArgumentError(f"gate {gate.label!r}", "finds no task that all agents share", 0)
    contest = BestSystemGate(gate, tuple(queues), sorted(shared), seed=seed)
    empty = _draw_all(contest, lambda draw: queues[draw.system][draw.task])
    return _out_of_runs(contest.verdict(), empty)


def _draw_all(
    source: SharedDraws | Rounds | BestSystemGate, runs_of: Callable[[Draw], Iterator[Trial]]
) -> str | None:
    """Draw until the gate is settled; the task that ran out of runs, if one did."""
    empty = None
    while empty is None and (draw := source.next_run()) is not None:
        trial = next(runs_of(draw), None)
        if trial is None:
            empty = draw.task
        else:
            source.observe(draw.index, trial)
    source.finish()
    return empty


def _out_of_runs(verdict: Verdict, empty: str | None) -> Verdict:
    """An undecided verdict, with the task of which the log has no more runs."""
    if verdict.status != "UNDECIDED" or empty is None:
        return verdict
    note = f"the log has no more trials of task {empty}"
    return _noted(verdict, VerdictNote(note, "log is empty"))


def _in_order(trials: Trials) -> dict[str, Iterator[Trial]]:
    """The trials of each task by their number."""
    by_task: dict[str, list[Trial]] = {}
    for trial in trials:
        by_task.setdefault(trial.task, []).append(trial)
    return {
        task: iter(sorted(runs, key=lambda trial: trial.trial)) for task, runs in by_task.items()
    }


def _every_task(gate: Gate, demand: EveryTaskRequirement, trials: Trials, bars: Bars) -> Verdict:
    queues = _in_order(trials)
    wanted = fixed_sample.bars_of(demand, bars, sorted(queues))
    design = every_task_gate(gate, tuple(wanted.values()))
    watch = EveryTaskWatch(gate, design, trials.systems[0], tuple(wanted))
    for turn in zip_longest(*(queues[task] for task in wanted)):
        for trial in turn:
            if trial is not None:
                watch.observe(trial, passed(trial))
    watch.finish()
    return every_task_verdict(watch)
