"""A report as JSON: schema "passhat.report/1", the same bytes for the same input and seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from passhat.analysis.reports.disturbances import Disturbance
from passhat.analysis.reports.parts import (
    BarCount,
    CurvePoint,
    Decay,
    Design,
    ErrorSplit,
    Leaders,
    ResourceUse,
    Rounds,
    RunOrder,
    VarianceSplit,
)
from passhat.analysis.reports.report import Report
from passhat.analysis.reports.seed_grid import SeedSpread
from passhat.analysis.reports.system_report import SystemReport
from passhat.analysis.reports.tasks import LABELS, TaskRow
from passhat.reporters import wording
from passhat.reporters.answers.report_objects import (
    SCHEMA,
    BarObject,
    DecayObject,
    DisturbanceObject,
    ErrorPolicyObject,
    FamilySharesObject,
    FeatureObject,
    LabelCounts,
    LeadersObject,
    ReportObject,
    RoundsObject,
    RunCountsObject,
    RunOrderObject,
    SeedsObject,
    SystemObject,
    TaskObject,
    VarianceObject,
)
from passhat.reporters.data import (
    MetricObject,
    NumberObject,
    UnavailableObject,
    interval_object,
    metric_object,
    number_object,
    provenance_object,
)
from passhat.reporters.noise_words import luck, noise_object
from passhat.stats.estimate import Unavailable
from passhat.stats.families import FamilyShares


def report_object(report: Report) -> ReportObject:
    """The report, numbers unrounded."""
    return {
        "schema": SCHEMA,
        "systems": [system_object(system) for system in report.systems],
        "leaders": _leaders(report.leaders),
        "provenance": provenance_object(report.provenance),
        "notes": list(report.notes),
    }


def system_object(system: SystemReport) -> SystemObject:
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
        "noise": noise_object(system.noise),
        "seeds": _seeds(system.seeds),
        "rounds": _rounds(system.rounds),
        "disturbances": [_disturbance(one) for one in system.disturbances],
        "decay": _decay(system.decay),
        "task_table": [_task(row) for row in system.tasks],
        "labels": cast(LabelCounts, {label: system.tasks.count(label) for label in LABELS}),
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


def _leaders(found: Leaders | Unavailable) -> LeadersObject | UnavailableObject:
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


def _runs(design: Design) -> RunCountsObject:
    return {
        "fewest": design.fewest_runs,
        "typical": design.typical_runs,
        "most": design.most_runs,
    }


def _metrics(system: SystemReport) -> dict[str, MetricObject]:
    """Every metric; reliability@k is the suite's mean pass^k, under the name some know it by."""
    found = {name: metric_object(metric) for name, metric in system.metrics.items()}
    return found | {f"reliability@{k}": found[f"pass^{k}"] for k in system.ks}


def _variance(system: SystemReport) -> VarianceObject | UnavailableObject:
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
        "families": _families(split.families),
        "sentence": luck(split),
    }


def _families(
    found: FamilyShares | Unavailable | None,
) -> FamilySharesObject | UnavailableObject | None:
    if found is None:
        return None
    if isinstance(found, Unavailable):
        return {"value": None, "reason": found.reason}
    return {
        "family": number_object(found.family),
        "task": number_object(found.task),
        "run": number_object(found.run),
        "families": found.families,
    }


def _seeds(spread: SeedSpread | Unavailable) -> SeedsObject | UnavailableObject:
    if isinstance(spread, Unavailable):
        return {"value": None, "reason": spread.reason}
    variance = spread.variance
    means = {str(seed): mean for seed, mean in spread.means.items()}
    if isinstance(variance, Unavailable):
        return {"means": means, "variance": {"value": None, "reason": variance.reason}}
    return {
        "means": means,
        "variance": number_object(variance.between),
        "within": variance.within,
        "mean_score": number_object(variance.mean),
        "seeds": variance.seeds,
    }


def _disturbance(found: Disturbance) -> DisturbanceObject:
    return {
        "kind": found.kind,
        "rounds": list(found.rounds),
        "failed": found.failed,
        "runs": found.runs,
        "tasks": found.tasks,
        "p_value": found.p_value,
        "began": found.began,
        "ended": found.ended,
        "change": found.change,
    }


def _rounds(rounds: Rounds | Unavailable) -> RoundsObject | UnavailableObject:
    if isinstance(rounds, Unavailable):
        return {"value": None, "reason": rounds.reason}
    return {
        "means": list(rounds.means),
        "population_sd": rounds.population_sd,
        "standard_error": rounds.standard_error,
    }


def _decay(decay: Decay) -> DecayObject:
    return {
        "pass^k": _curve(decay.pass_hat),
        "pass@k": _curve(decay.pass_at),
        "model": _curve(decay.beyond),
        "run_order": _run_order(decay.run_order),
    }


def _curve(points: Sequence[CurvePoint]) -> list[NumberObject]:
    found = [{"k": point.k, **number_object(point.estimate)} for point in points]
    return cast("list[NumberObject]", found)


def _run_order(order: RunOrder | Unavailable) -> RunOrderObject | UnavailableObject:
    if isinstance(order, Unavailable):
        return {"value": None, "reason": order.reason}
    return {
        "decay": list(order.decay),
        "variance_amplification": number_object(order.variance_amplification),
        "graceful_degradation": number_object(order.graceful_degradation),
        "flips": number_object(order.flips),
        "tasks": order.tasks,
    }


def _task(row: TaskRow) -> TaskObject:
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


def _bar(bar: BarCount) -> BarObject:
    return {
        "k": bar.k,
        "bar": bar.bar,
        "above": list(bar.above),
        "below": list(bar.below),
        "undetermined": list(bar.undetermined),
        "model_share": number_object(bar.model_share),
    }


def _errors(split: ErrorSplit) -> ErrorPolicyObject:
    return {
        "policy": split.policy,
        "count": split.count,
        "rate": number_object(split.rate),
        "kinds": dict(split.kinds),
        "otherwise": {name: metric_object(metric) for name, metric in split.otherwise.items()},
    }


def _feature(feature: ResourceUse) -> FeatureObject:
    names = ("mean", "passed", "failed", "errored", "difference", "association", "median", "p95")
    numbers = {name: number_object(getattr(feature, name)) for name in names}
    found = cast(FeatureObject, {"trials": feature.trials, **numbers})
    if feature.per_streak:
        found["per_success"] = number_object(feature.per_success)
        found["per_streak"] = {str(k): number_object(n) for k, n in feature.per_streak.items()}
    return found
