"""A report as JSON: schema "passhat.report/1", the same bytes for the same input and seed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Annotated, Any

from passhat.analysis.reports.parts import (
    BarCount,
    CurvePoint,
    Decay,
    Design,
    ErrorSplit,
    Feature,
    Leaders,
    Metric,
    Rounds,
    RunOrder,
    VarianceSplit,
)
from passhat.analysis.reports.provenance import Provenance
from passhat.analysis.reports.report import Report
from passhat.analysis.reports.seed_grid import SeedSpread
from passhat.analysis.reports.system_report import SystemReport
from passhat.analysis.reports.tasks import TaskRow
from passhat.reporters import wording
from passhat.stats.estimate import Estimate, Interval, Number, Unavailable

SCHEMA = "passhat.report/1"

# Parts that other answers share, by their names in report.schema.json.
ReportObject = Annotated[dict[str, Any], "report"]
MetricObject = Annotated[dict[str, Any], "metric"]
NumberObject = Annotated[dict[str, Any], "number"]
UnavailableObject = Annotated[dict[str, Any], "unavailable"]
IntervalObject = Annotated[dict[str, float], "interval"]
ProvenanceObject = Annotated[dict[str, Any], "provenance"]


def render_json(report: Report) -> str:
    """The whole report, numbers unrounded."""
    return to_json(report_object(report))


def report_object(report: Report) -> ReportObject:
    """The report as `render_json` writes it, to be part of a larger answer."""
    return {
        "schema": SCHEMA,
        "systems": [system_object(system) for system in report.systems],
        "leaders": _leaders(report.leaders),
        "provenance": provenance_object(report.provenance),
        "notes": list(report.notes),
    }


def to_json(value: Mapping[str, Any]) -> str:
    """Stable text: key order as built, ASCII only, so that it is also safe to print."""
    return json.dumps(value, indent=2, allow_nan=False) + "\n"


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


def system_object(system: SystemReport) -> dict[str, Any]:
    """One system; counts at the top, every number with its interval and method below."""
    return {
        "name": system.name,
        "verdict": wording.verdict(system),
        "tasks": system.design.tasks,
        "trials": system.design.trials,
        "errors": system.design.errors,
        "runs": _runs(system.design),
        "metrics": _metrics(system),
        "variance": _variance(system),
        "seeds": _seeds(system.seeds),
        "rounds": _rounds(system.rounds),
        "decay": _decay(system.decay),
        "task_table": [_task(row) for row in system.tasks],
        "labels": {label: system.tasks.count(label) for label in _LABEL_KEYS},
        "bars": [_bar(bar) for bar in system.bars],
        "error_policy": _errors(system.errors),
        "features": {name: _feature(feature) for name, feature in system.features.items()},
        "tools": {name: number_object(rate) for name, rate in system.tools.items()},
        "unsettled": [
            {
                "what": one.what,
                "tasks": list(one.tasks),
                "more_runs": one.more_runs,
                "advice": one.advice,
            }
            for one in system.unsettled
        ],
        "excluded": [
            {"what": one.what, "tasks": list(one.tasks), "reason": one.reason}
            for one in system.excluded
        ],
        "levels": {name: system_object(part) for name, part in system.levels.items()},
        "tags": {name: system_object(part) for name, part in system.tags.items()},
        "notes": list(system.notes),
    }


def number_object(number: Number | float) -> NumberObject:
    """A number with its interval, or null with the reason."""
    if isinstance(number, Unavailable):
        return {"value": None, "reason": number.reason}
    if isinstance(number, float):
        return {"value": number}
    found: dict[str, Any] = {
        "value": number.value,
        "interval": interval_object(number.interval),
        "method": number.method,
        "confidence": number.confidence,
    }
    if number.scope is not None:
        found["scope"] = number.scope
    for name in ("tasks", "runs", "seed"):
        if getattr(number, name) is not None:
            found[name] = getattr(number, name)
    return found | ({"notes": list(number.notes)} if number.notes else {})


def interval_object(interval: Interval | None) -> IntervalObject | None:
    """Both ends, or null."""
    return None if interval is None else {"low": interval.low, "high": interval.high}


def metric_object(metric: Metric) -> MetricObject:
    """One value, its intervals in both scopes, how they were made, and over how many tasks."""
    if metric.value is None:
        return {"value": None, "reason": metric.reason}
    both = metric.this_suite, metric.tasks_like_these
    known = [number for number in both if isinstance(number, Estimate)]
    reasons = [number.reason for number in both if isinstance(number, Unavailable)]
    found: dict[str, Any] = {
        "value": metric.value,
        "this_suite": _scoped(metric.this_suite),
        "tasks_like_these": _scoped(metric.tasks_like_these),
        "method": "; ".join(dict.fromkeys(f"{n.scope}: {n.method}" for n in known)),
        "confidence": known[0].confidence,
        "tasks": known[0].tasks,
        "runs": known[0].runs,
        "excluded_tasks": known[0].excluded_tasks,
    }
    notes = [*dict.fromkeys(note for number in known for note in number.notes), *reasons]
    return found | ({"notes": notes} if notes else {})


def provenance_object(provenance: Provenance) -> ProvenanceObject:
    """Input, versions, options."""
    options = provenance.options
    bars = options.bars
    return {
        "input_sha256": provenance.input_sha256,
        "sources": [
            {"name": source.name, "format": source.format, "sha256": source.sha256}
            for source in provenance.sources
        ],
        "versions": dict(provenance.versions),
        "options": {
            "k": None if options.ks is None else list(options.ks),
            "confidence": options.confidence,
            "errors": options.errors,
            "bars": dict(bars) if isinstance(bars, Mapping) else bars,
            "seed": options.seed,
        },
    }


_LABEL_KEYS = ("solid", "flaky", "broken", "too few runs")


def _leaders(found: Leaders | Unavailable) -> dict[str, Any]:
    if isinstance(found, Unavailable):
        return {"value": None, "reason": found.reason}
    return {
        "metric": f"pass^{found.k}",
        "names": list(found.names),
        "values": list(found.values),
        "compared": list(found.compared),
        "tasks": found.tasks,
        "left_out": found.left_out,
        "scope": found.scope,
        "method": found.method,
        "confidence": found.confidence,
    }


def _scoped(number: Number) -> dict[str, float] | None:
    return interval_object(number.interval) if isinstance(number, Estimate) else None


def _runs(design: Design) -> dict[str, int]:
    return {
        "fewest": design.fewest_runs,
        "typical": design.typical_runs,
        "most": design.most_runs,
    }


def _metrics(system: SystemReport) -> dict[str, Any]:
    """Every metric; reliability@k is the suite's mean pass^k, under the name some know it by."""
    found = {name: metric_object(metric) for name, metric in system.metrics.items()}
    return found | {f"reliability@{k}": found[f"pass^{k}"] for k in system.ks}


