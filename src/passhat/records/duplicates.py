"""Trials that occur more than once: an error, different runs, or the last of each that counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from passhat.dataclass import dataclass
from passhat.errors import ArgumentError
from passhat.records.labels import Labels


@dataclass(frozen=True, slots=True)
class TrialKeys:
    """What identifies each row of a table: its system, its task and the number of the trial."""

    system: Labels
    task: Labels
    trial: NDArray[np.int64]

    def repeated(self) -> list[tuple[str, str, int]]:
        """The keys that occur more than once, sorted."""
        order, starts = self._sorted()
        rows = order[~starts].tolist()
        systems, tasks = self.system, self.task
        return sorted(
            {
                (
                    systems.names[systems.codes[row]],
                    tasks.names[tasks.codes[row]],
                    int(self.trial[row]),
                )
                for row in rows
            }
        )

    def last_rows(self) -> NDArray[np.intp]:
        """The last row of each key, in the order of the table."""
        order, starts = self._sorted()
        ends = np.r_[starts[1:], True] if order.size else starts
        return np.sort(order[ends])

    def _sorted(self) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Rows sorted by key, stably; and which of them begin a new key."""
        columns = (self.trial, self.task.codes, self.system.codes)
        order = np.lexsort(columns)
        starts = np.ones(order.size, dtype=bool)
        for column in columns:
            starts[1:] &= np.diff(column[order]) == 0
        starts[1:] = ~starts[1:]
        return order, starts


def check_duplicates(duplicates: object) -> None:
    """Refuse a word that does not say what to do with duplicates."""
    if duplicates not in ("error", "keep", "last"):
        raise ArgumentError("duplicates", "must be error, keep or last", duplicates)


def duplicate_trials(keys: TrialKeys) -> ArgumentError:
    """The error that names the trials that occur more than once."""
    twice = [f"{system} / {task} / trial {trial}" for system, task, trial in keys.repeated()]
    return ArgumentError(
        "trial",
        'must number the attempts of a system at a task, each once (`duplicates="last"` keeps the '
        'last of each, `duplicates="keep"` all, as different runs); '
        f"{len(twice):,} occur more often",
        twice,
    )
