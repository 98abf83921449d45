"""Comparisons, rankings, plans and profiles as JSON, each with its own schema name."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from passhat.analysis.comparing.comparison import Comparison, Difference
from passhat.analysis.comparing.profile import Norm, Profile
from passhat.analysis.comparing.rank import PairDifference, RankReport, Unranked
from passhat.analysis.comparing.task_differences import TaskDifference
from passhat.analysis.planning.plan import Plan
from passhat.reporters import comparison_blocks, plan_blocks, profile_blocks, rank_blocks
from passhat.reporters.json_report import (
    MetricObject,
    NumberObject,
    ProvenanceObject,
    UnavailableObject,
    metric_object,
    number_object,
    plain,
    provenance_object,
    to_json,
)
from passhat.stats.estimate import TASKS_LIKE_THESE, THIS_SUITE, Number, Scope, Unavailable
from passhat.stats.paired import Answer, PairedDifference
from passhat.stats.settling import Needed


class ScopedDifference(TypedDict):
    """A difference in one scope: its interval, and what follows from it."""

    low: float | None
    high: float | None
    verdict: Answer | None
    method: str
    confidence: float
    tasks: int | None
    p_value: NotRequired[float]
    standard_error: NotRequired[float]
    needed: NotRequired[Needed | None]
    notes: NotRequired[list[str]]


class DifferenceObject(TypedDict):
    """One metric of the first system minus the second, in both scopes."""

    first: float | None
    second: float | None
    value: float | None
    this_suite: ScopedDifference | UnavailableObject
    tasks_like_these: ScopedDifference | UnavailableObject


class ComparisonObject(TypedDict):
    """Two systems on the tasks that both ran."""

    schema: Literal["passhat.comparison/1"]
    verdict: str
    first: str
    second: str
    margin: float | None
    differences: dict[str, DifferenceObject]
    seeded: NumberObject
    tasks: list[TaskDifference]
    only_first: list[str]
    only_second: list[str]
    provenance: ProvenanceObject
    notes: list[str]


class RankedObject(TypedDict):
    """One system: its value over the shared tasks, and the ranks it may truly have."""

    name: str
    value: float
    ranks: list[int]
    metric: MetricObject


class RankingObject(TypedDict):
    """Systems from best to worst, bands of ties, and every pairwise difference."""

    schema: Literal["passhat.ranking/1"]
    verdict: str
    metric: str
    systems: list[RankedObject]
    tie_bands: list[list[str]]
    pairs: list[PairDifference]
    tasks: int
    unshared: list[str]
    unranked: list[Unranked]
    scope: Scope
    method: str
    confidence: float
    provenance: ProvenanceObject
    notes: list[str]


class PlanHead(TypedDict):
    """What a design shows, what a target takes, and where more runs stop helping."""

    schema: Literal["passhat.plan/1"]
    verdict: str


class NormObject(TypedDict):
    """One number of the agent, and the same number of every reference agent."""

    name: str
    value: Number
    field: dict[str, float]
    missing: list[str]
    percentile: Number
    high_is_good: bool | None
    quartiles: tuple[float, float, float] | None


class ProfileObject(TypedDict):
    """An agent against the field, number by number."""

    schema: Literal["passhat.profile/1"]
    verdict: str
    system: str
    agents: list[str]
    norms: list[NormObject]
    provenance: ProvenanceObject
    notes: list[str]


def render_comparison_json(comparison: Comparison) -> str:
    """Schema "passhat.comparison/1"."""
    answer: ComparisonObject = {
        "schema": "passhat.comparison/1",
        "verdict": comparison_blocks.verdict(comparison),
        "first": comparison.first,
        "second": comparison.second,
        "margin": comparison.margin,
        "differences": {
            name: _difference(one, comparison.margin)
            for name, one in comparison.differences.items()
        },
        "seeded": number_object(comparison.seeded),
        "tasks": [plain(task) for task in comparison.tasks],
        "only_first": list(comparison.only_first),
        "only_second": list(comparison.only_second),
        "provenance": provenance_object(comparison.provenance),
        "notes": list(comparison.notes),
    }
    return to_json(answer)


def render_ranking_json(report: RankReport) -> str:
    """Schema "passhat.ranking/1"."""
    answer: RankingObject = {
        "schema": "passhat.ranking/1",
        "verdict": rank_blocks.verdict(report),
        "metric": report.metric,
        "systems": [
            {
                "name": system.name,
                "value": system.value,
                "ranks": list(system.ranks),
                "metric": metric_object(system.metric),
            }
            for system in report.systems
        ],
        "tie_bands": [list(band) for band in report.tie_bands],
        "pairs": [plain(pair) for pair in report.pairs],
        "tasks": report.tasks,
        "unshared": list(report.unshared),
        "unranked": [plain(one) for one in report.unranked],
        "scope": report.scope,
        "method": report.method,
        "confidence": report.confidence,
        "provenance": provenance_object(report.provenance),
        "notes": list(report.notes),
    }
    return to_json(answer)


def render_plan_json(plan: Plan) -> str:
    """Schema "passhat.plan/1"."""
    head: PlanHead = {"schema": "passhat.plan/1", "verdict": plan_blocks.verdict(plan)}
    return to_json({**head, **plain(plan)})


def render_profile_json(profile: Profile) -> str:
    """Schema "passhat.profile/1"."""
    answer: ProfileObject = {
        "schema": "passhat.profile/1",
        "verdict": profile_blocks.verdict(profile),
        "system": profile.system,
        "agents": list(profile.agents),
        "norms": [_norm(norm) for norm in profile.norms],
        "provenance": provenance_object(profile.provenance),
        "notes": list(profile.notes),
    }
    return to_json(answer)


def _difference(one: Difference, margin: float | None) -> DifferenceObject:
    return {
        "first": one.first,
        "second": one.second,
        "value": one.value,
        "this_suite": _scoped(one, THIS_SUITE, margin),
        "tasks_like_these": _scoped(one, TASKS_LIKE_THESE, margin),
    }


def _scoped(
    one: Difference, scope: Scope, margin: float | None
) -> ScopedDifference | UnavailableObject:
    number = one.this_suite if scope == THIS_SUITE else one.tasks_like_these
    if isinstance(number, Unavailable):
        return number_object(number)
    found: ScopedDifference = {
        "low": number.interval.low if number.interval else None,
        "high": number.interval.high if number.interval else None,
        "verdict": one.answer(scope, margin),
        "method": number.method,
        "confidence": number.confidence,
        "tasks": number.tasks,
    }
    if isinstance(number, PairedDifference):
        found["p_value"] = number.p_value
        found["standard_error"] = number.standard_error
        found["needed"] = plain(number.needed)
        found["notes"] = list(number.notes)
    return found


def _norm(norm: Norm) -> NormObject:
    return {
        "name": norm.name,
        "value": plain(norm.value),
        "field": dict(norm.field),
        "missing": list(norm.missing),
        "percentile": plain(norm.percentile),
        "high_is_good": norm.high_is_good,
        "quartiles": norm.quartiles,
    }
