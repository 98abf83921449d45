"""The runs of the history store as a list, the newest first."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict

from passhat.messages import plural
from passhat.reporters.answer_kind import AnswerKind, DisplayOptions, Records
from passhat.reporters.blocks import Block, Headline, NextStep, Steps, Table
from passhat.reporters.numbers import percent
from passhat.reporters.safe_text import display_width, safe_text, shorten

HEADER: tuple[str, ...] = ("run", "started", "suite", "commit", "trials", "pass^1", "status")
SUITE, STATUS = HEADER.index("suite"), HEADER.index("status")

MOST_SYSTEMS = 5
"""Systems that are listed below a run."""

SCHEMA: Literal["passhat.runs/1"] = "passhat.runs/1"


class Row(TypedDict):
    """One run that was kept, and what its trials came to.

    `status` is running, finished, interrupted, budget, failed, or stopped where the process died;
    `owner` is the process that has a running run. `passed` counts trials; `pass_rate` is pass^1,
    the mean over the tasks of each system, and `pass_rates` that of each system by name.
    """

    run: str
    suite: str
    status: str
    owner: str | None
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
    pass_rates: dict[str, float]


class RunsObject(TypedDict):
    """The runs of a history store, the newest first."""

    schema: Literal["passhat.runs/1"]
    runs: list[Row]


@dataclass(frozen=True, slots=True)
class RunList:
    """Runs that were kept, the newest first; `resume` continues the newest unfinished one."""

    runs: tuple[Row, ...]
    resume: str | None = None


def run_list_blocks(found: RunList, options: DisplayOptions) -> list[Block]:
    """One row a run, the newest first."""
    if not found.runs:
        return [Headline("No runs yet: `passhat run` or `passhat history add` keeps one.")]
    rows = [cells for row in found.runs for cells in (_cells(row), *_system_cells(row))]
    if options.ink is not None:
        rows = _fitted(rows, options.ink.width)
    blocks: list[Block] = [Table(header=HEADER, rows=tuple(rows), left=(0, 1, 2, 3, 6))]
    if found.resume is not None:
        step = NextStep("Resume the newest unfinished run", found.resume)
        blocks.append(Steps("Next", (step,)))
    return blocks


def _fitted(rows: Sequence[tuple[str, ...]], width: int) -> list[tuple[str, ...]]:
    """The rows in so many columns: without the year, then with shorter suites and statuses."""
    if _full_width(rows) > width:
        # Of what people look for in a list of the newest runs, the year is the least.
        rows = [(row[0], row[1].partition("-")[2], *row[2:]) for row in rows]
    for column, least in ((SUITE, 8), (STATUS, 11)):
        room = max(least, _width_of(rows, column) - max(0, _full_width(rows) - width))
        rows = [(*r[:column], shorten(r[column], room), *r[column + 1 :]) for r in rows]
    return list(rows)


def _full_width(rows: Sequence[tuple[str, ...]]) -> int:
    return 2 * len(HEADER) + sum(_width_of(rows, i) for i in range(len(HEADER)))


def _width_of(rows: Sequence[tuple[str, ...]], column: int) -> int:
    return max(map(display_width, (HEADER[column], *(row[column] for row in rows))))


def _cells(row: Row) -> tuple[str, ...]:
    several = len(row["pass_rates"]) > 1  # their rows follow
    rate = "" if several else percent(row["pass_rate"], digits=1)
    commit = (row["commit"] or "-")[:7] + ("*" if row["dirty"] else "")
    status = ", ".join([_status(row), *row["tags"]])
    started = str(row["started"])[:16].replace("T", " ")
    found = (row["run"], started, row["suite"], commit, f"{row['trials']:,}", rate, status)
    return tuple(safe_text(cell) for cell in found)


def _system_cells(row: Row) -> list[tuple[str, ...]]:
    """A row for each of several systems below that of their run, the least reliable first."""
    rates = sorted(row["pass_rates"].items(), key=lambda one: one[1])
    if len(rates) < 2:
        return []
    shown = [
        ("", "", f"  {safe_text(name)}", "", "", percent(rate, digits=1), "")
        for name, rate in rates[:MOST_SYSTEMS]
    ]
    more = len(rates) - len(shown)
    return [*shown, *([("", "", f"  {more:,} more", "", "", "", "")] if more else [])]


def _status(row: Row) -> str:
    if row["status"] == "stopped":
        return "stopped, can be resumed"
    return f"{row['status']} ({row['owner']})" if row["owner"] else row["status"]


def _data(found: RunList) -> RunsObject:
    return {"schema": SCHEMA, "runs": list(found.runs)}


def _rows(found: RunList) -> Records:
    return [
        {**row, "tags": " ".join(row["tags"]), "pass_rates": json.dumps(row["pass_rates"])}
        for row in found.runs
    ]


KIND = AnswerKind(
    name="run list",
    blocks=run_list_blocks,
    data=_data,
    rows=_rows,
    title=lambda found: plural(len(found.runs), "run"),
)
