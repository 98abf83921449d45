"""What pages show of the store: counted and cut to size inside the database, and found by text.

The full-text index of what was said is filled when a run ends.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import fields
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from passhat.dataclass import dataclass, replace
from passhat.errors import StoreError
from passhat.history.database import ALL, Row
from passhat.history.store import TRIAL_COLUMNS, History, split_texts, trial_of_row, unpack
from passhat.messages import short_commit
from passhat.records.transcript import (
    MOST_OF_A_TASK,
    Excerpt,
    KeptTranscript,
    TextSearch,
    TranscriptKey,
    Transcripts,
)
from passhat.records.trial import Outcome, Trial

if TYPE_CHECKING:
    from passhat.history.runs import Run

_TRIAL = ", ".join(f"x.{name}" for name in TRIAL_COLUMNS)
Record = TypeVar("Record")


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteLine:
    """A suite and how often it ran."""

    name: str
    runs: int
    latest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTrial:
    """A trial and whether its transcript was kept."""

    trial: Trial
    transcript: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskInRun:
    """The results of one task in one run."""

    key: str
    commit: str | None
    started: str
    passed: int
    trials: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """A place where a searched text occurs: a task or system with the newest run that has it."""

    task: str | None
    system: str
    run: str
    suite: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskProgress:
    """One task of one system; `runs` lists its ended trials as "number:outcome"."""

    system: str
    task: str
    passed: int
    failed: int
    errored: int
    runs: str
    cost: float | None = None


class EndedTrial(NamedTuple):
    """One finished trial: whose it was, its number and how it ended.

    A tuple, as a page that is watched reads a hundred thousand of them.
    """

    system: str
    task: str
    trial: int
    outcome: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredProgress:
    """The progress of a run: its state, how many trials were begun, their cost, and each task."""

    status: str
    launched: int
    tasks: Sequence[TaskProgress]
    cost: float | None = None


def run_label(run: Run) -> str:
    """What people call a run: its tag, its commit, or its key."""
    commit = short_commit(run.checkout.commit)
    return (run.tags[0] if run.tags else "") or (f"{commit} {run.key}".strip())


def list_suites(history: History) -> list[SuiteLine]:
    """Every suite, the one that ran last first."""
    return search_suites(history, "", limit=ALL)


def newest_suite(history: History) -> str:
    """The suite that ran last and has trials to show, if any has; "" if nothing ran."""
    latest = page_of_runs(history)
    return next((run.suite for run in latest if run.trials), latest[0].suite if latest else "")


def has_several_suites(history: History) -> bool:
    """Whether runs of more than one suite are stored."""
    return len(history.database.execute("SELECT DISTINCT suite FROM runs LIMIT 2").fetchall()) > 1


def run_beside(history: History, run: Run) -> str | None:
    """The key of another run of the same suite that had not ended when this one began."""
    row = history.database.execute(
        "SELECT key FROM runs WHERE suite = ?1 AND id <> ?2 AND finished > ?3 AND started <= ?3 "
        "ORDER BY started DESC LIMIT 1",
        (run.suite, run.id, run.started),
    ).fetchone()
    return None if row is None else str(row[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Which runs are wanted: those of a suite, a branch, with a status; None wants any of them.

    The store says "running" of a run until somebody ends it: `unended` are those that are shown
    with the status that is asked for, "running" or "stopped".
    """

    suite: str | None = None
    branch: str | None = None
    status: str | None = None
    tagged: bool = False
    unended: tuple[int, ...] | None = None

    @property
    def values(self) -> dict[str, str]:
        status = self.status if self.unended is None else "running"
        named = {"suite": self.suite, "branch": self.branch, "status": status}
        return {name: value for name, value in named.items() if value}

    @property
    def condition(self) -> str:
        """What a row of runs has to meet, in SQL with named values."""
        parts = [f"{name} = :{name}" for name in self.values]
        parts += ["id IN (SELECT run FROM tags)"] if self.tagged else []
        if self.unended is not None:
            parts.append(f"id IN ({', '.join(map(str, self.unended)) or 'NULL'})")
        return " AND ".join(parts) or "1 = 1"


