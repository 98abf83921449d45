"""From a file to counts and to a Report: logs, transcripts, and tables of ten million trials."""

from __future__ import annotations

import gzip
import importlib.util
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

SEED = 20261115
SAMPLES, EPOCHS = 200, 10
SYSTEMS, TASKS, RUNS = 2, 1000, 5000
REPEATS = 3
MANY_LINES = 60_000

GROUP_BY = "SELECT system, task, COUNT(*) AS n, SUM(passed) AS c FROM {} GROUP BY system, task"

MEASURE = """
import json, re, sys, time
{imports}
path = sys.argv[1]
wall, cpu = time.perf_counter(), time.process_time()
{work}
print(json.dumps({{
    "wall": time.perf_counter() - wall,
    "cpu": time.process_time() - cpu,
    # Not getrusage: its peak may be that of the process that started this one.
    "peak": int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024,
}}))
"""

READ = "from passhat.ingest import {0} as read"
REPORT = READ + "\nfrom passhat.analysis.reports.measure import measure"

LOG_READERS = {
    "inspect_ai read_eval_log": ("from inspect_ai.log import read_eval_log", "read_eval_log(path)"),
    "passhat, to trials": (READ.format("read_trials"), "read(path)"),
    "passhat, to a report": (REPORT.format("read_trials"), "measure(read(path))"),
}

WRITE_LOG = f"""
import random, sys
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
luck = random.Random({SEED})
def answers():
    while True:
        answer = ModelOutput.from_content("mockllm/model", luck.choice(["ok", "ok", "wrong"]))
        answer.usage = ModelUsage(input_tokens=4, output_tokens=3, total_tokens=7)
        yield answer
samples = [Sample(id=f"t{{i}}", input=f"say ok {{i}}", target="ok") for i in range({SAMPLES})]
task = Task(dataset=samples, scorer=includes(), epochs={EPOCHS})
model = get_model("mockllm/model", custom_outputs=answers())
eval(task, model=model, log_dir=sys.argv[1], display="none")
"""

