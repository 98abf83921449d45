"""What the columns of a table mean, and how each of its rows ended."""

from __future__ import annotations

import contextlib
import math
import operator
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field, fields, replace
from functools import cache, lru_cache, partial
from typing import Any, SupportsFloat

from passhat.dataclass import dataclass
from passhat.errors import ArgumentError, UnknownFile
from passhat.messages import closest, few, short, short_value
from passhat.records.trial import FEATURES, OTHER_SCALE, Outcome

Cells = Callable[[str], Sequence[Any]]
"""The cells of a column, by its name."""

Differ = Callable[[str, Sequence[str]], bool]
"""Whether some rows that agree in all of the last columns differ in the first one."""

LONGEST_USUAL = 3600
"""Seconds: runs whose median is an hour or more are rare, and milliseconds are common."""

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


def infer_columns(
    names: Iterable[str], mapping: ColumnMap, cells: Cells, differ: Differ | None = None
) -> tuple[dict[str, str], list[str]]:
    """Which column holds what, and notes on columns that only seem to name the agent or the task.

    `differ` is asked where the rows are too many to be given as cells.

    >>> table = {"task": ["a"], "system": ["You are a helpful assistant. Be brief."], "ok": [1]}
    >>> infer_columns(table, ColumnMap(passed="ok"), table.__getitem__)[0]
    {'passed': 'ok', 'task': 'task'}
    """
    names = list(names)
    notes: list[str] = []
    while True:
        columns = find_columns(names, mapping)
        unfit = (
            _unfit_system(columns, mapping, cells)
            or _unfit_task(columns, names, mapping, cells)
            or _unfit_feature(columns, mapping, cells)
            or _unfit_seconds(columns, mapping, cells)
        )
        if unfit is None:
            break
        column, note = unfit
        names.remove(column)
        notes.append(note)
    if "task" in columns:
        differ = differ or partial(rows_differ, cells)
        notes += _tell_tasks_apart(columns, names, mapping, differ)
        notes += _tell_systems_apart(columns, names, mapping, cells, differ)
    return columns, notes


GUESSED_TASKS = (
    *("eval_id", "puzzle_id", "nodeid", "node_id", "id", "name", "question", "prompt", "query"),
    "input",
)
GUESSED_VERDICTS = (
    *("ok", "oracle_ok", "tests_passed", "match", "is_match", "exact_match", "em", "accuracy"),
    *("acc", "grade"),
)
"""Columns that often say the task and the outcome, and often something else: by their cells."""


def guess_columns(names: Iterable[str], mapping: ColumnMap, cells: Cells) -> ColumnMap:
    """The user's choice with a column that fits for the task and the outcome, where none is known.

    UnknownFile where two columns fit and do not say the same.

    >>> table = {"question": ["q1", "q1"], "ok": [True, False]}
    >>> guess_columns(table, ColumnMap(), table.__getitem__).chosen()
    {'task': 'question', 'passed': 'ok'}
    """
    names = list(names)
    columns = find_columns(names, mapping)
    taken = {part for column in columns.values() for part in name_parts(names, column)}
    by_usual_name = {usual_name(name): name for name in reversed(names) if name not in taken}
    if "task" not in columns:
        known = [by_usual_name[name] for name in GUESSED_TASKS if name in by_usual_name]
        several_runs = "trial" in columns and not _constant(cells(columns["trial"]))
        fit = {name: _grouping(cells(name)) for name in known}
        fit = {
            name: groups
            for name, groups in fit.items()
            if groups and not (several_runs and len(set(groups)) == len(groups))
        }
        mapping = _chosen_guess(mapping, "task", fit, "says which task a row is about")
    if not mapping.pass_if and columns.keys().isdisjoint(VERDICTS):
        known = [by_usual_name[name] for name in GUESSED_VERDICTS if name in by_usual_name]
        if any("total" in name for name in by_usual_name):  # of how many tests
            known = [name for name in known if usual_name(name) != "tests_passed"]
        ends = {name: outcomes_of(cells(name)) for name in known}
        ends = {name: own for name, own in ends.items() if own and None not in own}
        mapping = _chosen_guess(mapping, "passed", ends, "says whether a trial passed")
    return mapping


def likely_columns(names: Iterable[str], mapping: ColumnMap, cells: Cells) -> dict[str, str]:
    """Columns that a message may offer for the task and the outcome: the first whose cells fit.

    Of a column of failures it may offer what passes.

    >>> table = {"attempt": [1, 2], "Riddle": ["x", "x"], "judged": ["yes", "no"]}
    >>> likely_columns(table, ColumnMap(), table.__getitem__)
    {'passed': 'judged', 'task': 'Riddle'}
    >>> table = {"task": ["x", "x"], "exit_code": [0, 127]}
    >>> likely_columns(table, ColumnMap(), table.__getitem__)
    {'pass_if': 'exit_code==0'}
    >>> table = {"task": ["x", "x"], "Score (0-100)": [70, 93]}
    >>> likely_columns(table, ColumnMap(), table.__getitem__)["pass_if"]
    'Score (0-100)>=80'
    """
    names = list(names)
    taken = {*find_columns(names, mapping).values()}
    free = [name for name in names if name not in taken and short(name) == name]
    failures = [name for name in free if usual_name(name) in FAILURES]
    free = [name for name in free if name not in failures]
    verdicts = [name for name in free if says_outcomes(cells(name))]
    verdicts.sort(key=lambda name: usual_name(name) not in GUESSED_VERDICTS)
    full = [name for name in verdicts if not any(map(is_missing, cells(name)))]
    names_of = [name for name in free if name not in verdicts and not are_rates(cells(name))]
    texts = [name for name in names_of if _grouping(cells(name))]
    texts.sort(key=lambda name: (usual_name(name) not in GUESSED_TASKS, _constant(cells(name))))
    filled = [(name, cell) for name in failures for cell in cells(name) if not is_missing(cell)]
    good = [(name, cell) for name, cell in filled if outcome_of(cell) is Outcome.FAILED]
    tests = [f"{name}=={str(cell).lower()}" for name, cell in good[:1]]
    tests += [
        f"{name}>={0.8 * scale_of(max(map(_number, cells(name)), default=1)):g}"
        for name in free
        if "score" in usual_name(name)
    ]
    fit = {"passed": [*full, *verdicts], "task": texts, "pass_if": tests}
    return {meaning: columns[0] for meaning, columns in fit.items() if columns}


