"""The page on the architecture and the one for contributors name what is there."""

import ast
import re
from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest

import passhat

SOURCE = Path(passhat.__file__).parent
ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/explanation/architecture.md").read_text(encoding="utf-8")
ONE_FILE_EACH = ("ingest/formats", "reporters/answers")
"""Folders whose files are a list of their own: a format, an answer."""


def drawn_modules() -> set[str]:
    """The modules that the tree in the page lists, as paths."""
    tree = re.search(r"```\n(stats/.*?)```", PAGE, re.DOTALL)
    assert tree is not None
    modules, folder, outer = set(), "", ""
    for line in tree[1].splitlines():
        name, names = line[:18].strip(), line[18:].split()
        if name:
            inner = line.startswith(" ")
            outer = outer if inner else name
            folder = f"{outer}{name}" if inner else name
        if folder.removesuffix("/") not in ONE_FILE_EACH:
            modules |= {f"{folder}{module}" for module in names}
    return modules


def test_the_tree_lists_every_module_of_the_packages_it_draws():
    drawn = drawn_modules()
    packages = {name.rpartition("/")[0] for name in drawn}
    there = {
        file.relative_to(SOURCE).with_suffix("").as_posix()
        for package in packages
        for file in (SOURCE / package).glob("*.py")
        if file.name != "__init__.py"
    }
    assert drawn == there


def test_every_file_that_the_pages_name_exists():
    for page in (PAGE, (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")):
        for name in re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)`", page):
            assert (SOURCE / name).is_file() or (ROOT / name).is_file(), name


def test_the_store_is_asked_in_sql_by_history_alone():
    asking = {
        file.relative_to(SOURCE).parts[0]
        for file in SOURCE.rglob("*.py")
        if ".database.execute" in file.read_text(encoding="utf-8")
    }
    assert asking == {"history"}


def imported_modules(name: str, file: Path, modules: dict[str, Path]) -> set[str]:
    """The modules that one imports: when it loads, when it is called, and for its types alone.

    A name that a package hands on counts for the module that it comes from.
    """
    imported = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("passhat"):
            for alias in node.names:
                home, word = node.module, alias.name
                if f"{home}.{word}" in modules:
                    home = f"{home}.{word}"
                while modules[home].name == "__init__.py" and (home, word) in handed_on(home):
                    home, word = handed_on(home)[home, word]
                imported.add(home)
    return imported - {name}


@cache
def handed_on(package: str) -> dict[tuple[str, str], tuple[str, str]]:
    """Where the names of a package come from."""
    tree = ast.parse(Path(import_module(package).__file__).read_text(encoding="utf-8"))
    return {
        (package, alias.asname or alias.name): (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("passhat.")
        for alias in node.names
    }


@pytest.mark.slow("builds the graph of all imports")
def test_no_modules_import_one_another_in_a_circle_not_even_for_types():
    modules = {
        ".".join(("passhat", *file.relative_to(SOURCE).with_suffix("").parts)).removesuffix(
            ".__init__"
        ): file
        for file in SOURCE.rglob("*.py")
    }
    graph = {
        name: {
            other
            for other in imported_modules(name, file, modules)
            if modules[other].name != "__init__.py"
        }
        for name, file in modules.items()
        if file.name != "__init__.py"
    }
    assert len(list(TopologicalSorter(graph).static_order())) == len(graph)
