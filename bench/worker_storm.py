"""Killing workers, drivers and PostgreSQL: what is lost, and which calls are paid a second time."""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from bench.kill_storm import answer_done, call_identity, suite_text
from passhat.history import History
from passhat.testing import WireServer
from passhat.testing.postgres import PostgresServer, postgres_server

LEASE = "3"
"""Seconds, so that a stopped worker is given up for dead while it is being watched."""

FROZEN_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStorm:
    """What came of a run whose processes were killed, frozen and cut off again and again."""

    worker_kills: int
    driver_kills: int
    freezes: int
    restarts: int
    trials: int
    kept: int
    counted_twice: int
    billed: int
    needed: int
    reported: int
    seconds: float

    @property
    def paid_twice(self) -> int:
        """Calls that were asked again."""
        return self.billed - self.needed


class _Fleet:
    """A driver and some workers, all of which may die at any time."""

    def __init__(self, home: Path, store: str, *, workers: int, runs: int) -> None:
        self._home = home
        self._store = store
        self._runs = runs
        self._environment = {**os.environ, "PASSHAT_LEASE_SECONDS": LEASE}
        self.driver = self._start("run", "suite.yml", "--runs", str(runs), *self._lead)
        self.workers = [self._worker() for _ in range(workers)]

    @property
    def _lead(self) -> tuple[str, ...]:
        return ("--store", self._store, "--executor", "workers", "-q", "-o", "report.json")

    def kill_worker(self, rng: random.Random) -> None:
        place = rng.randrange(len(self.workers))
        self.workers[place].kill()
        self.workers[place].wait()
        self.workers[place] = self._worker()

    def kill_driver(self) -> None:
        if self.driver.poll() is None:
            self.driver.kill()
            self.driver.wait()
            self.resume()

    def resume(self) -> None:
        self.driver = self._start("resume", *self._lead)

    def freeze_worker(self, rng: random.Random) -> None:
        """Stop a worker for longer than its lease: it comes back as a zombie that may not write."""
        worker = rng.choice(self.workers)
        worker.send_signal(signal.SIGSTOP)
        time.sleep(FROZEN_SECONDS)
        worker.send_signal(signal.SIGCONT)

    def close(self) -> None:
        for process in (self.driver, *self.workers):
            process.kill()
            process.wait()

    def _worker(self) -> subprocess.Popen[bytes]:
        return self._start("worker", "--store", self._store, "--concurrency", "10", "-q")

    def _start(self, *command: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "passhat", *command],
            cwd=self._home,
            env=self._environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


def storm(
    postgres: PostgresServer,
    *,
    worker_kills: int,
    driver_kills: int = 0,
    freezes: int = 0,
    restarts: int = 0,
    tasks: int,
    runs: int,
    workers: int = 4,
    latency: float = 0.05,
    pause: float = 1.0,
    seed: int = 1,
) -> WorkerStorm:
    """Lead a run through all that, evenly mixed, and count."""
    rng = random.Random(seed)
    events = (
        ["kill"] * worker_kills + ["driver"] * driver_kills
        + ["freeze"] * freezes + ["restart"] * restarts
    )  # fmt: skip
    rng.shuffle(events)
    begun = time.monotonic()
    with (
        tempfile.TemporaryDirectory() as folder,
        WireServer(answer_done, latency=latency) as server,
    ):
        home, store = Path(folder), postgres.new_database()
        home.joinpath("suite.yml").write_text(suite_text(server.url, tasks))
        fleet = _Fleet(home, store, workers=workers, runs=runs)
        happened: Counter[str] = Counter()
        try:
            while not server.asked:
                time.sleep(0.1)
            for event in events:
                time.sleep(rng.uniform(0, 2 * pause))
                if fleet.driver.poll() is not None:
                    break  # the run is over: what is left of the storm has nothing to hit
                happened[event] += 1
                _strike(event, fleet, postgres, rng)
            while fleet.driver.wait() not in (0, 1):
                fleet.resume()
        finally:
            fleet.close()
        return _count(store, home, server, happened, tasks * runs, time.monotonic() - begun)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--trials", type=int, default=5_000)
    chosen = parser.parse_args()
    with postgres_server() as postgres:
        result = storm(
            postgres,
            worker_kills=chosen.kills,
            driver_kills=5,
            freezes=5,
            restarts=1,
            tasks=50,
            runs=chosen.trials // 50,
            latency=0.5,
        )
    print("| kills (driver) | frozen / restarts | trials | counted twice | paid twice | it says |")
    print("|---|---|---|---|---|---|")
    print(
        f"| {result.worker_kills} ({result.driver_kills}) | {result.freezes} / {result.restarts} | "
        f"{result.kept} of {result.trials} | {result.counted_twice} | "
        f"{result.paid_twice} of {result.billed} | at most {result.reported} |"
    )


def _strike(event: str, fleet: _Fleet, postgres: PostgresServer, rng: random.Random) -> None:
    match event:
        case "kill":
            fleet.kill_worker(rng)
        case "driver":
            fleet.kill_driver()
        case "freeze":
            fleet.freeze_worker(rng)
        case "restart":
            postgres.restart(how="immediate")


def _count(
    store: str,
    home: Path,
    server: WireServer,
    happened: Counter[str],
    trials: int,
    seconds: float,
) -> WorkerStorm:
    calls = Counter(call_identity(asked) for asked in server.asked)
    with History.open(store, read_only=True) as history:
        run = history.find_run("latest")
        kept = [(trial.task, trial.trial) for trial in history.trials(run)]
        lost = history.query("SELECT coalesce(sum(lost_calls), 0) FROM accounts")[1]
    return WorkerStorm(
        worker_kills=happened["kill"],
        driver_kills=happened["driver"],
        freezes=happened["freeze"],
        restarts=happened["restart"],
        trials=trials,
        kept=len(set(kept)),
        counted_twice=len(kept) - len(set(kept)),
        billed=calls.total(),
        needed=len(calls),
        reported=int(lost[0][0]),
        seconds=seconds,
    )


if __name__ == "__main__":
    main()
