"""A report and its verdicts as JUnit XML, which every CI system shows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree as ET

from passhat.analysis.report import Report, SystemReport, TaskRow
from passhat.analysis.verdict import Verdict

# XML 1.0 has no place for these, not even escaped.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render_junit(report: Report | None, verdicts: Sequence[Verdict] = ()) -> str:
    """A test case a task, which carries its rate and interval, and one a gate.

    Only gates can fail: a task that passes now and then is what the gates are there to judge.
    """
    suites = ET.Element("testsuites", name="passhat")
    for system in () if report is None else report.systems:
        _add_system(suites, system)
    if verdicts:
        _add_gates(suites, verdicts)
    ET.indent(suites)
    return ET.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def render_verdicts_junit(verdicts: Sequence[Verdict]) -> str:
    """The gates alone."""
    return render_junit(None, verdicts)


def _add_system(suites: ET.Element, system: SystemReport) -> None:
    suite = ET.SubElement(
        suites,
        "testsuite",
        name=_clean(system.name),
        tests=str(len(system.tasks)),
        failures="0",
        errors="0",
        skipped="0",
    )
    for row in system.tasks:
        _add_task(suite, system, row)


def _add_task(suite: ET.Element, system: SystemReport, row: TaskRow) -> None:
    case = ET.SubElement(
        suite, "testcase", name=_clean(row.name), classname=_clean(f"passhat.{system.name}")
    )
    interval = row.rate.interval
    values = {
        "runs": row.runs,
        "passed": row.passed,
        "errored": row.errored,
        "rate": f"{row.rate.value:.6g}",
        "rate_low": "" if interval is None else f"{interval.low:.6g}",
        "rate_high": "" if interval is None else f"{interval.high:.6g}",
        "confidence": f"{row.rate.confidence:g}",
        "label": row.label,
    }
    _add_properties(case, values)


def _add_gates(suites: ET.Element, verdicts: Sequence[Verdict]) -> None:
    failing = [verdict for verdict in verdicts if verdict.exit_code == 1]
    still_open = [verdict for verdict in verdicts if verdict.exit_code == 4]
    suite = ET.SubElement(
        suites,
        "testsuite",
        name="gates",
        tests=str(len(verdicts)),
        failures=str(len(failing)),
        errors="0",
        skipped=str(len(still_open)),
    )
    for verdict in verdicts:
        _add_gate(suite, verdict)


def _add_gate(suite: ET.Element, verdict: Verdict) -> None:
    case = ET.SubElement(
        suite,
        "testcase",
        name=_clean(verdict.gate.label),
        classname=_clean(f"passhat.gates.{verdict.system}"),
    )
    estimate = verdict.estimate
    value, interval = getattr(estimate, "value", None), getattr(estimate, "interval", None)
    values = {
        "verdict": verdict.word,
        "value": "" if value is None else f"{value:.6g}",
        "low": "" if interval is None else f"{interval.low:.6g}",
        "high": "" if interval is None else f"{interval.high:.6g}",
        "evidence": verdict.evidence,
        "alpha": "" if verdict.alpha is None else f"{verdict.alpha:g}",
        "beta": "" if verdict.beta is None else f"{verdict.beta:g}",
        "runs": verdict.runs,
    }
    _add_properties(case, values)
    if verdict.exit_code == 1:
        failure = ET.SubElement(case, "failure", message=_clean(verdict.sentence))
        failure.text = _clean("\n".join([verdict.sentence, *verdict.notes]))
    elif verdict.exit_code == 4:
        ET.SubElement(case, "skipped", message=_clean(verdict.sentence))
    else:
        ET.SubElement(case, "system-out").text = _clean(verdict.sentence)


def _add_properties(case: ET.Element, values: dict[str, object]) -> None:
    properties = ET.SubElement(case, "properties")
    for name, value in values.items():
        ET.SubElement(properties, "property", name=name, value=_clean(str(value)))


def _clean(text: str) -> str:
    """Text as XML 1.0 can hold it."""
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
