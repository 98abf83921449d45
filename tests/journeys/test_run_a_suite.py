"""`passhat init` and `passhat run`, as a new user meets them."""

import json

import pytest


@pytest.fixture
def no_model(tmp_path_factory):
    """An environment in which no local model has its weights."""
    return {"XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache"))}


@pytest.mark.slow("a real model")
def test_the_first_run_shows_a_real_models_runs_with_no_key(shell, no_model):
    assert shell("init").returncode == 0
    done = shell("run", **no_model)
    assert done.returncode == 0, done.stderr
    assert "weather: 4 tasks, 1 agent, 80 trials; replay, servers recorded; run " in done.stderr
    assert done.stdout.startswith(
        "PASS  pass@1 >= 0.5: it is 67.5%, at least 59.4% (95% confidence"
    )
    assert "  8/20  " in done.stdout
    assert "tool-selection floor [PASS] weather selection: selection 20/20 (100%)" in done.stdout
    assert (shell.directory / ".passhat" / "history.db").is_file()


@pytest.mark.slow("starts a real server for each trial, twice")
def test_its_runs_are_different_runs_and_the_same_every_time(shell, no_model):
    shell("init")
    first, second = (
        json.loads(shell("run", "--json", "-q", "--no-store", **no_model).stdout)["report"]
        for _ in range(2)
    )
    assert first == second
    tables = first["systems"][0]["task_table"]
    assert all(set(row["sequence"]) == {"P", "F"} for row in tables if row["passed"] < 20)
    assert any(row["passed"] < 20 for row in tables)


@pytest.mark.slow("starts a real server")
def test_what_is_not_recorded_is_not_made_up(shell, no_model):
    shell("init")
    done = shell("run", "--runs", "41", **no_model)
    assert done.returncode == 2
    assert "41 trials are asked for, 40 are recorded" in done.stderr
    live = shell("run", "--live", **no_model)
    assert live.returncode == 2
    assert "passhat local pull" in live.stderr


@pytest.mark.slow("replays a run round by round")
def test_a_gate_can_be_settled_from_the_recorded_runs(shell, no_model):
    shell("init")
    done = shell("run", "--require", "pass^3 >= 0.8", "--until-settled", **no_model)
    assert done.returncode == 1, done.stderr
    assert "at most 80 trials" in done.stderr


@pytest.mark.slow("a real server for each trial")
def test_the_scripted_suite_runs_against_its_real_server(shell):
    shell("init", "--scripted")
    done = shell("run", "--runs", "2")
    assert done.returncode in (0, 4), done.stderr
    assert done.stdout.startswith(("PASS", "UNDECIDED"))
    assert "(6 trials)" in done.stdout.splitlines()[0]
