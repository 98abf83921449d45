"""What decides where a log says two things of one trial: the rules of each tool, and the user's."""

import json

import pytest

from passhat.ingest import ColumnMap, read_trials
from passhat.records import Outcome


def outcomes(log, **options):
    return [trial.outcome.name for trial in read_trials(json.dumps(log).encode(), **options)]


@pytest.mark.parametrize("ended", ["infrastructure_error", "context_window_exceeded"])
def test_a_tau2_simulation_that_could_not_be_evaluated_is_errored_whatever_its_reward(ended):
    def simulations(*reasons):
        return [
            {"task_id": "t", "trial": i, "reward_info": {"reward": 1.0}, "termination_reason": why}
            for i, why in enumerate(reasons)
        ]

    log = {"info": {}, "tasks": [], "simulations": simulations("agent_stop", ended)}
    first, second = read_trials(json.dumps(log).encode())
    assert (first.outcome, first.error) == (Outcome.PASSED, None)
    assert (second.outcome, second.error, second.score) == (Outcome.ERRORED, ended, None)


def test_an_mcpmark_run_that_passed_its_check_passed_though_the_agent_broke():
    runs = {
        "run-1": {"success": True, "error_message": "timed out"},
        "run-2": {"success": False, "error_message": "timed out"},
        "run-3": {"success": False},
    }
    log = {"model": "m", "service": "fs", "task": "t", "runs": runs}
    assert outcomes(log) == ["PASSED", "ERRORED", "FAILED"]


def test_an_instance_that_swebench_lists_twice_ended_as_the_surer_list_says():
    report = {
        "submitted_ids": [*"abcde"],
        "unresolved_ids": [*"abce"],
        "empty_patch_ids": [*"bc"],
        "error_ids": [*"ace"],
        "resolved_ids": [*"ad"],
    }
    trials = {trial.task: trial for trial in read_trials(json.dumps(report).encode())}
    assert {task: trial.outcome.name for task, trial in sorted(trials.items())} == {
        "a": "PASSED",
        "b": "FAILED",
        "c": "ERRORED",
        "d": "PASSED",
        "e": "ERRORED",
    }
    assert trials["b"].error == "empty patch"


def test_what_broke_stays_broken_whatever_the_users_own_bar_says():
    def sample(number, value, **more):
        return {"id": number, "epoch": 1, "scores": {"s": {"value": value}}, **more}

    samples = [sample(0, 0.6), sample(1, 0.4), sample(2, 0.6, invalidation={"by": "me"})]
    log = {"version": 2, "status": "success", "eval": {"task": "t", "model": "m"}}
    judged = outcomes(log | {"samples": samples}, mapping=ColumnMap(pass_if="score>=0.5"))
    assert judged == ["PASSED", "FAILED", "ERRORED"]


@pytest.mark.parametrize("above", ["results", "run-7", "dry-run-7-old"])
def test_an_mcpmark_run_is_numbered_by_its_own_folder_wherever_that_lies(tmp_path, above):
    meta = {"task_name": "t", "model_name": "m", "execution_result": {"success": True}}
    for number in (1, 2):
        folder = tmp_path / above / "m__fs" / f"run-{number}" / "clean-up-run-9-logs"
        folder.mkdir(parents=True)
        (folder / "meta.json").write_text(json.dumps(meta))
    assert sorted(read_trials(tmp_path).trial.tolist()) == [1, 2]
