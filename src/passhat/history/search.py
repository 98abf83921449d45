"""Finding trials by what was said in them: a full-text index, filled when a run ends."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from passhat.dataclass import dataclass
from passhat.errors import ArgumentError, StoreError
from passhat.history.queries import each_run, each_transcript, first_trial
from passhat.history.store import History, unpack
from passhat.records.transcript import Excerpt, TextSearch
from passhat.records.trial import Outcome

if TYPE_CHECKING:
    from passhat.history.database import Row
    from passhat.history.runs import Run

HITS = 20
CANDIDATES = 60
"""Trials with all the words that are read to show where; with common words there are more."""
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


def search_said(history: History, text: str, *, limit: int = HITS) -> SaidHits:
    """The newest trials in which all these words were said, the last one perhaps not to its end.

    Runs of older versions are put into the index first, some thousand transcripts a search.
    """
    words = _WORD.findall(text.lower())
    if not words:
        return SaidHits(hits=())
    if not history.database.full_text:
        return _read_newest(history, text, limit)
    left = _index_older(history)
    rows = history.database.find_words(words, CANDIDATES)
    return SaidHits(hits=tuple(_verified(history, rows, text, words, limit)), left=left)


def _verified(
    history: History, rows: Sequence[Row], text: str, words: Sequence[str], limit: int
) -> Iterator[SaidHit]:
    """Of the trials that the index names, those in which it can be shown: it may be out of date."""
    searches = [TextSearch(text), *map(TextSearch, words)]
    runs: dict[int, tuple[Run, int]] = {}
    for run_id, system, task, trial, outcome, body in rows:
        kept = unpack(body)
        found = searches[0].find(kept)
        if found is None:
            single = [one.find(kept) for one in searches[1:]]
            found = single[0] if all(single) else None
        if found is None:
            continue
        if run_id not in runs:
            run = history.run_by_id(run_id)
            runs[run_id] = run, first_trial(history, run)
        run, first = runs[run_id]
        yield SaidHit(
            run=run.key, suite=run.suite, system=system, task=task, trial=trial,
            place=trial - first + 1, outcome=None if outcome is None else Outcome(outcome),
            excerpt=found,
        )  # fmt: skip
        limit -= 1
        if not limit:
            return


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


def _read_newest(history: History, text: str, limit: int) -> SaidHits:
    """Without an index: one transcript after another, the newest first, up to a number."""
    with suppress(ArgumentError):
        search, hits, read = TextSearch(text), [], 0
        for run in each_run(history):
            first = first_trial(history, run)
            for kept in each_transcript(history, run):
                read += 1
                if found := search.find(kept.text):
                    system, task, trial = kept.key
                    hits.append(
                        SaidHit(
                            run=run.key, suite=run.suite, system=system, task=task, trial=trial,
                            place=trial - first + 1, outcome=kept.outcome, excerpt=found,
                        )
                    )  # fmt: skip
                if len(hits) == limit or read == READ_WITHOUT_INDEX:
                    row = history.database.execute("SELECT count(*) FROM transcripts").fetchone()
                    return SaidHits(hits=tuple(hits), left=(row[0] if row else 0) - read)
        return SaidHits(hits=tuple(hits))
    return SaidHits(hits=())
