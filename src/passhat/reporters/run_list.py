"""The runs of the history store as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict

from passhat.reporters.ink import Ink
from passhat.reporters.json_report import to_json
from passhat.reporters.numbers import points
from passhat.reporters.safe_text import display_width, pad, safe_text

_HEADER: tuple[str, ...] = ("run", "started", "suite", "commit", "trials", "pass^1", "status")
_GAPS = 2 * (len(_HEADER) - 1)
_SHORTEST_SUITE, _SHORTEST_STATUS = 8, 11

SCHEMA: Literal["passhat.runs/1"] = "passhat.runs/1"


class Row(TypedDict):
    """One run that was kept, and what its trials came to.

    `passed` counts trials; `pass_rate` is pass^1, the mean over the tasks of each system.
    """

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
    pass_rate: float | None


class RunsObject(TypedDict):
    """The runs of a history store, the newest first."""

    schema: Literal["passhat.runs/1"]
    runs: list[Row]


def render_terminal(rows: Sequence[Row], ink: Ink | None = None) -> str:
    """One line a run, the newest first."""
    ink = ink or Ink()
    if not rows:
        return ink.finish(["No runs yet: `passhat run` or `passhat history add` keeps one."])
    cells = [_HEADER, *(_cells(row) for row in rows)]
    if sum(_widths(cells)) + _GAPS > ink.width:
        # Of what people look for in a list of the newest runs, the year is the least.
        cells = [(row[0], row[1].partition("-")[2] or row[1], *row[2:]) for row in cells]
    widths = _widths(cells)
    others = sum(widths) - widths[2] - widths[-1] + _GAPS
    widths[2] = min(widths[2], max(_SHORTEST_SUITE, ink.width - others - widths[-1]))
    widths[-1] = max(_SHORTEST_STATUS, ink.width - others - widths[2])
    head, *lines = (_line(row, widths) for row in cells)
    return ink.finish([ink.style(head, "dim"), *lines])


def render_json(rows: Sequence[Row]) -> str:
    """Schema "passhat.runs/1"."""
    found: RunsObject = {"schema": SCHEMA, "runs": list(rows)}
    return to_json(found)


def _widths(cells: Sequence[tuple[str, ...]]) -> list[int]:
    return [max(map(display_width, column)) for column in zip(*cells, strict=True)]


def _cells(row: Row) -> tuple[str, ...]:
    rate = "-" if row["pass_rate"] is None else points(row["pass_rate"], digits=1) + " %"
    commit = (row["commit"] or "-")[:9] + ("*" if row["dirty"] else "")
    status = ", ".join([row["status"], *row["tags"]])
    started = str(row["started"])[:16].replace("T", " ")
    found = (row["run"], started, row["suite"], commit, str(row["trials"]), rate, status)
    return tuple(safe_text(cell) for cell in found)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    run, started, suite, commit, trials, rate, status = map(pad, cells, widths)
    counts = f"{trials.strip():>{widths[4]}}  {rate.strip():>{widths[5]}}"
    return f"{run}  {started}  {suite}  {commit}  {counts}  {status}".rstrip()
