"""What the commands that an answer advises are to read, so that they run as they stand."""

from __future__ import annotations

import shlex

from passhat.analysis.report import Report, SystemReport

RESULTS = "RESULTS"
"""Where the caller did not say what it read."""


def only(*names: str) -> str:
    """Options that choose systems, as a shell has them.

    >>> only("o3", "my agent")
    "--only o3 --only 'my agent'"
    """
    return " ".join(f"--only {shlex.quote(name)}" for name in names)


def results_of(report: Report, system: SystemReport, results: str | None) -> str | None:
    """The results of one system: those of the report, of which it may be one of several."""
    if results is None or len(report.systems) == 1:
        return results
    return f"{results} {only(system.name)}"
