"""Marks of the calls that a process has sent, in a file that outlives the process.

An intent is in the store before its call is sent, so a process that is killed leaves intents of
calls that it never sent. The marks tell them apart: one is written just before the bytes of a call
are sent. It is not flushed to the disk, so it takes a microsecond instead of a millisecond: it
survives the death of the process, but is trusted only until the machine restarts.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from passhat.dataclass import dataclass
from passhat.history.database import Database, is_postgres
from passhat.history.leases import ProcessIdentity
from passhat.history.runs import Run
from passhat.records.ledger import Answer, CallKey, Entry, Finished, LostAnswer, Refused, TrialKey

MARK_BYTES = 16
"""Bytes of the hash of a call: so many that no two calls of a run share one."""

_NOBODY = bytes(MARK_BYTES)


class SentMarks:
    """The marks of one session. A mark takes a free place in the file until its call is settled.

    Without a session, or where the file cannot be written, nothing is marked; then every intent
    counts as perhaps sent.
    """

    def __init__(self, database: Database, run: Run, session: int | None) -> None:
        self._path = None if session is None else marks_path(database, run, session)
        self._file: int | None = None
        self._places: dict[TrialKey, dict[int, int]] = {}
        self._free: list[int] = []
        self._used = 0

    def open(self) -> None:
        """Create the file; called before the first intent is in the store."""
        if self._path is None or self._file is not None:
            return
        with suppress(OSError):
            self._path.unlink()  # of an earlier run that had the same number
        try:
            # O_EXCL: another user's file or link in a shared folder is not written to.
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError:
            self._drop()

    def add(self, call: CallKey) -> None:
        """Mark a call as sent."""
        steps = self._places.setdefault(call[:3], {})
        if self._file is None or call[3] in steps:
            return
        place = self._free.pop() if self._free else self._used
        self._used = max(self._used, place + 1)
        steps[call[3]] = place
        self._write(place, mark_of(call))

    def remove(self, call: CallKey) -> None:
        """Forget a call: it was answered, or costs nothing."""
        place = self._places.get(call[:3], {}).pop(call[3], None)
        if place is not None:
            self._clear([place])

    def settle(self, entries: Iterable[Entry]) -> None:
        """Forget the calls that these entries, now in the store, account for."""
        if self._file is None:
            return
        for entry in entries:
            if isinstance(entry, Finished):
                trial = entry.trial
                steps = self._places.pop((trial.system, trial.task, trial.trial), {})
                self._clear(steps.values())
            elif isinstance(entry, Answer | Refused | LostAnswer):
                self.remove(entry.call)

    def close(self) -> None:
        """Remove the file, unless a call is still marked: the next start needs to know."""
        if self._file is not None and not any(self._places.values()):
            self._drop()

    def _clear(self, places: Iterable[int]) -> None:
        for place in places:
            self._write(place, _NOBODY)
            self._free.append(place)

    def _write(self, place: int, mark: bytes) -> None:
        if self._file is None:
            return
        try:
            os.pwrite(self._file, mark, place * MARK_BYTES)
        except OSError:  # a full disk
            self._drop()

    def _drop(self) -> None:
        """Stop marking and remove the file: without it, no call counts as never sent."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink()
        self._path = None


def mark_of(call: CallKey) -> bytes:
    """The hash of a call."""
    text = "\x1f".join(map(str, call))
    return hashlib.blake2b(text.encode(), digest_size=MARK_BYTES).digest()


def marks_path(database: Database, run: Run, session: int) -> Path:
    """Where the marks of a session are: beside the store; for a server, on this machine."""
    if not is_postgres(database.name):
        return Path(f"{database.name}-sent-{session}")
    return Path(tempfile.gettempdir()) / f"passhat-sent-{run.key}-{session}"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownMarks:
    """The calls that a process has sent; `final` if it can send no more."""

    sent: frozenset[bytes]
    final: bool


def read_marks(path: Path, process: ProcessIdentity) -> KnownMarks | None:
    """Which calls a process has sent that no longer owns its run; None if that cannot be known.

    It cannot if the process ran on another machine or before a reboot, because marks are not
    flushed to the disk. A process that lost its lease but still runs may send more calls later.
    """
    if not process.is_here() or process.place == process.host:
        return None  # outside of Linux nothing shows whether the machine has restarted
    final = process.is_dead() or process.is_this()  # before the file is read
    try:
        if path.stat().st_uid != os.getuid():
            return None
        marks = path.read_bytes()
    except OSError:
        return None
    parts = (marks[i : i + MARK_BYTES] for i in range(0, len(marks), MARK_BYTES))
    return KnownMarks(sent=frozenset(parts), final=final)
