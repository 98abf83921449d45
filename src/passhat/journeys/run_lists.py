"""The stored runs of a history store as a list."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from passhat.arguments import STORE, whole_number
from passhat.journeys.results import open_store
from passhat.journeys.run_store import resume_newest
from passhat.records.ledger import Row, RunList

if TYPE_CHECKING:
    from passhat.history import Run

NEWEST = 20
"""How many runs are listed by default."""


def list_runs(
    *,
    suite: str | None = None,
    branch: str | None = None,
    limit: int = NEWEST,
    store: str | Path = STORE,
) -> RunList:
    """The newest stored runs: which suite and commit they are of, and how often they passed."""
    with open_store(store) as history:
        runs = history.runs(suite=suite, branch=branch, limit=whole_number("limit", limit))
        rows = tuple(_row(run, history.pass_rates(run)) for run in runs)
    return RunList(rows, resume=resume_newest(runs, str(store)))


def _row(run: Run, rates: dict[str, float]) -> Row:
    return {
        "run": run.key,
        "suite": run.suite,
        "status": run.status,
        "owner": run.owner,
        "started": run.started,
        "commit": run.checkout.commit,
        "branch": run.checkout.branch,
        "dirty": run.checkout.dirty,
        "tags": list(run.tags),
        "systems": run.systems,
        "tasks": run.tasks,
        "trials": run.trials,
        "passed": run.passed,
        "errored": run.errored,
        "pass_rate": run.pass_rate,
        "pass_rates": rates,
    }
