"""A billion trials as Parquet: what counting them costs beside the engine's bare group-by."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

SYSTEMS, TASKS = 10, 1_000
ROWS_OF_A_FILE = 100_000_000

# Numbers of trials that are too many for a dictionary are written as differences (version 2 of the
# format). Written in full (version 1) they are most of the file, and most of what it takes to read.
MAKE = """
COPY (
  SELECT system, task, trial,
    hash(pair * {runs} + trial) % 1000 < 400 + hash(pair % {tasks}) % 500 AS passed
  FROM (
    SELECT pair, 's' || (pair // {tasks}) AS system,
      't' || lpad(CAST(pair % {tasks} AS VARCHAR), 4, '0') AS task, unnest(range({runs})) AS trial
    FROM range({first}, {last}) AS pairs (pair)
  )
) TO '{file}' (FORMAT parquet, COMPRESSION zstd, PARQUET_VERSION {version})
"""

BARE = """
import duckdb
query = (
    "SELECT system, task, count(*), sum(CAST(passed AS INT)) FROM read_parquet(?) GROUP BY 1, 2"
)
counts = duckdb.execute(query, [f"{FOLDER}/*.parquet"]).fetchall()
assert sum(row[2] for row in counts) == ROWS
"""

OURS = """
from passhat.ingest import read_tallies
assert sum(int((t.passed + t.failed).sum()) for t in read_tallies(FOLDER)) == ROWS
"""


def main() -> None:
    """Print the growth curve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="+", type=float, default=[1e6, 1e7, 1e8, 1e9])
    parser.add_argument("--times", type=int, default=3, help="How often each is measured.")
    parser.add_argument("--version", default="V2", choices=["V1", "V2"], help="Of Parquet.")
    chosen = parser.parse_args([] if __name__ != "__main__" else None)
    print("## Trials as Parquet: counting them, against DuckDB's bare group-by\n")
    print("| trials | MB | bare group-by CPU-s | read_tallies CPU-s | ratio | peak MB |")
    print("|---|---|---|---|---|---|")
    for size in map(int, chosen.sizes):
        with tempfile.TemporaryDirectory() as folder:
            _make(Path(folder), size, chosen.version)
            _compare(Path(folder), size, chosen.times)


def _make(folder: Path, size: int, version: str) -> None:
    """Files of at most a hundred million rows, sorted by system and task."""
    import duckdb

    pairs = SYSTEMS * TASKS
    runs = size // pairs
    step = min(pairs, max(1, ROWS_OF_A_FILE // runs))
    for number, first in enumerate(range(0, pairs, step)):
        file = folder / f"part-{number:03}.parquet"
        last = min(pairs, first + step)
        names = {"tasks": TASKS, "runs": runs, "first": first, "last": last, "file": file}
        duckdb.execute(MAKE.format(**names, version=version))


def _compare(folder: Path, size: int, times: int) -> None:
    """Print one row: both by turns, the least of each, because other programs slow both down."""
    pairs = [
        (_measure(BARE, str(folder), size), _measure(OURS, str(folder), size)) for _ in range(times)
    ]
    bare, ours = (min(pair[who][0] for pair in pairs) for who in (0, 1))
    peak = max(ours[1] for _, ours in pairs)
    made = sum(file.stat().st_size for file in folder.iterdir()) / 1e6
    seconds = f"{bare:.2f} | {ours:.2f} | {ours / bare:.2f}"
    print(f"| {size:,} | {made:.0f} | {seconds} | {peak:.0f} |", flush=True)


def _measure(program: str, folder: str, rows: int) -> tuple[float, float]:
    """CPU seconds and peak memory of a process of its own, imports left out of the seconds."""
    lines = (
        "import json, resource, time",
        "import duckdb, passhat.ingest",
        "duckdb.execute('SET enable_progress_bar = false')",
        f"FOLDER, ROWS = {folder!r}, {rows}",
        "begun = time.process_time()",
        program,
        "used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024",
        "print(json.dumps([time.process_time() - begun, used]))",
    )
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    seconds, peak = json.loads(done.stdout)
    return seconds, peak


if __name__ == "__main__":
    main()
