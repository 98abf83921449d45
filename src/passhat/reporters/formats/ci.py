"""Test cases as CI systems read them: code quality, CTRF, JUnit, OpenMetrics, SARIF, TAP."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree as ET

from passhat._version import __version__
from passhat.reporters.answer import Answer, DisplayOptions
from passhat.reporters.formatting import safe_text
from passhat.reporters.test_cases import ReportedCase, TestSuite

_SEVERITIES = {"failure": "critical", "error": "major", "skipped": "info"}


def render_code_quality(answer: Answer[Any], options: DisplayOptions) -> str:
    """An entry for each test case that did not pass."""
    entries = [
        {
            "description": f"{suite.name}: {case.name}: {case.mark.message}",
            "check_name": f"passhat/{case.mark.kind}",
            "fingerprint": _fingerprint(suite.name, case.name, case.file),
            "severity": _SEVERITIES[case.mark.kind],
            "location": {"path": case.file, "lines": {"begin": case.line}},
        }
        for suite, case in answer.test_cases()
        if case.mark is not None
    ]
    return json.dumps(entries, indent=2) + "\n"


def _fingerprint(*names: str) -> str:
    return hashlib.sha256("\0".join(names).encode("utf-8", "backslashreplace")).hexdigest()


# Test cases as CTRF, the Common Test Report Format (specification 0.0).

_STATUS = {"failure": "failed", "error": "other", "skipped": "skipped"}

_STATUSES = ("passed", "failed", "skipped", "pending", "other")
_NAMELESS = "(without a name)"


def render_ctrf(answer: Answer[Any], options: DisplayOptions) -> str:
    """The test cases of an answer; the duration of single runs in ms, else 0: it is not known."""
    tests = [_test(suite, case) for suite, case in answer.test_cases()]
    counts = Counter(test["status"] for test in tests)
    summary = {"tests": len(tests), **{status: counts[status] for status in _STATUSES}}
    results = {
        "tool": {"name": "passhat", "version": __version__},
        "summary": {**summary, "start": 0, "stop": 0},
        "tests": tests,
    }
    report = {"reportFormat": "CTRF", "specVersion": "0.0.0", "results": results}
    return json.dumps(report, indent=2) + "\n"


def _test(suite: TestSuite, case: ReportedCase) -> dict[str, Any]:
    test: dict[str, Any] = {
        "name": case.name or _NAMELESS,
        "status": "passed" if case.mark is None else _STATUS[case.mark.kind],
        "duration": round(1000 * float(str(case.values.get("seconds", 0)))),
        "suite": [suite.name],
    }
    if "passed" in case.values and "runs" in case.values:
        passed, runs = (int(str(case.values[name])) for name in ("passed", "runs"))
        test["flaky"] = 0 < passed < runs
    if case.mark is not None:
        test["message"] = case.mark.message
        test["trace"] = case.mark.detail
    if case.values:
        test["extra"] = {name: str(value) for name, value in case.values.items()}
    return test


# Test cases as JUnit XML, which every CI system shows.

# XML 1.0 has no place for these, not even escaped.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render_junit(answer: Answer[Any], options: DisplayOptions) -> str:
    """The test cases of an answer."""
    return suites_xml(answer.test_suites())


def suites_xml(suites: Sequence[TestSuite]) -> str:
    """Test suites as one document, with their counts."""
    root = ET.Element("testsuites", name="passhat")
    for suite in suites:
        element = ET.SubElement(root, "testsuite", name=_clean(suite.name))
        for case in suite.cases:
            _add_case(element, case)
        _count(element)
        if suite.values:
            _add_properties(element, suite.values)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _add_case(suite: ET.Element, case: ReportedCase) -> None:
    names = {"name": _clean(case.name), "classname": _clean(case.classname)}
    if "seconds" in case.values:  # of a single run; the time of a task's runs together says little
        names["time"] = f"{case.values['seconds']:.3f}"
    element = ET.SubElement(suite, "testcase", names)
    if case.values:
        _add_properties(element, case.values)
    if case.mark is not None:
        mark = ET.SubElement(element, case.mark.kind, message=_clean(case.mark.message))
        mark.text = _clean(case.mark.detail) or None
    elif case.output:
        ET.SubElement(element, "system-out").text = _clean(case.output)


def _count(suite: ET.Element) -> None:
    """The counts in the head of a test suite, from the cases in it."""
    suite.set("tests", str(len(suite)))
    for attribute, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(attribute, str(len(suite.findall(f"testcase/{kind}"))))


def _add_properties(owner: ET.Element, values: Mapping[str, object]) -> None:
    """Properties come first, as the schemas of CI systems want it."""
    properties = ET.Element("properties")
    owner.insert(0, properties)
    for name, value in values.items():
        ET.SubElement(properties, "property", name=name, value=_clean(str(value)))


def _clean(text: str) -> str:
    """Text as XML 1.0 can hold it."""
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)


# Rates and verdicts as OpenMetrics, for a dashboard or GitLab's metrics report.

_HELP = {
    "passhat_task_pass_rate": "Pass rate of a task, with the ends of its interval.",
    "passhat_task_runs": "Trials of a task.",
    "passhat_pass_hat": "Chance that k attempts at a task all succeed, over the suite.",
    "passhat_gate_verdict": "1 for PASS, 0 for FAIL, 0.5 for UNDECIDED.",
}

_VERDICTS = {"PASS": 1.0, "FAIL": 0.0, "UNDECIDED": 0.5}
_STREAK = re.compile(r"pass\^(\d+)(?:_(low|high))?")

Sample = tuple[str, Mapping[str, str], float]


def render_openmetrics(answer: Answer[Any], options: DisplayOptions) -> str:
    """A gauge for each number of the test cases, sorted by name."""
    by_name: dict[str, list[Sample]] = {name: [] for name in _HELP}
    for suite in answer.test_suites():
        for sample in _samples(suite):
            by_name[sample[0]].append(sample)
    return gauges([sample for samples in by_name.values() for sample in samples], _HELP)


def gauges(samples: Sequence[Sample], meaning: Mapping[str, str]) -> str:
    """Samples as OpenMetrics, those of one name together; `meaning` explains each name."""
    by_name: dict[str, list[Sample]] = {}
    for sample in samples:
        by_name.setdefault(sample[0], []).append(sample)
    lines = [
        line for name, samples in by_name.items() for line in _family(name, meaning[name], samples)
    ]
    return "\n".join([*lines, "# EOF"]) + "\n"


def _family(name: str, meaning: str, samples: list[Sample]) -> Iterator[str]:
    yield f"# HELP {name} {meaning}"
    yield f"# TYPE {name} gauge"
    for _, labels, value in samples:
        written = ",".join(f'{key}="{_openmetrics_escaped(text)}"' for key, text in labels.items())
        yield f"{name}{{{written}}} {value:g}"


def _samples(suite: TestSuite) -> Iterator[Sample]:
    for name, value in suite.values.items():
        if match := _STREAK.fullmatch(name):
            labels = {"system": suite.name, "k": match[1], "bound": match[2] or "value"}
            yield "passhat_pass_hat", labels, float(str(value))
    for case in suite.cases:
        yield from _case_samples(suite, case)


def _case_samples(suite: TestSuite, case: ReportedCase) -> Iterator[Sample]:
    values = case.values
    if "verdict" in values:
        labels = {"gate": case.name, "system": case.classname.removeprefix("passhat.gates.")}
        yield "passhat_gate_verdict", labels, _VERDICTS[str(values["verdict"])]
    if "rate" not in values:
        return
    labels = {"system": suite.name, "task": case.name}
    for key, bound in (("rate", "value"), ("rate_low", "low"), ("rate_high", "high")):
        if values[key] != "":
            yield "passhat_task_pass_rate", {**labels, "bound": bound}, float(str(values[key]))
    yield "passhat_task_runs", labels, float(str(values["runs"]))


def _openmetrics_escaped(text: str) -> str:
    """A label's value, whose characters that steer or reorder text are written out."""
    return safe_text(text).replace("\\", "\\\\").replace('"', '\\"')