ANY_RUN = RunFilter()


def run_choices(history: History) -> dict[str, list[str]]:
    """The suites, branches and statuses that runs of the store have."""
    choices = {
        name: [
            str(value)
            for (value,) in history.database.execute(
                f"SELECT DISTINCT {name} FROM runs WHERE {name} IS NOT NULL ORDER BY {name}"  # noqa: S608
            )
        ]
        for name in ("suite", "branch", "status")
    }
    shown = {run.status for run in _unended(history)}
    choices["status"] = sorted({*choices["status"], *shown} - ({"running"} - shown))
    return choices


def _unended(history: History) -> list[Run]:
    """The runs of which the store says that they are running, with what is shown of each."""
    rows = history.database.execute("SELECT id FROM runs WHERE status = 'running'").fetchall()
    return [history.run_by_id(number) for (number,) in rows]


def _shown_as(history: History, wanted: RunFilter) -> RunFilter:
    if wanted.status not in ("running", "stopped"):
        return wanted
    chosen = tuple(run.id for run in _unended(history) if run.status == wanted.status)
    return replace(wanted, unended=chosen)


def count_runs(history: History, wanted: RunFilter = ANY_RUN) -> int:
    """How many runs there are."""
    wanted = _shown_as(history, wanted)
    query = f"SELECT count(*) FROM runs WHERE {wanted.condition}"  # noqa: S608  our own names
    row = history.database.execute(query, wanted.values).fetchone()
    return int(row[0]) if row else 0


