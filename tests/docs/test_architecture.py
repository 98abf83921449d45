"""The page on the architecture and the one for contributors name what is there."""

import re
from pathlib import Path

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
