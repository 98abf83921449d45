"""Formats that CI systems read are valid for any names and messages."""

import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from importlib import import_module
from pathlib import Path

import jsonschema
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from passhat import Trials, simulate
from passhat.analysis.gates.judge import judge
from passhat.analysis.reports.measure import measure
from passhat.reporters import render
from passhat.reporters.answer import Answer, DisplayOptions
from passhat.reporters.rendering import FORMATS
from passhat.reporters.test_cases import Mark, ReportedCase, TestSuite

NODE = Path(__file__).parents[1] / "node_modules"
CTRF = NODE / "ctrf" / "dist" / "ctrf-schema-0.0.json"
SARIF = NODE / "@microsoft" / "jest-sarif" / "lib" / "schemas" / "sarif-2.1.0-rtm.5.json"
NAMES = st.text(min_size=1).filter(lambda text: text.strip() == text)


ANY = st.text(max_size=12)
MARKS = st.none() | st.builds(
    Mark, kind=st.sampled_from(["failure", "error", "skipped"]), message=ANY, detail=ANY
)
CASES = st.builds(
    ReportedCase,
    name=ANY,
    classname=ANY,
    values=st.dictionaries(st.sampled_from(["label", "evidence"]), ANY),
    output=ANY,
    mark=MARKS,
    file=ANY,
    line=st.integers(1, 10**6),
)
SUITES = st.lists(st.builds(TestSuite, name=ANY, cases=st.lists(CASES, max_size=3)), max_size=2)
AWKWARD = [
    TestSuite(
        name=f"<{text}>",
        cases=[
            ReportedCase(name=text, classname=text, mark=Mark(kind=kind, message=text, detail=text))
            for kind in ("failure", "error", "skipped")
        ],
    )
    for text in (
        "\ud800", "a\x00b", "]]>", "# SKIP", "# TODO x", "--- | ...", "\\", "\\#", "a\nnot ok 9",
        "\x1b[31m", "\u2028", "\ufffe", "ok 1 - x", "  ...\n---", "Bail out!", "1..3", "'", '"', "",
    )
]  # fmt: skip
"""Names and messages that have broken some reader of some format."""


def written(suites, format_name):
    """Test cases in a format, whatever answer they came from."""
    module, _, function = FORMATS[format_name].function.partition(":")
    render_it = getattr(import_module(f"passhat.reporters.formats.{module}"), function)
    return render_it(_Cases(suites), DisplayOptions())


class _Cases(Answer):
    name = "x"

    def title(self):
        return ""

    def blocks(self, options):
        return []

    def rows(self):
        return []

    def cases(self):
        return self.result


def schema_of(file, package):
    if not file.exists():
        pytest.skip(f"npm's package {package} is not installed")
    return json.loads(file.read_text(encoding="utf-8"))


@given(SUITES)
@example(AWKWARD)
def test_any_text_makes_valid_ctrf_sarif_and_code_quality(suites):
    jsonschema.validate(json.loads(written(suites, "ctrf")), schema_of(CTRF, "ctrf"))
    sarif = json.loads(written(suites, "sarif"))
    jsonschema.Draft7Validator(schema_of(SARIF, "@microsoft/jest-sarif")).validate(sarif)
    entries = json.loads(written(suites, "code-quality"))
    for entry in entries:
        # https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format
        assert set(entry) == {"description", "check_name", "fingerprint", "severity", "location"}
        assert entry["severity"] in ("info", "minor", "major", "critical", "blocker")
        assert entry["location"]["lines"]["begin"] >= 1
    for text in (written(suites, name) for name in ("ctrf", "sarif", "code-quality")):
        assert "\\ud8" not in re.sub(r"\\ud[89ab]..\\ud[cdef]..", "", text)


@given(SUITES)
@example(AWKWARD)
def test_any_text_makes_junit_that_readers_know(suites):
    root = ET.fromstring(written(suites, "junit").encode())
    assert root.tag == "testsuites"
    for suite in root:
        assert suite.tag == "testsuite"
        assert set(suite.keys()) == {"name", "tests", "failures", "errors", "skipped"}
        cases = suite.findall("testcase")
        assert int(suite.get("tests")) == len(cases)
        for case in cases:
            assert {"name", "classname"} <= set(case.keys()) <= {"name", "classname", "time"}
            inside = [one.tag for one in case]
            assert inside == sorted(inside, key=["properties"].count, reverse=True)
            assert set(inside) <= {"properties", "failure", "error", "skipped", "system-out"}


