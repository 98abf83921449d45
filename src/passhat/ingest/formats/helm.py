"""HELM results: `per_instance_stats.json`, the metrics of each instance of a run."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any

import msgspec

from passhat.ingest.document import Document
from passhat.ingest.reader import Reader, Reading, TrialTable
from passhat.ingest.scored_rows import ScoredRow, scored_table
from passhat.records.column_names import ColumnMap

_MODEL = re.compile(r"(?:^|[,:])model=([^,]+)")
_DECIDING = ("exact_match", "quasi_exact_match", "prefix_exact_match", "math_equiv", "pass")
"""The metrics that say whether an answer is right, the strictest first."""


class _Name(msgspec.Struct):
    name: str
    split: str | None = None


class _Stat(msgspec.Struct):
    name: _Name
    count: float = 0
    sum: float | None = None
    mean: float | None = None


class _Instance(msgspec.Struct):
    instance_id: str
    stats: list[_Stat]
    train_trial_index: int = 0
    perturbation: Any = None


def recognises(document: Document) -> bool:
    """Whether each instance has an index of its training trial and statistics."""
    return document.kind == "array" and document.has("instance_id", "train_trial_index", "stats")


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """One trial an instance and training trial; perturbed copies are tasks of their own."""
    run = document.path.resolve().parent.name if document.path else document.stem
    named = _MODEL.search(run)
    scenario = _MODEL.sub("", run).strip(",:") if named else ""
    rows = [
        ScoredRow(
            task="/".join(_task(scenario, instance)),
            system=named[1] if named else None,
            trial=instance.train_trial_index,
            scores={stat.name.name: _value(stat) for stat in instance.stats if stat.count},
            more={"family": scenario or None},
        )
        for instance in document.decode(list[_Instance])
    ]
    return scored_table(document.name, rows, mapping, entry="instance", default=_deciding)


READER = Reader(
    name="helm",
    recognises=recognises,
    read=read,
    reading=Reading(
        format="HELM per-instance statistics",
        versions="per_instance_stats.json",
        system="model= of the run's folder, or file name",
        task="scenario/instance_id",
        run="train_trial_index",
        outcome="exact_match (or `scorer`) of 1 passes",
        score="the same metric",
        family="scenario",
    ),
)


def _task(scenario: str, instance: _Instance) -> Iterator[str]:
    if scenario:
        yield scenario
    yield instance.instance_id
    if isinstance(instance.perturbation, dict):
        yield str(instance.perturbation.get("name", "perturbed"))


def _value(stat: _Stat) -> float | None:
    return stat.mean if stat.mean is not None else stat.sum


def _deciding(metrics: Collection[str]) -> str:
    return next((name for name in _DECIDING if name in metrics), next(iter(metrics)))