FAILURES = frozenset(
    (
        *("failed", "fail", "failure", "is_failed", "has_failed", "errored", "has_error"),
        *("exit_code", "exitcode", "returncode", "return_code", "exit_status", "rc"),
    )
)
"""Columns in which 0 or no is good: taken as the verdict they would say the opposite."""


def says_outcomes(values: Iterable[Any]) -> bool:
    """Whether every cell that holds something says how a trial ended, and some cell does.

    >>> says_outcomes(["yes", "", "no"]), says_outcomes([1, 2]), says_outcomes([None])
    (True, False, False)
    """
    some = False
    for value in values:
        if not is_missing(value):
            if outcome_of(value) is None:
                return False
            some = True
    return some


def _chosen_guess(
    mapping: ColumnMap, meaning: str, fit: Mapping[str, Sequence[Any]], what: str
) -> ColumnMap:
    """The first column that fits; refused if another one says something else."""
    if not fit:
        return mapping
    first, *others = fit
    if any(fit[other] != fit[first] for other in others):
        ways = ", ".join(f"`{meaning}={short(name)!r}`" for name in fit)
        raise UnknownFile(f"no column surely {what}, and several may: say {ways}")
    return replace(mapping, **{meaning: first})


def _grouping(values: Sequence[Any]) -> list[int]:
    """For each row the first row with the same name; empty if the cells are no names."""
    first: dict[Any, int] = {}
    groups = []
    for row, value in enumerate(values):
        if not isinstance(value, (str, int)) or isinstance(value, bool) or is_missing(value):
            return []
        groups.append(first.setdefault(value, row))
    return groups


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
    columns: dict[str, str], names: Sequence[str], mapping: ColumnMap, differ: Differ
) -> list[str]:
    """Add the column of questions to the task, where rows of one "task" ask different ones."""
    if mapping.task or "trial" in columns:
        return []
    kind = columns["task"]
    within = [columns[meaning] for meaning in ("system", "task") if meaning in columns]
    for column in _unused(names, QUESTIONS, columns):
        if differ(column, within):
            columns["task"] = f"{kind},{column}"
            note = f'rows of one "{short(kind)}" differ in "{short(column)}"'
            return [f"{note}, so both name the task (`task={short(kind)!r}` takes the first alone)"]
    return []


def _tell_systems_apart(
    columns: dict[str, str], names: Sequence[str], mapping: ColumnMap, cells: Cells, differ: Differ
) -> list[str]:
    """Add columns such as "model" and "condition" to the system, where a task has several."""
    if mapping.system or "system" in mapping.left_out():
        return []
    parts = [columns["system"]] if "system" in columns else []
    task = name_parts(names, columns["task"])
    for column in _unused(names, CONFIGURATIONS, columns):
        if _names_agents(column, cells(column)) and differ(column, [*parts, *task]):
            parts.append(column)
    added = parts[1:] if "system" in columns else parts
    if not added:
        return []
    columns["system"] = ",".join(parts)
    pooled = (
        f"`system={short(parts[0])!r}` takes the first alone"
        if parts[1:]
        else "`system=''` pools them"
    )
    names = f'"{short(columns["system"])}"'
    return [f"rows of one task differ in {few(added)}, so {names} names the agent ({pooled})"]


def model_of(
    names: Iterable[str], columns: Mapping[str, str], mapping: ColumnMap, cells: Cells
) -> str | None:
    """The one model of a table whose agents have another name: files may differ in it.

    >>> table = {"agent": ["a", "a"], "task": ["x", "y"], "model": ["m", "m"]}
    >>> columns = {"system": "agent", "task": "task"}
    >>> model_of(list(table), columns, ColumnMap(), table.__getitem__)
    'm'
    """
    if "system" not in columns or mapping.system or mapping.name:
        return None
    for column in _unused(names, MODELS, columns):
        distinct = set(map(str, cells(column)))
        return distinct.pop().replace("/", "-") if len(distinct) == 1 else None
    return None


def _names_agents(column: str, values: Sequence[Any]) -> bool:
    """Whether a column can be part of an agent's name: no prompts, no settings of one row each."""
    if holds_prompts(values):
        return False
    return usual_name(column) in ALIASES["system"] or len(set(values)) < len(values)


def _unused(names: Iterable[str], known: Sequence[str], columns: Mapping[str, str]) -> list[str]:
    """The columns whose names are known and that mean nothing else, in the order of the names."""
    taken = {part for column in columns.values() for part in (column, *column.split(","))}
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


def condition_cells(names: Collection[str], column: str, cells: Cells) -> list[tuple[str, ...]]:
    """The conditions that columns hold, in words; a row with an empty cell is under none of it.

    >>> table = {"user": ["terse", None], "day": [1, 2]}
    >>> condition_cells(table, "user,day", table.__getitem__)
    [('user=terse', 'day=1'), ('day=2',)]
    """
    parts = name_parts(names, column)
    return [
        tuple(f"{part}={str(cell).strip()}" for part, cell in row if not is_missing(cell))
        for row in (zip(parts, row, strict=True) for row in zip(*map(cells, parts), strict=True))
    ]


MOST_ARMS = 20
"""A column with more different values names no agents and no conditions."""


