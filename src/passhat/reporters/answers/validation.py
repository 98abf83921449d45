"""What is wrong with suite files: a line each, and a test case each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from passhat.messages import plural
from passhat.records.suite import SuiteCheck
from passhat.reporters.answer_kind import AnswerKind, DisplayOptions
from passhat.reporters.blocks import Block, Headline, Line
from passhat.reporters.data import plain
from passhat.reporters.test_cases import Mark, ReportedCase, TestSuite


class FaultObject(TypedDict):
    """What is wrong, and where."""

    line: int | None
    column: int | None
    path: str
    message: str


class Validated(TypedDict):
    """One suite file, and everything that is wrong with it."""

    suite: str
    valid: bool
    problems: list[FaultObject]


def validation_blocks(checks: Sequence[SuiteCheck], options: DisplayOptions) -> list[Block]:
    """How many suites are valid, then a line a fault that editors can jump to."""
    valid = sum(one.valid for one in checks)
    lines = [Line(one.line(fault)) for one in checks for fault in one.faults]
    return [Headline(f"{valid} of {plural(len(checks), 'suite')} valid."), *lines]


def _suite_cases(check: SuiteCheck) -> list[ReportedCase]:
    """A case a fault; a valid suite is one that passed."""
    if check.valid:
        return [
            ReportedCase(
                name="valid", classname="passhat.validate", said=check.size or "", file=check.file
            )
        ]
    return [
        ReportedCase(
            name=f"{fault.path} (line {fault.line})" if fault.path else f"line {fault.line}",
            classname="passhat.validate",
            mark=Mark(kind="failure", message=fault.message),
            file=check.file,
            line=fault.line,
        )
        for fault in check.faults
    ]


def _object(check: SuiteCheck) -> Validated:
    return {
        "suite": check.file,
        "valid": check.valid,
        "problems": [
            {"line": one.line, "column": one.column, "path": one.path, "message": one.message}
            for one in check.faults
        ],
    }


KIND = AnswerKind(
    name="validation",
    blocks=validation_blocks,
    data=lambda checks: [_object(check) for check in checks],
    rows=lambda checks: [
        {"file": one.file, **plain(fault)} for one in checks for fault in one.faults
    ],
    cases=lambda checks: [TestSuite(name=one.file, cases=_suite_cases(one)) for one in checks],
    several=True,
    title=lambda checks: f"{plural(len(checks), 'suite')} checked",
)
