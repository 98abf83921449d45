"""Numbers and their intervals as plain data, the same in every JSON answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, NotRequired, TypedDict, TypeVar, cast

from passhat.analysis.reports.evidence import Provenance
from passhat.analysis.reports.parts import Metric
from passhat.records import ErrorPolicy
from passhat.stats.estimate import Estimate, Interval, Number, Scope, Unavailable

Shape = TypeVar("Shape")


class IntervalObject(TypedDict):
    """A closed interval."""

    low: float
    high: float


class EstimateObject(TypedDict):
    """A number with its interval, how both were made, and from how much."""

    k: NotRequired[int]
    value: float
    interval: NotRequired[IntervalObject | None]
    method: NotRequired[str]
    confidence: NotRequired[float]
    scope: NotRequired[Scope]
    tasks: NotRequired[int]
    runs: NotRequired[int]
    seed: NotRequired[int]
    notes: NotRequired[list[str]]


class UnavailableObject(TypedDict):
    """What cannot be known, and why."""

    k: NotRequired[int]
    value: None
    reason: str


NumberObject = EstimateObject | UnavailableObject


class KnownMetricObject(TypedDict):
    """One value with its interval in both scopes."""

    value: float
    this_suite: IntervalObject | None
    tasks_like_these: IntervalObject | None
    method: str
    confidence: float
    tasks: int | None
    runs: int | None
    excluded_tasks: int
    notes: NotRequired[list[str]]


MetricObject = KnownMetricObject | UnavailableObject


class SourceObject(TypedDict):
    """A file that was read; `read_as` says what in it became which part of a trial."""

    name: str
    format: str
    sha256: str
    read_as: dict[str, str]


class OptionsObject(TypedDict):
    """What the caller chose."""

    k: list[int] | None
    confidence: float
    errors: ErrorPolicy
    bars: dict[str, float] | float | None
    seed: int


class ProvenanceObject(TypedDict):
    """Input, versions, options: enough to make the answer again."""

    input_sha256: str
    sources: list[SourceObject]
    versions: dict[str, str]
    options: OptionsObject


def plain(value: Any) -> Any:
    """A frozen answer as dicts, lists and numbers."""
    if isinstance(value, (Estimate, Unavailable)):
        return number_object(value)
    if isinstance(value, Interval):
        return interval_object(value)
    if isinstance(value, Metric):
        return metric_object(value)
    if isinstance(value, Provenance):
        return provenance_object(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, Mapping):
        return {name: plain(part) for name, part in value.items()}
    return value


def json_object(value: Any, shape: type[Shape], **others: Any) -> Shape:
    """The attributes of a value that a JSON type names, as plain data, in the order of the type.

    `others` are the keys that are not attributes. What cannot be known keeps its reason.
    """
    if isinstance(value, Unavailable):
        return cast(Shape, number_object(value))
    found = {
        name: others[name] if name in others else plain(getattr(value, name))
        for name in shape.__annotations__
    }
    return cast(Shape, found)


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
    return cast(EstimateObject, found | ({"notes": list(number.notes)} if number.notes else {}))


def interval_object(interval: Interval | None) -> IntervalObject | None:
    """Both ends, or null."""
    return None if interval is None else {"low": interval.low, "high": interval.high}


def metric_object(metric: Metric) -> MetricObject:
    """One value, its intervals in both scopes, how they were made, and over how many tasks."""
    if metric.value is None:
        return {"value": None, "reason": metric.reason or ""}
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
    return cast(KnownMetricObject, found | ({"notes": notes} if notes else {}))


def provenance_object(provenance: Provenance) -> ProvenanceObject:
    """Input, versions, options."""
    options = provenance.options
    sources = [
        json_object(one, SourceObject, read_as=dict(one.read_as)) for one in provenance.sources
    ]
    return json_object(
        provenance,
        ProvenanceObject,
        sources=sources,
        options=json_object(options, OptionsObject, k=plain(options.ks)),
    )


def _scoped(number: Number) -> IntervalObject | None:
    return interval_object(number.interval) if isinstance(number, Estimate) else None
