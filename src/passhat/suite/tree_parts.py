"""The parts of a suite's tree: what is not of the form that is looked for is passed over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeGuard

from passhat.suite.problems import Path
from passhat.suite.yaml_tree import Tree


def entries(tree: Tree, key: str) -> list[tuple[Path, Mapping[str, Any]]]:
    """The mappings in a list of the suite, with where they stand."""
    found = enumerate(as_list(tree.value.get(key)))
    return [((key, index), entry) for index, entry in found if is_map(entry)]


def section(tree: Tree, key: str) -> list[tuple[Path, Mapping[str, Any]]]:
    """A mapping of the suite with its path; nothing where there is none."""
    found = tree.value.get(key)
    return [((key,), found)] if is_map(found) else []


def expectations(tree: Tree) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Every expectation of the suite with its path."""
    owners = [*entries(tree, "agents"), *entries(tree, "tasks"), *section(tree, "defaults")]
    for path, entry in owners:
        steps = [
            ((*path, "steps", index), step)
            for index, step in enumerate(as_list(entry.get("steps")))
            if is_map(step)
        ]
        for place, owner in [(path, entry), *steps]:
            for index, expectation in enumerate(as_list(owner.get("expect"))):
                if is_map(expectation):
                    yield (*place, "expect", index), expectation


def texts(value: Any) -> list[str]:
    """The texts of a list, or the one text.

    >>> texts("a"), texts(["a", 1]), texts(None)
    (['a'], ['a'], [])
    """
    return [text for text in (value if isinstance(value, list) else [value]) if is_text(text)]


def as_list(value: Any) -> list[Any]:
    """The list, or none where it is something else."""
    return value if isinstance(value, list) else []


def is_map(value: Any) -> TypeGuard[dict[Any, Any]]:
    """Whether it is a mapping."""
    return isinstance(value, dict)


def is_text(value: Any) -> TypeGuard[str]:
    """Whether it is a text."""
    return isinstance(value, str)
