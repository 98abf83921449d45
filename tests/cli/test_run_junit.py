"""The JUnit file of a run and its exit code tell the same story."""

import json
import re
from xml.etree import ElementTree as ET

import pytest

RIGHT = "{name: right, prompt: hi, script: [{answer: yes}], expect: [{exact: 'yes'}]}"
WRONG = "{name: wrong, prompt: hi, script: [{answer: no}], expect: [{exact: 'yes'}]}"
BROKEN = (
    "{name: broken, prompt: hi, script: [{answer: yes}], expect: [{python: 'nowhere:nothing'}]}"
)
SHAKY = (
    "{name: shaky, prompt: hi, runs: 4, expect: [{exact: 'yes'}], "
    "script: [{answer: yes}, {answer: no}]}"
)
PICKY = (
    "{name: picky, prompt: hi, script: [{answer: no}], "
    "tool_selection: {expected_tool: get, min_selection_rate: 0.9}}"
)
QUARANTINE = "quarantine: [{task: %s, until: 2999-01-01, reason: known}]"

CASES = [
    ([RIGHT], "", 0),
    ([WRONG], "", 1),
    ([RIGHT, WRONG], "", 1),
    ([SHAKY], "", 1),
    ([BROKEN], "", 3),
    ([RIGHT, BROKEN], "", 3),
    ([WRONG, BROKEN], "", 1),
    ([RIGHT, WRONG], QUARANTINE % "wrong", 0),
    ([RIGHT, BROKEN], QUARANTINE % "broken", 0),
    ([BROKEN], QUARANTINE % "broken", 3),
    ([RIGHT, PICKY], "", 1),
    ([RIGHT, WRONG], "gates: ['pass^1 >= 0.1']", 4),
    ([RIGHT, WRONG], "gates: [{require: 'pass@1 >= 0.3', evidence: point}]", 0),
    ([RIGHT, WRONG], "gates: [{require: 'pass@1 >= 0.9', evidence: point}]", 1),
    ([RIGHT, BROKEN], "gates: [{require: 'pass@1 >= 0.3', evidence: point}]", 0),
    ([BROKEN], "gates: [{require: 'pass@1 >= 0.9', evidence: point}]", 3),
    ([RIGHT, WRONG], "gates: [{require: 'pass@1 >= 0.9', severity: warning}]", 0),
    ([RIGHT, SHAKY], "budget: {max_tokens: 1}\nconcurrency: 1", 3),
]

KINDS = ("failure", "error", "skipped")


@pytest.mark.parametrize(("agents", "rest", "code"), CASES)
def test_there_is_a_failure_when_the_run_exits_1_and_an_error_when_3(
    here, suite, call, agents, rest, code
):
    suite(f"defaults: {{model: scripted}}\nagents: [{', '.join(agents)}]\n{rest}\n")
    done = call("run", "-o", "junit.xml")
    assert done.exit_code == code, done.output
    first = done.stdout.split(maxsplit=1)[0]
    if code:
        assert first == {1: "FAIL", 3: "ERROR", 4: "UNDECIDED"}[code]
    elif first in ("FAIL", "UNDECIDED"):
        assert "A warning only: it does not change the exit code." in done.stdout
    else:
        assert first != "ERROR"
    assert done.stderr.splitlines()[-1] == "wrote junit.xml"
    root = ET.parse(here / "junit.xml").getroot()
    failures, errors, skipped = (len(root.findall(f".//{k}")) for k in KINDS)
    assert (failures > 0) == (code == 1)
    assert (errors > 0 and not failures) == (code == 3)
    if code == 4:
        assert skipped
    counted = {"failures": failures, "errors": errors, "skipped": skipped}
    for name, count in counted.items():
        assert sum(int(one.get(name)) for one in root) == count
    assert sum(int(one.get("tests")) for one in root) == len(root.findall(".//testcase"))