RunColumn = Literal[
    "run", "pass@1", "started", "suite", "commit", "branch", "trials", "errored", "status", "tags"
]
"""What runs may be sorted by: the columns of their table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOrder:
    """How runs are sorted; those of which the column is not known come last, whatever it is."""

    by: RunColumn = "started"
    down: bool = True


NEWEST_FIRST = RunOrder()

# What the store has in a column of `runs`, it sorts itself; the others have to be counted.
_STORED: dict[RunColumn, str] = {
    "run": "key",
    "started": "started",
    "suite": "lower(suite)",
    "commit": "nullif(commit_id, '')",
    "branch": "nullif(lower(branch), '')",
}
_SHOWN: dict[RunColumn, Callable[[Run], str | float | None]] = {
    "run": lambda run: run.key,
    "pass@1": lambda run: None if run.systems > 1 or run.stopped_early else run.pass_rate,
    "started": lambda run: run.started,
    "suite": lambda run: run.suite.lower(),
    "commit": lambda run: run.checkout.commit or None,
    "branch": lambda run: (run.checkout.branch or "").lower() or None,
    "trials": lambda run: run.trials,
    "errored": lambda run: run.errored,
    "status": lambda run: run.status,
    "tags": lambda run: run.tags[0].lower() if run.tags else None,
}


def sort_runs(runs: Sequence[Run], order: RunOrder) -> list[Run]:
    """Runs by a column, the newest first where it is the same."""
    shown = _SHOWN[order.by]
    newest = sorted(runs, key=lambda run: (run.started, run.id), reverse=True)
    known = [run for run in newest if shown(run) is not None]
    known.sort(key=shown, reverse=order.down)  # type: ignore[arg-type]  # one kind a column
    return known + [run for run in newest if shown(run) is None]


def page_of_runs(
    history: History,
    wanted: RunFilter = ANY_RUN,
    *,
    order: RunOrder = NEWEST_FIRST,
    offset: int = 0,
    limit: int = 50,
) -> list[Run]:
    """Some runs, newest first or by another column."""
    wanted = _shown_as(history, wanted)
    if (column := _STORED.get(order.by)) is None:
        runs = history.select_runs(wanted.condition, {**wanted.values, "limit": ALL})
        return sort_runs(runs, order)[offset : offset + limit]
    rows = history.database.execute(
        f"SELECT id FROM runs WHERE {wanted.condition} "  # noqa: S608  our own names
        f"ORDER BY {column} IS NULL, {column} {'DESC' if order.down else ''}, "
        "started DESC, id DESC LIMIT :limit OFFSET :offset",
        {**wanted.values, "limit": limit, "offset": offset},
    ).fetchall()
    return [history.run_by_id(run_id) for (run_id,) in rows]


def runs_until(history: History, run: Run, *, limit: int) -> list[Run]:
    """A run and the newest finished runs of its suite before it, oldest first; `limit` in all."""
    return [*(history.run_by_id(number) for number, *_ in _before(history, run, limit - 1)), run]


def state_until(history: History, run: Run, *, limit: int) -> tuple[Row, ...]:
    """What changes when any of these runs, their tags or labels do: cheap to ask for."""
    baseline = history.database.execute(
        "SELECT name, run FROM tags WHERE name = 'baseline' ORDER BY run"
    )
    itself = (run.id, run.status, run.finished, run.trials, run.tags)
    labels = history.database.execute(
        "SELECT run, count(*), max(labelled) FROM labels WHERE run IN "
        "(SELECT id FROM runs WHERE suite = ?) GROUP BY run ORDER BY run",
        (run.suite,),
    )
    before = _before(history, run, limit - 1)
    return (*before, itself, *baseline.fetchall(), *labels.fetchall())


def _before(history: History, run: Run, limit: int) -> list[Row]:
    """The finished runs of a suite before one: number, checksum and tags, oldest first."""
    rows = history.database.execute(
        f"SELECT id, sealed, (SELECT {history.database.joined}(name, ' ') FROM tags "  # noqa: S608
        "WHERE run = runs.id) FROM runs WHERE suite = ?1 AND id <> ?2 AND status = 'finished' "
        "AND (started < ?3 OR (started = ?3 AND id < ?2)) AND EXISTS (SELECT 1 FROM trials "
        "WHERE run = runs.id) ORDER BY started DESC, id DESC LIMIT ?4",
        (run.suite, run.id, run.started, limit),
    )
    return rows.fetchall()[::-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialMark:
    """One trial of a task: its number, counted from one, the number it is stored under, its end."""

    place: int
    trial: int
    outcome: Outcome


TASKS_AT_ONCE = 900
"""Tasks that one statement asks about: any SQLite takes so many values."""


def marks_of_tasks(
    history: History, run: Run, system: str, tasks: Sequence[str]
) -> dict[str, list[TrialMark]]:
    """How each trial of some tasks ended, by number."""
    first = first_trial(history, run)
    marks: dict[str, list[TrialMark]] = {task: [] for task in tasks}
    names = list(marks)
    for start in range(0, len(names), TASKS_AT_ONCE):
        batch = names[start : start + TASKS_AT_ONCE]
        rows = history.database.execute(
            f"""
            SELECT t.text, x.trial, x.outcome FROM trials x JOIN names t ON t.id = x.task
            WHERE x.run = ? AND x.system = (SELECT id FROM names WHERE text = ?)
              AND x.task IN (SELECT id FROM names WHERE text IN ({", ".join("?" * len(batch))}))
            ORDER BY x.trial
            """,  # noqa: S608  marks only
            (run.id, system, *batch),
        )
        for task, trial, outcome in rows:
            mark = TrialMark(place=trial - first + 1, trial=trial, outcome=Outcome(outcome))
            marks[task].append(mark)
    return marks


def each_run(history: History, *, batch: int = 50) -> Iterator[Run]:
    """Every run, newest first, a few at a time."""
    offset = 0
    while runs := page_of_runs(history, offset=offset, limit=batch):
        yield from runs
        offset += len(runs)


def page_of_trials(
    history: History, run: Run, system: str, task: str, *, offset: int = 0, limit: int = 100
) -> list[StoredTrial]:
    """Some trials of one task, by number."""
    values = (run.id, system, task, limit, offset)
    return _select_trials(history, "1 = 1", values)


def find_trial(
    history: History, run: Run, system: str, task: str, trial: int
) -> StoredTrial | None:
    """One trial, if it was made."""
    trials = _select_trials(history, "x.trial = ?6", (run.id, system, task, 1, 0, trial))
    return trials[0] if trials else None


def read_trials_from(
    history: History, run: Run, number: int, *, limit: int = ALL
) -> list[tuple[int, Trial]]:
    """Finished trials from the one with this number on, each with its number in the order."""
    rows = history.database.execute(
        f"""
        SELECT x.sequence, s.text, t.text, {_TRIAL}
        FROM trials x JOIN names s ON s.id = x.system JOIN names t ON t.id = x.task
        WHERE x.run = ? AND x.sequence >= ? ORDER BY x.sequence LIMIT ?
        """,  # noqa: S608  our own names
        (run.id, number, limit),
    )
    return [(sequence, trial_of_row(system, task, row)) for sequence, system, task, *row in rows]


def first_trial(history: History, run: Run) -> int:
    """The number of a first trial: 0, or 1 if a log counts from there."""
    row = history.database.execute(
        "SELECT NOT EXISTS (SELECT 1 FROM trials WHERE run = ? AND trial = 0)", (run.id,)
    ).fetchone()
    return int(row[0]) if row else 0


def task_in_runs(
    history: History, suite: str, system: str, task: str, *, limit: int = 100
) -> list[TaskInRun]:
    """The results of one task in the newest runs of its suite, oldest first."""
    rows = history.database.execute(
        """
        SELECT r.key, r.commit_id, r.started, count(*) FILTER (WHERE x.outcome = 1), count(*)
        FROM runs r JOIN trials x ON x.run = r.id
        WHERE r.suite = ? AND x.system = (SELECT id FROM names WHERE text = ?)
          AND x.task = (SELECT id FROM names WHERE text = ?)
        GROUP BY r.id ORDER BY r.started DESC, r.id DESC LIMIT ?
        """,
        (suite, system, task, limit),
    ).fetchall()
    return _records(TaskInRun, reversed(rows))


def read_progress(history: History, run: Run) -> StoredProgress:
    """The progress of a run at this moment."""
    status, launched = history.database.execute(
        "SELECT status, (SELECT count(*) FROM tickets WHERE run = runs.id) FROM runs WHERE id = ?",
        (run.id,),
    ).fetchone() or ("deleted", 0)
    rows = history.database.execute(
        f"""
        SELECT s.text, t.text, passed, failed, errored, runs, cost FROM (
          SELECT system, task, count(*) FILTER (WHERE outcome = 1) AS passed,
            count(*) FILTER (WHERE outcome = 0) AS failed,
            count(*) FILTER (WHERE outcome = 2) AS errored,
            {history.database.joined}(trial || ':' || outcome, ' ') AS runs, sum(cost) AS cost
          FROM trials WHERE run = ? GROUP BY system, task) x
        JOIN names s ON s.id = x.system JOIN names t ON t.id = x.task
        """,  # noqa: S608  our own names
        (run.id,),
    )
    tasks = _records(TaskProgress, rows)
    costs = [task.cost for task in tasks if task.cost is not None]
    cost = sum(costs) if costs else None
    done = sum(task.passed + task.failed + task.errored for task in tasks)
    return StoredProgress(status=status, launched=max(launched, done), tasks=tasks, cost=cost)


def ended_trials(history: History, run: Run) -> list[EndedTrial]:
    """Every finished trial, in the order in which they ended."""
    rows = history.database.execute(
        "SELECT sequence, system, task, trial, outcome FROM trials WHERE run = ?", (run.id,)
    ).fetchall()
    rows.sort(key=itemgetter(0))
    names = {number: text for text, number in _name_numbers(history, run).items()}
    return [EndedTrial(names[row[1]], names[row[2]], row[3], row[4]) for row in rows]


def outcomes_over_time(
    history: History, run: Run, parts: int
) -> list[tuple[int, str, int, int, int]]:
    """How many trials of each system passed, failed and errored in each of so many parts."""
    # Marks that are joined system by system, in the order of the key: grouping by part as well
    # would sort all trials.
    rows = history.database.execute(
        f"""
        SELECT n.text, marks FROM (
          SELECT system, {history.database.joined}(CAST(3 * (sequence * ?2 /
            (SELECT 1 + max(sequence) FROM trials WHERE run = ?1)) + outcome AS TEXT), ' ') AS marks
          FROM trials WHERE run = ?1 GROUP BY system) x
        JOIN names n ON n.id = x.system
        """,  # noqa: S608  our own names
        (run.id, parts),
    )
    counts: dict[tuple[int, str], list[int]] = {}
    for system, marks in rows:
        for mark, count in Counter(marks.split()).items():
            part, outcome = divmod(int(mark), 3)
            counts.setdefault((part, system), [0, 0, 0])[outcome] = count
    return [
        (part, system, ended[Outcome.PASSED], ended[Outcome.FAILED], ended[Outcome.ERRORED])
        for (part, system), ended in sorted(counts.items())
    ]


def tags_of_tasks(history: History, run: Run) -> dict[str, frozenset[str]]:
    """The tags of every task that has a finished trial."""
    rows = history.database.execute(
        "SELECT DISTINCT t.text, x.tags FROM trials x JOIN names t ON t.id = x.task "
        "WHERE x.run = ? AND x.tags IS NOT NULL",
        (run.id,),
    )
    tags_of: dict[str, frozenset[str]] = {}
    for task, tags in rows:
        tags_of[task] = tags_of.get(task, frozenset()) | frozenset(split_texts(tags))
    return tags_of


def pairs_with_trials(history: History, run: Run) -> set[tuple[str, str]]:
    """Every agent and task of a run that have a finished trial."""
    rows = history.database.execute(
        "SELECT DISTINCT s.text, t.text FROM trials x JOIN names s ON s.id = x.system "
        "JOIN names t ON t.id = x.task WHERE x.run = ?",
        (run.id,),
    )
    return {(system, task) for system, task in rows}


def has_partial_scores(history: History, run: Run) -> bool:
    """Whether any trial of a run has a score between 0 and 1."""
    row = history.database.execute(
        "SELECT 1 FROM trials WHERE run = ? AND score > 0 AND score < 1 LIMIT 1", (run.id,)
    ).fetchone()
    return row is not None


def suite_spending(history: History, suite: str, *, since: str) -> float | None:
    """What the trials of a suite's runs cost since a moment; None if no price is known."""
    row = history.database.execute(
        "SELECT sum(x.cost) FROM trials x JOIN runs r ON r.id = x.run "
        "WHERE r.suite = ? AND r.started >= ?",
        (suite, since),
    ).fetchone()
    return None if row is None or row[0] is None else float(row[0])


