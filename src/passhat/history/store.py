"""The history store: every trial ever run, in a SQLite file or in PostgreSQL."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import fields, replace
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import msgspec

from passhat import arguments
from passhat.arguments import STORE
from passhat.dataclass import dataclass
from passhat.errors import ArgumentError, HistoryError, InputError, StoreError
from passhat.history.artefacts import check_artefacts, forget_contents, sealed_rows
from passhat.history.database import ALL, Database, Duplicate, StaleStore, damaged, is_postgres
from passhat.history.leases import with_owner
from passhat.history.runs import (
    LATEST,
    SEPARATOR,
    Checkout,
    Run,
    RunAction,
    RunChange,
    named_run,
    new_run_row,
    now,
    own_source,
    run_of_row,
    sources_of,
    sources_text,
)
from passhat.messages import plural
from passhat.records import Source, Trial
from passhat.records.trial import FEATURES, Outcome, TrialKey

if TYPE_CHECKING:
    from passhat.records import FeatureSums, Tally, Transcripts, Trials
    from passhat.records.labels import Label

DEFAULT_PATH = Path(STORE)

TRIAL_COLUMNS = (
    "trial", "sequence", "outcome", "score", "seed", *FEATURES,
    "tools", "level", "tags", "error", "started", "family", "weight", "base", "at",
    "stated_confidence",
)  # fmt: skip
"""The columns of a trial, besides its run, system and task."""

_SINCE_CHECKSUMS = ("base", "at", "stated_confidence")
"""The last of them, which came later than checksums: trials without them keep the one they have."""

_COLUMNS = ("run", "system", "task", *TRIAL_COLUMNS)
_KEY = ("run", "system", "task", "trial")
_UPSERT_TRIAL = (
    f"INSERT INTO trials ({', '.join(_COLUMNS)}) "  # noqa: S608  our names
    f"VALUES ({', '.join('?' * len(_COLUMNS))}) ON CONFLICT ({', '.join(_KEY)}) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in _COLUMNS if name not in _KEY)
)
_UPSERT_TRANSCRIPT = (
    "INSERT INTO transcripts (run, system, task, trial, body) VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT (run, system, task, trial) DO UPDATE SET body = excluded.body"
)


OPEN, BEFORE = "open", "before"
"""What stands in the place of a checksum: while a run goes on, and of runs older than checksums."""

ROWS_AT_ONCE = 10_000
"""Rows that are fetched together: quicker than one by one, and no more memory for a huge run."""

MOST_VERIFIED = 250_000
"""Trials whose checksum is compared whenever a run is read: less than a second of work."""

_SEALED = (
    "key", "suite", "suite_hash", "status", "started", "finished", "seed", "commit_id", "branch",
    "dirty", "host", "versions", "options", "sources",
)  # fmt: skip
"""The columns of a run that its checksum is made of."""


LONGEST_LINE = 200
"""Characters of a tag, or of a suite's name."""
LONGEST_NOTE = 2_000
LONGEST_INDEXED = 200_000
"""Characters of a transcript that are indexed: PostgreSQL takes a megabyte of distinct words."""


