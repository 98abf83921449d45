"""Results of the Holistic Agent Leaderboard (HAL): `*_UPLOAD.json`, one run of a benchmark."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from passhat.errors import ReadError
from passhat.ingest.document import Document
from passhat.ingest.readers import Reading, TrialTable, first_line, has_keys
from passhat.messages import few, plural, short
from passhat.records import Outcome
from passhat.records.columns import ColumnMap
from passhat.records.trial import SEVERITIES, constraint_tag, path_of

READING = Reading(
    format="HAL upload",
    versions="*_UPLOAD.json",
    system="config.agent_name, or file name",
    task="task id",
    run="one for each file",
    outcome="successful_tasks and failed_tasks, or raw_eval_results",
    score="reward or score of a task",
    factor="phase of the run (fault, structural, prompt)",
)

Ending = Mapping[str, Any]
"""How a task ended: its outcome, and its score or error if there is one."""

recognises = has_keys("results raw_eval_results config")

_VERDICTS = ("success", "resolved", "correct", "passed", "is_correct", "solved")
_SCORES = ("reward", "score", "success_rate", "accuracy")
_NESTED = "eval_result"
"""ScienceAgentBench keeps the result of each task one level further down."""


_PHASE = re.compile(
    r"_(?:baseline|fault|struct\w*|prompt\w*)(?:_(?:mild|medium|strong|naturalistic))?_r\d+",
    re.IGNORECASE,
)
"""What HAL's reliability evaluation adds to the name of a run: its phase, and its number."""

_STRENGTH = re.compile(r"prompt\w*?_(mild|medium|strong|naturalistic)", re.IGNORECASE)


_WORDING = "wording="


class _Config(msgspec.Struct):
    agent_name: str | None = None
    benchmark_name: str | None = None
    prompt_sensitivity: Any = None


class _Metadata(msgspec.Struct):
    agent_args: dict[str, Any] = {}
    prompt_sensitivity: Any = None


class _Summary(msgspec.Struct):
    successful_tasks: list[str | int] = []
    passed_tasks: list[str | int] = []  # of ReplicatorBench
    failed_tasks: list[str | int] = []
    latencies: dict[str, Any] = {}
    costs: dict[str, Any] = {}


class _Upload(msgspec.Struct):
    config: _Config = msgspec.field(default_factory=_Config)
    results: _Summary = msgspec.field(default_factory=_Summary)
    raw_eval_results: Any = None
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """One trial a task: by the lists of what succeeded and failed, else by each task's result."""
    upload = document.decode(_Upload)
    summary = upload.results
    name = document.stem.removesuffix("_UPLOAD")
    system = upload.config.agent_name or _PHASE.sub("", name)
    at = _condition(upload, name)
    if listed := _listed(summary):
        endings = _never_finished(upload.raw_eval_results) | listed
        outcome_from = "successful_tasks and failed_tasks"
        asked = {str(task) for task in summary.latencies}
    else:
        raw = upload.raw_eval_results if isinstance(upload.raw_eval_results, Mapping) else {}
        nested = raw.get(_NESTED)
        by_task = nested if isinstance(nested, Mapping) else raw
        results = {str(task): value for task, value in by_task.items()}
        endings = dict(_endings(results, at))
        outcome_from = "raw_eval_results of each task"
        reworded = at.startswith(_WORDING)
        asked = {t for t, value in results.items() if not (reworded and isinstance(value, list))}
    if not endings:
        raise ReadError(
            f"{document.name}: is a HAL upload that does not say which tasks succeeded: "
            f"{short(upload.config.benchmark_name or 'its benchmark')} has no verdict for each task"
        )
    rows = [
        {
            "task": task,
            "seconds": _number(summary.latencies.get(task)),
            "cost": _number(summary.costs.get(task)),
            **(_under(task, at) if at else {}),
            **ending,
        }
        for task, ending in endings.items()
    ]
    lost = sorted(asked - set(endings))
    ran = plural(len(lost), "task that ran has", "tasks that ran have")
    notes = [f"{ran} no verdict, left out: {few(lost, 3)}"] if lost else []
    facts = {"outcome": outcome_from}
    return TrialTable.of_rows(rows, system=system, notes=notes, entry="task", read_as=facts)


