"""Throughput of workers: trials per second and per CPU-second, local and through PostgreSQL."""

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

SUITE = """
name: throughput
systems: [{name: agent, model: scripted, script: [{answer: "yes", weight: 2}, {answer: "no"}]}]
defaults: {expect: [{contains: "yes"}]}
tasks:
"""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20_000)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 8])
    chosen = parser.parse_args([] if __name__ != "__main__" else None)
    print(f"## {chosen.trials:,} trivial trials, start-up included\n")
    print("| who | store | trials/s | trials per CPU-s, without PostgreSQL |")
    print("|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder, postgres_server() as postgres:
        home = Path(folder)
        tasks = "".join(f"  - {{name: t{i}, prompt: '{i}'}}\n" for i in range(100))
        home.joinpath("suite.yml").write_text(SUITE + tasks)
        _row("local", "SQLite", home, chosen.trials, None, 0)
        _row("local", "PostgreSQL", home, chosen.trials, postgres.new_database(), 0)
        for count in chosen.workers:
            who = f"{count} worker{'s' * (count > 1)}"
            _row(who, "PostgreSQL", home, chosen.trials, postgres.new_database(), count)


def _row(who: str, kind: str, home: Path, trials: int, store: str | None, workers: int) -> None:
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    where = [] if store is None else ["--store", store]
    lead = [*where, "--executor", "workers"] if workers else [*where, "--concurrency", "200"]
    run = _passhat(home, "run", "suite.yml", "--runs", str(trials // 100), "-q", *lead)
    crew = [_passhat(home, "worker", *where, "--concurrency", "200", "-q") for _ in range(workers)]
    run.wait()
    seconds = time.perf_counter() - begun
    for worker in crew:
        worker.terminate()
        worker.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"| {who} | {kind} | {trials / seconds:,.0f} | {trials / cpu:,.0f} |", flush=True)


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
