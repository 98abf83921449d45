"""The queries on a big table: its counts by system, task and outcome as written, and duplicates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from passhat.dataclass import dataclass
from passhat.errors import ReadError
from passhat.ingest.query_engines import VIEW, Engine, quoted
from passhat.ingest.repeated_tests import numbered_note, without_numbers
from passhat.ingest.table_faults import aggregates, conflicting
from passhat.messages import listed
from passhat.records import FEATURES, Labels
from passhat.records.columns import (
    ALIASES,
    LETTER_GRADES,
    NO_ERROR,
    ColumnMap,
    find_conflict,
    find_meanings,
    is_weak,
    leave_out,
    letter_grades,
    milliseconds,
    name_parts,
    parse_pass_if,
    usual_name,
    verdict_columns,
)

_LOOKED_AT = 200
"""This many rows show whether a column names agents."""

MOST_NUMBERS = 1_000_000
"""Runs of a task up to which expected fingerprints are computed: they take 8 bytes each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupQuery:
    """The columns of a query, and the SQL of its outcome and score."""

    path: Path
    found: Mapping[str, str]
    outcome: str
    by_word: bool
    summed: bool
    features: tuple[str, ...]
    score: str | None = None
    notes: tuple[str, ...] = ()


def plan_query(path: Path, engine: Engine, mapping: ColumnMap) -> GroupQuery | None:
    """The query for a table; None if it must be read row by row."""
    columns = engine.columns
    found, notes = find_meanings(
        columns,
        mapping,
        lambda column: _some_cells(engine, column),
        lambda column, within: _rows_differ(engine, column, within),
    )
    if fault := aggregates(
        str(path), columns, found, mapping, lambda column: _telling_cells(engine, column)
    ):
        raise fault
    score = _score_sql(engine, found)
    outcome, by_word = _outcome_sql(columns, found, mapping, score)
    parts = [part for column in found.values() for part in name_parts(columns, column)]
    simple = all(part in columns for part in parts)
    if outcome is None or "task" not in found or not simple:
        return None
    features = tuple(name for name in FEATURES if name in found)
    for name in (*features, *(["score"] if score is None else [])):
        if name in found and columns[found[name]] not in ("number", "boolean"):
            raise ReadError(
                f'{path}, column "{found[name]}": must hold numbers for {name}, and in a table of '
                f"this size without marks such as $ or %; or {leave_out(name)}"
            )
    if not mapping.pass_if and not mapping.passed:
        _check_conflicts(path, engine, found)
    # If nothing else is summed by outcome, adding up 0 and 1 is faster than grouping by them;
    # as doubles, which is exact far beyond any number of rows, it is faster still.
    alone = by_word and not features and not {"score", "error"} & set(found)
    return GroupQuery(
        path=path,
        found=found,
        outcome=outcome,
        by_word=by_word,
        summed=alone and engine.zero_or_one(found["passed"]),
        features=features,
        score=score,
        notes=tuple(notes),
    )


def _rows_differ(engine: Engine, column: str, within: Sequence[str]) -> bool:
    """Whether some rows that agree in all columns `within` differ in a column."""
    if not engine.columns.keys() >= {column, *within}:
        return False
    name, keys = quoted(column), ", ".join(map(quoted, within))
    ends = f"MIN({name}) AS low, MAX({name}) AS high"
    groups = engine.query(f"SELECT {keys}, {ends} FROM {VIEW} GROUP BY {keys}")  # noqa: S608 # names are quoted
    return any(low != high for low, high in zip(groups["low"], groups["high"], strict=True))


def _some_cells(engine: Engine, column: str) -> list[Any]:
    """Cells of a column by which its meaning is found: different ones where those are tasks."""
    return _first_cells(engine, column, distinct=usual_name(column) in ALIASES["task"])


def _first_cells(engine: Engine, column: str, *, distinct: bool = False) -> list[Any]:
    """Some cells of a column: enough to tell names from prompts."""
    if column not in engine.columns:
        return []
    asked = f"{'DISTINCT ' if distinct else ''}{quoted(column)}"
    return engine.query(f"SELECT {asked} AS c FROM {VIEW} LIMIT {_LOOKED_AT}")["c"]  # noqa: S608 # the name is quoted


def _check_conflicts(path: Path, engine: Engine, found: Mapping[str, str]) -> None:
    """Refuse a table of which two columns disagree on what passed."""
    columns = [name for name in verdict_columns(engine.columns) if not is_weak(name)]
    if "passed" not in found or found["passed"] not in columns or len(columns) == 1:
        return
    asked = ", ".join(f"{quoted(column)} AS c{place}" for place, column in enumerate(columns))
    grouped = ", ".join(f"c{place}" for place in range(len(columns)))
    inner = f"SELECT {asked} FROM {VIEW}"  # noqa: S608 # names are quoted
    groups = engine.query(f"SELECT {grouped} FROM ({inner}) AS picked GROUP BY {grouped}")  # noqa: S608 # as above
    cells = {column: groups[f"c{place}"] for place, column in enumerate(columns)}
    if conflict := find_conflict(columns, found, cells.__getitem__):
        raise conflicting(str(path), conflict)


