"""Tables that are not one run a row: counts, a column for each run, and maps of tasks to runs.

Each is turned into rows, one for each run, with a sentence on how it was read. What may be read in
two ways is left as it is, so that it is refused with the names that decide.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from passhat.errors import ReadError
from passhat.ingest.document import Document
from passhat.ingest.readers import RUN_WORDS
from passhat.ingest.rows import WITHIN_A_RUN, Row, Table, table_of_rows, without_total
from passhat.messages import few, plural, short, short_value
from passhat.records.columns import (
    COUNTS,
    FAILURES,
    GUESSED_VERDICTS,
    MOST_KEPT,
    RATES,
    USUAL,
    VERDICTS,
    ColumnMap,
    as_number,
    find_columns,
    is_missing,
    is_table,
    name_parts,
    outcome_of,
    says_outcomes,
    usual_name,
)

PASSES = frozenset(
    (
        *("n_pass", "num_pass", "passes", "pass_count", "n_passed", "num_passed", "passed_count"),
        *("successes", "n_success", "num_success", "num_successes", "n_successes", "wins"),
        *("success_count", "num_correct", "n_correct", "correct_count", "n_resolved", "solves"),
    )
)
"""Columns that count the runs of a task that passed."""

VERBS = frozenset(("passed", "pass", "success", "correct", "solved", "resolved", "succeeded"))
"""Columns that do so beside a number of runs, and else say whether one run passed."""

RUNS = COUNTS | frozenset(
    (
        *("total", "n", "attempts", "runs", "samples", "num_samples", "n_samples", "total_runs"),
        *("total_trials", "total_attempts", "run_count", "trial_count", "n_total", "repeats"),
    )
)
FAILS = frozenset(
    ("failed", "fails", "failures", "n_fail", "n_failed", "num_failed", "fail_count", "num_fail")
)

CONDITIONS = frozenset(
    ("baseline", "control", "treatment", "treated", "before", "after", "old", "new", "candidate")
)
"""What two arms of an experiment are called, beside with_X and without_X, X and no_X."""

_NEGATED = re.compile("^(?:with|without|no|non)_")

MOST_RUNS = 5_000_000
"""Counts that add up to more are refused: each run takes a row."""

_RATE = re.compile(r"\d{1,3}(?:\.\d{1,17})?\s*%?")
_RATIO = re.compile(r"\s*(\d{1,9})\s*/\s*(\d{1,9})\s*")
_ONE_RUN = re.compile(
    rf"(?:(?P<word>{RUN_WORDS}|passed|pass|success|correct|score|result|outcome|sample|r|t)[ _-]?)?"
    r"#?(?P<number>\d{1,4})",
    re.IGNORECASE,
)

Reshaped = tuple[Table, str]
"""A table with a row for each run, and how it came about."""


def may_reshape(names: Collection[str]) -> bool:
    """Whether columns are called like counts of runs, like one run each, or like conditions."""
    few_names = len(names) <= MOST_KEPT
    return (_may_reshape if few_names else _may_reshape.__wrapped__)(tuple(names))


@lru_cache(maxsize=64)
def _may_reshape(names: tuple[str, ...]) -> bool:
    usual = {usual_name(name) for name in names}
    counted = usual & PASSES or usual & VERBS or usual & RATES
    counts = bool(counted and usual & (RUNS | FAILS))
    return counts or len(_run_columns(names)) > 1 or bool(_conditions_among(names))


def may_count(sheet: Table) -> bool:
    """Whether the first verdict is of several runs: 2/3, or a list."""
    columns = find_columns(sheet.columns, USUAL)
    column = columns.get("passed", "")
    first = sheet.cells(column)[0] if column in sheet.columns and len(sheet) else None
    return isinstance(first, list) or (isinstance(first, str) and bool(_RATIO.fullmatch(first)))


def one_row_a_column(sheet: Table, mapping: ColumnMap) -> tuple[Table, str, ColumnMap] | None:
    """The table with a row for each verdict in columns that the user named as agents or tasks.

    `system="gpt,claude"` of a table with a column for each agent, `task="a,b"` with one for each
    task: the columns join as a name where they hold names, and are the names where they hold
    verdicts. None of any other table.
    """
    for meaning in ("system", "task"):
        parts = name_parts(sheet.columns, getattr(mapping, meaning) or "")
        if len(parts) < 2 or _verdict_is_known(sheet, mapping, parts):
            continue
        if not all(part in sheet.columns for part in parts):
            continue
        words = _error_words(mapping)
        if not all(says_outcomes(_without(words, sheet.cells(part))) for part in parts):
            continue
        table = _stacked(sheet, parts, meaning, mapping)
        what = "agents" if meaning == "system" else "tasks"
        how = f"columns {few([chr(34) + short(part) + chr(34) for part in parts])} as {what}"
        return table, how, replace(mapping, **{meaning: meaning, "passed": "outcome"})
    return None


def _verdict_is_known(sheet: Table, mapping: ColumnMap, parts: Collection[str]) -> bool:
    columns = find_columns([name for name in sheet.columns if name not in parts], mapping)
    return bool(mapping.pass_if) or not columns.keys().isdisjoint(VERDICTS)


def columns_of_verdicts(sheet: Table, by_meaning: Mapping[str, str]) -> list[str]:
    """The columns that say of every row how it ended, for an agent or a task each; none if one."""
    no_verdict = RUNS | FAILS | PASSES | FAILURES
    columns = [
        name
        for name in sheet.columns
        if name not in by_meaning.values() and usual_name(name) not in no_verdict
        if says_outcomes(cells := sheet.cells(name)) and not any(map(is_missing, cells))
    ]
    return columns if len(columns) > 1 and all(short(name) == name for name in columns) else []


def one_row_a_run(name: str, sheet: Table, mapping: ColumnMap) -> Reshaped | None:
    """The table with a row for each run; None if it has one, or nothing says what it has."""
    if mapping.pass_if or mapping.passed or mapping.score or mapping.trial:
        return None  # the user says what a row is
    columns = find_columns(sheet.columns, mapping)
    if "task" not in columns or not sheet.has(columns["task"]):
        return None
    sheet, total = without_total(sheet, columns["task"])  # as runs it would be a task
    reshaped = (
        _from_counts(name, sheet, columns)
        or _from_rates(name, sheet, columns)
        or _from_run_columns(sheet, columns, mapping)
        or _from_lists(sheet, columns)
        or _from_conditions(sheet, columns)
    )
    return None if reshaped is None else (reshaped[0], "; ".join((reshaped[1], *total)))


def _from_counts(name: str, sheet: Table, by_meaning: Mapping[str, str]) -> Reshaped | None:
    """A row for each run of a table with the number of passes of each task."""
    if (ratios := _ratios(sheet, by_meaning)) is not None:
        column, passes, runs = ratios
        how = f'"{short(column)}" as passes of trials'
        return _counted(name, sheet, [column], passes, runs, runs, how)
    by_name = {usual_name(column): column for column in reversed(list(sheet.columns))}
    counts = {
        usual: numbers
        for usual, column in by_name.items()
        if (numbers := _whole(sheet, column)) is not None
    }
    total = next((key for key in counts if key in RUNS and max(counts[key], default=0) > 1), None)
    fails = next((key for key in counts if key in FAILS), None)
    own = [key for key in counts if key in PASSES] or [key for key in counts if key in VERBS]
    if len(own) != 1 or (total is None and fails is None) or "trial" in by_meaning:
        return None
    passes = counts[own[0]]
    if total is None:
        runs = [p + f for p, f in zip(passes, counts[fails or ""], strict=True)]
    else:
        runs = counts[total]
    if any(p > n for p, n in zip(passes, runs, strict=True)) or max(runs, default=0) < 2:
        return None
    if own[0] in VERBS and max(passes) <= 1 and total == "attempts":
        shown, tries = short(by_name[own[0]]), short(by_name[total])
        raise ReadError(
            f'{name}: "{shown}" is 0 or 1 beside "{tries}": the passes of so many trials, or how a '
            f"trial ended that took so many attempts? Call the column passes if it counts, or say "
            f"`passed={shown!r}` if each row is one trial"
        )
    ended = runs
    if total is not None and fails is not None:
        ended = [p + f for p, f in zip(passes, counts[fails], strict=True)]
        if any(e > n for e, n in zip(ended, runs, strict=True)):
            raise ReadError(
                f'{name}: "{short(by_name[own[0]])}" and "{short(by_name[fails])}" add up to more '
                f'than "{short(by_name[total])}"'
            )
    used = [by_name[key] for key in (own[0], total, fails) if key is not None]
    how = f"{few([chr(34) + short(column) + chr(34) for column in used])} as counts of trials"
    return _counted(name, sheet, used, passes, ended, runs, how)


def _from_rates(name: str, sheet: Table, by_meaning: Mapping[str, str]) -> Reshaped | None:
    """A row for each run of a table with a pass rate of each task, and of how many runs it is."""
    rate = next((column for column in sheet.columns if usual_name(column) in RATES), None)
    totals = [column for column in sheet.columns if usual_name(column) in RUNS]
    runs = _whole(sheet, totals[0]) if len(totals) == 1 else None
    if rate is None or runs is None or not by_meaning.keys().isdisjoint((*VERDICTS, "trial")):
        return None
    texts = [str(cell).strip() for cell in sheet.cells(rate)]
    if not all(map(_RATE.fullmatch, texts)):
        return None
    percent = any(text.endswith("%") or float(text) > 1 for text in texts)
    shown = [text.removesuffix("%").strip() for text in texts]
    # Exact up to as many digits as were written: 0.67 of 3 is 2, of 200 it may be 133 to 135.
    # Few round shares to one digit. Those that give whole numbers everywhere are exact, unless so
    # many tasks of so many trials would hardly all end on a tenth by themselves.
    digits = max(len(number.partition(".")[2]) for number in shown)
    whole = 100 if percent else 1
    counts = [float(text) / whole * n for text, n in zip(shown, runs, strict=True)]
    partial = [n for c, n in zip(counts, runs, strict=True) if 0 < c < n]
    on_tenths = math.prod(min(1, 9 / max(1, n - 1)) for n in partial)
    exact = not percent and digits < 2 and all(abs(c - round(c)) < 1e-9 for c in counts)
    exact = exact and on_tenths >= 0.01
    half = 0.0 if exact else 0.5 * 10.0**-digits
    passes = []
    for task, text, n, count in zip(
        sheet.cells(by_meaning["task"]), shown, runs, counts, strict=True
    ):
        off = (half + 1e-12) / whole * n
        fit = range(max(0, math.ceil(count - off)), min(n, math.floor(count + off)) + 1)
        if len(fit) != 1:
            which = f"{fit[0]} to {fit[-1]} passes" if fit else "no whole number of passes"
            raise ReadError(
                f'{name}: the "{short(rate)}" of {short_value(task)}, {text} of '
                f"{plural(n, 'trial')}, is {which}; give the number of passes, or a row for each "
                "trial"
            )
        passes.append(fit[0])
    how = f'"{short(rate)}" of "{short(totals[0])}" as counts of trials'
    return _counted(name, sheet, [rate, totals[0]], passes, runs, runs, how)


def _counted(
    name: str,
    sheet: Table,
    used: Sequence[str],
    passes: Sequence[int],
    ended: Sequence[int],
    runs: Sequence[int],
    how: str,
) -> Reshaped:
    """So many rows that passed, failed, and did not end."""
    if sum(runs) > MOST_RUNS:
        raise ReadError(f"{name}: counts {sum(runs):,} trials; at most {MOST_RUNS:,} are read")
    rows: list[int] = []
    outcomes: list[str] = []
    for row, (passed, judged, all_runs) in enumerate(zip(passes, ended, runs, strict=True)):
        rows += [row] * all_runs
        outcomes += ["pass"] * passed + ["fail"] * (judged - passed)
        outcomes += ["error"] * (all_runs - judged)
    # What a row adds up over its runs is no fact of each.
    by_meaning = find_columns(sheet.columns, USUAL)
    kept = {by_meaning.get(meaning) for meaning in ("task", "system", "family", "tags", "level")}
    kept |= {column for column in sheet.columns if not _are_numbers(sheet.cells(column))}
    columns = {
        column: [cells[row] for row in rows]
        for column in sheet.columns
        if column in kept and column not in used
        for cells in [sheet.cells(column)]
    }
    return _table(sheet, {**columns, "outcome": outcomes}, rows), how


def _from_run_columns(
    sheet: Table, by_meaning: Mapping[str, str], mapping: ColumnMap
) -> Reshaped | None:
    """A row for each run of a table with a column for each: run_1, run_2, or 1, 2."""
    if not by_meaning.keys().isdisjoint((*VERDICTS, "trial")):
        return None
    runs = _run_columns(sheet.columns)
    cells = {column: sheet.cells(column) for column in runs}
    filled = [cell for own in cells.values() for cell in own if not is_missing(cell)]
    odd = [cell for cell in _without(_error_words(mapping), filled) if not _is_verdict(cell)]
    shares = bool(odd) and all(map(_is_share, filled))
    known = not odd or (not shares and _are_words_among(filled, odd, sheet.columns))
    if len(runs) < 2 or not (known or shares):
        return None
    table = _stacked(sheet, runs, "trial", mapping, "outcome" if known else "score")
    numbered = [runs[column] for column in table.columns["trial"]]
    first, *_, last = runs
    merged = f'columns "{short(first)}" to "{short(last)}"'
    table = replace(table, columns={**table.columns, "trial": numbered}, merged=merged)
    return table, f"{merged} as trials"


def _from_conditions(sheet: Table, by_meaning: Mapping[str, str]) -> Reshaped | None:
    """A row for each run of entries that hold those under two conditions: {"with_skill": {...}}.

    Bare verdicts under such names are asked about: "errors" and "no_errors" are no agents.
    """
    conditions = _conditions_among(sheet.columns)
    if not conditions or not by_meaning.keys().isdisjoint((*VERDICTS, "system")):
        return None
    cells = {name: sheet.cells(name) for name in sheet.columns}
    rows: list[Row] = []
    numbers: list[int] = []
    for place, number in enumerate(sheet.numbers):
        outer = {name: own[place] for name, own in cells.items() if name not in conditions}
        for condition in conditions:
            held = cells[condition][place]
            runs = list(_runs(held))
            if not runs and not is_missing(held):
                return None
            rows += [{**outer, "system": condition, **run} for run in runs]
            numbers += [number] * len(runs)
    return table_of_rows(rows, numbers), f"{few(conditions)} as agents"


def _conditions_among(names: Collection[str]) -> list[str]:
    """The names of the arms of one experiment; none if no two are."""
    alike = defaultdict[str, list[str]](list)
    for name in names:
        usual = usual_name(name)
        alike["" if usual in CONDITIONS else _NEGATED.sub("", usual)].append(name)
    return next((arms for arms in alike.values() if are_conditions(arms)), [])


def _are_words_among(filled: Sequence[Any], odd: Sequence[Any], columns: Collection[str]) -> bool:
    """Whether a few verdicts are words nobody knows: the rows that have them are refused by name.

    Not where another column may be the verdict.
    """
    words = all(isinstance(cell, str) and not _is_number(cell) for cell in odd)
    others = {usual_name(name) for name in columns}.isdisjoint(GUESSED_VERDICTS)
    return words and others and 2 * len(odd) < len(filled)


def _error_words(mapping: ColumnMap) -> frozenset[str]:
    """The user's words for attempts that broke."""
    words = (mapping.error_words or "").split(",")
    return frozenset(word for word in (part.strip().lower() for part in words) if word)


