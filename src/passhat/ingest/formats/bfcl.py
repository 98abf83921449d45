"""Berkeley Function Calling Leaderboard: a score file beside the result file it was made from.

A score file begins with the accuracy and lists only the failures; what passed is in the file of
results in result/MODEL, beside score/MODEL.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from passhat.errors import ReadError
from passhat.ingest.document import Document, decode, read_file
from passhat.ingest.readers import RUN_WORDS, Reading, TrialTable, first_line
from passhat.messages import plural, short_path
from passhat.records import Outcome
from passhat.records.columns import ColumnMap

READING = Reading(
    format="BFCL scores and results",
    versions="v1 to v4: score/MODEL/*_score.json with result/MODEL/*_result.json",
    system="folder of the model",
    task="id",
    run="one for each file",
    outcome="failed where the score file lists it",
    family="category in the file's name",
)

_OLD_RESULT = "gorilla_openfunctions_v1_test_"
"""How the files of answers begin in the first version: its score files have the category alone."""


class _Line(msgspec.Struct):
    """The first line of a score file has no id, all others have one.

    In the first version the id is the place of the answer, counted from 1.
    """

    id: str | int | None = None
    error: Any = None
    error_type: str | None = None
    correct_count: int | None = None
    total_count: int | None = None


class _Answer(msgspec.Struct):
    id: str | int | None = None
    idx: int | None = None  # of the first version, counted from 0
    latency: Any = None
    input_token_count: Any = None
    output_token_count: Any = None


# Folders of runs: run-3, 0004, 2026-11-16T00-12-00; v0.11.0 and 2026-11-16-fixed say what was run.
_RUN_FOLDER = re.compile(rf"(?:{RUN_WORDS})?[ _-]?\d{{1,6}}|[\dTZ:_.-]+", re.IGNORECASE)


def recognises(document: Document) -> bool:
    """Whether it begins with an accuracy and counts, or holds answers that get scored."""
    if not _is_answers(document):
        return document.has("accuracy", "correct_count", "total_count")
    scores = _partner(document, "result", "score")
    # What a model is asked to remember before the questions (`_prereq`) is never scored.
    scored = (scores is not None and scores.is_file()) or document.stem.endswith("_prereq_result")
    if not scored:
        raise ReadError(
            f"{document.name}: holds answers to BFCL without verdicts; run `bfcl evaluate` and "
            "give the folder that holds both result and score"
        )
    return True


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """One trial an entry: failed where the score file lists it, passed where only answers do."""
    if _is_answers(document):
        return TrialTable(columns={})  # the file of scores beside it is read with it
    head, *lines = [line for _, line in document.lines(_Line)]
    answers = _answers(document)
    category = _category(document)
    tasks = [_task(category, place, answer) for place, answer in enumerate(answers)]
    failures = {_failed_task(tasks, line): line for line in lines}
    _check_counts(document, head, tasks, failures)
    rows = []
    for task, answer in zip(tasks, answers, strict=True):
        failure = failures.get(task)
        rows.append(
            {
                "task": task,
                "family": category,
                "outcome": Outcome(failure is None),
                "error": None if failure is None else first_line(failure.error_type),
                "seconds": _plain(answer.latency),
                "tokens_in": _plain(answer.input_token_count),
                "tokens_out": _plain(answer.output_token_count),
            }
        )
    return TrialTable.of_rows(rows, system=_model(document), submission=_evaluation(document))


def _is_answers(document: Document) -> bool:
    return (document.has("id", "result") or document.has("idx", "result")) and (
        document.has("latency") or document.stem.endswith("_result")
    )


def _check_counts(
    document: Document, head: _Line, tasks: Sequence[str], failures: Mapping[str | None, _Line]
) -> None:
    """Refuse results that these scores were not made from: what is not listed would pass."""
    total, correct = head.total_count, head.correct_count
    if total is not None and len(tasks) != total:
        raise ReadError(
            f"{document.name}: is about {plural(total, 'entry', 'entries')}, but the results "
            f"beside it hold {len(tasks):,}; give the results that it was made from"
        )
    known = set(tasks)
    failed = sum(task in known for task in failures)
    if len(failures) != failed:
        raise ReadError(
            f"{document.name}: lists failures that the results beside it have no answer to; give "
            "the results that it was made from"
        )
    if total is not None and correct is not None and total - correct != failed:
        raise ReadError(
            f"{document.name}: says that {correct:,} of {total:,} entries are correct, but lists "
            f"{plural(failed, 'failure')}; evaluate the results again"
        )


def _answers(document: Document) -> list[_Answer]:
    path = _partner(document, "score", "result")
    if path is None or not path.is_file():
        looked = f" (looked for {short_path(path)})" if path else ""
        raise ReadError(
            f"{document.name}: lists the failures of BFCL alone; what passed is in the results "
            f"that it was made from{looked}: keep the folders score and result side by side"
        )
    lines = [line for line in read_file(path, document.limits).split(b"\n") if line.strip()]
    return [decode(f"{path}, line {n}", line, _Answer) for n, line in enumerate(lines, start=1)]


def _partner(document: Document, own: str, other: str) -> Path | None:
    """The file of the same category in the folder beside: score/M/x_score, result/M/x_result."""
    if document.path is None:
        return None
    *folders, name = document.path.absolute().parts
    place = _place(folders, own)
    if place is None or f"_{own}" not in name:
        return None
    folders[place] = folders[place].replace(own, other, 1)
    name = name.replace(f"_{own}", f"_{other}")
    folder = Path(*folders)
    old = _OLD_RESULT + name if other == "result" else name.removeprefix(_OLD_RESULT)
    return folder / (old if (folder / old).is_file() else name)


def _place(folders: Sequence[str], kind: str) -> int | None:
    """Where the innermost folder `score` is, or `score-BFCL` of the first version."""
    places = [i for i, name in enumerate(folders) if name.partition("-")[0] == kind]
    return places[-1] if places else None


def _model(document: Document) -> str:
    """The folder below `score`: only failures name the model, and not all in the same way."""
    parts = document.path.absolute().parts if document.path else ()
    place = _place(parts[:-2], "score")
    return document.stem if place is None else parts[place + 1]


def _evaluation(document: Document) -> str | None:
    """The folder that holds `score`, unless it is called like a run.

    Such folders are several configurations, not runs of one.
    """
    parts = document.path.absolute().parts[:-1] if document.path else ()
    place = _place(parts, "score")
    if not place or _RUN_FOLDER.fullmatch(parts[place - 1]):
        return None
    return str(Path(*parts[:place]))


def _category(document: Document) -> str:
    """`simple` of `BFCL_v3_simple_score.json`, and of `simple_score.json`."""
    stem = document.stem.removesuffix("_score")
    parts = stem.split("_", 2)
    return parts[2] if len(parts) == 3 and parts[0] == "BFCL" else stem


def _task(category: str, place: int, answer: _Answer) -> str:
    """The id of an answer; the first version has numbers, which are the same in every category."""
    if isinstance(answer.id, str):
        return answer.id
    number = answer.idx if answer.id is None else answer.id
    return f"{category}_{place if number is None else number}"


def _failed_task(tasks: Sequence[str], line: _Line) -> str | None:
    if isinstance(line.id, int):
        return tasks[line.id - 1] if 0 < line.id <= len(tasks) else None
    return line.id


def _plain(value: Any) -> float | None:
    """A number; entries of several turns have lists of lists, which are added up."""
    if isinstance(value, list):
        parts = [_plain(turn) for turn in value]
        return sum(part for part in parts if part is not None) if any(parts) else None
    usable = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if usable and 0 <= value < 1e100 else None