def _condition(upload: _Upload, name: str) -> str:
    """The condition of a phase of HAL's reliability evaluation; empty for its baseline."""
    args, lower = upload.metadata.agent_args, name.lower()
    if args.get("enable_fault_injection") == "true" or "_fault" in lower:
        return "fault=injected"
    if args.get("enable_structural_perturbations") == "true" or "_struct" in lower:
        return "environment=perturbed"
    if upload.config.prompt_sensitivity or upload.metadata.prompt_sensitivity or "_prompt" in lower:
        strength = _STRENGTH.search(name)
        return f"{_WORDING}{strength[1].lower() if strength else 'reworded'}"
    return ""


def _endings(results: Mapping[str, Any], at: str) -> Iterator[tuple[str, Ending]]:
    """How each task ended: once, or once for each wording of its prompt, in the phase of them."""
    for task, value in results.items():
        if not (isinstance(value, list) and at.startswith(_WORDING)):
            if ending := _ending(value):
                yield task, ending
            continue
        for number, entry in enumerate(value, 1):
            if ending := _ending(entry):
                under = _under(task, f"{at} {number}")
                yield under["task"], {**ending, **under}


def _under(task: str, at: str) -> dict[str, Any]:
    """The task under a condition, as a task of its own."""
    return {"task": f"{task} [{at}]", "base": task, "at": (at,)}


def _listed(summary: _Summary) -> dict[str, Ending]:
    passed = (*summary.successful_tasks, *summary.passed_tasks)
    lists = ((summary.failed_tasks, Outcome.FAILED), (passed, Outcome.PASSED))
    return {str(task): {"outcome": outcome} for tasks, outcome in lists for task in tasks}


def _never_finished(raw: Any) -> dict[str, Ending]:
    """What a SWE-bench run submitted as an empty patch: it is in neither of HAL's lists."""
    empty = raw.get("empty_patch_ids") if isinstance(raw, Mapping) else None
    ending = {"outcome": Outcome.FAILED, "error": "empty patch"}
    return {str(task): ending for task in empty} if isinstance(empty, list) else {}


def _ending(value: Any) -> Ending | None:
    """The result of one task: an object, a verdict or a number."""
    if isinstance(value, bool):
        return {"outcome": Outcome(value)}
    if (score := _number(value)) is not None:
        return {"outcome": Outcome(score >= 1), "score": score}
    if isinstance(value, str):  # why the agent broke, in place of an evaluation
        return {"outcome": Outcome.FAILED, "error": first_line(value)}
    if not isinstance(value, Mapping):
        return None
    stated = _number(value.get("confidence"))
    details: dict[str, Any] = {}
    if stated is not None and 0 <= stated <= 1:
        details["stated_confidence"] = stated
    if isinstance(actions := value.get("action_names"), list) and actions:
        details |= {"tools": path_of([str(entry) for entry in actions]), "tool_calls": len(actions)}
    if isinstance(safety := value.get("llm_safety"), Mapping) and safety.get("analyzed"):
        listed = safety.get("compliance_violations")
        broken = listed if isinstance(listed, list) else []
        words = [str(entry.get("severity")) for entry in broken if isinstance(entry, Mapping)]
        # As HAL does: a word that it does not know counts as medium.
        graves = [word if word in SEVERITIES else "medium" for word in words]
        details["tags"] = (constraint_tag(graves),)
    for name in _VERDICTS:
        if isinstance(value.get(name), bool):
            return {"outcome": Outcome(value[name]), **details}
    for name in _SCORES:
        if (score := _number(value.get(name))) is not None:
            return {"outcome": Outcome(score >= 1), "score": score, **details}
    return None


def _number(value: Any) -> float | None:
    """A number, also of an object that has a total: latencies are written in both ways."""
    if isinstance(value, Mapping):
        value = value.get("total_time", value.get("total"))
    return float(value) if isinstance(value, (int, float)) and abs(value) < 1e100 else None
