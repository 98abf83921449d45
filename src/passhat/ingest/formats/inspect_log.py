"""Inspect AI logs: `.eval` archives, by their summaries so that samples stay unread, and JSON."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec

from passhat.errors import ReadError
from passhat.ingest.document import Archive, Document, decode, listing_names
from passhat.ingest.readers import (
    Reading,
    TrialTable,
    choose_score,
    first_line,
    seconds_between,
    sum_of,
)
from passhat.ingest.scored_rows import PersonScore, is_named_human, labels_of_people
from passhat.ingest.transcripts import as_text, turns_of
from passhat.messages import few, plural, short, short_value
from passhat.records import Outcome
from passhat.records.columns import ColumnMap
from passhat.records.transcript import Check, Transcript

READING = Reading(
    format="Inspect log",
    versions=".eval and .json, 2024 to 2026",
    system="model (and solver)",
    task="task/sample id",
    run="epoch",
    outcome="a score of 1 passes",
    score="value of the first scorer, or of `scorer`",
    started="started_at",
    label="values that people gave by editing a score, or of a scorer named human",
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

    @property
    def tokens_in(self) -> int:
        cached = (self.input_tokens_cache_read or 0) + (self.input_tokens_cache_write or 0)
        return self.input_tokens + cached


class _Failure(msgspec.Struct, gc=False):
    message: str = ""


class _Sample(msgspec.Struct, gc=False):
    id: int | str
    epoch: int
    scores: dict[str, Score] | None = None
    model_usage: dict[str, _Usage] = {}
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


class _Stats(msgspec.Struct, gc=False):
    started_at: str = ""
    completed_at: str = ""


class _Header(msgspec.Struct, gc=False):
    eval: _Spec
    stats: _Stats = msgspec.field(default_factory=_Stats)
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
            member = next((name for name in _FIRST_MEMBERS if name in archive), None)
            if member is None:
                raise ReadError(
                    f"{document.name}: a zip archive, but no Inspect log: it has no header.json"
                )
            header = decode(f"{document.name}, {member}", archive.read(member), _Header)
            samples = _samples(document.name, archive)
            if _may_be_edited(archive, member, header.stats):
                _find_edits(document.name, archive, samples)
    _check_scored(document.name, header, samples)
    people = _people_apart(samples, mapping)
    known = {_shown(scorer): scorer for scorer in _known_scores(samples)}
    chosen, notes = choose_score(document.name, "scorer", list(known), mapping.scorer)
    shown, scorer = chosen or "", known.get(chosen or "", ("", None))
    others = [name for name in known if name != shown]
    if header.status != "success":
        notes.append(f'the log\'s status is "{header.status}": {_ended(header.eval, samples)}')
    _check_values(document.name, samples, scorer, others)
    version = f" (version {header.version})" if header.version is not None else ""
    score, labels, more = labels_of_people(document.name, people, shown, mapping)
    return TrialTable(
        columns={
            **_columns(header.eval, samples, scorer),
            "human_labels": [own or None for own in labels],
        },
        notes=(*notes, *more),
        entry="sample",
        graded=shown,
        scores=() if mapping.scorer or not shown else (shown, *others),
        read_as={
            "format": f"Inspect log{version}",
            "outcome": f"scorer '{short(shown)}' of 1 (C) passes" if shown else "no scores",
            "score": f"scorer '{short(shown)}'" if shown else "",
            "label": f"'{short(score)}', as people scored it" if score else "",
        },
        left_out=(f"scorers {few(others)}",) if others else (),
    )


def transcripts(document: Document, mapping: ColumnMap) -> Iterator[Transcript | None]:
    """The transcript of each sample: only here are the samples of an archive opened."""
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


_DOUBT = timedelta(seconds=5)
"""An archive knows its times to two seconds; a run starts and ends a little beside its log."""


def _may_be_edited(archive: Archive, first: str, stats: _Stats) -> bool:
    """Whether an archive may have been written again after its run, as an edited one is.

    Summaries do not say that a score was edited, and opening all samples takes long. A log that is
    written while its trials run takes as long to write as they do; one written again does not.
    """
    start = _FIRST_MEMBERS[1]
    took = seconds_between(stats.started_at, stats.completed_at)
    if first == start or start not in archive or took is None:
        return first != start
    begin, end = archive.written(start), archive.written(first)
    if begin is None or end is None:
        return True
    return end - begin < max(timedelta(seconds=took) - _DOUBT, _DOUBT)


def _find_edits(name: str, archive: Archive, samples: Sequence[_Sample]) -> None:
    """Give samples the scores that were edited; those of others stay as the summary has them."""
    for sample in samples:
        if (member := _member(sample)) not in archive:
            continue
        with suppress(ReadError):  # what cannot be read was not needed before, either
            data = archive.read(member)
            if b'"provenance"' in data:
                whole = decode(f"{name}, {member}", data, _Sample)
                edited = {
                    key: score for key, score in (whole.scores or {}).items() if score.history
                }
                sample.scores = {**(sample.scores or {}), **edited}


def _people_apart(
    samples: Sequence[_Sample], mapping: ColumnMap
) -> list[dict[str, list[PersonScore]]]:
    """What people scored, by scorer and part; samples keep the scores that programs gave.

    Where no program scored anything, or the user chose it, what people say is the verdict.
    """
    wanted = mapping.human_labels

    def of_people(name: str, score: Score) -> bool:
        if name == mapping.scorer:
            return False
        by_name = name == wanted if wanted else is_named_human(name)
        return by_name or bool(score.history and all(edit.provenance for edit in score.history))

    given = [(sample.scores or {}).items() for sample in samples]
    if all(of_people(name, score) for scores in given for name, score in scores):
        return [{} for _ in samples]
    by_people = []
    for sample, scores in zip(samples, given, strict=True):
        people: dict[str, list[PersonScore]] = {}
        kept = {}
        for name, score in scores:
            edits = [edit for edit in score.history if edit.provenance and edit.value != _UNCHANGED]
            apart = of_people(name, score)
            for edit in edits or ([_Edit(value=score.value)] if apart else ()):
                for part, value in _parts(name, edit.value):
                    people.setdefault(part, []).append(edit.scored(value))
            if not apart:
                own = [edit.value for edit in score.history if edit.provenance is None]
                kept[name] = Score(own[-1]) if own else score
        sample.scores = kept
        by_people.append(people)
    return by_people


def _parts(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The parts of a score by their names, each as a number where it is a grade."""
    several = value.items() if isinstance(value, dict) else ((None, value),)
    yield from ((_shown((name, part)), _plain_value(own)) for part, own in several)