def _unfit_system(
    columns: Mapping[str, str], mapping: ColumnMap, cells: Cells
) -> tuple[str, str] | None:
    """A column that is called like the agent's name and holds prompts, with a note on it."""
    column = columns.get("system")
    if column is None or mapping.system or not holds_prompts(cells(column)):
        return None
    return column, (
        f'column "{short(column)}" holds prompts, not the name of an agent, and was left out '
        f"(`system={short(column)!r}` takes it anyway)"
    )


def _unfit_task(
    columns: Mapping[str, str], names: Iterable[str], mapping: ColumnMap, cells: Cells
) -> tuple[str, str] | None:
    """A column "task" beside the column of ids that does tell tasks apart, with a note on it.

    It holds objects, or the name of the benchmark in every row: read as the task, all rows would
    be runs of one.
    """
    column = columns.get("task")
    if column is None or mapping.task or usual_name(column) in TASK_IDS:
        return None
    ids = [name for name in names if usual_name(name) in TASK_IDS and name not in columns.values()]
    if not ids:
        return None
    values = cells(column)
    if any(isinstance(value, (Mapping, list)) for value in values):
        holds = "holds objects"
    elif "trial" not in columns and _constant(values) and not _constant(cells(ids[0])):
        holds = "is the same in every row"
    else:
        return None
    instead = short(ids[0])
    return column, (
        f'column "{short(column)}" {holds}, so "{instead}" is read as the task '
        f"(`task={short(column)!r}` takes the other)"
    )


def _unfit_feature(
    columns: Mapping[str, str], mapping: ColumnMap, cells: Cells
) -> tuple[str, str] | None:
    """A column that is called like a number of the run and holds objects, with a note on it."""
    chosen = mapping.chosen()
    for meaning in FEATURES:
        column = columns.get(meaning)
        if column is None or meaning in chosen:
            continue
        first = next((cell for cell in cells(column) if cell is not None), None)
        if isinstance(first, Mapping):
            return column, f'column "{short(column)}" holds objects, not numbers, and was left out'
    return None


