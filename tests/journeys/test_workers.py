"""A run that workers carry out through PostgreSQL, whatever happens to them."""

import json
import re
import subprocess
import sys
import time
from contextlib import suppress

import pytest
from bench.fleet import Plan
from bench.kill_storm import answer_done, suite_text
from bench.worker_storm import storm

from passhat.errors import StoreError
from passhat.history import History
from passhat.journeys.workers import work
from passhat.testing import WireServer


def passhat(*arguments, cwd):
    return subprocess.Popen(
        [sys.executable, "-m", "passhat", *arguments],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def workers(tmp_path, new_database):
    """Start workers on a new store; they are killed at the end."""
    store, started = new_database(), []

    def start(count=2, *more):
        for _ in range(count):
            command = ("worker", "--store", store, "--concurrency", "4", *more)
            started.append(passhat(*command, cwd=tmp_path))
        return store

    yield start
    for process in started:
        process.kill()
        process.communicate()


def answer_of(process):
    out, err = process.communicate(timeout=100)
    assert process.returncode in (0, 1, 3), err
    return json.loads(out), err


COIN = """
name: coin
seed: 7
systems:
  - {name: agent, model: scripted, script: [{answer: "yes", weight: 2}, {answer: "no"}]}
defaults: {expect: [{contains: "yes"}]}
tasks: [{name: a, prompt: "?"}, {name: b, prompt: "??"}, {name: c, prompt: "???"}]
"""


@pytest.mark.slow("starts workers, and the run on one machine")
def test_the_report_of_workers_is_that_of_a_local_run(workers, tmp_path):
    (tmp_path / "suite.yml").write_text(COIN)
    request = ("run", "suite.yml", "--runs", "30", "--json", "-q")
    local, _ = answer_of(passhat(*request, cwd=tmp_path))
    store = workers(2)
    shared, _ = answer_of(
        passhat(*request, "--store", store, "--executor", "workers", cwd=tmp_path)
    )
    for answer in (local, shared):
        # How long trials took is theirs alone; so is where the results are.
        answer["report"].pop("next", None)
        for system in answer["report"]["systems"]:
            system.pop("features", None)
    assert shared["report"]["systems"] == local["report"]["systems"]


@pytest.mark.slow("starts workers in processes of their own")
def test_a_budget_holds_for_all_workers_together(workers, tmp_path):
    with WireServer(answer_done, latency=0.02) as server:
        (tmp_path / "suite.yml").write_text(suite_text(server.url, 5))
        store = workers(2)
        command = ("run", "suite.yml", "--runs", "40", "--max-calls", "25", "--store", store)
        _, err = answer_of(passhat(*command, "--executor", "workers", "--json", cwd=tmp_path))
        assert "max_calls is reached" in err
        assert len(server.asked) == 25


def test_workers_are_refused_without_a_store_that_they_share(tmp_path):
    (tmp_path / "suite.yml").write_text(COIN)
    process = passhat("run", "suite.yml", "--executor", "workers", cwd=tmp_path)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    rule = "--store must be a postgresql:// address with --executor workers"
    assert f"Error: {rule}: workers share the run through it, got '.passhat/history.db'" in err
    assert "trials" not in err, "the run was opened before the store was checked"


@pytest.mark.slow("starts workers")
@pytest.mark.parametrize("executor", ["workers", "ray"])
def test_workers_cannot_record_and_the_executor_is_named_as_it_was_written(
    tmp_path, new_database, executor
):
    (tmp_path / "suite.yml").write_text(COIN)
    recording = ("run", "suite.yml", "--record", "--executor", executor)
    run = passhat(*recording, "--store", new_database(), cwd=tmp_path)
    _, err = run.communicate(timeout=60)
    assert run.returncode == 2
    assert f"--executor must be local to record or replay cassettes, got '{executor}'" in err


@pytest.mark.slow("starts workers")
def test_a_worker_with_another_suite_refuses_to_work(workers, tmp_path, new_database):
    (tmp_path / "suite.yml").write_text(COIN)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "suite.yml").write_text(COIN.replace("weight: 2", "weight: 3"))
    store = new_database()
    driver = passhat(
        *("run", "suite.yml", "--store", store, "--executor", "workers", "--max-minutes", "0.5"),
        cwd=tmp_path,
    )
    worker = passhat("worker", "--store", store, cwd=elsewhere)
    _, err = worker.communicate(timeout=60)
    driver.kill()
    driver.communicate()
    assert worker.returncode == 2
    assert "is not the file that run" in err


