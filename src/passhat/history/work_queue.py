"""The driver's side of a run in PostgreSQL: it publishes tickets and reads evidence in order."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from passhat.errors import HistoryError, LostRun
from passhat.history.artefacts import digest_of, packed
from passhat.history.database import Database, Row, is_postgres
from passhat.history.journal import ACCEPTED, MICRO, micro
from passhat.history.leases import (
    CALL_KEY,
    LEASE_SECONDS,
    WORKER,
    Lease,
    SentCallLog,
    as_json,
    open_session,
    recover_dead_workers,
    renew_session,
    this_process,
)
from passhat.history.queries import read_trials_from
from passhat.history.runs import Run
from passhat.history.store import TRIAL_COLUMNS, History, pack, trial_row
from passhat.records import Budget, Trial, UnansweredCalls, ledger


def runs_with_work(history: History, reference: str | None) -> list[Run]:
    """The runs that have free tickets, the oldest first."""
    rows = history.database.execute(
        "SELECT r.id FROM runs r WHERE r.status = 'running' "
        "AND (CAST(?1 AS TEXT) IS NULL OR r.key = ?1) AND EXISTS "
        "(SELECT 1 FROM tickets t WHERE t.run = r.id AND t.state = 0) "
        "AND EXISTS (SELECT 1 FROM accounts a WHERE a.run = r.id AND a.stopped IS NULL) "
        "ORDER BY r.id",
        (reference,),
    ).fetchall()
    return [history.run_by_id(int(row[0])) for row in rows]


class RunQueue:
    """The tickets of one run. Only the holder of the run's lease may change them."""

    def __init__(self, history: History, run: Run, lease: Lease) -> None:
        if not is_postgres(history.name):
            raise HistoryError(f"{history.name}: workers can share a run only through a server")
        self._history = history
        self._database = history.database
        self._run = run
        self._lease = lease
        self._opened = False

    def open(self, budget: Budget, *, retry_errored: bool = False) -> None:
        """Set the limits that all workers share, and make unfinished tickets ready again.

        When it is opened again after an outage of the store, errors are not retried again.
        """
        limits = (
            None if budget.max_cost is None else micro(budget.max_cost),
            budget.max_tokens,
            budget.max_calls,
        )
        with self._database.writing():
            self._lease.renew(self._database)
            if retry_errored and not self._opened:
                self._database.execute(
                    "DELETE FROM trials WHERE run = ? AND outcome = 2", (self._run.id,)
                )
            self._database.execute(
                "INSERT INTO accounts (run, max_cost, max_tokens, max_calls) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (run) DO UPDATE SET max_cost = excluded.max_cost, "
                "max_tokens = excluded.max_tokens, max_calls = excluded.max_calls, stopped = NULL",
                (self._run.id, *limits),
            )
            self._database.execute(
                "UPDATE tickets AS t SET state = CASE WHEN EXISTS (SELECT 1 FROM trials x "
                "WHERE x.run = t.run AND x.sequence = t.number) THEN 2 ELSE 0 END, session = NULL "
                "WHERE t.run = ? AND t.state <> 1",
                (self._run.id,),
            )
        self._opened = True

    def publish(self, tickets: Sequence[ledger.Ticket]) -> None:
        """Make tickets ready for any worker."""
        with self._database.writing():
            self._lease.renew(self._database)
            ids = self._history.name_ids(name for t in tickets for name in (t.system, t.task))
            self._database.insert(
                "tickets",
                ("run", "number", "system", "task", "trial", "stamp"),
                [
                    (self._run.id, t.number, ids[t.system], ids[t.task], t.trial, t.stamp)
                    for t in tickets
                ],
            )

    def finished_from(self, number: int, *, limit: int) -> list[tuple[int, Trial]]:
        """Finished trials by the number of their ticket, from one on."""
        return read_trials_from(self._history, self._run, number, limit=limit)

    def state(self) -> ledger.QueueState:
        """The progress of the run; this also frees the tickets of dead workers."""
        recover_dead_workers(self._database, self._run)
        self._lease.renew(self._database)
        row = self._row(
            "SELECT (SELECT count(*) FROM tickets WHERE run = ?1 AND state = 0), "
            "(SELECT count(*) FROM tickets WHERE run = ?1 AND state = 1), "
            "(SELECT count(*) FROM sessions WHERE run = ?1 AND alive = 1 AND role = ?2), "
            "(SELECT coalesce(sum(hands), 0) FROM sessions WHERE run = ?1 AND alive = 1 "
            "AND role = ?2), (SELECT stopped FROM accounts WHERE run = ?1)",
            (self._run.id, WORKER),
        )
        ready, leased, workers, hands, stopped = row
        return ledger.QueueState(
            ready=ready, leased=leased, workers=workers, hands=int(hands), stopped=stopped
        )

    def stop(self, why: str) -> None:
        """Start nothing more: what is ready is dropped, what is under way may finish."""
        with self._database.writing():
            self._lease.renew(self._database)
            self._database.execute(
                "UPDATE accounts SET stopped = coalesce(stopped, ?) WHERE run = ?",
                (why, self._run.id),
            )
            self._database.execute(
                "UPDATE tickets SET state = 3 WHERE run = ? AND state = 0", (self._run.id,)
            )

    def limit_reached(self) -> str:
        """The limit that stopped the run, by what was spent."""
        cost, tokens, calls = self._row(
            "SELECT (cost + lost_cost + given_up_cost) / nullif(CAST(max_cost AS FLOAT), 0), "
            "tokens / nullif(CAST(max_tokens AS FLOAT), 0), "
            "(calls + lost_calls) / nullif(CAST(max_calls AS FLOAT), 0) "
            "FROM accounts WHERE run = ?",
            (self._run.id,),
        )
        shares = {"max_cost": cost or 0.0, "max_tokens": tokens or 0.0, "max_calls": calls or 0.0}
        return max(shares, key=shares.__getitem__)

    def lost(self) -> UnansweredCalls:
        """Calls that were on the wire when their worker died."""
        calls, cost, unpriced, unsure = self._row(
            "SELECT lost_calls, lost_cost, unpriced, unsure_calls FROM accounts WHERE run = ?",
            (self._run.id,),
        )
        return UnansweredCalls(calls=calls, cost=cost / MICRO, unpriced=unpriced, unsure=unsure)

    def _row(self, sql: str, values: tuple[Any, ...]) -> tuple[Any, ...]:
        row = self._database.execute(sql, values).fetchone()
        assert row is not None
        return row


