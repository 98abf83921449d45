"""The names of the statistics are a promise: all there, sorted, and none hidden by a module."""

import importlib
import pkgutil
import types

import pytest

import passhat.stats as stats


def test_every_public_name_is_what_its_home_defines():
    for name in stats.__all__:
        value = getattr(stats, name)
        assert not isinstance(value, types.ModuleType), name
        if isinstance(value, type | types.FunctionType):
            assert value is getattr(importlib.import_module(value.__module__), name), name


def test_the_names_are_sorted_and_each_stands_once():
    assert stats.__all__ == sorted(set(stats.__all__))


def test_no_module_bears_the_name_of_a_function():
    modules = {module.name for module in pkgutil.iter_modules(stats.__path__)}
    assert modules.isdisjoint(stats.__all__)


def test_an_unknown_name_is_refused():
    with pytest.raises(AttributeError, match="no attribute 'pass_at_kk'"):
        _ = stats.pass_at_kk
