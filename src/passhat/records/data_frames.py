"""Columns from and to data frames (pandas, polars, Arrow), and from Trial objects and dicts."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from passhat.arguments import instance, several
from passhat.errors import ArgumentError, MissingExtra
from passhat.messages import few, listed, short, typo_hint
from passhat.records import trial
from passhat.records.columns import (
    ALIASES,
    COUNTED,
    MOST_ARMS,
    SEVERAL,
    ColumnMap,
    aggregate_column,
    are_means,
    as_number,
    condition_cells,
    error_text,
    find_columns,
    find_conflict,
    infer_columns,
    is_missing,
    letter_scores,
    milliseconds,
    missing_at,
    name_cells,
    name_parts,
    parse_pass_if,
    row_outcomes,
    scale_notes,
    usual_name,
)
from passhat.records.labels import join_labels
from passhat.records.tally import Categorical, place_in_group

if TYPE_CHECKING:
    from passhat.dataclass import FrameLibrary

FrameColumns = Mapping[str, list[Any]]

WAY_IN = (
    "Trials.from_frame(frame) makes trials of a data frame, and Trials.from_frame(frame, "
    "task='case', passed='ok') of one whose columns have names of their own"
)

_LIBRARIES = ("pandas", "polars", "pyarrow")
_LISTS = ("tags", "tools", "at")
_FIELDS = tuple(field.name for field in fields(trial.Trial))
_COLUMNS = (*_FIELDS, "passed")
_NAMES = frozenset((*_COLUMNS, *(name for names in ALIASES.values() for name in names)))


class ArrowTable(Protocol):
    """A table of a library that speaks Arrow: polars, pyarrow, new pandas."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


class InterchangeTable(Protocol):
    """A table of a library that speaks the data frame interchange protocol."""

    def __dataframe__(self) -> Any: ...


def is_frame(value: object) -> bool:
    """Whether a value is a table of some data frame library; looks at its type alone."""
    spoken = ("__arrow_c_stream__", "__dataframe__")
    library = type(value).__module__.partition(".")[0]
    return library in _LIBRARIES or any(hasattr(type(value), name) for name in spoken)


def refuse_frame(argument: str, rule: str, value: object) -> None:
    """Raise with the way to use a data frame, where one is passed to a function that takes none."""
    if is_frame(value):
        raise ArgumentError(argument, f"{rule}; {WAY_IN}", value)


def columns_of_frame(
    frame: Any, renamed: Mapping[str, str | None]
) -> tuple[dict[str, Any], trial.Source]:
    """The columns of trials in a data frame, found as in files, and how they were found.

    >>> import pandas
    >>> frame = pandas.DataFrame({"case": ["a", "a"], "agent": ["x", "x"], "ok": [True, False]})
    >>> columns, source = columns_of_frame(frame, {"passed": "ok"})
    >>> columns["system"], source.read_as[0]
    (['x', 'x'], ('format', 'data frame'))
    """
    return columns_of_table("frame", "data frame", _plain_columns(frame), renamed)


def columns_of_table(
    argument: str, kind: str, given: FrameColumns, renamed: Mapping[str, str | None]
) -> tuple[dict[str, Any], trial.Source]:
    """The same for columns by name, whatever they came in."""
    columns, facts, notes = read_columns(argument, given, column_map(renamed))
    read_as = (("format", kind), *facts)
    return columns, trial.Source(name=kind, format="table", sha256="", notes=notes, read_as=read_as)


def column_map(renamed: Mapping[str, str | None]) -> ColumnMap:
    """What the user calls columns: `task="case"`, `passed="ok"` (or `outcome`), `pass_if="..."`."""
    known = (*_COLUMNS, "pass_if", "factor", "reference_level")
    if unknown := sorted(set(renamed) - set(known)):
        raise ArgumentError("renamed", f"must be among {', '.join(known)}", unknown[0])
    chosen = dict(renamed)
    if "outcome" in chosen:
        chosen["passed"] = chosen.pop("outcome")
    return ColumnMap(**chosen)


