"""Test cases as JUnit XML, which every CI system shows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree as ET

from passhat.reporters.answer_kind import AnswerKind, DisplayOptions
from passhat.reporters.test_cases import ReportedCase, TestSuite

# XML 1.0 has no place for these, not even escaped.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(kind: AnswerKind, answer: Any, options: DisplayOptions) -> str:
    """The test cases of an answer."""
    return suites_xml(kind.test_suites(answer))


def suites_xml(found: Sequence[TestSuite]) -> str:
    """Test suites as one document, with their counts."""
    root = ET.Element("testsuites", name="passhat")
    for suite in found:
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
    elif case.said:
        ET.SubElement(element, "system-out").text = _clean(case.said)


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
