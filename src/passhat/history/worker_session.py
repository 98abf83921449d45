"""One worker's share of a run in PostgreSQL: tickets to claim, and a journal fenced by its session.

Every batch is one statement that begins with this session's own row. A worker that was given up
for dead finds that row closed and changes nothing; and because nothing is held between two
statements, a worker that freezes never blocks the others.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from passhat.errors import LostRun
from passhat.history.database import Database
from passhat.history.leases import LEASE_SECONDS, ProcessIdentity, open_session, this_process
from passhat.history.run_journal import micro
from passhat.history.runs import Run
from passhat.history.store import History
from passhat.history.trial_rows import TRIAL_COLUMNS, pack, trial_row
from passhat.records.ledger import Answer, CallIntent, Entry, Finished, Refused, Ticket

WORKER = "worker"

_TYPES = {
    **dict.fromkeys(("trial", "sequence", "outcome", "seed"), "BIGINT"),
    **dict.fromkeys(("tools", "level", "family", "tags", "error", "started"), "TEXT"),
}
_TRIAL_RECORD = ", ".join(f"{name} {_TYPES.get(name, 'FLOAT8')}" for name in TRIAL_COLUMNS)
_TRIAL_NAMES = ", ".join(TRIAL_COLUMNS)
_TRIAL_UPDATES = ", ".join(f"{n} = excluded.{n}" for n in TRIAL_COLUMNS if n != "trial")
_KEY = "system BIGINT, task BIGINT, trial BIGINT, step BIGINT"

_CLAIM = """
WITH me AS (
  UPDATE sessions SET lease = {clock} + :lease WHERE id = :me AND alive = 1 RETURNING run),
free AS (
  SELECT t.run, t.number FROM tickets t
  WHERE t.run = :run AND t.state = 0 AND EXISTS (SELECT 1 FROM me)
    AND NOT EXISTS (SELECT 1 FROM accounts a WHERE a.run = :run AND a.stopped IS NOT NULL)
  ORDER BY t.number LIMIT :count FOR UPDATE OF t SKIP LOCKED),
taken AS (
  UPDATE tickets t SET state = 1, session = :me, tries = t.tries + 1 FROM free f
  WHERE t.run = f.run AND t.number = f.number
  RETURNING t.number, t.system, t.task, t.trial, t.stamp, t.tries)
SELECT t.number, s.text, k.text, t.trial, t.stamp, t.tries, t.system, t.task FROM me
LEFT JOIN taken t ON true LEFT JOIN names s ON s.id = t.system LEFT JOIN names k ON k.id = t.task
ORDER BY t.number
"""

_WRITE = f"""
WITH me AS (
  UPDATE sessions SET lease = {{clock}} + :lease WHERE id = :me AND alive = 1 RETURNING run),
intents AS (
  SELECT me.run, i.* FROM me, jsonb_to_recordset(CAST(:intents AS JSONB))
    AS i(n BIGINT, {_KEY}, request TEXT, cost BIGINT, tokens BIGINT, priced BIGINT)),
replies AS (
  SELECT me.run, r.*, b.body FROM me, jsonb_to_recordset(CAST(:replies AS JSONB))
    AS r(n BIGINT, {_KEY}, request TEXT, cost BIGINT, tokens BIGINT),
    unnest(CAST(:bodies AS BYTEA[])) WITH ORDINALITY AS b(body, place) WHERE b.place = r.n),
refusals AS (
  SELECT me.run, x.* FROM me, jsonb_to_recordset(CAST(:refusals AS JSONB)) AS x({_KEY})),
finished AS (
  SELECT me.run, f.* FROM me, jsonb_to_recordset(CAST(:finished AS JSONB))
    AS f(system BIGINT, task BIGINT, {_TRIAL_RECORD})),
said AS (
  SELECT me.run, s.*, b.body FROM me, jsonb_to_recordset(CAST(:said AS JSONB))
    AS s(n BIGINT, system BIGINT, task BIGINT, trial BIGINT),
    unnest(CAST(:transcripts AS BYTEA[])) WITH ORDINALITY AS b(body, place) WHERE b.place = s.n),
account AS (
  SELECT * FROM accounts WHERE run = :run AND :limited
    AND (max_cost IS NOT NULL OR max_tokens IS NOT NULL OR max_calls IS NOT NULL) FOR UPDATE),
