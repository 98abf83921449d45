"""Verdicts as JSON: schema "passhat.verdicts/1", with every step, so that anybody can recompute."""

from __future__ import annotations

from typing import Literal, TypedDict, cast

from passhat.analysis.gates.demands import (
    Design,
    EvidenceKind,
    Gate,
    GateScope,
    OnUndecided,
    Severity,
)
from passhat.analysis.gates.verdict import DecisionLine, TaskEvidence, Verdict, Verdicts, Word
from passhat.reporters.data import NumberObject, number_object, plain

SCHEMA: Literal["passhat.verdicts/1"] = "passhat.verdicts/1"


class TermsObject(TypedDict):
    """How the demand was to be decided, and what follows."""

    name: str | None
    system: str | None
    confidence: float
    scope: GateScope
    evidence: EvidenceKind | None
    indifference: float | None
    alpha: float
    beta: float
    max_runs: int | None
    design: Design
    on_undecided: OnUndecided
    severity: Severity
    tags: list[str]


class StepObject(TypedDict):
    """One line of the decision log; the logarithms are natural."""

    draw: int
    task: str
    outcome: str
    log_pass: float
    log_fail: float
    pass_boundary: float
    fail_boundary: float


class VerdictObject(TypedDict):
    """One gate's word on one system: the demand, the evidence, and the log."""

    require: str
    terms: TermsObject
    system: str
    verdict: Word
    exit_code: int
    sentence: str
    estimate: NumberObject
    evidence: EvidenceKind
    method: str
    alpha: float | None
    beta: float | None
    runs: int
    fixed_runs: int | None
    runs_saved: int | None
    max_runs: int | None
    more_runs: int | None
    seed: int | None
    errors: str
    notes: list[str]
    tasks: list[TaskEvidence]
    steps: list[StepObject]


class VerdictsObject(TypedDict):
    """Every gate's verdict, and the one that follows from all."""

    schema: Literal["passhat.verdicts/1"]
    verdict: Word
    exit_code: int
    sentence: str
    verdicts: list[VerdictObject]


def verdicts_object(verdicts: Verdicts) -> VerdictsObject:
    """The whole answer, numbers unrounded."""
    return {
        "schema": SCHEMA,
        "verdict": verdicts.word,
        "exit_code": verdicts.exit_code,
        "sentence": verdicts.sentence,
        "verdicts": [verdict_object(verdict) for verdict in verdicts],
    }


def verdict_object(verdict: Verdict) -> VerdictObject:
    """One verdict: the demand, the evidence, and the log."""
    return {
        "require": verdict.gate.require,
        "terms": _terms(verdict.gate),
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
        "tasks": plain(verdict.tasks),
        "steps": [_step(step) for step in verdict.steps],
    }


def _terms(gate: Gate) -> TermsObject:
    found = {name: plain(getattr(gate, name)) for name in TermsObject.__annotations__}
    return cast(TermsObject, found)


def _step(step: DecisionLine) -> StepObject:
    return {
        "draw": step.number,
        "task": step.task,
        "outcome": step.outcome,
        "log_pass": step.log_pass,
        "log_fail": step.log_fail,
        "pass_boundary": step.pass_boundary,
        "fail_boundary": step.fail_boundary,
    }
