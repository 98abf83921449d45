"""Find keys and other secrets that are written out in a suite file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from passhat.records.redaction import environment_redactor
from passhat.records.secrets import has_certain_shape
from passhat.suite.problems import Path, Problem
from passhat.suite.references import REFERENCE
from passhat.suite.yaml_tree import Tree

TOKEN = re.compile(r"[A-Za-z0-9_+/=.-]{20,}")
SECRET_NAME = re.compile(r"authorization|cookie|api.?key|token|secret|password", re.IGNORECASE)

HOLDERS = ("headers", "env")
PROSE = ("prompt", "expect", "answer", "script", "description", "system", "rubric")


def holds_secrets(path: Path) -> bool:
    """Whether a part of the suite is a place for secrets: its references stay as they are.

    >>> holds_secrets(("servers", "crm", "headers", "Authorization"))
    True
    >>> holds_secrets(("tasks", 0, "prompt"))
    False
    """
    if path[:1] == ("servers",) and len(path) > 3:
        return path[2] in HOLDERS
    owner = _settings(path)
    return bool(owner) and (owner[0] == "api_key" or (len(owner) > 1 and owner[0] in HOLDERS))


def literal_secrets(tree: Tree) -> Iterator[Problem]:
    """Texts of the suite that look like a secret."""
    for path, text in _texts(tree.value, ()):
        name = next((str(part) for part in reversed(path) if isinstance(part, str)), "")
        if _is_written_out(text, name, path):
            hint = re.sub(r"\W+", "_", name).upper().strip("_") or "KEY"
            yield tree.problem(
                path,
                f"looks like a secret written out: keep it in the environment "
                f"and write ${{{hint}}} here",
            )


def secret_names(tree: Tree, env: Mapping[str, str]) -> Iterator[Problem]:
    """Names and tags that hold the value of a secret variable: they are shown in every report."""
    redactor = environment_redactor(env)
    for path, text in _texts(tree.value, ()):
        words = [part for part in path if isinstance(part, str)]
        if words[-1:] in (["name"], ["tags"]) and redactor.clean(text) != text:
            yield tree.problem(path, "holds a secret, and is shown in every report: rename it")


def _settings(path: Path) -> Path:
    """The part of a path below the system, agent, judge or defaults it belongs to."""
    if path[:1] in (("agents",), ("systems",)):
        return path[2:]
    return path[1:] if path[:1] in (("judge",), ("defaults",)) else ()


def _is_written_out(text: str, name: str, path: Path) -> bool:
    # Of a reference only the default is written in the file.
    literal = REFERENCE.sub(lambda m: f" {m['operand'] if m['operator'] == ':-' else ''} ", text)
    if has_certain_shape(literal):
        return not any(part in PROSE for part in path)
    if not holds_secrets(path):
        return False
    if any(_is_random(match) for match in TOKEN.findall(literal)):
        return True
    bare = literal.removeprefix("Bearer").removeprefix("Basic").strip()
    return bool(SECRET_NAME.search(name)) and len(bare) >= 12 and "env" not in path[-1:]


def _is_random(text: str) -> bool:
    """Whether letters and digits are mixed as in no word or path."""
    changes = len(re.findall(r"(?<=[a-zA-Z])(?=\d)|(?<=\d)(?=[a-zA-Z])", text))
    return changes >= 4 and "/" not in text[:1]


def _texts(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _texts(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _texts(inner, (*path, index))