class History:
    """All trials ever run. Open with `History.open(path)`; close it, or use it in `with`."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.name = database.name
        self._name_ids: dict[str, int] = {}
        self._verified: set[int] = set()
        self._rows_verified = False

    @classmethod
    def open(cls, path: Path | str = DEFAULT_PATH, *, read_only: bool = False) -> Self:
        """The store at a path or address; created and updated unless `read_only`.

        If an older store cannot be updated from here, the error says what to do.
        """
        path = arguments.path("store", path, "the path of a store, or a postgresql:// address")
        try:
            return cls(_open_database(path, read_only=read_only))
        except StaleStore:
            with suppress(StoreError):
                _open_database(path, read_only=False).close()
            return cls(_open_database(path, read_only=read_only))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.database.close()

    def writing(self) -> AbstractContextManager[None]:
        """One transaction that is durable when it ends."""
        return self.database.writing()

    def start_run(
        self,
        suite: str,
        *,
        suite_hash: str | None = None,
        seed: int | None = None,
        checkout: Checkout | None = None,
        options: Mapping[str, Any] | None = None,
        sources: Sequence[Source] = (),
        started: str | None = None,
    ) -> Run:
        """A new run, in the state "running"."""
        values = new_run_row(
            suite,
            suite_hash=suite_hash,
            seed=seed,
            checkout=checkout or Checkout(),
            options=options or {},
            sources=sources,
            started=started,
        ) | {"sealed": OPEN}
        marks = ", ".join(f":{name}" for name in values)
        with self.writing():
            row = self.database.execute(
                f"INSERT INTO runs ({', '.join(values)}) VALUES ({marks}) RETURNING id",  # noqa: S608  our names
                values,
            ).fetchone()
        assert row is not None
        return self.run_by_id(int(row[0]))

    def finish_run(
        self, run: Run, status: str = "finished", changes: Mapping[str, Any] | None = None
    ) -> Run:
        """Record how a run ended: finished, interrupted, budget, failed; and what it decided."""
        with self.writing():
            self.database.execute(
                # A clock that was set back must not end a run before it began.
                "UPDATE runs SET status = ?1, finished = CASE WHEN ?2 < started THEN started "
                "ELSE ?2 END WHERE id = ?3",
                (status, now(), run.id),
            )
            if changes:
                options = json.dumps({**run.options, **changes}, sort_keys=True)
                self.database.execute("UPDATE runs SET options = ? WHERE id = ?", (options, run.id))
            self._seal(run.id)
            # What was indexed before it went on: without it, a search knows that some is missing.
            self.database.execute("DELETE FROM spoken WHERE run = ?", (run.id,))
        with suppress(StoreError):  # a search does it if it fails now
            self.index_transcripts(run.id)
        return self.run_by_id(run.id)

    def index_transcripts(self, run: int) -> int:
        """Put what was said in a run into the index, in place of what was there; how many texts."""
        if not self.database.full_text:
            return 0
        count, last = 0, (-1, -1, -1)
        with self.writing():
            # The row is locked: a search may find the run not indexed at the same moment.
            there = self.database.execute("UPDATE runs SET key = key WHERE id = ?", (run,))
            if not there.rowcount:
                return 0
            self.database.execute("DELETE FROM spoken WHERE run = ?", (run,))
            while rows := self.database.execute(
                "SELECT system, task, trial, body FROM transcripts WHERE run = ? "
                "AND (system, task, trial) > (?, ?, ?) ORDER BY system, task, trial LIMIT 500",
                (run, *last),
            ).fetchall():
                texts = [_without_pictures(unpack(row[3]))[:LONGEST_INDEXED] for row in rows]
                self.database.add_words([(run, *row[:3]) for row in rows], texts)
                last, count = rows[-1][:3], count + len(rows)
        return count

    def keep_notes(self, run: Run, notes: Sequence[str]) -> None:
        """Keep notes for every later report of a run."""
        source = own_source(run)
        source = replace(source, notes=tuple(dict.fromkeys((*source.notes, *notes))))
        with self.writing():
            self.database.execute(
                "UPDATE runs SET sources = ? WHERE id = ?", (sources_text([source]), run.id)
            )
            self._seal(run.id, trials=False)

    def reopen_run(self, run: Run, changes: Mapping[str, Any] | None = None) -> Run:
        """Record that a run continues, with these changes to its options.

        If its process died, perhaps with the machine, the file is checked first.
        """
        if run.status == "running":
            self.database.check()
        options = json.dumps({**run.options, **(changes or {})}, sort_keys=True)
        with self.writing():
            self.database.execute(
                "UPDATE runs SET status = 'running', finished = NULL, options = ?, sealed = ? "
                "WHERE id = ?",
                (options, OPEN, run.id),
            )
        return self.run_by_id(run.id)

    def add_trials(self, run: Run, trials: Iterable[Trial], *, first_sequence: int = 0) -> None:
        """Keep finished trials, in one transaction."""
        with self.writing():
            self.insert_trials(run.id, enumerate(trials, first_sequence))

    def insert_trials(
        self, run: int, trials: Iterable[tuple[int, Trial]], *, replace: bool = False
    ) -> None:
        """Insert trials with their places in the order, inside a transaction of the caller."""
        listed = list(trials)
        ids = self.name_ids(name for _, trial in listed for name in (trial.system, trial.task))
        rows = [
            (run, ids[trial.system], ids[trial.task], *trial_row(trial, number))
            for number, trial in listed
        ]
        try:
            if replace:
                self.database.executemany(_UPSERT_TRIAL, rows)
            else:
                self.database.insert("trials", _COLUMNS, rows)
        except Duplicate:
            raise HistoryError(
                f"{self.name}: run {run} already has one of these trials; a trial is kept once"
            ) from None

    def add_transcript(self, run: int, trial: Trial, text: str) -> None:
        """Keep the transcript of a trial, compressed, inside a transaction of the caller."""
        self.database.execute(
            _UPSERT_TRANSCRIPT,
            (run, self.name_id(trial.system), self.name_id(trial.task), trial.trial, pack(text)),
        )

    def add_transcripts(self, run: Run, transcripts: Transcripts) -> None:
        """Keep the transcripts of the trials of a run, in one transaction."""
        with self.writing():
            self.database.executemany(
                _UPSERT_TRANSCRIPT,
                (
                    (run.id, self.name_id(system), self.name_id(task), trial, pack(text))
                    for (system, task, trial), text in transcripts.items()
                ),
            )

    def transcript(self, run: Run, system: str, task: str, trial: int) -> str | None:
        """The transcript of one trial, if it was kept."""
        row = self.database.execute(
            "SELECT body FROM transcripts WHERE run = ? AND trial = ? "
            "AND system = (SELECT id FROM names WHERE text = ?) "
            "AND task = (SELECT id FROM names WHERE text = ?)",
            (run.id, trial, system, task),
        ).fetchone()
        with self._sound():
            return None if row is None else unpack(row[0])

    def add_labels(self, run: Run, labels: Mapping[TrialKey, Iterable[Label]]) -> None:
        """Keep what people say of trials of a run; a person's later label replaces an earlier one.

        All of them in one transaction. A label of a trial that the run does not have is refused.
        """
        rows = [(key, label) for key, own in labels.items() for label in own]
        with self.writing():
            for (system, task, trial), label in rows:
                cursor = self.database.execute(
                    """
                    INSERT INTO labels (run, system, task, trial, person, passed, labelled, note,
                      chosen, chance)
                    SELECT x.run, x.system, x.task, x.trial, ?5, ?6, ?7, ?8, ?9, ?10 FROM trials x
                    WHERE x.run = ?1 AND x.system = (SELECT id FROM names WHERE text = ?2)
                      AND x.task = (SELECT id FROM names WHERE text = ?3) AND x.trial = ?4
                    ON CONFLICT (run, system, task, trial, person) DO UPDATE SET
                      passed = excluded.passed, labelled = excluded.labelled, note = excluded.note,
                      chosen = coalesce(labels.chosen, excluded.chosen),
                      chance = coalesce(labels.chance, excluded.chance)
                    RETURNING trial
                    """,
                    (
                        *(run.id, system, task, trial, label.by, int(label.passed)),
                        *(label.at or now(), label.note, label.chosen, label.chance),
                    ),
                ).fetchone()
                if cursor is None:
                    raise HistoryError(
                        f"{self.name}: run {run.key} has no trial {trial} of {system} at {task}; "
                        "no label was kept"
                    )

    def drop_label(self, run: Run, key: TrialKey, *, by: str) -> None:
        """Take back what a person said of a trial."""
        system, task, trial = key
        with self.writing():
            self.database.execute(
                "DELETE FROM labels WHERE run = ? AND trial = ? AND person = ? "
                "AND system = (SELECT id FROM names WHERE text = ?) "
                "AND task = (SELECT id FROM names WHERE text = ?)",
                (run.id, trial, by, system, task),
            )

    def label_count(self, run: Run) -> tuple[int, str]:
        """How many labels a run has, and when the newest was given: what changes with each."""
        counted = "SELECT count(*), coalesce(max(labelled), '') FROM labels WHERE run = ?"
        ((count, newest),) = self.database.execute(counted, (run.id,)).fetchall()
        return int(count), str(newest)

    def labels(self, run: Run) -> dict[TrialKey, tuple[Label, ...]]:
        """What people say of the trials of a run, in the order in which they said it."""
        rows = self.database.execute(
            """
            SELECT s.text, t.text, x.trial, x.passed, x.person, x.labelled, x.note, x.chosen,
              x.chance
            FROM labels x JOIN names s ON s.id = x.system JOIN names t ON t.id = x.task
            WHERE x.run = ? ORDER BY x.labelled, x.person
            """,
            (run.id,),
        ).fetchall()
        if not rows:
            return {}
        from passhat.records.labels import Label

        by_trial: dict[TrialKey, tuple[Label, ...]] = {}
        for system, task, trial, passed, by, at, note, chosen, chance in rows:
            label = Label(
                passed=bool(passed), by=by, at=at, note=note, chosen=chosen, chance=chance
            )
            by_trial[system, task, trial] = (*by_trial.get((system, task, trial), ()), label)
        return by_trial

    def name_id(self, text: str) -> int:
        """The number of a text in `names`, assigned when it is new (inside a transaction)."""
        known = self._name_ids.get(text)
        return self.name_ids([text])[text] if known is None else known

    def name_ids(self, texts: Iterable[str]) -> Mapping[str, int]:
        """The numbers of texts in `names`, assigned if they are new (inside a transaction)."""
        # Sorted, so that two transactions with the same new names wait and do not deadlock.
        for text in sorted({text for text in texts if text not in self._name_ids}):
            self.database.execute(
                "INSERT INTO names (text) VALUES (?) ON CONFLICT DO NOTHING", (text,)
            )
            row = self.database.execute("SELECT id FROM names WHERE text = ?", (text,)).fetchone()
            assert row is not None
            self._name_ids[text] = int(row[0])
        return self._name_ids

    def runs(
        self, *, suite: str | None = None, branch: str | None = None, limit: int | None = None
    ) -> list[Run]:
        """The runs, newest first.

        Which is the newest depends on every row: none of them may be damaged.
        """
        if not self._rows_verified:
            self._verify_rows()
        wanted = {"suite": suite, "branch": branch}
        where = " AND ".join(f"{name} = :{name}" for name, value in wanted.items() if value)
        values = {name: value for name, value in wanted.items() if value}
        return self.select_runs(where or "1 = 1", {**values, "limit": limit or ALL})

    def run_by_id(self, run_id: int) -> Run:
        return self.select_runs("id = :id", {"id": run_id, "limit": 1})[0]

    def find_run(self, reference: str) -> Run:
        """A run by tag, key, commit, branch (its newest), `latest`, or the first 4 letters."""
        return named_run(self, reference).run

    def tag(self, run: Run, name: str, *, by: str = "") -> None:
        """Name a run, for example as a baseline; within a suite a name moves to the newest tag."""
        if name.strip() in ("", LATEST):
            rule = f"must have a letter or more, and not be {LATEST}, which is the newest run"
            raise ArgumentError("tag", rule, name)
        _check_line("tag", name)
        with self._changing(run, by, "tag", name):
            self.database.execute(
                "DELETE FROM tags WHERE name = ? AND run IN (SELECT id FROM runs WHERE suite = ?)",
                (name, run.suite),
            )
            self.database.execute("INSERT INTO tags (name, run) VALUES (?, ?)", (name, run.id))

    def untag(self, run: Run, name: str, *, by: str = "") -> None:
        """Remove a tag of a run."""
        with self._changing(run, by, "untag", name):
            removed = self.database.execute(
                "DELETE FROM tags WHERE name = ? AND run = ?", (name, run.id)
            )
            if not removed.rowcount:
                raise HistoryError(f"{self.name}: run {run.key} does not have the tag {name!r}")

    def note(self, run: Run, text: str, *, by: str) -> None:
        """Keep what a person has to say of a run, as one paragraph."""
        if not text.strip() or len(text) > LONGEST_NOTE:
            rule = f"must have a word or more, and at most {LONGEST_NOTE:,} characters"
            raise ArgumentError("note", rule, text)
        with self._changing(run, by, "note", " ".join(text.split())):
            pass

    def rename(self, run: Run, suite: str, *, by: str = "") -> Run:
        """Put a run under another suite, if it is still under the one that `run` says."""
        _check_line("suite", suite)
        with self._changing(run, by, "rename", f"{run.suite} to {suite}"):
            sealed = self._sealed(run.id)[0]
            if sealed not in (OPEN, BEFORE) and sealed.split(" ")[-1] != self._run_digest(run.id):
                raise damaged(self.name, f"the row of run {run.key} is not what was stored")
            renamed = self.database.execute(
                "UPDATE runs SET suite = ? WHERE id = ? AND suite = ?", (suite, run.id, run.suite)
            )
            if not renamed.rowcount:
                raise HistoryError(
                    f"{self.name}: run {run.key} is no longer of the suite {run.suite!r}: somebody "
                    "else renamed it meanwhile; look at it again"
                )
            self._seal(run.id, trials=False)
        return self.run_by_id(run.id)

    def changes(self, run: Run | str | None = None, *, limit: int = ALL) -> list[RunChange]:
        """What people did to runs, or to one, which may be deleted, and noted; newest first."""
        key = run.key if isinstance(run, Run) else run
        rows = self.database.execute(
            """
            SELECT run, at, person, action, text, labels FROM (
              SELECT id, run, at, person, action, text, 0 AS labels FROM changes
              UNION ALL
              SELECT 0, r.key, max(x.labelled), x.person, 'label', '', count(*)
              FROM labels x JOIN runs r ON r.id = x.run GROUP BY r.key, x.person) AS done
            WHERE run = coalesce(CAST(? AS TEXT), run) ORDER BY at DESC, id DESC LIMIT ?
            """,
            (key, limit),
        )
        return [
            RunChange(
                run=key, at=at, person=person, action=action,
                text=plural(labels, "trial") if labels else text,
            )
            for key, at, person, action, text, labels in rows
        ]  # fmt: skip

    @contextmanager
    def _changing(self, run: Run, by: str, action: RunAction, text: str) -> Iterator[None]:
        """One transaction that changes a run that is still there, and says who did it.

        Nobody renames or deletes a run in progress; what is not asked `by` anybody tidies up.
        """
        with self.writing():
            # An update that changes nothing locks the row, in both databases.
            there = self.database.execute("UPDATE runs SET key = key WHERE id = ?", (run.id,))
            if not there.rowcount:
                raise HistoryError(f"{self.name}: run {run.key} was deleted meanwhile")
            if by and action in ("rename", "delete"):
                now_there = self.run_by_id(run.id)  # it may have been resumed meanwhile
                if now_there.status == "running":
                    raise InputError(
                        f"run {run.key} is in progress ({now_there.owner or 'just begun'}): stop "
                        "it first, or wait until it has ended"
                    )
            yield
            if by:
                self.database.execute(
                    "INSERT INTO changes (run, at, person, action, text) VALUES (?, ?, ?, ?, ?)",
                    (run.key, now(), by, action, text),
                )

    def keep(self, run: Run, kind: str, basis: str, body: bytes) -> None:
        """Keep an answer about a run that rests on `basis`, if the store can be written now."""
        with suppress(StoreError), ExitStack() as stack:
            history = self
            if self.database.read_only:
                history = stack.enter_context(History(self.database.another(read_only=False)))
            with history.writing():
                history.database.execute(
                    "INSERT INTO kept (run, kind, mark, body) SELECT id, ?2, ?3, ?4 FROM runs "
                    "WHERE id = ?1 ON CONFLICT (run, kind) DO UPDATE SET mark = excluded.mark, "
                    "body = excluded.body",
                    (run.id, kind, _digest((basis, body)), body),
                )

    def kept(self, run: Run, kind: str, basis: str) -> bytes | None:
        """The answer that was kept about a run, if it rests on `basis` and is what was kept."""
        row = self.database.execute(
            "SELECT mark, body FROM kept WHERE run = ? AND kind = ?", (run.id, kind)
        ).fetchone()
        body = b"" if row is None else bytes(row[1])
        return body if row is not None and row[0] == _digest((basis, body)) else None

    def delete(self, run: Run, *, by: str = "") -> None:
        """Delete a run, with its trials, transcripts, artefacts, answers, tags and notes."""
        lost = f"{run.suite}, {plural(run.trials, 'trial')}"
        with self._changing(run, by, "delete", lost):
            self.database.execute(
                "DELETE FROM changes WHERE run = ? AND action = 'note'", (run.key,)
            )
            self.database.execute("DELETE FROM runs WHERE id = ?", (run.id,))
            forget_contents(self.database)

    def vacuum(self) -> None:
        """Return the space of deleted runs, and merge the write-ahead log into the file."""
        with self.writing():
            self.database.execute(
                "DELETE FROM names WHERE id NOT IN (SELECT system FROM trials UNION "
                "SELECT task FROM trials UNION SELECT system FROM tickets UNION "
                "SELECT task FROM tickets)"
            )
            self._name_ids.clear()
            forget_contents(self.database)
        with self.writing():
            forgotten = self.database.forget_words()
        for (run,) in self.database.execute("SELECT id FROM runs").fetchall() if forgotten else ():
            self.index_transcripts(run)
        self.database.compact()

    def trials(self, run: Run, *, columns: Sequence[str] = TRIAL_COLUMNS) -> Trials:
        """The trials of a run, in the order of evidence, with these of their `TRIAL_COLUMNS`."""
        self.verify(run)
        rows = self.database.execute(
            f"SELECT s.text, t.text, {', '.join(f'x.{name}' for name in columns)} "  # noqa: S608  our names
            "FROM trials x JOIN names s ON s.id = x.system JOIN names t ON t.id = x.task "
            "WHERE x.run = ?",
            (run.id,),
        ).fetchall()
        # Quicker than to follow the index by sequence from row to row of the table.
        rows.sort(key=itemgetter(2 + columns.index("sequence")))
        with self._sound():
            trials = trials_of_rows(rows, sources_of(run), columns)
            if columns is not TRIAL_COLUMNS or not (labels := self.labels(run)):
                return trials
            return trials.with_labels(labels)

    def pass_rates(self, run: Run) -> dict[str, float]:
        """pass^1 of each system of a run: the mean over its tasks."""
        rows = self.database.execute(
            """
            SELECT n.text, avg(rate) FROM (
              SELECT system, avg(CAST(outcome = 1 AS INTEGER) * CAST(1 AS DOUBLE PRECISION)) AS rate
              FROM trials WHERE run = ? GROUP BY system, task) AS of_tasks
            JOIN names n ON n.id = of_tasks.system GROUP BY n.text ORDER BY n.text
            """,
            (run.id,),
        )
        return dict(rows.fetchall())

    def tallies(self, run: Run, *, features: bool = False) -> list[Tally]:
        """Counts per task of each system of a run, made inside the database."""
        self.verify(run)
        return count_in_database(self.database, run, features=features)

    def verify(self, run: Run, *, whole: bool = False) -> None:
        """Raise HistoryError unless a run is what was stored when it ended.

        Of a run that has not ended, or ended before there were checksums, the file is checked. A
        run of more than `MOST_VERIFIED` trials is counted, unless the `whole` is asked for.
        """
        if run.id in self._verified and not whole:
            return
        sealed, status, count = self._sealed(run.id)
        wrong = None
        if sealed in (OPEN, BEFORE):
            if sealed == OPEN and status != "running":
                wrong = "ended without a checksum"
            elif run.status != "running":
                self.database.check()
        elif not sealed.startswith(f"{count} "):
            wrong = f"has {count:,} trials, not {sealed.partition(' ')[0]}"
        elif (whole or count <= MOST_VERIFIED) and sealed != f"{count} {self._digests(run.id)}":
            wrong = "is not what was stored"
        if wrong is None and whole:
            check_artefacts(self.database, run)
        if wrong is None:
            self._verified.add(run.id)
        elif self._sealed(run.id)[0] != sealed:
            self.verify(run, whole=whole)  # it went on, or ended, meanwhile
        else:
            raise damaged(self.name, f"run {run.key} {wrong}")

    def verify_all(self) -> Iterator[tuple[Run, HistoryError | None]]:
        """Every run, the oldest first, and what is wrong with the whole of it."""
        self.database.check()
        for run in reversed(self.select_runs("1 = 1", {"limit": ALL})):
            try:
                self.verify(run, whole=True)
            except HistoryError as error:
                yield run, error
            else:
                yield run, None

    def _sealed(self, run: int) -> tuple[str, str, int]:
        """The checksums and the status of a run, and how many trials it has, at one moment."""
        row = self.database.execute(
            "SELECT r.sealed, r.status, (SELECT count(*) FROM trials WHERE run = r.id) FROM runs r "
            "WHERE r.id = ?",
            (run,),
        ).fetchone()
        return ("", "", 0) if row is None else (str(row[0]), str(row[1]), int(row[2]))

    def _seal(self, run: int, *, trials: bool = True) -> None:
        """Store the number and the checksum of a run's trials and artefacts, in a transaction."""
        before, _, count = self._sealed(run)
        if trials:
            sealed = f"{count} {self._digests(run)}"
        elif before in (OPEN, BEFORE):
            return
        else:
            sealed = f"{before.rpartition(' ')[0]} {self._run_digest(run)}"
        self.database.execute("UPDATE runs SET sealed = ? WHERE id = ?", (sealed, run))
        self._verified.discard(run)

    def _digests(self, run: int) -> str:
        """The checksums of a run's trials, and of its own row."""
        digest = hashlib.blake2b(digest_size=16)
        rows = self.database.execute(
            f"SELECT s.text, t.text, {', '.join(f'x.{name}' for name in TRIAL_COLUMNS)} "  # noqa: S608  our names
            "FROM trials x LEFT JOIN names s ON s.id = x.system LEFT JOIN names t ON t.id = x.task "
            "WHERE x.run = ? ORDER BY x.sequence, x.system, x.task, x.trial",
            (run,),
        )
        encode, later = msgspec.msgpack.Encoder().encode, len(_SINCE_CHECKSUMS)
        none = (None,) * later
        while some := rows.fetchmany(ROWS_AT_ONCE):
            for row in some:
                digest.update(encode(row[:-later] if row[-later:] == none else row))
        for row in sealed_rows(self.database, run):
            digest.update(encode(row))
        return f"{digest.hexdigest()} {self._run_digest(run)}"

    def _run_digest(self, run: int) -> str:
        row = self.database.execute(
            f"SELECT {', '.join(_SEALED)} FROM runs WHERE id = ?",  # noqa: S608  our names
            (run,),
        ).fetchone()
        return _digest(row)

    def _verify_rows(self) -> None:
        """Raise HistoryError if the own row of a run that ended is not what was stored."""
        self.database.check("runs")
        rows = self.database.execute(f"SELECT sealed, {', '.join(_SEALED)} FROM runs")  # noqa: S608  our names
        for sealed, *row in rows:
            if sealed not in (OPEN, BEFORE) and str(sealed).split(" ")[-1] != _digest(row):
                raise damaged(self.name, f"the row of run {row[0]} is not what was stored")
        self._rows_verified = True

    @contextmanager
    def _sound(self) -> Iterator[None]:
        """Say of what cannot be understood that the store is damaged: we wrote it ourselves."""
        try:
            yield
        except (ValueError, TypeError, LookupError, zstd.ZstdError) as error:
            raise damaged(self.name, f"{type(error).__name__}: {error}") from None

    def query(self, sql: str, *, limit: int = 1000) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Header and rows of a reading query; anything that would write is refused."""
        return self.database.query(sql, limit=limit)

    def select_runs(self, where: str, values: Mapping[str, Any]) -> list[Run]:
        """The newest `limit` runs that meet a condition: one of our own texts, with its values."""
        cursor = self.database.execute(
            f"""
            WITH chosen AS (
              SELECT * FROM runs WHERE {where} ORDER BY started DESC, id DESC LIMIT :limit
            ), of_tasks AS (
              SELECT run, system, task, count(*) AS trials,
                count(*) FILTER (WHERE outcome = 1) AS passed,
                count(*) FILTER (WHERE outcome = 2) AS errored
              FROM trials WHERE run IN (SELECT id FROM chosen) GROUP BY run, system, task
            ), counted AS (
              SELECT run, CAST(sum(trials) AS BIGINT) AS trials,
                CAST(sum(passed) AS BIGINT) AS passed, CAST(sum(errored) AS BIGINT) AS errored,
                count(DISTINCT system) AS systems, count(DISTINCT task) AS tasks,
                avg(CAST(passed AS DOUBLE PRECISION) / trials) AS pass_rate
              FROM of_tasks GROUP BY run
            )
            SELECT r.*,
              (SELECT {self.database.joined}(name, :separator) FROM tags WHERE run = r.id) AS tags,
              coalesce(c.trials, 0) AS trials, coalesce(c.passed, 0) AS passed,
              coalesce(c.errored, 0) AS errored, coalesce(c.systems, 0) AS systems,
              coalesce(c.tasks, 0) AS tasks, c.pass_rate
            FROM chosen r LEFT JOIN counted c ON c.run = r.id ORDER BY r.started DESC, r.id DESC
            """,  # noqa: S608  `where` is one of our own texts
            {**values, "separator": SEPARATOR},
        )
        names = [column[0] for column in cursor.description or ()]
        with self._sound():
            runs = [run_of_row(dict(zip(names, row, strict=True))) for row in cursor.fetchall()]
        return [with_owner(self, run) for run in runs]


def _check_line(argument: str, text: str) -> None:
    """Refuse a name that would not be one line on a screen."""
    if not text.strip() or len(text) > LONGEST_LINE or not text.isprintable():
        rule = f"must be one line with a letter or more, of at most {LONGEST_LINE} characters"
        raise ArgumentError(argument, rule, text)


def _without_pictures(kept: str) -> str:
    return re.sub(r"data:image/[^\"]*", " ", kept) if "data:image/" in kept else kept


def _digest(row: Sequence[Any] | None) -> str:
    return hashlib.blake2b(msgspec.msgpack.encode(row), digest_size=16).hexdigest()


def _open_database(address: Path | str, *, read_only: bool) -> Database:
    """A connection to the store at a path or address, updated to the current version."""
    if is_postgres(address):
        from passhat.history.postgres import PostgresDatabase

        return PostgresDatabase.open(str(address), read_only=read_only)
    from passhat.history.sqlite import SqliteDatabase

    return SqliteDatabase.open(Path(address), read_only=read_only)


# The trials of a run reduced to counts inside the database: only sums per task leave it.

OUTCOMES = tuple(map(int, Outcome))

Pair = tuple[int, int]
"""A system and a task, by the number of their names."""

_COUNTS = """
SELECT s.text, t.text, x.* FROM (
  SELECT system, task, min(sequence), count(*) FILTER (WHERE outcome = 1),
  count(*) FILTER (WHERE outcome = 0), count(*) FILTER (WHERE outcome = 2),
  coalesce(sum(score) FILTER (WHERE outcome <> 2), 0.0),
  coalesce(sum(score * score) FILTER (WHERE outcome <> 2), 0.0),
  avg(weight), count(family), count(base)
FROM trials WHERE run = ? GROUP BY system, task) x
JOIN names s ON s.id = x.system JOIN names t ON t.id = x.task
"""
_FEATURE = "count({0}), coalesce(sum({0}), 0.0), coalesce(sum({0} * {0}), 0.0)"
_FEATURES = (
    f"SELECT system, task, outcome, {', '.join(map(_FEATURE.format, FEATURES))} "  # noqa: S608  our names
    "FROM trials WHERE run = ? GROUP BY system, task, outcome"
)
# As in a table of trials, the last trial of a task that names a family (or base) decides.
_LABELS = """
SELECT x.system, x.task, x.{0} FROM trials x JOIN (
  SELECT system, task, max(sequence) AS last FROM trials
  WHERE run = ?1 AND {0} IS NOT NULL GROUP BY system, task) y
