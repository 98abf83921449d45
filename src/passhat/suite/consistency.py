"""Whether the parts of a suite fit together: names are unique, and what is referred to exists.

These checks read the tree, not the models, so that they are reported together with schema errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from passhat.errors import PasshatError
from passhat.messages import closest
from passhat.records import SCRIPTED
from passhat.records.providers import is_model_name, unknown_model
from passhat.suite.expect_schema import MatcherPart
from passhat.suite.problems import Path, Problem, did_you_mean
from passhat.suite.system_schema import SYSTEM_KINDS
from passhat.suite.yaml_tree import (
    Tree,
    as_list,
    entries,
    expectations,
    is_map,
    is_text,
    section,
    texts,
)

PATH = re.compile(r"[^.\[\]]+(\.[^.\[\]]+|\[-?\d+\])*")
EVERY_TASK = "every task"
SYSTEM_WORDS = set(SYSTEM_KINDS) - {"model"}
"""What an agent that is not a model is written with, under `systems:`."""
JUDGES = MatcherPart.spellings()["judge"]


def inconsistencies(tree: Tree) -> Iterator[Problem]:
    """Everything in the suite that does not fit with the rest of it."""
    if not isinstance(tree.value, dict):
        return
    yield from _repeated_names(tree)
    yield from _unknown_servers(tree)
    yield from _unknown_systems(tree)
    yield from _unknown_tasks(tree)
    yield from _server_contents(tree)
    yield from _models(tree)
    yield from _answer_paths(tree)
    yield from _rubrics_without_judge(tree)
    yield from _gates(tree)


def as_written(gates: Any) -> list[Any]:
    """The gates of a suite, with sentences that YAML took apart put together again.

    >>> as_written(["pass@1 >= 0.5", {"every task": "pass^3 >= its bar"}])
    ['pass@1 >= 0.5', 'every task: pass^3 >= its bar']
    """
    return [_sentence(gate) for gate in as_list(gates)]


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


def _sentence(gate: Any) -> Any:
    # To YAML, `every task: pass^3 >= its bar` without quotes is a key and a value.
    if not is_map(gate) or not is_text(gate.get(EVERY_TASK)):
        return gate
    demand = f"{EVERY_TASK}: {gate[EVERY_TASK]}"
    rest = {key: value for key, value in gate.items() if key != EVERY_TASK}
    return {"require": demand, **rest} if rest else demand


def _repeated_names(tree: Tree) -> Iterator[Problem]:
    for kind in ("systems", "tasks", "agents"):
        first: dict[tuple[str, str], Path] = {}
        for path, entry in entries(tree, kind):
            for name in _full_names(entry, kind) if is_text(entry.get("name")) else ():
                if name in first:
                    line, _ = tree.mark((*first[name], "name"))
                    shown = " on ".join(filter(None, name))
                    message = f'"{shown}" is also the name on line {line}'
                    yield tree.problem((*path, "name"), message)
                first.setdefault(name, path)


def _full_names(entry: Mapping[str, Any], kind: str) -> list[tuple[str, str]]:
    """The name of an entry with each of its models: two agents on two models may share a name."""
    models = texts(entry.get("models")) or texts(entry.get("model")) if kind == "agents" else []
    return [(entry["name"], model) for model in models or [""]]


def _unknown_servers(tree: Tree) -> Iterator[Problem]:
    servers = tree.value.get("servers")
    known = [name for name in servers if isinstance(name, str)] if is_map(servers) else []
    owners = [*entries(tree, "agents"), *entries(tree, "systems"), *section(tree, "defaults")]
    for path, entry in owners:
        yield from _unknown(tree, path, entry, "servers", known)


def _unknown_systems(tree: Tree) -> Iterator[Problem]:
    known = [str(entry.get("name")) for _, entry in entries(tree, "systems")]
    for path, entry in entries(tree, "tasks"):
        yield from _unknown(tree, path, entry, "systems", known)


def _unknown_tasks(tree: Tree) -> Iterator[Problem]:
    tasks = [*entries(tree, "agents"), *entries(tree, "tasks")]
    if any("dataset" in entry for _, entry in tasks):
        return  # the names are known only when the rows are read
    known = [str(entry.get("name")) for _, entry in tasks]
    for path, entry in entries(tree, "quarantine"):
        yield from _unknown(tree, path, entry, "task", known)
    for path, entry in [*entries(tree, "agents"), *entries(tree, "systems")]:
        for index, behaviour in enumerate(as_list(entry.get("script"))):
            if is_map(behaviour):
                yield from _unknown(tree, (*path, "script", index), behaviour, "task", known)


def _server_contents(tree: Tree) -> Iterator[Problem]:
    """A task that takes its prompt or resources from servers needs agents that have servers."""
    defaults = next((entry for _, entry in section(tree, "defaults")), {})
    systems = {str(entry.get("name")): entry for _, entry in entries(tree, "systems")}
    for path, entry in [*entries(tree, "agents"), *entries(tree, "tasks")]:
        prompt = entry.get("prompt")
        key = "prompt" if is_map(prompt) and "name" in prompt else "resources"
        if key == "resources" and not entry.get("resources"):
            continue
        own = path[0] == "agents"
        named = texts(entry.get("systems")) or list(systems)
        agents = [entry] if own else [systems[name] for name in named if name in systems]
        for agent in agents:
            if not (agent.get("servers") or defaults.get("servers")) or SYSTEM_WORDS & agent.keys():
                who = "its agent" if own else f'"{agent.get("name")}"'
                message = f"{key} of a server needs a model with servers: {who} has none"
                yield tree.problem((*path, key), message)
                break


def _models(tree: Tree) -> Iterator[Problem]:
    """An agent has a model; the scripted one has a script, and no other does."""
    defaults = next((entry for _, entry in section(tree, "defaults")), {})
    for path, entry in entries(tree, "agents"):
        models = texts(entry.get("models")) or texts(entry.get("model", defaults.get("model")))
        # A mistyped `modle:` is one problem, not also a missing model.
        mistyped = any(closest(str(key), ("model", "models")) for key in entry)
        if not models and not mistyped and not SYSTEM_WORDS & entry.keys():
            yield tree.problem(path, "needs a model: write model, models or defaults.model")
        yield from _script(tree, path, entry, defaults, models)
    for path, entry in entries(tree, "systems"):
        yield from _script(tree, path, entry, defaults, texts(entry.get("model")))


def _script(
    tree: Tree, path: Path, entry: Mapping[str, Any], defaults: Mapping[str, Any], models: list[str]
) -> Iterator[Problem]:
    if SCRIPTED in models and not (entry.get("script") or defaults.get("script")):
        yield tree.problem(path, "the model scripted needs a script: what it does, and how often")
    if models and entry.get("script") and SCRIPTED not in models:
        yield tree.problem((*path, "script"), f"only the model {SCRIPTED} plays a script")


def _answer_paths(tree: Tree) -> Iterator[Problem]:
    for path, entry in entries(tree, "systems"):
        response = entry.get("response")
        given = response.items() if is_map(response) else [("answer", response)]
        for what, paths in given:
            for one in texts(paths):
                if not PATH.fullmatch(one):
                    message = f"{one!r} is not a path: write it like choices[0].message.content"
                    where = (*path, "response", what) if is_map(response) else (*path, "response")
                    yield tree.problem(where, message)


def _rubrics_without_judge(tree: Tree) -> Iterator[Problem]:
    if tree.value.get("judge") is not None:
        return
    for path, expectation in expectations(tree):
        for _, word, rubric in _rubrics(path, expectation):
            if rubric is not None and not (is_map(rubric) and rubric.get("model")):
                yield tree.problem(path, f"{word} needs a model: add judge: to the suite")


def _gates(tree: Tree) -> Iterator[Problem]:
    """Every gate is parsed as it will be when the run is judged."""
    gates = as_written(tree.value.get("gates"))
    if not gates:
        return
    from passhat.analysis.gates.gate import parse_gate

    for index, gate in enumerate(gates):
        try:
            if isinstance(gate, str) or (is_map(gate) and isinstance(gate.get("require"), str)):
                parse_gate(gate)
        except PasshatError as error:
            yield tree.problem(("gates", index), str(error))


def _unknown(
    tree: Tree, path: Path, entry: Mapping[str, Any], key: str, known: list[str]
) -> Iterator[Problem]:
    """Names under a key (one, or a list) that nothing in the suite has."""
    value = entry.get(key)
    for index, name in enumerate(texts(value)):
        if name not in known:
            place = (*path, key, index) if isinstance(value, list) else (*path, key)
            kind = key.removesuffix("s")
            message = f'"{name}" is not the name of a {kind}. {did_you_mean(name, known)}'
            yield tree.problem(place, message)


def _named(tree: Tree) -> Iterator[tuple[Path, str, str | None]]:
    """Where a model is named, its name, and its address."""
    defaults = next((entry for _, entry in section(tree, "defaults")), {})
    for path, entry in [*entries(tree, "agents"), *entries(tree, "systems")]:
        base_url = entry.get("base_url", defaults.get("base_url"))
        for place, name in _names(path, entry, defaults):
            yield place, name, base_url
    for path, entry in section(tree, "judge"):
        for place, name in _names(path, entry, {}):
            yield place, name, entry.get("base_url")
    for path, expectation in expectations(tree):
        for place, _, rubric in _rubrics(path, expectation):
            if is_map(rubric) and is_text(judge := rubric.get("model")):
                yield (*place, "model"), judge, None


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


def _rubrics(path: Path, matcher: Mapping[str, Any]) -> Iterator[tuple[Path, str, Any]]:
    """The rubrics of an expectation and of the matchers inside it: place, key and value."""
    for key, inner in matcher.items():
        if key in JUDGES:
            yield (*path, key), key, inner
        elif key in ("matcher", "not") and is_map(inner):
            yield from _rubrics((*path, key), inner)
