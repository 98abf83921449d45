"""Weave evaluations (Weights & Biases): exported calls of `Evaluation.predict_and_score`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from passhat.errors import ReadError
from passhat.ingest.document import Document
from passhat.ingest.readers import Reading, TrialTable, seconds_between
from passhat.ingest.rows import table_of
from passhat.ingest.scored_rows import ScoredRow, object_in, scored_table
from passhat.records.columns import ColumnMap

READING = Reading(
    format="Weave evaluation",
    versions="JSON and JSON Lines exports of calls",
    system="model",
    task="example (its id, or all of it)",
    run="order of calls",
    outcome="the first score (or `scorer`) of 1 passes",
    score="the same score",
    started="started_at",
)

_COLUMNS = ("op_name", "inputs", "output", "started_at", "ended_at", "exception")
_CALL = "Evaluation.predict_and_score"
_REFERENCE = "weave:///"
"""References: weave:///ENTITY/PROJECT/object/NAME:VERSION, .../attr/rows/id/FINGERPRINT."""


def recognises(document: Document) -> bool:
    """Whether it holds calls of operations, some of which predict and score."""
    return document.has("op_name", "inputs", "output") and _CALL.encode() in document.data


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """One trial a call that predicts and scores; calls on one example are its runs."""
    sheet = table_of(document)
    numbered = zip(sheet.numbers, sheet.rows(*_COLUMNS), strict=True)
    calls = [(number, call) for number, call in numbered if _CALL in str(call["op_name"] or "")]
    if not calls:
        raise ReadError(f"{document.name}: holds no call of {_CALL}; export those of an evaluation")
    other = len(sheet) - len(calls)
    return scored_table(
        document.name,
        [_row(call) for _, call in calls],
        mapping,
        entry="call",
        numbers=[number for number, _ in calls],
        left_out=[f"{other} other calls"] if other else (),
    )


def _row(call: Mapping[str, Any]) -> ScoredRow:
    inputs, output = object_in(call["inputs"]), object_in(call["output"])
    start, end = call["started_at"], call["ended_at"]
    latency = output.get("model_latency")
    return ScoredRow(
        task=_task(inputs.get("example")),
        system=_model(inputs.get("model")),
        scores=dict(_scores(object_in(output.get("scores")))),
        error=call["exception"],
        more={
            "seconds": seconds_between(start, end) if latency is None else latency,
            "started": start if isinstance(start, str) and start else None,
        },
    )


def _task(example: Any) -> Any:
    """An example's id; if it is a reference to a row of a data set, the row's fingerprint."""
    if isinstance(example, Mapping):
        return next((example[key] for key in ("id", "task", "name") if example.get(key)), example)
    if isinstance(example, str) and example.startswith(_REFERENCE):
        return example.rpartition("/")[2]
    return example


def _model(model: Any) -> str | None:
    if isinstance(model, Mapping):
        model = model.get("name") or model.get("model")
    if not isinstance(model, str) or not model:
        return None
    return model.rpartition("/")[2].partition(":")[0] or model


def _scores(
    scores: Mapping[str, Any], above: str = "", depth: int = 1
) -> Iterator[tuple[str, Any]]:
    """Scores by name; parts of one as `scorer.part`."""
    for name, value in scores.items():
        if isinstance(value, Mapping) and depth < 3:
            yield from _scores(value, f"{above}{name}.", depth + 1)
        elif isinstance(value, (bool, int, float)):
            yield f"{above}{name}", value
