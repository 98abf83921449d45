"""`passhat schema`: the JSON Schema of what --json prints, and of a suite file."""

from __future__ import annotations

import click

from passhat.cli.option_types import OneOf

# name: what it describes. Answers have the key "schema" with the value `passhat.NAME/1`; the output
# of commands that only look at a suite or a folder (list to cassettes) has none.
SCHEMAS = {
    "report": "report, history show, demo: --json",
    "matrix": "report --matrix --json",
    "comparison": "compare --json",
    "ranking": "rank, and compare of more than two: --json",
    "plan": "plan --json",
    "gate-plan": "plan --gate --json",
    "profile": "profile --json",
    "verdicts": "gate --json",
    "explanation": "why --json",
    "diff": "diff --json",
    "run": "run, resume, repeat: --json",
    "runs": "history list --json",
    "search": "history search --json",
    "trend": "trend --json",
    "flaky": "flaky --json",
    "list": "list --json",
    "validation": "validate --json",
    "dry-run": "run --dry-run --json",
    "cassettes": "cassette list --json",
    "events": "each line that run, resume and repeat write as .ndjson",
    "trials": "each line that simulate and convert write as .jsonl",
    "suite": "a suite file, such as passhat.yml",
}

OF_COMMANDS = {
    "compare": "comparison",
    "rank": "ranking",
    "gate": "verdicts",
    "why": "explanation",
    "demo": "report",
    "resume": "run",
    "repeat": "run",
    "history": "runs",
    "simulate": "trials",
    "convert": "trials",
    "validate": "validation",
    "cassette": "cassettes",
}
"""Commands whose answer has another name."""


@click.command()
@click.argument("name", type=OneOf([*SCHEMAS, *OF_COMMANDS]), required=False, metavar="[NAME]")
def schema(name: str | None) -> None:
    """Print the JSON Schema of what --json prints; without NAME, list the names.

    NAME is one of the list, or the command that prints it.

    \b
      passhat schema report
      passhat schema compare > comparison.schema.json
    """
    if name is not None:
        click.echo(schema_text(OF_COMMANDS.get(name, name)), nl=False)
        return
    for one, written in SCHEMAS.items():
        click.echo(f"{one:<12}{written}")


def schema_text(name: str) -> str:
    """The text of a schema, as it is shipped.

    >>> '"passhat.plan/1"' in schema_text("plan")
    True
    """
    from importlib.resources import files

    folder = files("passhat.suite") if name == "suite" else files("passhat.reporters") / "schemas"
    return folder.joinpath(f"{name}.schema.json").read_text(encoding="utf-8")
