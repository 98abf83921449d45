"""A report and its verdicts as JUnit XML, which every CI system shows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal
from xml.etree import ElementTree as ET

from passhat.analysis.gates.verdict import Verdict
from passhat.analysis.reports.report import Report
from passhat.analysis.reports.system_report import SystemReport
from passhat.analysis.reports.tasks import TaskRow

# XML 1.0 has no place for these, not even escaped.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """What a test case shows beside its numbers; a case without one has passed."""

    kind: Literal["failure", "error", "skipped"]
    message: str
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A test case that is neither a task nor a gate."""

    suite: str
    name: str
    said: str
    mark: Mark | None = None


def render_junit(
    report: Report | None,
    verdicts: Sequence[Verdict] = (),
    *,
    marks: Mapping[tuple[str, str], Mark] | None = None,
    others: Sequence[Case] = (),
    unjudged: str | None = None,
) -> str:
    """A test case a task, which carries its rate and interval, and one a gate.

    A task that passes now and then is what gates are there to judge: it fails where `marks` (by
    system and task) says so. `unjudged` says why no gate could be judged.
    """
    suites = ET.Element("testsuites", name="passhat")
    for system in () if report is None else report.systems:
        suite = ET.SubElement(suites, "testsuite", name=_clean(system.name))
        for row in system.tasks:
            _add_task(suite, system, row, (marks or {}).get((system.name, row.name)))
    if verdicts:
        suite = ET.SubElement(suites, "testsuite", name="gates")
        for verdict in verdicts:
            _add_gate(suite, verdict, unjudged)
    for name, cases in groupby(others, key=lambda case: case.suite):
        suite = ET.SubElement(suites, "testsuite", name=_clean(name))
        for case in cases:
            _add_case(suite, case)
    for suite in suites:
        _count(suite)
    ET.indent(suites)
    return ET.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def render_verdicts_junit(verdicts: Sequence[Verdict]) -> str:
    """The gates alone."""
    return render_junit(None, verdicts)


def _add_task(suite: ET.Element, system: SystemReport, row: TaskRow, mark: Mark | None) -> None:
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
    _add_mark(case, mark)


def _add_gate(suite: ET.Element, verdict: Verdict, unjudged: str | None) -> None:
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
    _add_mark(case, _gate_mark(verdict, unjudged), said=verdict.sentence)


def _gate_mark(verdict: Verdict, unjudged: str | None) -> Mark | None:
    if unjudged is not None:
        return Mark(kind="error", message=unjudged, detail=verdict.sentence)
    if verdict.exit_code == 1:
        detail = "\n".join([verdict.sentence, *verdict.notes])
        return Mark(kind="failure", message=verdict.sentence, detail=detail)
    if verdict.exit_code == 4:
        return Mark(kind="skipped", message=verdict.sentence)
    return None


def _add_case(suite: ET.Element, case: Case) -> None:
    classname = _clean(f"passhat.{case.suite}")
    element = ET.SubElement(suite, "testcase", name=_clean(case.name), classname=classname)
    _add_mark(element, case.mark, said=case.said)


def _add_mark(case: ET.Element, mark: Mark | None, *, said: str = "") -> None:
    if mark is not None:
        element = ET.SubElement(case, mark.kind, message=_clean(mark.message))
        element.text = _clean(mark.detail) or None
    elif said:
        ET.SubElement(case, "system-out").text = _clean(said)


def _count(suite: ET.Element) -> None:
    """The counts in the head of a test suite, from the cases in it."""
    suite.set("tests", str(len(suite)))
    for attribute, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(attribute, str(len(suite.findall(f"testcase/{kind}"))))


def _add_properties(case: ET.Element, values: dict[str, object]) -> None:
    properties = ET.SubElement(case, "properties")
    for name, value in values.items():
        ET.SubElement(properties, "property", name=name, value=_clean(str(value)))


def _clean(text: str) -> str:
    """Text as XML 1.0 can hold it."""
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
