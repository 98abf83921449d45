"""Results that are named by a path, or as a run of the history in this folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from passhat.defaults import STORE

if TYPE_CHECKING:
    from passhat.cli.options import Reading

_PATTERNS = frozenset("*?[")


def results_or_run(reading: Reading) -> Reading:
    """The same reading, or that of a run: `latest`, a tag, a key, a commit.

    A name means a run where it is no path and this folder has a history.
    """
    if len(reading.paths) != 1 or not _names_a_run(reading.paths[0]):
        return reading
    return replace(reading, paths=(STORE,), run=reading.paths[0])


def _names_a_run(name: str) -> bool:
    if name == "-" or _PATTERNS & set(name) or not Path(STORE).is_file():
        return False
    try:
        return not Path(name).exists()
    except (OSError, ValueError):  # too long for a path, or with a character that none has
        return True
