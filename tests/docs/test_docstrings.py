"""The examples in docstrings are true."""

import doctest
import importlib
import pkgutil

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
