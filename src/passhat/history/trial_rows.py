"""Trials as rows of the store, and rows as a table of trials."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from passhat.records import Source, Trial
from passhat.records.trial import FEATURES, Outcome

if TYPE_CHECKING:
    from passhat.records import Trials

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


def pack(text: str) -> bytes:
    """Text, compressed."""
    return zstd.compress(text.encode(), level=3)


def unpack(body: bytes) -> str:
    """Text that `pack` compressed."""
    return zstd.decompress(body).decode()


def _join_texts(texts: Sequence[str]) -> str | None:
    """Several short texts as one, a JSON list; None if there are none.

    >>> _join_texts(("search", "add")), _join_texts(())
    ('["search","add"]', None)
    """
    return json.dumps(list(texts), separators=(",", ":")) if texts else None


def split_texts(text: str | None) -> tuple[str, ...]:
    r"""The texts that `join_texts`, or with a NUL in between an earlier version, put together.

    >>> split_texts('["search","add"]'), split_texts("search\0add"), split_texts(None)
    (('search', 'add'), ('search', 'add'), ())
    """
    if not text:
        return ()
    if text.startswith('["') and text.endswith('"]'):
        return tuple(json.loads(text))
    return tuple(text.split("\0"))


TRIAL_COLUMNS = (
    "trial", "sequence", "outcome", "score", "seed", *FEATURES,
    "tools", "level", "tags", "error", "started", "family", "weight",
)  # fmt: skip
"""The columns of a trial, besides its run, system and task."""


def trial_row(trial: Trial, sequence: int) -> tuple[Any, ...]:
    """A trial as a row of `TRIAL_COLUMNS`, with its place in the order of evidence."""
    packed = {
        "sequence": sequence,
        "outcome": int(trial.outcome),
        "tools": _join_texts(trial.tools),
        "tags": _join_texts(trial.tags),
    }
    return tuple(packed[name] if name in packed else getattr(trial, name) for name in TRIAL_COLUMNS)


def trial_of_row(system: str, task: str, row: Sequence[Any]) -> Trial:
    """The trial in a row of `TRIAL_COLUMNS`."""
    given = dict(zip(TRIAL_COLUMNS, row, strict=True))
    del given["sequence"]
    given["outcome"] = Outcome(given["outcome"])
    given["tools"], given["tags"] = split_texts(given["tools"]), split_texts(given["tags"])
    return Trial(system=system, task=task, **given)


ROUND_COLUMNS = ("trial", "sequence", "outcome", "score", "seed", "started")
"""The columns that show whether runs moved together."""

_ALWAYS_THERE = ("system", "task", "trial", "outcome", "score")


def trials_of_rows(
    rows: list[tuple[Any, ...]], sources: tuple[Source, ...], names: Sequence[str] = TRIAL_COLUMNS
) -> Trials:
    """The trials in rows of system, task and these of the `TRIAL_COLUMNS`."""
    from passhat.records import Trials

    names = ("system", "task", *names)
    values = list(zip(*rows, strict=True)) or [()] * len(names)
    columns = dict(zip(names, values, strict=True))
    del columns["sequence"]
    for name in [name for name in columns if name not in _ALWAYS_THERE]:
        if all(value is None for value in columns[name]):
            del columns[name]
    for name in ("tools", "tags"):
        if name in columns:
            columns[name] = tuple(map(split_texts, columns[name]))
    return Trials.from_columns(columns, duplicates=None, sources=sources)
