"""OpenAI evals logs: JSON Lines of events, the first line the specification of the run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from passhat.errors import ReadError
from passhat.ingest.document import Document, decode
from passhat.ingest.readers import Reading, TrialTable
from passhat.ingest.transcripts import as_text, asked_and_answered
from passhat.messages import few, short
from passhat.records import Outcome
from passhat.records.columns import ColumnMap
from passhat.records.transcript import Check, Transcript, Turn

READING = Reading(
    format="OpenAI evals log",
    system="completion functions",
    task="sample_id",
    run="order of events",
    outcome="correct, or a metric of 1",
    score="metric, or that of `scorer`",
    started="created_at",
)

_JUDGED = ("match", "metrics")


class _RunConfig(msgspec.Struct):
    seed: int | None = None


class _Spec(msgspec.Struct):
    completion_fns: list[str] = []
    run_config: _RunConfig = msgspec.field(default_factory=_RunConfig)


class _Event(msgspec.Struct):
    spec: _Spec | None = None
    sample_id: str | None = None
    type: str = ""
    data: msgspec.Raw = msgspec.field(default=msgspec.Raw(b"{}"))
    created_at: str | None = None


def recognises(document: Document) -> bool:
    """Whether the first line is the specification of a run."""
    return document.has("spec") and b'"completion_fns"' in bytes(document.first["spec"])


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """One trial a match or metrics event; a sample that was never judged is errored."""
    spec = _Spec()
    rows: list[dict[str, Any]] = []
    sampled: dict[str, int] = {}
    for line, event in document.lines(_Event):
        spec = event.spec or spec
        if event.sample_id is None:
            continue
        if event.type in _JUDGED:
            rows.append(_row(document, line, event, mapping.scorer))
        else:
            sampled.setdefault(event.sample_id, line)
    judged = {row["task"] for row in rows}
    broken = {"outcome": Outcome.ERRORED, "error": "never judged"}
    rows += [
        {"line": line, "task": sample, **broken}
        for sample, line in sampled.items()
        if sample not in judged
    ]
    return TrialTable.of_rows(
        [row | {"seed": spec.run_config.seed} for row in rows],
        system=",".join(spec.completion_fns) or document.stem,
        graded=mapping.scorer or "score",
    )


def transcripts(document: Document, mapping: ColumnMap) -> Iterator[Transcript]:
    """What each sample was asked and gave, up to the event that judged it; then the unjudged."""
    by_sample: dict[str, list[Turn]] = {}
    judged: set[str] = set()
    for line, event in document.lines(_Event):
        if event.sample_id is None:
            continue
        data = decode(f"{document.name}, line {line}, field data", bytes(event.data), Any)
        if event.type in _JUDGED:
            judged.add(event.sample_id)
            turns = by_sample.pop(event.sample_id, [])
            correct = data.get("correct") if isinstance(data, dict) else None
            score = float(correct) if isinstance(correct, bool) else None
            check = Check(target=event.type, score=score, message=as_text(data))
            yield Transcript(messages=tuple(turns), checks=(check,))
        else:
            by_sample.setdefault(event.sample_id, []).extend(_turns(event.type, data))
    for sample, turns in by_sample.items():
        if sample not in judged:
            yield Transcript(messages=tuple(turns))


def _turns(kind: str, data: Any) -> tuple[Turn, ...]:
    if kind == "sampling" and isinstance(data, dict):
        sampled = data.get("sampled")
        only = sampled[0] if isinstance(sampled, list) and len(sampled) == 1 else sampled
        return asked_and_answered(data.get("prompt"), only)
    return (Turn(role=kind or "event", text=as_text(data)),)


def _row(document: Document, line: int, event: _Event, scorer: str | None) -> dict[str, Any]:
    where = f"{document.name}, line {line}"
    data = decode(f"{where}, field data", bytes(event.data), dict[str, Any])
    row = {"line": line, "task": event.sample_id, "started": event.created_at}
    if event.type == "match" and scorer is None:
        if not isinstance(data.get("correct"), bool):
            raise ReadError(f"{where}, field data.correct: must be true or false")
        return row | {"outcome": Outcome(data["correct"])}
    scores = {key: v for key, v in data.items() if isinstance(v, (bool, int, float))}
    name = scorer or next(iter(scores), None)
    if name not in scores:
        raise ReadError(f"{where}: no score {short(name or '')}; it has {few(scores) or 'none'}")
    return row | {"outcome": Outcome(scores[name] >= 1), "score": scores[name]}