@pytest.mark.slow("starts workers")
def test_a_worker_leaves_the_run_of_another_team_to_others_and_does_its_own(tmp_path, new_database):
    store, drivers = new_database(), {}
    for team in ("first", "second"):
        folder = tmp_path / team
        folder.mkdir()
        (folder / "passhat.yml").write_text(f"name: {team}\n{COIN}".replace("name: coin\n", "", 1))
        command = ("run", "--store", store, "--executor", "workers", "--max-minutes", "1", "--json")
        drivers[team] = passhat(*command, cwd=folder)
        while not read_runs(store, team):
            time.sleep(0.2)
    worker = passhat("worker", "--store", store, "--until-idle", cwd=tmp_path / "second")
    _, err = worker.communicate(timeout=60)
    assert worker.returncode == 0, err
    assert len(re.findall("of first is left to others: that suite is not here", err)) == 1
    drivers["second"].communicate(timeout=60)
    assert [run.status for run in read_runs(store, "second")] == ["finished"]
    assert [run.trials for run in read_runs(store, "first")] == [0]
    drivers["first"].kill()
    drivers["first"].communicate()


def read_runs(store, suite):
    """The runs of a suite that have work, or had some."""
    with suppress(StoreError), History.open(store) as history:
        return history.runs(suite=suite)
    return []


@pytest.mark.slow("stops the server for longer than a worker waits for work")
def test_a_worker_that_ends_when_idle_outlives_an_outage_of_its_store(tmp_path):
    """A store that is away is not a store without work: then nobody would do the rest."""
    from passhat.journeys.workers import IDLE_SECONDS
    from passhat.testing.postgres import postgres_server

    (tmp_path / "suite.yml").write_text(
        "name: slow\nsystems: [{name: c, command: [sh, -c, 'sleep 0.3; echo ok']}]\n"
        "tasks: [{name: t, prompt: x, expect: [{contains: ok}]}]\n"
    )
    with postgres_server() as server:
        store = server.new_database()
        driver = passhat(
            *("run", "suite.yml", "--runs", "60", "--store", store, "--executor", "workers"),
            *("--json", "-q"),
            cwd=tmp_path,
        )
        worker = passhat(
            *("worker", "--store", store, "--until-idle", "--concurrency", "2"), cwd=tmp_path
        )
        with History.open(store) as history:
            while not history.runs() or history.runs()[0].trials < 10:
                time.sleep(0.1)
        server.stop(how="immediate")
        time.sleep(IDLE_SECONDS + 2)
        assert worker.poll() is None, worker.communicate()
        server.start()
        answer, _ = answer_of(driver)
        assert answer["report"]["systems"][0]["trials"] == 60
        _, said = worker.communicate(timeout=60)
        assert worker.returncode == 0
        assert "trying again" in said


def test_a_worker_that_gives_its_store_up_has_not_done_its_work(monkeypatch):
    monkeypatch.setattr("passhat.journeys.workers.STORE_WAIT_SECONDS", 0.5)
    monkeypatch.setattr("passhat.journeys.workers.LOOK_SECONDS", 0.05)
    said = []
    with pytest.raises(StoreError, match="refused"):
        work("postgresql://nobody@127.0.0.1:1/none", until_idle=True, say=said.append)
    (text,) = said  # once, however often it tried
    assert text.endswith("trying again")


@pytest.mark.slow("a storm: workers, driver and server are killed as they go")
def test_a_storm_over_workers_driver_and_server_loses_nothing(postgres):
    plan = Plan(
        tasks=5, runs=40, worker_kills=5, driver_kills=1, freezes=1, restarts=1, workers=2,
        latency=0.2, max_cost=0.5,
    )  # fmt: skip
    result = storm(postgres, plan)
    assert result.happened.total() == 8
    assert (result.kept, result.counted_twice) == (result.trials, 0)
    assert (result.needed, result.answered) == (600, 600)
    assert (result.overwritten, result.broken) == (0, 0)
    # Equal, but for what a frozen worker had intended, and kills between the mark and the bytes.
    assert result.reported - result.unsure - 1 <= result.paid_twice <= result.reported
    assert result.cost <= plan.max_cost
    assert result.same_report


