"""`passhat init`: a first suite that runs at once."""

from __future__ import annotations

from pathlib import Path

import click

from passhat.errors import SuiteError


@click.command()
@click.argument(
    "directory", type=click.Path(file_okay=False, path_type=Path), default=Path(), required=False
)
@click.option(
    "--ci",
    type=click.Choice(["github", "gitlab"]),
    help="Also write a CI job: it runs the suite and publishes a JUnit file and a page.",
)
@click.option("--pytest", "with_pytest", is_flag=True, help="Also write a test that runs it.")
@click.option("--scripted", is_flag=True, help="With a model that acts out a script.")
@click.option("--force", is_flag=True, help="Overwrite what is there.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing on standard error.")
def init(
    directory: Path, ci: str | None, with_pytest: bool, scripted: bool, force: bool, quiet: bool
) -> None:
    """Write a suite that runs at once, with no key: a small MCP server, a real model's runs.

    The recorded runs of a small language model come with it; with --scripted, its model acts out
    a script instead. Where there is a passhat.yml, --ci and --pytest write their own files beside
    it and leave the suite as it is.
    """
    from passhat.suite.starter import SUITE_FILE, starter_files

    files = starter_files(ci=ci, pytest=with_pytest, scripted=scripted)
    beside = not force and (directory / SUITE_FILE).exists() and bool(ci or with_pytest)
    if beside:
        own = starter_files(scripted=scripted)
        files = {name: text for name, text in files.items() if name not in own}
    there = [name for name in files if (directory / name).exists()]
    # What passhat itself put there may be renewed; what somebody wrote may not.
    kept = [name for name in there if not name.startswith(".passhat/")]
    if kept and not force:
        raise SuiteError(f"already there: {', '.join(kept)} (--force overwrites)")
    for name, text in files.items():
        file = directory / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        if not quiet:
            click.echo(f"wrote {file}", err=True)
    if beside and not quiet:
        click.echo(f"left {directory / SUITE_FILE} as it is (--force writes it anew)", err=True)
    if not quiet:
        where = "" if directory == Path() else f"cd {directory} && "
        click.echo(f"now: {where}passhat run", err=True)
