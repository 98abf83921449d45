"""What is demanded of a run: gates of the suite and of the command line, and their baselines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from passhat.cli.run_exit import quarantined
from passhat.errors import HistoryError

if TYPE_CHECKING:
    from passhat.analysis.gates import Gate
    from passhat.analysis.verdict import Verdicts
    from passhat.cli.run_ledger import Ledger
    from passhat.records import Suite, Trials

FINISHED = "finished"


def gates_of(suite: Suite, require: Sequence[str]) -> tuple[Gate, ...]:
    """Every gate, those of the suite first."""
    if not suite.gates and not require:
        return ()
    from passhat.analysis.gates import parse_gate

    return tuple(parse_gate(gate) for gate in (*suite.gates, *require))


def verdicts_on(
    trials: Trials, gates: Sequence[Gate], suite: Suite, ledger: Ledger
) -> Verdicts | None:
    """What the gates say of the trials of a run that is over; None where there is no gate."""
    if not gates:
        return None
    from passhat.analysis.judge import judge

    return judge(
        trials,
        gates,
        bars={task.name: task.bar for task in suite.tasks if task.bar is not None} or None,
        baseline=_baselines(gates, suite, ledger) or None,
        planned={(p.system.name, p.task.name): p.runs for p in suite.pairings},
        quarantined=sorted(quarantined(suite)),
        seed=suite.seed,
    )


def _baselines(gates: Sequence[Gate], suite: Suite, ledger: Ledger) -> Mapping[str, Trials]:
    """The runs that gates compare with, from the history: by tag, branch, commit or key."""
    names = [getattr(gate.demand, "baseline", None) for gate in gates]
    wanted = dict.fromkeys(name for name in names if name and name not in suite.systems)
    return {name: _baseline(name, suite, ledger) for name in wanted}


def _baseline(name: str, suite: Suite, ledger: Ledger) -> Trials:
    if ledger.history is None or ledger.run is None:
        raise HistoryError(f"no_worse_than {name}: a run with --no-store knows no earlier runs")
    history, current = ledger.history, ledger.run
    # The newest run of a branch may be this one: the baseline is the one before it.
    for run in history.runs(suite=suite.name, branch=name):
        if run.id != current.id and run.status == FINISHED:
            return history.trials(run)
    found = history.find_run(name)
    if found.id == current.id:
        raise HistoryError(f"no_worse_than {name}: the only such run is this one")
    return history.trials(found)
