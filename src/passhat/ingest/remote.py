"""Results at an address such as s3://evals/trials: copied to this machine, then read."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path, PurePath, PurePosixPath
from typing import IO, Any, TypeGuard

from passhat.dataclass import dataclass
from passhat.errors import MissingExtra, ReadError
from passhat.records import Source
from passhat.records.ledger import Artefact
from passhat.records.secrets import bare_address
from passhat.records.transcript import KeptTranscript
from passhat.records.trial import Outcome

_DATABASES = ("postgresql", "postgres")
_PATTERN = "*?["


@dataclass(frozen=True, slots=True, kw_only=True)
class _Copy:
    """What was copied: `home` has the files that are below `root` in the store.

    `versions` identifies the versions of the files in the store, and `path` is what to read.
    """

    root: str
    versions: object
    home: Path
    path: Path


_copies: dict[str, _Copy] = {}
"""By address."""


def is_url(place: object) -> TypeGuard[str]:
    """Whether a text is the address of a store of files rather than a path of this machine.

    >>> is_url("s3://evals/trials"), is_url("exports/trials"), is_url("postgresql://host/db")
    (True, False, False)
    """
    scheme, mark, _ = place.partition("://") if isinstance(place, str) else ("", "", "")
    return bool(mark) and scheme.isalnum() and scheme not in _DATABASES


def file_system(url: str) -> tuple[Any, str]:
    """The file system of an address, and the path in it."""
    scheme = url.partition("://")[0]
    try:
        import fsspec  # type: ignore[import-untyped,unused-ignore]  # an extra
    except ImportError:
        raise MissingExtra(f"an address with {scheme}://", "cloud") from None
    try:
        files, base = fsspec.core.url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise ReadError(f"{_public(url)}: cannot be reached ({_first_line(error)})") from None
    return files, str(base)


def local_copy(url: str) -> Path:
    """The file or folder at an address, copied to this machine until the program ends.

    Transcripts of a dataset stay where they are until `transcripts_beside` asks for them. What was
    copied before is copied again only if the store says that a file has changed.
    """
    import shutil
    import tempfile

    files, base = file_system(url)
    with _failures_of(url):
        listed = _listing(files, base)
    if not listed:
        raise ReadError(f"{_public(url)}: no such file or folder")
    # What identifies the version of a file, under the names that the usual stores use.
    keys = ("size", "ETag", "etag", "LastModified", "mtime", "created")
    versions = [(name, *(str(info.get(key)) for key in keys)) for name, info in listed.items()]
    if url in _copies and _copies[url].versions == versions:
        return _copies[url].path
    root = _root(base, listed)
    # Called as in the store: agents without a name are called by their file or folder.
    home = Path(tempfile.mkdtemp(dir=_home())) / (PurePosixPath(root).name or "files")
    home.mkdir()
    needed = sum(int(info.get("size") or 0) for info in listed.values())
    room = shutil.disk_usage(home).free
    if needed > room:
        raise ReadError(f"{_public(url)}: holds {needed:,} bytes, but {home} has room for {room:,}")
    with _failures_of(url):
        for name in listed:
            _fetch(files, name, _inside(home, name, root))
    path = _inside(home, base, root) if base in listed else home
    _copies[url] = _Copy(root=root, versions=versions, home=home, path=path)
    return path


def transcripts_beside(trials: Path) -> Path | None:
    """The file with the transcripts of one file of a dataset; fetched if that is a copy."""
    shard = Path(shard_of(trials))
    if shard.is_file():
        return shard
    for url, copy in _copies.items():
        if trials.is_relative_to(copy.home):
            files, _ = file_system(url)
            source = str(shard_of(PurePosixPath(copy.root) / trials.relative_to(copy.home)))
            # Outside of the copy, whose files are trials.
            target = copy.home.parent / FOLDER / trials.relative_to(copy.home)
            with _failures_of(url):
                if files.exists(source):
                    _fetch(files, source, target)
                    return target
    return None


@contextmanager
def called_by_address() -> Iterator[None]:
    """In an error that is raised inside, call copies by the address that they came from."""
    try:
        yield
    except ReadError as error:
        error.args = (shown(str(error)), *error.args[1:])
        raise


def sources_by_address(sources: Iterable[Source]) -> tuple[Source, ...]:
    """Sources in whose names and notes copies are called by their address."""
    return tuple(
        replace(source, name=shown(source.name), notes=tuple(map(shown, source.notes)))
        if _copies
        else source
        for source in sources
    )


def shown(text: str) -> str:
    """A text in which copies are called by the address that they were copied from."""
    for url, copy in _copies.items():
        text = text.replace(str(copy.path), _public(url).rstrip("/"))
    return text


def _public(url: str) -> str:
    """An address as it may be shown; a signed one of the web has its key in the query.

    >>> _public("https://store.example/logs.eval?sig=abc"), _public("s3://evals/run?.csv")
    ('https://store.example/logs.eval', 's3://evals/run?.csv')
    """
    return bare_address(url) if url.startswith(("http://", "https://")) else url


def transcript_files(place: str) -> Iterator[tuple[str, Any]]:
    """Each file of transcripts in a dataset, by name, opened for reading where it is.

    `place` is a folder of this machine or an address.
    """
    return _opened_files(place, _is_transcripts)


def _opened_files(place: str, wanted: Callable[[PurePath], bool]) -> Iterator[tuple[str, Any]]:
    if not is_url(place):
        for path in sorted(filter(wanted, Path(place).rglob("*.parquet"))):
            with path.open("rb") as stream:
                yield str(path), stream
        return
    files, base = file_system(place)
    with _failures_of(place):
        names = sorted(name for name in files.find(base) if wanted(PurePosixPath(name)))
        for name in names:
            with files.open(name, "rb") as stream:
                yield str(files.unstrip_protocol(name)), stream


def _listing(files: Any, base: str) -> dict[str, Any]:
    """The files at a path, in a folder or of a pattern, each with the store's facts about it."""
    listing = files.glob if any(mark in base for mark in _PATTERN) else files.find
    return {
        name: info
        for name, info in sorted(listing(base, detail=True).items())
        if info.get("type") != "directory" and not _is_beside(PurePosixPath(name))
    }


