"""Calls with an intent and no answer: whether they were sent, and whether they may be billed."""

from __future__ import annotations

from typing import Literal

from passhat.dataclass import dataclass
from passhat.history.database import Database, Row
from passhat.history.leases import ProcessIdentity
from passhat.history.runs import Run
from passhat.history.sent_marks import KnownMarks, mark_of, marks_path, read_marks
from passhat.records.ledger import CallKey

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
            host, place, pid, born = row[11:15]
            process = ProcessIdentity(host=host, place=place, pid=pid, born=born)
            marks[session] = read_marks(marks_path(database, run, session), process)
    return [_open_call(row, marks) for row in rows]


def _open_call(row: Row, marks: dict[int, KnownMarks | None]) -> OpenCall:
    return OpenCall(
        session=row[0],
        key=(row[1], row[2], row[3], row[4]),
        cost=row[8],
        priced=bool(row[9]),
        remote=row[10],
        fate=_fate(row, marks),
    )


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
