"""Workers: what each of them does, and how a Ray cluster starts and restarts them."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from passhat.errors import (
    ArgumentError,
    ConfigurationError,
    HistoryError,
    InputError,
    MissingExtra,
    PasshatError,
    RunError,
    StoreError,
)
from passhat.journeys.run_request import RunRequest, apply_request
from passhat.journeys.run_store import STORE_WAIT_SECONDS
from passhat.messages import plural
from passhat.suite import load_suite

if TYPE_CHECKING:
    from passhat.history import History, Run
    from passhat.records import Resources, Suite
    from passhat.runner.workers import WorkDone

CPUS_OF_A_WORKER = 1.0
"""CPUs that a worker asks for if the suite does not say what a trial needs: a worker is one Python
process, and uses one CPU at most."""

ENVIRONMENT = "PASSHAT_RAY_ENV"
"""A variable with more of Ray's runtime_env, as JSON: `{"pip": ["my-agent==1.2"]}`."""

LEFT_OUT = (".git", ".venv*", ".passhat", "node_modules", "__pycache__")
"""Folders that workers do not need, and that may be too big to ship."""

STOP_SECONDS = 10.0
"""How long workers may take to stop when a run ends: their grace, and closing their servers."""

Check = Callable[[], None]


@contextmanager
def ray_workers(suite: Suite, store: str, run: str, count: int) -> Iterator[Check]:
    """Worker actors for one run, on the cluster at RAY_ADDRESS or on a new local one.

    Ray never retries a trial: an actor that dies is started again and claims new tickets. This
    folder and passhat itself are shipped to the nodes. The yielded function raises RunError once
    no worker is left.
    """
    try:
        import ray
    except ImportError:
        raise MissingExtra("`executor='ray'`", "ray") from None
    needs = actor_options(suite.resources, suite.concurrency)
    mine = not ray.is_initialized()
    if mine:
        _connect(ray, suite)
    actors: list[Any] = []
    try:
        _refuse_too_big(ray.nodes(), needs)
        # One thread works, the other can receive a stop.
        options = {"max_restarts": -1, "max_task_retries": -1, "max_concurrency": 2, **needs}
        remote = ray.remote(**options)(RayWorker)
        actors = [remote.remote(store, run) for _ in range(count)]
        working = [actor.work.remote() for actor in actors]
        try:
            yield lambda: _check(ray, working)
        finally:
            _stop(ray, actors, working)
    finally:
        for actor in actors:
            ray.kill(actor)
        if mine:
            ray.shutdown()


def actor_options(resources: Resources, concurrency: int) -> dict[str, float]:
    """What a worker asks Ray for: the resources of one trial, times its concurrency.

    >>> from passhat.records import Resources
    >>> actor_options(Resources(cpus=0.25, memory=10**8), 8)
    {'num_cpus': 2.0, 'memory': 800000000}
    """
    total = resources.times(concurrency)
    wanted = {
        "num_cpus": CPUS_OF_A_WORKER if total.cpus is None else total.cpus,
        "memory": total.memory,
        "num_gpus": total.gpus,
    }
    return {name: value for name, value in wanted.items() if value}


class RayWorker:
    """What an actor does: the same as `passhat worker`, until it is stopped."""

    def __init__(self, store: str, run: str) -> None:
        self._store = store
        self._run = run
        self._stop = threading.Event()

    def work(self) -> int:
        """Run trials; notes come back to the driver's standard error."""
        # What an agent prints must not end up between the lines of the driver's answer.
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        return work(self._store, run=self._run, stop=self._stop, say=_say)

    def stop(self) -> None:
        """Claim nothing more, and give running trials a moment to finish."""
        self._stop.set()


def _connect(ray: Any, suite: Suite) -> None:
    """Join the cluster. A driver that Ray itself started brings its own runtime_env."""
    submitted = "RAY_JOB_CONFIG_JSON_ENV_VAR" in os.environ
    try:
        ray.init(
            address=os.environ.get("RAY_ADDRESS"),
            runtime_env=None if submitted else _shipped(suite),
            include_dashboard=False if "RAY_ADDRESS" not in os.environ else None,
            log_to_driver=True,
            logging_level="WARNING",
        )
    except InputError:
        raise
    except Exception as error:  # Ray raises a plain Exception if a node does not start
        where = os.environ.get("RAY_ADDRESS", "a new local one")
        raise RunError(f"the Ray cluster ({where}) cannot be used: {_first_line(error)}") from error


def _shipped(suite: Suite) -> dict[str, Any]:
    """The code of a worker: this folder, which must hold the suite, and this passhat."""
    import passhat

    here = Path.cwd()
    if suite.path is not None and not suite.path.resolve().is_relative_to(here.resolve()):
        raise ArgumentError(
            "suite", "must be in the folder that is shipped to the cluster, this one", suite.path
        )
    package = Path(passhat.__file__).parent
    shipped = {"working_dir": str(here), "excludes": list(LEFT_OUT), "py_modules": [str(package)]}
    return {**shipped, **_own_environment()}


def _own_environment() -> dict[str, Any]:
    text = os.environ.get(ENVIRONMENT, "{}")
    try:
        given = json.loads(text)
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise ConfigurationError(
            f"{ENVIRONMENT} must be a JSON object of Ray's runtime_env, got {text!r}"
        )
    return given