def change_mark(history: History) -> int:
    """A number that changes when another connection writes to the store: cheap to ask for."""
    return history.database.change_mark()


def search_suites(history: History, text: str, *, limit: int = 50) -> list[SuiteLine]:
    """Suites whose name holds a text, in any case."""
    rows = history.database.execute(
        "SELECT suite, count(*), max(started) FROM runs "
        "WHERE lower(suite) LIKE lower(?) ESCAPE '\\' "
        "GROUP BY suite ORDER BY 3 DESC LIMIT ?",
        (_pattern(text), limit),
    )
    return _records(SuiteLine, rows)


def search_runs(history: History, text: str, *, limit: int = 50) -> list[Run]:
    """Runs whose key, commit, branch or tag holds a text, newest first."""
    rows = history.database.execute(
        """
        SELECT id FROM runs WHERE lower(key) LIKE lower(?1) ESCAPE '\\'
          OR lower(commit_id) LIKE lower(?1) ESCAPE '\\'
          OR lower(branch) LIKE lower(?1) ESCAPE '\\'
          OR id IN (SELECT run FROM tags WHERE lower(name) LIKE lower(?1) ESCAPE '\\')
        ORDER BY started DESC, id DESC LIMIT ?2
        """,
        (_pattern(text), limit),
    ).fetchall()
    return [history.run_by_id(run_id) for (run_id,) in rows]


