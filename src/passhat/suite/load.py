"""Read a suite file: the suite, or everything that is wrong with it."""

from __future__ import annotations

import hashlib
import operator
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from itertools import chain
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypedDict, Union, Unpack, get_args, get_origin

from msgspec import Meta

from passhat import arguments
from passhat.arguments import BEYOND
from passhat.errors import PasshatError, SuiteError
from passhat.messages import closest, plural
from passhat.records import SCRIPTED, Suite
from passhat.records.providers import is_model_name, unknown_model
from passhat.records.redaction import environment_redactor
from passhat.records.secrets import has_certain_shape
from passhat.suite.schema import SYSTEM_KINDS, AgentPart, DefaultsPart, SuitePart
from passhat.suite.task_schema import MatcherPart, Part, Reads, Short
from passhat.suite.yaml_tree import (
    MAX_BYTES,
    REFERENCE,
    KeyPath,
    Problem,
    Tree,
    as_list,
    did_you_mean,
    dotted,
    entries,
    expectations,
    is_map,
    is_text,
    read_tree,
    section,
    shown,
    texts,
    users,
)

SUITE_FILES = ("passhat.yml", "passhat.yaml", "suite.yml", "suite.yaml")
"""Where a suite is looked for when no file is named."""

Fault = tuple[str, str, str, str]
"""The section (systems, servers), the name in it, the key, and what is wrong."""


class LoadTerms(TypedDict, total=False):
    """How much of a suite is looked at, as `load_suite` says."""

    models_asked: bool
    wordings: bool


def load_suite(
    path: str | Path, *, env: Mapping[str, str] | None = None, **terms: Unpack[LoadTerms]
) -> Suite:
    """The suite in a file; one error lists every fault of the file.

    `${VAR}` is read from `env` (default: the environment of this process). A suite whose models
    are not asked (a replay, a list) may name models that are unknown here; one without `wordings`
    has its prompts as they are written alone.
    """
    suite, problems = check_suite(path, env=env, **terms)
    if suite is None:
        raise SuiteError("\n".join(problem.at(str(path)) for problem in problems))
    return suite


def check_suite(
    path: str | Path, *, env: Mapping[str, str] | None = None, **terms: Unpack[LoadTerms]
) -> tuple[Suite | None, tuple[Problem, ...]]:
    """The suite in a file, or all its problems in the order of the file."""
    path = arguments.path("path", path, "the path of a suite file")
    text, digest = _read(Path(path))
    env = os.environ if env is None else env
    return check_text(text, path=Path(path), env=env, digest=digest, **terms)


def check_text(
    text: str,
    *,
    path: Path,
    env: Mapping[str, str],
    digest: str = "",
    **terms: Unpack[LoadTerms],
) -> tuple[Suite | None, tuple[Problem, ...]]:
    """As `check_suite`, for a text that belongs at `path`."""
    tree = read_tree(text, env=env, keeps_references=holds_secrets)
    if tree.problems and tree.value is None:
        return None, tree.problems
    suite, problems = _build(tree, path, env, digest, **terms)
    # A value that could not be read is not reported a second time for its type.
    unread = {problem.path for problem in tree.problems if problem.path}
    wrong = [*tree.problems, *(p for p in problems if p.path not in unread)]
    if not wrong:
        return suite, ()
    redactor = environment_redactor(env)
    cleaned = {replace(problem, message=redactor.clean(problem.message)) for problem in wrong}
    return None, tuple(sorted(cleaned, key=lambda p: (p.line, p.column, p.message)))


def suite_in(directory: Path) -> Suite | None:
    """The suite of a directory, to be looked at rather than run; None if there is no suite file."""
    try:
        path = find_suite(directory)
    except SuiteError:
        return None
    return load_suite(path, models_asked=False)


def find_suite(directory: Path) -> Path:
    """The suite file of a directory, when none is named.

    >>> find_suite(Path("/nowhere"))
    Traceback (most recent call last):
    passhat.errors.SuiteError: no suite here (passhat.yml, ...): write one with `passhat init`
    """
    for name in SUITE_FILES:
        if (directory / name).is_file():
            return directory / name
    names = ", ".join(SUITE_FILES)
    raise SuiteError(f"no suite here ({names}): write one with `passhat init`")


