"""The files of a first suite, as `passhat init` writes them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources

SUITE_FILE = "passhat.yml"
IGNORE = """\
# The history is yours alone; the schema is for everybody's editor.
*
!.gitignore
!suite.schema.json
"""
CI_FILES = {"github": ".github/workflows/passhat.yml", "gitlab": ".gitlab-ci.yml"}
TEST_FILE = "tests/test_reliability.py"


def starter_files(*, ci: str | None = None, pytest: bool = False) -> Mapping[str, str]:
    """Paths and texts: a suite that runs at once, its schema, and what was asked for beside it.

    >>> list(starter_files(ci="gitlab"))
    ['passhat.yml', '.passhat/suite.schema.json', '.passhat/.gitignore', '.gitlab-ci.yml']
    """
    files = {
        SUITE_FILE: _shipped("templates/passhat.yml"),
        ".passhat/suite.schema.json": _shipped("suite.schema.json"),
        ".passhat/.gitignore": IGNORE,
    }
    if ci is not None:
        files[CI_FILES[ci]] = _shipped(f"templates/{ci}.yml")
    if pytest:
        files[TEST_FILE] = _shipped("templates/test_reliability.py.txt")
    return files


def _shipped(name: str) -> str:
    return resources.files("passhat.suite").joinpath(name).read_text(encoding="utf-8")