def _without(words: frozenset[str], cells: Sequence[Any]) -> Sequence[Any]:
    if not words:
        return cells
    return [cell for cell in cells if str(cell).strip().lower() not in words]


def _stacked(
    sheet: Table,
    columns: Collection[str],
    meaning: str,
    mapping: ColumnMap,
    verdict: str = "outcome",
) -> Table:
    """A row for each cell of some columns, which its column names.

    An empty cell is a row where the user says what rows without a verdict count as.
    """
    cells = {column: sheet.cells(column) for column in columns}
    places = [
        (row, column)
        for row in range(len(sheet))
        for column in columns
        if mapping.missing or not is_missing(cells[column][row])
    ]
    rows = [row for row, _ in places]
    stacked: dict[str, Sequence[Any]] = {
        name: [own[row] for row in rows]
        for name in sheet.columns
        if name not in columns and name not in (meaning, verdict)
        for own in [sheet.cells(name)]
    }
    stacked[meaning] = [column for _, column in places]
    stacked[verdict] = [cells[column][row] for row, column in places]
    empty = len(sheet) * len(columns) - len(rows)
    return replace(_table(sheet, stacked, rows), empty=empty)


def _from_lists(sheet: Table, by_meaning: Mapping[str, str]) -> Reshaped | None:
    """A row for each run of a table with a list of verdicts for each task."""
    column = by_meaning.get("passed")
    lists = [] if column is None else sheet.cells(column)
    if "trial" in by_meaning or not lists or not all(isinstance(cells, list) for cells in lists):
        return None
    if not all(_is_verdict(cell) for cells in lists for cell in cells):
        return None
    rows = [row for row, cells in enumerate(lists) for _ in cells]
    columns: dict[str, Sequence[Any]] = {
        name: [own[row] for row in rows]
        for name in sheet.columns
        if name != column
        for own in [sheet.cells(name)]
    }
    columns["outcome"] = [cell for cells in lists for cell in cells]
    return _table(sheet, columns, rows), f'lists in "{short(column or "")}" as trials'


