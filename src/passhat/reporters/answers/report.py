"""A report: its sentences and tables, data, rows of numbers, figures, test cases and page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict, cast

from passhat.analysis.reports.dependence import Disturbance
from passhat.analysis.reports.evidence import Provenance
from passhat.analysis.reports.factors import Factor, FactorLevel, HalMetric
from passhat.analysis.reports.judged import as_people_grade
from passhat.analysis.reports.parts import (
    LABELS,
    BarCount,
    CurvePoint,
    Design,
    Leaders,
    ResourceUse,
    RunOrder,
    StepChain,
    SystemReport,
    TaskRow,
    VarianceSplit,
)
from passhat.analysis.reports.report import Report
from passhat.messages import plural
from passhat.records.trial import GRADED_BY_JUDGE
from passhat.reporters import headline
from passhat.reporters.answer import Answer, Block, DisplayOptions, Records, StatusLabel, Table
from passhat.reporters.answers.report_blocks import (
    drawn_or_why_not,
    numbers_table,
    report_blocks,
    report_figures,
    report_screen,
    shown_ks,
)
from passhat.reporters.data import (
    JsonShape,
    MetricObject,
    NumberObject,
    UnavailableObject,
    interval_object,
    metric_object,
    number_object,
)
from passhat.reporters.formatting import end_cells, metric_label, percent, scope_cells, short, span
from passhat.reporters.headline import overview_chip, verdict_title
from passhat.reporters.wording import (
    common_design,
    luck,
    noise_sentence,
    noise_shape,
)
from passhat.stats.estimate import Estimate, Number, Unavailable
from passhat.stats.population_bounds import FEWEST_FAMILIES

if TYPE_CHECKING:
    from passhat.drawing.figure import Figure
    from passhat.reporters.test_cases import TestSuite


class ReportAnswer(Answer[Report]):
    """How reliable each system is."""

    name = "report"
    template = "report.html"

    @property
    def shown(self) -> Report:
        """The report that people read: with corrected numbers first, where there are labels."""
        report = self.result.as_read
        labelled = any(
            metric.corrected for system in report.systems for metric in system.metrics.values()
        )
        # What labels show is said beside the numbers.
        notes = (n for n in report.notes if not (labelled and n.endswith(GRADED_BY_JUDGE)))
        systems = tuple(map(as_people_grade, report.systems))
        leaders = report.leaders_by_k
        if any(system.is_corrected for system in systems):  # the leaders are those by the judge
            way = "labels correct each agent on its own here (compare tests who is ahead)"
            leaders = dict.fromkeys(leaders, Unavailable(way))
        return replace(report, systems=systems, leaders_by_k=leaders, notes=tuple(notes))

    def title(self) -> str:
        return verdict_title(self.shown)

    def chip(self) -> StatusLabel:
        return overview_chip(self.shown)

    def blocks(self, options: DisplayOptions) -> list[Block]:
        return report_blocks(self.shown, options)

    def screen(self, options: DisplayOptions) -> list[Block]:
        return report_screen(self.shown, options)

    def rows(self) -> Records:
        """A row a number: first those of the whole suite, then the pass rate of every task."""
        return [row for system in self.result.systems for row in _system_rows(system)]

    def data(self) -> Any:
        return sentences_as_read(REPORT(self.result), self.result)

    def figures(self) -> Mapping[str, Figure]:
        return report_figures(self.shown)

    def not_drawn(self) -> Mapping[str, str]:
        return {
            name: why.reason
            for name, why in drawn_or_why_not(self.shown).items()
            if isinstance(why, Unavailable)
        }

    def cases(self) -> Sequence[TestSuite]:
        from passhat.reporters.test_cases import task_suites

        return task_suites(self.result)

    def page(self, options: DisplayOptions) -> Mapping[str, Any]:
        from passhat.reporters.answers.report_page import page_of

        return page_of(self.shown, options)

    def agents(self) -> Sequence[str]:
        return [system.name for system in self.result.systems]

    def caption(self) -> str:
        """What was run, which numbers the table has, and what its brackets are."""
        systems, level = self.result.systems, percent(self.result.provenance.options.confidence)
        if len(systems) == 1:
            who, whose = headline.names(systems), ""
            what = "pass@1, pass^k and pass@k"
        else:
            ks = shown_ks(systems, self.result.provenance.options.ks)
            who = plural(len(systems), "agent")
            *others, last = (metric_label(f"pass^{k}") for k in ks)
            what = " and ".join(filter(None, (", ".join(others), last)))
            whose = f" of {last}"
            if self.paper_table():
                what, whose = "pass@1, pass^k and pass@k", ""
        ran = common_design(systems)
        on = f" on {ran.replace(' x ', ', ')} of each" if ran else ""
        caption = (
            f"{what} of {who}{on}, in percent. Brackets are {level} confidence intervals{whose}: "
            "for these tasks, if they were run again, and for similar tasks."
        )
        if len(systems) > 1 and any(system.errors.count for system in systems):
            how = "excl." if systems[0].errors.policy == "fail" else "incl."
            caption += f" Errors are the share of trials that errored; {how} errors is {last} "
            caption += f"{'without' if how == 'excl.' else 'with'} them."
        if len(systems) > 1 and any(
            system.pass_hat(k).value is None for system in systems for k in ks
        ):
            caption += " A dash: some task has fewer than k trials."
        return caption

    def paper_table(self) -> Table | None:
        """Of several agents and several k that were asked for, each number with its intervals."""
        systems, asked = self.result.systems, self.result.provenance.options.ks
        if len(systems) == 1 or asked is None or len(ks := shown_ks(systems, asked)) == 1:
            return None
        return numbers_table(systems, ks)

    def methods(self) -> str:
        """How the numbers of a report were made, in sentences that a reviewer can check."""
        report = self.result
        designs, origin = [system.design for system in report.systems], report.provenance
        fewest, most = min(d.fewest_runs for d in designs), max(d.most_runs for d in designs)
        runs = f"{fewest}" if fewest == most else f"{fewest} to {most}"
        smallest, largest = (end(d.tasks for d in designs) for end in (min, max))
        tasks = plural(largest, "task")
        if smallest < largest:
            tasks = f"{smallest} to {tasks}"
        who = plural(len(report.systems), "agent")
        made_from = (
            f"seed {origin.options.seed}, fingerprint of the trials {origin.input_sha256[:12]}"
        )
        counted = "counted as failures" if origin.options.errors == "fail" else "left out"
        parts = (
            f"We ran {who} {runs} times on each of {tasks}.",
            (_CAPABILITY if len(report.systems) == 1 or self.paper_table() else "") + RELIABILITY,
            _intervals(report.systems[0], origin),
            *_families(report.systems),
            f"Trials that errored were {counted}.",
            f"Computed with passhat {origin.versions['passhat']} ({made_from}).",
        )
        return " ".join(parts)


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


_CAPABILITY = "pass@k is the unbiased estimator of Chen et al. (2021, arXiv:2107.03374). "
RELIABILITY = (
    "pass^k, also called reliability@k, is the chance that all k trials of a task pass (Yao et "
    "al., 2024, arXiv:2406.12045), estimated without bias from the counts and averaged over "
    "tasks; with k = 1 it is pass@1."
)

_NAMED = "stochastically ordered distributions"
_ORDERED = (
    "distributions of each task's counts, ordered such that one more failure never raises a bound"
)
"""What these are, to readers who have not seen the name."""


def _families(systems: Sequence[SystemReport]) -> list[str]:
    """What similar tasks are where tasks have families, and intervals for other families."""
    means = [(system.name, system.mean_score.tasks_like_these) for system in systems]
    known = [(name, mean) for name, mean in means if isinstance(mean, Estimate) and mean.families]
    if not known:
        return []
    count = max(mean.families or 0 for _, mean in known)
    if count >= FEWEST_FAMILIES:
        return [f"Numbers for similar tasks are for families like these {count}."]
    others = [
        f"{span(mean.family_interval)}{f' for {short(name)}' if len(systems) > 1 else ''}"
        for name, mean in known
        if mean.family_interval is not None
    ]
    beyond = f"; for other families mean scores are {', '.join(others)}" if others else ""
    return [f"Similar tasks means tasks from these {count} families{beyond}."]


def _intervals(system: SystemReport, origin: Provenance) -> str:
    level = percent(origin.options.confidence)
    metric = system.pass_hat(max(system.ks)) if system.ks else system.mean_score
    scopes = [
        f"{where} ({number.method.replace(_NAMED, _ORDERED)})"
        for where, number in (
            ("these tasks", metric.this_suite),
            ("similar tasks", metric.tasks_like_these),
        )
        if isinstance(number, Estimate)
    ]
    return (
        f"Brackets are {level} confidence intervals for {' and for '.join(scopes)}; the "
        "first treats the tasks as fixed, the second as a sample of more tasks of their kind."
        if scopes
        else f"Confidence intervals are at {level}."
    )


# The JSON of a report: numbers unrounded, the same bytes for the same input and seed.


class SeedsObject(TypedDict):
    """The mean of each seed, and how far seeds move the suite."""

    means: dict[str, float]
    variance: NumberObject
    within: NotRequired[float]
    mean_score: NotRequired[NumberObject]
    seeds: NotRequired[int]


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


class LabelCounts(TypedDict):
    """How many tasks have each label."""

    solid: int
    flaky: int
    broken: int
    undecided: int


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


def _metric(leaders: Leaders) -> str:
    return f"pass^{leaders.k}"


def _verdict(system: SystemReport) -> str:
    return headline.verdict(as_people_grade(system))


def sentences_as_read(written: Any, report: Report) -> Any:
    """A report as JSON, whose sentences on a run that its gates ended early name no rate."""
    for system, read in zip(written["systems"], report.as_read.systems, strict=True):
        if read.counts_only:
            system["verdict"] = headline.verdict(read)
    return written


def _metrics(system: SystemReport) -> dict[str, MetricObject]:
    """Every metric; reliability@k is the suite's mean pass^k, under the name some know it by."""
    metrics = {name: metric_object(metric) for name, metric in system.metrics.items()}
    return metrics | {f"reliability@{k}": metrics[f"pass^{k}"] for k in system.ks}