# One worker's share of a run in PostgreSQL: tickets to claim, and a journal fenced by its
# session.
#
# Every batch is one statement that begins with this session's own row. A worker whose lease ran
# out finds that row closed and changes nothing. No lock is held between two statements, so a
# worker that freezes never blocks the others.

_TYPES = {
    **dict.fromkeys(("trial", "sequence", "outcome", "seed"), "BIGINT"),
    **dict.fromkeys(("tools", "level", "family", "tags", "error", "started", "base", "at"), "TEXT"),
}

_TRIAL_RECORD = ", ".join(f"{name} {_TYPES.get(name, 'FLOAT8')}" for name in TRIAL_COLUMNS)
_TRIAL_NAMES = ", ".join(TRIAL_COLUMNS)
_TRIAL_UPDATES = ", ".join(f"{n} = excluded.{n}" for n in TRIAL_COLUMNS if n != "trial")

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
    AS i(n BIGINT, {CALL_KEY}, request TEXT, cost BIGINT, tokens BIGINT, priced BIGINT)),
replies AS (
  SELECT me.run, r.*, b.body FROM me, jsonb_to_recordset(CAST(:replies AS JSONB))
    AS r(n BIGINT, {CALL_KEY}, request TEXT, cost BIGINT, tokens BIGINT),
    unnest(CAST(:bodies AS BYTEA[])) WITH ORDINALITY AS b(body, place) WHERE b.place = r.n),
refusals AS (
  SELECT me.run, x.* FROM me, jsonb_to_recordset(CAST(:refusals AS JSONB)) AS x({CALL_KEY})),