def refuse_unknown_models(suite: Suite) -> None:
    """Raise where a suite that was loaded without that check names an unknown model."""
    if suite.path is None:
        return
    tree = read_tree(_read(suite.path)[0], env=os.environ, keeps_references=holds_secrets)
    if problems := list(unknown_models(tree, os.environ)):
        raise SuiteError("\n".join(problem.at(str(suite.path)) for problem in problems))


def located_lines(file: Path, faults: Iterable[Fault]) -> list[str]:
    """A line with file, line, column and key for each fault found after the file was read."""
    return [problem.at(str(file)) for problem in located_problems(file, faults)]


def located_problems(file: Path, faults: Iterable[Fault]) -> list[Problem]:
    """Each problem with its place, in the order of the file."""
    text = file.read_text(encoding="utf-8-sig")
    tree = read_tree(text, env=os.environ, keeps_references=holds_secrets)
    problems = []
    for part, name, key, message in faults:
        path = _path(tree, part, name)
        if path is None:  # made by the run, such as a system under faults
            problems.append(tree.problem((part,), f"{name}: {message}"))
        else:
            problems.append(tree.problem((*path, key), message))
    return sorted(problems, key=lambda p: (p.line, p.column))


def _read(path: Path) -> tuple[str, str]:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise SuiteError(f"{path}: there is no such file; `passhat init` writes a suite") from None
    except IsADirectoryError:
        raise SuiteError(f"{path}: is a folder; give the suite file in it") from None
    except OSError as error:
        raise SuiteError(f"{path}: the suite cannot be read: {error.strerror}") from None
    try:
        return content.decode("utf-8-sig"), hashlib.sha256(content).hexdigest()
    except UnicodeDecodeError as error:
        raise SuiteError(f"{path}: the suite is not UTF-8 at byte {error.start}") from None


def _build(
    tree: Tree,
    path: Path,
    env: Mapping[str, str],
    digest: str,
    *,
    models_asked: bool = True,
    wordings: bool = True,
) -> tuple[Suite | None, list[Problem]]:
    # Loaded here: what only looks for a suite, or reads its tree, needs none of it.
    from passhat.suite.build import BuildError, build_suite

    model, problems = validate(tree)
    # A gate with a wrong value is not also reported by the parser of gates.
    wrong = {problem.path[:2] for problem in problems}
    problems += [problem for problem in inconsistencies(tree) if problem.path not in wrong]
    problems += [*literal_secrets(tree), *secret_names(tree, env)]
    if models_asked:
        problems += unknown_models(tree, env)
    if model is None or problems:
        return None, problems
    if not wordings and "wording" in model.factors.written:
        del model.factors.wording
    gates = as_written(tree.value.get("gates"))
    try:
        return build_suite(model, path=path, env=env, gates=gates, digest=digest), []
    except BuildError as error:
        return None, [tree.problem(error.path, str(error))]


def _path(tree: Tree, part: str, name: str) -> KeyPath | None:
    for path, entry in section(tree, part):
        if name in entry:
            return (*path, name)
    named = (path for path, entry in entries(tree, part) if entry.get("name") == name)
    return next(named, None)


# Whether the parts of a suite fit together: names are unique, and what is referred to exists.
# These checks read the tree, not the parts, so that they are reported with the errors of those.
PATH = r"[^.\[\]]+(\.[^.\[\]]+|\[-?\d+\])*"

EVERY_TASK = "every task"
SYSTEM_WORDS = set(SYSTEM_KINDS) - {"model"}
"""What an agent that is not a model is written with, under `systems:`."""
JUDGES = MatcherPart.spellings()["judge"]
WORKSPACE_CHECKS = {"tests", "command", "python"}
"""Matchers that look at what an agent left in its workspace."""


def inconsistencies(tree: Tree) -> Iterator[Problem]:
    """Everything in the suite that does not fit with the rest of it."""
    if not isinstance(tree.value, dict):
        return
    yield from _repeated_names(tree)
    yield from _unknown_names(tree)
    yield from _server_contents(tree)
    yield from _models(tree)
    yield from _conversations(tree)
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
    reported: set[KeyPath] = set()
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
        first: dict[tuple[str, str], KeyPath] = {}
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


