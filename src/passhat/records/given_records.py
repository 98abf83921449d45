"""Trial objects and dicts, as columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from passhat.errors import ArgumentError
from passhat.messages import closest
from passhat.records.column_names import ALIASES, find_columns, usual_name
from passhat.records.frames import column_map, columns_of_table, refuse_frame
from passhat.records.source import Source
from passhat.records.trial import Trial

_FIELDS = tuple(field.name for field in fields(Trial))
_NAMES = frozenset((*_FIELDS, "passed", *(name for names in ALIASES.values() for name in names)))


def columns_of_records(
    records: Iterable[Trial | Mapping[str, Any]], renamed: Mapping[str, str | None]
) -> tuple[dict[str, Any], Source | None]:
    """The columns of trials in objects or dicts, and how they were found in dicts."""
    refuse_frame("records", "must be Trial objects or dicts", records)
    rows: list[Any] = list(records)
    for row in rows:
        if not isinstance(row, Trial | Mapping):
            raise ArgumentError("records", "must be Trial objects or dicts", row)
    if not rows:
        return {"task": [], "outcome": []}, None
    if all(isinstance(row, Trial) for row in rows):
        return _of_trials(rows), None
    names = dict.fromkeys(name for row in rows for name in _keys(row))
    _check_keys(names, renamed)
    given = {str(name): [_get(row, name) for row in rows] for name in names}
    return columns_of_table("records", "records", given, renamed)


def _of_trials(rows: list[Trial]) -> dict[str, Any]:
    columns = {name: [getattr(row, name) for row in rows] for name in _FIELDS}
    return {
        name: values
        for name, values in columns.items()
        if any(value is not None and value != () for value in values)
    }


def _check_keys(names: Iterable[str], renamed: Mapping[str, str | None]) -> None:
    """Refuse keys that mean nothing: a slip of the pen would lose what it names."""
    known = find_columns(names, column_map(renamed)).values()
    for name in names:
        if name not in known and usual_name(str(name)) not in _NAMES:
            near = closest(str(name), _NAMES)
            hint = f" (did you mean {near}?)" if near else ""
            rule = f"have only keys that trials or files have{hint}; leave others out"
            raise ArgumentError("records", rule, name)


def _keys(row: Trial | Mapping[str, Any]) -> Iterable[str]:
    return row if isinstance(row, Mapping) else _FIELDS


def _get(row: Trial | Mapping[str, Any], name: str) -> Any:
    return row.get(name) if isinstance(row, Mapping) else getattr(row, name, None)