ON x.system = y.system AND x.task = y.task AND x.sequence = y.last WHERE x.run = ?1
"""


def count_in_database(database: Database, run: Run, *, features: bool = False) -> list[Tally]:
    """Counts per task of each system of a run, as the table of its trials would have them."""
    rows = database.execute(_COUNTS, (run.id,)).fetchall()
    counts = {(system, task): row for _, _, system, task, *row in rows}
    # Tasks and systems each in the order in which they first occur.
    order = sorted(counts, key=lambda pair: counts[pair][0])
    tasks = dict.fromkeys(task for _, task in order)
    labels = {
        column: {
            (system, task): label
            for system, task, label in database.execute(_LABELS.format(column), (run.id,))
        }
        for place, column in enumerate(("base", "family"), 1)
        if any(row[-place] for row in counts.values())
    }
    by_outcome = database.execute(_FEATURES, (run.id,)) if features else ()
    read = _Reduced(
        names={row[i + 2]: row[i] for row in rows for i in (0, 1)},
        counts=counts,
        sums={(system, task, outcome): sums for system, task, outcome, *sums in by_outcome},
        labels=labels,
        sources=sources_of(run),
    )
    return [
        read.tally([(system, task) for task in tasks if (system, task) in counts])
        for system in dict.fromkeys(system for system, _ in order)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reduced:
    """The sums of a run that the database computed."""

    names: Mapping[int, str]
    counts: Mapping[Pair, Sequence[Any]]
    sums: Mapping[tuple[int, int, int], Sequence[Any]]
    labels: Mapping[str, Mapping[Pair, str]]
    sources: tuple[Source, ...]

    def tally(self, pairs: Sequence[Pair]) -> Tally:
        """The counts of one system, of these tasks."""
        import numpy as np

        from passhat.records import Tally
        from passhat.records.tally import significant

        rows = [self.counts[pair] for pair in pairs]
        _, passed, failed, errored, total, squares, weight, *_ = zip(*rows, strict=True)
        weighted = any(value is not None for value in weight)
        return Tally(
            system=self.names[pairs[0][0]],
            tasks=tuple(self.names[task] for _, task in pairs),
            passed=np.array(passed, dtype=np.int64),
            failed=np.array(failed, dtype=np.int64),
            errored=np.array(errored, dtype=np.int64),
            score_total=significant(np.array(total, dtype=np.float64)),
            score_squares=significant(np.array(squares, dtype=np.float64)),
            features=self._features(pairs) if self.sums else {},
            sources=self.sources,
            weight=np.array([1.0 if w is None else w for w in weight]) if weighted else None,
            **{name: tuple(map(own.get, pairs)) for name, own in self.labels.items()},
        )

    def _features(self, pairs: Sequence[Pair]) -> dict[str, FeatureSums]:
        """Sums of the features that any trial has, by outcome and task."""
        import numpy as np

        from passhat.records import FeatureSums
        from passhat.records.tally import significant

        none = [0] * (3 * len(FEATURES))
        cells = np.array(
            [[self.sums.get((*pair, outcome), none) for pair in pairs] for outcome in OUTCOMES],
            dtype=np.float64,
        )
        sums = {}
        for place, name in enumerate(FEATURES):
            count, total, squares = (cells[:, :, 3 * place + i] for i in range(3))
            if count.any():
                sums[name] = FeatureSums(
                    count=count.astype(np.int64),
                    total=significant(total),
                    squares=significant(squares),
                )
        return sums


# Trials as rows of the store, and rows as a table of trials.

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


def pack(text: str) -> bytes:
    """Text, compressed."""
    return zstd.compress(text.encode(), level=3)


def unpack(body: bytes) -> str:
    """Text that `pack` compressed."""
    return zstd.decompress(body).decode()


def _join_texts(texts: Sequence[str]) -> str | None:
    """Several short texts as one, a JSON list; None if there are none.

    >>> _join_texts(("search", "add")), _join_texts(())
    ('["search","add"]', None)
    """
    return json.dumps(list(texts), separators=(",", ":")) if texts else None


def split_texts(text: str | None) -> tuple[str, ...]:
    r"""The texts that `join_texts`, or with a NUL in between an earlier version, put together.

    >>> split_texts('["search","add"]'), split_texts("search\0add"), split_texts(None)
    (('search', 'add'), ('search', 'add'), ())
    """
    if not text:
        return ()
    if text.startswith('["') and text.endswith('"]'):
        return tuple(json.loads(text))
    return tuple(text.split("\0"))


def trial_row(trial: Trial, sequence: int) -> tuple[Any, ...]:
    """A trial as a row of `TRIAL_COLUMNS`, with its place in the order of evidence."""
    packed = {
        "sequence": sequence,
        "outcome": int(trial.outcome),
        "tools": _join_texts(trial.tools),
        "tags": _join_texts(trial.tags),
        "at": _join_texts(trial.at),
    }
    return tuple(packed[name] if name in packed else getattr(trial, name) for name in TRIAL_COLUMNS)


def trial_of_row(system: str, task: str, row: Sequence[Any]) -> Trial:
    """The trial in a row of `TRIAL_COLUMNS`."""
    given = dict(zip(TRIAL_COLUMNS, row, strict=True))
    del given["sequence"]
    given["outcome"] = Outcome(given["outcome"])
    given |= {name: split_texts(given[name]) for name in _JOINED}
    return Trial(system=system, task=task, **given)


ROUND_COLUMNS = ("trial", "sequence", "outcome", "score", "seed", "started", "base")
"""The columns that show whether runs moved together."""

_JOINED = ("tools", "tags", "at")
_ALWAYS_THERE = ("system", "task", "trial", "outcome", "score")


def trials_of_rows(
    rows: list[tuple[Any, ...]], sources: tuple[Source, ...], names: Sequence[str] = TRIAL_COLUMNS
) -> Trials:
    """The trials in rows of system, task and these of the `TRIAL_COLUMNS`."""
    from passhat.records import Trials

    names = ("system", "task", *names)
    values = list(zip(*rows, strict=True)) or [()] * len(names)
    columns = dict(zip(names, values, strict=True))
    del columns["sequence"]
    for name in [name for name in columns if name not in _ALWAYS_THERE]:
        if all(value is None for value in columns[name]):
            del columns[name]
    for name in _JOINED:
        if name in columns:
            columns[name] = tuple(map(split_texts, columns[name]))
    return Trials.from_columns(columns, duplicates=None, sources=sources)


# The trials of a run in one piece, as columns: read a hundred times faster than from rows.


def pack_trials(trials: Trials) -> bytes:
    """The columns of a table, compressed; not what people say of trials, which changes."""
    from passhat.records.tally import Categorical

    def packed(column: Any) -> tuple[tuple[str, ...] | None, str, bytes]:
        names = column.names if isinstance(column, Categorical) else None
        values = column if names is None else column.codes
        return names, values.dtype.str, values.tobytes()

    apart = {"features", "human_labels", "sources"}
    names = [each.name for each in fields(trials) if each.name not in apart]
    columns = {name: packed(getattr(trials, name)) for name in names
               if getattr(trials, name) is not None}  # fmt: skip
    columns |= {f"features.{name}": packed(column) for name, column in trials.features.items()}
    return zstd.compress(msgspec.msgpack.encode(columns), level=3)


def unpack_trials(body: bytes, sources: tuple[Source, ...]) -> Trials:
    """The table that `pack_trials` packed."""
    import numpy as np

    from passhat.records import Trials
    from passhat.records.tally import Categorical

    kinds = dict[str, tuple[tuple[str, ...] | None, str, bytes]]
    given: dict[str, Any] = {}
    for name, (names, kind, values) in msgspec.msgpack.decode(
        zstd.decompress(body), type=kinds
    ).items():
        array = np.frombuffer(values, dtype=kind)
        given[name] = array if names is None else Categorical(names, array)
    features = {name: given.pop(f"features.{name}") for name in FEATURES
                if f"features.{name}" in given}  # fmt: skip
    return Trials(**given, features=features, sources=sources)