finished AS (
  SELECT me.run, f.* FROM me, jsonb_to_recordset(CAST(:finished AS JSONB))
    AS f(system BIGINT, task BIGINT, {_TRIAL_RECORD})),
said AS (
  SELECT me.run, s.*, b.body FROM me, jsonb_to_recordset(CAST(:said AS JSONB))
    AS s(n BIGINT, system BIGINT, task BIGINT, trial BIGINT),
    unnest(CAST(:transcripts AS BYTEA[])) WITH ORDINALITY AS b(body, place) WHERE b.place = s.n),
files AS (
  SELECT me.run, f.* FROM me, jsonb_to_recordset(CAST(:files AS JSONB))
    AS f(system BIGINT, task BIGINT, trial BIGINT, name TEXT, digest TEXT)),
account AS (
  SELECT * FROM accounts WHERE run = :run AND :limited
    AND (max_cost IS NOT NULL OR max_tokens IS NOT NULL OR max_calls IS NOT NULL) FOR UPDATE),
attempts AS (
  SELECT a.run, a.system, a.task, a.trial, a.step, a.reserved_cost, a.reserved_tokens
  FROM answers a JOIN finished f USING (run, system, task, trial)
  WHERE a.reply IS NULL AND a.request LIKE 'agent:%'),
settled AS (
  SELECT a.reserved_cost, a.reserved_tokens FROM answers a JOIN (
    SELECT run, system, task, trial, step FROM replies UNION ALL
    SELECT run, system, task, trial, step FROM refusals) k USING (run, system, task, trial, step)
  WHERE a.reply IS NULL
  UNION ALL SELECT reserved_cost, reserved_tokens FROM attempts),
agents AS (
  SELECT CAST(coalesce(sum(ceil(f.cost * {MICRO})), 0) AS BIGINT) AS cost,
    CAST(coalesce(sum(coalesce(f.tokens_in, 0) + coalesce(f.tokens_out, 0)), 0) AS BIGINT) AS tokens
  FROM finished f WHERE (f.system, f.task, f.trial) IN (SELECT system, task, trial FROM attempts)),
sums AS (
  SELECT (SELECT coalesce(sum(cost), 0) FROM replies) + (SELECT cost FROM agents) AS cost,
    (SELECT coalesce(sum(tokens), 0) FROM replies) + (SELECT tokens FROM agents) AS tokens,
    (SELECT count(*) FROM replies WHERE request LIKE 'model:%')
      + (SELECT count(*) FROM attempts) AS calls,
    coalesce(sum(reserved_cost), 0) AS free_cost, coalesce(sum(reserved_tokens), 0) AS free_tokens,
    count(*) AS free_calls FROM settled),
weighed AS (
  SELECT i.*, sum(i.cost) OVER (ORDER BY i.n) AS upto_cost,
    sum(i.tokens) OVER (ORDER BY i.n) AS upto_tokens, row_number() OVER (ORDER BY i.n) AS upto_calls
  FROM intents i),
