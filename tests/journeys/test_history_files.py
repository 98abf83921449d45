"""Datasets: a run in many Parquet files, counted as one table."""

import json
import os
import socket
import subprocess
import time
from pathlib import Path

import pytest
from bench.ray_cluster import python_with_ray

from passhat.history import History
from passhat.ingest import read_tallies, read_trials, tallies
from passhat.journeys.history import export_dataset
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
        said = {
            (one.system, one.task, one.trial): json.dumps({"answer": f"trial {i} says"})
            for i, one in enumerate(trials)
        }
        history.add_transcripts(run, said)
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
import json, sys
from pathlib import Path
import fsspec
from passhat.history import History
from passhat.ingest import read_tallies, read_trials, read_with_transcripts, tallies
from passhat.journeys.history import export_dataset
from passhat.journeys.history import search_transcripts

store, url = sys.argv[1:]
files, base = fsspec.core.url_to_fs(url)
with History.open(store, read_only=True) as history:
    run = history.find_run("latest")
    for rows in (70, 100):  # the second time it replaces what the first wrote
        written = export_dataset(history, run, url, rows=rows, transcripts=True)
        trials = read_trials(url)  # a copy is made again where files have changed
        assert len(trials.sources[0].name.split()) > 1, trials.sources
    local = history.trials(run)
shards = [name.replace("/suite=", "/_transcripts/suite=") for name in written]
assert sorted(files.find(base)) == sorted(map(files._strip_protocol, written + shards))
assert trials.sources[0].name == f"{url} ({len(written)} files)", trials.sources[0].name
assert list(map(str, trials)) == list(map(str, local))

trials, said = read_with_transcripts(url)
assert len(said) == 840 and said["s0", "t0", 0] == json.dumps({"answer": "trial 0 says"})
one = read_with_transcripts(written[-1])
assert len(one[0]) == len(one[1]) == 40

tallies.BIG_ROWS = 1
counted = read_tallies(url)
for tally in counted:
    assert tally.passed.tolist() == local.tally(tally.system).passed.tolist()
assert counted[0].sources[0].name == url, counted[0].sources

found = search_transcripts("TRIAL 17 says", dataset=url)
assert len(found.matches) == 1 and found.read == 840
try:
    read_trials(url + "/nothing-here")
except Exception as error:
    print(type(error).__name__, str(error).count(url))
print(len(written), len(trials))
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
def test_a_run_is_exported_to_and_read_from_any_address_that_fsspec_knows(
    exported, tmp_path, scheme, request
):
    place = {"memory": "memory://d", "file": f"file://{tmp_path}/d", "s3": "s3://evals/d"}[scheme]
    environment = request.getfixturevalue("s3") if scheme == "s3" else os.environ
    done = subprocess.run(
        [str(python_with_ray()), "-c", REMOTE, str(tmp_path / "history.db"), place],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.stdout.split(), done.stderr) == (["ReadError", "1", "9", "840"], "")