def _run_columns(names: Collection[str]) -> dict[str, int]:
    """The columns that are one run each, with its number; of several words the most frequent."""
    by_word: dict[str, dict[str, int]] = {}
    for name in names:
        if match := _ONE_RUN.fullmatch(name.strip()):
            by_word.setdefault((match["word"] or "").lower(), {})[name] = int(match["number"])
    largest = max(by_word.values(), key=len, default={})
    return largest if len(set(largest.values())) == len(largest) else {}


def _ratios(sheet: Table, by_meaning: Mapping[str, str]) -> tuple[str, list[int], list[int]] | None:
    column = by_meaning.get("passed")
    if column is None or not sheet.has(column):
        return None
    cells = [
        _RATIO.fullmatch(cell) if isinstance(cell, str) else None for cell in sheet.cells(column)
    ]
    pairs = [(int(cell[1]), int(cell[2])) for cell in cells if cell]
    if not pairs or len(pairs) < len(cells) or any(passes > runs for passes, runs in pairs):
        return None
    return column, [passes for passes, _ in pairs], [runs for _, runs in pairs]


def _whole(sheet: Table, column: str) -> list[int] | None:
    """The whole numbers of a column, none below 0 and none missing; None for any other column."""
    usual = usual_name(column)
    if usual not in PASSES | VERBS | RUNS | FAILS:
        return None
    numbers = []
    for cell in sheet.cells(column):
        if isinstance(cell, bool) or is_missing(cell):
            return None
        try:
            number = as_number(cell)
        except ValueError:
            return None
        if number < 0 or number % 1 or number > MOST_RUNS:
            return None
        numbers.append(int(number))
    return numbers or None