settled AS (
  SELECT a.reserved_cost, a.reserved_tokens FROM answers a JOIN (
    SELECT run, system, task, trial, step FROM replies UNION ALL
    SELECT run, system, task, trial, step FROM refusals) k USING (run, system, task, trial, step)
  WHERE a.reply IS NULL),
sums AS (
  SELECT (SELECT coalesce(sum(cost), 0) FROM replies) AS cost,
    (SELECT coalesce(sum(tokens), 0) FROM replies) AS tokens,
    (SELECT count(*) FROM replies WHERE request LIKE 'model:%') AS calls,
    coalesce(sum(reserved_cost), 0) AS free_cost, coalesce(sum(reserved_tokens), 0) AS free_tokens,
    count(*) AS free_calls FROM settled),
weighed AS (
  SELECT i.*, sum(i.cost) OVER (ORDER BY i.n) AS upto_cost,
    sum(i.tokens) OVER (ORDER BY i.n) AS upto_tokens, row_number() OVER (ORDER BY i.n) AS upto_calls
  FROM intents i),
granted AS (
  SELECT w.* FROM weighed w CROSS JOIN sums x LEFT JOIN account a ON true
  WHERE a.run IS NULL OR (a.stopped IS NULL
    AND (a.max_cost IS NULL OR a.cost + a.lost_cost + a.reserved_cost + x.cost - x.free_cost
      + w.upto_cost <= a.max_cost)
    AND (a.max_tokens IS NULL OR a.tokens + a.reserved_tokens + x.tokens - x.free_tokens
      + w.upto_tokens <= a.max_tokens)
    AND (a.max_calls IS NULL OR a.calls + a.lost_calls + a.reserved_calls + x.calls - x.free_calls
      + w.upto_calls <= a.max_calls))),
asked AS (
  INSERT INTO answers (run, system, task, trial, step, request, reserved_cost, reserved_tokens,
    priced, session)
  SELECT run, system, task, trial, step, request, cost, tokens, priced, :me FROM granted
  ON CONFLICT (run, system, task, trial, step) DO UPDATE SET request = excluded.request,
    reply = NULL, reserved_cost = excluded.reserved_cost,
    reserved_tokens = excluded.reserved_tokens, priced = excluded.priced,
    session = excluded.session),
answered AS (
  INSERT INTO answers (run, system, task, trial, step, request, reply, session)
  SELECT run, system, task, trial, step, request, body, :me FROM replies
  ON CONFLICT (run, system, task, trial, step) DO UPDATE SET request = excluded.request,
    reply = excluded.reply, reserved_cost = 0, reserved_tokens = 0, priced = 1,
    session = excluded.session),
withdrawn AS (
  DELETE FROM answers a USING refusals r WHERE a.run = r.run AND a.system = r.system
    AND a.task = r.task AND a.trial = r.trial AND a.step = r.step AND a.reply IS NULL),
rows AS (
  INSERT INTO trials (run, system, task, {_TRIAL_NAMES})
  SELECT run, system, task, {_TRIAL_NAMES} FROM finished
  ON CONFLICT (run, system, task, trial) DO UPDATE SET {_TRIAL_UPDATES}),
words AS (
  INSERT INTO transcripts (run, system, task, trial, body)
  SELECT run, system, task, trial, body FROM said
  ON CONFLICT (run, system, task, trial) DO UPDATE SET body = excluded.body),
done AS (
  UPDATE tickets t SET state = 2, session = NULL FROM finished f
  WHERE t.run = f.run AND t.number = f.sequence AND t.session = :me),
paid AS (
  UPDATE accounts a SET cost = a.cost + x.cost, tokens = a.tokens + x.tokens,
    calls = a.calls + x.calls,
    reserved_cost = a.reserved_cost - x.free_cost + (SELECT coalesce(sum(cost), 0) FROM granted),
    reserved_tokens = a.reserved_tokens - x.free_tokens
      + (SELECT coalesce(sum(tokens), 0) FROM granted),
    reserved_calls = a.reserved_calls - x.free_calls + (SELECT count(*) FROM granted),
    stopped = coalesce(a.stopped, CASE WHEN a.reserved_calls = x.free_calls
      AND EXISTS (SELECT 1 FROM intents) AND NOT EXISTS (SELECT 1 FROM granted)
      THEN 'budget' END)
  FROM sums x WHERE a.run = :run AND EXISTS (SELECT 1 FROM account))
