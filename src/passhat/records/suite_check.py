"""What a check of a suite file found."""

from __future__ import annotations

from passhat.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteFault:
    """One thing that is wrong with a suite file, and where."""

    line: int
    column: int
    path: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteCheck:
    """One suite file: what it holds if it is valid, or everything that is wrong with it.

    `notes` are not wrong but worth knowing before a run.
    """

    file: str
    size: str | None
    faults: tuple[SuiteFault, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def valid(self) -> bool:
        """Whether nothing is wrong with it."""
        return not self.faults

    def line(self, fault: SuiteFault) -> str:
        """A fault as one line that editors can jump to."""
        where = f"{fault.path}: " if fault.path else ""
        return f"{self.file}:{fault.line}:{fault.column}: {where}{fault.message}"
