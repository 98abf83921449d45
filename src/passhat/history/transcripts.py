"""The transcripts of a run, a few at a time: memory does not grow with the run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from passhat.history.trial_rows import unpack
from passhat.records.transcript import MOST_OF_A_TASK, KeptTranscript, TranscriptKey, Transcripts
from passhat.records.trial import Outcome

if TYPE_CHECKING:
    from passhat.history.runs import Run
    from passhat.history.store import History

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
        found = {wanted[system, task, trial]: body for system, task, trial, body in rows}
        yield from ((key, unpack(found[key])) for key in batch if key in found)


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
