"""`passhat doctor`: will the suite run here? Keys, servers, models, programs, one line each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from passhat.cli.exit_codes import ExitCode
from passhat.messages import plural

if TYPE_CHECKING:
    from passhat.journeys.checks import Finding


@click.command()
@click.argument("suite", type=click.Path(path_type=Path), required=False)
@click.option(
    "--ask", is_flag=True, help="Ask every model one short question; this costs a little."
)
@click.pass_context
def doctor(context: click.Context, suite: Path | None, ask: bool) -> None:
    """See whether SUITE (default: passhat.yml) can run on this machine.

    It looks for keys and programs, starts servers and asks them for their tools. Nothing is paid
    for without --ask. If `passhat run` would replay cassettes, what only a live run needs is noted
    and is not a problem.

    Exit codes: 0 ready; 1 there is a problem; 2 the suite is not valid, or names a program or
    function that is not here.
    """
    from passhat.journeys import diagnose

    problems = []
    for finding in diagnose(suite, ask=ask):
        _tell(finding)
        if finding.problem:
            problems.append(ExitCode.USAGE if finding.invalid else ExitCode.FAIL)
    click.echo(plural(len(problems), "problem") if problems else "ready", err=True)
    context.exit(max(problems, default=ExitCode.PASS))


def _tell(finding: Finding) -> None:
    import os
    import sys

    from passhat.cli.output import in_shell, ink_for
    from passhat.records.redaction import environment_redactor
    from passhat.reporters.formatting import safe_text

    ink = ink_for(sys.stdout)
    word = ink.style("note   ", "yellow") if finding.note else ink.style("ok     ", "green")
    if finding.problem:
        word = ink.style("problem", "red")
    text = environment_redactor(os.environ).clean(f"{finding.what}: {in_shell(finding.text)}")
    click.echo(f"{word}  {safe_text(text)}", color=True)
