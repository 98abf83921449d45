"""Inspect AI logs: `.eval` archives, by their summaries so that samples stay unread, and JSON."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from passhat.errors import ReadError
from passhat.ingest.archive import Archive, listing_names
from passhat.ingest.columns import ColumnMap
from passhat.ingest.document import Document, decode
from passhat.ingest.reader import Reader, Table, first_line
from passhat.ingest.told import few, short
from passhat.ingest.transcripts.inspect_scores import Score, score_value
from passhat.messages import plural
from passhat.records import Outcome
from passhat.records.transcript import Transcript

# A log whose run crashed has no header, only what was written at the start.
_FIRST_MEMBERS = "header.json", "_journal/start.json"


# Thousands of small objects without cycles: the collector, left to look through them again and
# again, takes a third of the time.
class _Usage(msgspec.Struct, gc=False):
    input_tokens: int = 0
    output_tokens: int = 0
    input_tokens_cache_write: int | None = None
    input_tokens_cache_read: int | None = None
    total_cost: float | None = None


class _Failure(msgspec.Struct, gc=False):
    message: str = ""


class _Sample(msgspec.Struct, gc=False):
    id: int | str
    epoch: int
    scores: dict[str, Score] | None = None
    model_usage: dict[str, _Usage] = msgspec.field(default_factory=dict)
    error: str | _Failure | None = None
    working_time: float | None = None
    total_time: float | None = None
    turn_count: int | None = None
    started_at: str | None = None
    invalidation: Any = None


class _GenerateConfig(msgspec.Struct, gc=False):
    seed: int | None = None


class _Spec(msgspec.Struct, gc=False):
    task: str
    model: str
    solver: str | None = None
    model_generate_config: _GenerateConfig = msgspec.field(default_factory=_GenerateConfig)


class _Header(msgspec.Struct, gc=False):
    eval: _Spec
    status: str = "started"
    samples: list[_Sample] | None = None


def recognises(document: Document) -> bool:
    """Whether it is an archive of a log, or a log in JSON."""
    if document.kind == "json":
        return document.has("version", "status", "eval")
    if document.kind != "zip":
        return False
    with document.stream() as stream:
        return listing_names(document.name, stream, document.limits, *_FIRST_MEMBERS)


def read(document: Document, mapping: ColumnMap) -> Table:
    """The samples of a log, an epoch a trial; the first scorer unless another is chosen."""
    if document.kind == "json":
        header = document.decode(_Header)
        samples: Sequence[_Sample] = header.samples or ()
    else:
        with document.stream() as stream:
            archive = Archive(document.name, stream, document.limits)
            header = _header(document.name, archive)
            samples = _samples(document.name, archive)
    scorer, notes = _scorer(document.name, samples, mapping.scorer)
    if header.status != "success":
        ended = plural(len(samples), "sample")
        notes.append(f'the log\'s status is "{header.status}": {ended} ended')
    columns = _columns(header.eval, samples, scorer)
    graded = ".".join(part for part in scorer if part)
    return Table(columns=columns, notes=tuple(notes), entry="sample", graded=graded)


def transcripts(document: Document, mapping: ColumnMap) -> Iterator[Transcript | None]:
    """What was said in each sample: only here are the samples of an archive opened."""
    from passhat.ingest.transcripts.inspect_samples import (
        SpokenLog,
        SpokenSample,
        sample_transcript,
    )

    longest = document.limits.max_transcript
    if document.kind == "json":
        for sample in document.decode(SpokenLog).samples or ():
            yield sample_transcript(sample, longest)
        return
    with document.stream() as stream:
        packed, expanded = stream.seek(0, io.SEEK_END), 0
        archive = Archive(document.name, stream, document.limits)
        for member in map(_member, _samples(document.name, archive)):
            data = archive.read(member) if member in archive else b"{}"
            expanded += len(data)
            document.limits.check_ratio(document.name, expanded, packed)
            sample = decode(f"{document.name}, {member}", data, SpokenSample)
            yield sample_transcript(sample, longest)


READER = Reader(
    name="inspect",
    recognises=recognises,
    read=read,
    transcripts=transcripts,
    describes="Inspect AI .eval and .json logs",
)


def _header(name: str, archive: Archive) -> _Header:
    member = next((name for name in _FIRST_MEMBERS if name in archive), None)
    if member is None:
        raise ReadError(f"{name}: a zip archive, but no Inspect log: it has no header.json")
    return decode(f"{name}, {member}", archive.read(member), _Header)


def _samples(name: str, archive: Archive) -> list[_Sample]:
    """By the summary of all samples; else by the journal, and one by one what it lacks."""
    if "summaries.json" in archive:
        return decode(f"{name}, summaries.json", archive.read("summaries.json"), list[_Sample])
    samples: dict[str, _Sample] = {}
    for member in archive.names("_journal/summaries/"):
        for sample in decode(f"{name}, {member}", archive.read(member), list[_Sample]):
            samples[_member(sample)] = sample
    for member in archive.names("samples/"):
        if member not in samples:
            samples[member] = decode(f"{name}, {member}", archive.read(member), _Sample)
    return list(samples.values())


def _member(sample: _Sample) -> str:
    return f"samples/{sample.id}_epoch_{sample.epoch}.json"


def _scorer(
    name: str, samples: Iterable[_Sample], chosen: str | None
) -> tuple[tuple[str, str | None], list[str]]:
    """The scorer to read, as its name and, for a score of several parts, the part."""
    known = _known_scores(samples)
    shown = [scorer if part is None else f"{scorer}.{part}" for scorer, part in known]
    if not known:
        return ("", None), []
    if chosen is not None:
        if chosen not in shown:
            raise ReadError(f'{name}: has no scorer "{short(chosen)}"; it has {few(shown)}')
        return list(known)[shown.index(chosen)], []
    notes = []
    if len(known) > 1:
        notes.append(f'scorer "{short(shown[0])}" was read; the log also has {few(shown[1:])}')
    return next(iter(known)), notes


def _known_scores(samples: Iterable[_Sample]) -> dict[tuple[str, str | None], None]:
    """Every scorer, and every part of a score of several, in the order they are met."""
    known: dict[tuple[str, str | None], None] = {}
    for sample in samples:
        for scorer, score in (sample.scores or {}).items():
            if isinstance(score.value, dict):
                known |= {(scorer, str(key)): None for key in score.value}
            else:
                known[scorer, None] = None
    return known


def _columns(
    spec: _Spec, samples: Sequence[_Sample], scorer: tuple[str, str | None]
) -> dict[str, list[Any]]:
    system = f"{spec.model} ({spec.solver})" if spec.solver else spec.model
    values = [score_value((sample.scores or {}).get(scorer[0]), scorer[1]) for sample in samples]
    return {
        "system": [system] * len(samples),
        "task": [f"{spec.task}/{sample.id}" for sample in samples],
        "trial": [sample.epoch for sample in samples],
        "outcome": [_outcome(*pair) for pair in zip(samples, values, strict=True)],
        "score": values,
        "seed": [spec.model_generate_config.seed] * len(samples),
        **_usage(samples),
        # Without the waits that the run's own concurrency causes.
        "seconds": [s.total_time if s.working_time is None else s.working_time for s in samples],
        "turns": [sample.turn_count for sample in samples],
        "started": [sample.started_at for sample in samples],
        "error": [_error(*pair) for pair in zip(samples, values, strict=True)],
    }


def _usage(samples: Iterable[_Sample]) -> dict[str, list[Any]]:
    """Tokens and cost over all the models that a sample used; None where none was."""
    used = [list(sample.model_usage.values()) for sample in samples]
    costs = [[use.total_cost for use in uses if use.total_cost is not None] for uses in used]
    return {
        "tokens_in": [sum(map(_tokens_in, uses)) if uses else None for uses in used],
        "tokens_out": [sum(use.output_tokens for use in uses) if uses else None for uses in used],
        "cost": [sum(paid) if paid else None for paid in costs],
    }


def _tokens_in(use: _Usage) -> int:
    cached = (use.input_tokens_cache_read or 0) + (use.input_tokens_cache_write or 0)
    return use.input_tokens + cached


def _outcome(sample: _Sample, value: float | None) -> Outcome:
    if value is None or sample.invalidation is not None:
        return Outcome.ERRORED
    return Outcome.PASSED if value >= 1 else Outcome.FAILED


def _error(sample: _Sample, value: float | None) -> str | None:
    if sample.invalidation is not None:
        return "invalidated"
    text = sample.error.message if isinstance(sample.error, _Failure) else sample.error
    return first_line(text) or ("not scored" if value is None else None)
