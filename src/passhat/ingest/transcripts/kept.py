"""What was said in the trials of one file, as the text that is kept of each."""

from __future__ import annotations

from collections.abc import Sequence

from passhat.errors import ReadError
from passhat.ingest.document import Document
from passhat.ingest.reader import Reader
from passhat.records import Trials
from passhat.records.clean_texts import CleanTexts
from passhat.records.column_names import ColumnMap
from passhat.records.transcript import Transcripts

NO_TRANSCRIPTS = "this file holds no transcripts"


def kept_texts(
    document: Document, reader: Reader, mapping: ColumnMap, trials: int
) -> list[str | None]:
    """The transcript of each trial, cut to the limit; None where nothing was said."""
    longest = document.limits.max_transcript
    found = reader.transcripts(document, mapping) if reader.transcripts else ()
    try:
        texts = [one.cut(longest).to_json() if one else None for one in found]
    except RecursionError as error:
        raise ReadError(f"{document.name}: nested too deeply to be a result file") from error
    if texts and len(texts) != trials:  # words beside the wrong trial would be worse than none
        raise ReadError(f"{document.name}: {len(texts)} transcripts do not fit {trials} trials")
    return texts or [None] * trials


def silent_note(files: Sequence[Sequence[str | None]]) -> str | None:
    """What to say of files that hold no transcripts, where they were asked for.

    >>> silent_note([["hello"], [None], [None, None]])
    '2 of 3 files hold no transcripts'
    """
    silent = sum(not any(said) for said in files)
    if not silent:
        return None
    several = len(files) > 1
    return f"{silent} of {len(files)} files hold no transcripts" if several else NO_TRANSCRIPTS


def by_trial(trials: Trials, said: Sequence[str | None]) -> Transcripts:
    """The texts by system, task and trial, where there is one; keys are taken out of each."""
    if not said:
        return {}
    keys = zip(trials.system.texts(), trials.task.texts(), trials.trial.tolist(), strict=True)
    texts = {
        (system or "", task or "", trial): text
        for (system, task, trial), text in zip(keys, said, strict=True)
        if text is not None
    }
    return CleanTexts(texts)
