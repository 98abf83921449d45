"""JUnit: a case a task with its rate and interval, a case a gate, and XML whatever the names."""

from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.analysis.gates.judge import judge
from passhat.analysis.reports.measure import measure
from passhat.records import Trials
from passhat.reporters import render
from passhat.reporters.formats.ci import suites_xml
from passhat.reporters.test_cases import gate_suite, task_suites


def table(name="refund", passed=30, runs=30):
    return Trials.from_columns(task=[name] * runs, passed=[i < passed for i in range(runs)])


def properties(case):
    return {p.get("name"): p.get("value") for p in case.iter("property")}


def test_a_task_carries_its_rate_and_interval_and_never_fails():
    root = ET.fromstring(render(measure(table(passed=15)), "junit"))
    (suite,) = root
    assert (suite.get("tests"), suite.get("failures")) == ("1", "0")
    seen = properties(suite.find("testcase"))
    assert (seen["rate"], seen["runs"], seen["label"]) == ("0.5", "30", "flaky")
    assert float(seen["rate_low"]) < 0.5 < float(seen["rate_high"])


@pytest.mark.parametrize(
    ("passed", "tag", "counts"),
    [
        (30, "system-out", ("1", "0", "0")),
        (3, "failure", ("1", "1", "0")),
        (27, "skipped", ("1", "0", "1")),
    ],
)
def test_a_gate_passes_fails_or_is_skipped(passed, tag, counts):
    verdicts = judge(table(passed=passed), ["pass^1 >= 0.85"])
    gates = ET.fromstring(render(verdicts, "junit")).find("testsuite")
    assert (gates.get("tests"), gates.get("failures"), gates.get("skipped")) == counts
    assert gates.find(f"testcase/{tag}") is not None


@given(st.text(min_size=1, max_size=20))
def test_any_name_makes_well_formed_xml(name):
    trials = table(name=name, passed=1, runs=2)
    gates = gate_suite(judge(trials, ["every task: pass^1 >= 0.5"]))
    text = suites_xml([*task_suites(measure(trials)), gates])
    assert ET.fromstring(text).find("testsuite/testcase") is not None
