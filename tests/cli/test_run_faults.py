"""`passhat run --faults`: the suite with and without what goes wrong on purpose."""

import json

import pytest

FAULTY = """\
name: faulty
agents:
  - name: answer
    model: scripted
    runs: 6
    prompt: What is 2 + 2?
    expect: [{contains: "4 and not a number more"}]
    script: [{answer: "It is 4 and not a number more, as everybody knows"}]
    faults: [{kind: truncated_answer, nth: 1}]
"""


def test_without_the_option_faults_are_off_and_that_is_said(suite, call):
    suite(FAULTY)
    done = call("run")
    assert done.exit_code == 0, done.stderr
    assert "faults are off" in done.stderr


def test_with_it_both_ways_are_run_and_the_recovery_is_scored(suite, call):
    suite(FAULTY)
    done = call("run", "--faults", "--json")
    assert done.exit_code == 0, done.stderr
    answer = json.loads(done.stdout)
    (system,) = answer["report"]["systems"]
    assert (system["name"], system["tasks"], system["trials"]) == ("scripted", 1, 6)
    (factor,) = system["factors"]
    rates = {level["name"]: level["rate"]["value"] for level in factor["levels"]}
    assert (factor["name"], rates) == ("fault", {"none": 1.0, "all": 0.0})
    (recovery,) = answer["recovery"]
    assert (recovery["trials"], recovery["struck"]) == (6, 6)
    assert recovery["levels"][0]["score"]["value"] == 0.0
    assert recovery["kinds"][0]["kind"] == "truncated_answer"
    assert "Under faults scripted keeps 0%" in call("run", "--faults").stdout


def test_only_runs_under_faults_and_gates_them(suite, call):
    suite(FAULTY)
    assert call("run", "--faults=only").exit_code == 1


def test_a_suite_without_faults_says_so(suite, call):
    suite(FAULTY.partition("    faults")[0])
    done = call("run", "--faults")
    assert done.exit_code == 2
    assert "--faults is given, but the suite has none; add `faults:` to a server" in done.stderr


@pytest.mark.parametrize("words", [("--faults", "suite.yml"), ("suite.yml", "--faults")])
def test_a_bare_faults_does_not_swallow_the_suite(suite, call, words):
    suite(FAULTY)
    assert "Under faults scripted keeps" in call("run", *words).stdout


def test_a_suite_may_name_faults_as_a_factor(suite, call):
    suite(FAULTY + "factors: {fault: [none, all]}\n")
    done = call("run", "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["recovery"][0]["levels"][0]["score"]["value"] == 0.0
    assert "faults are off" not in done.stderr
    suite(
        (FAULTY + "factors: {fault: [none, all]}\n").replace(
            "    faults: [{kind: truncated_answer, nth: 1}]\n", ""
        )
    )
    done = call("run")
    assert done.exit_code == 2
    assert "the suite has no faults" in done.stderr
