"""A driver and workers that a storm kills, freezes and starts again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.ray_cluster import python_with_ray, ray_cluster
from passhat.errors import StoreError
from passhat.history import History

LEASE_SECONDS = 4.0
"""Short, so that a stopped worker is given up for dead while it is being watched."""

FROZEN_SECONDS = 2 * LEASE_SECONDS
AT_WORK = (
    "SELECT DISTINCT s.pid FROM sessions s JOIN tickets t ON t.session = s.id "
    "WHERE s.role = 'worker' AND s.alive = 1 AND t.state = 1"
)
LEADING = "SELECT pid FROM sessions WHERE role = 'owner' AND alive = 1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a storm does, and to how big a run."""

    tasks: int
    runs: int
    worker_kills: int
    driver_kills: int = 0
    freezes: int = 0
    restarts: int = 0
    workers: int = 4
    ray_workers: int = 0
    latency: float = 0.5
    max_cost: float | None = None
    seed: int = 1

    @property
    def trials(self) -> int:
        """One task is for the scripted model."""
        return (self.tasks + 1) * self.runs

    @property
    def events(self) -> list[str]:
        """Everything that happens, mixed."""
        times = {"kill": self.worker_kills, "driver": self.driver_kills}
        times |= {"freeze": self.freezes, "restart": self.restarts}
        events = [name for name, count in times.items() for _ in range(count)]
        random.Random(self.seed).shuffle(events)
        return events


class Fleet:
    """A driver and some workers, all of which may die at any time; open it with `with`."""

    def __init__(self, home: Path, store: str, plan: Plan, environment: dict[str, str]) -> None:
        self.home, self.store, self.plan = home, store, plan
        self.ray_kills = 0
        self.broken = 0
        self._environment = environment
        self._frozen: deque[tuple[float, int]] = deque()
        self._rng = random.Random(plan.seed)

    def __enter__(self) -> Fleet:
        limit = ["--max-cost", str(self.plan.max_cost)] if self.plan.max_cost else []
        start = ("run", "suite.yml", "--runs", str(self.plan.runs), *limit, *self._lead)
        self.driver = self._start(*start)
        self.workers = [self._worker() for _ in range(self.plan.workers)]
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.thaw(all_of_them=True)
        for process in (self.driver, *self.workers):
            process.kill()
            process.wait()

    def kill_worker(self, pid: int) -> None:
        """Kill one; plain workers are started again here, those of Ray by Ray."""
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        for place, worker in enumerate(self.workers):
            if worker.pid == pid:
                worker.wait()
                self.workers[place] = self._worker()
                return
        self.ray_kills += 1

    def kill_driver(self) -> None:
        self.driver.kill()
        self.driver.wait()
        self.resume()

    def resume(self) -> None:
        self.driver = self._start("resume", *self._lead)

    def freeze(self, pid: int) -> None:
        """Stop a worker for longer than its lease: it comes back and must not write."""
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            self._frozen.append((time.monotonic() + FROZEN_SECONDS, pid))

    def thaw(self, *, all_of_them: bool = False) -> None:
        """Let workers continue whose time has come."""
        while self._frozen and (all_of_them or self._frozen[0][0] < time.monotonic()):
            with suppress(ProcessLookupError):
                os.kill(self._frozen.popleft()[1], signal.SIGCONT)

    def victim(self) -> int | None:
        """A worker with trials under way, and not a frozen one."""
        frozen = {pid for _, pid in self._frozen}
        pids = sorted(pid for (pid,) in rows_of(self.store, AT_WORK) if pid not in frozen)
        return self._rng.choice(pids) if pids else None

    def has_driver(self) -> bool:
        """Whether the driver has the run, and is not just starting."""
        return (self.driver.pid,) in rows_of(self.store, LEADING)

    @property
    def _lead(self) -> tuple[str, ...]:
        count = self.plan.ray_workers
        executor = ("ray", "--workers", str(count)) if count else ("workers",)
        return ("--store", self.store, "--executor", *executor, "-q", "-o", "report.json")

    def _worker(self) -> subprocess.Popen[bytes]:
        return self._start("worker", "--store", self.store, "-q")

    def _start(self, *command: str) -> subprocess.Popen[bytes]:
        with (self.home / "log.txt").open("ab") as log:
            python = self._environment["STORM_PYTHON"]
            return subprocess.Popen(
                [python, "-m", "passhat", *command],
                cwd=self.home,
                env=self._environment,
                stdout=log,
                stderr=log,
            )


def fleet_environment(stack: ExitStack, *, ray: bool) -> dict[str, str]:
    """The variables of every process: a short lease, the Python, the address of a Ray cluster."""
    given = {n: v for n, v in os.environ.items() if n != "PYTHONDONTWRITEBYTECODE"}
    given |= {"PASSHAT_LEASE_SECONDS": str(LEASE_SECONDS), "STORM_PYTHON": sys.executable}
    if ray:
        python = python_with_ray()
        if python is None:
            raise SystemExit("no Ray here: make ray")
        address = stack.enter_context(ray_cluster(python))
        given |= {"STORM_PYTHON": str(python), "RAY_ADDRESS": address}
    return given


@contextmanager
def reading(store: str) -> Iterator[History]:
    """The store, to be read."""
    with History.open(store, read_only=True) as history:
        yield history


def rows_of(store: str, sql: str) -> list[tuple[Any, ...]]:
    """The rows of a query; none, or a count of 0, while the server is being restarted."""
    try:
        with reading(store) as history:
            return history.database.execute(sql).fetchall()
    except StoreError:
        return [(0,)] if "count" in sql else []
