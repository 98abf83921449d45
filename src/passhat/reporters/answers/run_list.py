"""The runs of the history store as a list, the newest first."""

from __future__ import annotations

import json
from typing import Literal, TypedDict

from passhat.messages import plural, short_commit
from passhat.records.ledger import Row, RunList
from passhat.reporters.answer_kind import AnswerKind, DisplayOptions, Records
from passhat.reporters.blocks import Block, Headline, NextStep, Steps, Table
from passhat.reporters.numbers import percent
from passhat.reporters.safe_text import safe_text

HEADER = ("run", "started", "suite", "commit", "branch", "trials", "pass^1", "status")
LEFT = ("run", "started", "suite", "commit", "branch", "status")
SUITE, BRANCH, STATUS = map(HEADER.index, ("suite", "branch", "status"))

WIDE = 100
"""Columns of a terminal from which on dates have their year."""

MOST_SYSTEMS = 5
"""Systems that are listed below a run."""

SCHEMA: Literal["passhat.runs/1"] = "passhat.runs/1"


class RunsObject(TypedDict):
    """The runs of a history store, the newest first."""

    schema: Literal["passhat.runs/1"]
    runs: list[Row]


def run_list_blocks(found: RunList, options: DisplayOptions) -> list[Block]:
    """One row a run, the newest first."""
    if not found.runs:
        return [Headline("No runs yet: `passhat run` or `passhat history add` keeps one.")]
    start = 0 if options.ink is None or options.ink.width >= WIDE else len("2026-")
    rows = [cells for row in found.runs for cells in (_cells(row, start), *_system_cells(row))]
    blocks: list[Block] = [
        Table(
            header=HEADER,
            rows=tuple(rows),
            left=tuple(map(HEADER.index, LEFT)),
            spare=(BRANCH,),
            cut=((SUITE, 8), (STATUS, len("finished, baseline"))),
        )
    ]
    if found.resume is not None:
        step = NextStep("Resume the newest unfinished run", found.resume)
        blocks.append(Steps("Next", (step,)))
    return blocks


def _cells(row: Row, start: int) -> tuple[str, ...]:
    """The cells of a run; its date begins at `start`: the year is what readers need least."""
    several = len(row["pass_rates"]) > 1  # their rows follow
    rate = "" if several else percent(row["pass_rate"], digits=1)
    commit = (short_commit(row["commit"]) or "-") + ("*" if row["dirty"] else "")
    status = ", ".join([_status(row), *row["tags"]])
    started, trials = row["started"][start:16].replace("T", " "), f"{row['trials']:,}"
    found = (row["run"], started, row["suite"], commit, row["branch"] or "", trials, rate, status)
    return tuple(safe_text(cell) for cell in found)


def _system_cells(row: Row) -> list[tuple[str, ...]]:
    """A row for each of several systems below that of their run, the least reliable first."""
    rates = sorted(row["pass_rates"].items(), key=lambda one: one[1])
    if len(rates) < 2:
        return []
    shown = [
        ("", "", f"  {safe_text(name)}", "", "", "", percent(rate, digits=1), "")
        for name, rate in rates[:MOST_SYSTEMS]
    ]
    more = len(rates) - len(shown)
    return [*shown, *([("", "", f"  {more:,} more", *[""] * 5)] if more else [])]


def _status(row: Row) -> str:
    if row["status"] == "stopped":
        return "stopped, can be resumed"
    return f"{row['status']} ({row['owner']})" if row["owner"] else row["status"]


def _rows(found: RunList) -> Records:
    return [
        {**row, "tags": " ".join(row["tags"]), "pass_rates": json.dumps(row["pass_rates"])}
        for row in found.runs
    ]


KIND = AnswerKind(
    name="run list",
    blocks=run_list_blocks,
    data=lambda found: RunsObject(schema=SCHEMA, runs=list(found.runs)),
    rows=_rows,
    title=lambda found: plural(len(found.runs), "run"),
)