def search_tasks(history: History, text: str, *, limit: int = 50) -> list[SearchHit]:
    """Tasks whose name holds a text, each with the newest run of every system that tried it."""
    return _search_names(history, text, limit, by_task=True)


def search_systems(history: History, text: str, *, limit: int = 50) -> list[SearchHit]:
    """Systems whose name holds a text, each with its newest run."""
    return _search_names(history, text, limit, by_task=False)


def _select_trials(history: History, where: str, values: tuple[Any, ...]) -> list[StoredTrial]:
    rows = history.database.execute(
        f"""
        SELECT EXISTS (SELECT 1 FROM transcripts k WHERE k.run = x.run AND k.system = x.system
          AND k.task = x.task AND k.trial = x.trial), {_TRIAL}
        FROM trials x WHERE x.run = ?1 AND x.system = (SELECT id FROM names WHERE text = ?2)
          AND x.task = (SELECT id FROM names WHERE text = ?3) AND {where}
        ORDER BY x.trial LIMIT ?4 OFFSET ?5
        """,  # noqa: S608  our own names
        values,
    )
    return [
        StoredTrial(trial=trial_of_row(values[1], values[2], row), transcript=bool(kept))
        for kept, *row in rows
    ]


def _search_names(history: History, text: str, limit: int, *, by_task: bool) -> list[SearchHit]:
    wanted, groups = ("task", "x.task, x.system") if by_task else ("system", "x.system")
    rows = history.database.execute(
        f"""
        SELECT t.text, s.text, r.key, r.suite FROM (
          SELECT max(x.task) AS task, x.system, max(x.run) AS run FROM trials x
          WHERE x.{wanted} IN (SELECT id FROM names WHERE lower(text) LIKE lower(?) ESCAPE '\\')
          GROUP BY {groups} LIMIT ?) f
        JOIN names t ON t.id = f.task JOIN names s ON s.id = f.system JOIN runs r ON r.id = f.run
        ORDER BY 1, 2
        """,  # noqa: S608  our own names
        (_pattern(text), limit),
    )
    return [
        SearchHit(task=task if by_task else None, system=system, run=run, suite=suite)
        for task, system, run, suite in rows
    ]


