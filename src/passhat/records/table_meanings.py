"""What the columns of a table mean, and how each of its rows ended."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

from passhat.dataclass import dataclass
from passhat.messages import few, short
from passhat.records.column_names import (
    ALIASES,
    ColumnMap,
    find_columns,
    is_weak,
    name_parts,
    usual_name,
    verdict_columns,
)
from passhat.records.outcome_words import (
    ColumnCondition,
    error_text,
    is_missing,
    letter_grades,
    number,
    outcomes_of,
    score_of,
)
from passhat.records.trial import FEATURES, Outcome

Cells = Callable[[str], Sequence[Any]]
"""The cells of a column, by its name."""

Differ = Callable[[str, Sequence[str]], bool]
"""Whether some rows that agree in all of the last columns differ in the first one."""

LONGEST_AGENT = 120
MOST_WORDS = 6
"""An agent's name has at most this many characters and fewer words; anything else is a prompt."""

TASK_IDS = frozenset(
    ("task_id", "instance_id", "case_id", "problem_id", "question_id", "item_id", "scenario_id")
)
"""Columns that name one task, where a column called "task" holds its text or the benchmark."""

QUESTIONS = ("question", "question_id", "problem", "problem_id", "query", "instance_id")
"""Columns that tell tasks apart where a column "task" only names their kind.

Other ids ("task_id", "sample_id", "item_id") may number the runs of a task instead.
"""

MODELS = ("model", "model_name", "model_id", "llm")

CONFIGURATIONS = (
    *("agent", "agent_name", *MODELS, "config", "config_id"),
    *("config_name", "configuration", "variant", "condition", "arm", "treatment", "harness"),
    *("scaffold", "framework", "method", "approach", "strategy", "prompt_version"),
)
"""Columns that say what was run: rows that differ in one are no runs of one system."""

COUNTED = ("turns", "tool_calls")
"""What may be given as a list; the number of its entries is read."""

COUNTS = frozenset(
    ("num_trials", "n_trials", "trials", "num_runs", "n_runs", "num_attempts", "n_attempts")
)
RATES = frozenset(("pass_rate", "success_rate", "passrate", "pass_at_1", "pass@1"))
"""Columns of tables that hold one row for all runs of a task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """A row of which one column says that it passed, and another that it failed."""

    row: int
    columns: tuple[str, str]
    cells: tuple[Any, Any]


def find_meanings(
    names: Iterable[str], mapping: ColumnMap, cells: Cells, differ: Differ | None = None
) -> tuple[dict[str, str], list[str]]:
    """Which column holds what, and notes on columns that only seem to name the agent or the task.

    `differ` is asked where the rows are too many to be given as cells.

    >>> table = {"task": ["a"], "system": ["You are a helpful assistant. Be brief."], "ok": [1]}
    >>> find_meanings(table, ColumnMap(passed="ok"), table.__getitem__)[0]
    {'passed': 'ok', 'task': 'task'}
    """
    names = list(names)
    notes: list[str] = []
    while True:
        found = find_columns(names, mapping)
        unfit = (
            _unfit_system(found, mapping, cells)
            or _unfit_task(found, names, mapping, cells)
            or _unfit_feature(found, mapping, cells)
        )
        if unfit is None:
            break
        column, note = unfit
        names.remove(column)
        notes.append(note)
    if "task" in found:
        differ = differ or partial(rows_differ, cells)
        notes += _tell_tasks_apart(found, names, mapping, differ)
        notes += _tell_systems_apart(found, names, mapping, cells, differ)
    return found, notes


def rows_differ(cells: Cells, column: str, within: Sequence[str]) -> bool:
    """Whether some rows that agree in all columns `within` differ in a column.

    >>> table = {"task": ["a", "b", "a"], "model": ["x", "y", "z"]}
    >>> rows_differ(table.__getitem__, "model", ["task"])
    True
    """
    first: dict[tuple[Any, ...], Any] = {}
    keys = zip(*map(cells, within), strict=True)
    try:
        return any(
            first.setdefault(key, cell) != cell
            for key, cell in zip(keys, cells(column), strict=True)
            if not is_missing(cell)
        )
    except TypeError:  # lists and objects name nothing
        return False


def _tell_tasks_apart(
    found: dict[str, str], names: Sequence[str], mapping: ColumnMap, differ: Differ
) -> list[str]:
    """Add the column of questions to the task, where rows of one "task" ask different ones."""
    if mapping.task or "trial" in found:
        return []
    kind = found["task"]
    within = [found[meaning] for meaning in ("system", "task") if meaning in found]
    for column in _unused(names, QUESTIONS, found):
        if differ(column, within):
            found["task"] = f"{kind},{column}"
            note = f'rows of one "{short(kind)}" differ in "{short(column)}"'
            return [f"{note}, so both name the task (`task={short(kind)!r}` takes the first alone)"]
    return []


def _tell_systems_apart(
    found: dict[str, str], names: Sequence[str], mapping: ColumnMap, cells: Cells, differ: Differ
) -> list[str]:
    """Add columns such as "model" and "condition" to the system, where a task has several."""
    if mapping.system or "system" in mapping.left_out():
        return []
    parts = [found["system"]] if "system" in found else []
    task = name_parts(names, found["task"])
    for column in _unused(names, CONFIGURATIONS, found):
        if _names_agents(column, cells(column)) and differ(column, [*parts, *task]):
            parts.append(column)
    added = parts[1:] if "system" in found else parts
    if not added:
        return []
    found["system"] = ",".join(parts)
    pooled = (
        f"`system={short(parts[0])!r}` takes the first alone"
        if parts[1:]
        else "`system=''` pools them"
    )
    names = f'"{short(found["system"])}"'
    return [f"rows of one task differ in {few(added)}, so {names} names the agent ({pooled})"]


def model_of(
    names: Iterable[str], found: Mapping[str, str], mapping: ColumnMap, cells: Cells
) -> str | None:
    """The one model of a table whose agents have another name: files may differ in it.

    >>> table = {"agent": ["a", "a"], "task": ["x", "y"], "model": ["m", "m"]}
    >>> found = {"system": "agent", "task": "task"}
    >>> model_of(list(table), found, ColumnMap(), table.__getitem__)
    'm'
    """
    if "system" not in found or mapping.system or mapping.name:
        return None
    for column in _unused(names, MODELS, found):
        distinct = set(map(str, cells(column)))
        return distinct.pop().replace("/", "-") if len(distinct) == 1 else None
    return None


def _names_agents(column: str, values: Sequence[Any]) -> bool:
    """Whether a column can be part of an agent's name: no prompts, no settings of one row each."""
    if holds_prompts(values):
        return False
    return usual_name(column) in ALIASES["system"] or len(set(values)) < len(values)


