"""What a report and a command cost, against a limit that is measured in the same run.

`python -m bench.costs --against COMMIT` also measures the sources of that commit by turns with
these, in the same minutes, and prints how many times as much the present ones take.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from statistics import median

HOME = Path(__file__).parents[1]
ROUNDS = 9
# what is asked; systems, tasks, runs, and how many suites of that size are measured
DESIGNS = {
    "`measure`, 45 x 10": ("measure", 1, 45, 10, 8),
    "`measure`, 45 x 10, and its decay": ("decay", 1, 45, 10, 8),
    "`measure`, 200 x 10": ("measure", 1, 200, 10, 8),
    "`measure`, 12 x 127 x 4": ("measure", 12, 127, 4, 2),
    "`compare`, 2 x 45 x 10": ("compare", 2, 45, 10, 8),
}
# At most so many times the limit of its row: what was reached when this was written, and a third.
MOST = {
    "`measure`, 45 x 10": 16,
    "`measure`, 45 x 10, and its decay": 40,
    "`measure`, 200 x 10": 15,
    "`measure`, 12 x 127 x 4": 130,
    "`compare`, 2 x 45 x 10": 34,
    "report": 4,
    "run": 8,
    "--help": 6,
}

# CPU of an answer beside that of numpy doing a fixed amount of small work, by turns: medians.
MEASURE = """
import json, sys, time
from statistics import median
import numpy as np
import passhat
from passhat.records import Trials
asked = sys.argv[1]
systems, tasks, runs, suites = map(int, sys.argv[2:])
def answer(trials):
    if asked == "compare":
        return passhat.compare(trials)
    report = getattr(passhat, "report", None) or passhat.measure  # its name in earlier commits
    report = report(trials)
    for system in report.systems:  # intervals are computed when they are looked at
        [(metric.this_suite, metric.tasks_like_these) for metric in system.metrics.values()]
    if asked == "decay":
        return [system.decay for system in report.systems]
def limit():
    x, begun = np.arange(10.0), time.process_time()
    for _ in range(500):
        (np.exp(x) * x + x).sum()
    return time.process_time() - begun
def suite(seed):
    rng = np.random.default_rng(seed)
    passed = rng.random((systems, tasks, runs)) < rng.beta(4, 2, (systems, tasks, 1))
    places = np.indices(passed.shape).reshape(3, -1)
    return Trials.from_columns(system=[f"s{i}" for i in places[0]],
                               task=[f"t{i}" for i in places[1]], passed=passed.ravel().tolist())
took, limits = [], []
for seed in range(suites + 1):
    trials = suite(seed)
    limits.append(limit())
    begun = time.process_time()
    answer(trials)
    took.append(time.process_time() - begun)
