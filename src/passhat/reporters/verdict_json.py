"""Verdicts as JSON: schema "passhat.verdicts/1", with every step, so that anybody can recompute."""

from __future__ import annotations

from typing import Any

from passhat.analysis.verdict import Verdict, Verdicts
from passhat.reporters.json_report import number_object, to_json

SCHEMA = "passhat.verdicts/1"

_TERMS = (
    "name", "system", "confidence", "scope", "evidence", "indifference", "alpha", "beta",
    "max_runs", "design", "on_undecided", "severity",
)  # fmt: skip


def render_verdicts_json(verdicts: Verdicts) -> str:
    """The whole answer, numbers unrounded."""
    return to_json(
        {
            "schema": SCHEMA,
            "verdict": verdicts.word,
            "exit_code": verdicts.exit_code,
            "sentence": verdicts.sentence,
            "verdicts": [verdict_object(verdict) for verdict in verdicts],
        }
    )


def verdict_object(verdict: Verdict) -> dict[str, Any]:
    """One verdict: the demand, the evidence, and the log."""
    gate = verdict.gate
    return {
        "require": gate.require,
        "terms": {name: getattr(gate, name) for name in _TERMS} | {"tags": list(gate.tags)},
        "system": verdict.system,
        "verdict": verdict.word,
        "exit_code": verdict.exit_code,
        "sentence": verdict.sentence,
        "estimate": number_object(verdict.estimate),
        "evidence": verdict.evidence,
        "method": verdict.method,
        "alpha": verdict.alpha,
        "beta": verdict.beta,
        "runs": verdict.runs,
        "fixed_runs": verdict.fixed_runs,
        "runs_saved": verdict.runs_saved,
        "max_runs": verdict.max_runs,
        "more_runs": verdict.more_runs,
        "seed": verdict.seed,
        "errors": verdict.errors,
        "notes": list(verdict.notes),
        "tasks": [
            {
                "task": task.task,
                "runs": task.runs,
                "passed": task.passed,
                "errored": task.errored,
                "value": task.value,
                "note": task.note,
            }
            for task in verdict.tasks
        ],
        "steps": [
            {
                "draw": step.number,
                "task": step.task,
                "outcome": step.outcome,
                "log_pass": step.log_pass,
                "log_fail": step.log_fail,
                "pass_boundary": step.pass_boundary,
                "fail_boundary": step.fail_boundary,
            }
            for step in verdict.steps
        ],
    }