def frame_of_trials(columns: FrameColumns, library: FrameLibrary | None = None) -> Any:
    """The columns of trials as a data frame, outcomes in words, tags and tools as lists."""
    words = {int(outcome): outcome.name.lower() for outcome in trial.Outcome}
    worded = {**columns, "outcome": [words[code] for code in columns["outcome"]]}
    for name in _LISTS:
        if name in worded:
            worded[name] = [list(value) for value in worded[name]]
    return frame_of_columns(worded, library)


def frame_of_columns(columns: FrameColumns, library: FrameLibrary | None = None) -> Any:
    """Columns by name as a data frame; missing values are None, or NaN where the library wants it.

    Without a `library` it is the one that is imported already, else the first that is installed.
    """
    chosen = library or _available_library()
    if chosen not in _LIBRARIES:
        raise ArgumentError("library", f"must be one of {', '.join(_LIBRARIES)}", library)
    try:
        module = importlib.import_module(chosen)
    except ImportError:
        package = "pandas" if chosen == "pandas" else ""
        raise MissingExtra(f"a {chosen} table", "frames", package=package) from None
    if chosen == "pandas":
        return module.DataFrame(columns)
    if chosen == "polars":
        lists = {name: module.List(module.String) for name in _LISTS if name in columns}
        # Mixed types in a column are an error unless polars may look at every row.
        return module.DataFrame(columns, schema_overrides=lists, infer_schema_length=None)
    texts = module.list_(module.string())
    return module.table(
        {
            name: module.array(values, type=texts if name in _LISTS else None)
            for name, values in columns.items()
        }
    )


def columns_of_records(
    records: Iterable[trial.Trial | Mapping[str, Any]], renamed: Mapping[str, str | None]
) -> tuple[dict[str, Any], trial.Source | None]:
    """The columns of trials in objects or dicts, and how they were found in dicts."""
    refuse_frame("records", "must be Trial objects or dicts", records)
    rows = several(records)
    for row in rows:
        instance("records", row, trial.Trial | Mapping, "must be Trial objects or dicts")
    if not rows:
        return {"task": [], "outcome": []}, None
    if all(isinstance(row, trial.Trial) for row in rows):
        return _of_trials(rows), None
    dicts = [
        row if isinstance(row, Mapping) else {n: getattr(row, n) for n in _FIELDS} for row in rows
    ]
    names = dict.fromkeys(name for row in dicts for name in row)
    if "id" in names and "task" not in find_columns(names, column_map(renamed)):
        renamed = {**renamed, "task": "id"}  # as in files, where nothing better is there
    _check_keys(names, renamed)
    given = {str(name): [row.get(name) for row in dicts] for name in names}
    return columns_of_table("records", "records", given, renamed)


def _available_library() -> str:
    """The data frame library that this program uses, or could use."""
    for name in _LIBRARIES:
        if name in sys.modules:
            return name
    for name in _LIBRARIES:
        if importlib.util.find_spec(name) is not None:
            return name
    raise MissingExtra("a data frame", "frames")


def _plain_columns(frame: Any) -> FrameColumns:
    """Lists by column name, missing values as None, without any library but the frame's own."""
    kind = type(frame).__module__.partition(".")[0]
    if kind == "pandas":
        return {
            str(name): [
                None if missing else value
                for value, missing in zip(frame[name], frame[name].isna(), strict=True)
            ]
            for name in frame.columns
        }
    if kind == "polars":
        whole = frame.collect() if hasattr(frame, "collect") else frame
        return dict(whole.to_dict(as_series=False))
    if kind == "pyarrow" and hasattr(frame, "to_pydict"):
        return dict(frame.to_pydict())
    if hasattr(frame, "__arrow_c_stream__"):
        try:
            import pyarrow

            return dict(pyarrow.table(frame).to_pydict())
        except ImportError:
            pass
        try:
            import polars

            return dict(polars.DataFrame(frame).to_dict(as_series=False))
        except ImportError:
            raise MissingExtra("reading an Arrow stream", "frames") from None
    rule = "must be a pandas, polars or Arrow table, or have __arrow_c_stream__"
    if isinstance(frame, Mapping | list):
        way = "from_columns" if isinstance(frame, Mapping) else "from_records"
        rule += f" (Trials.{way} takes this)"
    raise ArgumentError("frame", rule, frame)