def render_query(engine: Engine, plan: GroupQuery) -> str:
    """SQL for counts and sums by system, task, outcome as written, and whether it broke.

    A plan that is `summed` has the passes in a column instead of a row for each outcome.

    Scores and features are summed by outcome anyway, and grouping by the outcome as it is written
    leaves its meaning to the same table of words that small files are read by.
    """
    names = {"system": "s", "task": "t"}
    picks = [
        f"{name_sql(engine, plan.found[name])} AS {short}"
        for name, short in names.items()
        if name in plan.found
    ]
    picks.append(f"{plan.outcome} AS {'passed' if plan.summed else 'o'}")
    if "error" in plan.found:
        picks.append(f"{_error_sql(engine, plan)} AS e")
    sums = ["COUNT(*) AS n", *(["SUM(CAST(passed AS DOUBLE)) AS passes"] if plan.summed else [])]
    if whole_trials(engine, plan):
        picks.append(f"{quoted(plan.found['trial'])} AS i")
        sums.append(f"{engine.fingerprint('i')} AS fingerprint")
    values = {name: quoted(plan.found[name]) for name in plan.features}
    for name, value in (values | ({"score": plan.score} if plan.score else {})).items():
        scale = " / 1000" if name == "seconds" and milliseconds(plan.found[name]) else ""
        picks.append(f"CAST({value} AS DOUBLE){scale} AS {name}")
        sums += [
            f"COUNT({name}) AS {name}_count",
            f"SUM({name}) AS {name}_total",
            f"SUM({name} * {name}) AS {name}_squares",
        ]
    if plan.score:
        sums += ["MIN(score) AS score_low", "MAX(score) AS score_high"]
    keys = [pick.rpartition(" AS ")[2] for pick in picks if pick.endswith((" s", " t", " o", " e"))]
    header = ' WHERE "schema" IS NULL' if "schema" in engine.columns else ""
    inner = f"SELECT {', '.join(picks)} FROM {VIEW}{header}"  # noqa: S608 # names are quoted
    asked, grouped = ", ".join([*keys, *sums]), ", ".join(keys)
    return f"SELECT {asked} FROM ({inner}) AS picked GROUP BY {grouped}"  # noqa: S608 # as above


def whole_trials(engine: Engine, plan: GroupQuery) -> bool:
    """Whether trials are given by number."""
    return "trial" in plan.found and engine.columns[plan.found["trial"]] == "number"


def name_sql(engine: Engine, column: str) -> str:
    """The names in a column, or in several that commas join, as SQL."""
    parts = name_parts(engine.columns, column)
    if len(parts) == 1:
        return quoted(parts[0])
    return f"CONCAT_WS('/', {', '.join(f'CAST({quoted(part)} AS VARCHAR)' for part in parts)})"


def understand_groups(
    plan: GroupQuery, groups: Mapping[str, list[Any]], mapping: ColumnMap
) -> tuple[GroupQuery, Mapping[str, list[Any]]]:
    """The groups as rows of a small table are understood: letters as scores, numbered names."""
    groups = _with_letter_scores(plan, groups)
    tasks = groups["t"]
    numbered = not mapping.task and "trial" not in plan.found and "," not in plan.found["task"]
    numbered = numbered and all(isinstance(task, str) for task in tasks)
    bases = without_numbers(tasks) if numbered else None
    if bases is None:
        return plan, groups
    note = numbered_note(plan.found["task"])
    return replace(plan, notes=(*plan.notes, note)), {**groups, "t": bases}


def _with_letter_scores(
    plan: GroupQuery, groups: Mapping[str, list[Any]]
) -> Mapping[str, list[Any]]:
    """The scores of Inspect's letter grades, where those are the verdicts."""
    by_letter = plan.by_word and not plan.summed and not plan.score
    grades = letter_grades(groups["o"]) if by_letter else None
    if grades is None:
        return groups
    pairs = list(zip(groups["n"], grades, strict=True))
    return {
        **groups,
        "score_count": [0 if grade is None else n for n, grade in pairs],
        "score_total": [n * (grade or 0.0) for n, grade in pairs],
        "score_squares": [n * (grade or 0.0) ** 2 for n, grade in pairs],
    }