def _unfit_seconds(
    columns: Mapping[str, str], mapping: ColumnMap, cells: Cells
) -> tuple[str, str] | None:
    """A column of durations without a unit that holds milliseconds by its size, with a note on it.

    Programs in JavaScript count milliseconds: whole numbers, and read as seconds hours.
    """
    column = columns.get("seconds")
    if column is None or mapping.seconds or usual_name(column) not in ("duration", "elapsed"):
        return None
    numbers = sorted(_number(cell) for cell in cells(column) if not is_missing(cell))
    if not numbers or any(number % 1 for number in numbers):
        return None
    median = numbers[len(numbers) // 2]
    if median <= LONGEST_USUAL:
        return None
    return column, (
        f'column "{short(column)}" was left out: whole numbers around {median:,.0f} may be '
        f"milliseconds (call it {short(column)}_ms if they are; `seconds={short(column)!r}` takes "
        "them as seconds)"
    )


def share_cells(values: Iterable[Any]) -> list[float]:
    """The numbers of a column of shares of 1; none if a cell is anything else.

    >>> share_cells(["0.5", None, 1]), share_cells([3, 0.5])
    ([0.5, 1.0], [])
    """
    try:
        numbers = [as_number(value) for value in values if not is_missing(value)]
    except ValueError:
        return []
    return numbers if all(0 <= number <= 1 for number in numbers) else []


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
    texts = (cell.strip() for cell in distinct if isinstance(cell, str))
    return any(
        "\n" in text or len(text) > LONGEST_AGENT or len(text.split()) >= MOST_WORDS
        for text in texts
    )


# Asked of every file of a folder, and most have the same columns.
@lru_cache(maxsize=64)
def may_aggregate(columns: tuple[str, ...]) -> bool:
    """Whether a column is called like a count or a rate of runs."""
    return any(usual_name(column) in COUNTS or usual_name(column) in RATES for column in columns)


def aggregate_column(
    columns: Iterable[str], by_meaning: Mapping[str, str], mapping: ColumnMap, cells: Cells
) -> str | None:
    """The column that shows that a table has one row for all runs of a task, if there is one."""
    if "trial" in by_meaning or mapping.chosen() or mapping.pass_if:
        return None
    for column in columns:
        usual = usual_name(column)
        if usual in COUNTS and any(_number(cell) > 1 for cell in cells(column)):
            return column
        if usual in RATES and any(0 < _number(cell) < 1 for cell in cells(column)):
            return column
    return None


def rate_column(columns: Iterable[str], cells: Cells) -> str | None:
    """The first column that is called like a rate of several runs, and holds such."""
    named = (name for name in columns if usual_name(name) in RATES)
    return next((name for name in named if are_rates(cells(name))), None)


def are_rates(values: Iterable[Any]) -> bool:
    """Whether all cells are numbers and some lie between 0 and 1: no names, and no verdicts.

    >>> are_rates(["0.71", "1"]), are_rates([1, 0]), are_rates(["0.5", "airline"])
    (True, False, False)
    """
    try:
        numbers = [as_number(value) for value in values]
    except ValueError:
        return False
    return any(0 < number < 1 for number in numbers)


def are_means(
    columns: Collection[str], by_meaning: Mapping[str, str], mapping: ColumnMap, cells: Cells
) -> bool:
    """Whether scores are likely means: a row for each task, and none with the 1 that would pass.

    >>> table = {"model": ["a", "b"], "task": ["x", "x"], "score": [0.42, 0.61]}
    >>> are_means(table, find_columns(table, USUAL), USUAL, table.__getitem__)
    True
    """
    score = by_meaning.get("score")
    if (
        score is None
        or mapping.chosen()
        or mapping.pass_if
        or {"passed", "trial"} & by_meaning.keys()
    ):
        return False
    scores = [cell for cell in cells(score) if not is_missing(cell)]
    if len(scores) < 2 or not are_rates(scores) or max(map(as_number, scores)) >= 1:
        return False
    names = [
        name_cells(columns, by_meaning[m], cells) for m in ("system", "task") if m in by_meaning
    ]
    rows = [tuple(map(str, row)) for row in zip(*names, strict=True)]
    return len(set(rows)) == len(rows)


def row_outcomes(
    tests: Sequence[ColumnCondition],
    columns: Mapping[str, str],
    cells: Cells,
    scores: Sequence[Any],
) -> list[Outcome | None]:
    """How each row ended; None if nothing says so.

    The user's comparisons decide, else the column of verdicts, else a score of 1. A row whose error
    column names an error is errored, unless its verdict says that it passed.
    """
    if tests:
        compared = [cells(columns.get(test.column, test.column)) for test in tests]
        stated = [_holds(tests, row) for row in zip(*compared, strict=True)]
    elif "passed" in columns:
        stated = outcomes_of(cells(columns["passed"]))
    else:
        stated = [_by_score(score) for score in scores]
    if "error" not in columns:
        return stated
    errors = map(error_text, cells(columns["error"]))
    return [
        outcome if error is None or outcome is Outcome.PASSED else Outcome.ERRORED
        for outcome, error in zip(stated, errors, strict=True)
    ]


def scale_notes(
    tests: Iterable[ColumnCondition], cells: Cells, fault: Callable[[str], Exception]
) -> list[str]:
    """Notes on bars of at most 1 for columns that go beyond 1: nearly any score of 100 passes 0.8.

    Raised as a fault if the bar surely is of another scale: beyond 10, with nothing between 0 and
    1, `>=0.8` would mean no more than `>=1`.

    >>> table = {"points": [2.5, 4, 0.5]}
    >>> scale_notes(parse_pass_if("points>=0.8"), table.__getitem__, ValueError)
    ["points reaches 4: is 0.8 on its scale? 'points>=4' is 80% of 5 (`pass_if`)"]
    """
    notes = []
    for test in tests:
        bar = test.value
        if not isinstance(bar, float) or not 0 < bar <= 1 or test.symbol not in (">", ">="):
            continue
        if bar == 1 and "score" not in usual_name(test.column):  # a count, such as turns>=1
            continue
        numbers = [_number(cell) for cell in cells(test.column)]
        high = max(numbers, default=0.0)
        if high <= 1:
            continue
        column = short(test.column)
        top = scale_of(high)
        meant = f"{column}{test.symbol}{bar * top:g}"
        if high > 10 and bar < 1 and not any(0 < number < 1 for number in numbers):
            raise fault(
                f'column "{column}" reaches {high:g}, so nearly every trial passes a bar of '
                f"{bar:g}: write `pass_if={meant!r}` for {100 * bar:g}% of {top:g}, or "
                f"`pass_if='{column}>=1'` if you mean it"
            )
        share = f"{meant!r} is {100 * bar:g}% of {top:g}"
        notes.append(f"{column} reaches {high:g}: is {bar:g} {OTHER_SCALE} {share} (`pass_if`)")
    return notes


def scale_of(high: float) -> float:
    """The end of the usual scale that a greatest number belongs to.

    >>> scale_of(0.7), scale_of(4), scale_of(93)
    (1.0, 5.0, 100.0)
    """
    return next((end for end in (1.0, 5.0, 10.0, 100.0, 1000.0) if high <= end), high)


def unmatched_word(
    tests: Iterable[ColumnCondition], seen_words: Mapping[str, Collection[str]]
) -> ColumnCondition | None:
    """The comparison with a word that its column never holds: likely a typo; None if there is none.

    >>> unmatched_word(parse_pass_if("status==succes"), {"status": {"success", "failed"}}).value
    'succes'
    """
    for test in tests:
        words = seen_words.get(test.column)
        if words and isinstance(test.value, str) and test.value.lower() not in words:
            return test
    return None


def letter_scores(columns: Mapping[str, str], cells: Cells) -> list[float | None] | None:
    """The scores that Inspect's letters mean, in a table without other scores."""
    if "score" in columns:
        return letter_grades(cells(columns["score"]))
    return letter_grades(cells(columns["passed"])) if "passed" in columns else None


def find_conflict(
    names: Iterable[str], columns: Mapping[str, str], cells: Cells
) -> Conflict | None:
    """The first row that passed by one column and failed by another, both surely verdicts.

    >>> table = {"passed": [True, True], "outcome": ["pass", "fail"]}
    >>> find_conflict(table, {"passed": "outcome"}, table.__getitem__).row
    1
    """
    if "passed" not in columns:
        return None
    chosen = columns["passed"]
    others = [name for name in verdict_columns(names) if name != chosen and not is_weak(name)]
    opposite = {Outcome.PASSED: Outcome.FAILED, Outcome.FAILED: Outcome.PASSED}
    own = outcomes_of(cells(chosen)) if others else []
    for other in others:
        for row, (outcome, against) in enumerate(zip(own, outcomes_of(cells(other)), strict=True)):
            if outcome is not None and opposite.get(outcome) is against and against is not None:
                shown = cells(chosen)[row], cells(other)[row]
                return Conflict(row=row, columns=(chosen, other), cells=shown)
    return None


def _number(cell: Any) -> float:
    try:
        return 0.0 if is_missing(cell) else as_number(cell)
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


# The names that people use for columns, and the user's own choice.

ALIASES: Mapping[str, tuple[str, ...]] = {
    "system": (
        *("system", "agent", "agent_name", "agent_id", "model", "model_name", "model_id", "llm"),
        "system_name",
    ),
    "task": (
        *("task", "task_id", "task_name", "instance_id", "case", "case_id", "case_name"),
        *("test_case", "test_id", "test_name", "test", "example_id", "sample_id"),
        *("problem", "problem_id", "question_id", "item_id", "scenario", "scenario_id"),
    ),
    "trial": tuple(
        f"{word}{end}"
        for word in (
            *("trial", "run", "epoch", "repeat", "repetition", "rep", "attempt", "try"),
            *("iteration", "replicate", "rollout"),
        )
        for end in ("", "_id", "_index", "_idx", "_number", "_num", "_no", "_nr")
    ),
    "passed": (
        *("outcome", "passed", "pass", "success", "successful", "succeeded", "resolved"),
        *("is_resolved", "correct", "is_correct", "solved", "is_success", "is_passed", "pass_fail"),
        *("pass/fail", "verdict", "status", "result"),
    ),
    "score": ("score", "reward", "partial_credit", "mean_score", "value"),
    "error": ("error", "error_kind", "error_type", "error_message", "exception", "errored"),
    "seed": ("seed", "random_seed"),
    "tokens": ("tokens", "total_tokens", "tokens_total", "num_tokens"),
    "tokens_in": ("tokens_in", "input_tokens", "prompt_tokens", "total_input_tokens"),
    "tokens_out": ("tokens_out", "output_tokens", "completion_tokens", "total_output_tokens"),
    "cost": ("cost", "cost_usd", "total_cost", "total_cost_usd", "usd", "agent_cost"),
    "seconds": (
        *("seconds", "duration_s", "duration_seconds", "duration", "latency_s", "elapsed_s"),
        *("elapsed", "wall_time_s", "runtime_s", "time_s", "duration_ms", "latency_ms"),
        "elapsed_ms",
    ),
    "turns": ("turns", "turn_count", "num_turns", "n_turns", "steps", "num_steps"),
    "tool_calls": ("tool_calls", "num_tool_calls", "n_tool_calls", "tool_call_count"),
    "tools": ("tools",),
    "level": ("level",),
    "family": ("family", "task_family"),
    "weight": ("weight", "task_weight"),
    "tags": ("tags", "tag", "service", "category", "domain", "suite"),
    "started": ("started", "started_at", "start_time", "timestamp", "created_at"),
    "stated_confidence": ("stated_confidence", "agent_confidence", "self_confidence"),
    "at": ("at",),
    "human_labels": ("human_labels",),
    "label_by": ("label_by",),
    "label_chosen": ("label_chosen",),
}
"""The names that columns have in practice, the surest first."""

VERDICTS = ("passed", "score")
"""The meanings of columns that say how a run ended."""

TRANSCRIPTS = (
    *("transcript", "messages", "conversation", "trajectory", "traj", "dialogue", "dialog"),
    *("chat_history", "output", "model_output", "response", "completion", "answer"),
)
"""The names of a column that holds transcripts, the surest first."""

SEVERAL = ("task", "system", "at")
"""What several columns may make up together, joined by commas."""

_FIELDS = {"at": "factor"}
"""What the user's choice calls a meaning, if not the same."""

_LEFT_OUT = tuple(_FIELDS.get(meaning, meaning) for meaning in ALIASES if meaning != "task")
"""What a table need not have."""

MOST_KEPT = 200
"""Tables with more columns than this are rare, and their columns are found anew each time."""

_LONGEST_KEPT = 200
"""Names of columns that are longer are rare, and are not remembered."""


AT_RANDOM, BY_VERDICT, BY_TASK = "random", "verdict", "task"
WAYS = (AT_RANDOM, BY_VERDICT, BY_TASK)
"""How a trial may have been chosen to be labelled, so that its label says something of others.

At random among all trials; at random among those that the judge passed, and those it failed; or as
one of several random trials of a task that was drawn at random.
"""

MISSING_RULES = ("fail", "error", "exclude")
"""What a row without a verdict may count as."""


def _column(meaning: str, *, option: str | None = None, metavar: str = "COLUMN") -> Any:
    """A column that users may name; `option` is what the command line calls it, if not the same."""
    return field(default=None, metadata={"help": meaning, "option": option, "metavar": metavar})


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnMap:
    """Which column, field or attribute says what, where the usual names do not.

    `task` and `system` may name several columns, joined by commas. `pass_if` is a comparison such
    as `score>=0.8`. `scorer` chooses among several scores in logs that have more than one. `name`
    is what to call the system of files that hold only one. `transcript` is the column with the
    transcripts, read only if these are asked for. An empty name leaves out what a usual name
    would find: `cost=""`. `reference_level` is what
    gates judge of each factor. `missing` says what a row without a verdict counts as, `error_words`
    which verdicts say that an attempt broke.

    The options of commands and the table of columns in a configuration are made from the fields.
    """

    scorer: str | None = _column("Which score to use, if a log has several.", metavar="NAME")
    pass_if: str | None = _column("When an attempt passes: 'score>=0.8'.", metavar="TEST")
    task: str | None = _column("Column that names the task; or several, joined by commas.")
    trial: str | None = _column("Column that numbers the attempts at a task.")
    passed: str | None = _column("Column that says whether the attempt passed.", option="pass")
    score: str | None = _column("Column with a score from 0 to 1.")
    system: str | None = _column("Column that names the agent; or several, joined by commas.")
    error: str | None = _column("Column with the error of an attempt that broke.")
    seed: str | None = _column("Column with the seed of the attempt.", option="seed-column")
    tags: str | None = _column("Column with tags.")
    family: str | None = _column(
        "Column with the family, or a pattern of task names: '^([a-z]+)-'."
    )
    factor: str | None = _column(
        "Column with a condition of the attempt, such as the user; several, joined by commas; or a "
        "pattern of task names: '(?P<task>.+)#(?P<wording>.+)'."
    )
    reference_level: str | None = _column(
        "Condition that is judged, and that others are compared with: user=plain; of several "
        "factors, joined by commas.",
        option="reference-level",
        metavar="FACTOR=LEVEL",
    )
    weight: str | None = _column("Column with the weight of the task.")
    stated_confidence: str | None = _column(
        "Column with what the agent said of its own success, from 0 to 1."
    )
    level: str | None = _column("Column with the level: function, task or system.")
    cost: str | None = _column(
        "Column with the cost in dollars, or '' to ignore it (each column but the task takes '')."
    )
    seconds: str | None = _column("Column with the seconds the attempt took.")
    tokens: str | None = _column("Column with the tokens of the attempt, in and out.")
    tokens_in: str | None = _column("Column with the tokens the model read.")
    tokens_out: str | None = _column("Column with the tokens the model wrote.")
    turns: str | None = _column("Column with the turns of the attempt.")
    tool_calls: str | None = _column("Column with the number of tool calls.")
    tools: str | None = _column("Column with the names of the tools that were called.")
    started: str | None = _column(
        "Column with the time the attempt began.", option="started-column"
    )
    human_labels: str | None = _column(
        "Column with a person's label: passed or failed, empty where nobody looked.", option="label"
    )
    label_by: str | None = _column("Column with the person who labelled.", option="label-by")
    label_chosen: str | None = _column(
        "How labelled trials were chosen: random, verdict, task, or a column that says it.",
        option="label-chosen",
    )
    transcript: str | None = _column(
        "Column with the transcript: messages as JSON, or plain text.", option="transcript-column"
    )
    missing: str | None = _column(
        "What a row without a verdict is: fail, error or exclude.", metavar="WHAT"
    )
    error_words: str | None = _column(
        "Verdicts that say an attempt broke, joined by commas: 'timeout,skipped'.", metavar="WORDS"
    )
    name: str | None = None

    def __post_init__(self) -> None:
        if self.missing not in (None, *MISSING_RULES):
            rule = "must be fail, error or exclude"
            raise ArgumentError("missing", rule, self.missing)
        for column in fields(self):
            value = getattr(self, column.name)
            if value == "" and column.name in _LEFT_OUT:
                continue
            if value is not None and (not isinstance(value, str) or not value.strip()):
                raise ArgumentError(
                    f"ColumnMap.{column.name}", "must be a text that is not empty", value
                )

    def chosen(self) -> dict[str, str]:
        """The columns the user named, by what they mean.

        >>> ColumnMap(task="question", pass_if="score>=0.8").chosen()
        {'task': 'question'}
        """
        return dict(_chosen(self))

    @property
    def family_pattern(self) -> re.Pattern[str] | None:
        r"""The pattern over task names whose first group is the family, where `family` is one.

        A name with a parenthesis is taken for a pattern, any other for a column.

        >>> ColumnMap(family=r"^(\w+)-").family_pattern.match("refund-12")[1]
        'refund'
        >>> ColumnMap(family="service").family_pattern
        """
        if self.family is None or "(" not in self.family:
            return None
        try:
            return re.compile(self.family)
        except re.error as error:
            rule = f"must be a column, or a pattern with one group ({error})"
            raise ArgumentError("family", rule, self.family) from None

    @property
    def factor_pattern(self) -> re.Pattern[str] | None:
        r"""The pattern over task names whose groups are the task and its conditions, by name.

        >>> ColumnMap(factor=r"(?P<task>.+)#(?P<wording>\w+)").factor_pattern.groups
        2
        >>> ColumnMap(factor="user").factor_pattern
        """
        if self.factor is None or "(" not in self.factor:
            return None
        rule = "must be a column, or a pattern such as '(?P<task>.+)#(?P<wording>.+)'"
        try:
            pattern = re.compile(self.factor)
        except re.error as error:
            raise ArgumentError("factor", f"{rule} ({error})", self.factor) from None
        if "task" not in pattern.groupindex or len(pattern.groupindex) < 2:
            raise ArgumentError("factor", rule, self.factor)
        return pattern

    def left_out(self) -> frozenset[str]:
        """What the user does not want, whatever the columns are called."""
        return _left_out(self)


USUAL = ColumnMap()
"""Nothing but the usual names."""


# Needed several times for each of thousands of small files.
@lru_cache(maxsize=64)
def _chosen(mapping: ColumnMap) -> dict[str, str]:
    return {
        name: value
        for name in ALIASES
        if (value := getattr(mapping, _FIELDS.get(name, name)))
        and not (name == "family" and mapping.family_pattern)
        and not (name == "at" and mapping.factor_pattern)
        and not (name == "label_chosen" and value in WAYS)
    }


@cache
def _left_out(mapping: ColumnMap) -> frozenset[str]:
    return frozenset(name for name in ALIASES if getattr(mapping, _FIELDS.get(name, name)) == "")


def find_columns(names: Iterable[str], mapping: ColumnMap) -> dict[str, str]:
    """Which column holds what: the user's choice, then the first usual name that occurs.

    >>> find_columns(["Agent", "taskId", "ok"], ColumnMap(passed="ok"))
    {'passed': 'ok', 'system': 'Agent', 'task': 'taskId'}
    """
    names = tuple(names)
    search = _find_columns if len(names) <= MOST_KEPT else _find_columns.__wrapped__
    return dict(search(names, mapping))


# A folder holds thousands of tables with the same columns.
@lru_cache(maxsize=64)
def _find_columns(names: tuple[str, ...], mapping: ColumnMap) -> dict[str, str]:
    left_out = mapping.left_out()
    columns = mapping.chosen()
    by_usual_name: dict[str, str] = {}
    for name in names:
        by_usual_name.setdefault(usual_name(name), name)
    for meaning, aliases in ALIASES.items():
        if meaning not in columns and meaning not in left_out:
            for alias in aliases:
                if alias in by_usual_name and by_usual_name[alias] not in columns.values():
                    columns[meaning] = by_usual_name[alias]
                    break
    if (
        "at" in columns and not mapping.factor
    ):  # passhat's own column, which it writes beside "base"
        if "base" in by_usual_name:
            columns["base"] = by_usual_name["base"]
        else:
            del columns["at"]
    return columns


MAY_SAY_IT_RAN = ("success", "successful", "succeeded", "status", "ok")
"""Columns that are also called so where they say that a run came to its end."""

WEAK_VERDICTS = ("status", "result")
"""Columns that may say whether a run completed rather than whether it passed."""


def verdict_columns(names: Iterable[str]) -> list[str]:
    """Every column whose name says that it holds verdicts, the surest first.

    >>> verdict_columns(["status", "task", "Passed"])
    ['Passed', 'status']
    """
    by_usual_name = {usual_name(name): name for name in names}
    return [by_usual_name[alias] for alias in ALIASES["passed"] if alias in by_usual_name]


def is_weak(column: str) -> bool:
    """Whether a column's name leaves open that it holds verdicts."""
    return usual_name(column) in WEAK_VERDICTS


def transcript_column(names: Iterable[str], mapping: ColumnMap) -> str | None:
    """The column that holds transcripts: the user's choice, then the first usual name.

    >>> transcript_column(["task", "ok", "Response", "messages"], ColumnMap())
    'messages'
    """
    taken = set(find_columns(names := list(names), mapping).values())
    by_usual_name = {usual_name(name): name for name in names if name not in taken}
    usual = (by_usual_name[name] for name in TRANSCRIPTS if name in by_usual_name)
    return mapping.transcript or next(usual, None)


def is_table(names: Iterable[str], mapping: ColumnMap) -> bool:
    """Whether these columns say the task and the outcome of each row."""
    columns = find_columns(names, mapping)
    return "task" in columns and (
        "passed" in columns or "score" in columns or bool(mapping.pass_if)
    )


def has_column(names: Collection[str], column: str) -> bool:
    """Whether there is such a column, or one that a dotted path begins with."""
    return column in names or column.partition(".")[0] in names


def name_parts(names: Collection[str], column: str) -> list[str]:
    """The columns that make up the name of a task or a system: one, or those that commas join.

    >>> name_parts(["suite", "case"], "suite,case")
    ['suite', 'case']
    """
    if has_column(names, column):
        return [column]
    return [part.strip() for part in column.split(",")]


def leave_out(meaning: str) -> str:
    """How to do without a column that cannot be read.

    >>> leave_out("tokens_in")
    "leave it out with `tokens_in=''`"
    """
    return f"leave it out with `{meaning}=''`"


def milliseconds(column: str) -> bool:
    """Whether a column of durations says that it counts milliseconds."""
    return usual_name(column).endswith("_ms")


def missing_column(name: str, meaning: str, column: str, names: Iterable[str]) -> UnknownFile:
    """The error of a chosen column that the file does not have."""
    known = [str(known) for known in names]
    near = closest(column, known)
    hint = f' Did you mean "{short(near)}"?' if near else ""
    return UnknownFile(
        f'{name}: has no column "{short(column)}" for `{meaning}`; it has {few(known)}.{hint}'
    )


def usual_name(name: str) -> str:
    """A column's name in lower case with underscores, as the usual names are written.

    >>> usual_name("taskId"), usual_name("Passed?"), usual_name("Try #"), usual_name("Run No.")
    ('task_id', 'passed', 'try', 'run_no')
    """
    known = _usual_name if len(name) <= _LONGEST_KEPT else _usual_name.__wrapped__
    return known(name)


@lru_cache(maxsize=1024)
def _usual_name(name: str) -> str:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.strip().rstrip("?#:. "))
    return re.sub(r"[\s\-.]+", "_", words).lower()


