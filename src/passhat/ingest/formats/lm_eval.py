"""lm-evaluation-harness sample logs: one line a document and filter.

Repeats sit in `resps`, but only what the filter kept was scored: one trial a document.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from passhat.errors import ReadError
from passhat.ingest.document import Document, decode, wrong_shape
from passhat.ingest.readers import Reading, TrialTable, choose_score, has_keys
from passhat.ingest.transcripts import as_text, asked_and_answered, sibling_bytes
from passhat.messages import few, short, short_value
from passhat.records import Outcome
from passhat.records.columns import ColumnMap
from passhat.records.transcript import Check, Transcript, Turn, as_score

READING = Reading(
    format="lm-evaluation-harness samples",
    versions="samples_*.jsonl of 0.4",
    system="model of the results file beside it",
    task="task/doc_id",
    run="one for each file",
    outcome="a metric of 1 passes",
    score="the first metric, or that of `scorer`",
)

recognises = has_keys("doc_id resps filtered_resps")

_FILE = re.compile(r"samples_(.+?)_(\d{4}-\d\d-\d\dT.+)")


class _Line(msgspec.Struct):
    """What a line must have; each metric's value is a further key, named after the metric."""

    doc_id: int | str
    resps: list[list[Any] | str]
    filtered_resps: Any
    metrics: list[str] = []
    filter: str = "none"


class _Model(msgspec.Struct):
    model_name: str | None = None
    model_source: str | None = None


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """One trial a document, by the first filter and metric unless another is chosen."""
    lines = [(n, _checked(document, n, line)) for n, line in document.lines(dict[str, Any])]
    kept, notes = _chosen_filter(lines)
    metrics = list(dict.fromkeys(name for _, line in kept for name in line.get("metrics", ())))
    metric, more = choose_score(document.name, "metric", metrics, mapping.scorer)
    if metric is None:
        raise ReadError(f"{document.name}: names no metric, so nothing says what passed")
    named = _FILE.fullmatch(document.stem)
    prefix = f"{named[1]}/" if named else ""
    system = _system(document, named[2] if named else None)
    rows = [
        {"line": n, "task": f"{prefix}{line['doc_id']}", **_ending(document, n, line, metric)}
        for n, line in kept
    ]
    answers = [line["resps"][0] for _, line in kept if line["resps"]]
    most = max((len(repeats) for repeats in answers if isinstance(repeats, list)), default=1)
    if most > 1:
        more.append(f"each document was answered {most} times, but the log scores only one of them")
    scores = () if mapping.scorer else metrics
    return TrialTable.of_rows(
        rows, system=system, notes=[*notes, *more], graded=metric, scores=scores
    )


def transcripts(document: Document, mapping: ColumnMap) -> Iterator[Transcript]:
    """The prompt of each document, all answers to it, and the one that the filter kept."""
    chosen = None
    for _, line in document.lines(dict[str, Any]):
        if (named := line.get("filter", "none")) != (chosen := chosen or named):
            continue
        scores = {name: line.get(name) for name in line.get("metrics", ())}
        turns = _asked(line)
        answer = "\n".join(map(as_text, _listed(line.get("filtered_resps"))))
        yield Transcript(
            messages=turns,
            answer="" if [turn.text for turn in turns[1:]] == [answer] else answer,
            checks=tuple(
                Check(target=name, score=as_score(score))
                for name, score in scores.items()
                if isinstance(score, (int, float))
            ),
        )


Lines = list[tuple[int, dict[str, Any]]]


def _checked(document: Document, number: int, line: dict[str, Any]) -> dict[str, Any]:
    """A line that has what it must have, without the prompt, which is most of the file."""
    try:
        msgspec.convert(line, _Line)
    except msgspec.ValidationError as error:
        raise wrong_shape(f"{document.name}, line {number}", error) from error
    return {name: value for name, value in line.items() if name not in ("doc", "arguments")}


def _chosen_filter(lines: Lines) -> tuple[Lines, list[str]]:
    filters = list(dict.fromkeys(line.get("filter", "none") for _, line in lines))
    if len(filters) <= 1:
        return lines, []
    kept = [(n, line) for n, line in lines if line.get("filter", "none") == filters[0]]
    return kept, [f'filter "{filters[0]}" was read; the log also has {few(filters[1:])}']


def _asked(line: Mapping[str, Any]) -> tuple[Turn, ...]:
    """Each request for a document with what was answered, once for each repeat."""
    given = line.get("arguments")
    requests = list(given.values()) if isinstance(given, dict) else _listed(given)
    turns: list[Turn] = []
    for request, answers in zip(
        requests or [line.get("doc")], _listed(line.get("resps")), strict=False
    ):
        asked = request.get("arg_0") if isinstance(request, dict) else request
        turns += asked_and_answered(asked, None)
        turns += [Turn(role="assistant", text=as_text(answer)) for answer in _listed(answers)]
    return tuple(turns)


def _listed(value: Any) -> list[Any]:
    """A list as it is, anything else as the only entry of one."""
    return value if isinstance(value, list) else [] if value is None else [value]


def _system(document: Document, stamp: str | None) -> str:
    """The model's name, which only the results file of the same time has."""
    if document.path is not None and stamp is not None:
        name = f"results_{stamp}.json"
        if (content := sibling_bytes(document, name)) is not None:
            model = decode(
                f"{document.path.parent / name} (read for the model's name)", content, _Model
            )
            return model.model_name or model.model_source or document.stem
    return document.stem


def _ending(
    document: Document, number: int, line: Mapping[str, Any], metric: str
) -> dict[str, Any]:
    value = line.get(metric)
    if value is None:
        return {"outcome": Outcome.ERRORED, "error": f"no {metric}"}
    if not isinstance(value, (bool, int, float)):
        raise ReadError(
            f"{document.name}, line {number}, field {short(metric)}: must be a number, got "
            f"{short_value(value)}; choose another metric with scorer"
        )
    return {"outcome": Outcome(value >= 1), "score": value}