SELECT (SELECT count(*) FROM me), ARRAY(SELECT n FROM granted)
"""  # noqa: S608  our own names

_REAP = """
WITH dead AS (
  UPDATE sessions SET alive = 0 WHERE run = :run AND role = :role AND alive = 1 AND lease < {clock}
  RETURNING id),
back AS (
  UPDATE tickets t SET state = 0, session = NULL FROM dead d
  WHERE t.session = d.id AND t.state = 1 AND t.run = :run),
lost AS (
  DELETE FROM answers a USING dead d WHERE a.session = d.id AND a.reply IS NULL AND a.run = :run
  RETURNING a.reserved_cost, a.reserved_tokens, a.priced),
sums AS (
  SELECT count(*) AS calls, coalesce(sum(reserved_cost), 0) AS cost,
    coalesce(sum(reserved_tokens), 0) AS tokens, coalesce(sum(1 - priced), 0) AS unpriced FROM lost)
UPDATE accounts a SET lost_calls = a.lost_calls + s.calls, lost_cost = a.lost_cost + s.cost,
  unpriced = a.unpriced + s.unpriced,
  reserved_cost = greatest(a.reserved_cost - s.cost, 0),
  reserved_tokens = greatest(a.reserved_tokens - s.tokens, 0),
  reserved_calls = greatest(a.reserved_calls - s.calls, 0)
FROM sums s WHERE a.run = :run AND s.calls > 0
"""

# A bucket is one instant that moves on with every draw (GCRA): what is drawn now may start at the
# instant before it. An instant further back than a minute is a bucket that is full.
_DRAW = """
INSERT INTO buckets (name, at) VALUES (:name, {clock} - 60 + :taken)
ON CONFLICT (name) DO UPDATE SET at = greatest(buckets.at, {clock} - 60) + :taken
RETURNING at - :taken - {clock}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A ticket that is this worker's, and the answers that an earlier worker left for it."""

    ticket: Ticket
    answers: Mapping[int, Answer]


