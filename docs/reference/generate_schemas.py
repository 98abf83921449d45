"""Writes the JSON Schemas of `--json` from the types of its answers: run it after changes."""

from __future__ import annotations

import enum
import json
import re
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from inspect import get_annotations
from pathlib import Path
from typing import (
    Any,
    Literal,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import passhat.reporters
from passhat.analysis.planning.plan import Plan
from passhat.analysis.reports.evidence import Provenance
from passhat.analysis.reports.parts import Metric
from passhat.cli.cassette import CassetteObject
from passhat.cli.run_output import event_types
from passhat.cli.setup import Checked, Listed
from passhat.dataclass import lazy_field
from passhat.ingest.rows import SCHEMA as TRIALS
from passhat.journeys.checks import RunPlan
from passhat.records import Trial
from passhat.reporters.answers.comparison import COMPARISON
from passhat.reporters.answers.diff import DIFF
from passhat.reporters.answers.explanation import EXPLANATION
from passhat.reporters.answers.judge import JUDGE
from passhat.reporters.answers.listings import (
    ARTEFACTS,
    RUN_LOG,
    RUNS,
    SEARCH,
    VALIDATED,
    MatrixObject,
    TryoutObject,
)
from passhat.reporters.answers.plan import GATE_PLANS, LABEL_PLANS, PlanHead
from passhat.reporters.answers.ranking import FRONTIER, PROFILE, RANKING
from passhat.reporters.answers.report import REPORT
from passhat.reporters.answers.run import RUN
from passhat.reporters.answers.trend import FLAKY, TREND
from passhat.reporters.answers.verdicts import VERDICTS
from passhat.reporters.data import (
    EstimateObject,
    IntervalObject,
    JsonShape,
    MetricObject,
    UnavailableObject,
    provenance_shape,
)
from passhat.stats.estimate import Estimate, Interval, Unavailable

FOLDER = Path(passhat.reporters.__file__).with_name("schemas")
SHAPES = (
    COMPARISON,
    DIFF,
    EXPLANATION,
    FLAKY,
    GATE_PLANS,
    LABEL_PLANS,
    JUDGE,
    PROFILE,
    RANKING,
    FRONTIER,
    REPORT,
    RUN,
    RUNS,
    ARTEFACTS,
    RUN_LOG,
    SEARCH,
    TREND,
    VERDICTS,
)
ANSWERS: dict[str, tuple[Any, ...]] = {
    **{shape.name: (shape,) for shape in SHAPES},
    "dry-run": (RunPlan,),
    "matrix": (MatrixObject,),
    "plan": (PlanHead, Plan),
}
"""Each answer, and the types whose fields it has."""
LISTS = {
    "cassettes": CassetteObject,
    "check": Checked,
    "list": Listed,
    "tryout": TryoutObject,
    "validation": VALIDATED,
}
"""Answers that are a list, and what it holds."""

Schema = dict[str, Any]
Shapes = Mapping[type, JsonShape]
NO_SHAPES: Shapes = {}

_WRITTEN_AS: dict[Any, Any] = {
    Estimate: EstimateObject,
    Unavailable: UnavailableObject,
    Interval: IntervalObject,
    Metric: MetricObject,
    Provenance: provenance_shape(),
}
"""What `to_json` writes in its own way, and the type of that."""
_SIMPLE = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


def schema_texts() -> Iterator[tuple[str, str]]:
    """Name and text of every schema that is generated."""
    for name, parts in ANSWERS.items():
        yield name, _text(name, _Definitions().root(parts))
    for name, entry in LISTS.items():
        yield name, _text(name, _Definitions().listing(entry))
    yield "events", _text("events", _Definitions().one_of(list(event_types())))
    yield "trials", _text("trials", _trial_lines())


class _Definitions:
    """Types as schemas; every type with fields becomes a definition that others refer to."""

    def __init__(self) -> None:
        self.found: dict[str, Schema] = {}
        self.owner: dict[str, object] = {}

    def root(self, parts: Sequence[Any]) -> Schema:
        """A closed object with the fields of all parts."""
        whole = self._closed(parts)
        return whole | ({"$defs": dict(sorted(self.found.items()))} if self.found else {})

    def listing(self, entry: type) -> Schema:
        """A list of such entries."""
        whole = self.of(list[entry])  # type: ignore[valid-type] # a type of the table above
        return whole | {"$defs": dict(sorted(self.found.items()))}

    def one_of(self, kinds: Sequence[type]) -> Schema:
        """A line that is one of several objects."""
        either = [self.of(kind) for kind in kinds]
        told = "A line of the events of a run; `event` says which."
        return {"description": told, "oneOf": either, "$defs": dict(sorted(self.found.items()))}

    def of(self, kind: Any, shapes: Shapes = NO_SHAPES) -> Schema:
        """The schema of a type; `shapes` has what is not written as all its fields."""
        origin, inner = get_origin(kind), get_args(kind)
        if kind in _SIMPLE:
            return {"type": _SIMPLE[kind]}
        if kind in _WRITTEN_AS:
            return self.of(_WRITTEN_AS[kind])
        if origin is Literal:
            return {"const": inner[0]} if len(inner) == 1 else {"enum": list(inner)}
        if origin in (Union, types.UnionType):
            return self._either(inner, shapes)
        if origin is tuple and inner[-1] is not Ellipsis:
            items = [self.of(part, shapes) for part in inner]
            return {"type": "array", "prefixItems": items, "items": False}
        if origin is lazy_field:  # written as what it holds
            return self.of(inner[0], shapes)
        if origin in (list, tuple):
            return {"type": "array", "items": self.of(inner[0], shapes)}
        if origin in (dict, Mapping):
            return {"type": "object", "additionalProperties": self.of(inner[1], shapes)}
        return self._named(shapes.get(kind, kind))

    def _either(self, kinds: Sequence[Any], shapes: Shapes) -> Schema:
        if all(kind in _SIMPLE for kind in kinds):
            return {"type": [_SIMPLE[kind] for kind in kinds]}
        return {"anyOf": [self.of(kind, shapes) for kind in kinds]}

    def _named(self, kind: Any) -> Schema:
        if isinstance(kind, JsonShape):
            name = kind.name
        else:
            name = re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__.removesuffix("Object")).lower()
        if self.owner.setdefault(name, kind) is not kind:
            raise TypeError(f"two types of one answer would both be called {name}")
        if name not in self.found:
            self.found[name] = {}  # a type may hold itself
            self.found[name] = self._closed([kind])
        return {"$ref": f"#/$defs/{name}"}

    def _closed(self, parts: Sequence[Any]) -> Schema:
        hints = {name: hint for part in parts for name, hint in _fields(part).items()}
        required = [name for name, hint in hints.items() if get_origin(hint) is not NotRequired]
        shapes = parts[0].shapes if isinstance(parts[0], JsonShape) else NO_SHAPES
        description = _description(parts[0])
        return ({"description": description} if description else {}) | {
            "type": "object",
            "properties": {
                name: self.of(
                    get_args(hint)[0] if get_origin(hint) is NotRequired else hint, shapes
                )
                for name, hint in hints.items()
            },
            "required": required,
            "additionalProperties": False,
        }


