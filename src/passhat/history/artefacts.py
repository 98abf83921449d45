"""The files that are kept of trials: diffs, logs, test reports, and what a task asks to keep.

Their contents are rows of the store, each there once under its SHA-256, and not files in a folder
beside it: so a trial and its files are written in one transaction, a worker on another machine
needs no disk that it shares, and one file (or one database) is all there is to copy.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from passhat.history.database import damaged
from passhat.records.ledger import Artefact
from passhat.records.trial import TrialKey

if TYPE_CHECKING:
    from passhat.history.database import Database
    from passhat.history.runs import Run

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Content = tuple[str, int, bytes]
"""A row of `contents`: the SHA-256 of the bytes, how many they are, and the bytes, compressed."""

_CONTENT = (
    "INSERT INTO contents (digest, size, body) VALUES (?, ?, ?) "
    # An update, so that the row is locked: whoever deletes what nobody needs waits for us.
    "ON CONFLICT (digest) DO UPDATE SET size = excluded.size"
)
_ARTEFACT = (
    "INSERT INTO artefacts (run, system, task, trial, name, digest) VALUES (?, ?, ?, ?, ?, ?)"
)


def packed(files: Iterable[Mapping[str, bytes]]) -> dict[str, Content]:
    """The contents of files by their digest, in its order, in which all writers lock them."""
    contents = {digest_of(content): content for own in files for content in own.values()}
    return {
        digest: (digest, len(contents[digest]), zstd.compress(contents[digest], level=3))
        for digest in sorted(contents)
    }


def digest_of(content: bytes) -> str:
    """The SHA-256 of a content: what it is found by."""
    return hashlib.sha256(content).hexdigest()


def add_artefacts(
    database: Database,
    run: int,
    files: Mapping[TrialKey, Mapping[str, bytes]],
    ids: Mapping[str, int],
) -> None:
    """Keep the files of trials in place of those they had, inside a transaction of the caller.

    `ids` are the numbers of agents and tasks in `names`.
    """
    trials = {key: (run, ids[key[0]], ids[key[1]], key[2]) for key in files}
    database.executemany(
        "DELETE FROM artefacts WHERE run = ? AND system = ? AND task = ? AND trial = ?",
        trials.values(),
    )
    if not any(files.values()):
        return
    database.executemany(_CONTENT, packed(files.values()).values())
    database.executemany(
        _ARTEFACT,
        [
            (*trials[key], name, digest_of(content))
            for key, own in files.items()
            for name, content in own.items()
        ],
    )


def list_artefacts(database: Database, run: Run, key: TrialKey | None = None) -> list[Artefact]:
    """The files that are kept of a run, or of one trial, in the order of their keys and names."""
    system, task, trial = key or (None, None, None)
    rows = database.execute(
        """
        SELECT s.text, t.text, a.trial, a.name, a.digest, coalesce(c.size, 0) FROM artefacts a
        JOIN names s ON s.id = a.system JOIN names t ON t.id = a.task
        LEFT JOIN contents c ON c.digest = a.digest
        WHERE a.run = ?1 AND s.text = coalesce(CAST(?2 AS TEXT), s.text)
          AND t.text = coalesce(CAST(?3 AS TEXT), t.text)
          AND a.trial = coalesce(CAST(?4 AS INTEGER), a.trial)
        """,
        (run.id, system, task, trial),
    )
    artefacts = [
        Artefact(key=(system, task, trial), name=name, digest=digest, size=size)
        for system, task, trial, name, digest, size in rows
    ]
    return sorted(artefacts, key=lambda artefact: (artefact.key, artefact.name))


def each_artefact(database: Database, run: Run) -> Iterator[tuple[Artefact, bytes | None]]:
    """The files of a run, and what is in each; None where an earlier one has the same content."""
    seen: set[str] = set()
    for artefact in list_artefacts(database, run):
        is_new = artefact.digest not in seen
        seen.add(artefact.digest)
        yield artefact, read_artefact(database, artefact) if is_new else None


def copy_artefacts(
    database: Database,
    run: Run,
    files: Iterable[tuple[Artefact, bytes | None]],
    clean: Callable[[bytes], bytes | None],
) -> int:
    """Keep files of another store or of a dataset, in one transaction; returns how many.

    They come as `each_artefact` gives them. `clean` takes secrets out of a content; one from which
    it cannot is left out, and so are files of trials that the run does not have.
    """
    there = {
        (system, task, trial): (run.id, *ids, trial)
        for system, task, trial, *ids in database.execute(
            "SELECT s.text, t.text, x.trial, x.system, x.task FROM trials x "
            "JOIN names s ON s.id = x.system JOIN names t ON t.id = x.task WHERE x.run = ?",
            (run.id,),
        )
    }
    digests: dict[str, str] = {}
    kept: dict[tuple[object, ...], str] = {}
    with database.writing():
        for artefact, content in files:
            cleaned = None if content is None else clean(content)
            if cleaned is not None:
                ((digest, row),) = packed([{"": cleaned}]).items()
                database.execute(_CONTENT, row)
                digests[artefact.digest] = digest
            if artefact.digest in digests and artefact.key in there:
                kept[*there[artefact.key], artefact.name] = digests[artefact.digest]
        database.executemany(_ARTEFACT, [(*place, kept[place]) for place in kept])
        forget_contents(database)
    return len(kept)


def read_artefact(database: Database, artefact: Artefact) -> bytes:
    """What is in a file; raises HistoryError if it is not what was kept."""
    row = database.execute(
        "SELECT body FROM contents WHERE digest = ?", (artefact.digest,)
    ).fetchone()
    system, task, trial = artefact.key
    about = f"the artefact {artefact.name} of trial {trial} of {system} at {task}"
    if row is None:
        raise damaged(database.name, f"{about} is missing")
    try:
        content = zstd.decompress(row[0])
    except (zstd.ZstdError, TypeError):
        content = b""
    if digest_of(content) != artefact.digest:
        raise damaged(database.name, f"{about} is not what was stored")
    return content


def check_artefacts(database: Database, run: Run) -> None:
    """Raise HistoryError if a file of a run is missing, or is not what was kept."""
    for artefact in {a.digest: a for a in list_artefacts(database, run)}.values():
        read_artefact(database, artefact)


def sealed_rows(database: Database, run: int) -> Iterator[tuple[object, ...]]:
    """What a run's checksum is made of besides its trials: which file each has, and its digest."""
    rows = database.execute(
        "SELECT s.text, t.text, a.trial, a.name, a.digest FROM artefacts a "
        "LEFT JOIN names s ON s.id = a.system LEFT JOIN names t ON t.id = a.task WHERE a.run = ?",
        (run,),
    )
    # Not by the database, which may sort texts otherwise on another machine.
    yield from sorted(rows, key=repr)


def forget_contents(database: Database) -> None:
    """Delete the contents that no trial needs any more, inside a transaction of the caller."""
    unused = "NOT EXISTS (SELECT 1 FROM artefacts a WHERE a.digest = contents.digest)"
    rows = database.execute(
        f"SELECT digest FROM contents WHERE {unused} ORDER BY digest"  # noqa: S608  our words
    ).fetchall()
    # Locked first and looked at again then: another process may be about to refer to one of them.
    database.executemany("UPDATE contents SET size = size WHERE digest = ?", rows)
    database.executemany(f"DELETE FROM contents WHERE digest = ? AND {unused}", rows)  # noqa: S608
