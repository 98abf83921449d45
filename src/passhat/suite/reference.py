"""The suite file described from its parts: a JSON Schema for editors, a page for people."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import itertools
import json
import re
from collections.abc import Mapping, Sequence
from datetime import date
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from msgspec import Meta

from passhat.messages import capitalised
from passhat.records.suite import TARGETS
from passhat.suite import schema, task_schema
from passhat.suite.task_schema import Part, Reads, Short

JSON_TYPES: Mapping[Any, Mapping[str, str]] = {
    Any: {},
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    date: {"type": "string", "format": "date"},
}
LIMITS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "min_length": "minLength",
    "max_length": "maxLength",
    "pattern": "pattern",
}

# In the order of the page.
PARTS: tuple[tuple[str, type[Part]], ...] = (
    ("The suite", schema.SuitePart),
    ("`servers:`", schema.ServerPart),
    ("`agents:`", schema.AgentPart),
    ("`systems:`", schema.SystemPart),
    ("`tasks:`", task_schema.TaskPart),
    ("`prompt:` of a server", task_schema.PromptPart),
    ("`resources:` of a server", task_schema.ResourcePart),
    ("`steps:` of a task", task_schema.StepPart),
    ("`user:` of a task", task_schema.ScenarioPart),
    ("`users:`", schema.UserPart),
    ("`expect:`", task_schema.ExpectPart),
    ("`number:`", task_schema.NumberPart),
    ("`range:`", task_schema.BoundsPart),
    ("`length:`", task_schema.LengthPart),
    ("`called:`", task_schema.CalledPart),
    ("`called_with:`", task_schema.CalledWithPart),
    ("`command:` as a grader", task_schema.CommandCheckPart),
    ("`tests:` as a grader", task_schema.TestsPart),
    ("`judge:` as a grader", task_schema.JudgeCheckPart),
    ("`workspace:`", task_schema.WorkspacePart),
    ("`solution:`", task_schema.SolutionPart),
    ("`tool_selection:`", task_schema.ToolSelectionPart),
    ("`defaults:`", schema.DefaultsPart),
    ("`factors:`", schema.FactorsPart),
    ("`wording:` of factors", schema.WordingPart),
    ("`gates:` in the long form", schema.GatePart),
    ("`budget:`", schema.SuiteBudgetPart),
    ("`budget:` of one trial", task_schema.BudgetPart),
    ("`resources:`", schema.ResourcesPart),
    ("`rate_limits:`", schema.RateLimitPart),
    ("`cassette:`", schema.CassettePart),
    ("`quarantine:`", schema.QuarantinePart),
    ("`judge:`", schema.JudgePart),
    ("how a model is called", schema.ModelFields),
    ("`prices:`", schema.PricesPart),
    ("`script:` of the model `scripted`", schema.BehaviourPart),
    ("`calls:` of a script", schema.CallPart),
    ("`faults:`", schema.FaultPart),
    ("`auth:` of a server", schema.AuthPart),
    ("`response:` of an endpoint", schema.AnswerPart),
    ("a value by reference", schema.ReferencePart),
)


def json_schema_text() -> str:
    """The JSON Schema of a suite file, as it ships."""
    return json.dumps(suite_json_schema(), indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def suite_json_schema() -> dict[str, Any]:
    """The JSON Schema of a suite file."""
    definitions: dict[str, Any] = {}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "passhat suite",
        **_definition(schema.SuitePart, definitions),
        "$defs": definitions,
    }


def reference_tables() -> str:
    """Every part of the suite file as a table of its keys, in Markdown."""
    return "\n".join(_section(heading, part) for heading, part in PARTS)


def target_list() -> str:
    """The targets of expectations, with what other tools call them."""
    own = [name for name, meant in TARGETS.items() if name == meant]
    others = [f"`{name}` (`{meant}`)" for name, meant in TARGETS.items() if name != meant]
    known = ", ".join(f"`{name}`" for name in own)
    return f"{known}. Understood too: {', '.join(others)}, and any of them after `conversation.`."


def _definition(part: type[Part], definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of a part; those of the parts inside it are added to `definitions`."""
    names, docs = part.spellings(), _key_docs(part)
    fields = {
        name: _schema(part.field_type(name), definitions) | {"description": docs[name]}
        for name in names
    }
    for name, field in fields.items():
        if isinstance(default := getattr(part, name, None), (str, int, float)):
            field["default"] = default
    first = {names[name][0]: field for name, field in fields.items()}
    others = {key: field for name, field in fields.items() for key in names[name][1:]}
    required = [names[name][0] for name in fields if not hasattr(part, name)]
    return {
        "type": "object",
        "description": part.__doc__,
        "properties": first | others,
        "additionalProperties": False,
        **({"required": required} if required else {}),
    }


