"""Throughput: trials per second and per CPU-second, in one process and by workers, as runs grow."""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from passhat.testing.postgres import postgres_server

TASKS = 100
SUITE = """
name: throughput
systems: [{name: agent, model: scripted, script: [{answer: "yes", weight: 2}, {answer: "no"}]}]
defaults: {expect: [{contains: "yes"}]}
tasks:
"""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 100_000])
    chosen = parser.parse_args([] if __name__ != "__main__" else None)
    print("## Trivial trials: what running and keeping them costs, start-up included\n")
    print("| who | store | trials | trials/s | ms of CPU per trial | trials per CPU-s |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder, postgres_server() as postgres:
        home = Path(folder)
        tasks = "".join(f"  - {{name: t{i}, prompt: '{i}'}}\n" for i in range(TASKS))
        home.joinpath("suite.yml").write_text(SUITE + tasks)
        for trials in sorted({*chosen.sizes, chosen.trials}):
            _row(home, trials, None, 0)
        _row(home, chosen.trials, postgres.new_database(), 0)
        for count in chosen.workers:
            _row(home, chosen.trials, postgres.new_database(), count)
        for trials in chosen.sizes:
            _row(home, trials, postgres.new_database(), 2)
    print("\nThe CPU of PostgreSQL itself is not in these figures.")


def _row(home: Path, trials: int, store: str | None, workers: int) -> None:
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    where = [] if store is None else ["--store", store]
    lead = [*where, "--executor", "workers"] if workers else [*where, "--concurrency", "200"]
    run = _passhat(home, "run", "suite.yml", "--runs", str(trials // TASKS), "-q", *lead)
    crew = [_passhat(home, "worker", *where, "--concurrency", "200", "-q") for _ in range(workers)]
    run.wait()
    seconds = time.perf_counter() - begun
    for worker in crew:
        worker.terminate()
        worker.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    who = f"{workers} worker{'s' * (workers > 1)}" if workers else "one process"
    kind = "SQLite" if store is None else "PostgreSQL"
    print(
        f"| {who} | {kind} | {trials:,} | {trials / seconds:,.0f} | {1000 * cpu / trials:.2f} | "
        f"{trials / cpu:,.0f} |",
        flush=True,
    )


def _passhat(home: Path, *command: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "passhat", *command],
        cwd=home,
        env=os.environ.copy(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


if __name__ == "__main__":
    main()