def _seeds(system: SystemReport) -> SeedsObject | UnavailableObject:
    spread = system.seeds
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


def _decay(system: SystemReport) -> DecayObject:
    decay = system.decay
    return {
        "pass^k": _curve(decay.pass_hat),
        "pass@k": _curve(decay.pass_at),
        "model": _curve(decay.beyond),
        "run_order": _run_order(decay.run_order),
    }


def _curve(points: Sequence[CurvePoint]) -> list[NumberObject]:
    curve = [{"k": point.k, **number_object(point.estimate)} for point in points]
    return cast("list[NumberObject]", curve)


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


def _task_table(system: SystemReport) -> list[TaskRow]:
    return list(system.tasks)


def _labels(system: SystemReport) -> LabelCounts:
    return cast(LabelCounts, {label: system.tasks.count(label) for label in LABELS})


def _features(system: SystemReport) -> dict[str, FeatureObject]:
    return {name: _feature(feature) for name, feature in system.features.items()}


def _tools(system: SystemReport) -> Mapping[str, Number]:
    return system.tools


def _each_step(chain: StepChain) -> Mapping[str, Number]:
    return chain.steps


def _feature(feature: ResourceUse) -> FeatureObject:
    names = ("mean", "passed", "failed", "errored", "difference", "association", "median", "p95")
    numbers = {name: number_object(getattr(feature, name)) for name in names}
    shown = cast(FeatureObject, {"trials": feature.trials, **numbers})
    if feature.per_streak:
        shown["per_success"] = number_object(feature.per_success)
        shown["per_streak"] = {str(k): number_object(n) for k, n in feature.per_streak.items()}
    return shown


