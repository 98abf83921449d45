"""Where the trials of a run are carried out: in this process, by workers, or on a Ray cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Literal

from passhat.errors import ArgumentError, LostRun, StoreError

if TYPE_CHECKING:
    from passhat.analysis.gates.stopping import StoppingRule
    from passhat.history.run_board import RunBoard
    from passhat.journeys.run_events import OnRunEvent
    from passhat.journeys.run_job import RunJob
    from passhat.journeys.run_store import RunStore
    from passhat.records import Trials
    from passhat.runner import RunResult
    from passhat.runner.cassettes import CassetteSet

Executor = Literal["local", "workers", "ray"]

OUTAGE_SECONDS = 120.0
"""How long a driver waits for its store to come back: longer than a restart of PostgreSQL."""

SECONDS_BETWEEN_TRIES = 1.0


def refuse_cassettes(cassettes: CassetteSet | None) -> None:
    """Refuse to record or replay with workers: cassettes are files of one machine."""
    if cassettes is not None:
        raise ArgumentError("executor", "must be local to record or replay cassettes", "workers")


def lead(
    job: RunJob,
    opened: RunStore,
    baselines: Mapping[str, Trials],
    on_event: OnRunEvent | None,
    handle_signals: bool,
) -> tuple[RunResult, StoppingRule | None]:
    """Hand the run out to workers and wait for its end, through outages of the store."""
    from passhat.runner.executors.driver import drive

    if opened.history is None or opened.run is None or job.store is None:
        raise ArgumentError("executor", "needs a `store` that workers can reach", job.executor)
    with ExitStack() as stack:
        check: Callable[[], None] | None = None
        if job.executor == "ray":
            from passhat.journeys.ray_executor import ray_workers

            workers = ray_workers(job.suite, str(job.store), opened.run.key, job.workers)
            check = stack.enter_context(workers)
        board = _board(opened)
        since = time.monotonic()
        while True:
            try:
                rule = job.rule(baselines)
                return drive(
                    job.suite,
                    board,
                    opened.journal,
                    stopping_rule=job.plan if rule is None else rule,
                    on_event=on_event,
                    retry_errored=job.retry_errors,
                    handle_signals=handle_signals,
                    check=check,
                ), rule
            except LostRun:
                raise
            except StoreError:
                if time.monotonic() - since > OUTAGE_SECONDS:
                    raise
            since = _reconnect(opened, since)


def _board(opened: RunStore) -> RunBoard:
    from passhat.history.run_board import RunBoard

    assert opened.history is not None
    assert opened.run is not None
    assert opened.lease is not None
    return RunBoard(opened.history, opened.run, opened.lease)


def _reconnect(opened: RunStore, since: float) -> float:
    """When the store was last there: now, if it has come back."""
    time.sleep(SECONDS_BETWEEN_TRIES)
    assert opened.history is not None
    try:
        opened.history.database.reconnect()
    except StoreError:
        return since
    return time.monotonic()
