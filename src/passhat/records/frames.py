"""Columns from and to data frames: pandas, polars, Arrow, and whatever speaks the Arrow stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from passhat.errors import ArgumentError, MissingExtra
from passhat.records.column_names import ColumnMap
from passhat.records.source import Source
from passhat.records.trial import Outcome, Trial
from passhat.records.usual_columns import read_columns

Columns = Mapping[str, list[Any]]

WAY_IN = (
    "Trials.from_frame(frame) makes trials of a data frame, and Trials.from_frame(frame, "
    "task='case', passed='ok') of one whose columns have names of their own"
)

_COLUMNS = (*(field.name for field in fields(Trial)), "passed")
_LIBRARIES = ("pandas", "polars", "pyarrow")


def is_frame(value: object) -> bool:
    """Whether a value is a table of some data frame library; looks at its type alone."""
    spoken = ("__arrow_c_stream__", "__dataframe__")
    library = type(value).__module__.partition(".")[0]
    return library in _LIBRARIES or any(hasattr(type(value), name) for name in spoken)


def refuse_frame(argument: str, rule: str, value: object) -> None:
    """Say how a data frame gets in, wherever one is handed to what takes none."""
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


def to_pandas(columns: Columns) -> Any:
    """A pandas DataFrame, outcomes in words, missing values as None or NaN."""
    try:
        import pandas
    except ImportError:
        raise MissingExtra("a pandas DataFrame", package="pandas") from None
    return pandas.DataFrame(_worded(columns))


def to_polars(columns: Columns) -> Any:
    """A polars DataFrame, outcomes in words."""
    try:
        import polars
    except ImportError:
        raise MissingExtra("a polars DataFrame", "frames") from None
    words: dict[str, Any] = {
        name: polars.List(polars.String) for name in ("tags", "tools") if name in columns
    }
    return polars.DataFrame(_worded(columns), schema_overrides=words)


def to_arrow(columns: Columns) -> Any:
    """A pyarrow Table, outcomes in words."""
    try:
        import pyarrow
    except ImportError:
        raise MissingExtra("an Arrow table", "frames") from None
    words = pyarrow.list_(pyarrow.string())
    return pyarrow.table(
        {
            name: pyarrow.array(values, type=words if name in ("tags", "tools") else None)
            for name, values in _worded(columns).items()
        }
    )


def _plain_columns(frame: Any) -> Columns:
    """Lists by column name, missing values as None, without any library but the frame's own."""
    kind = type(frame).__module__.partition(".")[0]
    if kind == "pandas":
        return {str(name): _pandas_list(frame[name]) for name in frame.columns}
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


def _pandas_list(series: Any) -> list[Any]:
    return [
        None if missing else value for value, missing in zip(series, series.isna(), strict=True)
    ]


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


def _worded(columns: Columns) -> dict[str, list[Any]]:
    words = {int(outcome): outcome.name.lower() for outcome in Outcome}
    worded = {**columns, "outcome": [words[code] for code in columns["outcome"]]}
    for name in ("tags", "tools"):
        if name in worded:
            worded[name] = [list(value) for value in worded[name]]
    return worded