def _refuse_too_big(nodes: list[Mapping[str, Any]], needs: Mapping[str, float]) -> None:
    """Refuse a worker that fits on no node: the run would wait for it forever."""
    names = {"num_cpus": "CPU", "num_gpus": "GPU", "memory": "memory"}
    for name, wanted in needs.items():
        most = max((node["Resources"].get(names[name], 0) for node in nodes), default=0)
        if wanted > most:
            raise ArgumentError(
                "resources",
                f"of a worker (a trial's, times the concurrency) must fit on one node, and the "
                f"biggest has {names[name]} {most:g}",
                wanted,
            )


def _check(ray: Any, working: list[Any]) -> None:
    """Raise RunError if no worker is left, with the reason that the first of them gave."""
    ended, at_work = ray.wait(working, num_returns=len(working), timeout=0)
    if at_work:
        return
    try:
        ray.get(ended)
    except Exception as error:  # Ray wraps what the worker raised in its own class
        why = getattr(error, "cause", None) or error
        raise RunError(f"no Ray worker is left: {_first_line(why)}") from error
    raise RunError(f"no Ray worker is left: {plural(len(ended), 'worker')} ended by themselves")


def _stop(ray: Any, actors: list[Any], working: list[Any]) -> None:
    """Let running trials finish: calls of a killed worker may be paid twice."""
    for actor in actors:
        actor.stop.remote()
    ray.wait(working, num_returns=len(working), timeout=STOP_SECONDS)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201  Ray carries it to the driver


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


# What a worker does: find a run that has trials to run, and run them until none are left.


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

    Runs of suites that are not here, such as those of another team, are left to other workers.
    After a restart of the store, and after others have closed its session because its lease ran
    out, the worker starts again under a new session. It ends at a signal, when `stop` is set, or
    (`until_idle`) when no run has had work for a while. A store that is away is not idleness: with
    `until_idle` the worker waits for it longer, and then raises StoreError.
    """
    from passhat.history import History

    stop = stop or threading.Event()
    trials, seen, lost, complaint = 0, time.monotonic(), None, ""
    left = set[str]()
    while not stop.is_set():
        try:
            with History.open(store) as history:
                lost, complaint = None, ""
                done = _work_once(history, run, concurrency, say, stop, left)
        except StoreError as error:
            seen = time.monotonic()
            lost = seen if lost is None else lost
            if until_idle and seen - lost > STORE_WAIT_SECONDS:
                raise
            if str(error) != complaint:  # an outage of an hour is one line, not thousands
                complaint = str(error)
                say(f"{complaint}; trying again")
            stop.wait(LOOK_SECONDS)
            continue
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
    history: History,
    run: str | None,
    concurrency: int | None,
    say: Say,
    stop: threading.Event,
    left: set[str],
) -> WorkDone | None:
    """Work on one run, if there is one; what was said of those that are `left` is said once."""
    from passhat.history.work_queue import WorkerSession, runs_with_work
    from passhat.runner.workers import run_worker

    runs = runs_with_work(history, run)
    waiting = next((stored for stored in runs if run is not None or _is_of_here(stored)), None)
    for other in runs if waiting is None else ():
        if other.key not in left:
            left.add(other.key)
            say(f"run {other.key} of {other.suite} is left to others: that suite is not here")
    if waiting is None:
        return None
    suite = _suite(waiting)
    hands = concurrency or suite.concurrency
    session = WorkerSession(history, waiting, hands=hands)
    say(f"run {waiting.key} of {waiting.suite}: {hands} trials at a time")
    try:
        done = run_worker(suite, session, concurrency=hands, idle_seconds=LOOK_SECONDS, stop=stop)
    finally:
        with suppress(StoreError):  # without a store the lease runs out by itself
            session.close()
    if done.trials:
        say(f"run {waiting.key}: {done.trials:,} trials")
    return done if done.trials or done.signal is not None else None


def _is_of_here(run: Run) -> bool:
    """Whether a suite of that name is where the run had it; another team's is somewhere else."""
    request = RunRequest.from_json(run.options)
    with suppress(PasshatError):
        return load_suite(request.suite, models_asked=False).name == run.suite
    return False


def _suite(run: Run) -> Suite:
    """The suite of a run, from this machine's copy; it and what grades must be the same."""
    from passhat.runner.preflight import graders_of

    request = RunRequest.from_json(run.options)
    if not request.suite:
        raise HistoryError(f"run {run.key} was not made by `passhat run`")
    suite = apply_request(load_suite(request.suite, models_asked=False), request)
    if suite.digest != run.suite_hash:
        raise HistoryError(
            f"{request.suite} here is not the file that run {run.key} was started with: bring "
            "this machine's copy up to date"
        )
    for name, arm in run.options.get("arms", {}).items():
        started_with = arm.get("graders", "").split(" ")[-1]  # resumed: "before, then now"
        if started_with not in ("", graders_of(suite, name)):
            raise HistoryError(
                f"the graders or hidden tests of {request.suite} here are not those that run "
                f"{run.key} was started with: put them back, or bring this machine's copy up to "
                "date"
            )
    return suite