def _table(sheet: Table, columns: Mapping[str, Sequence[Any]], rows: Sequence[int]) -> Table:
    return Table(columns=columns, numbers=[sheet.numbers[row] for row in rows])


def _are_numbers(cells: Sequence[Any]) -> bool:
    return all(_is_number(cell) or is_missing(cell) for cell in cells)


def _is_number(cell: Any) -> bool:
    try:
        as_number(cell)
    except ValueError:
        return False
    return not isinstance(cell, bool)


def _is_share(cell: Any) -> bool:
    return is_missing(cell) or (_is_number(cell) and 0 <= as_number(cell) <= 1)


def _is_verdict(cell: Any) -> bool:
    return isinstance(cell, (bool, int, float, str)) and outcome_of(cell) is not None


# Objects of JSON that map tasks to runs, or have a list for each column.


def mapped_rows(document: Document, mapping: ColumnMap) -> tuple[list[Row], str] | None:
    """The runs of an object that maps each task to them, and how it was read; None for any other.

    Such as {"a": [1, 0, 1]}, {"a": [{"pass": true}]}, {"results": {"a": {"passed": true}}}, pandas'
    {"task": {"0": "a"}, "passed": {"0": true}}, {"agents": {"gpt": {"a": [1, 0]}}}, and a list of
    rows two keys deep.
    """
    if document.kind != "json":
        return None
    openers = {name: bytes(memoryview(raw)[:1]) for name, raw in document.first.items()}
    plain = [name for name, opener in openers.items() if opener not in (b"[", b"{")]
    if is_table(plain, mapping) or len(plain) == len(openers) or mapping.chosen():
        return None  # it is one run
    whole = document.decode(dict[str, Any])
    if (rows := _from_columns(whole) or _from_split(whole) or _from_map(whole)) is not None:
        return rows
    inside = [(key, _from_inside(key, value)) for key, value in whole.items()]
    lists = [(key, rows) for key, rows in inside if rows is not None]
    if len(lists) != 1:
        return None
    key, (listed, how) = lists[0]
    shared = {name: whole[name] for name in plain}
    return [{**shared, **row} for row in listed], f'{how} in "{short(key)}"'