# What a cell says about how a trial ended: words, numbers, and the user's own comparison.

WORDS: Mapping[str, Outcome] = {
    **dict.fromkeys(
        (
            *("1", "1.0", "true", "t", "yes", "y", "pass", "passed", "success", "succeeded"),
            *("successful", "resolved", "solved", "correct", "c", "ok", "accepted"),
            *("✓", "✔", "✔\ufe0f", "✅", "☑", "☑\ufe0f"),
        ),
        Outcome.PASSED,
    ),
    **dict.fromkeys(
        (
            *("0", "0.0", "false", "f", "no", "n", "fail", "failed", "failure", "unsuccessful"),
            *("unresolved", "unsolved", "incorrect", "i", "wrong", "rejected", "not_attempted"),
            *("✗", "✘", "✖", "✖\ufe0f", "❌", "✕"),
        ),
        Outcome.FAILED,
    ),
    **dict.fromkeys(
        ("error", "errored", "err", "infrastructure_error", "crashed", "exception"), Outcome.ERRORED
    ),
}
"""The words that say how a trial ended, in lower case."""

LETTER_GRADES: Mapping[str, float] = {"c": 1.0, "p": 0.5, "i": 0.0, "n": 0.0}
"""Inspect's letters: correct, partly correct, incorrect, no answer."""

