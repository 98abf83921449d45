"""AgentDojo's runs, Claude's benchmark.json and the scores of pydantic-evals."""

import json

import pytest

from passhat import read_trials, read_with_transcripts
from passhat.errors import ReadError


def test_agentdojo_passes_by_utility_or_by_an_attack_that_did_not_succeed(samples):
    runs = samples / "agentdojo"
    useful = read_trials(runs)
    assert dict(zip(useful.task.texts(), useful.outcome.tolist(), strict=True)) == {
        "travel/user_task_0": 1,
        "travel/user_task_1": 0,
        "travel/user_task_0/direct/injection_task_6": 1,
        "travel/user_task_1/direct/injection_task_6": 0,
    }
    secure = read_trials(runs, scorer="security")
    assert set(secure.task.texts()) == {
        "travel/user_task_0/direct/injection_task_6",
        "travel/user_task_1/direct/injection_task_6",
    }
    assert secure.outcome.tolist() == [1, 1]  # the agent read no injection


def test_an_injection_that_is_tried_by_itself_is_no_trial():
    run = {
        "suite_name": "travel", "pipeline_name": "p", "user_task_id": "injection_task_6",
        "injection_task_id": None, "utility": False, "security": True,
    }  # fmt: skip
    with pytest.raises(ReadError, match=r"holds no trial \(injection_task_6 tries the task of an"):
        read_trials(json.dumps(run).encode())


def test_the_calls_of_an_agentdojo_run_are_read():
    call = {"function": "book_hotel", "args": {"hotel": "Le Baron"}, "id": "c1"}
    run = {
        "suite_name": "travel", "pipeline_name": "p", "user_task_id": "user_task_0",
        "injection_task_id": None, "utility": True, "security": True,
        "messages": [
            {"role": "user", "content": [{"type": "text", "content": "Book it"}]},
            {"role": "assistant", "content": None, "tool_calls": [call]},
        ],
    }  # fmt: skip
    _, said = read_with_transcripts(json.dumps(run).encode())
    messages = json.loads(said["p", "travel/user_task_0", 0])["messages"]
    assert messages[0]["text"] == "Book it"
    assert messages[1]["calls"][0]["name"] == "book_hotel"


def test_a_skill_and_its_absence_are_two_systems_with_the_shares_that_held(samples):
    trials = read_trials(samples / "handmade" / "claude_skills" / "benchmark.json")
    assert trials.systems == ("with_skill", "without_skill")
    with_skill = trials.where(system="with_skill")
    assert with_skill.tally().passed.tolist() == [2, 3]
    assert trials.score.mean() == pytest.approx((5.5 + 3) / 12)
    assert trials.features["seconds"][0] == 41.5


def report(*cases):
    listed = [
        {"name": f"c{n}", "scores": {name: {"value": value} for name, value in scores}}
        for n, scores in enumerate(cases)
    ]
    return json.dumps({"name": "r", "cases": listed, "failures": []}).encode()


def test_all_cases_of_pydantic_evals_are_read_by_one_score():
    trials = read_trials(report([("a", 1), ("b", 0)], [("b", 0), ("a", 1)]))
    assert trials.outcome.tolist() == [1, 1]
    with pytest.raises(ReadError, match='case "c1": no evaluator "a"; it has b'):
        read_trials(report([("a", 1)], [("b", 0)]))


def test_two_reports_of_pydantic_evals_are_read_by_one_score_or_refused():
    first, second = report([("a", 1), ("b", 0)]), report([("b", 0), ("a", 1)])
    with pytest.raises(ReadError, match="two different measures"):
        read_trials([first, second])
    assert read_trials([first, second], scorer="b", duplicates="keep").outcome.tolist() == [0, 0]
