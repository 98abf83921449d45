"""Inspect AI logs: `.eval` archives, by their summaries so that samples stay unread, and JSON."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from passhat.errors import ReadError
from passhat.ingest.archive import Archive, listing_names
from passhat.ingest.document import Document, decode
from passhat.ingest.reader import Reading, TrialTable, choose_score, first_line
from passhat.ingest.transcripts.inspect_scores import Score, is_grade, score_value
from passhat.messages import few, plural, short, short_value
from passhat.records import Outcome
from passhat.records.columns import ColumnMap
from passhat.records.transcript import Transcript

READING = Reading(
    format="Inspect log",
    versions=".eval and .json, 2024 to 2026",
    system="model (and solver)",
    task="task/sample id",
    run="epoch",
    outcome="a score of 1 passes",
    score="value of the first scorer, or of `scorer`",
    started="started_at",
)

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


class _Dataset(msgspec.Struct, gc=False):
    samples: int | None = None


class _Config(msgspec.Struct, gc=False):
    limit: Any = None
    sample_id: Any = None
    epochs: int | None = None


class _Spec(msgspec.Struct, gc=False):
    task: str
    model: str
    solver: str | None = None
    model_generate_config: _GenerateConfig = msgspec.field(default_factory=_GenerateConfig)
    dataset: _Dataset = msgspec.field(default_factory=_Dataset)
    config: _Config = msgspec.field(default_factory=_Config)


class _Header(msgspec.Struct, gc=False):
    eval: _Spec
    version: int | None = None
    status: str = "started"
    samples: list[_Sample] | None = None


def recognises(document: Document) -> bool:
    """Whether it is an archive of a log, or a log in JSON."""
    if document.kind == "json":
        return document.has("version", "status", "eval")
    with document.stream() as stream:
        return listing_names(document.name, stream, document.limits, *_FIRST_MEMBERS)


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """The samples of a log, an epoch a trial; the first scorer unless another is chosen."""
    if document.kind == "json":
        header = document.decode(_Header)
        samples: Sequence[_Sample] = header.samples or ()
    else:
        with document.stream() as stream:
            archive = Archive(document.name, stream, document.limits)
            header = _header(document.name, archive)
            samples = _samples(document.name, archive)
    _check_scored(document.name, header, samples)
    known = {_shown(scorer): scorer for scorer in _known_scores(samples)}
    chosen, notes = choose_score(document.name, "scorer", list(known), mapping.scorer)
    shown, scorer = chosen or "", known.get(chosen or "", ("", None))
    others = [name for name in known if name != shown]
    if header.status != "success":
        notes.append(f'the log\'s status is "{header.status}": {_ended(header.eval, samples)}')
    _check_values(document.name, samples, scorer, others)
    version = f" (version {header.version})" if header.version is not None else ""
    return TrialTable(
        columns=_columns(header.eval, samples, scorer),
        notes=tuple(notes),
        entry="sample",
        graded=shown,
        read_as={
            "format": f"Inspect log{version}",
            "outcome": f"scorer '{short(shown)}' of 1 (C) passes" if shown else "no scores",
            "score": f"scorer '{short(shown)}'" if shown else "",
        },
        left_out=(f"scorers {few(others)}",) if others else (),
    )


def transcripts(document: Document, mapping: ColumnMap) -> Iterator[Transcript | None]:
    """The transcript of each sample: only here are the samples of an archive opened."""
    from passhat.ingest.transcripts.inspect_samples import SpokenSample, sample_transcript

    longest = document.limits.max_transcript
    if document.kind == "json":
        for sample in document.entries(SpokenSample, "samples"):
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


def _ended(spec: _Spec, samples: Sequence[_Sample]) -> str:
    """How many samples ended, of how many: known where all of the dataset were to run."""
    ended = plural(len(samples), "sample")
    if spec.dataset.samples is None or spec.config.limit or spec.config.sample_id:
        return f"{ended} ended"
    planned = spec.dataset.samples * (spec.config.epochs or 1)
    return f"{ended} of {planned:,} ended" if len(samples) < planned else f"{ended} ended"


def _check_scored(name: str, header: _Header, samples: Sequence[_Sample]) -> None:
    """Refuse a finished log without scores: nothing in it says what passed."""
    if header.status != "success" or any(sample.scores for sample in samples):
        return
    if any(sample.error is None for sample in samples):
        raise ReadError(
            f"{name}: has no scores, so nothing says what passed; score it with `inspect score "
            f"{name}` and give the log that this writes"
        )


def _check_values(
    name: str, samples: Sequence[_Sample], scorer: tuple[str, str | None], others: Sequence[str]
) -> None:
    """Refuse a scorer whose values are no grades: every sample would count as errored."""
    for sample in samples:
        score = (sample.scores or {}).get(scorer[0])
        if score is not None and not is_grade(score, scorer[1]):
            choice = f"choose another with `scorer` ({few(others)}), or " if others else ""
            raise ReadError(
                f'{name}, sample {short(sample.id)}: scorer "{short(_shown(scorer))}" says '
                f"{short_value(score.value)}, which is no grade and no number; {choice}score the "
                f"log with one that gives grades: `inspect score {name}`"
            )


def _shown(scorer: tuple[str, str | None]) -> str:
    return ".".join(part for part in scorer if part)


def _known_scores(samples: Iterable[_Sample]) -> dict[tuple[str, str | None], None]:
    """Every scorer, with each part of a score of several parts, in the order of the samples."""
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
    endings = [_ending(*pair) for pair in zip(samples, values, strict=True)]
    return {
        "system": [system] * len(samples),
        "task": [f"{spec.task}/{sample.id}" for sample in samples],
        "trial": [sample.epoch for sample in samples],
        "outcome": [outcome for outcome, _ in endings],
        "score": values,
        "seed": [spec.model_generate_config.seed] * len(samples),
        **_usage(samples),
        # Without the waits that the run's own concurrency causes.
        "seconds": [s.total_time if s.working_time is None else s.working_time for s in samples],
        "turns": [sample.turn_count for sample in samples],
        "started": [sample.started_at for sample in samples],
        "error": [error for _, error in endings],
    }


def _usage(samples: Iterable[_Sample]) -> dict[str, list[Any]]:
    """Tokens and cost over all the models that a sample used; None if none was."""
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


def _ending(sample: _Sample, value: float | None) -> tuple[Outcome, str | None]:
    if sample.invalidation is not None:
        return Outcome.ERRORED, "invalidated"
    error = first_line(sample.error.message if isinstance(sample.error, _Failure) else sample.error)
    if value is None:
        return Outcome.ERRORED, error or "not scored"
    return Outcome.PASSED if value >= 1 else Outcome.FAILED, error