def _of_trials(rows: list[trial.Trial]) -> dict[str, Any]:
    columns = {name: [getattr(row, name) for row in rows] for name in _FIELDS}
    return {
        name: values
        for name, values in columns.items()
        if any(value is not None and value != () for value in values)
    }


def _check_keys(names: Iterable[str], renamed: Mapping[str, str | None]) -> None:
    """Refuse unknown keys: a typo would lose what it names."""
    known = find_columns(names, column_map(renamed)).values()
    for name in names:
        if name not in known and usual_name(str(name)) not in _NAMES:
            hint = typo_hint(str(name), _NAMES)
            rule = f"have only keys that trials or files have{hint}; leave others out"
            raise ArgumentError("records", rule, name)


GivenColumns = Mapping[str, Sequence[Any]]

# Whatever comes before, and at most as many digits as always fit in 64 bits.
_NUMBERED = re.compile(r"(|.*\D)(\d{1,18})")


def read_columns(
    argument: str, given: GivenColumns, mapping: ColumnMap
) -> tuple[dict[str, Any], trial.Facts, tuple[str, ...]]:
    """The columns of trials, which of the given ones they are, and notes on that.

    >>> table = {"sample_id": ["a", "a"], "status": ["pass", "fail"], "note": ["", ""]}
    >>> read_columns("frame", table, ColumnMap())[0]["task"]
    ['a', 'a']
    """
    _check_named(argument, given, mapping)
    by_meaning, notes = infer_columns(given, mapping, lambda column: given.get(column, ()))
    _check_enough(argument, given, by_meaning, mapping)
    columns = {
        meaning: typed_cells(meaning, column, name_cells(given, column, given.__getitem__))
        for meaning, column in by_meaning.items()
        if meaning != "passed"
    }
    if "at" in by_meaning and mapping.factor:
        columns["at"] = condition_cells(given, by_meaning["at"], given.__getitem__)
    elif mapping.factor_pattern is not None:
        named = trial.conditions_by_name(map(str, columns["task"]), mapping.factor_pattern)
        columns["base"], columns["at"] = named
    if grades := letter_scores(by_meaning, given.__getitem__):
        columns["score"] = grades
    columns["outcome"] = _outcomes(argument, given, by_meaning, mapping, columns.get("score", ()))
    if mapping.pass_if:
        notes += scale_notes(
            parse_pass_if(mapping.pass_if),
            lambda column: given[by_meaning.get(column, column)],
            lambda what: ArgumentError("pass_if", f"must fit its column: {what}", mapping.pass_if),
        )
    if "score" in columns:
        notes += _without_wide_scores(argument, columns, by_meaning, mapping)
    if "trial" in columns:
        systems = columns.get("system", [""] * len(columns["task"]))
        columns["trial"] = trial_numbers(columns["trial"], systems, columns["task"])
    join_labels(
        columns,
        mapping,
        lambda row, name, what: ArgumentError(argument, f"has a label in {name}: {what}", row),
    )
    used = {part for column in by_meaning.values() for part in name_parts(given, column)}
    unused = [] if mapping.factor == "" else [name for name in given if name not in used]
    notes += pooled_notes(given, unused, by_meaning, columns.get("trial", ())).values()
    if not mapping.pass_if and "passed" not in by_meaning and "score" in by_meaning:
        notes += (score_passes_note(by_meaning["score"]),)
    facts = tuple((meaning, f'column "{short(column)}"') for meaning, column in by_meaning.items())
    return _filled(columns), facts, tuple(notes)


_FEWEST_CROSSED = 5
_CROSSED = 0.9
"""A column is crossed with tasks if nearly all of five or more have each value equally often. That
hardly happens to what a trial came to: how it finished, or in how many turns."""


