"""The examples in docstrings are true."""

import ast
import doctest
import importlib
import linecache
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
PACKAGES = sorted({".".join(name.split(".")[:2]) for name in ("passhat", *MODULES)})


@pytest.mark.parametrize("package", PACKAGES)
def test_the_examples_of_a_package_are_true(package, monkeypatch):
    # The debugger of each example would look at every file that was read so far: half the time.
    monkeypatch.setattr(linecache, "checkcache", lambda filename=None: None)
    inside = [name for name in MODULES if name.startswith(f"{package}.") and package != "passhat"]
    for name in (package, *inside):
        module = importlib.import_module(name)
        assert doctest.testmod(module, optionflags=FLAGS).failed == 0, name


def test_there_are_examples_to_try():
    assert len(MODULES) > 200
    passk = importlib.import_module("passhat.stats.passk")
    assert doctest.testmod(passk, optionflags=FLAGS).attempted > 3


FORMER = re.compile(
    r"(?<![\"'`\w])(?:[Tt]asks\s+like\s+these|(?:for|of|on)\s+this\s+suite)\b(?![\"'`])"
)
"""What numbers are for, as it was called; in quotes it is a value, which stays."""


def test_docstrings_say_these_tasks_and_similar_tasks():
    root = Path(passhat.__file__).parent
    modules = [path for package in ("stats", "analysis") for path in (root / package).rglob("*.py")]
    assert len(modules) > 60
    suspects = [path for path in modules if FORMER.search(path.read_text(encoding="utf-8"))]
    texts = [
        (module.relative_to(root), doc)
        for module in suspects
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8")))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and (doc := ast.get_docstring(node))
    ]
    assert [(module, FORMER.findall(doc)) for module, doc in texts if FORMER.search(doc)] == []
