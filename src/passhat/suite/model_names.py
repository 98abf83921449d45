"""Unknown names of models, reported with their place in the file before a run starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from passhat.records.providers import is_model_name, unknown_model
from passhat.suite.consistency import JUDGES
from passhat.suite.problems import Path, Problem
from passhat.suite.tree_parts import entries, expectations, is_map, is_text, section
from passhat.suite.yaml_tree import Tree


def unknown_models(tree: Tree, variables: Mapping[str, str]) -> Iterator[Problem]:
    """Every name in the suite that is not the name of a model.

    The list of existing models is long, so only the first problem shows it.
    """
    reported: set[Path] = set()
    named = sorted(_named(tree) if is_map(tree.value) else (), key=lambda n: tree.mark(n[0]))
    for path, name, base_url in named:
        if path in reported or is_model_name(name, base_url=base_url, variables=variables):
            continue
        yield tree.problem(path, unknown_model(name, listed=not reported))
        reported.add(path)


def _named(tree: Tree) -> Iterator[tuple[Path, str, str | None]]:
    """Where a model is named, its name, and the address it is to be asked at."""
    defaults = next((entry for _, entry in section(tree, "defaults")), {})
    for path, entry in [*entries(tree, "agents"), *entries(tree, "systems")]:
        base_url = entry.get("base_url", defaults.get("base_url"))
        for place, name in _names(path, entry, defaults):
            yield place, name, base_url
    for path, entry in section(tree, "judge"):
        for place, name in _names(path, entry, {}):
            yield place, name, entry.get("base_url")
    for path, expectation in expectations(tree):
        for place, name in _judges(path, expectation):
            yield place, name, None


def _names(
    path: Path, entry: Mapping[str, Any], defaults: Mapping[str, Any]
) -> Iterator[tuple[Path, str]]:
    models = entry.get("models")
    if isinstance(models, list):
        yield from (((*path, "models", i), name) for i, name in enumerate(models) if is_text(name))
    elif is_text(name := entry.get("model")):
        yield (*path, "model"), name
    elif path[0] == "agents" and is_text(name := defaults.get("model")):
        yield ("defaults", "model"), name


def _judges(path: Path, expectation: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    matcher = expectation.get("matcher")
    places = [(path, expectation), ((*path, "matcher"), matcher if is_map(matcher) else {})]
    for place, owner in places:
        for word in JUDGES:
            rubric = owner.get(word)
            if is_map(rubric) and is_text(name := rubric.get("model")):
                yield (*place, word, "model"), name
