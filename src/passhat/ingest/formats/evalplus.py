"""EvalPlus results: `*_eval_results.json`, all samples of each problem with two verdicts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import msgspec

from passhat.errors import ReadError
from passhat.ingest.document import Document
from passhat.ingest.readers import Reading, TrialTable, choose_score
from passhat.messages import plural, short
from passhat.records import Outcome
from passhat.records.columns import ColumnMap

READING = Reading(
    format="EvalPlus results",
    versions="*_eval_results.json of 0.1 to 0.3",
    system="file name",
    task="task_id",
    run="order of samples",
    outcome="base_status and plus_status (`scorer='base'`: the first alone)",
    family="data set (HumanEval, Mbpp)",
)

_PASS = "pass"  # noqa: S105 # the tool's word
_OLD = {"success": _PASS}
"""What older versions wrote."""
_SUFFIXES = ("_eval_results", "-eval_results", ".eval_results")


class _Sample(msgspec.Struct):
    base_status: str | None = None
    plus_status: str | None = None


class _OldSamples(msgspec.Struct):
    """All samples of a problem until version 0.2: a status each, and the tests that passed."""

    base: list[tuple[str, Any]]
    plus: list[tuple[str, Any]] | None = None

    def samples(self) -> list[_Sample]:
        """The same as later versions write it."""
        base = [_OLD.get(status, status) for status, _ in self.base]
        plus = [_OLD.get(status, status) for status, _ in self.plus or ()]
        pairs = itertools.zip_longest(base, plus)
        return [_Sample(base_status=first, plus_status=other) for first, other in pairs]


class _Results(msgspec.Struct):
    eval: dict[str, list[_Sample] | _OldSamples]


def recognises(document: Document) -> bool:
    """Whether it has samples by problem, with the status of the base tests."""
    if not document.has("eval", "hash"):
        return False
    start = bytes(document.first["eval"])[:200_000]
    return b'"base_status"' in start or (b'"nfiles"' in start and b'"base"' in start)


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """One trial a sample; it passes if it does the base tests and the additional ones."""
    results = _samples(document)
    choose_score(document.name, "scorer", ("base", "plus"), mapping.scorer)
    plus = any(sample.plus_status for samples in results.values() for sample in samples)
    plus = plus and mapping.scorer != "base"
    passes = "base_status and plus_status are pass" if plus else "base_status is pass"
    return TrialTable.of_rows(
        _rows(results, plus=plus),
        system=_system(document),
        entry="sample",
        read_as={"outcome": passes},
        left_out=() if plus or mapping.scorer != "base" else ("plus_status",),
    )


def _system(document: Document) -> str:
    for suffix in _SUFFIXES:
        if document.stem.endswith(suffix):
            return document.stem.removesuffix(suffix)
    # Beside a folder of samples the file has no name of its own.
    return document.path.resolve().parent.name if document.path else document.stem


def _samples(document: Document) -> dict[str, list[_Sample]]:
    by_task = {}
    for task, old in document.decode(_Results).eval.items():
        if isinstance(old, _OldSamples) and old.plus and len(old.plus) != len(old.base):
            base, plus = plural(len(old.base), "base result"), plural(len(old.plus), "plus result")
            raise ReadError(
                f'{document.name}: problem "{short(task)}" has {base} and {plus}; there must be as '
                "many of both"
            )
        by_task[task] = old.samples() if isinstance(old, _OldSamples) else old
    return by_task


def _rows(results: dict[str, list[_Sample]], *, plus: bool) -> Iterator[Any]:
    for task, samples in results.items():
        family, slash, _ = task.partition("/")
        for number, sample in enumerate(samples):
            passed = sample.base_status == _PASS and (not plus or sample.plus_status == _PASS)
            missing = sample.base_status is None
            yield {
                "task": task,
                "trial": number,
                "family": family if slash else None,
                "outcome": Outcome.ERRORED if missing else Outcome(passed),
                "error": "no status" if missing else None,
            }
