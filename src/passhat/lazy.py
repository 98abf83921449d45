"""Packages whose public names load their module when first used (PEP 562)."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from warnings import warn

_BLOCK = "if TYPE_CHECKING:"

JOURNEYS_ONCE = {
    "compare_results": "compare",
    "explain_results": "why",
    "gate_results": "gate",
    "keep_results": "store_results",
    "plan_results": "plan",
    "repeat_command": "repeat",
    "report_results": "report",
    "run_suite": "run",
    "trend_of_runs": "trend",
}
"""What the questions were called in 0.1, here and in `passhat.journeys`."""


def lazy_exports(
    package: str, *, parts: tuple[str, ...] = (), renamed: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package, from its imports for type checkers.

    The names are stated once, in the block `if TYPE_CHECKING:` of the package's `__init__.py`, as
    `from module import Name as Name`. `parts` are submodules that load on first use too.
    `renamed` gives the new name of each old one, which works for one more release.
    """
    old_names = renamed or {}
    home_of = dict(_typed_imports(package))
    names = sorted(home_of)

    def load(name: str) -> Any:
        if name in parts:
            return importlib.import_module(f"{package}.{name}")
        if name in old_names:
            new = old_names[name]
            warn(f"{package}.{name} is {package}.{new} now", DeprecationWarning, stacklevel=2)
            return load(new)
        if name not in home_of:
            # With the module and the name, Python says in its traceback which name was meant.
            missing = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(missing, name=name, obj=sys.modules[package])
        value = getattr(importlib.import_module(home_of[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: names, names


def _typed_imports(package: str) -> Iterator[tuple[str, str]]:
    """Each name in the block for type checkers, with the module that it comes from.

    Reading lines costs a tenth of parsing: this runs at every start.
    """
    path = sys.modules[package].__file__
    assert path is not None, "a package has an __init__.py"
    with open(path, encoding="utf-8") as file:  # noqa: PTH123  # pathlib takes longer to import
        source = file.read()
    module = ""
    for line in source.partition(_BLOCK)[2].splitlines()[1:]:
        if line and not line[0].isspace():
            return
        words = line.strip(" ,()").removesuffix(" import (").split()
        if words[:1] == ["from"]:
            module, words = words[1], words[3:]
        if len(words) >= 3 and words[1] == "as":
            yield words[2], module
