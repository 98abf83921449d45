"""The history store: one SQLite file that several processes may write and read at once."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from passhat.defaults import STORE
from passhat.errors import HistoryError
from passhat.history.checkout import Checkout
from passhat.history.connection import connect, only_reading
from passhat.history.packed_text import pack, unpack
from passhat.history.references import look_up
from passhat.history.runs import Run, new_run_row, now, run_of_row
from passhat.history.trial_rows import TRIAL_COLUMNS, tally_of_rows, trial_row, trials_of_rows
from passhat.records import Source, Trial

if TYPE_CHECKING:
    from passhat.records import Tally, Transcripts, Trials

DEFAULT_PATH = Path(STORE)


class History:
    """All trials ever run. Open with `History.open(path)`; close it, or use it in `with`."""

    def __init__(self, connection: sqlite3.Connection, *, name: str) -> None:
        self.connection = connection
        self.name = name
        self._name_ids: dict[str, int] = {}

    @classmethod
    def open(cls, path: Path | str = DEFAULT_PATH, *, read_only: bool = False) -> Self:
        """The store at `path`; made, or brought to the current version, unless `read_only`."""
        path = Path(path)
        if read_only and not path.exists():
            raise HistoryError(
                f"{path}: no history here yet; `passhat run` or `passhat history add` begins one"
            )
        if not read_only:
            path.parent.mkdir(parents=True, exist_ok=True)
        try:
            return cls(connect(path, read_only=read_only), name=str(path))
        except sqlite3.DatabaseError as error:
            raise HistoryError(f"{path}: not a passhat history store ({error})") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.connection.close()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """One transaction; it takes the write lock at once, so that it waits rather than fails."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.connection.execute("ROLLBACK")
            raise
        self.connection.execute("COMMIT")

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
        )
        marks = ", ".join(f":{name}" for name in values)
        with self.writing():
            cursor = self.connection.execute(
                f"INSERT INTO runs ({', '.join(values)}) VALUES ({marks})",  # noqa: S608  our names
                values,
            )
        return self.run_by_id(int(cursor.lastrowid or 0))

    def finish_run(self, run: Run, status: str = "finished") -> Run:
        """Say how a run ended: finished, interrupted, budget, failed."""
        with self.writing():
            self.connection.execute(
                "UPDATE runs SET status = ?, finished = ? WHERE id = ?", (status, now(), run.id)
            )
        return self.run_by_id(run.id)

    def add_trials(self, run: Run, trials: Iterable[Trial], *, first_sequence: int = 0) -> None:
        """Keep finished trials, in one transaction."""
        with self.writing():
            self.insert_trials(run.id, enumerate(trials, first_sequence))

    def insert_trials(
        self, run: int, trials: Iterable[tuple[int, Trial]], *, replace: bool = False
    ) -> None:
        """Inside a transaction of the caller's: insert trials, each with its place in the order."""
        rows = [
            (run, self.name_id(trial.system), self.name_id(trial.task), *trial_row(trial, number))
            for number, trial in trials
        ]
        marks = ", ".join("?" * (3 + len(TRIAL_COLUMNS)))
        try:
            self.connection.executemany(
                f"INSERT {'OR REPLACE ' if replace else ''}INTO trials "  # noqa: S608  our names
                f"(run, system, task, {', '.join(TRIAL_COLUMNS)}) VALUES ({marks})",
                rows,
            )
        except sqlite3.IntegrityError:
            raise HistoryError(
                f"{self.name}: run {run} already has one of these trials; a trial is kept once"
            ) from None

    def add_transcript(self, run: int, trial: Trial, text: str) -> None:
        """Inside a transaction of the caller's: keep what was said in a trial, compressed."""
        self.connection.execute(
            "INSERT OR REPLACE INTO transcripts VALUES (?, ?, ?, ?, ?)",
            (run, self.name_id(trial.system), self.name_id(trial.task), trial.trial, pack(text)),
        )

    def add_transcripts(self, run: Run, transcripts: Transcripts) -> None:
        """Keep what was said in the trials of a run, in one transaction."""
        with self.writing():
            self.connection.executemany(
                "INSERT OR REPLACE INTO transcripts VALUES (?, ?, ?, ?, ?)",
                (
                    (run.id, self.name_id(system), self.name_id(task), trial, pack(text))
                    for (system, task, trial), text in transcripts.items()
                ),
            )

    def transcript(self, run: Run, system: str, task: str, trial: int) -> str | None:
        """What was said in one trial, if it was kept."""
        row = self.connection.execute(
            "SELECT body FROM transcripts WHERE run = ? AND trial = ? "
            "AND system = (SELECT id FROM names WHERE text = ?) "
            "AND task = (SELECT id FROM names WHERE text = ?)",
            (run.id, trial, system, task),
        ).fetchone()
        return None if row is None else unpack(row[0])

    def name_id(self, text: str) -> int:
        """The number of a text in `names`, given out when it is new (inside a transaction)."""
        if (known := self._name_ids.get(text)) is not None:
            return known
        self.connection.execute("INSERT OR IGNORE INTO names (text) VALUES (?)", (text,))
        row = self.connection.execute("SELECT id FROM names WHERE text = ?", (text,)).fetchone()
        return self._name_ids.setdefault(text, int(row[0]))

    def runs(
        self, *, suite: str | None = None, branch: str | None = None, limit: int | None = None
    ) -> list[Run]:
        """The runs, newest first."""
        wanted = {"suite": suite, "branch": branch}
        where = " AND ".join(f"{name} = :{name}" for name, value in wanted.items() if value)
        return self._select_runs(where or "1", {**wanted, "limit": -1 if limit is None else limit})

    def run_by_id(self, run_id: int) -> Run:
        return self._select_runs("id = :id", {"id": run_id, "limit": 1})[0]

    def find_run(self, reference: str) -> Run:
        """A run by tag, key, commit, branch (its newest), `latest`, or a beginning of 4 letters."""
        return look_up(self, reference).run

    def tag(self, run: Run, name: str) -> None:
        """Name a run, for example as a baseline; a name moves when it is given again."""
        with self.writing():
            self.connection.execute("INSERT OR REPLACE INTO tags VALUES (?, ?)", (name, run.id))

    def delete(self, run: Run) -> None:
        """Forget a run, its trials, transcripts, answers and tags."""
        with self.writing():
            self.connection.execute("DELETE FROM runs WHERE id = ?", (run.id,))

    def vacuum(self) -> None:
        """Give the space of deleted runs back, and fold the write-ahead log in."""
        with self.writing():
            self.connection.execute(
                "DELETE FROM names WHERE id NOT IN (SELECT system FROM trials UNION "
                "SELECT task FROM trials UNION SELECT system FROM tickets UNION "
                "SELECT task FROM tickets)"
            )
            self._name_ids.clear()
        self.connection.execute("VACUUM")
        self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def trials(self, run: Run) -> Trials:
        """The trials of a run, in the order of evidence."""
        rows = self.connection.execute(
            f"SELECT s.text, t.text, {', '.join(f'x.{name}' for name in TRIAL_COLUMNS)} "  # noqa: S608  our names
            "FROM trials x JOIN names s ON s.id = x.system JOIN names t ON t.id = x.task "
            "WHERE x.run = ? ORDER BY x.sequence",
            (run.id,),
        ).fetchall()
        source = Source(name=f"run {run.key}", format="passhat history", sha256="")
        return trials_of_rows(rows, run.sources or (source,))

    def tallies(self, run: Run) -> list[Tally]:
        """Counts per task of each system of a run, made inside the database; no features."""
        rows = self.connection.execute(
            """
            SELECT s.text, min(x.sequence), t.text, sum(x.outcome = 1), sum(x.outcome = 0),
              sum(x.outcome = 2), total(iif(x.outcome = 2, NULL, x.score)),
              total(iif(x.outcome = 2, NULL, x.score * x.score))
            FROM trials x JOIN names s ON s.id = x.system JOIN names t ON t.id = x.task
            WHERE x.run = ? GROUP BY x.system, x.task
            ORDER BY min(min(x.sequence)) OVER (PARTITION BY x.task)
            """,
            (run.id,),
        ).fetchall()
        # As in a table of trials: tasks and systems each in the order in which they first occur.
        systems = dict.fromkeys(row[0] for row in sorted(rows, key=lambda row: int(row[1])))
        return [
            tally_of_rows(system, [row[2:] for row in rows if row[0] == system])
            for system in systems
        ]

    def query(self, sql: str, *, limit: int = 1000) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Header and rows of a reading query; anything that would write is refused."""
        with closing(connect(Path(self.name), read_only=True)) as connection:
            connection.set_authorizer(only_reading)
            try:
                cursor = connection.execute(sql)
                rows = cursor.fetchmany(limit)
            except sqlite3.Error as error:
                raise HistoryError(f"--sql: {error}") from None
            return [column[0] for column in cursor.description or ()], rows

    def _select_runs(self, where: str, values: Mapping[str, Any]) -> list[Run]:
        cursor = self.connection.execute(
            f"""
            SELECT r.*,
              (SELECT group_concat(name, char(0)) FROM tags WHERE run = r.id) AS tags,
              (SELECT count(*) FROM trials WHERE run = r.id) AS trials,
              (SELECT count(*) FROM trials WHERE run = r.id AND outcome = 1) AS passed,
              (SELECT count(*) FROM trials WHERE run = r.id AND outcome = 2) AS errored,
              (SELECT count(DISTINCT system) FROM trials WHERE run = r.id) AS systems,
              (SELECT count(DISTINCT task) FROM trials WHERE run = r.id) AS tasks,
              (SELECT avg(rate) FROM (SELECT avg(outcome = 1) AS rate FROM trials
                WHERE run = r.id GROUP BY system, task)) AS pass_rate
            FROM (SELECT * FROM runs WHERE {where} ORDER BY started DESC, id DESC LIMIT :limit) r
            """,  # noqa: S608  `where` is one of our own texts
            values,
        )
        names = [column[0] for column in cursor.description]
        return [run_of_row(dict(zip(names, row, strict=True))) for row in cursor]
