"""Workers that died: other workers get their trials, and their open calls are accounted for."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from passhat.history.database import Database
from passhat.history.leases import ProcessIdentity
from passhat.history.open_calls import ENDING, OpenCall, read_open_calls
from passhat.history.runs import Run
from passhat.history.sent_marks import marks_path

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


def reap(database: Database, run: Run) -> None:
    """Make the tickets of dead workers ready again, and count their calls as perhaps paid."""
    for number, *process in database.execute(
        "SELECT id, host, place, pid, born FROM sessions WHERE run = ? AND role = ? AND alive = 1",
        (run.id, WORKER),
    ).fetchall():
        host, place, pid, born = process
        if ProcessIdentity(host=host, place=place, pid=pid, born=born).is_dead():
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
    judged = [_judged(call) for call in read_open_calls(database, run, ending=True)]
    database.execute(_REAP, {"run": run.id, "ending": sessions, "judged": as_json(judged)})
    for session in sessions:
        with suppress(OSError):
            marks_path(database, run, session).unlink(missing_ok=True)


def _judged(call: OpenCall) -> dict[str, Any]:
    key = dict(zip(("system", "task", "trial", "step"), call.key, strict=True))
    return {"session": call.session, **key, "fate": call.fate}


def as_json(records: Iterable[Any]) -> str:
    """Records as JSON for PostgreSQL, which cannot store NUL in a text."""
    return json.dumps(list(records)).replace("\\u0000", "\\ufffd")