def _unknown_names(tree: Tree) -> Iterator[Problem]:
    """Servers, systems and tasks that are referred to and do not exist."""
    owners = [*entries(tree, "agents"), *entries(tree, "systems")]
    servers = tree.value.get("servers")
    known = [name for name in servers if isinstance(name, str)] if is_map(servers) else []
    for path, entry in [*owners, *section(tree, "defaults")]:
        yield from _unknown(tree, path, entry, "servers", known)
    known = [str(entry.get("name")) for _, entry in entries(tree, "systems")]
    for path, entry in entries(tree, "tasks"):
        yield from _unknown(tree, path, entry, "systems", known)
    tasks = [*entries(tree, "agents"), *entries(tree, "tasks")]
    if any("dataset" in entry or "from" in entry for _, entry in tasks):
        return  # the names are known only when the tasks are read
    known = [str(entry.get("name")) for _, entry in tasks]
    others = [path[1] for path, _ in users(tree)][1:]
    known += [f"{e.get('name')} [user={name}]" for _, e in tasks if "user" in e for name in others]
    for path, entry in entries(tree, "quarantine"):
        yield from _unknown(tree, path, entry, "task", known)
    for path, entry in owners:
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
    for path, entry in users(tree):
        yield from _script(tree, path, entry, {}, texts(entry.get("model")))


def _conversations(tree: Tree) -> Iterator[Problem]:
    """A task with a user has somebody who plays it, and a user has a task to talk about."""
    scenarios = [
        (path, entry)
        for path, entry in [*entries(tree, "agents"), *entries(tree, "tasks")]
        if "user" in entry
    ]
    for path, _ in scenarios if not tree.value.get("users") else ():
        message = "nobody plays it: add users: to the suite, with a model, say or python"
        yield tree.problem((*path, "user"), message)
    for path, entry in scenarios:
        done = entry["user"].get("done") if is_map(entry["user"]) else None
        if is_map(done) and "workspace" in entry and WORKSPACE_CHECKS & done.keys():
            message = "looks at a workspace, which is graded only when the conversation is over"
            yield tree.problem((*path, "user", "done"), message)
    # Tasks of another tool may have users; what they are is known when they are read.
    if not scenarios and not any("from" in entry for _, entry in entries(tree, "tasks")):
        for path, _ in users(tree):
            yield tree.problem(path, "talks to nobody: no task has user:")


def _script(
    tree: Tree,
    path: KeyPath,
    entry: Mapping[str, Any],
    defaults: Mapping[str, Any],
    models: list[str],
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
            for text in texts(paths):
                if not re.fullmatch(PATH, text):
                    message = f"{text!r} is not a path: write it like choices[0].message.content"
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
    tree: Tree, path: KeyPath, entry: Mapping[str, Any], key: str, known: list[str]
) -> Iterator[Problem]:
    """Names under a key (one, or a list) that nothing in the suite has."""
    value = entry.get(key)
    for index, name in enumerate(texts(value)):
        if name not in known:
            place = (*path, key, index) if isinstance(value, list) else (*path, key)
            kind = key.removesuffix("s")
            message = f'"{name}" is not the name of a {kind}. {did_you_mean(name, known)}'
            yield tree.problem(place, message)


def _named(tree: Tree) -> Iterator[tuple[KeyPath, str, str | None]]:
    """Where a model is named, its name, and its address."""
    defaults = next((entry for _, entry in section(tree, "defaults")), {})
    for path, entry in [*entries(tree, "agents"), *entries(tree, "systems")]:
        base_url = entry.get("base_url", defaults.get("base_url"))
        for place, name in _names(path, entry, defaults):
            yield place, name, base_url
    for path, entry in section(tree, "judge"):
        for place, name in _names(path, entry, {}):
            yield place, name, entry.get("base_url")
        if isinstance(panel := entry.get("panel"), list):
            yield from (((*path, "panel", i), judge, entry.get("base_url"))
                        for i, judge in enumerate(panel))  # fmt: skip
    for path, entry in users(tree):
        for place, name in _names(path, entry, {}):
            yield place, name, entry.get("base_url")
    for path, expectation in expectations(tree):
        for place, _, rubric in _rubrics(path, expectation):
            if is_map(rubric) and is_text(judge := rubric.get("model")):
                yield (*place, "model"), judge, None
            if is_map(rubric) and isinstance(panel := rubric.get("panel"), list):
                yield from (((*place, "panel", i), judge, None) for i, judge in enumerate(panel))


