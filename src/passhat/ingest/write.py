"""Trials into passhat's own files: JSON Lines, CSV or Parquet, by the name's ending."""

from __future__ import annotations

import contextlib
import csv
import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from passhat import arguments
from passhat.errors import ArgumentError, MissingExtra
from passhat.ingest.rows import SCHEMA
from passhat.records import Outcome, Trials
from passhat.records.trial import ENDED_COLUMN, first_ended
from passhat.records.trials import check_trials_argument

FORMATS = (".jsonl", ".csv", ".tsv", ".parquet")


def write_trials(trials: Trials, path: str | os.PathLike[str]) -> None:
    """Write trials so that reading the file gives the same trials again.

    A JSON Lines file opens with a line that names its schema; missing values are left out.
    """
    check_trials_argument("trials", trials, counts=False)
    target = Path(arguments.path("path", path))
    if target.suffix not in FORMATS:
        raise ArgumentError("path", f"must end in {', '.join(FORMATS)}", str(path))
    if target.suffix == ".parquet":
        write_parquet(trials, target)
    elif target.suffix == ".jsonl":
        target.write_bytes(render_jsonl(trials))
    else:
        separator = "\t" if target.suffix == ".tsv" else ","
        target.write_text(render_csv(trials, separator=separator), encoding="utf-8", newline="")


def render_jsonl(trials: Trials) -> bytes:
    """The lines of a JSON Lines file, its schema first.

    >>> one = Trials.from_columns(task=["a"], passed=[True])
    >>> print(render_jsonl(one).decode().splitlines()[1])
    {"system":"system","task":"a","trial":0,"outcome":"passed","score":1.0}
    """
    names, rows = _words(trials)
    encode = msgspec.json.Encoder().encode
    ended = first_ended(source.ended for source in trials.sources)
    lines = [encode({"schema": SCHEMA, **({"ended": ended} if ended else {})})]
    for row in rows:
        filled = zip(names, row, strict=True)
        lines.append(encode({name: v for name, v in filled if v is not None and v != ()}))
    return b"\n".join(lines) + b"\n"


def render_csv(trials: Trials, *, separator: str = ",") -> str:
    """The text of a CSV file; lists of words are written as JSON.

    A table has no header that could say once that gates ended its trials: a column does.
    """
    names, rows = _words(trials)
    ended = first_ended(source.ended for source in trials.sources)
    more = [ended] if ended else []
    text = io.StringIO()
    writer = csv.writer(text, delimiter=separator, lineterminator="\n")
    writer.writerow(names + [ENDED_COLUMN] * len(more))
    writer.writerows([_cell(value) for value in row] + more for row in rows)
    return text.getvalue()


def write_parquet(
    trials: Trials, target: Path, more: Mapping[str, Sequence[int | None]] | None = None
) -> None:
    """By polars or pyarrow, either of which reads it back; `more` are columns beside the usual."""
    more = more or {}
    ended = first_ended(source.ended for source in trials.sources)
    with contextlib.suppress(MissingExtra):
        frame = trials.to_polars()
        import polars

        columns: list[Any] = [
            polars.Series(name, cells, polars.Int64) for name, cells in more.items()
        ]
        if ended:
            columns.append(polars.lit(ended).alias(ENDED_COLUMN))
        frame.with_columns(columns).write_parquet(target, metadata={"schema": SCHEMA})
        return
    try:
        table = trials.to_arrow()
    except MissingExtra as error:  # who writes a file has not asked for a data frame
        raise MissingExtra("writing Parquet", error.extra) from error
    import pyarrow
    from pyarrow import parquet

    for name, cells in more.items():
        table = table.append_column(name, pyarrow.array(cells, pyarrow.int64()))
    if ended:
        table = table.append_column(ENDED_COLUMN, pyarrow.array([ended] * len(trials)))
    parquet.write_table(table.replace_schema_metadata({"schema": SCHEMA}), target)


def _words(trials: Trials) -> tuple[list[str], Sequence[tuple[Any, ...]]]:
    """Columns with the outcome in words, and their rows."""
    columns = trials.to_columns()
    words = {int(outcome): outcome.name.lower() for outcome in Outcome}
    columns["outcome"] = [words[code] for code in columns["outcome"]]
    return list(columns), list(zip(*columns.values(), strict=True))


def _cell(value: Any) -> Any:
    if isinstance(value, tuple):
        return msgspec.json.encode(value).decode() if value else ""
    return value
