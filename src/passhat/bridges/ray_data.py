"""Ray Data: a dataset of trials reduced to counts on the nodes that hold it.

trials = ray.data.read_parquet("s3://evals/trials")
passhat.report(tally_dataset(trials))
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ray.data.aggregate import AggregateFnV2  # type: ignore[import-not-found,unused-ignore]
from ray.data.block import BlockAccessor  # type: ignore[import-not-found,unused-ignore]

from passhat.errors import ArgumentError, ReadError
from passhat.messages import listed
from passhat.records import Tally, Trials, merge_tallies
from passhat.records.columns import find_columns
from passhat.records.data_frames import column_map

MOST_NUMBERS = 1_000_000
"""Runs of a task up to which trial numbers are checked by their fingerprint: 8 bytes each."""

ROWS_OF_A_PART = 5_000_000
"""Trials that one task of Ray counts one by one: some hundred megabytes."""

Task = tuple[str, str]
"""A system and a task."""

Marks = Mapping[Task, tuple[int, int]]
"""For each task its trials, and the exclusive or of the hashes of their numbers."""

_State = tuple[list[Tally], Marks]


def tally_dataset(dataset: Any, *, duplicates: str = "error", **columns: str | None) -> list[Tally]:
    """The counts per task of each system in a Ray dataset, as `read_tallies` counts a file.

    Columns are found by their usual names; `task="case"` names one of your own, as in
    `Trials.from_frame`. Each block is counted where it is, and only counts travel. A trial that
    occurs twice is an error, unless `duplicates` is "keep".
    """
    if duplicates not in ("error", "keep"):
        raise ArgumentError("duplicates", 'must be "error" or "keep"', duplicates)
    by_meaning = find_columns(dataset.columns(), column_map(columns))
    numbered = duplicates == "error" and "trial" in by_meaning
    state = dataset.aggregate(Tallies(columns, numbered=numbered))["tallies"]
    tallies, marks = _opened(state)
    if numbered and not _numbered_on(marks):
        size = sum(runs for runs, _ in marks.values())
        keys = [by_meaning[name] for name in ("system", "task", "trial") if name in by_meaning]
        _check_every_trial(dataset, keys, parts=1 + size // ROWS_OF_A_PART)
    return [_sorted(tally) for tally in sorted(tallies, key=lambda tally: tally.system)]


class Tallies(AggregateFnV2):  # type: ignore[misc,unused-ignore]
    """The aggregate itself: `merge_tallies` of what `Trials.from_frame` makes of each block."""

    def __init__(self, columns: Mapping[str, str | None], *, numbered: bool) -> None:
        self._columns, self._numbered = dict(columns), numbered
        super().__init__("tallies", lambda: _packed(([], {})), on=None, ignore_nulls=False)

    def aggregate_block(self, block: Any) -> bytes:
        """The counts of one block."""
        table = BlockAccessor.for_block(block).to_arrow()
        if not table.num_rows:
            return _packed(([], {}))
        trials = Trials.from_frame(table, duplicates=None, **self._columns)
        tallies = [replace(trials.tally(system), sources=()) for system in trials.systems]
        return _packed((tallies, _marks(trials) if self._numbered else {}))

    def combine(self, current_accumulator: bytes, new: bytes) -> bytes:
        """The counts of two parts together."""
        (first, marks), (second, more) = _opened(current_accumulator), _opened(new)
        joined = dict(marks)
        for task, (runs, mark) in more.items():
            held = joined.get(task, (0, 0))
            joined[task] = (held[0] + runs, held[1] ^ mark)
        return _packed((merge_tallies([*first, *second]), joined))


# Ray keeps what aggregates return in columns of a table: one value of bytes is a plain cell.


def _packed(state: _State) -> bytes:
    return pickle.dumps(state)


def _opened(state: bytes) -> _State:
    opened: _State = pickle.loads(state)  # noqa: S301  made by `_packed` on a node of this cluster
    return opened


def _marks(trials: Trials) -> Marks:
    """How many trials each task has, and the fingerprint of their numbers."""
    codes = trials.system.codes.astype(np.int64) * len(trials.tasks) + trials.task.codes
    distinct, place = np.unique(codes, return_inverse=True)
    marks = np.zeros(distinct.size, dtype=np.uint64)
    np.bitwise_xor.at(marks, place, _hashes(trials.trial))
    runs = np.bincount(place)
    names = [divmod(int(code), len(trials.tasks)) for code in distinct]
    keys = [(trials.system.names[system], trials.task.names[task]) for system, task in names]
    return dict(zip(keys, zip(runs.tolist(), marks.tolist(), strict=True), strict=True))


def _hashes(numbers: NDArray[np.int64]) -> NDArray[np.uint64]:
    """A hash of 64 bits of each number: the mixer of SplitMix64 (Steele, Lea and Flood, 2014)."""
    z = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _numbered_on(marks: Marks) -> bool:
    """Whether every task has the trials 0..n-1 or 1..n, by their fingerprint."""
    most = max((runs for runs, _ in marks.values()), default=0)
    if most > MOST_NUMBERS:
        return False
    up_to = np.bitwise_xor.accumulate(_hashes(np.arange(most + 1)))
    from_zero = [0, *up_to.tolist()]
    first = from_zero[1]
    return all(
        mark in (from_zero[runs], from_zero[runs + 1] ^ first) for runs, mark in marks.values()
    )


def _check_every_trial(dataset: Any, keys: Sequence[str], *, parts: int) -> None:
    """Count each trial: the only way where the numbers have gaps, or are names."""
    counted = dataset.groupby(list(keys), num_partitions=parts).count()
    twice = counted.filter(lambda row: row["count()"] > 1).take(5)
    if twice:
        shown = [" / ".join(str(row[key]) for key in keys) for row in twice]
        raise ReadError(
            f"trials occur more than once: {listed(shown, 5)}. Pass `duplicates='keep'` if they "
            "are different trials"
        )


def _sorted(tally: Tally) -> Tally:
    """The same with its tasks by name: blocks arrive in any order."""
    order = np.array(sorted(range(len(tally.tasks)), key=tally.tasks.__getitem__), dtype=np.intp)
    by_name = tally.take(order)
    return replace(by_name, features=dict(sorted(by_name.features.items())))
