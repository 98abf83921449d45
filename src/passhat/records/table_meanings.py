"""What the columns of a table mean, by their names and by what is in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from passhat.records.column_names import ColumnMap, find_columns, usual_name
from passhat.records.outcome_words import is_missing, number
from passhat.short_names import short

Cells = Callable[[str], Sequence[Any]]

LONGEST_AGENT = 120
MOST_WORDS = 6
"""The name of an agent is no longer; what is longer is a system prompt."""

COUNTS = frozenset(
    ("num_trials", "n_trials", "trials", "num_runs", "n_runs", "num_attempts", "n_attempts")
)
RATES = frozenset(("pass_rate", "success_rate", "passrate", "pass_at_1", "pass@1"))
"""Columns of tables that hold one row for all runs of a task."""


def find_meanings(
    names: Iterable[str], mapping: ColumnMap, cells: Cells
) -> tuple[dict[str, str], list[str]]:
    """Which column holds what, and a note on a column that only seems to name the agent.

    >>> table = {"task": ["a"], "system": ["You are a helpful assistant. Be brief."], "ok": [1]}
    >>> find_meanings(table, ColumnMap(passed="ok"), table.__getitem__)[0]
    {'passed': 'ok', 'task': 'task'}
    """
    names = list(names)
    notes: list[str] = []
    while True:
        found = find_columns(names, mapping)
        column = found.get("system")
        if column is None or mapping.system or not holds_prompts(cells(column)):
            return found, notes
        names.remove(column)
        notes.append(
            f'column "{short(column)}" holds prompts, not the name of an agent, and was left out '
            f"(--system {short(column)} takes it all the same)"
        )


def holds_prompts(cells: Iterable[Any]) -> bool:
    """Whether a column holds texts that are too long to be an agent's name.

    >>> holds_prompts(["gpt-5 (react, high)"]), holds_prompts(["You answer in one word only."])
    (False, True)
    """
    try:
        distinct: Iterable[Any] = dict.fromkeys(cells)
    except TypeError:  # lists of messages
        return True
    return any(isinstance(cell, str) and _is_prompt(cell) for cell in distinct)


# Asked of every file of a folder, and most have the same columns.
@lru_cache(maxsize=64)
def may_aggregate(columns: tuple[str, ...]) -> bool:
    """Whether a column is called like a count or a rate of runs."""
    return any(usual_name(column) in COUNTS or usual_name(column) in RATES for column in columns)


def aggregate_column(
    columns: Iterable[str], found: Mapping[str, str], mapping: ColumnMap, cells: Cells
) -> str | None:
    """The column that gives away a table with one row for all runs of a task; None where none."""
    if "trial" in found or mapping.chosen() or mapping.pass_if:
        return None
    for column in columns:
        usual = usual_name(column)
        if usual in COUNTS and any(_number(cell) > 1 for cell in cells(column)):
            return column
        if usual in RATES and any(0 < _number(cell) < 1 for cell in cells(column)):
            return column
    return None


def _is_prompt(text: str) -> bool:
    text = text.strip()
    return "\n" in text or len(text) > LONGEST_AGENT or len(text.split()) >= MOST_WORDS


def _number(cell: Any) -> float:
    try:
        return 0.0 if is_missing(cell) else number(cell)
    except ValueError:
        return 0.0
