"""HELM results: `per_instance_stats.json`, the metrics of each instance of a run."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import msgspec

from passhat.errors import ReadError
from passhat.ingest.document import Document
from passhat.ingest.readers import Reading, TrialTable, has_keys
from passhat.ingest.scored_rows import ScoredRow, scored_table
from passhat.messages import few
from passhat.records.columns import ColumnMap

_MODEL = re.compile(r"(?:^|[,:])model=([^,]+)")
_DECIDING = (
    *("final_number_exact_match", "math_equiv_chain_of_thought", "math_equiv"),
    *("chain_of_thought_correctness", "ifeval_strict_accuracy", "omni_math_accuracy", "pass"),
    *("exact_match", "quasi_exact_match", "prefix_exact_match", "quasi_prefix_exact_match"),
)
"""The metrics that say whether an answer is right: those of one scenario, then the strictest."""
_BOOKKEEPING = re.compile(
    r"num_.*|finish_reason_.*|training_.*|inference_.*|batch_size|prompt_truncated|max_prob|"
    r"logprob|perplexity|bits_per_byte|estimated_.*"
)
"""What HELM counts of every request, right or wrong: `num_references` is often 1."""
_FILES = ("run_spec.json", "scenario.json", "scenario_state.json", "stats.json")

READING = Reading(
    format="HELM per-instance statistics",
    versions="per_instance_stats.json",
    system="model= of the run's folder, or file name",
    task="scenario/instance_id",
    run="train_trial_index",
    outcome="the metric for right answers (exact_match, ...; or `scorer`) of 1 passes",
    score="the same metric",
    family="scenario",
    companions=_FILES,
)

recognises = has_keys("instance_id train_trial_index stats")


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
            scores={
                stat.name.name: stat.sum if stat.mean is None else stat.mean
                for stat in instance.stats
                if stat.count and not _BOOKKEEPING.fullmatch(stat.name.name)
            },
            more={"family": scenario or None},
        )
        for instance in document.decode(list[_Instance])
    ]
    _check_decided(document, rows, mapping)
    return scored_table(document.name, rows, mapping, entry="instance", default=_deciding)


def _task(scenario: str, instance: _Instance) -> Iterator[str]:
    if scenario:
        yield scenario
    yield instance.instance_id
    if isinstance(instance.perturbation, dict):
        yield str(instance.perturbation.get("name", "perturbed"))


def _check_decided(document: Document, rows: Sequence[ScoredRow], mapping: ColumnMap) -> None:
    """Refuse several metrics of which none is known to say whether an answer is right."""
    metrics = list(dict.fromkeys(metric for row in rows for metric in row.scores))
    known = any(metric in _DECIDING for metric in metrics)
    if len(metrics) > 1 and not known and not mapping.scorer and not mapping.score:
        raise ReadError(
            f"{document.name}: has several metrics ({few(metrics)}), and none is known to say "
            "whether an answer is right; choose one with `scorer`, and what passes with "
            "`pass_if='score>=...'`"
        )


def _deciding(metrics: Collection[str]) -> str:
    return next((name for name in _DECIDING if name in metrics), next(iter(metrics)))
