"""Results as plain data, for JSON: numbers with intervals, and objects that show dataclasses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict, cast

from passhat.arguments import ReportOptions
from passhat.records.trial import Source
from passhat.stats.estimate import Estimate, Interval, Number, Scope, Unavailable

if TYPE_CHECKING:
    from passhat.analysis.reports.parts import Corrected, Metric


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


class LimitsObject(TypedDict):
    """A number of which only limits are known: it lies within them, and nothing says where."""

    value: None
    interval: IntervalObject | None
    method: str
    confidence: float
    scope: NotRequired[Scope]
    tasks: NotRequired[int]
    runs: NotRequired[int]
    seed: NotRequired[int]
    notes: NotRequired[list[str]]


NumberObject = EstimateObject | UnavailableObject


class CorrectedObject(TypedDict):
    """The number as people would have graded the trials, from their labels.

    `limits` are where pass^k lies whatever the judge's errors are, where labels give no number.
    """

    value: float | None
    this_suite: IntervalObject | None
    tasks_like_these: IntervalObject | None
    limits: IntervalObject | None
    labels: int
    method: NotRequired[str]
    reason: NotRequired[str]


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
    corrected: NotRequired[CorrectedObject]


MetricObject = KnownMetricObject | UnavailableObject


class JsonShape:
    """A JSON object that shows a dataclass: its keys in order, and what they hold.

    A key is an attribute of the value; "require=gate.require" is one under another name. `computed`
    are functions of the value for the other keys, each with the type of its key as annotation.
    `parts` are the shapes of what the value holds: what has none is written as all its fields. The
    key "schema" is this shape's own. JSON Schemas are generated from `name`, `about` and types.

    >>> INTERVAL = JsonShape("span", Interval, "Both ends.", "schema from=low width")
    >>> INTERVAL(Interval(0.25, 0.75))
    {'schema': 'passhat.span/1', 'from': 0.25, 'width': 0.5}
    """

    def __init__(
        self,
        name: str,
        source: type,
        about: str,
        keys: str,
        *,
        parts: Sequence[JsonShape] = (),
        **computed: Callable[[Any], Any],
    ) -> None:
        self.name, self.source, self.about, self.computed = name, source, about, computed
        self.schema = f"passhat.{name}/1"
        self.shapes: Mapping[type, JsonShape] = {part.source: part for part in (*parts, self)}
        self.paths: dict[str, str] = {}
        for key in keys.split():
            own, _, path = key.partition("=")
            self.paths[own] = path or own
        read = {key: computed.get(key) or attrgetter(path) for key, path in self.paths.items()}
        self._read = read | ({"schema": lambda _: self.schema} if "schema" in read else {})

    def __call__(self, value: Any) -> dict[str, Any]:
        return {key: to_json(read(value), self.shapes) for key, read in self._read.items()}


def to_json(value: Any, shapes: Mapping[type, JsonShape] = MappingProxyType({})) -> Any:
    """A frozen answer as dicts, lists and numbers."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if (shape := shapes.get(type(value))) is not None:
        return shape(value)
    if isinstance(value, (Estimate, Unavailable)):
        return number_object(value)
    if isinstance(value, Interval):
        return interval_object(value)
    if is_dataclass(value) and not isinstance(value, type):
        if (written := _parts_of_reports().get(type(value))) is not None:
            return written(value)
        return {field.name: to_json(getattr(value, field.name), shapes) for field in fields(value)}
    if isinstance(value, (list, tuple)):
        return [to_json(part, shapes) for part in value]
    if isinstance(value, Mapping):
        return {name: to_json(part, shapes) for name, part in value.items()}
    return value


def number_object(number: Number | float) -> NumberObject:
    """A number with its interval, or null with the reason."""
    if isinstance(number, Unavailable):
        return {"value": None, "reason": number.reason}
    if isinstance(number, float):
        return {"value": number}
    shown: dict[str, Any] = {
        "value": number.value,
        "interval": interval_object(number.interval),
        "method": number.method,
        "confidence": number.confidence,
    }
    if number.scope is not None:
        shown["scope"] = number.scope
    for name in ("tasks", "runs", "seed"):
        if getattr(number, name) is not None:
            shown[name] = getattr(number, name)
    return cast(EstimateObject, shown | ({"notes": list(number.notes)} if number.notes else {}))


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
    shown: dict[str, Any] = {
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
    if metric.corrected is not None:
        shown["corrected"] = _corrected_object(metric.corrected)
    return cast(KnownMetricObject, shown | ({"notes": notes} if notes else {}))


def _corrected_object(corrected: Corrected) -> CorrectedObject:
    here, others = corrected.this_suite, corrected.tasks_like_these
    number = here or others
    shown: CorrectedObject = {
        "value": number.value if isinstance(number, Estimate) else None,
        "this_suite": _scoped(here),
        "tasks_like_these": _scoped(others),
        "limits": interval_object(corrected.limits),
        "labels": corrected.labels,
    }
    if isinstance(number, Estimate):
        shown["method"] = number.method
    else:
        shown["reason"] = number.reason
    return shown


def _scoped(number: Number) -> IntervalObject | None:
    return interval_object(number.interval) if isinstance(number, Estimate) else None


def _read_as(source: Source) -> dict[str, str]:
    return dict(source.read_as)


@cache
def _parts_of_reports() -> Mapping[type, Callable[[Any], Any]]:
    """What every answer writes in the same way; it takes the statistics, which lists do not."""
    from passhat.analysis.reports.parts import Metric

    return {Metric: metric_object, (shape := provenance_shape()).source: shape}


@cache
def provenance_shape() -> JsonShape:
    """What answers say of where they come from."""
    from passhat.analysis.reports.evidence import Provenance

    return JsonShape(
        "provenance",
        Provenance,
        "Input, versions, options: enough to make the answer again.",
        "input_sha256 sources versions options",
        parts=(
            JsonShape(
                "source",
                Source,
                "A file that was read; `read_as` says what in it became which part of a trial.",
                "name format sha256 read_as ended",
                read_as=_read_as,
            ),
            JsonShape(
                "options",
                ReportOptions,
                "What the caller chose.",
                " ".join(
                    "k=ks" if option.name == "ks" else option.name
                    for option in fields(ReportOptions)
                ),
            ),
        ),
    )