def pooled_notes(
    columns: Mapping[str, Sequence[Any]],
    unused: Iterable[str],
    by_meaning: Mapping[str, str],
    repeats: Sequence[Any],
) -> dict[str, str]:
    """A note on each unused column that looks like a condition that tasks were crossed with.

    `repeats` are the trials' numbers, if they have any: in their order, else in that of rows, the
    trials of a task are its rounds.

    >>> tasks, users = [f"t{i // 4}" for i in range(20)], ["kind", "kind", "curt", "curt"] * 5
    >>> table = {"task": tasks, "user": users, "passed": [1] * 20}
    >>> list(pooled_notes(table, ["user"], {"task": "task"}, ()))
    ['user']
    """
    levels = {name: texts for name in unused if (texts := _few_values(columns[name]))}
    if not levels:
        return {}
    named = [by_meaning[meaning] for meaning in SEVERAL if meaning in by_meaning]
    if "at" in by_meaning and "base" in by_meaning:  # passhat's own column of conditions
        named.remove(by_meaning["at"])
    names = [map(str, name_cells(columns, name, columns.__getitem__)) for name in named]
    group = Categorical.of(map("\0".join, zip(*names, strict=True))).codes
    sizes = np.bincount(group)
    if len(sizes) < _FEWEST_CROSSED or len(sizes) == len(group):
        return {}
    notes: dict[str, str] = {}
    rounds: NDArray[np.int64] | None = None
    for column, texts in levels.items():
        values = list(dict.fromkeys(texts.values()))
        place = {cell: values.index(text) for cell, text in texts.items()}
        level = np.array(list(map(place.get, columns[column])))
        cells = np.bincount(group * len(values) + level, minlength=len(sizes) * len(values))
        if not _is_crossed(values, cells.reshape(-1, len(values))):
            continue
        if rounds is None:  # they are the same for every column, and seldom asked for
            rounds = place_in_group(group, np.arange(len(group)))
            with contextlib.suppress(TypeError, ValueError):
                numbers = np.array([as_number(number) for number in repeats])
                rounds = place_in_group(group, numbers) if repeats else rounds
        by_round = np.bincount(rounds * len(values) + level, minlength=sizes.max() * len(values))
        of_one = by_round.reshape(-1, len(values)).max(axis=1).sum()
        head = trial.POOLED_ROUNDS if of_one >= _CROSSED * len(group) else trial.POOLED
        notes[column] = (
            f'{head}: tasks have as many trials with each "{short(column)}" ({few(values, 3)}); '
            f"say `factor={column!r}`, or `system={column!r}` if it names agents"
        )
    return notes


def _few_values(cells: Sequence[Any]) -> dict[Any, str]:
    """The different cells of a column as texts if they are few; none of lists, texts and ids."""
    distinct: dict[Any, None] = {}
    for part in (cells[:1000], cells):  # the first rows rule out most columns
        try:
            distinct = dict.fromkeys(part)
        except TypeError:  # lists and objects
            return {}
        if len(distinct) > MOST_ARMS:
            return {}
    texts = {cell: "nothing" if is_missing(cell) else str(cell).strip() for cell in distinct}
    return texts if len(set(texts.values())) > 1 else {}


def _is_crossed(values: Iterable[str], cells: NDArray[np.int64]) -> bool:
    """Whether nearly every group of rows has each value as often as others have it.

    Numbers that count the rows of a group are no condition.
    """
    usual = [int(np.bincount(column).argmax()) for column in cells.T]
    alike = (cells == usual).mean(axis=0)
    if not all(usual) or alike.min() < _CROSSED:
        return False
    return max(usual) > 1 or not all(value[-1:].isdecimal() for value in values)


def score_passes_note(column: str, *, percent: bool = False) -> str:
    """What to know about a table that has scores and no column that says pass or fail."""
    name = short(column)
    best, bar = ("100%", "80") if percent else ("1", "0.8")
    return (
        f'no column says pass or fail: only a "{name}" of {best} passes. Say what passes with '
        f"`pass_if`, such as '{name}>={bar}'"
    )