def test_a_real_tap_parser_reads_every_case_as_it_was(tmp_path):
    """One process for all: node's tap-parser is the one that the TAP project keeps."""
    if not (NODE / "tap-parser").exists() or shutil.which("node") is None:
        pytest.skip("npm's package tap-parser is not installed")
    (tmp_path / "x.tap").write_text(written(AWKWARD, "tap"), encoding="utf-8")
    script = """
        const { Parser } = require('tap-parser')
        const found = Parser.parse(require('fs').readFileSync(process.argv[1], 'utf8'))
        const asserts = found.filter(([kind]) => kind === 'assert').map(([, one]) => one)
        const extra = found.filter(([kind]) => kind === 'extra' || kind === 'bailout')
        const [, end] = found.find(([kind]) => kind === 'complete')
        console.log(JSON.stringify({ asserts, extra, plan: end.plan }))
    """
    done = subprocess.run(
        ["node", "-e", script, str(tmp_path / "x.tap")],
        cwd=NODE.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    kinds = [case.mark.kind for suite in AWKWARD for case in suite.cases]
    assert found["extra"] == []
    assert [one["ok"] for one in found["asserts"]] == [kind == "skipped" for kind in kinds]
    assert [bool(one.get("skip")) for one in found["asserts"]] == [
        kind == "skipped" for kind in kinds
    ]
    assert not any(one.get("todo") for one in found["asserts"])
    assert found["plan"]["end"] == len(kinds)


def report_of(system: str, task: str):
    columns = {"system": [system] * 4, "task": [task, task, "other\x00", "other\x00"]}
    return measure(Trials.from_columns(columns, passed=[True, False, True, True]))


def verdicts_of(system: str, require: str = "pass^2 >= 0.99"):
    trials = simulate(tasks=4, runs=6, rate={system: 0.5}, seed=1)
    return judge(trials, [require, "pass^1 >= 0.01", "pass^1 >= 0.5"])


@given(NAMES, NAMES)
@example("a", "x\ud800y")
@example('q"uo\\te', "new\nline # SKIP not really")
def test_any_names_make_valid_ctrf(system, task):
    if not CTRF.exists():
        pytest.skip("npm's package ctrf is not installed")
    schema = json.loads(CTRF.read_text(encoding="utf-8"))
    for answer in (report_of(system, task), verdicts_of(system)):
        jsonschema.validate(json.loads(render(answer, "ctrf")), schema)


def test_ctrf_counts_what_it_lists_and_names_flaky_tasks():
    found = json.loads(render(report_of("s", "t"), "ctrf"))["results"]
    assert [test["flaky"] for test in found["tests"]] == [True, False]
    gates = json.loads(render(verdicts_of("s"), "ctrf"))["results"]
    assert gates["summary"]["tests"] == 3
    assert sum(gates["summary"][word] for word in ("passed", "failed", "skipped", "other")) == 3


@given(NAMES, NAMES)
@example("a", "two\nlines\nnot ok 2")
def test_any_names_make_tap_with_one_line_a_case(system, task):
    lines = render(report_of(system, task), "tap").splitlines()
    assert lines[:2] == ["TAP version 14", "1..2"]
    points = [line for line in lines[2:] if not line.startswith("  ")]
    assert [re.match(r"(ok|not ok) (\d+) - ", line)[2] for line in points] == ["1", "2"]
    assert all(not re.search(r"(?<!\\)#", line) for line in points)


def test_an_open_gate_is_skipped_in_tap_and_a_failed_one_is_not_ok():
    lines = render(verdicts_of("s"), "tap").splitlines()
    points = [line for line in lines[2:] if not line.startswith("  ")]
    assert [line.startswith("not ok") for line in points] == [True, False, False]
    assert "# SKIP" in points[2]


@given(NAMES, NAMES)
def test_any_names_make_openmetrics_that_ends_and_has_one_sample_a_line(system, task):
    text = render(report_of(system, task), "openmetrics")
    assert text.endswith("# EOF\n")
    sample = re.compile(r'\w+\{(\w+="([^"\\\n]|\\.)*",?)+\} [-+.\de]+')
    for line in text.split("\n")[:-2]:
        assert line.startswith("# ") or sample.fullmatch(line), line


@given(NAMES, NAMES)
def test_any_names_make_badges_that_are_xml_and_json(system, task):
    report = report_of(system, task)
    assert json.loads(render(report, "badge-json"))["schemaVersion"] == 1
    assert ET.fromstring(render(report, "badge")).tag.endswith("svg")


def test_failed_and_open_gates_are_results_of_sarif_and_entries_of_code_quality():
    verdicts = verdicts_of("s")
    run = json.loads(render(verdicts, "sarif"))["runs"][0]
    assert [one["level"] for one in run["results"]] == ["error", "note"]
    rules = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    assert {one["ruleId"] for one in run["results"]} <= rules
    entries = json.loads(render(verdicts, "code-quality"))
    assert [one["severity"] for one in entries] == ["critical", "info"]
    assert len({one["fingerprint"] for one in entries}) == 2


def test_the_pass_hat_of_a_suite_and_its_interval_stand_in_junit_and_openmetrics():
    report = measure(simulate(tasks=6, runs=5, seed=2))
    number = report.system().pass_hat(3).this_suite
    suite = ET.fromstring(render(report, "junit")).find("testsuite")
    values = {one.get("name"): one.get("value") for one in suite.find("properties")}
    assert float(values["pass^3"]) == pytest.approx(number.value, abs=1e-5)
    assert float(values["pass^3_low"]) == pytest.approx(number.interval.low, abs=1e-5)
    wanted = f'passhat_pass_hat{{system="agent",k="3",bound="high"}} {number.interval.high:g}'
    assert wanted in render(report, "openmetrics").splitlines()


def test_a_badge_does_not_round_to_an_end_that_was_not_reached():
    tasks = [f"t{i}" for i in range(300)] * 2
    report = measure(Trials.from_columns(task=tasks, passed=[1] * 599 + [0]))
    assert json.loads(render(report, "badge-json"))["message"] == ">99% [98, >99]"
