"""What a worker does: find a run that has trials to run, and run them until none are left."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from passhat.errors import HistoryError, StoreError
from passhat.journeys.run_request import RunRequest, apply_request
from passhat.suite import load_suite

if TYPE_CHECKING:
    from passhat.history import History, Run
    from passhat.records import Suite
    from passhat.runner.workers import WorkDone

IDLE_SECONDS = 10.0
"""How long a worker that stops when idle waits for a run: a driver may start after it."""

LOOK_SECONDS = 1.0

Say = Callable[[str], None]


def work(
    store: str | Path,
    *,
    run: str | None = None,
    concurrency: int | None = None,
    until_idle: bool = False,
    say: Say = lambda text: None,
    stop: threading.Event | None = None,
) -> int:
    """Run trials of the oldest run that has work, or of one that is named; returns how many.

    After a restart of the store, and after others have closed its session because its lease ran
    out, the worker starts again under a new session. It ends at a signal, when `stop` is set, or
    (`until_idle`) when no run has had work for a while.
    """
    stop = stop or threading.Event()
    trials, seen = 0, time.monotonic()
    while not stop.is_set():
        try:
            done = _work_once(store, run, concurrency, say, stop)
        except StoreError as error:
            say(f"{error}; trying again")
            done = None
        if done is not None:
            trials, seen = trials + done.trials, time.monotonic()
            if done.signal is not None:
                return trials
        elif until_idle and time.monotonic() - seen > IDLE_SECONDS:
            return trials
        else:
            stop.wait(LOOK_SECONDS)
    return trials


def _work_once(
    store: str | Path, run: str | None, concurrency: int | None, say: Say, stop: threading.Event
) -> WorkDone | None:
    from passhat.history import History
    from passhat.history.work_queue import WorkerSession
    from passhat.runner.workers import run_worker

    with History.open(store) as history:
        found = _find(history, run)
        if found is None:
            return None
        suite = _suite(found)
        hands = concurrency or suite.concurrency
        session = WorkerSession(history, found, hands=hands)
        say(f"run {found.key} of {found.suite}: {hands} trials at a time")
        try:
            done = run_worker(
                suite, session, concurrency=hands, idle_seconds=LOOK_SECONDS, stop=stop
            )
        finally:
            with suppress(StoreError):  # without a store the lease runs out by itself
                session.close()
        if done.trials:
            say(f"run {found.key}: {done.trials:,} trials")
        return done if done.trials or done.signal is not None else None


def _find(history: History, reference: str | None) -> Run | None:
    """The run to work on, if any has free tickets."""
    row = history.database.execute(
        "SELECT r.id FROM runs r WHERE r.status = 'running' "
        "AND (CAST(?1 AS TEXT) IS NULL OR r.key = ?1) AND EXISTS "
        "(SELECT 1 FROM tickets t WHERE t.run = r.id AND t.state = 0) "
        "AND EXISTS (SELECT 1 FROM accounts a WHERE a.run = r.id AND a.stopped IS NULL) "
        "ORDER BY r.id LIMIT 1",
        (reference,),
    ).fetchone()
    return None if row is None else history.run_by_id(int(row[0]))


def _suite(run: Run) -> Suite:
    """The suite of a run, from this machine's copy of its file; it must be the same."""
    request = RunRequest.from_json(run.options)
    if not request.suite:
        raise HistoryError(f"run {run.key} was not made by `passhat run`")
    suite = apply_request(load_suite(request.suite, models_asked=False), request)
    if suite.digest != run.suite_hash:
        raise HistoryError(
            f"{request.suite} here is not the file that run {run.key} was started with: bring "
            "this machine's copy up to date"
        )
    return suite
