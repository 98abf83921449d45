"""Transcripts of a dataset in files of their own: compressed together, read a few at a time.

Beside `suite=NAME/run=KEY/part-00000.parquet`, which has trials, a dataset may have
`_transcripts/suite=NAME/run=KEY/part-00000.parquet`. The column `transcript_row` of a trial is its
row there, and is empty if nothing was kept. Engines leave out what begins with an underscore.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import IO, Any

from passhat.errors import MissingExtra, ReadError
from passhat.records.transcript import KeptTranscript
from passhat.records.trial import Outcome

FOLDER = "_transcripts"
ROW_COLUMN = "transcript_row"

GROUP_ROWS, GROUP_BYTES = 500, 4 * 2**20
"""Transcripts that are compressed together: what must be read to show one of them."""

MOST_GROUP_BYTES = 2**30
"""A group of rows that unpacks to more is refused; `write_shard` makes none of that size."""

_COLUMNS = ("system", "task", "trial", "outcome", "text")
_KEYS = _COLUMNS[:4]

Place = Path | IO[bytes]


def shard_of(trials: PurePath) -> PurePath:
    """The file with the transcripts of one file of trials.

    >>> str(shard_of(PurePath("trials/suite=a/run=b/part-00000.parquet")))
    'trials/_transcripts/suite=a/run=b/part-00000.parquet'
    """
    home = trials.parents[min(2, len(trials.parents) - 1)]
    return home / FOLDER / trials.relative_to(home)


def write_shard(rows: Iterable[KeptTranscript], target: Path) -> int:
    """Write transcripts to a file, and return how many; no file is made if there are none."""
    pyarrow, parquet = _arrow("exporting transcripts")
    kinds = [pyarrow.int64() if name == "trial" else pyarrow.string() for name in _COLUMNS]
    schema = pyarrow.schema(list(zip(_COLUMNS, kinds, strict=True)))
    written, writer = 0, None
    for group in _groups(rows):
        if writer is None:
            target.parent.mkdir(parents=True, exist_ok=True)
            writer = parquet.ParquetWriter(
                target, schema, compression="zstd", use_dictionary=["system", "task", "outcome"]
            )
        cells = zip(*((*row.key, _word(row.outcome), row.text) for row in group), strict=True)
        arrays = [pyarrow.array(column, kind) for column, kind in zip(cells, kinds, strict=True)]
        writer.write_table(pyarrow.Table.from_arrays(arrays, schema=schema))
        written += len(group)
    if writer is not None:
        writer.close()
    return written


def scan_shard(
    place: Place, name: str, wanted: Callable[[KeptTranscript], bool]
) -> Iterator[KeptTranscript]:
    """The transcripts whose trial is `wanted`; of groups without any, no text is read."""
    with _opened(place, name) as file:
        for group in range(file.num_row_groups):
            keys = _cells(file, group, _KEYS)
            trials = [_without_text(*cells) for cells in zip(*keys, strict=True)]
            chosen = [row for row, trial in enumerate(trials) if wanted(trial)]
            if not chosen:
                continue
            (texts,) = _cells(file, group, ("text",))
            for row in chosen:
                key, outcome = trials[row].key, trials[row].outcome
                yield KeptTranscript(key=key, outcome=outcome, text=texts[row] or "")


def read_rows(place: Place, name: str, rows: Sequence[int | None]) -> Iterator[str | None]:
    """The texts of these rows of a shard, in their order; None for None.

    Only the groups with a wanted row are read, one in memory at a time: cheap for rows in order.
    """
    with _opened(place, name) as file:
        sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
        first = 0
        texts: list[str | None] = []
        for row in rows:
            if row is None:
                yield None
                continue
            if not first <= row < first + len(texts):
                group, first = _group_of(row, sizes, name)
                (texts,) = _cells(file, group, ("text",))
            yield texts[row - first]


def _groups(rows: Iterable[KeptTranscript]) -> Iterator[list[KeptTranscript]]:
    group: list[KeptTranscript] = []
    size = 0
    for row in rows:
        group.append(row)
        size += len(row.text)
        if len(group) == GROUP_ROWS or size >= GROUP_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


def _group_of(row: int, sizes: Sequence[int], name: str) -> tuple[int, int]:
    """The group of rows that holds a row, and the number of its first."""
    first = 0
    for group, size in enumerate(sizes):
        if 0 <= row - first < size:
            return group, first
        first += size
    raise ReadError(f"{name}: has {first:,} transcripts, but a trial refers to row {row:,}")


def _cells(file: Any, group: int, columns: Sequence[str]) -> list[list[Any]]:
    table = file.read_row_group(group, columns=list(columns))
    return [table.column(name).to_pylist() for name in columns]


def _without_text(system: Any, task: Any, trial: Any, outcome: Any) -> KeptTranscript:
    known = {_word(one): one for one in Outcome}
    key = (str(system), str(task), int(trial or 0))
    return KeptTranscript(key=key, outcome=known.get(outcome), text="")


def _word(outcome: Outcome | None) -> str | None:
    return None if outcome is None else outcome.name.lower()


@contextmanager
def _opened(place: Place, name: str) -> Iterator[Any]:
    """The file, once its metadata has been checked."""
    pyarrow, parquet = _arrow("reading transcripts of a dataset")
    try:
        with parquet.ParquetFile(place) as file:
            names = file.schema_arrow.names
            if lacking := [column for column in _COLUMNS if column not in names]:
                raise ReadError(f"{name}: holds no transcripts (no column {lacking[0]})")
            for group in range(file.num_row_groups):
                size = file.metadata.row_group(group).total_byte_size
                if size > MOST_GROUP_BYTES:
                    raise ReadError(f"{name}: a group of its rows unpacks to {size:,} bytes")
            yield file
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        first = str(error).strip().partition("\n")[0]
        raise ReadError(f"{name}: not a valid Parquet file ({first})") from error


def _arrow(what: str) -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtra(what, "frames") from None
    return pyarrow, parquet
