"""LiveCodeBench results: `*_eval_all.json`, with the grades of all answers to each question."""

from __future__ import annotations

import re

import msgspec

from passhat.ingest.document import Document
from passhat.ingest.readers import Reading, TrialTable, has_keys
from passhat.records import Outcome
from passhat.records.columns import ColumnMap

READING = Reading(
    format="LiveCodeBench results",
    versions="*_eval_all.json",
    system="folder of the model (scenario and temperature unless usual), or file name",
    task="question_id",
    run="place in graded_list",
    outcome="graded_list",
    family="platform",
)

recognises = has_keys("question_id graded_list")

_SETTINGS = re.compile(r"Scenario\.([a-z]+)_\d+_([\d.]+)_eval_all")
_USUAL = {"codegeneration": "", "0.2": ""}
"""The scenario and the temperature that LiveCodeBench uses unless others are chosen."""


class _Question(msgspec.Struct):
    question_id: str | int
    graded_list: list[bool]
    platform: str | None = None
    difficulty: str | None = None


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """One trial an answer, numbered by its place in the list."""
    rows = [
        {
            "task": question.question_id,
            "trial": number,
            "outcome": Outcome(grade),
            "family": question.platform,
            "level": question.difficulty,
        }
        for question in document.decode(list[_Question])
        for number, grade in enumerate(question.graded_list)
    ]
    return TrialTable.of_rows(rows, system=_system(document), entry="answer")


def _system(document: Document) -> str:
    """The folder output/MODEL, if the file is called by scenario and settings alone.

    One model's answers to another scenario, or at another temperature, are another system's.
    """
    if document.path is None or not document.path.name.startswith("Scenario."):
        return document.stem.removesuffix("_eval_all")
    model = document.path.resolve().parent.name
    named = _SETTINGS.fullmatch(document.stem)
    scenario, temperature = named.groups() if named else ("", "")
    warm = f"temperature {temperature}" if _USUAL.get(temperature, temperature) else ""
    settings = [word for word in (_USUAL.get(scenario, scenario), warm) if word]
    return f"{model} ({', '.join(settings)})" if settings else model
