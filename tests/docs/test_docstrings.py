"""The examples in docstrings are true."""

import ast
import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import passhat

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL

# Bridges need the tools that they lead to.
MODULES = [
    name
    for _, name, _ in pkgutil.walk_packages(passhat.__path__, "passhat.")
    if not name.startswith("passhat.bridges") and not name.endswith("__main__")
]


@pytest.mark.parametrize("name", ["passhat", *MODULES])
def test_the_examples_of_a_module_are_true(name):
    module = importlib.import_module(name)
    assert doctest.testmod(module, optionflags=FLAGS).failed == 0


def test_there_are_examples_to_try():
    assert len(MODULES) > 200
    passk = importlib.import_module("passhat.stats.passk")
    assert doctest.testmod(passk, optionflags=FLAGS).attempted > 3


FORMER = re.compile(
    r"(?<![\"'`\w])(?:[Tt]asks\s+like\s+these|(?:for|of|on)\s+this\s+suite)\b(?![\"'`])"
)
"""What numbers are for, as it was called; in quotes it is a value, which stays."""


@pytest.mark.parametrize(
    "name", [name for name in MODULES if re.match(r"passhat\.(stats|analysis)\b", name)]
)
def test_docstrings_say_these_tasks_and_similar_tasks(name):
    text = Path(importlib.import_module(name).__file__).read_text(encoding="utf-8")
    texts = [
        doc
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and (doc := ast.get_docstring(node))
    ]
    assert [FORMER.findall(doc) for doc in texts if FORMER.search(doc)] == []
