"""EvalPlus results: `*_eval_results.json`, all samples of each problem with two verdicts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from passhat.errors import ReadError
from passhat.ingest.document import Document
from passhat.ingest.reader import Reader, Reading, TrialTable
from passhat.records import Outcome
from passhat.records.column_names import ColumnMap
from passhat.short_names import short

_PASS = "pass"  # noqa: S105 # the tool's word
_SUFFIXES = ("_eval_results", "-eval_results", ".eval_results")


class _Sample(msgspec.Struct):
    base_status: str | None = None
    plus_status: str | None = None


class _Results(msgspec.Struct):
    eval: dict[str, list[_Sample]]


def recognises(document: Document) -> bool:
    """Whether it has samples by problem, with the status of the base tests."""
    return (
        document.kind == "json"
        and document.has("eval", "hash")
        and b'"base_status"' in bytes(document.first["eval"])[:200_000]
    )


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """One trial a sample; it passes if it does the base tests and the additional ones."""
    results = document.decode(_Results).eval
    if mapping.scorer not in (None, "base", "plus"):
        asked = short(mapping.scorer or "")
        raise ReadError(f'{document.name}: has no scorer "{asked}"; it has base, plus')
    plus = any(one.plus_status for samples in results.values() for one in samples)
    plus = plus and mapping.scorer != "base"
    told = "base_status and plus_status are pass" if plus else "base_status is pass"
    return TrialTable.of_rows(
        _rows(_system(document), results, plus=plus),
        entry="sample",
        read_as={"outcome": told},
        left_out=() if plus or mapping.scorer != "base" else ("plus_status",),
    )


READER = Reader(
    name="evalplus",
    recognises=recognises,
    read=read,
    reading=Reading(
        format="EvalPlus results",
        versions="*_eval_results.json of 0.2 and 0.3",
        system="file name",
        task="task_id",
        run="order of samples",
        outcome="base_status and plus_status (--scorer base: the first alone)",
        family="data set (HumanEval, Mbpp)",
    ),
)


def _system(document: Document) -> str:
    for suffix in _SUFFIXES:
        if document.stem.endswith(suffix):
            return document.stem.removesuffix(suffix)
    # Beside a folder of samples the file has no name of its own.
    return document.path.resolve().parent.name if document.path else document.stem


def _rows(system: str, results: dict[str, list[_Sample]], *, plus: bool) -> Iterator[Any]:
    for task, samples in results.items():
        family, slash, _ = task.partition("/")
        for number, sample in enumerate(samples):
            passed = sample.base_status == _PASS and (not plus or sample.plus_status == _PASS)
            missing = sample.base_status is None
            yield {
                "system": system,
                "task": task,
                "trial": number,
                "family": family if slash else None,
                "outcome": Outcome.ERRORED if missing else Outcome(passed),
                "error": "no status" if missing else None,
            }