def _names(
    path: KeyPath, entry: Mapping[str, Any], defaults: Mapping[str, Any]
) -> Iterator[tuple[KeyPath, str]]:
    models = entry.get("models")
    if isinstance(models, list):
        yield from (((*path, "models", i), name) for i, name in enumerate(models) if is_text(name))
    elif is_text(name := entry.get("model")):
        yield (*path, "model"), name
    elif path[0] == "agents" and is_text(name := defaults.get("model")):
        yield ("defaults", "model"), name


def _rubrics(path: KeyPath, matcher: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str, Any]]:
    """The rubrics of an expectation and of the matchers inside it: place, key and value."""
    for key, inner in matcher.items():
        if key in JUDGES:
            yield (*path, key), key, inner
        elif key in ("matcher", "not") and is_map(inner):
            yield from _rubrics((*path, key), inner)


# Find keys and other secrets that are written out in a suite file.
HOLDERS = ("headers", "env")
PROSE = ("prompt", "expect", "answer", "script", "description", "system", "rubric")


def holds_secrets(path: KeyPath) -> bool:
    """Whether a part of the suite is a place for secrets: its references stay as they are.

    >>> holds_secrets(("servers", "crm", "headers", "Authorization"))
    True
    >>> holds_secrets(("tasks", 0, "prompt"))
    False
    """
    if path[:1] == ("servers",) and len(path) > 3:
        return path[2] in HOLDERS
    # Where the settings of a system, agent, judge or the defaults begin.
    owner = str(path[0]) if path else ""
    begin = {"agents": 2, "systems": 2, "users": 2, "judge": 1, "defaults": 1}.get(owner, len(path))
    settings = path[begin:]
    return settings[:1] == ("api_key",) or (len(settings) > 1 and settings[0] in HOLDERS)


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


def _is_written_out(text: str, name: str, path: KeyPath) -> bool:
    # Of a reference only the default is written in the file.
    literal = REFERENCE.sub(lambda m: f" {m['operand'] if m['operator'] == ':-' else ''} ", text)
    if has_certain_shape(literal):
        return not any(part in PROSE for part in path)
    if not holds_secrets(path):
        return False
    for token in re.findall(r"[A-Za-z0-9_+/=.-]{20,}", literal):
        # Letters and digits are mixed as in no word or path.
        changes = len(re.findall(r"(?<=[a-zA-Z])(?=\d)|(?<=\d)(?=[a-zA-Z])", token))
        if changes >= 4 and not token.startswith("/"):
            return True
    bare = literal.removeprefix("Bearer").removeprefix("Basic").strip()
    is_named = re.search("(?i)authorization|cookie|api.?key|token|secret|password", name)
    return bool(is_named) and len(bare) >= 12 and "env" not in path[-1:]


def _texts(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _texts(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _texts(inner, (*path, index))


# From a tree to the parts of the suite, with every problem reported at its place.

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

    def read(self, kind: Any, value: Any, path: KeyPath) -> Any:
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
        self, kind: type[Part], value: Mapping[str, Any], path: KeyPath, *, short: bool = False
    ) -> Part | None:
        before, unknown, given = len(self.problems), set(value), {}
        for name, keys in kind.spellings().items():
            if written := [key for key in keys if key in value]:
                unknown.difference_update(written)
                key, *again = written
                for other in again:
                    self._add((*path, other), f'means the same as "{key}" beside it: keep one')
                inside = path if short else (*path, key)
                given[name] = self.read(kind.field_type(name), value[key], inside)
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

    def _any_of(self, options: Sequence[Any], value: Any, path: KeyPath) -> Any:
        """The value as the first of the options that takes it; else the problems of each."""
        if value is None and NoneType in options:
            return None
        before = len(self.problems)
        for option in options:
            if option is NoneType:
                continue
            start = len(self.problems)
            part = self.read(option, value, path)
            if len(self.problems) == start:
                del self.problems[before:]
                return part
        return None

    def _refuse(self, path: KeyPath, message: str, value: Any) -> None:
        if isinstance(value, (dict, list)):
            came = "a list" if isinstance(value, list) else "a mapping"
            self._add(path, f"{message}, got {came}")
        else:
            quote = ": put it in quotes" if message == "should be a text" else ""
            self._add(path, f"{message}, got {shown(value)}{quote}")

    def _add(self, path: KeyPath, message: str) -> None:
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


def _unknown_key(part: type[Part], key: str, path: KeyPath) -> str:
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