def _plain_value(value: Any) -> Any:
    number = score_value(Score(value))
    return value if number is None else number


def _ended(spec: _Spec, samples: Sequence[_Sample]) -> str:
    """How many samples ended, of how many: known where all of the dataset were to run."""
    all_of_them = not spec.config.limit and not spec.config.sample_id
    planned = (spec.dataset.samples or 0) * (spec.config.epochs or 1) if all_of_them else 0
    of_planned = f" of {planned:,}" if len(samples) < planned else ""
    return f"{plural(len(samples), 'sample')}{of_planned} ended"


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
    used = [sample.model_usage.values() for sample in samples]
    return {
        "tokens_in": [sum_of(use.tokens_in for use in uses) for uses in used],
        "tokens_out": [sum_of(use.output_tokens for use in uses) for uses in used],
        "cost": [sum_of(use.total_cost for use in uses) for uses in used],
    }


def _ending(sample: _Sample, value: float | None) -> tuple[Outcome, str | None]:
    if sample.invalidation is not None:
        return Outcome.ERRORED, "invalidated"
    error = first_line(sample.error.message if isinstance(sample.error, _Failure) else sample.error)
    if value is None:
        return Outcome.ERRORED, error or "not scored"
    return Outcome.PASSED if value >= 1 else Outcome.FAILED, error


# Inspect keeps long texts once, beside the messages, and leaves a reference in their place.
_REFERENCE = re.compile(r"attachment://([0-9a-f]{32})")

Find = Callable[[re.Match[str]], str]


_UNCHANGED = "UNCHANGED"
"""What an edit has in the place of a value that it leaves as it was."""


class _Provenance(msgspec.Struct, gc=False):
    author: str = ""
    timestamp: str = ""
    reason: str | None = None


class _Edit(msgspec.Struct, gc=False):
    """A value that a score had: the scorer's own, which has no provenance, or a person's."""

    value: Any = _UNCHANGED
    explanation: str | None = None
    provenance: _Provenance | None = None

    def scored(self, value: Any) -> PersonScore:
        who = self.provenance or _Provenance()
        why = who.reason or (self.explanation if self.explanation != _UNCHANGED else "") or ""
        return PersonScore(value=value, by=who.author, at=who.timestamp, note=why)


class Score(msgspec.Struct, gc=False):
    """The score that a scorer gave a sample."""

    value: Any = None
    history: Sequence[_Edit] = ()