NO_ERROR = frozenset(("", "0", "0.0", "false", "no", "none", "null", "nan", "ok", "unset"))
"""The words of an error column that mean there was none."""

MISSING = frozenset(("", "nan", "none", "null", "na", "n/a"))

_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "!=": operator.ne,
    "==": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
    "=": operator.eq,
}
_COMPARISON = re.compile(r"\s*([^<>=!]+?)\s*(>=|<=|!=|==|>|<|=)\s*([^<>=!]+?)\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnCondition:
    """One comparison of a column with a number or a word."""

    column: str
    symbol: str
    value: float | str

    def holds(self, cell: object) -> bool:
        """Whether the cell satisfies it.

        ValueError for a cell that is no number, if it is compared with one.

        >>> parse_pass_if("score >= 0.8")[0].holds("0.85")
        True
        """
        compare = _OPERATORS[self.symbol]
        if isinstance(self.value, float):
            return compare(as_number(cell), self.value)
        return compare(str(cell).strip().lower(), self.value.lower())


def parse_pass_if(text: str) -> tuple[ColumnCondition, ...]:
    """The comparisons of `pass_if`, all of which must hold; nothing in it is executed.

    >>> parse_pass_if("score>=0.8 and status==done")[1]
    ColumnCondition(column='status', symbol='==', value='done')
    """
    return tuple(_comparison(part, text) for part in re.split(r"\s+and\s+|\s*&&\s*", text))


def outcome_of(cell: object) -> Outcome | None:
    """How a trial ended by its cell, or None for a value that says nothing known.

    >>> outcome_of("PASS"), outcome_of(0.0), outcome_of("maybe")
    (<Outcome.PASSED: 1>, <Outcome.FAILED: 0>, None)
    """
    return _meaning(str(cell).strip().lower())


def _meaning(word: str) -> Outcome | None:
    """What a word in lower case says; a word beside a mark, if both say it ("0 failed" counts).

    >>> _meaning("passed ✅"), _meaning("✅ failed"), _meaning("0 failed")
    (<Outcome.PASSED: 1>, None, None)
    """
    parts = word.split()
    if word in WORDS or len(parts) != 2 or word.isascii() or len(word) > _LONGEST_VERDICT:
        return WORDS.get(word)
    meanings = {WORDS.get(part) for part in parts}
    return meanings.pop() if len(meanings) == 1 else None


_LONGEST_VERDICT = 40


def letter_grades(cells: Iterable[object]) -> list[float | None] | None:
    """The scores of a column of Inspect's letters, None for an empty cell.

    None for any other column: P means "passed" beside F, and "partly correct" beside C, I or N.

    >>> letter_grades(["C", "P", ""]), letter_grades(["P", "F"])
    ([1.0, 0.5, None], None)
    """
    words = _lower_words(cells)
    seen_words = set(words) - {""}
    if not seen_words <= LETTER_GRADES.keys() or not seen_words & {"c", "i"}:
        return None
    return [LETTER_GRADES.get(word) for word in words]


def outcomes_of(cells: Iterable[object]) -> list[Outcome | None]:
    """How trials ended by their cells; None for a cell that holds nothing, or nothing known.

    >>> [one.name for one in outcomes_of(["P", "F", "F"])]
    ['PASSED', 'FAILED', 'FAILED']
    """
    words = _lower_words(cells)
    known: dict[str, Outcome | None] = {word: _meaning(word) for word in set(words)}
    if "p" in known:  # of Inspect's letters only "correct" passes
        letters = known.keys() - {""} <= LETTER_GRADES.keys() and known.keys() & {"c", "i"}
        known["p"] = Outcome.FAILED if letters else Outcome.PASSED if "f" in known else None
    return [known[word] for word in words]


def _lower_words(cells: Iterable[object]) -> list[str]:
    """The words of cells, empty for one that holds nothing; each different text looked at once."""
    every = list(cells)

    def word(cell: object) -> str:
        return "" if is_missing(cell) else str(cell).strip().lower()

    if set(map(type, every)) in ({str}, {bool}):
        return list(map({cell: word(cell) for cell in set(every)}.__getitem__, every))
    return list(map(word, every))


def missing_at(cells: Sequence[object]) -> int | None:
    """The place of the first cell that holds nothing; each different word is looked at once."""
    try:
        if not any(map(is_missing, set(cells))):
            return None
    except TypeError:
        pass  # a cell that has no hash
    return next((place for place, cell in enumerate(cells) if is_missing(cell)), None)


def is_missing(cell: object) -> bool:
    """Whether a cell holds nothing: None, NaN, or an empty word."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return True
    return isinstance(cell, str) and cell.strip().lower() in MISSING


def error_text(cell: object) -> str | None:
    """What an error column says, or None if it says that there was no error."""
    if cell is None or cell != cell or cell is False:
        return None
    text = str(cell).strip()
    return None if text.lower() in NO_ERROR else ("error" if cell is True else text)


def as_number(cell: object) -> float:
    """A cell as a number, NaN where it holds nothing; ValueError for anything else."""
    if isinstance(cell, float):
        return float(cell)
    if is_missing(cell):
        return math.nan
    if isinstance(cell, (int, str, SupportsFloat)):  # the last is a Decimal of Parquet
        with contextlib.suppress(ValueError, OverflowError):  # hundreds of digits overflow
            return float(cell)
    raise ValueError(f"{short_value(cell)} is not a number")


def score_of(cell: object) -> float:
    """A cell as a score: one of Inspect's letters, else as `number` reads it.

    >>> score_of("P"), score_of("0.7")
    (0.5, 0.7)
    """
    grade = LETTER_GRADES.get(cell.strip().lower()) if isinstance(cell, str) else None
    return as_number(cell) if grade is None else grade


def seen(cells: Iterable[object], most: int = 8) -> str:
    """The distinct values of a column, for a message."""
    shown = ("nothing" if is_missing(cell) else repr(cell)[:40] for cell in cells)
    distinct = list(dict.fromkeys(shown))
    return ", ".join(distinct[:most]) + (", ..." if len(distinct) > most else "")


def _comparison(part: str, text: str) -> ColumnCondition:
    match = _COMPARISON.fullmatch(part)
    if match is None:
        rule = "must be comparisons such as 'score>=0.8', joined by 'and'"
        raise ArgumentError("pass_if", rule, text)
    column, symbol, value = match.groups()
    try:
        return ColumnCondition(column=column, symbol=symbol, value=float(value))
    except ValueError:
        if symbol not in ("==", "!=", "="):
            rule = f"can compare with a word only by == or !=, not {symbol}"
            if re.fullmatch(r"[+-]?\d*,\d+", value):
                rule = f"must write {value.replace(',', '.')} with a point"
            if marked := re.fullmatch(r"[$€£¥]?\s*([+-]?[\d.]+)\s*[%$€£¥]?", value):
                rule = f"must write {marked[1]}, without the mark: cells are compared without it"
            raise ArgumentError("pass_if", rule, text) from None
    return ColumnCondition(column=column, symbol=symbol, value=value.strip("\"'"))