def _difference(level: FactorLevel) -> NumberObject | None:
    number = level.difference
    if number is None or isinstance(number, Unavailable):
        return None if number is None else {"value": None, "reason": number.reason}
    return {
        "value": number.value,
        "interval": interval_object(number.interval),
        "method": number.method,
        "confidence": number.confidence,
        "scope": number.scope,
        "tasks": number.tasks,
    }


def _of_effect(name: str) -> Callable[[Factor], NumberObject]:
    def number(factor: Factor) -> NumberObject:
        effect = factor.effect
        return number_object(effect if isinstance(effect, Unavailable) else getattr(effect, name))

    return number


_RUN_COUNTS = JsonShape(
    "run_counts",
    Design,
    "How many trials the tasks have.",
    "fewest=fewest_runs typical=typical_runs most=most_runs",
)
_VARIANCE = JsonShape(
    "variance",
    VarianceSplit,
    "Where the variation comes from: differences between tasks, and luck.",
    "between_tasks within_tasks luck icc reliability families sentence",
    sentence=luck,
)
_DISTURBANCE = JsonShape(
    "disturbance",
    Disturbance,
    "What moved trials together, so that they are not independent; rounds are counted from 1.",
    "kind rounds failed runs tasks p_value began ended change",
)
_LEVEL = JsonShape(
    "factor_level",
    FactorLevel,
    "A level of a factor: its rate, its difference from the first and its share of that rate.",
    "name tasks runs rate difference p_value kept",
    difference=_difference,
)
_FACTOR = JsonShape(
    "factor",
    Factor,
    "What a condition of trials moves: how often two trials of a task differ, and its levels.",
    "name luck moved share p_value worst_levels worst k with_one with_others like_these levels "
    "judged apart",
    luck=_of_effect("luck"),
    moved=_of_effect("moved"),
    share=_of_effect("share"),
    parts=[_LEVEL],
)
_HAL = JsonShape(
    "hal_metric",
    HalMetric,
    "A metric of HAL's reliability evaluation: our number, and what HAL's own formula gives.",
    "number hal_value",
)
_TASK = JsonShape(
    "task",
    TaskRow,
    "One task; `sequence` is its trials in order as P, F and E.",
    "name runs passed failed errored rate=rate.value interval=rate.interval mean_score label "
    "label_chance=chance more_runs sequence",
)
_BAR = JsonShape(
    "bar",
    BarCount,
    "Which tasks have a pass^k that clears their bar.",
    "k bar above below undetermined model_share",
)
_STEPS = JsonShape(
    "steps",
    StepChain,
    "Tasks with steps: the pass rate of each among the trials that reached it, and of all of them.",
    "steps all_steps weakest",
    steps=_each_step,
)
SYSTEM = JsonShape(
    "system",
    SystemReport,
    "Everything measured about one agent; reliability@k is the suite's mean pass^k.",
    "name verdict tasks=design.tasks trials=design.trials errors=design.errors runs=design metrics "
    "variance noise seeds rounds disturbances decay task_table labels bars error_policy=errors "
    "features tools unsettled excluded factors hal levels tags steps notes",
    verdict=_verdict,
    metrics=_metrics,
    seeds=_seeds,
    decay=_decay,
    task_table=_task_table,
    labels=_labels,
    features=_features,
    tools=_tools,
    parts=[
        _RUN_COUNTS,
        _VARIANCE,
        noise_shape(noise_sentence),
        _DISTURBANCE,
        _TASK,
        _BAR,
        _FACTOR,
        _HAL,
        _STEPS,
    ],
)
_LEADERS = JsonShape(
    "leaders",
    Leaders,
    "The agents that may truly be first: one apart from all others, or several that are tied.",
    "metric names values compared tasks left_out scope method confidence",
    metric=_metric,
)
REPORT = JsonShape(
    "report",
    Report,
    "A passhat report.",
    "schema systems leaders provenance notes",
    parts=[SYSTEM, _LEADERS],
)
