"""The suite file described from its models: a JSON Schema for editors, a page for people."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from passhat.records.task import TARGETS
from passhat.suite import expect_schema, schema, system_schema, task_schema
from passhat.suite.fields import SHORT_MARKER
from passhat.suite.validation import spellings

# In the order of the page.
PARTS: tuple[tuple[str, type[BaseModel]], ...] = (
    ("The suite", schema.SuiteModel),
    ("`servers:`", system_schema.ServerModel),
    ("`agents:`", schema.AgentModel),
    ("`systems:`", system_schema.SystemModel),
    ("`tasks:`", task_schema.TaskModel),
    ("`steps:` of a task", task_schema.StepModel),
    ("`expect:`", expect_schema.ExpectModel),
    ("`number:`", expect_schema.NumberModel),
    ("`range:`", expect_schema.BoundsModel),
    ("`length:`", expect_schema.LengthModel),
    ("`called:`", expect_schema.CalledModel),
    ("`called_with:`", expect_schema.CalledWithModel),
    ("`command:` as a grader", expect_schema.CommandCheckModel),
    ("`judge:` as a grader", expect_schema.JudgeCheckModel),
    ("`tool_selection:`", task_schema.ToolSelectionModel),
    ("`defaults:`", schema.DefaultsModel),
    ("`gates:` in the long form", schema.GateModel),
    ("`budget:`", schema.SuiteBudgetModel),
    ("`budget:` of one trial", task_schema.BudgetModel),
    ("`rate_limits:`", schema.RateLimitModel),
    ("`cassette:`", schema.CassetteModel),
    ("`quarantine:`", schema.QuarantineModel),
    ("`judge:`", schema.JudgeModel),
    ("how a model is asked", system_schema.ModelFields),
    ("`prices:`", system_schema.PricesModel),
    ("`script:` of the model `scripted`", system_schema.BehaviourModel),
    ("`calls:` of a script", system_schema.CallModel),
    ("`faults:`", system_schema.FaultModel),
    ("`auth:` of a server", system_schema.AuthModel),
    ("`response:` of an endpoint", system_schema.AnswerModel),
    ("a value by reference", system_schema.ReferenceModel),
)


def json_schema_text() -> str:
    """The JSON Schema of a suite file, as it ships."""
    return json.dumps(suite_json_schema(), indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def suite_json_schema() -> dict[str, Any]:
    """The JSON Schema of a suite file."""
    document = schema.SuiteModel.model_json_schema()
    for _, model in PARTS:
        _describe(document, model)
        _add_spellings(document, model)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **_pruned(_with_short_forms(document, document["$defs"])),
        "title": "passhat suite",
    }


def reference_tables() -> str:
    """Every part of the suite file as a table of its keys, in Markdown."""
    document = suite_json_schema()
    return "\n".join(_section(document, heading, model) for heading, model in PARTS)


def target_list() -> str:
    """The targets of expectations, with what other tools call them."""
    own = [name for name, meant in TARGETS.items() if name == meant]
    others = [f"`{name}` (`{meant}`)" for name, meant in TARGETS.items() if name != meant]
    known = ", ".join(f"`{name}`" for name in own)
    return f"{known}. Understood too: {', '.join(others)}, and any of them after `conversation.`."


def _describe(document: dict[str, Any], model: type[BaseModel]) -> None:
    """Give each key the docstring under its field: reading sources is too slow for every run."""
    properties = _definition(document, model)["properties"]
    for owner in reversed(model.__mro__):
        docs = _docstrings(owner.__module__).get(owner.__name__, {})
        for field, text in docs.items():
            if field in model.model_fields:
                first, *_ = spellings(field, model.model_fields[field])
                properties[first]["description"] = text


@functools.cache
def _docstrings(module: str) -> dict[str, dict[str, str]]:
    """The texts under the fields of every class in a module of the suite."""
    if not module.startswith("passhat."):
        return {}
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


def _add_spellings(document: dict[str, Any], model: type[BaseModel]) -> None:
    """What is understood under a second name is valid in an editor too."""
    properties = _definition(document, model)["properties"]
    for name, field in model.model_fields.items():
        first, *others = spellings(name, field)
        properties |= dict.fromkeys(others, properties[first])


def _definition(document: dict[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    if model is schema.SuiteModel:
        return document
    if model is system_schema.ModelFields:  # only ever part of others, so taken from one of them
        whole: dict[str, Any] = document["$defs"][system_schema.SystemModel.__name__]
        properties = {name: whole["properties"][name] for name in model.model_fields}
        return {"description": model.__doc__, "properties": properties}
    definition: dict[str, Any] = document["$defs"][model.__name__]
    return definition


def _with_short_forms(value: Any, definitions: Mapping[str, Any]) -> Any:
    """Where a part may be written as one of its values alone, say what that value may be."""
    if isinstance(value, list):
        return [_with_short_forms(item, definitions) for item in value]
    if not isinstance(value, dict):
        return value
    options = value.get("anyOf", [])
    if options and SHORT_MARKER in options[0]:
        part = definitions[options[1]["$ref"].rpartition("/")[2]]
        short = dict(part["properties"][options[0][SHORT_MARKER]])
        short.pop("description", None)
        value = value | {"anyOf": [short, *options[1:]]}
    return {key: _with_short_forms(item, definitions) for key, item in value.items()}


def _pruned(value: Any) -> Any:
    """Without what says nothing: generated titles, and null beside other types."""
    if isinstance(value, list):
        return [_pruned(item) for item in value if item != {"type": "null"}]
    if not isinstance(value, dict):
        return value
    kept = {
        key: {name: _pruned(inner) for name, inner in item.items()}
        if key in ("properties", "$defs")
        else _pruned(item)
        for key, item in value.items()
        if key != "title" and not (key == "default" and item is None)
    }
    if len(kept.get("anyOf", [])) == 1:
        kept |= kept.pop("anyOf")[0]
    return kept


def _section(document: dict[str, Any], heading: str, model: type[BaseModel]) -> str:
    definition = _definition(document, model)
    more = f"Also the keys of {_link('ModelFields')}.\n" if _asks_a_model(model) else ""
    required = definition.get("required", [])
    lines = [
        f"## {heading[0].upper()}{heading[1:]}\n",
        f"{definition['description']}\n",
        *([more] if more else []),
        "| key | value | default | meaning |",
        "|---|---|---|---|",
    ]
    shared = set(system_schema.ModelFields.model_fields) if _asks_a_model(model) else set()
    for key, part in definition["properties"].items():
        if key in shared:
            continue
        default = "**required**" if key in required else _default(part)
        meaning = _cell(part.get("description", ""))
        lines.append(f"| `{key}` | {_cell(_kind(part))} | {default} | {meaning} |")
    return "\n".join(lines) + "\n"


def _asks_a_model(model: type[BaseModel]) -> bool:
    return issubclass(model, system_schema.ModelFields) and model is not system_schema.ModelFields


def _default(part: Mapping[str, Any]) -> str:
    default = part.get("default")
    return "" if default in (None, [], {}, "") else f"`{json.dumps(default)}`"


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
    limits = [f"{sign} {part[key]:g}" for key, sign in signs.items() if key in part]
    return f" ({', '.join(limits)})" if limits else ""


def _link(name: str) -> str:
    for heading, model in PARTS:
        if model.__name__ == name:
            anchor = re.sub(r"[^\w\s-]", "", heading).strip().lower().replace(" ", "-")
            return (
                f"[{heading.split(' ')[0].strip('`:') if '`' in heading else heading}](#{anchor})"
            )
    return name.removesuffix("Model").lower()


def _cell(text: str) -> str:
    return " ".join(_cells(text))


def _cells(text: str) -> Iterator[str]:
    for word in text.split():
        yield word.replace("|", "\\|")
