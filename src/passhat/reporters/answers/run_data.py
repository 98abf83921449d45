"""A run as JSON: schema "passhat.run/1"."""

from __future__ import annotations

from typing import Literal, TypedDict

from passhat.analysis.gates.gate import Word
from passhat.analysis.gates.run_answer import Failure, Recovery, RunAnswer, SelectionFloor
from passhat.reporters.answers.report_data import report_object
from passhat.reporters.answers.report_schema import ReportObject
from passhat.reporters.answers.verdicts import VerdictObject, verdict_object
from passhat.reporters.data import IntervalObject, plain, shaped

SCHEMA: Literal["passhat.run/1"] = "passhat.run/1"


class FloorObject(TypedDict):
    """Whether an agent's runs keep to the floor under tool selection."""

    verdict: str
    task: str
    tool: str
    selected: int
    runs: int
    rate: float
    interval: IntervalObject | None
    bound: float
    max_tokens: int | None
    line: str


class RunObject(TypedDict):
    """What a run says when it is over: report, verdicts, why trials did not pass."""

    schema: Literal["passhat.run/1"]
    verdict: Word | None
    verdicts: list[VerdictObject]
    floors: list[FloorObject]
    failures: list[Failure]
    recovery: list[Recovery]
    undone: str | None
    report: ReportObject


def run_object(answer: RunAnswer) -> RunObject:
    """The report and the verdicts: schema "passhat.run/1"."""
    return {
        "schema": SCHEMA,
        "verdict": None if answer.verdicts is None else answer.verdicts.word,
        "verdicts": [verdict_object(verdict) for verdict in answer.judged],
        "floors": [_floor_object(floor) for floor in answer.floors],
        "failures": plain(answer.failures),
        "recovery": plain(answer.recoveries),
        "undone": answer.undone,
        "report": report_object(answer.report),
    }


def _floor_object(floor: SelectionFloor) -> FloorObject:
    return shaped(
        floor, FloorObject, verdict=floor.word, task=floor.label, tool=floor.demand.expected_tool
    )
