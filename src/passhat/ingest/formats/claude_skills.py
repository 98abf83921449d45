"""The benchmark.json of Claude's skill creator: runs of each eval with and without the skill."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from passhat.errors import ReadError
from passhat.ingest.document import Document
from passhat.ingest.readers import Reading, TrialTable
from passhat.records import Outcome
from passhat.records.columns import ColumnMap
from passhat.records.transcript import Check, Transcript

READING = Reading(
    format="benchmark.json of Claude's skill creator",
    system="configuration (with_skill, without_skill)",
    task="eval_name, or eval_id",
    run="run_number, or order of runs",
    outcome="all expectations hold: a pass_rate of 1",
    score="pass_rate",
    started="metadata.timestamp",
)


class _Result(msgspec.Struct):
    pass_rate: float | None = None
    passed: int | None = None
    total: int | None = None
    time_seconds: float | None = None
    tokens: float | None = None
    tool_calls: float | None = None


class _Expectation(msgspec.Struct):
    text: str = ""
    passed: bool | None = None
    evidence: Any = None


class _Run(msgspec.Struct):
    eval_id: int | str
    configuration: str
    eval_name: str | None = None
    run_number: int | None = None
    result: _Result = msgspec.field(default_factory=_Result)
    expectations: list[_Expectation] = []


class _Metadata(msgspec.Struct):
    timestamp: str | None = None


class _Benchmark(msgspec.Struct):
    runs: list[_Run]
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


def recognises(document: Document) -> bool:
    """Whether the first run has a configuration and a result."""
    if not document.has("runs", "run_summary"):
        return False
    first = next(document.entries(dict[str, msgspec.Raw], "runs"), {})
    return {"eval_id", "configuration", "result"} <= first.keys()


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """One trial a run; it passed when every expectation holds."""
    benchmark = document.decode(_Benchmark)
    numbered = all(run.run_number is not None for run in benchmark.runs)
    rows = []
    for place, run in enumerate(benchmark.runs):
        share = _share(f"{document.name}, run {place}", run)
        rows.append(
            {
                "system": run.configuration,
                "task": run.eval_name or str(run.eval_id),
                **({"trial": run.run_number} if numbered else {}),
                "outcome": Outcome(share >= 1),
                "score": share,
                "seconds": run.result.time_seconds,
                "tokens": run.result.tokens,
                "tool_calls": run.result.tool_calls,
                "started": benchmark.metadata.timestamp,
            }
        )
    return TrialTable.of_rows(rows, entry="run")


def transcripts(document: Document, mapping: ColumnMap) -> Iterator[Transcript]:
    """What each expectation asked for, and what was found."""
    for run in document.decode(_Benchmark).runs:
        yield Transcript(
            checks=tuple(
                Check(
                    target=expectation.text,
                    score=None if expectation.passed is None else float(expectation.passed),
                    message=expectation.evidence if isinstance(expectation.evidence, str) else "",
                )
                for expectation in run.expectations
            )
        )


def _share(where: str, run: _Run) -> float:
    """The share of the expectations that hold."""
    result = run.result
    held = [check.passed for check in run.expectations if check.passed is not None]
    if result.pass_rate is not None:
        return result.pass_rate
    if result.total and result.passed is not None:
        return result.passed / result.total
    if held:
        return sum(held) / len(held)
    raise ReadError(f'{where}: says in no way whether it passed; it needs a "pass_rate"')
