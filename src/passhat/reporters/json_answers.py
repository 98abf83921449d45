"""Comparisons, rankings, plans and profiles as JSON, each with its own schema name."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from passhat.analysis.comparison import Comparison, Difference
from passhat.analysis.planning import Plan
from passhat.analysis.profile import Profile
from passhat.analysis.rank import RankReport
from passhat.reporters import comparison_blocks, plan_blocks, profile_blocks, rank_blocks
from passhat.reporters.json_report import (
    interval_object,
    metric_object,
    number_object,
    provenance_object,
    to_json,
)
from passhat.stats.estimate import TASKS_LIKE_THESE, THIS_SUITE, Estimate, Interval, Unavailable
from passhat.stats.paired import PairedDifference


def render_comparison_json(comparison: Comparison) -> str:
    """Schema "passhat.comparison/1"."""
    return to_json(
        {
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
    )


def render_ranking_json(report: RankReport) -> str:
    """Schema "passhat.ranking/1"."""
    return to_json(
        {
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
            "method": report.method,
            "confidence": report.confidence,
            "provenance": provenance_object(report.provenance),
            "notes": list(report.notes),
        }
    )


def render_plan_json(plan: Plan) -> str:
    """Schema "passhat.plan/1"."""
    return to_json(
        {"schema": "passhat.plan/1", "verdict": plan_blocks.verdict(plan), **plain(plan)}
    )


def render_profile_json(profile: Profile) -> str:
    """Schema "passhat.profile/1"."""
    return to_json(
        {
            "schema": "passhat.profile/1",
            "verdict": profile_blocks.verdict(profile),
            "system": profile.system,
            "agents": list(profile.agents),
            "norms": [
                {**plain(norm), "field": dict(norm.field), "quartiles": plain(norm.quartiles)}
                for norm in profile.norms
            ],
            "provenance": provenance_object(profile.provenance),
            "notes": list(profile.notes),
        }
    )


def plain(value: Any) -> Any:
    """A frozen answer as dicts, lists and numbers."""
    if isinstance(value, (Estimate, Unavailable)):
        return number_object(value)
    if isinstance(value, Interval):
        return interval_object(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    return value


def _difference(one: Difference, margin: float | None) -> dict[str, Any]:
    return {
        "first": one.first,
        "second": one.second,
        "value": one.value,
        "this_suite": _scoped(one, THIS_SUITE, margin),
        "tasks_like_these": _scoped(one, TASKS_LIKE_THESE, margin),
    }


def _scoped(one: Difference, scope: Any, margin: float | None) -> dict[str, Any]:
    number = one.this_suite if scope == THIS_SUITE else one.tasks_like_these
    if isinstance(number, Unavailable):
        return {"value": None, "reason": number.reason}
    found: dict[str, Any] = {
        "low": number.interval.low if number.interval else None,
        "high": number.interval.high if number.interval else None,
        "verdict": one.answer(scope, margin),
        "method": number.method,
        "confidence": number.confidence,
        "tasks": number.tasks,
    }
    if isinstance(number, PairedDifference):
        found |= {
            "p_value": number.p_value,
            "standard_error": number.standard_error,
            "needed": plain(number.needed),
            "notes": list(number.notes),
        }
    return found
