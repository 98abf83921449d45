"""From a tree to the parts of the suite, with every problem reported at its place."""

from __future__ import annotations

import operator
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import date
from itertools import chain
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from msgspec import Meta

from passhat.arguments import BEYOND
from passhat.messages import closest, plural
from passhat.suite.fields import Part, Reads, Short
from passhat.suite.problems import Path, Problem, did_you_mean, dotted, shown
from passhat.suite.schema import AgentPart, DefaultsPart, SuitePart
from passhat.suite.system_schema import SYSTEM_KINDS
from passhat.suite.yaml_tree import Tree

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

UNIONS = (Union, UnionType)
TYPES: dict[Any, tuple[type, str]] = {
    str: (str, "a text"),
    int: (int, "a whole number"),
    float: (float, "a number"),
    bool: (bool, "true or false"),
    date: (date, "a date such as 2027-01-31"),
    Sequence: (list, "a list"),
    Mapping: (dict, "a mapping of keys to values"),
}
"""The declared types, what is read for them, and their names in messages."""

LIMITS = {
    "le": (operator.le, "at most"),
    "lt": (operator.lt, "less than"),
    "ge": (operator.ge, "at least"),
    "gt": (operator.gt, "greater than"),
}


def validate(tree: Tree) -> tuple[SuitePart | None, list[Problem]]:
    """The suite's parts, or everything that is wrong with the tree."""
    if not isinstance(tree.value, dict):
        came = "nothing" if tree.value is None else shown(tree.value)
        results = ". To read results, use `passhat report`" if isinstance(tree.value, str) else ""
        message = f"a suite is a mapping of keys to values, got {came}{results}"
        return None, [tree.problem((), message)]
    reader = _Reader(tree)
    suite = reader.read(SuitePart, tree.value, ())
    return (None if reader.problems else suite), reader.problems


class _Reader:
    """Reads values by the types that the parts declare, and collects the problems.

    What has a problem is read as None. A part is built once all its keys are right.
    """

    def __init__(self, tree: Tree) -> None:
        self.problems: list[Problem] = []
        self._tree = tree

    def read(self, kind: Any, value: Any, path: Path) -> Any:
        """The value as its declared type says."""
        notes = kind.__metadata__ if get_origin(kind) is Annotated else ()
        kind = kind.__origin__ if notes else kind
        for note in notes:
            if isinstance(note, Short) and not isinstance(value, dict):
                return self._part(kind, {note.key: value}, path, short=True)
        try:
            value = _checked(kind, notes, value)
        except ValueError as error:
            return self._refuse(path, str(error), value)
        origin, inside = get_origin(kind), get_args(kind)
        if origin in UNIONS:
            return self._any_of(inside, value, path)
        if origin is Sequence:
            return [self.read(inside[0], item, (*path, n)) for n, item in enumerate(value)]
        if origin is Mapping:
            return {
                self.read(inside[0], key, (*path, key)): self.read(inside[1], item, (*path, key))
                for key, item in value.items()
            }
        return self._part(kind, value, path) if _is_part(kind) else value

    def _part(
        self, kind: type[Part], value: Mapping[str, Any], path: Path, *, short: bool = False
    ) -> Part | None:
        before, unknown, given = len(self.problems), set(value), {}
        for name, keys in kind.spellings().items():
            if written := [key for key in keys if key in value]:
                unknown.difference_update(written)
                key, *again = written
                for other in again:
                    self._add((*path, other), f'means the same as "{key}" beside it: keep one')
                inside = path if short else (*path, key)
                given[name] = self.read(kind.field_types()[name], value[key], inside)
            elif not hasattr(kind, name):
                self._add(path, f'"{keys[0]}" is missing')
        for key in unknown:
            self._add((*path, key), _unknown_key(kind, key, path))
        if len(self.problems) > before:
            return None
        part = kind(**given)
        if (broken := part.broken_rule()) is not None:
            self._add(path, broken)
        return part

    def _any_of(self, options: Sequence[Any], value: Any, path: Path) -> Any:
        """The value as the first of the options that takes it; else the problems of each."""
        if value is None and NoneType in options:
            return None
        before = len(self.problems)
        for option in options:
            if option is NoneType:
                continue
            start = len(self.problems)
            found = self.read(option, value, path)
            if len(self.problems) == start:
                del self.problems[before:]
                return found
        return None

    def _refuse(self, path: Path, message: str, value: Any) -> None:
        if isinstance(value, (dict, list)):
            came = "a list" if isinstance(value, list) else "a mapping"
            self._add(path, f"{message}, got {came}")
        else:
            quote = ": put it in quotes" if message == "should be a text" else ""
            self._add(path, f"{message}, got {shown(value)}{quote}")

    def _add(self, path: Path, message: str) -> None:
        self.problems.append(self._tree.problem(path, message))


def _is_part(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Part)


def _checked(kind: Any, notes: Sequence[Any], value: Any) -> Any:
    """The value, apart from what is inside it; ValueError says why it is not right."""
    for note in notes:
        if isinstance(note, Reads) and isinstance(value, note.of):
            value = note.function(value)
    origin = get_origin(kind)
    if origin is Literal and value not in get_args(kind):
        *others, last = map(repr, get_args(kind))
        raise ValueError(f"should be {', '.join(others)} or {last}")
    if kind is Any or origin in (Literal, *UNIONS):
        return value
    taken, name = TYPES[Mapping if _is_part(kind) else origin or kind]
    if taken is float and type(value) is int and abs(value) <= sys.float_info.max:
        value = float(value)
    if type(value) is not taken or value != value:  # true is no integer, and NaN no number
        raise ValueError(f"should be {name}")
    if isinstance(value, int) and not -BEYOND < value < BEYOND:
        raise ValueError(f"should be {'below ' if value > 0 else 'above -'}2**63")
    for note in notes:
        if isinstance(note, Meta):
            _check_limits(note, value)
    return value


def _check_limits(limits: Meta, value: Any) -> None:
    for name, (holds, words) in LIMITS.items():
        limit = getattr(limits, name)
        if limit is not None and not holds(value, limit):
            raise ValueError(f"should be {words} {limit}")
    noun = "character" if isinstance(value, str) else "item"
    if limits.min_length is not None and len(value) < limits.min_length:
        raise ValueError(f"should have at least {plural(limits.min_length, noun)}")
    if limits.max_length is not None and len(value) > limits.max_length:
        raise ValueError(f"should have at most {plural(limits.max_length, noun)}")
    # As in a JSON Schema, $ is the very end: Python's also matches before a last line break.
    if limits.pattern is not None and not re.search(limits.pattern.replace("$", r"\Z"), value):
        raise ValueError(f"must be {limits.description}")


def _unknown_key(part: type[Part], key: str, path: Path) -> str:
    if part is AgentPart and key in SYSTEM_KINDS:
        return (
            f'"{key}" is not a key of {dotted(path)}, which is a model with a task: write '
            f"`{key}:` under systems: (with a name), and what it is asked under tasks:"
        )
    known = list(chain.from_iterable(part.spellings().values()))
    if part is SuitePart and key in DefaultsPart.spellings():
        return f'"{key}" is not a key of a suite: write it under defaults:, or in a task'
    near = closest(key, [*known, *(w for w, ours in OTHER_WORDS.items() if ours in known)])
    hint = did_you_mean(OTHER_WORDS.get(near, near) if near else key, known)
    return f'"{key}" is not a key of {dotted(path) or "a suite"}. {hint}'