def _pattern(text: str) -> str:
    for mark in "\\%_":
        text = text.replace(mark, "\\" + mark)
    return f"%{text}%"


def _records(kind: type[Record], rows: Iterable[Row]) -> list[Record]:
    """Rows as records: their columns are the fields, in the same order."""
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]  # a dataclass
    return [kind(**dict(zip(names, row, strict=True))) for row in rows]


# The transcripts of a run, a few at a time: memory does not grow with the run.

BATCH = 200
"""Transcripts that one query reads: a few megabytes, and 600 values, which any SQLite accepts."""


def each_transcript(
    history: History, run: Run, *, system: str | None = None, task: str | None = None
) -> Iterator[KeptTranscript]:
    """Every transcript of a run, or of one system or task, in the order of their keys."""
    narrow, names = "", []
    for column, name in (("system", system), ("task", task)):
        if name is not None:
            narrow += f" AND k.{column} = (SELECT id FROM names WHERE text = ?)"  # noqa: S608  ours
            names.append(name)
    last = (-1, -1, -1)
    while True:
        # Each batch begins after the last key of the one before: no cursor stays open, and
        # PostgreSQL never sends a whole run at once.
        rows = history.database.execute(
            f"""
            SELECT k.system, k.task, k.trial, s.text, t.text, x.outcome, k.body FROM transcripts k
            JOIN names s ON s.id = k.system JOIN names t ON t.id = k.task
            LEFT JOIN trials x ON x.run = k.run AND x.system = k.system AND x.task = k.task
              AND x.trial = k.trial
            WHERE k.run = ? AND (k.system, k.task, k.trial) > (?, ?, ?){narrow}
            ORDER BY k.system, k.task, k.trial LIMIT {BATCH}
            """,  # noqa: S608  our own names and numbers
            (run.id, *last, *names),
        ).fetchall()
        for _, _, trial, system_name, task_name, outcome, body in rows:
            yield KeptTranscript(
                key=(system_name, task_name, trial),
                outcome=None if outcome is None else Outcome(outcome),
                text=unpack(body),
            )
        if len(rows) < BATCH:
            return
        last = tuple(rows[-1][:3])


