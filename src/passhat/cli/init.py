"""`passhat init`: write a suite that runs at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from passhat.errors import SuiteError

RUN_IT = (("run it", "passhat run"),)


@click.command()
@click.argument(
    "directory", type=click.Path(file_okay=False, path_type=Path), default=Path(), required=False
)
@click.option("--python", metavar="MODULE:FUNCTION", help="A suite for this function of yours.")
@click.option("--command", metavar="'PROGRAM {prompt}'", help="A suite for this program of yours.")
@click.option("--mcp", metavar="'COMMAND'|URL", help="A suite that calls this server's tools.")
@click.option(
    "--from-log",
    "log",
    metavar="FILE",
    help="A suite of the tasks in a log of any tool; --python or --command names the agent.",
)
@click.option(
    "--ci",
    type=click.Choice(["github", "gitlab"]),
    help="Also write a CI job: it installs the project, runs the suite and shows the verdict.",
)
@click.option("--pytest", "with_pytest", is_flag=True, help="Also write a pytest test.")
@click.option("--scripted", is_flag=True, help="The example with a scripted model.")
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@click.option("-q", "--quiet", is_flag=True, help="Print no notes on standard error.")
def init(
    directory: Path,
    python: str | None,
    command: str | None,
    mcp: str | None,
    log: str | None,
    ci: str | None,
    with_pytest: bool,
    scripted: bool,
    force: bool,
    quiet: bool,
) -> None:
    """Write a suite that runs at once: an example with no key, or one for what you have.

    \b
      passhat init                 an example: an MCP server, runs of a real model
      passhat init --python my_agent:answer
      passhat init --command './agent --ask {prompt}'
      passhat init --mcp 'npx -y @modelcontextprotocol/server-everything'
      passhat init --from-log logs/airline.eval --python my_agent:answer

    If there is a passhat.yml, --ci and --pytest write their files beside it and leave the suite as
    it is. An MCP server is started and asked for its tools; no tool is called.
    """
    from passhat.suite.starter_files import SUITE_FILE, starter_files

    files = dict(starter_files(ci=ci, pytest=with_pytest, scripted=scripted))
    steps: Sequence[tuple[str, str]] = RUN_IT
    notes: Sequence[str] = ()
    beside = False
    if any(one is not None for one in (python, command, mcp, log)):
        _check_choice(python, command, mcp, log, scripted=scripted)
        from passhat.journeys.new_suite import new_suite

        found = new_suite(python=python, command=command, mcp=mcp, log=log, directory=directory)
        others = starter_files(ci=ci, pytest=with_pytest, example=False)
        files = {**others, **found.files}
        steps, notes = found.next_steps, found.notes
    elif not force and (directory / SUITE_FILE).exists() and (ci or with_pytest):
        beside = True
        own = starter_files(scripted=scripted)
        files = {name: text for name, text in files.items() if name not in own}
    _refuse_overwriting(directory, files, force=force)
    _write(directory, files, quiet=quiet)
    if quiet:
        return
    if beside:
        click.echo(f"left {directory / SUITE_FILE} as it is (--force overwrites it)", err=True)
    for note in notes:
        click.echo(note, err=True)
    _tell_next(directory, steps)


def _check_choice(
    python: str | None, command: str | None, mcp: str | None, log: str | None, *, scripted: bool
) -> None:
    agents = [name for name, given in (("--python", python), ("--command", command)) if given]
    others = [name for name, given in (("--mcp", mcp), ("--scripted", scripted)) if given]
    chosen = agents + others + (["--from-log"] if log and others else [])
    if len(chosen) > 1:
        raise click.UsageError(f"{' and '.join(chosen)} cannot be used together")


def _refuse_overwriting(directory: Path, files: Mapping[str, str], *, force: bool) -> None:
    # Files below .passhat are passhat's own; all others may be the user's.
    there = [
        name for name in files if (directory / name).exists() and not name.startswith(".passhat/")
    ]
    if there and not force:
        raise SuiteError(f"already there: {', '.join(there)} (--force overwrites)")


def _write(directory: Path, files: Mapping[str, str], *, quiet: bool) -> None:
    for name, text in files.items():
        file = directory / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        if not quiet:
            click.echo(f"wrote {file}", err=True)


def _tell_next(directory: Path, steps: Sequence[tuple[str, str]]) -> None:
    """Print what to do now: commands to paste."""
    if len(steps) == 1:
        where = "" if directory == Path() else f"cd {directory} && "
        click.echo(f"now: {where}{steps[0][1]}", err=True)
        return
    click.echo("now:" if directory == Path() else f"now, in {directory}:", err=True)
    width = max(len(command) for _, command in steps)
    for what, command in steps:
        click.echo(f"  {command:<{width}}  # {what}", err=True)
