"""Search in what was said: the transcripts of a history store, or of an exported dataset."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypedDict, get_args

from passhat import arguments
from passhat.arguments import STORE
from passhat.dataclass import dataclass
from passhat.errors import ArgumentError, ReadError
from passhat.ingest.remote import is_url, scan_shard, transcript_files
from passhat.journeys.results import open_store
from passhat.records.transcript import (
    KeptTranscript,
    TextSearch,
    TranscriptMatch,
    TranscriptMatches,
)
from passhat.records.trial import Outcome

MOST_MATCHES = 20
"""Matches after which a search ends, unless more are asked for."""

_RUN = re.compile(r"run=([^/\\]+)")

OutcomeWord = Literal["passed", "failed", "errored"]

_Found = tuple[str, int | None, KeptTranscript]


class SearchTerms(TypedDict, total=False):
    """Which trials to look at, and how many to find; what is None narrows nothing."""

    run: str | None
    only: str | None
    task: str | None
    outcome: OutcomeWord | Outcome | None
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _SearchedTrials:
    """Which trials to look at; what is None narrows nothing."""

    run: str | None
    system: str | None
    task: str | None
    outcome: Outcome | None

    def has(self, kept: KeptTranscript) -> bool:
        """Whether a transcript is of a trial to look at."""
        system, task, _ = kept.key
        pairs = ((self.system, system), (self.task, task), (self.outcome, kept.outcome))
        return all(wanted is None or wanted == found for wanted, found in pairs)


def search_transcripts(
    text: str,
    *,
    store: Path | str = STORE,
    dataset: Path | str | None = None,
    run: str | None = None,
    only: str | None = None,
    task: str | None = None,
    outcome: OutcomeWord | Outcome | None = None,
    limit: int = MOST_MATCHES,
) -> TranscriptMatches:
    """The first trials in which a text was said, in upper or lower case.

    `run`, `only` (an agent), `task` and `outcome` narrow the search. Of a store the newest run
    comes first. `dataset` is the folder or address that `export_run` wrote transcripts to, and
    takes the place of the store. One transcript after another is read: memory does not grow with
    their number.
    """
    wanted = _SearchedTrials(run=run, system=only, task=task, outcome=_outcome(outcome))
    limit = arguments.whole_number("limit", limit)
    search = TextSearch(text)
    source = _of_store(store, wanted) if dataset is None else _of_dataset(str(dataset), wanted)
    matches: list[TranscriptMatch] = []
    read = 0
    for run, first, kept in source:
        read += 1
        if excerpt := search.find(kept.text):
            if len(matches) == limit:
                return TranscriptMatches(wanted=text, matches=tuple(matches), read=read, more=True)
            system, task, trial = kept.key
            matches.append(
                TranscriptMatch(
                    run=run, system=system, task=task, trial=trial, outcome=kept.outcome,
                    number=None if first is None else trial - first + 1, excerpt=excerpt,
                )
            )  # fmt: skip
    return TranscriptMatches(wanted=text, matches=tuple(matches), read=read)


def _outcome(given: OutcomeWord | Outcome | None) -> Outcome | None:
    if given is None or isinstance(given, Outcome):
        return given
    return Outcome[arguments.word("outcome", given, get_args(OutcomeWord)).upper()]


def _of_store(store: Path | str, wanted: _SearchedTrials) -> Iterator[_Found]:
    """Each transcript with its run, and the number that its first trial has."""
    from passhat.history.queries import each_run, each_transcript, first_trial

    with open_store(store) as history:
        runs = each_run(history) if wanted.run is None else [history.find_run(wanted.run)]
        for run in runs:
            first = first_trial(history, run)
            for kept in each_transcript(history, run, system=wanted.system, task=wanted.task):
                if wanted.has(kept):
                    yield run.key, first, kept


def _of_dataset(place: str, wanted: _SearchedTrials) -> Iterator[_Found]:
    if not is_url(place) and not Path(place).is_dir():
        raise ArgumentError("dataset", "must be a folder or an address", place)
    found = False
    for name, stream in transcript_files(place):
        found = True
        run = match[1] if (match := _RUN.search(name)) else ""
        if wanted.run is None or run.startswith(wanted.run):
            for kept in scan_shard(stream, name, wanted.has):
                yield run, None, kept
    if not found:
        raise ReadError(
            f"{place}: holds no transcripts; `passhat history export RUN {place} --transcripts` "
            "writes them"
        )
