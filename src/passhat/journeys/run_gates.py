"""The gates of a run: those of the suite and of the request, and their baselines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from passhat.errors import ArgumentError, HistoryError
from passhat.journeys.stored_runs import days_around
from passhat.messages import plural
from passhat.records.suite import plain_pairings, variants

if TYPE_CHECKING:
    from passhat.analysis.comparing.comparison import Days
    from passhat.analysis.gates.gate import Gate, Verdicts
    from passhat.analysis.gates.stopping import StoppingRule
    from passhat.history import History, Run
    from passhat.journeys.run_store import RunStore
    from passhat.records import Pairing, Suite, Trials


def gates_of(suite: Suite, require: Sequence[str]) -> tuple[Gate, ...]:
    """Every gate that is about something in the suite, those of the suite first."""
    return tuple(gate for gate in _parsed(suite, require) if _subjects(gate, suite))


def refuse_pointless(suite: Suite, require: Sequence[str]) -> None:
    """Refuse gates that could never be judged, before anything is paid for."""
    if not (gates := _parsed(suite, require)):
        return
    from passhat.analysis.gates.gate import BestOfDemand, EveryTaskDemand

    for gate in gates:
        about = f"gate {gate.label!r}"
        if gate.system is not None and gate.system not in suite.systems:
            rule = f"must name a system of the suite ({', '.join(suite.systems)})"
            raise ArgumentError(about, rule, gate.system)
        subjects = _subjects(gate, suite)
        if not subjects:
            raise ArgumentError(about, "must find a task with one of its tags", gate.tags)
        demand = gate.demand
        if isinstance(demand, BestOfDemand) and len(suite.systems) < 2:
            rule = "needs two systems or more to find the best of"
            raise ArgumentError(about, rule, len(suite.systems))
        bars = [pairing for pairing in subjects if pairing.task.bar is not None]
        if isinstance(demand, EveryTaskDemand) and demand.bar is None and not bars:
            raise ArgumentError(about, "needs a `bar:` on a task, or in `defaults:`", "none")


def _parsed(suite: Suite, require: Sequence[str]) -> list[Gate]:
    if not suite.gates and not require:
        return []
    from passhat.analysis.gates.gate import parse_gate

    return [parse_gate(gate) for gate in (*suite.gates, *require)]


def _subjects(gate: Gate, suite: Suite) -> list[Pairing]:
    """The pairings that a gate is about."""
    return [
        pairing
        for pairing in suite.pairings
        if gate.system in (None, pairing.system.name)
        and (not gate.tags or set(gate.tags) & set(pairing.task.tags))
    ]


def stopping_rule(
    suite: Suite,
    gates: Sequence[Gate],
    *,
    until_settled: bool,
    baselines: Mapping[str, Trials] | None = None,
) -> StoppingRule | None:
    """The rule that ends the run when every gate is settled; None for a fixed number of runs."""
    if not is_sequential(gates, until_settled=until_settled) or variants(suite):
        return None  # a suite that is run both ways is compared: it needs all its runs
    from passhat.analysis.gates.stopping import StoppingRule

    return StoppingRule(
        suite.pairings,
        [_capped(gate, suite) for gate in gates] if until_settled else gates,
        until_settled=until_settled,
        quarantined=sorted(quarantined(suite)),
        baselines=baselines,
        seed=suite.seed,
    )


def at_most(suite: Suite, rule: StoppingRule) -> str:
    """The size of a run that ends when its gates are settled: `3 tasks, 1 system, at most ...`."""
    return f"{suite.size.rpartition(', ')[0]}, at most {plural(rule.planned, 'trial')}"


def is_sequential(gates: Sequence[Gate], *, until_settled: bool) -> bool:
    """Whether evidence decides how many trials are run."""
    return bool(gates) and (until_settled or any(g.evidence == "sequential" for g in gates))


def _capped(gate: Gate, suite: Suite) -> Gate:
    """A gate that only the request makes sequential runs no more trials than the suite."""
    if gate.evidence is not None or gate.max_runs is not None:
        return gate
    from passhat.analysis.gates.gate import BestOfDemand, NoWorseDemand

    contest = isinstance(gate.demand, BestOfDemand)
    systems = [gate.system] if gate.system is not None and not contest else suite.systems
    trials = [sum(p.runs for p in suite.pairings if p.system.name == s) for s in systems]
    if contest:  # every draw costs a run of each
        return replace(gate, max_runs=sum(trials))
    pair = 2 if isinstance(gate.demand, NoWorseDemand) else 1
    return replace(gate, max_runs=pair * max(trials))


def verdicts_on(
    trials: Trials,
    gates: Sequence[Gate],
    suite: Suite,
    *,
    baselines: Mapping[str, Trials],
    days: Mapping[str, Days] | None = None,
) -> Verdicts | None:
    """The verdicts on the trials of a finished run; None if there is no gate."""
    if not gates:
        return None
    import numpy as np

    from passhat.analysis.gates.judge import judge

    plain = {pairing.system.name for pairing in plain_pairings(suite)}
    gated = [trials.system.code(name) for name in trials.systems if name in plain]
    return judge(
        trials.take(np.isin(trials.system.codes, gated)),
        gates,
        bars=suite.bars or None,
        baseline=baselines or None,
        planned={(p.system.name, p.task.name): p.runs for p in suite.pairings},
        quarantined=sorted(quarantined(suite)),
        seed=suite.seed,
        days=days,
    )


def quarantined(suite: Suite) -> dict[str, str]:
    """The tasks whose quarantine is in force, each with the words for it."""
    today = datetime.now(tz=UTC).date()
    return {
        entry.task: f"in quarantine until {entry.until}"
        + (f": {entry.reason}" * bool(entry.reason))
        for entry in suite.quarantine
        if entry.in_force(today)
    }


def floored(suite: Suite) -> frozenset[str]:
    """The tasks that are judged by their floor alone: they expect nothing else."""
    return frozenset(
        task.name
        for task in suite.tasks
        if task.tool_selection is not None and not task.expect and not task.steps
    )


def baselines_of(gates: Sequence[Gate], suite: Suite, store: RunStore) -> Mapping[str, Trials]:
    """The runs that gates compare with, from the history: by tag, branch, commit or key."""
    found = {}
    for name in _baseline_names(gates, suite):
        history, run = _baseline(name, store)
        found[name] = history.trials(run)
    return found


def days_of_baselines(gates: Sequence[Gate], suite: Suite, store: RunStore) -> dict[str, Days]:
    """How much runs of the suite differ from day to day, for each of these baselines."""
    return {
        name: days_around(*_baseline(name, store), store.run, "fail")
        for name in _baseline_names(gates, suite)
    }


def _baseline_names(gates: Sequence[Gate], suite: Suite) -> list[str]:
    names = [getattr(gate.demand, "baseline", None) for gate in gates]
    return list(dict.fromkeys(name for name in names if name and name not in suite.systems))


def _baseline(name: str, store: RunStore) -> tuple[History, Run]:
    if store.history is None or store.run is None:
        raise HistoryError(f"no_worse_than {name}: a run without a store knows no earlier runs")
    from passhat.history.runs import look_up_baseline

    # The newest run of a branch may be this one: the baseline is the one before it.
    return store.history, look_up_baseline(store.history, name, judged=store.run).run
