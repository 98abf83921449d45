"""Berkeley Function Calling Leaderboard: a score file beside the result file it was made from.

A score file begins with the accuracy and lists only the failures; what passed is in the file of
results that lies in result/MODEL beside score/MODEL.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from passhat.errors import ReadError
from passhat.ingest.document import Document, decode
from passhat.ingest.reader import Reader, Reading, TrialTable, first_line
from passhat.messages import plural
from passhat.records import Outcome
from passhat.records.column_names import ColumnMap
from passhat.short_names import short_path


class _Line(msgspec.Struct):
    """The first line of a score file has no id, all others have one."""

    id: str | None = None
    model_name: str | None = None
    error: Any = None
    error_type: str | None = None
    correct_count: int | None = None
    total_count: int | None = None


class _Answer(msgspec.Struct):
    id: str
    latency: Any = None
    input_token_count: Any = None
    output_token_count: Any = None


def recognises(document: Document) -> bool:
    """Whether it begins with an accuracy and counts, or holds answers that are to be scored."""
    if document.kind not in ("lines", "json"):
        return False
    return document.has("accuracy", "correct_count", "total_count") or _is_answers(document)


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """One trial an entry: failed where the score file lists it, passed where only answers do."""
    if _is_answers(document):
        return _answers_alone(document)
    lines = [line for _, line in document.lines(_Line)]
    failures = {line.id: line for line in lines if line.id is not None}
    answers = _answers(document)
    head = lines[0]
    if head.total_count is not None and len(answers) != head.total_count:
        raise ReadError(
            f"{document.name}: is about {plural(head.total_count, 'entry', 'entries')}, but the "
            f"results beside it hold {len(answers):,}; give the results that it was made from"
        )
    system = _model(document, failures)
    category = _category(document)
    rows = [_row(system, category, answer, failures.get(answer.id)) for answer in answers]
    return TrialTable.of_rows(rows, entry="entry")


READER = Reader(
    name="bfcl",
    recognises=recognises,
    read=read,
    reading=Reading(
        format="BFCL scores and results",
        versions="v3 and v4: score/MODEL/*_score.json with result/MODEL/*_result.json",
        system="folder of the model",
        task="id",
        run="one for each file",
        outcome="failed where the score file lists it",
        family="category in the file's name",
    ),
)


def _is_answers(document: Document) -> bool:
    return document.has("id", "result") and (
        document.has("latency") or document.stem.endswith("_result")
    )


def _answers_alone(document: Document) -> TrialTable:
    """Nothing, where the scores of these answers lie beside them; else a fault."""
    path = _partner(document, "result", "score")
    if path is not None and path.is_file():
        return TrialTable(columns={})
    raise ReadError(
        f"{document.name}: holds answers to BFCL without verdicts; run `bfcl evaluate` and give "
        "the folder that holds both result and score"
    )


def _answers(document: Document) -> list[_Answer]:
    path = _partner(document, "score", "result")
    if path is None or not path.is_file():
        looked = f" (looked for {short_path(path)})" if path else ""
        raise ReadError(
            f"{document.name}: lists the failures of BFCL alone; what passed is in the results "
            f"that it was made from{looked}: keep the folders score and result side by side"
        )
    document.limits.check_size(str(path), path.stat().st_size)
    lines = [line for line in path.read_bytes().split(b"\n") if line.strip()]
    return [decode(f"{path}, line {n}", line, _Answer) for n, line in enumerate(lines, start=1)]


def _partner(document: Document, own: str, other: str) -> Path | None:
    """The file of the same category in the folder beside: score/M/x_score, result/M/x_result."""
    if document.path is None:
        return None
    parts = list(document.path.absolute().parts)
    places = [place for place, part in enumerate(parts[:-1]) if part == own]
    if not places or f"_{own}" not in parts[-1]:
        return None
    parts[places[-1]] = other
    parts[-1] = parts[-1].replace(f"_{own}", f"_{other}")
    return Path(*parts)


def _model(document: Document, failures: dict[str, _Line]) -> str:
    named = next((line.model_name for line in failures.values() if line.model_name), None)
    if document.path is None:
        return named or document.stem
    parts = document.path.absolute().parts
    place = max((i for i, part in enumerate(parts[:-2]) if part == "score"), default=None)
    return named or (parts[place + 1] if place is not None else document.stem)


def _category(document: Document) -> str | None:
    """`simple` of `BFCL_v3_simple_score.json`."""
    parts = document.stem.removesuffix("_score").split("_", 2)
    return parts[2] if len(parts) == 3 and parts[0] == "BFCL" else None


def _row(
    system: str, category: str | None, answer: _Answer, failure: _Line | None
) -> dict[str, Any]:
    return {
        "system": system,
        "task": answer.id,
        "family": category,
        "outcome": Outcome(failure is None),
        "error": None if failure is None else first_line(failure.error_type),
        "seconds": _plain(answer.latency),
        "tokens_in": _plain(answer.input_token_count),
        "tokens_out": _plain(answer.output_token_count),
    }


def _plain(value: Any) -> float | None:
    """A number; entries of several turns have lists of lists, which are added up."""
    if isinstance(value, list):
        parts = [_plain(one) for one in value]
        return sum(part for part in parts if part is not None) if any(parts) else None
    usable = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if usable and 0 <= value < 1e100 else None