def _unused(names: Iterable[str], known: Sequence[str], found: Mapping[str, str]) -> list[str]:
    """The columns whose names are known and that mean nothing else, in the order of the names."""
    taken = {part for column in found.values() for part in (column, *column.split(","))}
    return [name for name in names if usual_name(name) in known and name not in taken]


def name_cells(names: Collection[str], column: str, cells: Cells) -> list[Any]:
    """The names in a column, or in several that commas join.

    >>> table = {"agent": ["a", "b"], "model": ["x", None]}
    >>> name_cells(table, "agent,model", table.__getitem__)
    ['a/x', 'b']
    """
    parts = name_parts(names, column)
    if len(parts) == 1:
        return list(cells(parts[0]))
    rows = zip(*map(cells, parts), strict=True)
    return ["/".join(str(cell) for cell in row if not is_missing(cell)) for row in rows]


def _unfit_system(
    found: Mapping[str, str], mapping: ColumnMap, cells: Cells
) -> tuple[str, str] | None:
    """A column that is called like the agent's name and holds prompts, with a note on it."""
    column = found.get("system")
    if column is None or mapping.system or not holds_prompts(cells(column)):
        return None
    return column, (
        f'column "{short(column)}" holds prompts, not the name of an agent, and was left out '
        f"(`system={short(column)!r}` takes it anyway)"
    )


def _unfit_task(
    found: Mapping[str, str], names: Iterable[str], mapping: ColumnMap, cells: Cells
) -> tuple[str, str] | None:
    """A column "task" beside the column of ids that does tell tasks apart, with a note on it.

    It holds objects, or the name of the benchmark in every row: read as the task, all rows would
    be runs of one.
    """
    column = found.get("task")
    if column is None or mapping.task or usual_name(column) in TASK_IDS:
        return None
    ids = [name for name in names if usual_name(name) in TASK_IDS and name not in found.values()]
    if not ids:
        return None
    values = cells(column)
    if any(isinstance(value, (Mapping, list)) for value in values):
        holds = "holds objects"
    elif "trial" not in found and _constant(values) and not _constant(cells(ids[0])):
        holds = "is the same in every row"
    else:
        return None
    instead = short(ids[0])
    return column, (
        f'column "{short(column)}" {holds}, so "{instead}" is read as the task '
        f"(`task={short(column)!r}` takes the other)"
    )