# What failed as SARIF 2.1.0, which code hosts show beside a change.

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)

_LEVELS = {"failure": "error", "error": "warning", "skipped": "note"}
_RULES = {
    "failure": "A demand is not met",
    "error": "It could not be judged",
    "skipped": "Undecided, or not judged on purpose",
}


def render_sarif(answer: Answer[Any], options: DisplayOptions) -> str:
    """A result for each test case that did not pass."""
    cases = answer.test_cases()
    results = [_result(suite, case) for suite, case in cases if case.mark is not None]
    rules = [{"id": name, "shortDescription": {"text": text}} for name, text in _RULES.items()]
    driver = {"name": "passhat", "version": __version__, "rules": rules}
    run = {"tool": {"driver": driver}, "results": results}
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2) + "\n"


def _result(suite: TestSuite, case: ReportedCase) -> dict[str, Any]:
    assert case.mark is not None, "the caller looked"
    return {
        "ruleId": case.mark.kind,
        "level": _LEVELS[case.mark.kind],
        "message": {"text": f"{suite.name}: {case.name}: {case.mark.message}"},
        # Code hosts want a file, and show the result beside its line.
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": quote(case.file)},
                    "region": {"startLine": case.line},
                }
            }
        ],
        "partialFingerprints": {"case/v1": f"{suite.name}/{case.name}"},
    }


# Test cases as TAP, the Test Anything Protocol (version 14).


def render_tap(answer: Answer[Any], options: DisplayOptions) -> str:
    """A line for each test case; numbers and reasons follow in a YAML block."""
    cases = answer.test_cases()
    lines = ["TAP version 14", f"1..{len(cases)}"]
    for number, (suite, case) in enumerate(cases, 1):
        lines += _lines(number, suite.name, case)
    return "\n".join(lines) + "\n"


def _lines(number: int, suite: str, case: ReportedCase) -> Iterator[str]:
    mark = case.mark
    bad = mark is not None and mark.kind != "skipped"
    skip = f" # SKIP {_tap_escaped(mark.message)}" if mark and mark.kind == "skipped" else ""
    name = _tap_escaped(f"{suite}: {case.name}")
    yield f"{'not ok' if bad else 'ok'} {number} - {name}{skip}"
    facts = dict(case.values) | ({"message": mark.message} if mark and bad else {})
    if facts:
        yield "  ---"
        yield from (f"  {key}: {_quoted(str(value))}" for key, value in facts.items())
        yield "  ..."


def _tap_escaped(text: str) -> str:
    """A description on one line, whose # is no directive."""
    return safe_text(text).replace("\\", "\\\\").replace("#", "\\#")


def _quoted(text: str) -> str:
    """A YAML scalar between single quotes, which knows no escapes but its own quote."""
    return "'" + safe_text(text).replace("'", "''") + "'"
