"""The place in the file of problems that are found after the file was read."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from passhat.suite.problems import Path as TreePath
from passhat.suite.problems import Problem
from passhat.suite.secrets import holds_secrets
from passhat.suite.tree_parts import entries, section
from passhat.suite.yaml_tree import Tree, read_tree

Fault = tuple[str, str, str, str]
"""The section (systems, servers), the name in it, the key, and what is wrong."""


def told_in_place(file: Path, faults: Iterable[Fault]) -> list[str]:
    """A line for each fault with file, line, column and key, in the order of the file."""
    return [problem.at(str(file)) for problem in placed(file, faults)]


def placed(file: Path, faults: Iterable[Fault]) -> list[Problem]:
    """Each problem with its place, in the order of the file."""
    text = file.read_text(encoding="utf-8-sig")
    tree = read_tree(text, env=os.environ, keeps_references=holds_secrets)
    problems = [_problem(tree, *fault) for fault in faults]
    return sorted(problems, key=lambda p: (p.line, p.column))


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