SCANS = {"csv": "scan_csv", "jsonl": "scan_ndjson", "parquet": "scan_parquet"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one job took, at its best of some repeats, in a process of its own."""

    wall: float
    cpu: float
    peak: float


def main() -> None:
    """Print the tables; every figure of a table is measured in this run."""
    with tempfile.TemporaryDirectory() as folder:
        inspect_log(Path(folder))
        big_tables(Path(folder))
        transcripts(Path(folder))
        bombs(Path(folder))


def inspect_log(folder: Path) -> None:
    """An Inspect log, against Inspect's own reader."""
    print(f"\n## An Inspect log of {SAMPLES * EPOCHS:,} samples\n")
    if not _installed("inspect_ai"):
        print("inspect_ai is not installed: nothing to write the log with, nor to compare with.")
        return
    subprocess.run([sys.executable, "-c", WRITE_LOG, str(folder)], check=True, capture_output=True)
    log = next(folder.glob("*.eval"))
    costs = {name: measure(log, *job) for name, job in LOG_READERS.items()}
    theirs = costs["inspect_ai read_eval_log"].cpu
    ratios = {name: theirs / cost.cpu for name, cost in costs.items()}
    _table(costs, "times faster than inspect_ai (CPU)", ratios)


def big_tables(folder: Path) -> None:
    """CSV, JSON Lines and Parquet, against the plain group-by of DuckDB and polars."""
    rows = SYSTEMS * TASKS * RUNS
    for ending, path in write_tables(folder).items():
        print(f"\n## {rows:,} trials as .{ending} ({path.stat().st_size / 1e6:,.0f} MB)\n")
        costs = {name: measure(path, *job) for name, job in table_jobs(ending).items()}
        peers = [cost for name, cost in costs.items() if not name.startswith("passhat")]
        fastest = min(cost.cpu for cost in peers)
        ratios = {name: cost.cpu / fastest for name, cost in costs.items()}
        _table(costs, "times the fastest plain group-by (CPU)", ratios)
    for name in ("duckdb", "polars"):
        if not _installed(name):
            print(f"\n{name} is not installed.")


def table_jobs(ending: str) -> dict[str, tuple[str, str]]:
    """The same counts by each engine that is installed, and by passhat."""
    jobs: dict[str, tuple[str, str]] = {}
    if _installed("duckdb"):
        query = GROUP_BY.format("'{path}'")
        quiet = "duckdb.sql('SET enable_progress_bar = false')"  # which starts the database
        jobs["DuckDB group-by"] = ("import duckdb", f'{quiet}\nduckdb.sql(f"{query}").fetchall()')
    if _installed("polars"):
        frame = f"polars.SQLContext(t=polars.{SCANS[ending]}(path))"
        query = GROUP_BY.format("t")
        work = f'{frame}.execute("{query}").collect(engine="streaming")'
        jobs["polars group-by"] = ("import polars", work)
    engine = "\nimport polars" if ending == "csv" or not _installed("duckdb") else "\nimport duckdb"
    jobs["passhat, to counts"] = (READ.format("read_tallies") + engine, "read(path)")
    jobs["passhat, to a report"] = (REPORT.format("read_tallies") + engine, "measure(read(path))")
    return jobs


def write_tables(folder: Path) -> dict[str, Path]:
    """Trials in the order of a run: every task of every system once, and again."""
    import polars

    rng = np.random.default_rng(SEED)
    cells = SYSTEMS * TASKS
    rate = np.tile(rng.beta(2, 1, cells), RUNS)
    frame = polars.DataFrame(
        {
            "system": np.tile(np.repeat([f"agent-{i}" for i in range(SYSTEMS)], TASKS), RUNS),
            "task": np.tile([f"task-{i:04d}" for i in range(TASKS)], SYSTEMS * RUNS),
            "trial": np.repeat(np.arange(RUNS), cells),
            "passed": (rng.random(cells * RUNS) < rate).astype(np.int8),
        }
    )
    paths = {ending: folder / f"trials.{ending}" for ending in SCANS}
    frame.write_csv(paths["csv"])
    frame.write_ndjson(paths["jsonl"])
    frame.write_parquet(paths["parquet"])
    return paths


def transcripts(folder: Path) -> None:
    """JSON Lines that are nearly all transcripts, against DuckDB, which is told the two columns."""
    path = folder / "transcripts.jsonl"
    rng = np.random.default_rng(SEED)
    words = " ".join(f"word{i}" for i in rng.integers(0, 3000, 20_000))
    with path.open("w") as file:
        for row in range(MANY_LINES):
            starts = rng.integers(0, len(words) - 700, 12)
            said = [{"role": "assistant", "content": words[at : at + 700]} for at in starts]
            task, passed = f"task-{row % 200}", bool(rng.random() < 0.6)
            line = {"task": task, "trial": row // 200, "passed": passed, "messages": said}
            file.write(json.dumps(line) + "\n")
    size = path.stat().st_size / 1e6
    print(f"\n## {MANY_LINES:,} trials with transcripts ({size:,.0f} MB; at most 2.5 times)\n")
    if not _installed("duckdb"):
        print("duckdb is not installed.")
        return
    columns = "columns={{'task': 'VARCHAR', 'passed': 'BOOLEAN'}}, format='newline_delimited'"
    query = f"SELECT avg(passed::int) FROM read_json('{{path}}', {columns})"
    quiet = "duckdb.sql('SET enable_progress_bar = false')"
    jobs = {
        "DuckDB mean": ("import duckdb", f'{quiet}\nduckdb.sql(f"{query}").fetchall()'),
        "passhat, to a report": (REPORT.format("read_trials"), "measure(read(path))"),
    }
    costs = {name: measure(path, *job) for name, job in jobs.items()}
    ratios = {name: cost.cpu / costs["DuckDB mean"].cpu for name, cost in costs.items()}
    _table(costs, "times DuckDB (CPU)", ratios)


def bombs(folder: Path) -> None:
    """A small file that expands a thousandfold, refused."""
    print("\n## 463 KB of gzip that hold 440 MB\n")
    path = folder / "bomb.json.gz"
    path.write_bytes(gzip.compress(b" " * 2**20) * 440)
    imports = READ.format("read_trials") + "\nfrom passhat.errors import ReadError"
    cost = measure(path, imports, "try: read(path)\nexcept ReadError: pass")
    _table({"passhat refuses it": cost})


def measure(path: Path, imports: str, work: str) -> Cost:
    """The best of some runs, each in a new process, imports left out."""
    script = MEASURE.format(imports=imports, work=work)
    found = [
        json.loads(
            subprocess.run(
                [sys.executable, "-c", script, str(path)],
                check=True,
                capture_output=True,
                text=True,
            ).stdout.splitlines()[-1]
        )
        for _ in range(REPEATS)
    ]
    return Cost(**{name: min(cost[name] for cost in found) for name in ("wall", "cpu", "peak")})


def _installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def _table(
    costs: Mapping[str, Cost], title: str = "", ratios: Mapping[str, float] | None = None
) -> None:
    header = ("", "CPU s", "wall s", "peak MB", *([title] if title else []))
    print("| " + " | ".join(header) + " |\n|" + "---|" * len(header))
    for name, cost in costs.items():
        cells = [name, f"{cost.cpu:.3f}", f"{cost.wall:.3f}", f"{cost.peak:.0f}"]
        if ratios:
            cells.append(f"{ratios[name]:.2f}")
        print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
