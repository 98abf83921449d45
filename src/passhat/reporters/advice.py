"""What to do next, and commands that run as they stand."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from passhat.analysis.reports.report import Report
from passhat.analysis.reports.system_report import SystemReport
from passhat.defaults import CONFIDENCE
from passhat.reporters.safe_text import safe_text

RESULTS = "RESULTS"
"""Where the caller did not say what it read."""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do; a command is kept apart from words, which may hold what others wrote."""

    text: str
    command: str = ""

    def __str__(self) -> str:
        return f"{self.text}: {self.command}" if self.command else self.text


def advise(text: str, command: str) -> Step:
    r"""A step by a command, or by its words alone where showing the command would change it.

    >>> str(advise("Keep it so", "passhat gate r.csv"))
    'Keep it so: passhat gate r.csv'
    >>> str(advise("Keep it so", "passhat gate 'a\x1bb.csv'"))
    'Keep it so.'
    """
    return Step(text, command) if safe_text(command) == command else Step(f"{text}.")


def only(*names: str) -> str:
    """Options that choose systems, as a shell has them.

    >>> only("o3", "my agent")
    "--only o3 --only 'my agent'"
    """
    return " ".join(f"--only {shlex.quote(name)}" for name in names)


def at_confidence(level: float) -> str:
    """The option that keeps the confidence of an answer, where it is not the usual one.

    >>> at_confidence(0.95), at_confidence(0.9)
    ('', ' --confidence 0.9')
    """
    return "" if level == CONFIDENCE else f" --confidence {level:g}"


def results_of(report: Report, system: SystemReport, results: str | None) -> str | None:
    """The results of one system: those of the report, of which it may be one of several."""
    if results is None or len(report.systems) == 1:
        return results
    return f"{results} {only(system.name)}"