def _unfit_feature(
    found: Mapping[str, str], mapping: ColumnMap, cells: Cells
) -> tuple[str, str] | None:
    """A column that is called like a number of the run and holds objects, with a note on it."""
    chosen = mapping.chosen()
    for meaning in FEATURES:
        column = found.get(meaning)
        if column is None or meaning in chosen:
            continue
        first = next((cell for cell in cells(column) if cell is not None), None)
        if isinstance(first, Mapping):
            return column, f'column "{short(column)}" holds objects, not numbers, and was left out'
    return None


def _constant(values: Sequence[Any]) -> bool:
    """Whether all cells say the same."""
    return all(value == values[0] for value in values)


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
    """The column that shows that a table has one row for all runs of a task, if there is one."""
    if "trial" in found or mapping.chosen() or mapping.pass_if:
        return None
    for column in columns:
        usual = usual_name(column)
        if usual in COUNTS and any(_number(cell) > 1 for cell in cells(column)):
            return column
        if usual in RATES and any(0 < _number(cell) < 1 for cell in cells(column)):
            return column
    return None


def row_outcomes(
    tests: Sequence[ColumnCondition],
    found: Mapping[str, str],
    cells: Cells,
    scores: Sequence[Any],
) -> list[Outcome | None]:
    """How each row ended; None if nothing says so.

    The user's comparisons decide, else the column of verdicts, else a score of 1. A row whose error
    column names an error is errored, unless its verdict says that it passed.
    """
    if tests:
        compared = [cells(found.get(test.column, test.column)) for test in tests]
        stated = [_holds(tests, row) for row in zip(*compared, strict=True)]
    elif "passed" in found:
        stated = outcomes_of(cells(found["passed"]))
    else:
        stated = [_by_score(score) for score in scores]
    if "error" not in found:
        return stated
    errors = map(error_text, cells(found["error"]))
    return [
        one if error is None or one is Outcome.PASSED else Outcome.ERRORED
        for one, error in zip(stated, errors, strict=True)
    ]


def letter_scores(found: Mapping[str, str], cells: Cells) -> list[float | None] | None:
    """The scores that Inspect's letters mean, in a table without other scores."""
    if "score" in found:
        return letter_grades(cells(found["score"]))
    return letter_grades(cells(found["passed"])) if "passed" in found else None


def find_conflict(names: Iterable[str], found: Mapping[str, str], cells: Cells) -> Conflict | None:
    """The first row that passed by one column and failed by another, both surely verdicts.

    >>> table = {"passed": [True, True], "outcome": ["pass", "fail"]}
    >>> find_conflict(table, {"passed": "outcome"}, table.__getitem__).row
    1
    """
    if "passed" not in found:
        return None
    chosen = found["passed"]
    others = [name for name in verdict_columns(names) if name != chosen and not is_weak(name)]
    opposite = {Outcome.PASSED: Outcome.FAILED, Outcome.FAILED: Outcome.PASSED}
    own = outcomes_of(cells(chosen)) if others else []
    for other in others:
        for row, (one, two) in enumerate(zip(own, outcomes_of(cells(other)), strict=True)):
            if one is not None and opposite.get(one) is two and two is not None:
                shown = cells(chosen)[row], cells(other)[row]
                return Conflict(row=row, columns=(chosen, other), cells=shown)
    return None


def _is_prompt(text: str) -> bool:
    text = text.strip()
    return "\n" in text or len(text) > LONGEST_AGENT or len(text.split()) >= MOST_WORDS


def _number(cell: Any) -> float:
    try:
        return 0.0 if is_missing(cell) else number(cell)
    except ValueError:
        return 0.0


def _by_score(cell: Any) -> Outcome | None:
    try:
        return None if is_missing(cell) else Outcome(score_of(cell) >= 1)
    except ValueError:
        return None


def _holds(tests: Sequence[ColumnCondition], cells: Sequence[Any]) -> Outcome | None:
    try:
        if any(is_missing(cell) for cell in cells):
            return None
        return Outcome(all(test.holds(cell) for test, cell in zip(tests, cells, strict=True)))
    except ValueError:
        return None
