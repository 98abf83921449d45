"""Anybody's result files, read into Trials: one format a file, all behind `read_trials`.

Each name is imported when first used: a small file needs no engine, and a reader no writer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from passhat.ingest.limits import Limits, parse_limits
    from passhat.ingest.read import read_trials, read_with_transcripts
    from passhat.ingest.reader import Reader, Table
    from passhat.ingest.readers import READERS
    from passhat.ingest.tallies import count_big, read_tallies
    from passhat.ingest.write import write_trials
    from passhat.records import Duplicates
    from passhat.records.column_names import ColumnMap

__all__ = [
    "READERS",
    "ColumnMap",
    "Duplicates",
    "Limits",
    "Reader",
    "Table",
    "count_big",
    "parse_limits",
    "read_tallies",
    "read_trials",
    "read_with_transcripts",
    "write_trials",
]

_HOMES = {
    "passhat.ingest.limits": ("Limits", "parse_limits"),
    "passhat.ingest.read": ("Duplicates", "read_trials", "read_with_transcripts"),
    "passhat.ingest.reader": ("Reader", "Table"),
    "passhat.ingest.readers": ("READERS",),
    "passhat.ingest.tallies": ("count_big", "read_tallies"),
    "passhat.ingest.write": ("write_trials",),
    "passhat.records.column_names": ("ColumnMap",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """What reads or writes, imported when first asked for (PEP 562)."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'passhat.ingest' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
