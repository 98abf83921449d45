"""Everything that a command says, its function says too: the same JSON, byte for byte."""

import pytest

import passhat
from passhat.reporters import render

PATH = "two.jsonl"

ASKED = {
    ("report", PATH, "--k", "1,3"): lambda: passhat.report_results(PATH, ks=(1, 3)),
    ("compare", PATH): lambda: passhat.compare_results(PATH),
    ("rank", PATH, "--by", "pass^2"): lambda: passhat.rank_results(PATH, by="pass^2"),
    ("gate", PATH, "-r", "pass@1 >= 0.5"): lambda: passhat.gate_results(PATH, "pass@1 >= 0.5"),
    ("profile", PATH, "--only", "new"): lambda: passhat.profile_results(PATH, only="new"),
    ("plan", PATH, "--only", "new"): lambda: passhat.plan_results(PATH, only="new"),
    ("trend", "s"): lambda: passhat.trend_of_runs("s"),
    ("flaky", "s"): lambda: passhat.flaky_tasks("s"),
}


@pytest.fixture
def results(here, call):
    trials = passhat.simulate(tasks=6, runs=5, rate={"old": 0.6, "new": 0.8}, seed=3)
    passhat.write_trials(trials, PATH)
    for _ in range(2):
        assert call("history", "add", PATH, "--suite", "s").exit_code == 0


@pytest.mark.parametrize("words", ASKED, ids=lambda words: words[0])
def test_a_command_and_its_function_give_the_same_json(results, call, words):
    assert call(*words, "--json").stdout == render(ASKED[words](), "json")
