"""A report as JSON: schema "passhat.report/1", the same bytes for the same input and seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from passhat.analysis.reports.dependence import SeedSpread
from passhat.analysis.reports.parts import CurvePoint, Decay, Leaders, ResourceUse, RunOrder
from passhat.analysis.reports.report import LABELS, Report, SystemReport, TaskRow
from passhat.reporters import headline
from passhat.reporters.answers.report_schema import (
    SCHEMA,
    BarObject,
    DecayObject,
    DisturbanceObject,
    FeatureObject,
    LeadersObject,
    ReportObject,
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
    plain,
    shaped,
)
from passhat.reporters.noise_words import luck, noise_object
from passhat.stats.estimate import Unavailable


def report_object(report: Report) -> ReportObject:
    """The report, numbers unrounded."""
    systems = [system_object(system) for system in report.systems]
    leaders = _leaders(report.leaders)
    return shaped(report, ReportObject, schema=SCHEMA, systems=systems, leaders=leaders)


def system_object(system: SystemReport) -> SystemObject:
    """One system; counts at the top, every number with its interval and method below."""
    design = system.design
    return shaped(
        system,
        SystemObject,
        verdict=headline.verdict(system),
        tasks=design.tasks,
        trials=design.trials,
        errors=design.errors,
        runs=RunCountsObject(
            fewest=design.fewest_runs, typical=design.typical_runs, most=design.most_runs
        ),
        metrics=_metrics(system),
        variance=shaped(system.variance, VarianceObject, sentence=luck(system.variance)),
        noise=noise_object(system.noise),
        seeds=_seeds(system.seeds),
        disturbances=[shaped(one, DisturbanceObject) for one in system.disturbances],
        decay=_decay(system.decay),
        task_table=[_task(row) for row in system.tasks],
        labels={label: system.tasks.count(label) for label in LABELS},
        bars=[shaped(bar, BarObject) for bar in system.bars],
        error_policy=plain(system.errors),
        features={name: _feature(feature) for name, feature in system.features.items()},
        levels={name: system_object(part) for name, part in system.levels.items()},
        tags={name: system_object(part) for name, part in system.tags.items()},
    )


def _leaders(found: Leaders | Unavailable) -> LeadersObject | UnavailableObject:
    metric = "" if isinstance(found, Unavailable) else f"pass^{found.k}"
    return shaped(found, LeadersObject, metric=metric)


def _metrics(system: SystemReport) -> dict[str, MetricObject]:
    """Every metric; reliability@k is the suite's mean pass^k, under the name some know it by."""
    found = {name: metric_object(metric) for name, metric in system.metrics.items()}
    return found | {f"reliability@{k}": found[f"pass^{k}"] for k in system.ks}


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
    names = ("variance_amplification", "graceful_degradation", "flips")
    numbers = {} if isinstance(order, Unavailable) else {
        name: number_object(getattr(order, name)) for name in names
    }  # fmt: skip
    return shaped(order, RunOrderObject, **numbers)


def _task(row: TaskRow) -> TaskObject:
    return shaped(
        row,
        TaskObject,
        rate=row.rate.value,
        interval=interval_object(row.rate.interval),
        label_chance=row.chance,
    )


def _feature(feature: ResourceUse) -> FeatureObject:
    names = ("mean", "passed", "failed", "errored", "difference", "association", "median", "p95")
    numbers = {name: number_object(getattr(feature, name)) for name in names}
    found = cast(FeatureObject, {"trials": feature.trials, **numbers})
    if feature.per_streak:
        found["per_success"] = number_object(feature.per_success)
        found["per_streak"] = {str(k): number_object(n) for k, n in feature.per_streak.items()}
    return found