class WorkerSession:
    """One life of one worker on one run; its number fences everything it writes."""

    def __init__(self, history: History, run: Run, *, hands: int) -> None:
        self.run = run
        self.beat_seconds = LEASE_SECONDS / 3
        self._database: Database = history.database
        self._name_ids: dict[str, int] = {}
        self._end_earlier_lives()
        self.number = open_session(self._database, run, role=WORKER, hands=hands)
        clock = self._database.clock
        self._claim = _CLAIM.replace("{clock}", clock)
        self._write = _WRITE.replace("{clock}", clock)
        self._draw = _DRAW.replace("{clock}", clock)

    def claim(self, count: int) -> list[Claim]:
        """At most `count` tickets that are ready; LostRun if this session was given up for dead."""
        values = {"me": self.number, "run": self.run.id, "lease": LEASE_SECONDS, "count": count}
        rows = self._database.execute(self._claim, values).fetchall()
        if not rows:
            raise self._lost()
        taken = [row for row in rows if row[0] is not None]
        self._name_ids.update({row[1]: row[6] for row in taken})
        self._name_ids.update({row[2]: row[7] for row in taken})
        return [
            Claim(
                ticket=Ticket(number=number, system=system, task=task, trial=trial, stamp=stamp),
                answers=self._answers(system, task, trial) if tries > 1 else {},
            )
            for number, system, task, trial, stamp, tries, _, _ in taken
        ]

    def write(self, entries: Sequence[Entry], /) -> Collection[int]:
        """Everything in one statement; returns the places of intents that the budget refuses."""
        asked = [(i, e) for i, e in enumerate(entries) if isinstance(e, CallIntent)]
        answers = [e for e in entries if isinstance(e, Answer)]
        finished = [e for e in entries if isinstance(e, Finished)]
        said = [e for e in finished if e.transcript is not None]
        row = self._database.execute(
            self._write,
            {
                "me": self.number,
                "run": self.run.id,
                "lease": LEASE_SECONDS,
                "limited": any(isinstance(e, CallIntent | Answer | Refused) for e in entries),
                "intents": _json([self._intent(i, e) for i, e in asked]),
                "replies": _json([self._reply(n, e) for n, e in enumerate(answers, 1)]),
                "bodies": [e.reply for e in answers],
                "refusals": _json([self._key(e) for e in entries if isinstance(e, Refused)]),
                "finished": _json(map(self._row, finished)),
                "said": _json([{"n": n, **self._key(e.trial)} for n, e in enumerate(said, 1)]),
                "transcripts": [pack(e.transcript or "") for e in said],
            },
        ).fetchone()
        if row is None or not row[0]:
            raise self._lost()
        granted = set(row[1])
        return [i for i, _ in asked if i not in granted]

    def give_back(self, ticket: Ticket) -> None:
        """Let another worker, or this one later, run a ticket that could not be finished now."""
        self._database.execute(
            "UPDATE tickets SET state = 0, session = NULL "
            "WHERE run = ? AND number = ? AND session = ? AND state = 1",
            (self.run.id, ticket.number, self.number),
        )

    def renew(self) -> None:
        """Prolong the lease while nothing else is said."""
        done = self._database.execute(
            f"UPDATE sessions SET lease = {self._database.clock} + ? WHERE id = ? AND alive = 1",  # noqa: S608  our words
            (LEASE_SECONDS, self.number),
        )
        if not done.rowcount:
            raise self._lost()

    def draw(self, name: str, per_minute: float, amount: float) -> float:
        """Draw from a rate that all workers share: the seconds until what was drawn may be used."""
        values = {"name": name, "taken": 60.0 * amount / per_minute}
        row = self._database.execute(self._draw, values).fetchone()
        return max(0.0, float(row[0])) if row else 0.0

    def close(self) -> None:
        """End this session: what it still holds is free at once."""
        self._database.execute("UPDATE sessions SET lease = 0 WHERE id = ?", (self.number,))
        reap(self._database, self.run)

    def _end_earlier_lives(self) -> None:
        """What this process held before it lost its connection is free again."""
        me = this_process()
        self._database.execute(
            "UPDATE sessions SET lease = 0 WHERE run = ? AND role = ? AND alive = 1 "
            "AND place = ? AND pid = ? AND born = ?",
            (self.run.id, WORKER, me.place, me.pid, me.born),
        )
        reap(self._database, self.run)

    def _answers(self, system: str, task: str, trial: int) -> dict[int, Answer]:
        rows = self._database.execute(
            "SELECT step, request, reply FROM answers WHERE run = ? AND system = ? AND task = ? "
            "AND trial = ? AND reply IS NOT NULL",
            (self.run.id, self._name_ids[system], self._name_ids[task], trial),
        )
        return {
            step: Answer(
                system=system, task=task, trial=trial, step=step, request=request, reply=reply
            )
            for step, request, reply in rows
        }

    def _key(self, entry: Any) -> dict[str, Any]:
        key = {
            "system": self._name_ids[entry.system],
            "task": self._name_ids[entry.task],
            "trial": entry.trial,
        }
        return {**key, "step": entry.step} if hasattr(entry, "step") else key

    def _intent(self, place: int, entry: CallIntent) -> dict[str, Any]:
        most = entry.most
        amounts = {"cost": micro(most.cost), "tokens": most.tokens}
        priced = int(most.cost is not None)
        rest = {"n": place, "request": entry.request, "priced": priced}
        return {**self._key(entry), **amounts, **rest}

    def _reply(self, place: int, entry: Answer) -> dict[str, Any]:
        amounts = {"cost": micro(entry.spent.cost), "tokens": entry.spent.tokens}
        return {**self._key(entry), **amounts, "n": place, "request": entry.request}

    def _row(self, entry: Finished) -> dict[str, Any]:
        values = zip(TRIAL_COLUMNS, trial_row(entry.trial, entry.ticket.number), strict=True)
        return {**self._key(entry.trial), **dict(values)}

    def _lost(self) -> LostRun:
        return LostRun(f"run {self.run.key}: this worker was taken for dead, and starts again")


def reap(database: Database, run: Run) -> None:
    """Give what dead workers held to the living, and count their calls as perhaps paid."""
    for number, *process in database.execute(
        "SELECT id, host, place, pid, born FROM sessions WHERE run = ? AND role = ? AND alive = 1",
        (run.id, WORKER),
    ).fetchall():
        host, place, pid, born = process
        if ProcessIdentity(host=host, place=place, pid=pid, born=born).is_dead():
            database.execute("UPDATE sessions SET lease = 0 WHERE id = ?", (number,))
    text = _REAP.replace("{clock}", database.clock)
    database.execute(text, {"run": run.id, "role": WORKER})


def _json(records: Any) -> str:
    """Records for the database, which cannot keep NUL in a text."""
    return json.dumps(list(records)).replace("\\u0000", "\\ufffd")