def _description(part: Any) -> str | None:
    """The first line of a docstring; a TypedDict made by a call has none of its own."""
    if isinstance(part, JsonShape):
        return part.about
    doc = part.__doc__
    return None if not doc or doc.startswith("dict(") else doc.partition("\n")[0]


def _fields(part: Any) -> dict[str, Any]:
    if isinstance(part, JsonShape):
        return {key: _key_type(part, key, path) for key, path in part.paths.items()}
    if not (is_dataclass(part) or is_typeddict(part)):
        raise TypeError(f"{part} has no fields: say in _SIMPLE or _WRITTEN_AS what it becomes")
    hints = get_type_hints(part, include_extras=True)
    if not is_dataclass(part):
        return hints
    return {field.name: hints[field.name] for field in fields(part)}


def _key_type(shape: JsonShape, key: str, path: str) -> Any:
    """What a function says that it returns, or what an attribute is annotated with."""
    if key == "schema":
        return Literal[shape.schema]
    if key in shape.computed:
        return get_type_hints(shape.computed[key], include_extras=True)["return"]
    # A module may import the types of its fields for type checkers alone.
    known = {source.__name__: source for source in shape.shapes}
    kind: Any = shape.source
    for name in path.split("."):
        member = getattr(kind, name, None)
        if isinstance(member, property):
            kind = get_type_hints(member.fget, localns=known)["return"]
        else:
            owner = next(one for one in kind.__mro__ if name in get_annotations(one))
            annotation = {name: owner.__annotations__[name]}
            field = {"__module__": owner.__module__, "__annotations__": annotation}
            kind = get_type_hints(type("_", (), field), localns=known)[name]
    return kind


def _trial_lines() -> Schema:
    """A line of a file of trials: the first names the schema, each other is one trial."""
    hints = get_type_hints(Trial)
    known = _Definitions()
    return {
        "description": "A line of a JSON Lines file of trials; what is missing is left out.",
        "oneOf": [
            {
                "description": "The first line.",
                "type": "object",
                "properties": {"schema": {"const": TRIALS}},
                "required": ["schema"],
                "additionalProperties": False,
            },
            {
                "description": "One attempt by one system at one task.",
                "type": "object",
                "properties": {
                    **{name: _filled(kind, known) for name, kind in hints.items()},
                    "human_labels": {"type": "string", "description": "Labels of people, as JSON."},
                },
                "required": [field.name for field in fields(Trial) if field.default is MISSING],
                "additionalProperties": False,
            },
        ],
    }


def _filled(kind: Any, known: _Definitions) -> Schema:
    """A column where it has a value; outcomes go by their words."""
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return {"enum": [member.name.lower() for member in kind]}
    there = [one for one in get_args(kind) if one is not type(None)]
    return known.of(there[0] if get_origin(kind) is types.UnionType else kind)


def _text(name: str, body: Schema) -> str:
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"passhat.{name}/1",
    }
    return json.dumps({**head, **body}, indent=2) + "\n"


def generated() -> Iterator[tuple[Path, str]]:
    """The schema of every answer."""
    for answer, text in schema_texts():
        yield FOLDER / f"{answer}.schema.json", text
