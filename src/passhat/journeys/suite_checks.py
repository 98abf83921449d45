"""What is wrong with suite files, and what is worth knowing before they are run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from passhat.arguments import path, several
from passhat.records.suite import SuiteCheck, SuiteFault

if TYPE_CHECKING:
    from passhat.records import Suite


def check_suites(suites: str | Path | Sequence[str | Path] = ()) -> tuple[SuiteCheck, ...]:
    """What is wrong with suite files? Without a name, with the suite file in this folder.

    Nothing is run. A function of a suite whose module is not installed here is a fault too.
    """
    from passhat.suite import find_suite

    files = several(suites, str) or [find_suite(Path())]
    return tuple(_check(Path(path("suites", file, "paths of suite files"))) for file in files)


def _check(file: Path) -> SuiteCheck:
    from passhat.runner.preflight import absent_modules
    from passhat.suite import check_suite
    from passhat.suite.load import located_problems
    from passhat.suite.yaml_tree import dotted

    suite, problems = check_suite(file)
    absent = [] if suite is None else absent_modules(suite)
    if faults := [(one.section, one.name, one.key, one.reason) for one in absent]:
        suite, problems = None, tuple(located_problems(file, faults))
    return SuiteCheck(
        file=str(file),
        size=None if suite is None else suite.size,
        faults=tuple(
            SuiteFault(line=p.line, column=p.column, path=dotted(p.path), message=p.message)
            for p in problems
        ),
        notes=() if suite is None else tuple(_notes(suite)),
    )


def _notes(suite: Suite) -> list[str]:
    """What is not wrong but worth knowing before a run."""
    from datetime import UTC, datetime

    from passhat.journeys.run_job import RUNS_ONCE
    from passhat.runner.preflight import absent_programs

    today = datetime.now(tz=UTC).date()
    ended = [
        f'the quarantine of "{entry.task}" ended on {entry.until}: it is gated again'
        for entry in suite.quarantine
        if not entry.in_force(today)
    ]
    once = [RUNS_ONCE] if suite.runs_once else []
    return [*ended, *once, *_unlisted(suite), *map(str, absent_programs(suite))]


def _unlisted(suite: Suite) -> list[str]:
    """Models of a known family with an unknown name: they may be new, or mistyped."""
    from passhat.records.providers import unlisted_model

    names = dict.fromkeys(model.name for model in suite.models if model.base_url is None)
    return list(filter(None, map(unlisted_model, names)))
