"""Columns from and to data frames (pandas, polars, Arrow), and from Trial objects and dicts."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from passhat.arguments import instance, several
from passhat.errors import ArgumentError, MissingExtra
from passhat.messages import typo_hint
from passhat.records.column_names import ALIASES, ColumnMap, find_columns, usual_name
from passhat.records.source import Source
from passhat.records.trial import Outcome, Trial
from passhat.records.usual_columns import read_columns

if TYPE_CHECKING:
    from passhat.dataclass import FrameLibrary

Columns = Mapping[str, list[Any]]

WAY_IN = (
    "Trials.from_frame(frame) makes trials of a data frame, and Trials.from_frame(frame, "
    "task='case', passed='ok') of one whose columns have names of their own"
)

_LIBRARIES = ("pandas", "polars", "pyarrow")
_LISTS = ("tags", "tools")
_FIELDS = tuple(field.name for field in fields(Trial))
_COLUMNS = (*_FIELDS, "passed")
_NAMES = frozenset((*_COLUMNS, *(name for names in ALIASES.values() for name in names)))


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
) -> tuple[dict[str, Any], Source]:
    """The columns of trials in a data frame, found as in files, and how they were found.

    >>> import pandas
    >>> frame = pandas.DataFrame({"case": ["a", "a"], "agent": ["x", "x"], "ok": [True, False]})
    >>> columns, source = columns_of_frame(frame, {"passed": "ok"})
    >>> columns["system"], source.read_as[0]
    (['x', 'x'], ('format', 'data frame'))
    """
    return columns_of_table("frame", "data frame", _plain_columns(frame), renamed)


def columns_of_table(
    argument: str, kind: str, given: Columns, renamed: Mapping[str, str | None]
) -> tuple[dict[str, Any], Source]:
    """The same for columns by name, whatever they came in."""
    columns, facts, notes = read_columns(argument, given, column_map(renamed))
    read_as = (("format", kind), *facts)
    return columns, Source(name=kind, format="table", sha256="", notes=notes, read_as=read_as)


def column_map(renamed: Mapping[str, str | None]) -> ColumnMap:
    """What the user calls columns: `task="case"`, `passed="ok"` (or `outcome`), `pass_if="..."`."""
    known = (*_COLUMNS, "pass_if")
    if unknown := sorted(set(renamed) - set(known)):
        raise ArgumentError("renamed", f"must be among {', '.join(known)}", unknown[0])
    chosen = dict(renamed)
    if "outcome" in chosen:
        chosen["passed"] = chosen.pop("outcome")
    return ColumnMap(**chosen)


def frame_of_trials(columns: Columns, library: FrameLibrary | None = None) -> Any:
    """The columns of trials as a data frame, outcomes in words, tags and tools as lists."""
    words = {int(outcome): outcome.name.lower() for outcome in Outcome}
    worded = {**columns, "outcome": [words[code] for code in columns["outcome"]]}
    for name in _LISTS:
        if name in worded:
            worded[name] = [list(value) for value in worded[name]]
    return frame_of_columns(worded, library)


def frame_of_columns(columns: Columns, library: FrameLibrary | None = None) -> Any:
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
    records: Iterable[Trial | Mapping[str, Any]], renamed: Mapping[str, str | None]
) -> tuple[dict[str, Any], Source | None]:
    """The columns of trials in objects or dicts, and how they were found in dicts."""
    refuse_frame("records", "must be Trial objects or dicts", records)
    rows = several(records)
    for row in rows:
        instance("records", row, Trial | Mapping, "must be Trial objects or dicts")
    if not rows:
        return {"task": [], "outcome": []}, None
    if all(isinstance(row, Trial) for row in rows):
        return _of_trials(rows), None
    names = dict.fromkeys(name for row in rows for name in _keys(row))
    _check_keys(names, renamed)
    given = {str(name): [_get(row, name) for row in rows] for name in names}
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


def _plain_columns(frame: Any) -> Columns:
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
        return _from_arrow_stream(frame)
    rule = "must be a pandas, polars or Arrow table, or have __arrow_c_stream__"
    if isinstance(frame, Mapping | list):
        way = "from_columns" if isinstance(frame, Mapping) else "from_records"
        rule += f" (Trials.{way} takes this)"
    raise ArgumentError("frame", rule, frame)


def _from_arrow_stream(frame: Any) -> Columns:
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


def _of_trials(rows: list[Trial]) -> dict[str, Any]:
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


def _keys(row: Trial | Mapping[str, Any]) -> Iterable[str]:
    return row if isinstance(row, Mapping) else _FIELDS


def _get(row: Trial | Mapping[str, Any], name: str) -> Any:
    return row.get(name) if isinstance(row, Mapping) else getattr(row, name, None)
