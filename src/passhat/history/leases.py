"""Which process works on a run: one owner at a time, which keeps renewing its lease."""

from __future__ import annotations

import os
import platform
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from passhat.dataclass import dataclass
from passhat.errors import HistoryError, LostRun, StoreError
from passhat.history.database import Database
from passhat.history.runs import Run, now

if TYPE_CHECKING:
    from passhat.history.references import Index

LEASE_SECONDS = float(os.environ.get("PASSHAT_LEASE_SECONDS", "30"))
"""How long a process keeps its run without a sign of life. It renews three times as often, so
that it keeps the run if two heartbeats are lost (a slow disk, a paused machine)."""

OWNER = "owner"
_COLUMNS = "id, host, place, pid, born, started, lease"


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One process that works on a run; `left` is how many seconds its lease still lasts."""

    id: int
    process: ProcessIdentity
    started: str
    left: float

    @property
    def gone(self) -> bool:
        """Whether no one needs to wait for it: its lease ran out, or its process is dead."""
        return self.left <= 0 or self.process.is_dead()

    def __str__(self) -> str:
        seen = max(0.0, LEASE_SECONDS - self.left)
        return (
            f"{self.process} "
            f"(since {self.started[:19].replace('T', ' ')} UTC, last seen {seen:.0f} s ago)"
        )


class Lease:
    """The right to write to a run. Every write checks and renews it; so does a heartbeat."""

    def __init__(self, database: Database, run: Run, session: int) -> None:
        self.session = session
        self.run = run
        self._database = database
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="passhat-lease", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        with suppress(StoreError):
            self._database.execute("UPDATE sessions SET alive = 0 WHERE id = ?", (self.session,))

    def renew(self, database: Database) -> None:
        """Extend the lease inside the caller's transaction; LostRun if another has the run."""
        if not renew_session(database, self.session):
            raise LostRun(
                f"run {self.run.key} was taken over by another process, or deleted: what this "
                "process does from now on is not kept"
            )

    def _beat(self) -> None:
        """Renew while nothing is written; this is another thread, with its own connection."""
        database: Database | None = None
        while not self._over.wait(LEASE_SECONDS / 3):
            try:
                database = database or self._database.another()
                self.renew(database)
            except LostRun:
                break  # the next write raises it again
            except StoreError:
                database = None
                continue  # the lease outlasts a short outage; a long one fails the next write
        if database is not None:
            database.close()


@contextmanager
def hold(history: Index, run: Run, *, role: str = OWNER, hands: int = 0) -> Iterator[Lease]:
    """Own a run. A living owner's run is refused, a dead one's is taken over."""
    database = history.database
    with database.writing():
        if (owner := find_owner(history, run, role=role)) is not None:
            if not owner.gone:
                raise HistoryError(_held(history, run, owner))
            end_sessions(database, [owner.id])
        session = open_session(database, run, role=role, hands=hands)
    with Lease(database, run, session) as lease:
        yield lease


def find_owner(history: Index, run: Run, *, role: str = OWNER) -> Session | None:
    """The session that owns the run, unless it is known to have ended."""
    clock = history.database.clock
    row = history.database.execute(
        f"SELECT {_COLUMNS} - {clock} FROM sessions "  # noqa: S608  our words
        "WHERE run = ? AND role = ? AND alive = 1 ORDER BY id DESC",
        (run.id, role),
    ).fetchone()
    return None if row is None else _session(row)


def with_owner(history: Index, run: Run) -> Run:
    """The run with its owner; one without an owner has the status "stopped"."""
    if run.status != "running":
        return run
    owner = find_owner(history, run)
    if owner is None and run.started > now(seconds_ago=LEASE_SECONDS):
        return run  # a run is stored a moment before its owner
    if owner is None or owner.gone:
        return replace(run, status="stopped")
    return replace(run, owner=str(owner.process))


def open_session(database: Database, run: Run, *, role: str, hands: int) -> int:
    """Add a session for this process; returns the number that its writes are checked against."""
    me = this_process()
    row = database.execute(
        "INSERT INTO sessions "  # noqa: S608  our words
        "(run, role, host, place, pid, born, hands, lease, started) "
        f"VALUES (?, ?, ?, ?, ?, ?, ?, {database.clock} + ?, ?) RETURNING id",
        (run.id, role, me.host, me.place, me.pid, me.born, hands, LEASE_SECONDS, now()),
    ).fetchone()
    assert row is not None
    return int(row[0])


def renew_session(database: Database, session: int) -> bool:
    """Extend the lease of a session; False if the session was closed."""
    done = database.execute(
        f"UPDATE sessions SET lease = {database.clock} + ? WHERE id = ? AND alive = 1",  # noqa: S608  our words
        (LEASE_SECONDS, session),
    )
    return done.rowcount > 0


def end_sessions(database: Database, sessions: list[int]) -> None:
    """Close sessions: the store refuses whatever they write after this."""
    database.executemany(
        "UPDATE sessions SET alive = 0 WHERE id = ?", [(session,) for session in sessions]
    )


def _session(row: tuple[Any, ...]) -> Session:
    number, host, place, pid, born, started, left = row
    process = ProcessIdentity(host=host, place=place, pid=pid, born=born)
    return Session(id=number, process=process, started=started, left=left)


def _held(history: Index, run: Run, owner: Session) -> str:
    return (
        f"{history.name}: run {run.key} is still running: {owner} has it. Wait for it, or stop "
        f"that process; when it is gone, the run can be taken over at once on its host, and after "
        f"{LEASE_SECONDS:.0f} s elsewhere"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessIdentity:
    """A process: the name of its host, where its pid is valid, the pid, and its start.

    A pid alone is not enough: it is used again after a while, and two containers with the same
    host name each have a process 1. `place` is the boot of the machine and the pid namespace.
    """

    host: str
    place: str
    pid: int
    born: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"

    def is_dead(self) -> bool:
        """Whether the process is known to be gone; False if that cannot be seen from here."""
        return self.is_here() and _born(self.pid) != self.born

    def is_here(self) -> bool:
        """Whether it ran on this machine, since its last boot."""
        return bool(self.place) and self.place == _place()

    def is_this(self) -> bool:
        """Whether it is this process."""
        return self == this_process()


def this_process() -> ProcessIdentity:
    """The identity of this process."""
    pid = os.getpid()
    return ProcessIdentity(host=platform.node(), place=_place(), pid=pid, born=_born(pid))


def _place() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        # Elsewhere a pid is valid on the whole machine; its name is the best there is.
        return platform.node()


def _born(pid: int) -> str:
    """When a process started, as the system writes it; "" if it is gone, or a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return "" if Path("/proc/self/stat").exists() else _born_by_ps(pid)
    except OSError:
        return ""
    # The name of the program, in brackets, may hold anything; behind it come state, ..., starttime.
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] in "ZX" else fields[19]


def _born_by_ps(pid: int) -> str:
    done = subprocess.run(
        ["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return done.stdout.strip()