def _schema(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of a value of some type."""
    origin, inside = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _annotated_schema(inside[0], inside[1:], definitions)
    if origin in (Union, UnionType):
        return _any_of([_schema(kind, definitions) for kind in inside if kind is not NoneType])
    if origin is Literal:
        return {"type": "string", "enum": list(inside)}
    if origin is Sequence:
        return {"type": "array", "items": _schema(inside[0], definitions)}
    if origin is Mapping:
        names, values = (_schema(kind, definitions) for kind in inside)
        names.pop("type")
        return {"type": "object", "additionalProperties": values or True} | (
            {"propertyNames": names} if names else {}
        )
    if issubclass(kind, Part):
        if kind.__name__ not in definitions:
            definitions[kind.__name__] = {}  # a matcher may hold a matcher
            definitions[kind.__name__] = _definition(kind, definitions)
        return {"$ref": f"#/$defs/{kind.__name__}"}
    return dict(JSON_TYPES[kind])


def _annotated_schema(
    kind: Any, notes: Sequence[Any], definitions: dict[str, Any]
) -> dict[str, Any]:
    schema = _schema(kind, definitions)
    for note in notes:
        if isinstance(note, Short):
            schema = _any_of([_schema(kind.field_type(note.key), definitions), schema])
        elif isinstance(note, Reads) and note.schema:
            schema = _any_of([note.schema, schema])
        elif isinstance(note, Meta):
            limits = {word: getattr(note, name) for name, word in LIMITS.items()}
            schema |= {
                word.replace("Length", "Items") if "items" in schema else word: limit
                for word, limit in limits.items()
                if limit is not None
            }
    return schema


def _any_of(schemas: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return dict(schemas[0]) if len(schemas) == 1 else {"anyOf": list(schemas)}


def _key_docs(part: type[Part]) -> dict[str, str]:
    """The docstring under each field. Sources are read for it, which a run has no time for."""
    docs: dict[str, str] = {}
    for owner in reversed(part.__mro__[:-1]):
        docs |= _docstrings(owner.__module__)[owner.__name__]
    return docs


@functools.cache
def _docstrings(module: str) -> dict[str, dict[str, str]]:
    """The texts under the fields of every class in a module of the suite."""
    tree = ast.parse(inspect.getsource(importlib.import_module(module)))
    return {
        part.name: {
            field.target.id: str(text.value.value)
            for field, text in itertools.pairwise(part.body)
            if isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(text, ast.Expr)
            and isinstance(text.value, ast.Constant)
        }
        for part in tree.body
        if isinstance(part, ast.ClassDef)
    }


def _section(heading: str, part: type[Part]) -> str:
    definition = _definition(part, {})
    asked = schema.ModelFields
    shared = asked.spellings() if issubclass(part, asked) and part is not asked else ()
    rows = [
        f"| `{key}` | {_cell(_kind(field))} | {_default_cell(definition, key)} "
        f"| {_cell(field['description'])} |"
        for key, field in definition["properties"].items()
        if key not in shared
    ]
    return "\n".join(
        [
            f"## {capitalised(heading)}\n",
            f"{part.__doc__}\n",
            *([f"Also the keys of {_link('ModelFields')}.\n"] if shared else []),
            "| key | value | default | meaning |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    )


def _default_cell(definition: Mapping[str, Any], key: str) -> str:
    if key in definition.get("required", ()):
        return "**required**"
    default = definition["properties"][key].get("default", "")
    return "" if default == "" else f"`{json.dumps(default)}`"


def _kind(part: Mapping[str, Any]) -> str:
    """The type of a value in words."""
    if "$ref" in part:
        return _link(part["$ref"].rpartition("/")[2])
    if "anyOf" in part:
        return " or ".join(dict.fromkeys(_kind(option) for option in part["anyOf"]))
    if "enum" in part:
        return ", ".join(f"`{word}`" for word in part["enum"])
    if part.get("type") == "array":
        return f"list of {_kind(part.get('items', {}))}"
    if part.get("type") == "object" and "additionalProperties" in part:
        inner = part["additionalProperties"]
        return f"names to {_kind(inner) if isinstance(inner, Mapping) else 'anything'}"
    words = {"string": "text", "integer": "whole number", "boolean": "true or false"}
    kind = str(part.get("type", "anything"))
    return words.get(kind, kind) + _limits(part)


def _limits(part: Mapping[str, Any]) -> str:
    signs = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}
    limits = [f"{sign} {part[key]}" for key, sign in signs.items() if key in part]
    return f" ({', '.join(limits)})" if limits else ""


def _link(name: str) -> str:
    for heading, part in PARTS:
        if part.__name__ == name:
            anchor = re.sub(r"[^\w\s-]", "", heading).strip().lower().replace(" ", "-")
            words = heading.split(" ")[0].strip("`:") if "`" in heading else heading
            return f"[{words}](#{anchor})"
    return name.removesuffix("Part").lower()


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
