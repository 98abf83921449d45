"""What is wrong with suite files: a line each, and a test case each."""

from __future__ import annotations

from collections.abc import Sequence

from passhat.fast_dataclass import dataclass
from passhat.messages import plural
from passhat.reporters.answer_kind import AnswerKind, DisplayOptions
from passhat.reporters.blocks import Block, Headline, Line
from passhat.reporters.data import plain
from passhat.reporters.test_cases import Mark, ReportedCase, TestSuite


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteFault:
    """One thing that is wrong with a suite file, and where."""

    line: int
    column: int
    path: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteCheck:
    """One suite file: what it holds where it is valid, or everything that is wrong with it."""

    file: str
    size: str | None
    faults: tuple[SuiteFault, ...] = ()

    def line(self, fault: SuiteFault) -> str:
        """A fault as one line that editors can jump to."""
        where = f"{fault.path}: " if fault.path else ""
        return f"{self.file}:{fault.line}:{fault.column}: {where}{fault.message}"


def validation_blocks(checks: Sequence[SuiteCheck], options: DisplayOptions) -> list[Block]:
    """How many suites are valid, then a line a fault that editors can jump to."""
    valid = sum(one.size is not None for one in checks)
    lines = [Line(one.line(fault)) for one in checks for fault in one.faults]
    return [Headline(f"{valid} of {plural(len(checks), 'suite')} valid."), *lines]


def _suite_cases(check: SuiteCheck) -> list[ReportedCase]:
    """A case a fault; a valid suite is one that passed."""
    if check.size is not None:
        return [
            ReportedCase(
                name="valid", classname="passhat.validate", said=check.size, file=check.file
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


KIND = AnswerKind(
    name="validation",
    blocks=validation_blocks,
    rows=lambda checks: [
        {"file": one.file, **plain(fault)} for one in checks for fault in one.faults
    ],
    cases=lambda checks: [TestSuite(name=one.file, cases=_suite_cases(one)) for one in checks],
    several=True,
    title=lambda checks: f"{plural(len(checks), 'suite')} checked",
)
