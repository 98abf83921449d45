"""`passhat validate`: everything that is wrong with suites."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import click

from passhat.cli.exit_codes import ExitCode
from passhat.cli.options import SectionedCommand, file_option
from passhat.cli.output import Output, usual_endings

if TYPE_CHECKING:
    from passhat.records import Suite
    from passhat.reporters.answers.validation import SuiteCheck


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


_ENDINGS = " ".join(usual_endings("validation"))


@click.command(cls=SectionedCommand)
@click.argument("suites", nargs=-1, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@file_option(f"Also write to a file; its ending chooses the format: {_ENDINGS}. May be repeated.")
@click.option("--schema", is_flag=True, help="Print the JSON Schema of a suite file, and exit.")
@click.pass_context
def validate(
    context: click.Context,
    suites: tuple[Path, ...],
    as_json: bool,
    paths_out: tuple[str, ...],
    schema: bool,
) -> None:
    """Check SUITES for errors (default: passhat.yml).

    \b
      passhat validate suites/*.yml -o faults.sarif

    Exit codes: 0 every suite is valid; 2 one is not.
    """
    from passhat.suite import find_suite

    if schema:
        from passhat.suite.document import json_schema_text

        click.echo(json_schema_text(), nl=False)
        return
    checked = [_checked(path) for path in suites or (find_suite(Path()),)]
    if as_json:
        click.echo(json.dumps([_plain(check) for check, _ in checked], indent=2))
    else:
        for check, suite in checked:
            _print_check(check, suite)
    checks = [check for check, _ in checked]
    if paths_out:
        Output(format=None, paths_out=paths_out, quiet=False).write(checks)
    if any(check.faults for check in checks):
        context.exit(ExitCode.USAGE)


def _checked(path: Path) -> tuple[SuiteCheck, Suite | None]:
    """The suite, and what is wrong with it: its text, or a function whose module is not here."""
    from passhat.reporters.answers.validation import SuiteCheck, SuiteFault
    from passhat.runner.programs import absent_modules
    from passhat.suite import check_suite
    from passhat.suite.load import located_problems
    from passhat.suite.problems import dotted

    suite, problems = check_suite(path)
    absent = [] if suite is None else absent_modules(suite)
    if faults := [(one.section, one.name, one.key, one.reason) for one in absent]:
        suite, problems = None, tuple(located_problems(path, faults))
    check = SuiteCheck(
        file=str(path),
        size=None if suite is None else suite.size,
        faults=tuple(
            SuiteFault(line=p.line, column=p.column, path=dotted(p.path), message=p.message)
            for p in problems
        ),
    )
    return check, suite


def _print_check(check: SuiteCheck, suite: Suite | None) -> None:
    from passhat.reporters.safe_text import safe_text

    for fault in check.faults:
        click.echo(safe_text(check.line(fault)))
    if suite is not None:
        click.echo(safe_text(f"{check.file}: valid: {check.size}"))
        for note in _notes(suite):
            click.echo(safe_text(f"{check.file}: {note}"), err=True)


def _notes(suite: Suite) -> list[str]:
    """What is not wrong but worth knowing before a run."""
    from datetime import UTC, datetime

    from passhat.journeys.run_job import RUNS_ONCE
    from passhat.runner.programs import absent_programs

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

    models = [system.model for system in suite.model_systems]
    if suite.judge is not None:
        models.append(suite.judge.model)
    names = dict.fromkeys(model.name for model in models if model.base_url is None)
    return list(filter(None, map(unlisted_model, names)))


def _plain(check: SuiteCheck) -> Validated:
    return {
        "suite": check.file,
        "valid": not check.faults,
        "problems": [
            {"line": one.line, "column": one.column, "path": one.path, "message": one.message}
            for one in check.faults
        ],
    }