granted AS (
  SELECT w.* FROM weighed w CROSS JOIN sums x LEFT JOIN account a ON true
  WHERE a.run IS NULL OR (a.stopped IS NULL
    AND (a.max_cost IS NULL OR a.cost + a.lost_cost + a.given_up_cost + a.reserved_cost + x.cost
      - x.free_cost + w.upto_cost <= a.max_cost)
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
    session = excluded.session, remote = NULL),
answered AS (
  INSERT INTO answers (run, system, task, trial, step, request, reply, session)
  SELECT run, system, task, trial, step, request, body, :me FROM replies
  ON CONFLICT (run, system, task, trial, step) DO UPDATE SET request = excluded.request,
    reply = excluded.reply, reserved_cost = 0, reserved_tokens = 0, priced = 1,
    session = excluded.session),
withdrawn AS (
  DELETE FROM answers a USING (
    SELECT run, system, task, trial, step FROM refusals UNION ALL
    SELECT run, system, task, trial, step FROM attempts) r
  WHERE a.run = r.run AND a.system = r.system
    AND a.task = r.task AND a.trial = r.trial AND a.step = r.step AND a.reply IS NULL),
rows AS (
  INSERT INTO trials (run, system, task, {_TRIAL_NAMES})
  SELECT run, system, task, {_TRIAL_NAMES} FROM finished
  ON CONFLICT (run, system, task, trial) DO UPDATE SET {_TRIAL_UPDATES}),
words AS (
  INSERT INTO transcripts (run, system, task, trial, body)
  SELECT run, system, task, trial, body FROM said
  ON CONFLICT (run, system, task, trial) DO UPDATE SET body = excluded.body),
stored AS (
  INSERT INTO contents (digest, size, body)
  SELECT c.digest, c.size, c.body FROM me, unnest(CAST(:digests AS TEXT[]),
    CAST(:sizes AS BIGINT[]), CAST(:contents AS BYTEA[])) AS c(digest, size, body)
  ON CONFLICT (digest) DO UPDATE SET size = excluded.size),
former AS (
  DELETE FROM artefacts a USING finished f
  WHERE a.run = f.run AND a.system = f.system AND a.task = f.task AND a.trial = f.trial
    AND NOT EXISTS (SELECT 1 FROM files n WHERE n.system = a.system AND n.task = a.task
      AND n.trial = a.trial AND n.name = a.name)),
named AS (
  INSERT INTO artefacts (run, system, task, trial, name, digest)
  SELECT run, system, task, trial, name, digest FROM files
  ON CONFLICT (run, system, task, trial, name) DO UPDATE SET digest = excluded.digest),
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

# Sums that the main statement has no place for: it can change the row of `accounts` only once.
_ADD = """
UPDATE accounts SET given_up_calls = given_up_calls + :calls, given_up_cost = given_up_cost + :cost,
  given_up_unpriced = given_up_unpriced + :unpriced, found_calls = found_calls + :found
WHERE run = :run AND EXISTS (SELECT 1 FROM sessions WHERE id = :me AND alive = 1)
"""

_ACCEPTED = f"{ACCEPTED} AND session = ?"

# A bucket is one instant that moves on with every draw (GCRA): what is drawn now may start at the
# instant before it. An instant further back than a minute is a bucket that is full.
_DRAW = """
INSERT INTO buckets (name, at) VALUES (:name, {clock} - 60 + :taken)
ON CONFLICT (name) DO UPDATE SET at = greatest(buckets.at, {clock} - 60) + :taken
RETURNING at - :taken - {clock}
"""


class WorkerSession:
    """One worker on one run; the store refuses what it writes once its number is closed."""

    def __init__(self, history: History, run: Run, *, hands: int) -> None:
        self.run = run
        self.beat_seconds = LEASE_SECONDS / 3
        self._database: Database = history.database
        self._name_ids: dict[str, int] = {}
        me = this_process()
        self._database.execute(  # free what this process held before it lost its connection
            "UPDATE sessions SET lease = 0 WHERE run = ? AND role = ? AND alive = 1 "
            "AND place = ? AND pid = ? AND born = ?",
            (run.id, WORKER, me.place, me.pid, me.born),
        )
        recover_dead_workers(self._database, run)
        self.number = open_session(self._database, run, role=WORKER, hands=hands)
        self._marks = SentCallLog(self._database, run, self.number)
        self._agents: set[str] = set()  # systems that keep their own accounts
        clock = self._database.clock
        self._claim = _CLAIM.replace("{clock}", clock)
        self._write = _WRITE.replace("{clock}", clock)
        self._draw = _DRAW.replace("{clock}", clock)

    @property
    def key(self) -> str:
        """The key of the run."""
        return self.run.key

    def claim(self, count: int) -> list[ledger.Claim]:
        """At most `count` tickets that are ready; LostRun if this session was closed."""
        values = {"me": self.number, "run": self.run.id, "lease": LEASE_SECONDS, "count": count}
        rows = self._database.execute(self._claim, values).fetchall()
        if not rows:
            raise self._lost()
        taken = [row for row in rows if row[0] is not None]
        self._name_ids.update({row[1]: row[6] for row in taken})
        self._name_ids.update({row[2]: row[7] for row in taken})
        return [
            self._claimed(
                ledger.Ticket(number=number, system=system, task=task, trial=trial, stamp=stamp),
                tries,
            )
            for number, system, task, trial, stamp, tries, _, _ in taken
        ]

    def write(self, entries: Sequence[ledger.Entry], /) -> Collection[int]:
        """Write everything; returns the places of intents that the budget refuses.

        It is one statement, unless there are two entries about one call.
        """
        if any(isinstance(entry, ledger.CallIntent) for entry in entries):
            self._marks.open()
        *first, last = ledger.one_entry_a_call(entries) or [[]]
        refused: list[int] = []
        place = {id(entry): i for i, entry in enumerate(entries)}
        for part in first:
            refused += [place[id(entry)] for entry in self._write_part(part)]
        others = [entry for entry in entries if isinstance(entry, ledger.Ticket | ledger.Finished)]
        refused += [place[id(entry)] for entry in self._write_part([*last, *others])]
        self._marks.settle(entries)
        return refused

    def _write_part(self, entries: Sequence[ledger.Entry]) -> list[ledger.CallIntent]:
        """Write entries in one statement; returns the intents that the budget refuses."""
        self._write_rare(entries)
        asked = [e for e in entries if isinstance(e, ledger.CallIntent)]
        answers = [e for e in entries if isinstance(e, ledger.Answer)]
        finished = [e for e in entries if isinstance(e, ledger.Finished)]
        texts = [e for e in finished if e.transcript is not None]
        contents = list(packed(e.artefacts for e in finished).values())
        files = [
            {**self._key(e.trial), "name": name, "digest": digest_of(content)}
            for e in finished
            for name, content in e.artefacts.items()
        ]
        row = self._database.execute(
            self._write,
            {
                "me": self.number,
                "run": self.run.id,
                "lease": LEASE_SECONDS,
                "limited": any(map(self._is_spending, entries)),
                "intents": as_json([self._intent(i, e) for i, e in enumerate(asked)]),
                "replies": as_json([self._reply(n, e) for n, e in enumerate(answers, 1)]),
                "bodies": [e.reply for e in answers],
                "refusals": as_json(
                    [self._key(e.call) for e in entries if isinstance(e, ledger.Refused)]
                ),
                "finished": as_json(map(self._row, finished)),
                "said": as_json([{"n": n, **self._key(e.trial)} for n, e in enumerate(texts, 1)]),
                "transcripts": [pack(e.transcript or "") for e in texts],
                "files": as_json(files),
                "digests": [digest for digest, _, _ in contents],
                "sizes": [size for _, size, _ in contents],
                "contents": [body for _, _, body in contents],
            },
        ).fetchone()
        if row is None or not row[0]:
            raise self._lost()
        granted = set(row[1])
        return [intent for i, intent in enumerate(asked) if i not in granted]

    def _is_spending(self, entry: ledger.Entry) -> bool:
        """Whether an entry changes what the run has spent or reserved."""
        if isinstance(entry, ledger.Finished):
            return entry.trial.system in self._agents
        if isinstance(entry, ledger.CallIntent) and entry.request.startswith("agent:"):
            self._agents.add(entry.call.system)
        return isinstance(entry, ledger.CallIntent | ledger.Answer | ledger.Refused)

    def _write_rare(self, entries: Sequence[ledger.Entry]) -> None:
        """Write what few calls have: lost and found answers, and names to fetch answers by."""
        lost = [e.most.cost for e in entries if isinstance(e, ledger.LostAnswer)]
        recovered = sum(isinstance(e, ledger.Answer) and e.recovered for e in entries)
        if lost or recovered:
            amounts = {
                "calls": len(lost),
                "cost": sum(map(micro, lost)),
                "unpriced": sum(cost is None for cost in lost),
                "found": recovered,
            }
            self._database.execute(_ADD, {"me": self.number, "run": self.run.id, **amounts})
        for entry in entries:
            if isinstance(entry, ledger.AcceptedCall):
                key = self._key(entry.call).values()
                self._database.execute(_ACCEPTED, (entry.remote, self.run.id, *key, self.number))

    def mark_sent(self, call: ledger.CallKey) -> None:
        """Mark a call that is about to be sent; the mark outlives this process."""
        self._marks.add(call)

    def unmark_sent(self, call: ledger.CallKey) -> None:
        """Remove the mark: the provider refused the call, which costs nothing."""
        self._marks.remove(call)

    def give_back(self, ticket: ledger.Ticket) -> None:
        """Let another worker, or this one later, run a ticket that could not be finished now."""
        self._database.execute(
            "UPDATE tickets SET state = 0, session = NULL "
            "WHERE run = ? AND number = ? AND session = ? AND state = 1",
            (self.run.id, ticket.number, self.number),
        )

    def stop(self, why: str) -> None:
        """Let no worker start anything more of this run; its driver ends it."""
        self._database.execute(
            "UPDATE accounts SET stopped = coalesce(stopped, :why) WHERE run = :run "
            "AND EXISTS (SELECT 1 FROM sessions WHERE id = :me AND alive = 1)",
            {"why": why, "run": self.run.id, "me": self.number},
        )

    def renew(self) -> None:
        """Extend the lease while there is nothing to write."""
        if not renew_session(self._database, self.number):
            raise self._lost()

    def draw(self, name: str, per_minute: float, amount: float) -> float:
        """Draw from a rate that all workers share: the seconds until what was drawn may be used."""
        values = {"name": name, "taken": 60.0 * amount / per_minute}
        row = self._database.execute(self._draw, values).fetchone()
        return max(0.0, float(row[0])) if row else 0.0

    def close(self) -> None:
        """End this session: what it still holds is free at once."""
        self._marks.close()
        self._database.execute("UPDATE sessions SET lease = 0 WHERE id = ?", (self.number,))
        recover_dead_workers(self._database, self.run)

    def _claimed(self, ticket: ledger.Ticket, tries: int) -> ledger.Claim:
        """A ticket with what earlier workers left for it."""
        rows: Iterable[Row] = ()
        if tries > 1:
            rows = self._database.execute(
                "SELECT step, request, reply, remote FROM answers WHERE run = ? AND system = ? "
                "AND task = ? AND trial = ? AND (reply IS NOT NULL OR remote IS NOT NULL)",
                (self.run.id, *self._key(ticket).values()),
            ).fetchall()
        return ledger.Claim(
            ticket=ticket,
            answers={
                step: ledger.Answer(
                    call=ledger.CallKey(*ticket.key, step), request=request, reply=reply
                )
                for step, request, reply, _ in rows
                if reply is not None
            },
            remotes={step: remote for step, _, reply, remote in rows if reply is None},
            cut_short=tries > 1,
        )

    def _key(self, named: ledger.Ticket | Trial | ledger.CallKey) -> dict[str, Any]:
        """A trial, or a call of it, by the numbers of its names."""
        ids = self._name_ids
        key = {"system": ids[named.system], "task": ids[named.task], "trial": named.trial}
        return {**key, "step": named.step} if isinstance(named, ledger.CallKey) else key

    def _intent(self, place: int, entry: ledger.CallIntent) -> dict[str, Any]:
        most = entry.most
        amounts = {"cost": micro(most.cost), "tokens": most.tokens or 0}
        priced = int(most.cost is not None)
        rest = {"n": place, "request": entry.request, "priced": priced}
        return {**self._key(entry.call), **amounts, **rest}

    def _reply(self, place: int, entry: ledger.Answer) -> dict[str, Any]:
        amounts = {"cost": micro(entry.spent.cost), "tokens": entry.spent.tokens or 0}
        return {**self._key(entry.call), **amounts, "n": place, "request": entry.request}

    def _row(self, entry: ledger.Finished) -> dict[str, Any]:
        values = zip(TRIAL_COLUMNS, trial_row(entry.trial, entry.ticket.number), strict=True)
        return {**self._key(entry.trial), **dict(values)}

    def _lost(self) -> LostRun:
        return LostRun(f"run {self.run.key}: the lease of this worker ran out; it starts again")