def typed_cells(meaning: str, column: str, cells: Sequence[Any]) -> list[Any]:
    """Cells as values of their meaning; numbers are checked later, with all others."""
    if meaning == "error":
        return [error_text(cell) for cell in cells]
    if meaning in ("tags", "tools", "at"):
        split = column.lower() in ("tags", "tools", "at")
        return [_words(cell, split) for cell in cells]
    if meaning == "base":  # a column that passhat wrote: a task may be called NULL
        return [None if cell in ("", None) or cell != cell else str(cell) for cell in cells]
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
    if missing_at(values) is not None:
        return list(values)  # to be refused with the row
    texts = [
        v if type(v) is str else str(int(v)) if isinstance(v, float) and v.is_integer() else str(v)
        for v in values
    ]
    parts = {text: _NUMBERED.fullmatch(text.strip()) for text in set(texts)}
    if all(parts.values()) and len({part[1] for part in parts.values() if part}) <= 1:
        numbered = {text: int(part[2]) for text, part in parts.items() if part}
        return [numbered[text] for text in texts]
    index: dict[tuple[Any, Any], dict[str, int]] = {}
    numbers = []
    for system, task, text in zip(systems, tasks, texts, strict=True):
        known = index.setdefault((str(system), str(task)), {})
        numbers.append(known.setdefault(text, len(known)))
    return numbers


def _check_named(argument: str, given: GivenColumns, mapping: ColumnMap) -> None:
    for meaning, column in mapping.chosen().items():
        for part in name_parts(given, column) if meaning in SEVERAL else [column]:
            if part not in given:
                raise ArgumentError(argument, f"must have the column {part}", sorted(given))


def _check_enough(
    argument: str, given: GivenColumns, columns: Mapping[str, str], mapping: ColumnMap
) -> None:
    has_verdict = {"passed", "score"} & set(columns) or mapping.pass_if
    if "task" not in columns or not has_verdict:
        usual = f"task ({listed(ALIASES['task'][1:], 3)}), passed ({listed(ALIASES['passed'], 3)})"
        rule = f"must have columns for {usual} or score; name yours as in task='case', passed='ok'"
        raise ArgumentError(argument, rule, sorted(given))
    column = aggregate_column(given, columns, mapping, given.__getitem__)
    if column is not None:
        rule = f"must have a row for each trial, but its column {column} counts or averages trials"
        raise ArgumentError(argument, rule, sorted(given))
    if are_means(given, columns, mapping, given.__getitem__):
        score = columns["score"]
        rule = (
            f"must have a row for each trial, but has one for each task, and no {score} is 1: if "
            f"they are no means, say what passes with pass_if='{score}>=0.8'"
        )
        raise ArgumentError(argument, rule, sorted(given))


def _outcomes(
    argument: str,
    given: GivenColumns,
    columns: Mapping[str, str],
    mapping: ColumnMap,
    scores: Sequence[Any],
) -> list[Any]:
    tests = parse_pass_if(mapping.pass_if) if mapping.pass_if else ()
    for test in tests:
        if columns.get(test.column, test.column) not in given:
            raise ArgumentError("pass_if", f"must use columns of the {argument}", test.column)
    if not tests and not mapping.passed:
        conflict = find_conflict(given, columns, given.__getitem__)
        if conflict is not None:
            first, second = conflict.columns
            rule = (
                f"must not say both: {first} and {second} disagree in row {conflict.row}; name one"
            )
            raise ArgumentError("passed", rule, conflict.cells)
    outcomes = row_outcomes(tests, columns, given.__getitem__, scores)
    if None in outcomes:
        raise _no_outcome(given, columns, mapping, outcomes.index(None))
    return outcomes


def _no_outcome(
    given: GivenColumns, columns: Mapping[str, str], mapping: ColumnMap, row: int
) -> ArgumentError:
    column = columns.get("passed") or columns.get("score", "")
    if mapping.pass_if:
        rule = f"must be a comparison that holds or not, and row {row} has nothing to compare"
        return ArgumentError("pass_if", rule, mapping.pass_if)
    rule = f"must say how each trial ended, or error what broke it, and row {row} does not"
    return ArgumentError(column, rule, given[column][row])


def _without_wide_scores(
    argument: str, columns: dict[str, Any], by_meaning: Mapping[str, str], mapping: ColumnMap
) -> list[str]:
    """Leave out scores beyond [0, 1] where a verdict or the user's comparison decides."""
    if "passed" not in by_meaning and not mapping.pass_if:
        return []
    for score in columns["score"]:
        try:
            value = as_number(score)
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
        return as_number(cell) / 1000
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
        words = json.loads(text)
    except (ValueError, RecursionError):
        return [text]
    plain = isinstance(words, list) and all(isinstance(word, str) for word in words)
    return words if plain else [text]