print(json.dumps([median(took[1:]), median(limits[1:])]))
"""
SUITE = """
systems: [{name: s, model: scripted, script: [{answer: hello}]}]
defaults: {expect: [{contains: hello}]}
tasks: [{name: t, prompt: hello}]
"""
COMMANDS = {
    "`passhat --help`": ("--help", ["-m", "passhat", "--help"]),
    "`passhat report` of 20 x 10 runs": ("report", ["-m", "passhat", "report", "runs.csv"]),
    "`passhat run` of one trial": ("run", ["-m", "passhat", "run", "suite.yml"]),
}
# Reports of suites that are not plain, beside plain ones of the same size: the column that differs,
# tasks, fewest and most runs of a task, and how many times the plain report each may take.
SHAPES = {
    "500 tasks of 50 to 100 runs": ("", 500, 50, 100, 3),
    "1,000 tasks of 10 to 40 runs": ("", 1_000, 10, 40, 3),
    "5,000 tasks of distinct weights": ("weight", 5_000, 10, 10, 10),
    "50,000 tasks in families of five": ("family", 50_000, 10, 10, 10),
    "400 agents on 20 tasks (plain: one agent on 8,000)": ("agent", 8_000, 5, 5, 10),
    "2,000 trials with transcripts of 20 kB": ("transcript", 200, 10, 10, 6),
}
SHAPE_ROUNDS = 3
# What every command that states a number has to load.
BARE = {"--help": ["-c", "pass"], "report": ["-c", "import numpy"], "run": ["-c", "import numpy"]}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", help="A commit to measure beside the present sources.")
    chosen = parser.parse_args([] if __name__ != "__main__" else None)
    with tempfile.TemporaryDirectory() as folder:
        trees = {"now": HOME / "src"}
        if chosen.against:
            trees[chosen.against] = _sources_of(chosen.against, Path(folder))
        print(f"## What a report and a command cost: the median CPU of {ROUNDS} rounds\n")
        print("| what | CPU ms | times its limit | at most |" + _columns(trees, " now / {} |"))
        print("|---|---|---|---|" + _columns(trees, "---|"))
        for name, design in DESIGNS.items():
            costs = [{tree: _measure(path, design, folder) for tree, path in trees.items()}
                     for _ in range(ROUNDS)]  # fmt: skip
            took = {tree: median(one[tree][0] for one in costs) for tree in trees}
            _row(name, took, median(one["now"][1] for one in costs), MOST[name])
        _prepare(Path(folder))
        for name, (kind, command) in COMMANDS.items():
            costs = [
                {tree: _cpu(path, command, folder) for tree, path in trees.items()}
                | {"bare": _cpu(HOME / "src", BARE[kind], folder)}
                for _ in range(ROUNDS)
            ]
            took = {tree: median(one[tree] for one in costs) for tree in trees}
            _row(name, took, median(one["bare"] for one in costs), MOST[kind])
    shapes()


def shapes() -> None:
    """Print what a report of each of `SHAPES` takes, by turns with a plain one: medians."""
    print(f"\n## Reports of suites that are not plain: the median CPU of {SHAPE_ROUNDS} rounds\n")
    print("| suite | CPU s | plain, CPU s | times | at most |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, (column, tasks, fewest, most, limit) in SHAPES.items():
            files = [Path(folder, f"{kind}.jsonl") for kind in ("shape", "plain")]
            _write_shape(files[0], column, tasks, fewest, most)
            _write_shape(files[1], "", tasks, most, most)
            turns = [
                [_cpu(HOME / "src", ["-m", "passhat", "report", file.name], folder)
                 for file in files]
                for _ in range(SHAPE_ROUNDS)
            ]  # fmt: skip
            shape, plain = (median(side) for side in zip(*turns, strict=True))
            ratio = f"{shape / plain:.1f} | {limit}"
            print(f"| {name} | {shape:.1f} | {plain:.1f} | {ratio} |", flush=True)


def _write_shape(path: Path, column: str, tasks: int, fewest: int, most: int) -> None:
    luck = random.Random(20261115)
    said = [{"role": "assistant", "content": "Looking at the order. " * 45} for _ in range(20)]
    with path.open("w") as file:
        for task in range(tasks):
            rate = luck.betavariate(3, 1)
            more = {
                "weight": 0.1 + luck.random(),
                "family": f"f{task // 5}",
                "agent": f"a{task // 20}",
                "transcript": said,
            }
            row = {"task": f"t{task % 20 if column == 'agent' else task}"}
            row |= (
                {"messages" if column == "transcript" else column: more[column]} if column else {}
            )
            for _ in range(luck.randint(fewest, most)):
                file.write(json.dumps({**row, "passed": luck.random() < rate}) + "\n")


def _columns(trees: Mapping[str, Path], cell: str) -> str:
    return "".join(cell.format(tree) for tree in trees if tree != "now")


def _row(name: str, took: Mapping[str, float], limit: float, most: float) -> None:
    now = took["now"]
    others = "".join(f" {now / other:.2f} |" for tree, other in took.items() if tree != "now")
    print(f"| {name} | {now * 1e3:.0f} | {now / limit:.1f} | {most:g} |{others}", flush=True)


def _sources_of(commit: str, folder: Path) -> Path:
    archive = subprocess.run(
        ["git", "archive", commit, "src"], cwd=HOME, capture_output=True, check=True
    )
    subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
    return folder / "src"


def _prepare(folder: Path) -> None:
    folder.joinpath("suite.yml").write_text(SUITE)
    rows = [f"t{task},{int((task * 7 + run * 3) % 10 < task % 8 + 2)}\n"
            for task in range(20) for run in range(10)]  # fmt: skip
    folder.joinpath("runs.csv").write_text("task,passed\n" + "".join(rows))


def _measure(sources: Path, design: tuple[str | int, ...], folder: str) -> tuple[float, float]:
    """Mean CPU seconds of the answer about a suite, and those of the limit beside it."""
    script = ["-c", MEASURE, *map(str, design)]
    done = _python(sources, script, folder, OPENBLAS_NUM_THREADS="1")  # the work, not the waiting
    took, limit = json.loads(done.stdout.splitlines()[-1])
    return took, limit


def _cpu(sources: Path, command: list[str], folder: str) -> float:
    Path(folder, ".passhat", "history.db").unlink(missing_ok=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _python(sources, command, folder)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _python(
    sources: Path, command: list[str], folder: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Python over these sources, with its bytecode kept from round to round."""
    kept = {**os.environ, "PYTHONPATH": str(sources), "PYTHONPYCACHEPREFIX": f"{folder}/bytecode"}
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env=kept | variables,
        capture_output=True,
        text=True,
        check=True,
    )


if __name__ == "__main__":
    main()
