"""Read a suite file: the suite, or everything that is wrong with it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from passhat import arguments
from passhat.errors import SuiteError
from passhat.records import Suite
from passhat.records.redaction import environment_redactor
from passhat.suite.problems import Path as TreePath
from passhat.suite.problems import Problem
from passhat.suite.secrets import holds_secrets, literal_secrets, secret_names
from passhat.suite.yaml_tree import MAX_BYTES, Tree, entries, read_tree, section

SUITE_FILES = ("passhat.yml", "passhat.yaml", "suite.yml", "suite.yaml")
"""Where a suite is looked for when no file is named."""

Fault = tuple[str, str, str, str]
"""The section (systems, servers), the name in it, the key, and what is wrong."""


def load_suite(
    path: str | Path, *, env: Mapping[str, str] | None = None, models_asked: bool = True
) -> Suite:
    """The suite in a file; one error lists every fault of the file.

    `${VAR}` is read from `env` (default: the environment of this process). A suite whose models
    are not asked (a replay, a list) may name models that are unknown here.
    """
    suite, problems = check_suite(path, env=env, models_asked=models_asked)
    if suite is None:
        raise SuiteError("\n".join(problem.at(str(path)) for problem in problems))
    return suite


def check_suite(
    path: str | Path, *, env: Mapping[str, str] | None = None, models_asked: bool = True
) -> tuple[Suite | None, tuple[Problem, ...]]:
    """The suite in a file, or all its problems in the order of the file."""
    path = arguments.path("path", path, "the path of a suite file")
    text, digest = _read(Path(path))
    env = os.environ if env is None else env
    return check_text(text, path=Path(path), env=env, digest=digest, models_asked=models_asked)


def check_text(
    text: str, *, path: Path, env: Mapping[str, str], digest: str = "", models_asked: bool = True
) -> tuple[Suite | None, tuple[Problem, ...]]:
    """As `check_suite`, for a text that belongs at `path`."""
    tree = read_tree(text, env=env, keeps_references=holds_secrets)
    if tree.problems and tree.value is None:
        return None, tree.problems
    suite, problems = _build(tree, path, env, digest, models_asked=models_asked)
    # A value that could not be read is not reported a second time for its type.
    unread = {problem.path for problem in tree.problems if problem.path}
    found = [*tree.problems, *(p for p in problems if p.path not in unread)]
    redactor = environment_redactor(env)
    cleaned = {replace(problem, message=redactor.clean(problem.message)) for problem in found}
    found = sorted(cleaned, key=lambda p: (p.line, p.column, p.message))
    return (None if found else suite), tuple(found)


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
    from passhat.suite.consistency import unknown_models

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
    problems = [_problem(tree, *fault) for fault in faults]
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
    tree: Tree, path: Path, env: Mapping[str, str], digest: str, *, models_asked: bool
) -> tuple[Suite | None, list[Problem]]:
    # Loaded here: what only looks for a suite, or reads its tree, needs none of it.
    from passhat.suite.build import BuildError, build_suite
    from passhat.suite.consistency import as_written, inconsistencies, unknown_models
    from passhat.suite.validation import validate

    model, problems = validate(tree)
    # A gate with a wrong value is not also reported by the parser of gates.
    wrong = {problem.path[:2] for problem in problems}
    problems += [problem for problem in inconsistencies(tree) if problem.path not in wrong]
    problems += [*literal_secrets(tree), *secret_names(tree, env)]
    if models_asked:
        problems += unknown_models(tree, env)
    if model is None or problems:
        return None, problems
    gates = as_written(tree.value.get("gates"))
    try:
        return build_suite(model, path=path, env=env, gates=gates, digest=digest), []
    except BuildError as error:
        return None, [tree.problem(error.path, str(error))]


def _problem(tree: Tree, part: str, name: str, key: str, message: str) -> Problem:
    path = _path(tree, part, name)
    if path is None:  # made by the run, such as a system under faults
        return tree.problem((part,), f"{name}: {message}")
    return tree.problem((*path, key), message)


def _path(tree: Tree, part: str, name: str) -> TreePath | None:
    for path, entry in section(tree, part):
        if name in entry:
            return (*path, name)
    found = (path for path, entry in entries(tree, part) if entry.get("name") == name)
    return next(found, None)