def _from_inside(key: str, value: Any) -> tuple[list[Row], str] | None:
    """The runs under one key of an object."""
    if key in _NOT_RUNS or usual_name(key) in WITHIN_A_RUN:
        return None
    if (levels := two_levels(value)) is not None and usual_name(key) in _OUTER:
        outer, inner = _OUTER[usual_name(key)]
        rows = [
            {**run, outer: name, inner: within}
            for name, held in value.items()
            for within, own in held.items()
            for run in _runs(own)
        ]
        return rows, f"{few(levels[0])} as {outer}s, with their {inner}s as keys"
    return _from_map(value) or _from_inner_list(value)


_OUTER = {
    **dict.fromkeys(("agents", "systems", "models"), ("system", "task")),
    **dict.fromkeys(("tasks", "cases", "problems"), ("task", "system")),
}
"""What the outer keys of a map are called, and those within each."""


def two_levels(value: Any) -> tuple[list[str], list[str]] | None:
    """The keys of a map of maps to runs, outer and inner ones; None of any other value.

    Agents by task, or tasks by agent: only the key above them says which.
    """
    if not isinstance(value, dict) or len(value) < 2 or any(_names_a_column(key) for key in value):
        return None
    if not all(isinstance(inside, dict) and inside for inside in value.values()):
        return None
    inner = list(dict.fromkeys(name for inside in value.values() for name in inside))
    if any(_names_a_column(name) for name in inner):
        return None
    if not all(any(_runs(own)) for inside in value.values() for own in inside.values()):
        return None
    return list(value), inner


