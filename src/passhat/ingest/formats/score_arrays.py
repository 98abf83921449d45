"""Bare arrays of scores: tasks x runs (scorio), or systems x tasks x runs (evalstats).

As JSON (lists in lists) or as NumPy's `.npy`; names of nothing are in it, so all are numbered.
"""

from __future__ import annotations

import io
import re
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from passhat.errors import ReadError
from passhat.ingest.document import Document, decode
from passhat.ingest.readers import Reading, TrialTable
from passhat.records import Outcome
from passhat.records.columns import ColumnMap

READING = Reading(
    format="array of scores",
    versions="JSON lists and .npy, 2 or 3 dimensions (scorio, evalstats)",
    system="first of three dimensions, or file name",
    task="last dimension but one",
    run="last dimension",
    outcome="a score of 1 passes",
    score="the number",
)

NPY_MAGIC = b"\x93NUMPY"
_NESTED_NUMBER = re.compile(rb"\s*(?:\[\s*){2,4}(?:-?[\d.]|null|NaN|true|false|\])")


def recognises(document: Document) -> bool:
    """Whether it is a list of lists of numbers, or an array of NumPy."""
    if document.kind == "binary":
        return document.data.startswith(NPY_MAGIC)
    return _NESTED_NUMBER.match(document.data) is not None


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """One trial a number; a NaN or null is a run that is missing."""
    scores = _scores(document)
    if scores.ndim == 2:
        scores = scores[np.newaxis]
    if scores.ndim != 3 or not scores.size:
        raise ReadError(
            f"{document.name}: is an array of shape {scores.shape}; tasks x trials, or agents "
            "x tasks x trials, can be read"
        )
    several = len(scores) > 1
    places = np.argwhere(~np.isnan(scores))
    rows = [
        {
            "system": f"system {system + 1}" if several else document.stem,
            "task": f"task {task + 1}",
            "trial": int(run),
            "outcome": Outcome(bool(scores[system, task, run] >= 1)),
            "score": float(scores[system, task, run]),
        }
        for system, task, run in places.tolist()
    ]
    missing = int(scores.size - len(rows))
    notes = [f"{missing:,} cells are empty and are no trials"] if missing else []
    shape = " x ".join(str(size) for size in scores.shape)
    facts = {"format": f"array of scores ({shape}: agents x tasks x trials)"}
    return TrialTable.of_rows(rows, notes=notes, entry="number", graded="score", read_as=facts)


def _scores(document: Document) -> NDArray[np.float64]:
    try:
        if document.kind == "binary":
            loaded = np.load(io.BytesIO(document.data), allow_pickle=False)
            return np.asarray(loaded, dtype=np.float64)
        nested = decode(document.name, document.data, list[Any])
        return np.array(nested, dtype=np.float64)  # null is NaN
    except (ValueError, TypeError, OverflowError, EOFError, MemoryError, SyntaxError) as error:
        why = "its rows differ in length, or hold more than numbers"
        if isinstance(error, msgspec.MsgspecError) or document.kind == "binary":
            why = str(error)[:200]
        raise ReadError(f"{document.name}: is not an array of scores ({why})") from error