class _Explained(Score):
    explanation: str | None = None
    answer: Any = None


class _SampleFailure(msgspec.Struct):
    message: str = ""
    traceback: str = ""


class _Choice(msgspec.Struct):
    stop_reason: str = ""


class _Output(msgspec.Struct):
    completion: str = ""
    choices: list[_Choice] = []


class _Limit(msgspec.Struct):
    type: str = ""


class SpokenSample(msgspec.Struct):
    """The parts of a sample that hold words; its events, which repeat them, stay unread."""

    messages: list[Any] = []
    target: Any = None
    output: _Output = msgspec.field(default_factory=_Output)
    scores: dict[str, _Explained] | None = None
    error: str | _SampleFailure | None = None
    limit: _Limit | None = None
    attachments: dict[str, str] = {}


def sample_transcript(sample: SpokenSample, longest: int) -> Transcript | None:
    """The conversation of a sample; a completion that no message holds is its answer."""
    turns = turns_of(sample.messages)
    if sample.attachments:
        find = _finder(sample.attachments, longest)
        turns = tuple(
            replace(
                turn,
                calls=tuple(
                    replace(call, arguments=_REFERENCE.sub(find, call.arguments))
                    for call in turn.calls
                ),
                text=_REFERENCE.sub(find, turn.text),
            )
            for turn in turns
        )
    answer = _REFERENCE.sub(_finder(sample.attachments, longest), sample.output.completion)
    spoken = {turn.text.strip() for turn in turns[-3:]}
    stops = [choice.stop_reason for choice in sample.output.choices]
    failure = sample.error
    error = failure.traceback or failure.message if isinstance(failure, _SampleFailure) else failure
    transcript = Transcript(
        messages=turns,
        answer="" if answer.strip() in spoken else answer,
        error=error or "",
        stop_reason=f"{sample.limit.type} limit" if sample.limit else next(iter(stops), ""),
        checks=tuple(
            _check(name, score, sample.target) for name, score in (sample.scores or {}).items()
        ),
    )
    return transcript or None


def _finder(attachments: Mapping[str, str], longest: int) -> Find:
    """The texts that references point to; a text that is referenced often is cut to what fits."""
    room = longest

    def find(match: re.Match[str]) -> str:
        nonlocal room
        text = attachments.get(match[1], match[0])[:room] or match[0]
        room = max(0, room - len(text))
        return text

    return find


def _check(name: str, score: _Explained, target: object) -> Check:
    value = score_value(score)
    message = score.explanation or ("" if value is not None else as_text(score.value))
    # What the sample was to say and what the scorer took for its answer; both may be lists.
    return Check(
        target=name,
        score=value,
        message=message,
        expected=as_text(target),
        found=as_text(score.answer),
    )


# Score values of Inspect AI as numbers, by Inspect's own reading of them.
WORDS = {
    **dict.fromkeys(("c", "yes", "true"), 1.0),
    "p": 0.5,
    **dict.fromkeys(("i", "n", "no", "false"), 0.0),
}
"""Inspect's own reading of score values: correct, partial, incorrect, no answer."""


def score_value(score: Score | None, part: str | None = None) -> float | None:
    """Inspect's value_to_float, of one part of a score of several; None for what was not scored.

    >>> score_value(Score("C")), score_value(Score({"tone": 0.5}), "tone")
    (1.0, 0.5)
    >>> score_value(Score("nan")), score_value(Score("0.25"))
    (None, 0.25)
    """
    value = _part_of(score, part)
    if isinstance(value, str) and (word := value.strip().lower()) in WORDS:
        return WORDS[word]
    number = _number(value)
    return None if number is None or math.isnan(number) else number


def is_grade(score: Score, part: str | None = None) -> bool:
    """Whether a score is a grade, a number, or nothing at all.

    >>> is_grade(Score("C")), is_grade(Score(None)), is_grade(Score([1, 0])), is_grade(Score("A+"))
    (True, True, False, False)
    """
    value = _part_of(score, part)
    return value is None or score_value(score, part) is not None or _number(value) is not None


def _part_of(score: Score | None, part: str | None) -> Any:
    value = score.value if score is not None else None
    if part is None:
        return value
    return value.get(part) if isinstance(value, dict) else None


def _number(value: Any) -> float | None:
    """A number, also one that is written as text; None for anything else."""
    try:
        return float(value) if isinstance(value, (int, float, str)) else None
    except (ValueError, OverflowError):  # a whole number of hundreds of digits is no grade
        return None
