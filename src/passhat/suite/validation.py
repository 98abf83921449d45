"""From a tree to the models of the suite, with every problem reported at its place."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import AliasChoices, BaseModel, ValidationError
from pydantic.fields import FieldInfo

from passhat.messages import closest
from passhat.suite.problems import Path, Problem, did_you_mean, dotted, shown
from passhat.suite.schema import SuiteModel
from passhat.suite.system_schema import SYSTEM_KINDS
from passhat.suite.yaml_tree import Tree

_NO_PLUGINS = "PYDANTIC_DISABLE_PLUGINS"
# What people coming from other tools write, and what it is called here.
OTHER_WORDS = {
    "trials": "runs",
    "repeat": "runs",
    "epochs": "runs",
    "samples": "runs",
    "assert": "expect",
    "assertions": "expect",
    "expectations": "expect",
    "instructions": "system",
    "question": "prompt",
    "input": "prompt",
    "id": "name",
    "cmd": "command",
    "argv": "command",
    "environment": "env",
    "function": "python",
    "endpoint": "url",
    "tests": "tasks",
    "providers": "systems",
    "equals": "exact",
    "matches": "regex",
    "pattern": "regex",
    "max_steps": "max_turns",
}

_FORMS: dict[str | int, str] = {
    "python": "module:function",
    "http": "an address that begins with http:// or https://",
    "url": "an address that begins with http:// or https://",
    "base_url": "an address that begins with http:// or https://",
}
"""How the value of a key is written, where a pattern checks it."""


def validate(tree: Tree) -> tuple[SuiteModel | None, list[Problem]]:
    """The models, or everything that is wrong with the tree."""
    if not isinstance(tree.value, dict):
        came = "nothing" if tree.value is None else shown(tree.value)
        return None, [tree.problem((), f"a suite is a mapping of keys to values, got {came}")]
    _build_models()
    try:
        return SuiteModel.model_validate(tree.value), []
    except ValidationError as error:
        return None, list(_problems(error, tree))


def _build_models() -> None:
    """Build the models at their first use, without pydantic's plugins.

    To find plugins, pydantic reads the metadata of every installed package, which takes longer
    than building the models.
    """
    if SuiteModel.__pydantic_complete__ or _NO_PLUGINS in os.environ:
        return
    os.environ[_NO_PLUGINS] = "__all__"
    try:
        SuiteModel.model_rebuild()
    finally:
        del os.environ[_NO_PLUGINS]


def known_keys(path: Path) -> list[str]:
    """The keys that a part of the suite may have.

    >>> known_keys(("servers", "weather", "auth"))
    ['bearer_token_env']
    """
    annotation: Any = SuiteModel
    for part in path:
        annotation = _inside(annotation, part)
    return [
        name
        for model in _options(annotation)
        if isinstance(model, type) and issubclass(model, BaseModel)
        for key, field in model.model_fields.items()
        for name in spellings(key, field)
    ]


def spellings(key: str, field: FieldInfo) -> list[str]:
    """The keys under which a field may be written, the first being the one we teach."""
    alias = field.validation_alias
    if isinstance(alias, AliasChoices):
        return [str(choice) for choice in alias.choices]
    return [alias if isinstance(alias, str) else key]


def _problems(error: ValidationError, tree: Tree) -> Iterator[Problem]:
    seen = set()
    for fault in error.errors(include_url=False):
        path, rest = _path_in(tree.value, fault["loc"])
        message = _message(fault["type"], fault["msg"], fault.get("input"), path, rest)
        if (path, message) not in seen:
            seen.add((path, message))
            yield tree.problem(path, message)


def _path_in(value: Any, location: tuple[str | int, ...]) -> tuple[Path, str]:
    """The location as a path of the file, and what of it is not there (a key that is missing)."""
    path: list[str | int] = []
    rest = ""
    for part in location:
        # Pydantic also names members of unions: they are not keys of the file and fall away.
        members = len(value) if isinstance(value, list) else 0
        keys = value if isinstance(value, dict) else range(members)
        if part in keys:
            value = value[part]
            path.append(part)
        else:
            rest = str(part)
    return tuple(path), rest


def _message(kind: str, message: str, value: Any, path: Path, rest: str) -> str:
    if kind == "missing":
        return f'"{rest}" is missing'
    if kind == "extra_forbidden":
        return _unknown_key(path)
    if kind == "string_pattern_mismatch" and path and path[-1] in _FORMS:
        return f"must be {_FORMS[path[-1]]}, got {shown(value)}"
    text = message.removeprefix("Input ").removeprefix("String ").removeprefix("Value ")
    if isinstance(value, (dict, list, BaseModel)):
        return text
    if kind == "string_type":
        return f"should be a text, got {shown(value)}: put it in quotes"
    return f"{text}, got {shown(value)}"


def _unknown_key(path: Path) -> str:
    *parent, key = path
    if parent[:1] == ["agents"] and len(parent) == 2 and key in SYSTEM_KINDS:
        return (
            f'"{key}" is not a key of {dotted(tuple(parent))}, which is a model with a task: write '
            f"`{key}:` under systems: (with a name), and what it is asked under tasks:"
        )
    known = known_keys(tuple(parent))
    if not parent and key in known_keys(("defaults",)):
        return f'"{key}" is not a key of a suite: write it under defaults:, or in a task'
    near = closest(str(key), [*known, *(w for w, ours in OTHER_WORDS.items() if ours in known)])
    hint = did_you_mean(OTHER_WORDS.get(near, near) if near else key, known)
    return f'"{key}" is not a key of {dotted(tuple(parent)) or "a suite"}. {hint}'


def _inside(annotation: Any, part: str | int) -> Any:
    for option in _options(annotation):
        origin, arguments = get_origin(option), get_args(option)
        if origin is list and isinstance(part, int):
            return arguments[0]
        if origin is dict:
            return arguments[1]
        if isinstance(option, type) and issubclass(option, BaseModel):
            for key, field in option.model_fields.items():
                if part in spellings(key, field):
                    return field.annotation
    return None


def _options(annotation: Any) -> Iterator[Any]:
    """The members of a union, without what annotates them."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _options(get_args(annotation)[0])
    elif origin in (Union, UnionType):
        for member in get_args(annotation):
            yield from _options(member)
    else:
        yield annotation