def first_transcripts(
    history: History, run: Run, *, most: int
) -> Iterator[tuple[TranscriptKey, str]]:
    """What was said in the first trial of each task, of at most so many tasks."""
    keys = history.database.execute(
        """
        SELECT s.text, t.text, x.trial FROM (
          SELECT system, task, min(trial) AS trial FROM transcripts WHERE run = ?1
          GROUP BY system, task ORDER BY system, task LIMIT ?2) x
        JOIN names s ON s.id = x.system JOIN names t ON t.id = x.task
        """,
        (run.id, most),
    ).fetchall()
    return transcripts_of(history, run, [(system, task, trial) for system, task, trial in keys])


def all_transcripts(history: History, run: Run) -> Transcripts:
    """All transcripts of a run, by system, task and trial."""
    return {kept.key: kept.text for kept in each_transcript(history, run)}


def transcripts_of(
    history: History, run: Run, keys: Sequence[TranscriptKey]
) -> Iterator[tuple[TranscriptKey, str]]:
    """Those transcripts of these trials that were kept, in the order of the keys."""
    numbers = _name_numbers(history, run)
    for first in range(0, len(keys), BATCH):
        batch = keys[first : first + BATCH]
        wanted = {(numbers[s], numbers[t], trial): (s, t, trial) for s, t, trial in batch}
        rows = history.database.execute(
            f"""
            WITH wanted (system, task, trial) AS (VALUES {", ".join(["(?, ?, ?)"] * len(wanted))})
            SELECT k.system, k.task, k.trial, k.body FROM wanted w JOIN transcripts k
            ON k.run = ? AND k.system = w.system AND k.task = w.task AND k.trial = w.trial
            """,  # noqa: S608  marks only
            (*(number for key in wanted for number in key), run.id),
        )
        bodies = {wanted[system, task, trial]: body for system, task, trial, body in rows}
        yield from ((key, unpack(bodies[key])) for key in batch if key in bodies)


def failures_of_run(history: History, run: Run, *, most: int = MOST_OF_A_TASK) -> Transcripts:
    """The transcripts of the first failures of each task of a run, at most `most` of each."""
    rows = history.database.execute(
        """
        SELECT s.text, t.text, x.trial FROM (
          SELECT system, task, trial, row_number() OVER (PARTITION BY system, task ORDER BY trial)
            AS place FROM trials WHERE run = ?1 AND outcome <> 1) x
        JOIN names s ON s.id = x.system JOIN names t ON t.id = x.task WHERE x.place <= ?2
        """,
        (run.id, most),
    ).fetchall()
    return dict(
        transcripts_of(history, run, [(system, task, trial) for system, task, trial in rows])
    )


def _name_numbers(history: History, run: Run) -> Mapping[str, int]:
    """The numbers that the systems and tasks of a run have in `names`."""
    rows = history.database.execute(
        "SELECT text, id FROM names WHERE id IN (SELECT system FROM trials WHERE run = ?1 "
        "UNION SELECT task FROM trials WHERE run = ?1)",
        (run.id,),
    )
    return {text: int(number) for text, number in rows}


HITS = 20
CANDIDATES = 60
"""Trials with all the words that are read to show where; with common words there are more."""
MOST_WORDS = 40
"""Words that the index is asked for, of 100,000 trials a three-hundredth of a second each."""
READ_WITHOUT_INDEX = 2_000
INDEXED_AT_ONCE = 5_000
"""Transcripts of older runs that a search puts into the index before it looks: a second or so."""

_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidHit:
    """A trial in which the words were said, and where; `place` counts the trials of a task."""

    run: str
    suite: str
    system: str
    task: str
    trial: int
    place: int
    outcome: Outcome | None
    excerpt: Excerpt


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidHits:
    """The newest trials in which words were said; `left` transcripts were not looked at."""

    hits: tuple[SaidHit, ...]
    left: int = 0

    @property
    def quotes(self) -> dict[Excerpt, list[SaidHit]]:
        """Each sentence that was found once, with the trials in which it stands."""
        quotes: dict[Excerpt, list[SaidHit]] = {}
        for hit in self.hits:
            quotes.setdefault(hit.excerpt, []).append(hit)
        return quotes