WORD = {1: "FAIL", 3: "not completed: | were left undone", 4: "UNDECIDED"}


def assert_reason_is_told(stderr, code):
    """Whoever sees no report, only JSON, is told why the run does not exit with 0."""
    told = any(re.search(word, stderr) for word in (WORD[3], r"^FAIL: \d"))
    assert re.search(WORD[code], stderr) if code else not told


BY_CODE = {code: (agents, rest, code) for agents, rest, code in CASES}


@pytest.mark.parametrize(("agents", "rest", "code"), BY_CODE.values(), ids=map(str, BY_CODE))
def test_who_sees_no_report_is_told_why_the_run_does_not_exit_with_0(
    here, suite, call, agents, rest, code
):
    suite(f"defaults: {{model: scripted}}\nagents: [{', '.join(agents)}]\n{rest}\n")
    done = call("run", "--json")
    assert done.exit_code == code
    assert_reason_is_told(done.stderr, code)


def test_the_verdict_of_a_run_and_its_reasons_are_on_stdout_beside_a_file(here, suite, call):
    suite(f"defaults: {{model: scripted}}\nagents: [{RIGHT}, {WRONG}]\n")
    done = call("run", "-o", "junit.xml")
    first = "FAIL  1 of 2 trials failed; without a gate every trial must pass."
    assert done.stdout.startswith(first)
    assert "expected exactly 'yes', got 'no'" in done.stdout
    assert done.stderr.splitlines()[-1] == "wrote junit.xml"
    assert call("run", "-o", "junit.xml", "-q").stderr == ""
    machine = call("run", "--json", "-o", "junit.xml")
    assert json.loads(machine.stdout)["schema"] == "passhat.run/1"
    assert machine.stderr.splitlines()[-2] == first.replace("  ", ": ", 1)


def test_a_failed_task_says_how_often_and_why(here, suite, call):
    suite(f"defaults: {{model: scripted}}\nagents: [{SHAKY}]\n")
    call("run", "-o", "junit.xml")
    failure = ET.parse(here / "junit.xml").getroot().find(".//failure")
    assert failure.get("message").endswith(" of 4 trials failed")
    assert "expected exactly 'yes', got 'no'" in failure.text


def test_a_quarantined_task_that_went_wrong_is_skipped_with_its_reason(here, suite, call):
    suite(
        f"defaults: {{model: scripted}}\nagents: [{RIGHT}, {WRONG}]\n{QUARANTINE % 'wrong'}\n",
    )
    call("run", "-o", "junit.xml")
    (skipped,) = ET.parse(here / "junit.xml").getroot().findall(".//skipped")
    assert skipped.get("message") == "in quarantine until 2999-01-01: known"


def test_a_system_under_faults_fails_nobody(here, suite, call):
    suite(
        "agents: [{name: a, model: scripted, prompt: hi, script: [{answer: 'yes'}], "
        "expect: [{exact: 'yes'}], faults: [{kind: truncated_answer, probability: 1}]}]"
    )
    assert call("run", "--faults", "-o", "junit.xml").exit_code == 0
    root = ET.parse(here / "junit.xml").getroot()
    (case,) = root.findall(".//testcase")  # the task as it is: a gate judges no faults
    assert case.find("failure") is None


def test_the_reasons_of_a_case_are_its_own_systems(here, suite, call):
    suite(
        "systems:\n"
        "  - {name: left, command: [sh, -c, 'echo left']}\n"
        "  - {name: right, command: [sh, -c, 'echo right']}\n"
        "tasks: [{name: t, prompt: hi, expect: [{exact: 'yes'}]}]\n"
        "defaults: {runs: 2}\n"
    )
    assert call("run", "-o", "junit.xml").exit_code == 1
    texts = [one.text for one in ET.parse(here / "junit.xml").getroot().findall(".//failure")]
    assert len(texts) == 2
    assert all(("left" in text) != ("right" in text) for text in texts)