def _variance(system: SystemReport) -> dict[str, Any]:
    split = system.variance
    if isinstance(split, Unavailable):
        return {"value": None, "reason": split.reason}
    assert isinstance(split, VarianceSplit)
    return {
        "between_tasks": split.between_tasks,
        "within_tasks": split.within_tasks,
        "luck": number_object(split.luck),
        "icc": number_object(split.icc),
        "reliability": number_object(split.reliability),
        "sentence": wording.luck(split),
    }


def _seeds(spread: SeedSpread | Unavailable) -> dict[str, Any]:
    if isinstance(spread, Unavailable):
        return {"value": None, "reason": spread.reason}
    variance = spread.variance
    found: dict[str, Any] = {"means": {str(seed): mean for seed, mean in spread.means.items()}}
    if isinstance(variance, Unavailable):
        return found | {"variance": {"value": None, "reason": variance.reason}}
    return found | {
        "variance": number_object(variance.between),
        "within": variance.within,
        "mean_score": number_object(variance.mean),
        "seeds": variance.seeds,
    }


def _rounds(rounds: Rounds | Unavailable) -> dict[str, Any]:
    if isinstance(rounds, Unavailable):
        return {"value": None, "reason": rounds.reason}
    return {
        "means": list(rounds.means),
        "population_sd": rounds.population_sd,
        "standard_error": rounds.standard_error,
    }


def _decay(decay: Decay) -> dict[str, Any]:
    return {
        "pass^k": _curve(decay.pass_hat),
        "pass@k": _curve(decay.pass_at),
        "model": _curve(decay.beyond),
        "run_order": _run_order(decay.run_order),
    }


def _curve(points: Sequence[CurvePoint]) -> list[dict[str, Any]]:
    return [{"k": point.k, **number_object(point.estimate)} for point in points]


def _run_order(order: RunOrder | Unavailable) -> dict[str, Any]:
    if isinstance(order, Unavailable):
        return {"value": None, "reason": order.reason}
    return {
        "decay": list(order.decay),
        "variance_amplification": number_object(order.variance_amplification),
        "graceful_degradation": number_object(order.graceful_degradation),
        "flips": number_object(order.flips),
        "tasks": order.tasks,
    }


def _task(row: TaskRow) -> dict[str, Any]:
    return {
        "name": row.name,
        "runs": row.runs,
        "passed": row.passed,
        "failed": row.failed,
        "errored": row.errored,
        "rate": row.rate.value,
        "interval": interval_object(row.rate.interval),
        "mean_score": row.mean_score,
        "label": row.label,
        "label_chance": row.chance,
        "more_runs": row.more_runs,
        "sequence": row.sequence,
    }


def _bar(bar: BarCount) -> dict[str, Any]:
    return {
        "k": bar.k,
        "bar": bar.bar,
        "above": list(bar.above),
        "below": list(bar.below),
        "undetermined": list(bar.undetermined),
        "model_share": number_object(bar.model_share),
    }


def _errors(split: ErrorSplit) -> dict[str, Any]:
    return {
        "policy": split.policy,
        "count": split.count,
        "rate": number_object(split.rate),
        "kinds": dict(split.kinds),
        "otherwise": {name: metric_object(metric) for name, metric in split.otherwise.items()},
    }


def _feature(feature: Feature) -> dict[str, Any]:
    names = ("mean", "passed", "failed", "errored", "difference", "association", "median", "p95")
    found: dict[str, Any] = {"trials": feature.trials}
    found |= {name: number_object(getattr(feature, name)) for name in names}
    if feature.per_streak:
        found["per_success"] = number_object(feature.per_success)
        found["per_streak"] = {str(k): number_object(n) for k, n in feature.per_streak.items()}
    return found