def search_said(history: History, text: str, *, limit: int = HITS) -> SaidHits:
    """The newest trials in which all these words were said, the last one perhaps not to its end.

    Runs of older versions are put into the index first, some thousand transcripts a search.
    """
    words = _WORD.findall(text.lower())
    if not words:
        return SaidHits(hits=())
    words = [*dict.fromkeys(words[:-1]), words[-1]]
    if not history.database.full_text:
        return _read_newest(history, text, words, limit)
    left = _index_older(history)
    hits: tuple[SaidHit, ...] = ()
    # Of a pasted passage the longest words tell enough; the text itself is looked for then.
    asked = [*sorted(words[:-1], key=len)[-MOST_WORDS:], words[-1]]
    for rows in history.database.find_words(asked, CANDIDATES):
        hits = tuple(_verified(history, rows, text, words, limit))
        if len(hits) == limit:
            break
    return SaidHits(hits=hits, left=left)


def _verified(
    history: History, rows: Sequence[Row], text: str, words: Sequence[str], limit: int
) -> Iterator[SaidHit]:
    """Of the trials that the index names, those in which it can be shown: it may be out of date."""
    find = _finder(text, words)
    runs: dict[int, tuple[Run, int]] = {}
    for run_id, system, task, trial, outcome, body in rows:
        if (excerpt := find(unpack(body))) is None:
            continue
        if run_id not in runs:
            run = history.run_by_id(run_id)
            runs[run_id] = run, first_trial(history, run)
        run, first = runs[run_id]
        yield SaidHit(
            run=run.key, suite=run.suite, system=system, task=task, trial=trial,
            place=trial - first + 1, outcome=None if outcome is None else Outcome(outcome),
            excerpt=excerpt,
        )  # fmt: skip
        limit -= 1
        if not limit:
            return


def _finder(text: str, words: Sequence[str]) -> Callable[[str], Excerpt | None]:
    """Finds a text in a kept transcript: as it stands, or all of its words in any place."""
    whole, *single = TextSearch(text), *map(TextSearch, words)

    def find(kept: str) -> Excerpt | None:
        if (place := whole.find(kept)) is not None:
            return place
        places = [text.find(kept) for text in single]
        return places[0] if all(places) else None

    return find


_NOT_INDEXED = """
SELECT r.id, (SELECT count(*) FROM transcripts WHERE run = r.id) FROM runs r
WHERE r.status <> 'running' AND EXISTS (SELECT 1 FROM transcripts WHERE run = r.id)
  AND NOT EXISTS (SELECT 1 FROM spoken WHERE run = r.id) ORDER BY r.started DESC, r.id DESC
"""


def _index_older(history: History) -> int:
    """Index runs that are not yet, the newest first; how many transcripts are left."""
    missing = history.database.execute(_NOT_INDEXED).fetchall()
    left = sum(int(count) for _, count in missing)
    if not missing:
        return 0
    # A search may have a connection that only reads, or a role that may not write.
    with suppress(StoreError), ExitStack() as stack:
        writer = stack.enter_context(History(history.database.another(read_only=False)))
        done = 0
        for run, count in missing:
            if done and done + count > INDEXED_AT_ONCE:
                break
            done += writer.index_transcripts(run)
            left -= count
    return left


def _read_newest(history: History, text: str, words: Sequence[str], limit: int) -> SaidHits:
    """Without an index: one transcript after another, the newest first, up to a number."""
    find = _finder(text, words)
    hits: list[SaidHit] = []
    read = 0
    for run in each_run(history):
        first = first_trial(history, run)
        for kept in each_transcript(history, run):
            read += 1
            if excerpt := find(kept.text):
                system, task, trial = kept.key
                hits.append(
                    SaidHit(
                        run=run.key, suite=run.suite, system=system, task=task, trial=trial,
                        place=trial - first + 1, outcome=kept.outcome, excerpt=excerpt,
                    )
                )  # fmt: skip
            if len(hits) == limit or read == READ_WITHOUT_INDEX:
                row = history.database.execute("SELECT count(*) FROM transcripts").fetchone()
                return SaidHits(hits=tuple(hits), left=(row[0] if row else 0) - read)
    return SaidHits(hits=tuple(hits))
