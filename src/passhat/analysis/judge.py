"""From trials and gates to verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from passhat.analysis.bars import Bars
from passhat.analysis.bound_evidence import Subject
from passhat.analysis.every_task import judge_every_task
from passhat.analysis.evidence import error_policy
from passhat.analysis.gates import (
    EveryTaskDemand,
    Gate,
    NoTaskWorseDemand,
    NoWorseDemand,
    parse_gate,
)
from passhat.analysis.number_gate import Planned, judge_number
from passhat.analysis.regression import judge_no_task_worse, judge_no_worse
from passhat.analysis.replay import judge_sequentially
from passhat.analysis.verdict import Verdict, Verdicts
from passhat.errors import ArgumentError, plural
from passhat.records import ErrorPolicy, Trials
from passhat.records.subject import check_subject

GateLike = Gate | str | Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Circumstances:
    """What else a verdict depends on: bars, baselines, what was planned, what is not gated."""

    bars: Bars = None
    baselines: Mapping[str, Trials] = field(default_factory=dict)
    planned: Planned = field(default_factory=dict)
    quarantined: tuple[str, ...] = ()
    errors: ErrorPolicy = "fail"
    seed: int = 0


def judge(
    trials: Trials,
    gates: GateLike | Iterable[GateLike],
    *,
    bars: Bars = None,
    baseline: Trials | Mapping[str, Trials] | None = None,
    planned: Planned | None = None,
    quarantined: Sequence[str] = (),
    errors: ErrorPolicy = "fail",
    seed: int = 0,
) -> Verdicts:
    """The verdict of every gate (one, or several) on every system of these trials.

    A gate whose evidence is sequential takes the runs of each task in order and stops where it is
    settled. `baseline` is what no_worse_than speaks of (one table, or several by name). `planned`
    says how many runs there should be: a verdict on fewer holds whatever the missing ones do, or is
    UNDECIDED. Tasks in `quarantined` are not gated.

    >>> table = Trials.from_columns(task=["a"] * 60, passed=[True] * 60)
    >>> verdicts = judge(table, ["pass^3 >= 0.8"])
    >>> verdicts.word, verdicts.exit_code
    ('PASS', 0)
    """
    check_subject("trials", trials, counts=False)
    around = Circumstances(
        bars=bars,
        baselines=_baselines(baseline)
        | {name: trials.where(system=name) for name in trials.systems},
        planned=planned or {},
        quarantined=tuple(quarantined),
        errors=error_policy(errors),
        seed=seed,
    )
    several = [gates] if isinstance(gates, str | Gate | Mapping) else gates
    parsed = [parse_gate(gate) for gate in several]
    if not parsed:
        raise ArgumentError("gates", "must hold at least one demand", 0)
    return Verdicts(
        tuple(
            judge_one(gate, table, around)
            for gate in parsed
            for table in gated_tables(trials, gate, around.quarantined)
        )
    )


def judge_one(gate: Gate, trials: Trials, around: Circumstances) -> Verdict:
    """The verdict of one gate on the trials of one system."""
    demand = gate.demand
    if gate.evidence == "sequential":
        other = _baseline(demand, around) if isinstance(demand, NoWorseDemand) else None
        verdict = judge_sequentially(
            gate, trials, bars=around.bars, baseline=other, seed=around.seed
        )
        return _with_quarantine(verdict, around)
    subject = Subject(tally=trials.tally(), trials=trials, errors=around.errors, bars=around.bars)
    if isinstance(demand, EveryTaskDemand):
        verdict = judge_every_task(gate, subject)
    elif isinstance(demand, NoWorseDemand):
        verdict = judge_no_worse(gate, subject, _baseline(demand, around).tally())
    elif isinstance(demand, NoTaskWorseDemand):
        verdict = judge_no_task_worse(gate, subject, _baseline(demand, around).tally())
    else:
        verdict = judge_number(gate, subject, around.planned)
    return _with_quarantine(verdict, around)


def gated_tables(trials: Trials, gate: Gate, quarantined: Sequence[str] = ()) -> Iterator[Trials]:
    """The trials of each system that the gate speaks about."""
    if gate.system is not None and gate.system not in trials.systems:
        rule = f"must be one of {', '.join(trials.systems)}"
        raise ArgumentError(f"system of the gate {gate.label!r}", rule, gate.system)
    kept = np.ones(len(trials), dtype=bool)
    if quarantined:
        shut = [trials.task.code(name) for name in quarantined if name in trials.tasks]
        kept &= ~np.isin(trials.task.codes, shut)
    if gate.tags:
        kept &= np.any([trials.has_word("tags", tag) for tag in gate.tags], axis=0)
    table = trials.take(kept)
    names = (gate.system,) if gate.system is not None else _subjects(gate, trials)
    for name in names:
        part = table.where(system=name)
        if not len(part):
            raise ArgumentError(f"gate {gate.label!r}", f"finds no trial of {name} to judge", 0)
        yield part


def _subjects(gate: Gate, trials: Trials) -> tuple[str, ...]:
    """Every system; a baseline among them is not held against itself."""
    baseline = getattr(gate.demand, "baseline", None)
    return tuple(name for name in trials.systems if name != baseline)


def _baselines(baseline: Trials | Mapping[str, Trials] | None) -> dict[str, Trials]:
    if baseline is None:
        return {}
    named = {"": baseline} if isinstance(baseline, Trials) else dict(baseline)
    for name, table in named.items():
        if len(table.systems) != 1:
            way = "`passhat convert FILE --only SYSTEM -o one.jsonl` takes one out"
            rule = f"must hold one system ({way})"
            raise ArgumentError(f"baseline {name}".strip(), rule, table.systems)
    return named


def _baseline(demand: NoWorseDemand | NoTaskWorseDemand, around: Circumstances) -> Trials:
    name = demand.baseline
    found = around.baselines.get(name, around.baselines.get(""))
    if found is None:
        known = ", ".join(filter(None, around.baselines)) or "none"
        rule = f"must name a system of these trials or a baseline handed in (known: {known})"
        raise ArgumentError("no_worse_than", rule, name)
    return found


def _with_quarantine(verdict: Verdict, around: Circumstances) -> Verdict:
    if not around.quarantined:
        return verdict
    names = ", ".join(around.quarantined)
    note = f"{plural(len(around.quarantined), 'task')} in quarantine, not gated: {names}"
    return replace(verdict, notes=(*verdict.notes, note))