@pytest.mark.slow("starts workers in processes of their own")
def test_a_shard_is_what_workers_run_of_it(workers, tmp_path):
    (tmp_path / "suite.yml").write_text(COIN)
    store = workers(1)
    request = ("run", "suite.yml", "--runs", "10", "--shard", "2/3", "--store", store)
    answer, _ = answer_of(passhat(*request, "--executor", "workers", "--json", cwd=tmp_path))
    assert answer["report"]["systems"][0]["trials"] == 10  # of 30


GRADED = """
name: graded
concurrency: 1
systems: [{name: agent, command: [sh, -c, "echo yes; echo '#' >> %s"], sandbox: none}]
tasks:
  - name: a
    prompt: "?"
    runs: 6
    expect: [%s]
"""

GRADERS = {
    "check.py": "{command: ['{python}', check.py]}",
    "marks.py": "{python: 'marks:good'}",
    "hidden/hidden_tests.py": (
        "{tests: {run: 'python3 -m unittest -v hidden_tests', files: hidden/}}"
    ),
}


@pytest.fixture
def graded(tmp_path):
    """Write a suite whose agent changes a file that decides, which it may find."""
    (tmp_path / "hidden").mkdir()
    (tmp_path / "work").mkdir()
    (tmp_path / "check.py").write_text("")
    (tmp_path / "marks.py").write_text("def good(value): return True\n")
    (tmp_path / "hidden" / "hidden_tests.py").write_text("")

    def write(file, changes=None):
        text = GRADED % (tmp_path / (changes or file), GRADERS[file])
        if file.startswith("hidden"):
            text = text.replace("    runs: 6", "    runs: 6\n    workspace: work")
        (tmp_path / "suite.yml").write_text(text)

    return write


@pytest.mark.slow("starts workers in processes of their own")
@pytest.mark.parametrize("file", GRADERS)
def test_a_run_of_workers_whose_graders_change_ends_as_one_on_this_machine_does(
    workers, graded, tmp_path, file
):
    """With 3; but a function is in memory, and goes on to decide as it was."""
    graded(file)
    local = passhat("run", "suite.yml", cwd=tmp_path)
    _, alone = local.communicate(timeout=100)
    store = workers(1)
    driver = passhat("run", "--executor", "workers", "--store", store, cwd=tmp_path)
    _, shared = driver.communicate(timeout=100)
    code = 0 if file == "marks.py" else 3
    assert (local.returncode, driver.returncode) == (code, code), (alone, shared)
    for said in (alone, shared):
        assert f"changed during the run, by an agent or by you: {file}" in " ".join(said.split())
        assert ("no trial can be graded" in said) == ("--retry-errors" in said) == (code == 3)
    with History.open(store) as history:
        (run,) = history.runs()
        assert (run.trials < 6) == (code == 3)


@pytest.mark.slow("starts workers in processes of their own")
@pytest.mark.parametrize("changed", ["suite.yml", "check.py"])
def test_a_run_whose_files_no_worker_may_begin_with_ends_with_3(
    graded, tmp_path, new_database, changed
):
    graded("check.py", changes="notes.txt")
    store = new_database()
    driver = passhat("run", "--executor", "workers", "--store", store, cwd=tmp_path)
    with History.open(store) as history:
        count = "SELECT count(*) FROM tickets"
        while history.database.execute(count).fetchone() == (0,):
            assert driver.poll() is None, driver.communicate()
            time.sleep(0.05)
    with (tmp_path / changed).open("a") as stream:
        stream.write("# other\n")
    _, err = driver.communicate(timeout=100)
    assert driver.returncode == 3, err
    assert f"changed during the run: {changed}" in " ".join(err.split())


@pytest.mark.slow("starts a worker")
def test_a_worker_with_other_graders_refuses_to_work(graded, tmp_path, new_database):
    graded("check.py", changes="notes.txt")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "suite.yml").write_text((tmp_path / "suite.yml").read_text())
    (elsewhere / "check.py").write_text("import sys; sys.exit(0)\n")
    store = new_database()
    driver = passhat("run", "--executor", "workers", "--store", store, cwd=tmp_path)
    worker = passhat("worker", "--store", store, cwd=elsewhere)
    _, err = worker.communicate(timeout=60)
    driver.kill()
    driver.communicate()
    assert worker.returncode == 2
    assert "the graders or hidden tests of suite.yml here are not those that run" in err
