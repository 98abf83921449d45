"""Counts of a Ray dataset are those that one machine makes; `make ray` builds the environment."""

import os
import subprocess

import pytest
from bench.ray_cluster import ROOT, STORE_BYTES, python_with_ray

pytestmark = [
    pytest.mark.skipif(python_with_ray() is None, reason="no Ray here: make ray"),
    pytest.mark.timeout(900),
]

COUNTED = f"""
import shutil, sys
from pathlib import Path
import numpy as np
import ray
from passhat.bridges.ray_data import tally_dataset
from passhat.errors import ReadError
from passhat.history import History
from passhat.ingest import read_tallies, tallies
from passhat.journeys.history import export_dataset
from passhat.records import Outcome, Trial

home = Path(sys.argv[1])
trials = [
    Trial(
        system=f"s{{i % 2}}", task=f"t{{i * 7% 5}}", trial=i // 10, outcome=Outcome(i % 3),
        score=None if i % 3 == 2 else i % 3 / 1, cost=i / 8, error="broke" if i % 3 == 2 else None,
    )
    for i in range(300)
]
with History.open(home / "history.db") as history:
    run = history.start_run("suite")
    history.add_trials(run, trials)
    history.add_transcripts(run, {{("s0", "t0", 0): "words that are no trial"}})
    parts = export_dataset(history, run, home / "trials", rows=110, transcripts=True)
assert len(parts) == 3

ray.init(num_cpus=2, object_store_memory={STORE_BYTES}, include_dashboard=False,
         log_to_driver=False, logging_level="error")
ray.data.DataContext.get_current().enable_progress_bars = False
counted = tally_dataset(ray.data.read_parquet(str(home / "trials")))
tallies.BIG_ROWS = 1
for ours, local in zip(counted, read_tallies(home / "trials"), strict=True):
    assert (ours.system, ours.tasks) == (local.system, local.tasks)
    for name in ("passed", "failed", "errored", "score_total", "score_squares"):
        assert np.array_equal(getattr(ours, name), getattr(local, name)), name
    assert set(ours.features) == set(local.features) == {{"cost"}}
    for name in ("count", "total", "squares"):
        here, there = (getattr(one.features["cost"], name) for one in (ours, local))
        assert np.array_equal(here, there), name
print("same")
shutil.copy(parts[0], parts[0].replace("part-00000", "copy"))
try:
    tally_dataset(ray.data.read_parquet(str(home / "trials")))
except ReadError as error:
    print("twice" if "occur more than once" in str(error) else error)
"""


def test_a_ray_dataset_is_counted_as_on_one_machine_and_its_duplicates_are_found(tmp_path):
    environment = {n: v for n, v in os.environ.items() if n != "PYTHONDONTWRITEBYTECODE"}
    environment["RAY_worker_niceness"] = "0"  # of 15 they would not begin on a busy machine
    done = subprocess.run(
        [str(python_with_ray()), "-c", COUNTED, str(tmp_path)],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.split() == ["same", "twice"], done.stderr


FINGERPRINTS = """
from itertools import combinations_with_replacement
from passhat.bridges.ray_data import _marks, _numbered_on
from passhat.records import Trials

for runs in range(1, 6):
    for numbers in combinations_with_replacement(range(7), runs):
        trials = Trials.from_columns(
            task=["t"] * runs, trial=numbers, passed=[True] * runs, duplicates=None
        )
        expected = numbers in (tuple(range(runs)), tuple(range(1, runs + 1)))
        assert _numbered_on(_marks(trials)) == expected, numbers
"""


def test_fingerprints_tell_numbers_in_a_row_from_all_others():
    done = subprocess.run(
        [str(python_with_ray()), "-c", FINGERPRINTS], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
