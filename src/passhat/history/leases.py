"""Who works on a run: leases, the trials of workers that died, and calls that were left open."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from passhat.dataclass import dataclass
from passhat.errors import HistoryError, LostRun, StoreError
from passhat.history.database import Database, Row, is_postgres
from passhat.history.runs import Run, now
from passhat.records.ledger import Answer, CallKey, Entry, Finished, LostAnswer, Refused
from passhat.records.trial import TrialKey

if TYPE_CHECKING:
    from passhat.history.runs import Index

WORKER = "worker"
"""The role of a worker among `sessions`."""

CALL_KEY = "system BIGINT, task BIGINT, trial BIGINT, step BIGINT"

_REAP = f"""
WITH judged AS (
  SELECT * FROM jsonb_to_recordset(CAST(:judged AS JSONB))
    AS j(session BIGINT, {CALL_KEY}, fate TEXT)),
held AS (
  SELECT a.run, a.system, a.task, a.trial, a.step, a.reserved_cost, a.reserved_tokens, a.priced,
    a.remote, j.fate FROM answers a JOIN judged j USING (session, system, task, trial, step)
  WHERE a.run = :run AND a.reply IS NULL FOR UPDATE OF a),
removed AS (
  DELETE FROM answers a USING held h WHERE h.remote IS NULL AND a.run = h.run
    AND a.system = h.system AND a.task = h.task AND a.trial = h.trial AND a.step = h.step),
remote AS (
  UPDATE answers a SET session = 0, reserved_cost = 0, reserved_tokens = 0 FROM held h
  WHERE h.remote IS NOT NULL AND a.run = h.run
    AND a.system = h.system AND a.task = h.task AND a.trial = h.trial AND a.step = h.step),
back AS (
  UPDATE tickets SET state = 0, session = NULL
  WHERE session = ANY(:ending) AND state = 1 AND run = :run),
ended AS (UPDATE sessions SET alive = 0 WHERE id = ANY(:ending)),
sums AS (
  SELECT count(*) AS calls, coalesce(sum(reserved_cost), 0) AS cost,
    coalesce(sum(reserved_tokens), 0) AS tokens,
    count(*) FILTER (WHERE fate IN ('lost', 'unsure')) AS lost_calls,
    coalesce(sum(reserved_cost) FILTER (WHERE fate IN ('lost', 'unsure')), 0) AS lost_cost,
    coalesce(sum(1 - priced) FILTER (WHERE fate IN ('lost', 'unsure')), 0) AS unpriced,
    count(*) FILTER (WHERE fate = 'unsure') AS unsure_calls,
    count(*) FILTER (WHERE fate = 'given up') AS given_up_calls,
    coalesce(sum(reserved_cost) FILTER (WHERE fate = 'given up'), 0) AS given_up_cost,
    coalesce(sum(1 - priced) FILTER (WHERE fate = 'given up'), 0) AS given_up_unpriced
  FROM held)
UPDATE accounts a SET lost_calls = a.lost_calls + s.lost_calls,
  lost_cost = a.lost_cost + s.lost_cost, unpriced = a.unpriced + s.unpriced,
  unsure_calls = a.unsure_calls + s.unsure_calls,
  given_up_calls = a.given_up_calls + s.given_up_calls,
  given_up_cost = a.given_up_cost + s.given_up_cost,
  given_up_unpriced = a.given_up_unpriced + s.given_up_unpriced,
  reserved_cost = greatest(a.reserved_cost - s.cost, 0),
  reserved_tokens = greatest(a.reserved_tokens - s.tokens, 0),
  reserved_calls = greatest(a.reserved_calls - s.calls, 0)
FROM sums s WHERE a.run = :run AND s.calls > 0
"""  # noqa: S608  our own names


def recover_dead_workers(database: Database, run: Run) -> None:
    """Make the tickets of dead workers ready again, and count their calls as perhaps paid."""
    for number, *process in database.execute(
        "SELECT id, host, place, pid, born FROM sessions WHERE run = ? AND role = ? AND alive = 1",
        (run.id, WORKER),
    ).fetchall():
        if ProcessIdentity(*process).is_dead():
            database.execute("UPDATE sessions SET lease = 0 WHERE id = ?", (number,))
    values = {"run": run.id, "role": WORKER}
    database.execute(
        f"UPDATE sessions SET alive = {ENDING} WHERE run = :run AND role = :role AND alive = 1 "  # noqa: S608  our words
        f"AND lease < {database.clock}",
        values,
    )
    # A closed session writes nothing more: what it had written by then is all there is.
    ending = database.execute(
        f"SELECT id FROM sessions WHERE run = :run AND role = :role AND alive = {ENDING}",  # noqa: S608  our words
        values,
    ).fetchall()
    if not ending:
        return
    sessions = [int(row[0]) for row in ending]
    judged = [
        {
            "session": call.session,
            **dict(zip(("system", "task", "trial", "step"), call.key, strict=True)),
            "fate": call.fate,
        }
        for call in read_open_calls(database, run, ending=True)
    ]
    database.execute(_REAP, {"run": run.id, "ending": sessions, "judged": as_json(judged)})
    for session in sessions:
        with suppress(OSError):
            marks_path(database, run, session).unlink(missing_ok=True)


def as_json(records: Iterable[Any]) -> str:
    """Records as JSON for PostgreSQL, which cannot store NUL in a text."""
    return json.dumps(list(records)).replace("\\u0000", "\\ufffd")


# Calls with an intent and no answer: whether they were sent, and whether they may be billed.

CallFate = Literal["lost", "unsure", "given up", "free"]
"""Lost: sent, and asked again. Unsure: asked again, perhaps never sent. Given up: sent, and its
trial ended without the answer. Free: never sent, or of an agent that costs nothing."""

ENDING = 2
"""`sessions.alive` of one that may write no more, and whose calls are not accounted for yet."""

# Once counted, a call whose answer the provider prepares has session 0, which no process has.
_OPEN = """
SELECT a.session, a.system, a.task, a.trial, a.step, s.text, t.text, a.request, a.reserved_cost,
  a.priced, a.remote, x.host, x.place, x.pid, x.born,
  EXISTS (SELECT 1 FROM trials y WHERE y.run = a.run AND y.system = a.system AND y.task = a.task
    AND y.trial = a.trial),
  EXISTS (SELECT 1 FROM trials z WHERE z.run = a.run AND z.system = a.system AND z.cost > 0)
