"""Datasets: a run in many Parquet files, counted as one table."""

import os
import socket
import subprocess
import time
from pathlib import Path

import pytest
from bench.ray_cluster import python_with_ray

from passhat.history import History
from passhat.ingest import read_tallies, read_trials, tallies
from passhat.journeys.history_files import export_dataset
from passhat.records import Outcome, Trial


@pytest.fixture
def exported(tmp_path):
    trials = [
        Trial(
            system=f"s{i % 3}", task=f"t{i % 7}", trial=i // 21, outcome=Outcome(i % 5 > 0),
            cost=i / 8,
        )
        for i in range(21 * 40)
    ]  # fmt: skip
    with History.open(tmp_path / "history.db") as history:
        run = history.start_run("my suite/1")
        history.add_trials(run, trials)
        files = export_dataset(history, run, tmp_path / "dataset", rows=100)
        yield trials, files, tmp_path / "dataset"


def test_a_run_is_exported_in_parts_that_hold_all_of_it(exported):
    trials, files, _ = exported
    assert len(files) == 9
    first = Path(files[0])
    assert first.parent.name.startswith("run=")
    assert first.parent.parent.name == "suite=my-suite-1"
    found = [trial for file in files for trial in read_trials(file)]
    assert [(t.system, t.task, t.trial, t.outcome, t.cost) for t in found] == [
        (t.system, t.task, t.trial, t.outcome, t.cost) for t in trials
    ]


def test_a_dataset_is_counted_by_an_engine_as_its_trials_are(exported, monkeypatch):
    trials, _, folder = exported
    monkeypatch.setattr(tallies, "BIG_ROWS", 1)
    counted = tallies.count_big(folder)
    assert counted is not None
    for tally in counted:
        own = [trial for trial in trials if trial.system == tally.system]
        passed = dict.fromkeys(tally.tasks, 0)
        for trial in own:
            passed[trial.task] += trial.outcome is Outcome.PASSED
        assert dict(zip(tally.tasks, tally.passed.tolist(), strict=True)) == passed


def test_a_small_dataset_is_read_as_rows_with_the_same_counts(exported):
    trials, _, folder = exported
    assert sum(int(tally.passed.sum()) for tally in read_tallies(folder)) == sum(
        trial.outcome is Outcome.PASSED for trial in trials
    )


REMOTE = """
import sys
import fsspec
from passhat.history import History
from passhat.journeys.history_files import export_dataset

files, base = fsspec.core.url_to_fs(sys.argv[2])
with History.open(sys.argv[1], read_only=True) as history:
    run = history.find_run("latest")
    for _ in range(2):  # the second time it replaces what the first wrote
        written = export_dataset(history, run, sys.argv[2], rows=100)
assert sorted(files.find(base)) == sorted(files._strip_protocol(name) for name in written)
import io
import pyarrow.parquet as parquet
print(len(written), sum(parquet.read_table(io.BytesIO(files.cat(n))).num_rows for n in written))
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def s3():
    """A real S3 server on loopback, with an empty bucket; the variables that lead to it."""
    port = free_port()
    environment = {
        **os.environ, "AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s",
        "AWS_DEFAULT_REGION": "us-east-1", "FSSPEC_S3_ENDPOINT_URL": f"http://127.0.0.1:{port}",
    }  # fmt: skip
    python = str(python_with_ray())
    server = subprocess.Popen(
        [python, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment,
    )  # fmt: skip
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        assert server.poll() is None
        time.sleep(0.2)
    bucket = "import s3fs; s3fs.S3FileSystem().mkdir('evals')"
    subprocess.run([python, "-c", bucket], env=environment, check=True)
    yield environment
    server.kill()
    server.wait()


@pytest.mark.skipif(python_with_ray() is None, reason="no fsspec and S3 server here: make ray")
@pytest.mark.parametrize("scheme", ["memory", "file", "s3"])
def test_a_run_is_exported_to_any_address_that_fsspec_knows(exported, tmp_path, scheme, request):
    place = {"memory": "memory://d", "file": f"file://{tmp_path}/d", "s3": "s3://evals/d"}[scheme]
    environment = request.getfixturevalue("s3") if scheme == "s3" else os.environ
    done = subprocess.run(
        [str(python_with_ray()), "-c", REMOTE, str(tmp_path / "history.db"), place],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.stdout.split(), done.stderr) == (["9", "840"], "")
