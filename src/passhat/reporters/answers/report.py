"""A report: its sentences and tables, data, rows of numbers, figures, test cases and page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict, cast

from passhat.analysis.reports.dependence import Kind, SeedSpread
from passhat.analysis.reports.evidence import Provenance
from passhat.analysis.reports.parts import (
    CurvePoint,
    Decay,
    ErrorSplit,
    Exclusion,
    Leaders,
    ResourceUse,
    Rounds,
    RunOrder,
    Unsettled,
)
from passhat.analysis.reports.report import LABELS, Label, Report, SystemReport, TaskRow
from passhat.messages import plural
from passhat.reporters import headline
from passhat.reporters.answer import Answer, Block, DisplayOptions, Records
from passhat.reporters.answers.report_blocks import report_blocks, report_figures
from passhat.reporters.data import (
    IntervalObject,
    MetricObject,
    NumberObject,
    ProvenanceObject,
    UnavailableObject,
    interval_object,
    json_object,
    metric_object,
    number_object,
    plain,
)
from passhat.reporters.formatting import end_cells, percent, scope_cells
from passhat.reporters.headline import verdict_title
from passhat.reporters.wording import NoiseObject, luck, noise_object
from passhat.stats.estimate import Estimate, Scope, Unavailable
from passhat.stats.variance import FamilyShares

if TYPE_CHECKING:
    from passhat.drawing.figure import Figure
    from passhat.reporters.test_cases import TestSuite


class ReportAnswer(Answer[Report]):
    """How reliable each system is."""

    name = "report"
    template = "report.html"

    def title(self) -> str:
        return verdict_title(self.result)

    def blocks(self, options: DisplayOptions) -> list[Block]:
        return report_blocks(self.result, options)

    def rows(self) -> Records:
        """A row a number: first those of the whole suite, then the pass rate of every task."""
        return [row for system in self.result.systems for row in _system_rows(system)]

    def data(self) -> Any:
        return report_object(self.result)

    def figures(self) -> Mapping[str, Figure]:
        return report_figures(self.result)

    def cases(self) -> Sequence[TestSuite]:
        from passhat.reporters.test_cases import task_suites

        return task_suites(self.result)

    def page(self, options: DisplayOptions) -> Mapping[str, Any]:
        from passhat.reporters.answers.report_page import page_of

        return page_of(self.result, options)

    def methods(self) -> str:
        """How the numbers of a report were made, in sentences that a reviewer can check."""
        report = self.result
        system = report.systems[0]
        origin = report.provenance
        parts = _design(report), _METRICS, _intervals(system, origin), _errors(origin)
        return " ".join([*parts, _software(origin)])


def _system_rows(system: SystemReport) -> Iterator[dict[str, object]]:
    for name, metric in system.metrics.items():
        yield {
            "system": system.name,
            "task": "",
            "number": name,
            "value": metric.value,
            **scope_cells(metric),
            "tasks": system.design.tasks,
            "runs": system.design.trials,
            "passed": int(system.tasks.passed.sum()),
            "label": "",
        }
    for row in system.tasks:
        yield {
            "system": system.name,
            "task": row.name,
            "number": "pass^1",
            "value": row.rate.value,
            **end_cells("this_suite", row.rate.interval),
            **end_cells("tasks_like_these", None),
            "tasks": 1,
            "runs": row.runs,
            "passed": row.passed,
            "label": row.label,
        }


_METRICS = (
    "pass@k is the unbiased estimator of Chen et al. (2021, arXiv:2107.03374); pass^k, also called "
    "reliability@k, is the chance that all k attempts at a task succeed (Yao et al., 2024, "
    "arXiv:2406.12045), estimated without bias from the same counts and averaged over tasks."
)


def _design(report: Report) -> str:
    system = report.systems[0]
    shape = system.design
    runs = (
        f"{shape.fewest_runs}" if shape.equal_runs else f"{shape.fewest_runs} to {shape.most_runs}"
    )
    who = plural(len(report.systems), "system")
    return f"We ran {who} {runs} times on each of {plural(shape.tasks, 'task')}."


def _intervals(system: SystemReport, origin: Provenance) -> str:
    level = percent(origin.options.confidence)
    metric = system.pass_hat(max(system.ks)) if system.ks else system.mean_score
    scopes = [
        f'"{number.scope}" ({number.method})'
        for number in (metric.this_suite, metric.tasks_like_these)
        if isinstance(number, Estimate)
    ]
    return (
        f"Brackets are {level} confidence intervals in two scopes: {' and '.join(scopes)}; the "
        "first treats the tasks as fixed, the second as a sample of more tasks of their kind."
        if scopes
        else f"Confidence intervals are at {level}."
    )


def _errors(origin: Provenance) -> str:
    counted = "counted as failures" if origin.options.errors == "fail" else "left out"
    return f"Trials that errored were {counted}."


def _software(origin: Provenance) -> str:
    return (
        f"Computed with passhat {origin.versions['passhat']} (seed {origin.options.seed}, "
        f"fingerprint of the trials {origin.input_sha256[:12]})."
    )


# --------------------------------------------------------------------------------------------------
# A report as JSON: schema "passhat.report/1", the same bytes for the same input and seed.
# --------------------------------------------------------------------------------------------------


def report_object(report: Report) -> ReportObject:
    """The report, numbers unrounded."""
    systems = [system_object(system) for system in report.systems]
    leaders = _leaders(report.leaders)
    return json_object(report, ReportObject, schema=SCHEMA, systems=systems, leaders=leaders)


def system_object(system: SystemReport) -> SystemObject:
    """One system; counts at the top, every number with its interval and method below."""
    design = system.design
    return json_object(
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
        variance=json_object(system.variance, VarianceObject, sentence=luck(system.variance)),
        noise=noise_object(system.noise),
        seeds=_seeds(system.seeds),
        disturbances=[json_object(one, DisturbanceObject) for one in system.disturbances],
        decay=_decay(system.decay),
        task_table=[_task(row) for row in system.tasks],
        labels={label: system.tasks.count(label) for label in LABELS},
        bars=[json_object(bar, BarObject) for bar in system.bars],
        error_policy=plain(system.errors),
        features={name: _feature(feature) for name, feature in system.features.items()},
        levels={name: system_object(part) for name, part in system.levels.items()},
        tags={name: system_object(part) for name, part in system.tags.items()},
    )


def _leaders(found: Leaders | Unavailable) -> LeadersObject | UnavailableObject:
    metric = "" if isinstance(found, Unavailable) else f"pass^{found.k}"
    return json_object(found, LeadersObject, metric=metric)


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
    return json_object(order, RunOrderObject, **numbers)


def _task(row: TaskRow) -> TaskObject:
    return json_object(
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


# --------------------------------------------------------------------------------------------------
# The JSON of a report as types: schema "passhat.report/1" is generated from them.
# --------------------------------------------------------------------------------------------------

SCHEMA: Literal["passhat.report/1"] = "passhat.report/1"


class RunCountsObject(TypedDict):
    """How many runs the tasks have."""

    fewest: int
    typical: int
    most: int


class VarianceObject(TypedDict):
    """Where the variation comes from: differences between tasks, and luck."""

    between_tasks: float
    within_tasks: float
    luck: NumberObject
    icc: NumberObject
    reliability: NumberObject
    families: FamilyShares | UnavailableObject | None
    sentence: str


class SeedsObject(TypedDict):
    """The mean of each seed, and how far seeds move the suite."""

    means: dict[str, float]
    variance: NumberObject
    within: NotRequired[float]
    mean_score: NotRequired[NumberObject]
    seeds: NotRequired[int]


class DisturbanceObject(TypedDict):
    """What moved runs together, so that they are not independent; rounds are counted from 1."""

    kind: Kind
    rounds: list[int]
    failed: int
    runs: int
    tasks: int
    p_value: float
    began: str | None
    ended: str | None
    change: float | None


class RunOrderObject(TypedDict):
    """Descriptions that depend on the order of runs."""

    decay: list[float]
    variance_amplification: NumberObject
    graceful_degradation: NumberObject
    flips: NumberObject
    tasks: int


DecayObject = TypedDict(
    "DecayObject",
    {
        "pass^k": list[NumberObject],
        "pass@k": list[NumberObject],
        "model": list[NumberObject],
        "run_order": RunOrderObject | UnavailableObject,
    },
)


class TaskObject(TypedDict):
    """One task; `sequence` is its runs in order as P, F and E."""

    name: str
    runs: int
    passed: int
    failed: int
    errored: int
    rate: float
    interval: IntervalObject | None
    mean_score: float
    label: Label
    label_chance: float
    more_runs: int | None
    sequence: str | None


class LabelCounts(TypedDict):
    """How many tasks have each label."""

    solid: int
    flaky: int
    broken: int
    undecided: int


class BarObject(TypedDict):
    """Which tasks have a pass^k that clears their bar."""

    k: int
    bar: float | None
    above: list[str]
    below: list[str]
    undetermined: list[str]
    model_share: NumberObject


class FeatureObject(TypedDict):
    """What trials took, by how they ended."""

    trials: int
    mean: NumberObject
    passed: NumberObject
    failed: NumberObject
    errored: NumberObject
    difference: NumberObject
    association: NumberObject
    median: NumberObject
    p95: NumberObject
    per_success: NotRequired[NumberObject]
    per_streak: NotRequired[dict[str, NumberObject]]


class SystemObject(TypedDict):
    """Everything measured about one system; reliability@k is the suite's mean pass^k."""

    name: str
    verdict: str
    tasks: int
    trials: int
    errors: int
    runs: RunCountsObject
    metrics: dict[str, MetricObject]
    variance: VarianceObject | UnavailableObject
    noise: NoiseObject | UnavailableObject
    seeds: SeedsObject | UnavailableObject
    rounds: Rounds | UnavailableObject
    disturbances: list[DisturbanceObject]
    decay: DecayObject
    task_table: list[TaskObject]
    labels: LabelCounts
    bars: list[BarObject]
    error_policy: ErrorSplit
    features: dict[str, FeatureObject]
    tools: dict[str, NumberObject]
    unsettled: list[Unsettled]
    excluded: list[Exclusion]
    levels: dict[str, SystemObject]
    tags: dict[str, SystemObject]
    notes: list[str]


class LeadersObject(TypedDict):
    """The systems that may truly be first: one apart from all others, or several that are tied."""

    metric: str
    names: list[str]
    values: list[float]
    compared: list[str]
    tasks: int
    left_out: int
    scope: Scope
    method: str
    confidence: float


class ReportObject(TypedDict):
    """A passhat report."""

    schema: Literal["passhat.report/1"]
    systems: list[SystemObject]
    leaders: LeadersObject | UnavailableObject
    provenance: ProvenanceObject
    notes: list[str]