def _is_transcripts(file: PurePath) -> bool:
    return FOLDER in file.parts and file.suffix == ".parquet"


def _is_beside(file: PurePath) -> bool:
    """Whether a file of a dataset has something else than trials."""
    return not {FOLDER, ARTEFACTS}.isdisjoint(file.parts) and file.suffix == ".parquet"


def _root(base: str, listed: Container[str]) -> str:
    """The folder that all files are in, for one file, for a pattern, or for a folder."""
    if base in listed:
        return base.rpartition("/")[0]
    first = min((base.find(mark) for mark in _PATTERN if mark in base), default=len(base))
    return base if first == len(base) else base[:first].rpartition("/")[0]


def _inside(home: Path, name: str, root: str) -> Path:
    """Where to put a file: always below `home`, whatever its name says."""
    target = (home / name.removeprefix(root).lstrip("/")).resolve()
    if not target.is_relative_to(home):
        raise ReadError(f"{name}: a file of that name cannot be copied")
    return target


def _fetch(files: Any, name: str, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    files.get_file(name, str(target))


@cache
def _home() -> str:
    """A folder for all copies, removed when the program ends."""
    import atexit
    import shutil
    import tempfile

    folder = str(Path(tempfile.mkdtemp(prefix="passhat-copies-")).resolve())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@contextmanager
def _failures_of(url: str) -> Iterator[None]:
    """Turn what a store of files raises into a ReadError: each store has its own exceptions."""
    try:
        yield
    except ReadError:
        raise
    except Exception as error:
        why = _first_line(error).replace(url, _public(url))
        raise ReadError(f"{_public(url)}: cannot be read ({why})") from error


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__


# Transcripts of a dataset in files of their own: compressed together, read a few at a time.
#
# Beside `suite=NAME/run=KEY/part-00000.parquet`, which has trials, a dataset may have
# `_transcripts/suite=NAME/run=KEY/part-00000.parquet`. The column `transcript_row` of a trial is
# its row there, and is empty if nothing was kept. Engines leave out what begins with an
# underscore.
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
    known = {_word(outcome): outcome for outcome in Outcome}
    with _opened(place, name) as file:
        for group in range(file.num_row_groups):
            keys = zip(*_cells(file, group, _KEYS), strict=True)
            chosen: dict[int, KeptTranscript] = {}
            for row, (system, task, trial, outcome) in enumerate(keys):
                key = (str(system), str(task), int(trial or 0))
                without_text = KeptTranscript(key=key, outcome=known.get(outcome), text="")
                if wanted(without_text):
                    chosen[row] = without_text
            if chosen:
                (texts,) = _cells(file, group, ("text",))
                yield from (replace(hit, text=texts[row] or "") for row, hit in chosen.items())


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


# The files that are kept of trials: `_artefacts/suite=NAME/run=KEY/part-00000.parquet` has a row
# for each, with its name and SHA-256, and its content where that comes for the first time.
ARTEFACTS = "_artefacts"
_ARTEFACT_COLUMNS = ("system", "task", "trial", "name", "sha256", "size", "content")

FileRow = tuple[Artefact, bytes | None]
"""A file of a trial, and what is in it; None where an earlier row has the same."""


def write_artefacts(rows: Iterable[FileRow], target: Path) -> int:
    """Write the files of trials to one file, and return how many; none is made without any."""
    pyarrow, parquet = _arrow("exporting the files of trials")
    kinds = {"trial": pyarrow.int64(), "size": pyarrow.int64(), "content": pyarrow.binary()}
    schema = pyarrow.schema([(n, kinds.get(n, pyarrow.string())) for n in _ARTEFACT_COLUMNS])
    written, writer = 0, None
    for file, content in rows:
        if writer is None:
            target.parent.mkdir(parents=True, exist_ok=True)
            writer = parquet.ParquetWriter(target, schema, compression="zstd", use_dictionary=False)
        cells = (*file.key, file.name, file.digest, file.size, content)
        # A group of rows for each, so that no more than one content is ever in memory.
        named = dict(zip(_ARTEFACT_COLUMNS, cells, strict=True))
        writer.write_table(pyarrow.Table.from_pylist([named], schema=schema))
        written += 1
    if writer is not None:
        writer.close()
    return written


def read_artefacts(place: str) -> Iterator[tuple[str, Iterator[FileRow]]]:
    """The files of trials in a dataset, a folder or an address: by the file that has them.

    `place` may also be the folder of one run in a dataset.
    """
    parts = place.rstrip("/").rsplit("/", 2)
    if len(parts) == 3 and parts[1].startswith("suite=") and parts[2].startswith("run="):
        place = "/".join((parts[0], ARTEFACTS, *parts[1:]))
    for name, stream in _opened_files(place, lambda file: ARTEFACTS in file.parts):
        yield name, _artefact_rows(stream, name)


def _artefact_rows(stream: IO[bytes], name: str) -> Iterator[FileRow]:
    with _opened(stream, name, _ARTEFACT_COLUMNS) as file:
        for group in range(file.num_row_groups):
            for row in file.read_row_group(group).to_pylist():
                content = row["content"]
                if content is not None and hashlib.sha256(content).hexdigest() != row["sha256"]:
                    raise ReadError(f"{name}: {row['name']} is not what was exported")
                key = (str(row["system"]), str(row["task"]), int(row["trial"] or 0))
                made = Artefact(key=key, name=str(row["name"]), digest=str(row["sha256"]),
                                size=int(row["size"] or 0))  # fmt: skip
                yield made, content


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


def _word(outcome: Outcome | None) -> str | None:
    return None if outcome is None else outcome.name.lower()


@contextmanager
def _opened(place: Place, name: str, columns: Sequence[str] = _COLUMNS) -> Iterator[Any]:
    """The file, once its metadata has been checked."""
    pyarrow, parquet = _arrow("reading transcripts of a dataset")
    try:
        with parquet.ParquetFile(place) as file:
            names = file.schema_arrow.names
            if lacking := [column for column in columns if column not in names]:
                what = "transcripts" if columns is _COLUMNS else "files of trials"
                raise ReadError(f"{name}: holds no {what} (no column {lacking[0]})")
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
