"""Rows of JSON that list the runs of a task: each run becomes a row of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from passhat.records.columns import COUNTS, RATES, USUAL, VERDICTS, find_columns, usual_name

RawRow = Mapping[str, msgspec.Raw]

LISTS = ("trials", "runs", "attempts", "repetitions", "rollouts", "episodes")
"""What a list of the runs of one task is called."""


def list_of_runs(row: RawRow) -> str | None:
    """The key under which a row lists runs, each with a verdict or a score; None if it does not.

    >>> list_of_runs({"id": msgspec.Raw(b'"a"'), "trials": msgspec.Raw(b'[{"pass": true}]')})
    'trials'
    """
    for key in (name for name in row if usual_name(name) in LISTS):
        runs = _runs(row[key])
        if runs and not find_columns(runs[0], USUAL).keys().isdisjoint(VERDICTS):
            return key
    return None


def rows_of_runs(row: RawRow, key: str) -> Iterator[RawRow]:
    """A row for each run; what the outer row sums up of them is left out.

    Its "id" is the task if nothing else is.
    """
    found = find_columns((name for name in row if name != key), USUAL)
    summed = {found.get(meaning) for meaning in VERDICTS}
    outer = {
        name: value
        for name, value in row.items()
        if name != key and name not in summed and usual_name(name) not in COUNTS | RATES
    }
    if "task" not in found and "id" in outer:
        outer["task"] = outer.pop("id")
    for run in _runs(row.get(key)):
        yield {**outer, **{name: value for name, value in run.items() if name != found.get("task")}}


def _runs(raw: msgspec.Raw | None) -> list[dict[str, msgspec.Raw]]:
    """The runs in a list of objects; none in anything else."""
    if raw is None:
        return []
    try:
        return msgspec.json.decode(raw, type=list[dict[str, msgspec.Raw]])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return []
