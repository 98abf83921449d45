"""The runs of the history store as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict

from passhat.reporters.ink import Ink
from passhat.reporters.json_report import to_json
from passhat.reporters.numbers import points
from passhat.reporters.safe_text import pad, safe_text

SCHEMA: Literal["passhat.runs/1"] = "passhat.runs/1"


class Row(TypedDict):
    """One run that was kept, and what its trials came to."""

    run: str
    suite: str
    status: str
    started: str
    commit: str | None
    branch: str | None
    dirty: bool | None
    tags: list[str]
    systems: int
    tasks: int
    trials: int
    passed: int
    errored: int


class RunsObject(TypedDict):
    """The runs of a history store, the newest first."""

    schema: Literal["passhat.runs/1"]
    runs: list[Row]


def render_terminal(rows: Sequence[Row], ink: Ink | None = None) -> str:
    """One line a run, the newest first."""
    ink = ink or Ink()
    if not rows:
        return ink.finish(["No runs yet: `passhat run` or `passhat history add` keeps one."])
    room = max(14, ink.width - 66)
    head = f"{'run':<10}{'started':<18}{pad('suite', room)}{'commit':<12}{'trials':>8}{'passed':>8}"
    lines = [ink.style(f"{head}  status", "dim")]
    return ink.finish(lines + [_line(row, room) for row in rows])


def render_json(rows: Sequence[Row]) -> str:
    """Schema "passhat.runs/1"."""
    found: RunsObject = {"schema": SCHEMA, "runs": list(rows)}
    return to_json(found)


def _line(row: Row, room: int) -> str:
    passed = points(row["passed"] / row["trials"]) + " %" if row["trials"] else "-"
    commit = (row["commit"] or "-")[:9] + ("*" if row["dirty"] else "")
    status = safe_text(", ".join([row["status"], *row["tags"]]))
    started = str(row["started"])[:16].replace("T", " ")
    return (
        f"{row['run']:<10}{started:<18}{pad(row['suite'], room - 1)} {safe_text(commit):<12}"
        f"{row['trials']:>8}{passed:>8}  {status}"
    )
