"""`passhat list`: what a suite would run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import click

if TYPE_CHECKING:
    from passhat.records import Pairing


class Listed(TypedDict):
    """One system at one task, and how often."""

    label: str
    task: str
    system: str
    runs: int
    tags: list[str]
    level: str | None
    bar: float | None


@click.command("list")
@click.argument("suite", type=click.Path(path_type=Path), required=False)
@click.option("--rows", is_flag=True, help="One line for every trial.")
@click.option("--models", is_flag=True, help="List the models with a known price instead.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_rows(suite: Path | None, rows: bool, models: bool, as_json: bool) -> None:
    """List what SUITE would run (default: passhat.yml).

    \b
      passhat list suite.yml --rows
      passhat list --models | grep claude
    """
    from passhat.reporters.formatting import safe_text
    from passhat.suite import find_suite, load_suite

    if models:
        _tell_models(as_json=as_json)
        return
    loaded = load_suite(suite or find_suite(Path()), models_asked=False)
    if as_json:
        click.echo(json.dumps([_plain(pairing) for pairing in loaded.pairings], indent=2))
        return
    for pairing in loaded.pairings:
        if rows:
            lines = [pairing.row(trial) for trial in range(pairing.runs)]
        else:
            lines = [f"{pairing.label}  x{pairing.runs}{_details(pairing)}"]
        for line in lines:
            click.echo(safe_text(line))
    click.echo(loaded.size, err=True)


def _tell_models(*, as_json: bool) -> None:
    from passhat.errors import MissingExtra
    from passhat.records.providers import model_names

    names = model_names()
    if not names:
        raise MissingExtra("knowing which models there are", "run")
    click.echo(json.dumps(names, indent=2) if as_json else "\n".join(names))


def _details(pairing: Pairing) -> str:
    words = [pairing.system.name, *(f"#{tag}" for tag in pairing.task.tags)]
    return f"  ({', '.join(words)})"


def _plain(pairing: Pairing) -> Listed:
    return {
        "label": pairing.label,
        "task": pairing.task.name,
        "system": pairing.system.name,
        "runs": pairing.runs,
        "tags": list(pairing.task.tags),
        "level": pairing.task.level,
        "bar": pairing.task.bar,
    }