def _from_inner_list(value: Any) -> tuple[list[Row], str] | None:
    """The rows of the one list in an object whose entries all name their task and verdict."""
    if not isinstance(value, dict):
        return None
    lists = {
        key: held
        for key, held in value.items()
        if isinstance(held, list) and held and usual_name(key) not in WITHIN_A_RUN
        if all(isinstance(row, dict) and is_table(row, USUAL) for row in held)
    }
    if len(lists) != 1:
        return None
    ((key, rows),) = lists.items()
    return rows, f'rows "{short(key)}"'


def _from_columns(value: Mapping[str, Any]) -> tuple[list[Row], str] | None:
    """Columns as lists of one length, or as objects with the same keys."""
    if not is_table(value, USUAL):
        return None
    columns = {
        name: list(cells.values()) if isinstance(cells, dict) else cells
        for name, cells in value.items()
    }
    if not all(isinstance(cells, list) for cells in columns.values()):
        return None
    keys = {tuple(cells) for cells in value.values() if isinstance(cells, dict)}
    if len({len(cells) for cells in columns.values()}) != 1 or len(keys) > 1:
        return None
    rows = zip(*columns.values(), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows], "a list for each column"


def _from_split(value: Mapping[str, Any]) -> tuple[list[Row], str] | None:
    """Names of columns, and rows without them, as pandas writes with orient="split"."""
    names, data = value.get("columns"), value.get("data")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return None
    if not isinstance(data, list) or not is_table(names, USUAL):
        return None
    if not all(isinstance(row, list) and len(row) == len(names) for row in data):
        return None
    return [dict(zip(names, row, strict=True)) for row in data], "rows beside their columns"


