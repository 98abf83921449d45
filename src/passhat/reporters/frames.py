"""The rows of an answer as a data frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from passhat.errors import ArgumentError
from passhat.records.frames import frame_of_columns
from passhat.reporters.grid import kind_and_answer

if TYPE_CHECKING:
    from passhat.display import FrameLibrary


def to_frame(answer: Any, library: FrameLibrary | None = None) -> Any:
    """The rows of an answer as a pandas, polars or Arrow table: those of its CSV file, unrounded.

    >>> from passhat import judge, simulate
    >>> verdicts = judge(simulate(tasks=5, runs=9, rate=0.9, seed=1), ["pass^1 >= 0.1"])
    >>> to_frame(verdicts, "pandas")["verdict"].tolist()
    ['PASS']
    """
    kind, answered = kind_and_answer(answer)
    if kind.rows is None:
        raise ArgumentError("answer", f"must have rows; a {kind.name} has none", answer)
    rows = kind.rows(answered)
    columns = {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}
    return frame_of_columns(columns, library)
