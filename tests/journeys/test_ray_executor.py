"""Runs on a real Ray cluster on this machine; `make ray` builds the environment with Ray in it."""

import json
import os
import re
import subprocess

import pytest
from bench.fleet import Plan
from bench.ray_cluster import ROOT, python_with_ray, ray_cluster
from bench.worker_storm import storm

pytestmark = [
    pytest.mark.skipif(python_with_ray() is None, reason="no Ray here: make ray"),
    pytest.mark.timeout(600),
]

COIN = """
name: coin
seed: 7
concurrency: 4
systems:
  - {name: agent, model: scripted, script: [{answer: "yes", weight: 2}, {answer: "no"}]}
defaults: {expect: [{contains: "yes"}]}
tasks: [{name: a, prompt: "?"}, {name: b, prompt: "??"}, {name: c, prompt: "???"}]
"""
LOUD = """
name: loud
systems: [{name: agent, python: "loud_agent:answer"}]
tasks: [{name: a, prompt: "?", runs: 6, expect: [{contains: "yes"}]}]
"""
LOUD_AGENT = """
def answer(prompt):
    print("the agent prints a line")
    return "yes"
"""


@pytest.fixture(scope="module")
def cluster():
    with ray_cluster(python_with_ray(), 2) as address:
        yield address


@pytest.fixture
def passhat(cluster, tmp_path):
    """Run a command on the cluster; its exit code, output and messages."""
    environment = {n: v for n, v in os.environ.items() if n != "PYTHONDONTWRITEBYTECODE"}

    def start(*arguments, **more):
        done = subprocess.run(
            [str(python_with_ray()), "-m", "passhat", *arguments],
            cwd=tmp_path,
            env={**environment, "RAY_ADDRESS": cluster, **more},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    return start


def test_the_report_of_a_ray_run_is_that_of_a_local_run(passhat, tmp_path, new_database):
    (tmp_path / "suite.yml").write_text(COIN)
    request = ("run", "suite.yml", "--runs", "40", "--json", "-q")
    _, local, _ = passhat(*request)
    code, shared, err = passhat(
        *request, "--store", new_database(), "--executor", "ray", "--workers", "2"
    )
    assert code == 1, err
    reports = [json.loads(text)["report"] for text in (local, shared)]
    for report in reports:
        for system in report["systems"]:
            system.pop("features")  # how long trials took
    assert reports[0]["systems"] == reports[1]["systems"]


def test_what_agents_print_comes_back_and_not_into_the_answer(passhat, tmp_path, new_database):
    (tmp_path / "suite.yml").write_text(LOUD)
    (tmp_path / "loud_agent.py").write_text(LOUD_AGENT)  # shipped with the folder
    code, out, err = passhat(
        "run", "suite.yml", "--store", new_database(), "--executor", "ray", "--json"
    )
    assert code == 0, err
    assert json.loads(out)["report"]["systems"][0]["trials"] == 6
    assert "the agent prints a line" in err
    assert "trials at a time" in err


def test_a_worker_that_no_node_has_room_for_is_refused(passhat, tmp_path, new_database):
    (tmp_path / "suite.yml").write_text(COIN + "resources: {cpus: 3, memory: 1MB}\n")
    code, _, err = passhat("run", "suite.yml", "--store", new_database(), "--executor", "ray")
    assert code == 2
    assert "must fit on one node, and the biggest has CPU 4, got 12" in err


def test_a_suite_outside_of_the_folder_that_is_shipped_is_refused(passhat, tmp_path, new_database):
    (tmp_path / "suite.yml").write_text(COIN)
    inner = tmp_path / "inner"
    inner.mkdir()
    done = subprocess.run(
        [str(python_with_ray()), "-m", "passhat", "run", "../suite.yml", "--executor", "ray",
         "--store", new_database()],
        cwd=inner, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 2
    assert "must be in the folder that is shipped to the cluster" in done.stderr


def test_workers_that_cannot_work_end_the_run_with_their_reason(passhat, tmp_path, new_database):
    (tmp_path / "suite.yml").write_text(COIN)
    code, _, err = passhat(
        *("run", "suite.yml", "--store", new_database(), "--executor", "ray"),
        PASSHAT_RAY_ENV='{"env_vars": {"PASSHAT_LEASE_SECONDS": "soon"}}',
    )
    assert code == 3
    assert "no Ray worker is left: could not convert string to float: 'soon'" in err


def test_the_how_to_leads_from_a_laptop_to_the_cluster_as_it_is_written(
    cluster, tmp_path, new_database
):
    page = (ROOT / "docs/how-to/scale-out.md").read_text()
    block = re.search(r"```console\n(.*?)```", page, flags=re.DOTALL)[1]
    lines = [line.removeprefix("$ ") for line in block.splitlines()]
    assert lines[0].startswith("pip install")
    assert len(lines) <= 10
    script = "\n".join(lines[1:])
    script = script.replace("postgresql://passhat@db.example/evals", f"'{new_database()}'")
    script = script.replace("head.example:6379", cluster)
    passhat = f'passhat() {{ {python_with_ray()} -m passhat "$@"; }}\n'
    (tmp_path / "suite.yml").write_text(COIN.replace('{answer: "no"}', '{answer: "yes, too"}'))
    environment = {n: v for n, v in os.environ.items() if n != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        ["bash", "-e", "-c", passhat + script],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=400,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "150" in done.stdout
    assert len(list(tmp_path.glob("trials/suite=coin/run=*/part-00000.parquet"))) == 1


def test_a_storm_over_two_raylets_and_plain_workers_loses_nothing(postgres):
    plan = Plan(
        tasks=5, runs=60, worker_kills=6, driver_kills=1, freezes=1, restarts=1, workers=2,
        ray_workers=2, latency=0.3, max_cost=0.5,
    )  # fmt: skip
    result = storm(postgres, plan)
    assert result.happened.total() == 9
    assert (result.kept, result.counted_twice) == (result.trials, 0)
    assert (result.needed, result.answered) == (900, 900)
    assert (result.overwritten, result.broken) == (0, 0)
    assert result.reported - result.unsure - 1 <= result.paid_twice <= result.reported
    assert result.cost <= plan.max_cost
    assert result.same_report
