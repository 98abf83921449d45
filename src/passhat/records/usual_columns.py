"""Columns under any usual names, made into columns of trials: one set of rules for all frames."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from passhat.errors import ArgumentError
from passhat.messages import listed, short
from passhat.records.column_names import ALIASES, ColumnMap, milliseconds, name_parts
from passhat.records.outcome_words import error_text, is_missing, number, parse_pass_if
from passhat.records.source import Facts
from passhat.records.table_meanings import (
    COUNTED,
    aggregate_column,
    find_conflict,
    find_meanings,
    letter_scores,
    name_cells,
    row_outcomes,
)

Columns = Mapping[str, Sequence[Any]]

# Whatever comes before, and at most as many digits as always fit in 64 bits.
_NUMBERED = re.compile(r"(|.*\D)(\d{1,18})")


def read_columns(
    argument: str, given: Columns, mapping: ColumnMap
) -> tuple[dict[str, Any], Facts, tuple[str, ...]]:
    """The columns of trials, which of the given ones they are, and notes on that.

    >>> table = {"sample_id": ["a", "a"], "status": ["pass", "fail"], "note": ["", ""]}
    >>> read_columns("frame", table, ColumnMap())[0]["task"]
    ['a', 'a']
    """
    _check_named(argument, given, mapping)
    found, notes = find_meanings(given, mapping, lambda column: given.get(column, ()))
    _check_enough(argument, given, found, mapping)
    columns = {
        meaning: typed_cells(meaning, column, name_cells(given, column, given.__getitem__))
        for meaning, column in found.items()
        if meaning != "passed"
    }
    if grades := letter_scores(found, given.__getitem__):
        columns["score"] = grades
    columns["outcome"] = _outcomes(argument, given, found, mapping, columns.get("score", ()))
    if "score" in columns:
        notes += _without_wide_scores(argument, columns, found, mapping)
    if "trial" in columns:
        systems = columns.get("system", [""] * len(columns["task"]))
        columns["trial"] = trial_numbers(columns["trial"], systems, columns["task"])
    if not mapping.pass_if and "passed" not in found and "score" in found:
        notes += (score_passes_note(found["score"]),)
    facts = tuple((meaning, f'column "{short(column)}"') for meaning, column in found.items())
    return _filled(columns), facts, tuple(notes)


def score_passes_note(column: str) -> str:
    """What to know about a table that has scores and no column that says pass or fail."""
    name = short(column)
    return (
        f'no column says pass or fail: only a "{name}" of 1 passes. Say what passes with '
        f"`pass_if`, such as '{name}>=0.8'"
    )


def typed_cells(meaning: str, column: str, cells: Sequence[Any]) -> list[Any]:
    """Cells as values of their meaning; numbers are checked later, with all others."""
    if meaning == "error":
        return [error_text(cell) for cell in cells]
    if meaning in ("tags", "tools"):
        split = column.lower() in ("tags", "tools")
        return [_words(cell, split) for cell in cells]
    if meaning in ("level", "started", "family"):
        return [None if is_missing(cell) else str(cell) for cell in cells]
    if meaning == "seconds" and milliseconds(column):
        return [_thousandth(cell) for cell in cells]
    if meaning in COUNTED:
        return [len(cell) if isinstance(cell, list) else cell for cell in cells]
    return list(cells)


def trial_numbers(values: Sequence[Any], systems: Sequence[Any], tasks: Sequence[Any]) -> list[Any]:
    """Trial numbers: whole numbers as they are, "run-3" as 3, other names in order of coming.

    >>> trial_numbers(["run-1", "run-2"], ["s", "s"], ["a", "a"])
    [1, 2]
    """
    if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        return list(values)
    if any(is_missing(value) for value in values):
        return list(values)  # to be refused with the row
    texts = [str(int(v)) if isinstance(v, float) and v.is_integer() else str(v) for v in values]
    parts = [_NUMBERED.fullmatch(text.strip()) for text in texts]
    if all(parts) and len({part[1] for part in parts if part}) <= 1:
        return [int(part[2]) for part in parts if part]
    index: dict[tuple[Any, Any], dict[str, int]] = {}
    numbers = []
    for system, task, text in zip(systems, tasks, texts, strict=True):
        known = index.setdefault((str(system), str(task)), {})
        numbers.append(known.setdefault(text, len(known)))
    return numbers


def _check_named(argument: str, given: Columns, mapping: ColumnMap) -> None:
    for column in _chosen_columns(given, mapping):
        if column not in given:
            raise ArgumentError(argument, f"must have the column {column}", sorted(given))


def _chosen_columns(given: Columns, mapping: ColumnMap) -> Iterator[str]:
    for meaning, column in mapping.chosen().items():
        yield from name_parts(given, column) if meaning in ("task", "system") else [column]


def _check_enough(
    argument: str, given: Columns, found: Mapping[str, str], mapping: ColumnMap
) -> None:
    has_verdict = {"passed", "score"} & set(found) or mapping.pass_if
    if "task" not in found or not has_verdict:
        usual = f"task ({listed(ALIASES['task'][1:], 3)}), passed ({listed(ALIASES['passed'], 3)})"
        rule = f"must have columns for {usual} or score; name yours as in task='case', passed='ok'"
        raise ArgumentError(argument, rule, sorted(given))
    column = aggregate_column(given, found, mapping, given.__getitem__)
    if column is not None:
        rule = f"must have a row for each run, but its column {column} counts or averages runs"
        raise ArgumentError(argument, rule, sorted(given))


def _outcomes(
    argument: str,
    given: Columns,
    found: Mapping[str, str],
    mapping: ColumnMap,
    scores: Sequence[Any],
) -> list[Any]:
    tests = parse_pass_if(mapping.pass_if) if mapping.pass_if else ()
    for test in tests:
        if found.get(test.column, test.column) not in given:
            raise ArgumentError("pass_if", f"must use columns of the {argument}", test.column)
    if not tests and not mapping.passed:
        conflict = find_conflict(given, found, given.__getitem__)
        if conflict is not None:
            one, two = conflict.columns
            rule = f"must not say both: {one} and {two} disagree in row {conflict.row}; name one"
            raise ArgumentError("passed", rule, conflict.cells)
    outcomes = row_outcomes(tests, found, given.__getitem__, scores)
    if None in outcomes:
        raise _no_outcome(given, found, mapping, outcomes.index(None))
    return outcomes


def _no_outcome(
    given: Columns, found: Mapping[str, str], mapping: ColumnMap, row: int
) -> ArgumentError:
    column = found.get("passed") or found.get("score", "")
    if mapping.pass_if:
        rule = f"must be a comparison that holds or not, and row {row} has nothing to compare"
        return ArgumentError("pass_if", rule, mapping.pass_if)
    rule = f"must say how each trial ended, or error what broke it, and row {row} does not"
    return ArgumentError(column, rule, given[column][row])


def _without_wide_scores(
    argument: str, columns: dict[str, Any], found: Mapping[str, str], mapping: ColumnMap
) -> list[str]:
    """Leave out scores beyond [0, 1] where a verdict or the user's comparison decides."""
    if "passed" not in found and not mapping.pass_if:
        return []
    for score in columns["score"]:
        try:
            value = number(score)
        except ValueError:  # refused with all other numbers
            return []
        if value < 0 or value > 1:
            columns.pop("score")
            return [f"scores reach beyond [0, 1] ({value:g}): left out, the verdicts decide"]
    return []


def _filled(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out optional columns in which every value is missing."""
    needed = ("task", "outcome", "system", "trial")
    return {
        name: values
        for name, values in columns.items()
        if name in needed or any(value != () and not is_missing(value) for value in values)
    }


def _thousandth(cell: Any) -> Any:
    try:
        return number(cell) / 1000
    except ValueError:
        return cell


def _words(cell: Any, split: bool) -> tuple[str, ...]:
    if not isinstance(cell, (list, tuple, Mapping)) and is_missing(cell):
        return ()
    if isinstance(cell, str) and cell.startswith("["):
        cell = _decoded(cell)
    if isinstance(cell, (list, tuple, Mapping)):  # of an object, such as calls by tool, its keys
        words = [str(word) for word in cell if word is not None]
        return tuple(word for word in words if word.strip())
    words = re.split("[,;|]", str(cell)) if split else [str(cell)]
    return tuple(word.strip() for word in words if word.strip())


def _decoded(text: str) -> Any:
    """A list of texts in JSON; anything else as the only entry of one."""
    import json

    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return [text]
    plain = isinstance(found, list) and all(isinstance(word, str) for word in found)
    return found if plain else [text]