FROM answers a JOIN names s ON s.id = a.system JOIN names t ON t.id = a.task
LEFT JOIN sessions x ON x.id = a.session
WHERE a.run = ?1 AND a.reply IS NULL AND coalesce(a.session, -1) <> 0
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCall:
    """A call without an answer: its key in the store, the most it may have cost, and its fate."""

    session: int | None
    key: tuple[int, int, int, int]
    cost: int
    priced: bool
    remote: str | None
    fate: CallFate


def read_open_calls(database: Database, run: Run, *, ending: bool = False) -> list[OpenCall]:
    """The open calls of a run; with `ending`, those of sessions that are being ended."""
    more = f"AND x.alive = {ENDING}" if ending else ""
    rows = database.execute(_OPEN + more, (run.id,)).fetchall()
    marks: dict[int, KnownMarks | None] = {}
    for row in rows:
        session = row[0]
        if session is not None and session not in marks and row[11] is not None:
            process = ProcessIdentity(*row[11:15])
            marks[session] = read_marks(marks_path(database, run, session), process)
    return [
        OpenCall(
            session=row[0],
            key=(row[1], row[2], row[3], row[4]),
            cost=row[8],
            priced=bool(row[9]),
            remote=row[10],
            fate=_fate(row, marks),
        )
        for row in rows
    ]


def _fate(row: Row, marks: dict[int, KnownMarks | None]) -> CallFate:
    session, system, task, trial, step, request = row[0], row[5], row[6], row[3], row[4], row[7]
    finished, paid = row[15], row[16]
    if request.startswith("agent:") and (finished or not paid):
        return "free"
    if finished:
        # Its process went on, and withdrew the intents of calls that it had not sent.
        return "given up"
    if session is None:
        return "lost"
    known = marks.get(session)
    if known is not None and mark_of(CallKey(system, task, trial, step)) in known.sent:
        return "lost"
    return "free" if known is not None and known.final else "unsure"


# Marks of the calls that a process has sent, in a file that outlives the process.
#
# An intent is in the store before its call is sent, so a process that is killed leaves intents of
# calls that it never sent. The marks tell them apart: one is written just before the bytes of a
# call are sent. It is not flushed to the disk, so it takes a microsecond instead of a
# millisecond: it survives the death of the process, but is trusted only until the machine
# restarts.

MARK_BYTES = 16
"""Bytes of the hash of a call: so many that no two calls of a run share one."""

_NOBODY = bytes(MARK_BYTES)


class SentCallLog:
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
                steps = self._places.pop(trial.key, {})
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
    final = process.is_dead() or process == this_process()  # before the file is read
    try:
        if path.stat().st_uid != os.getuid():
            return None
        marks = path.read_bytes()
    except OSError:
        return None
    parts = (marks[i : i + MARK_BYTES] for i in range(0, len(marks), MARK_BYTES))
    return KnownMarks(sent=frozenset(parts), final=final)


# Which process works on a run: one owner at a time, which keeps renewing its lease.

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
                database = database or self._database.another(read_only=False)
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
            # the store refuses whatever a closed session writes
            database.execute("UPDATE sessions SET alive = 0 WHERE id = ?", (owner.id,))
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
    if row is None:
        return None
    number, *process, started, left = row
    return Session(id=number, process=ProcessIdentity(*process), started=started, left=left)


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


def _held(history: Index, run: Run, owner: Session) -> str:
    return (
        f"{history.name}: run {run.key} is still running: {owner} has it. Wait for it, or stop "
        f"that process; when it is gone, the run can be taken over at once on its host, and after "
        f"{LEASE_SECONDS:.0f} s elsewhere"
    )


@dataclass(frozen=True, slots=True)
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
        if Path("/proc/self/stat").exists():
            return ""
        ps = ["ps", "-o", "lstart=", "-p", str(pid)]
        return subprocess.run(ps, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""
    # The name of the program, in brackets, may hold anything; behind it come state, ..., starttime.
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] in "ZX" else fields[19]
