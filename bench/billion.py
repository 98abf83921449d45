"""A billion trials as Parquet: what counting them costs beside the engine's bare group-by."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

SYSTEMS, TASKS = 10, 1_000
ROWS_OF_A_FILE = 100_000_000

MAKE = """
COPY (
  SELECT 's' || (i // ({tasks} * {runs})) AS system,
    't' || lpad(CAST((i // {runs}) % {tasks} AS VARCHAR), 4, '0') AS task, i % {runs} AS trial,
    hash(i) % 1000 < 400 + hash((i // {runs}) % {tasks}) % 500 AS passed
  FROM range({first}, {last}) AS numbers (i)
) TO '{file}' (FORMAT parquet, COMPRESSION zstd)
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
    chosen = parser.parse_args([] if __name__ != "__main__" else None)
    print("## Trials as Parquet: counting them, against DuckDB's bare group-by\n")
    print("| trials | MB | bare group-by CPU-s | read_tallies CPU-s | ratio | peak MB |")
    print("|---|---|---|---|---|---|")
    for size in map(int, chosen.sizes):
        with tempfile.TemporaryDirectory() as folder:
            made = _make(Path(folder), size)
            # By turns, and the median: other programs slow both down.
            pairs = [
                (_measure(BARE, folder, size), _measure(OURS, folder, size))
                for _ in range(chosen.times)
            ]
        bare, ours = (median(pair[who][0] for pair in pairs) for who in (0, 1))
        ratio = median(ours[0] / bare[0] for bare, ours in pairs)
        peak = max(ours[1] for _, ours in pairs)
        print(
            f"| {size:,} | {made / 1e6:.0f} | {bare:.2f} | {ours:.2f} | {ratio:.2f} | {peak:.0f} |",
            flush=True,
        )


def _make(folder: Path, size: int) -> int:
    """Files of at most a hundred million rows, sorted by system and task."""
    import duckdb

    runs = size // (SYSTEMS * TASKS)
    for number, first in enumerate(range(0, size, ROWS_OF_A_FILE)):
        last = min(size, first + ROWS_OF_A_FILE)
        file = folder / f"part-{number:03}.parquet"
        duckdb.execute(MAKE.format(tasks=TASKS, runs=runs, first=first, last=last, file=file))
    return sum(file.stat().st_size for file in folder.iterdir())


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
