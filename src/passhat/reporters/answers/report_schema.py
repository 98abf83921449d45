"""The JSON of a report as types: schema "passhat.report/1" is generated from them."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from passhat.analysis.reports.dependence import Kind
from passhat.analysis.reports.parts import ErrorSplit, Exclusion, Rounds, Unsettled
from passhat.analysis.reports.report import Label
from passhat.reporters.data import (
    IntervalObject,
    MetricObject,
    NumberObject,
    ProvenanceObject,
    UnavailableObject,
)
from passhat.reporters.noise_words import NoiseObject
from passhat.stats.estimate import Scope
from passhat.stats.variance import FamilyShares

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