def check_counted_duplicates(
    engine: Engine, plan: GroupQuery, groups: Mapping[str, list[Any]], names: tuple[Labels, Labels]
) -> None:
    """Refuse a table in which a system and task have a trial twice; `groups` are its counts."""
    if whole_trials(engine, plan) and _numbered_on(engine, groups, names):
        return
    # With gaps, or names instead of numbers, every trial must be looked at.
    given = [plan.found[name] for name in ("system", "task", "trial") if name in plan.found]
    keys = [quoted(part) for column in given for part in name_parts(engine.columns, column)]
    listing = ", ".join(keys)
    twice = engine.query(
        f"SELECT {listing}, COUNT(*) AS n FROM {VIEW} GROUP BY {listing} "  # noqa: S608 # as above
        f"HAVING COUNT(*) > 1 ORDER BY {listing} LIMIT 6"
    )
    if not twice["n"]:
        return
    shown = [" / ".join(map(str, key)) for key in zip(*list(twice.values())[:-1], strict=True)]
    raise ReadError(
        f"{plan.path}: trials occur more than once: {listed(shown, 5)}. Pass "
        "`duplicates='keep'` if they are different runs"
    )


def _score_sql(engine: Engine, found: Mapping[str, str]) -> str | None:
    """A score as SQL: a number, or the score of an Inspect letter grade; else None."""
    if "score" not in found or found["score"] not in engine.columns:
        return None
    column = quoted(found["score"])
    if engine.columns[found["score"]] in ("number", "boolean"):
        return column
    words = engine.query(f"SELECT DISTINCT {column} AS c FROM {VIEW} LIMIT {_LOOKED_AT}")["c"]  # noqa: S608 # the name is quoted
    if letter_grades(words) is None:
        return None
    cases = " ".join(f"WHEN {_literal(word)} THEN {value}" for word, value in LETTER_GRADES.items())
    return f"CASE LOWER(TRIM({column})) {cases} END"


def _telling_cells(engine: Engine, column: str) -> list[Any]:
    """The largest cell of a column of numbers and one between 0 and 1; else the first ones."""
    if engine.columns.get(column) != "number":
        return _first_cells(engine, column)
    name = quoted(column)
    part = f"MIN(CASE WHEN {name} > 0 AND {name} < 1 THEN {name} END)"
    found = engine.query(f"SELECT MAX({name}) AS high, {part} AS part FROM {VIEW}")  # noqa: S608 # the name is quoted
    return [*found["high"], *found["part"]]


def _outcome_sql(
    columns: Mapping[str, str], found: Mapping[str, str], mapping: ColumnMap, score: str | None
) -> tuple[str | None, bool]:
    if not mapping.pass_if:
        if "passed" in found:
            return quoted(found["passed"]), True
        if "score" not in found:
            return None, False
        return f"{score or quoted(found['score'])} >= 1", False
    parts = []
    for test in parse_pass_if(mapping.pass_if):
        column = found.get(test.column, test.column)
        numeric = isinstance(test.value, float)
        if columns.get(column) != ("number" if numeric else "text"):
            return None, False
        symbol = {"==": "=", "!=": "<>"}.get(test.symbol, test.symbol)
        if numeric:
            parts.append(f"{quoted(column)} {symbol} {test.value}")
        else:
            parts.append(f"LOWER(TRIM({quoted(column)})) {symbol} {_literal(str(test.value))}")
    return " AND ".join(parts), False


def _error_sql(engine: Engine, plan: GroupQuery) -> str:
    column = quoted(plan.found["error"])
    if engine.columns[plan.found["error"]] == "text":
        words = ", ".join(_literal(word) for word in sorted(NO_ERROR))
        return f"COALESCE(LOWER(TRIM({column})) NOT IN ({words}), FALSE)"
    return f"COALESCE(CAST({column} AS INT) <> 0, FALSE)"


def _literal(text: str) -> str:
    doubled = text.lower().replace("'", "''")
    return f"'{doubled}'"


def _numbered_on(
    engine: Engine, groups: Mapping[str, list[Any]], names: tuple[Labels, Labels]
) -> bool:
    """Whether every task has the trials 0..n-1 or 1..n, by their fingerprint."""
    if None in groups["fingerprint"]:
        return False
    systems, tasks = names
    keys = systems.codes.astype(np.int64) * len(tasks.names) + tasks.codes
    distinct, place = np.unique(keys, return_inverse=True)
    runs = np.bincount(place, weights=groups["n"]).astype(np.int64)
    if (most := int(runs.max(initial=0))) > MOST_NUMBERS:
        return False
    found = np.zeros(distinct.size, dtype=np.uint64)
    # A fingerprint is a sum modulo 2**64, and may come with a sign.
    engine.join.at(found, place, np.array([p % 2**64 for p in groups["fingerprint"]], np.uint64))
    expected = engine.fingerprints(most + 1)
    from_one = engine.part(expected[runs + 1], expected[1])
    return bool(((found == expected[runs]) | (found == from_one)).all())