def _from_map(value: Any) -> tuple[list[Row], str] | None:
    """Runs under the name of their task; under two conditions of each, those are two systems."""
    if not isinstance(value, dict) or len(value) < 2 or any(_names_a_column(key) for key in value):
        return None
    if are_conditions(value):
        inner = {key: _runs_by_task(tasks) for key, tasks in value.items()}
        if any(runs is None for runs in inner.values()):
            return None
        rows = [{"system": key, **row} for key, runs in inner.items() for row in runs or ()]
        return rows, f"{few(value)} as agents, with their tasks as keys"
    runs = _runs_by_task(value)
    return None if runs is None else (runs, "tasks as keys")


def _runs_by_task(value: Any) -> list[Row] | None:
    if not isinstance(value, dict) or not value:
        return None
    rows: list[Row] = []
    for task, held in value.items():
        runs = list(_runs(held))
        if not runs:
            return None
        rows += [{"task": task, **run} for run in runs]
    return rows


def _runs(held: Any) -> Iterator[Row]:
    """The runs under the name of a task: verdicts, or objects with a verdict and no other task."""
    if isinstance(held, dict) and are_conditions(held):
        for condition, own in held.items():
            runs = list(_runs(own))
            if not runs:
                return
            yield from ({"system": condition, **run} for run in runs)
        return
    if isinstance(held, list):
        kinds = {isinstance(own, dict) for own in held}
        if kinds == {False} and all(map(_is_verdict, held)):
            yield from ({"outcome": own} for own in held)
        elif kinds == {True}:
            meanings = [find_columns(run, USUAL) for run in held]
            if all("task" not in own and not own.keys().isdisjoint(VERDICTS) for own in meanings):
                yield from held
    elif isinstance(held, dict):  # one run; a score alone is likely the mean of several
        verdict = find_columns(held, USUAL).get("passed")
        if verdict is not None and _is_verdict(held[verdict]) and "task" not in held:
            yield held


def are_conditions(names: Collection[str]) -> bool:
    """Whether keys or columns are the arms of one experiment: with_skill and without_skill.

    >>> are_conditions(["with_skill", "without_skill"]), are_conditions(["few_shot", "no_few_shot"])
    (True, True)
    >>> are_conditions(["refund", "cancel"])
    False
    """
    usual = [usual_name(name) for name in names]
    if len(usual) < 2:
        return False
    if all(name in CONDITIONS for name in usual):
        return True
    bare = {_NEGATED.sub("", name) for name in usual}
    return len(usual) == 2 and len(bare) == 1


def _names_a_column(key: str) -> bool:
    usual = usual_name(key)
    return bool(find_columns([key], USUAL)) or usual in RUNS | FAILS | PASSES or usual in _NO_TASKS


_NOT_RUNS = ("config", "metadata", "meta", "settings", "summary", "stats", "metrics", "checks")
"""Keys of an object under which no runs are looked for."""

_NO_TASKS = frozenset(
    (
        *_NOT_RUNS,
        *("scores", "results", "rewards", "outcomes", "totals", "data", "version", "schema"),
    )
)
"""Keys of an object that are no names of tasks."""
