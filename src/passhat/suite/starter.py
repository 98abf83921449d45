"""The files of a first suite, as `passhat init` writes them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources

SUITE_FILE = "passhat.yml"
CASSETTES = "cassettes"
IGNORE = """\
# The history is yours alone; the schema is for everybody's editor.
*
!.gitignore
!suite.schema.json
"""
CI_FILES = {"github": ".github/workflows/passhat.yml", "gitlab": ".gitlab-ci.yml"}
TEST_FILE = "tests/test_reliability.py"


def starter_files(
    *, ci: str | None = None, pytest: bool = False, scripted: bool = False
) -> Mapping[str, str]:
    """Paths and texts: a suite that runs at once, its schema, and what was asked for beside it.

    Its model is a small real one, whose recorded runs come with it; or, `scripted`, an actor.

    >>> list(starter_files(ci="gitlab", scripted=True))
    ['passhat.yml', '.passhat/suite.schema.json', '.passhat/.gitignore', '.gitlab-ci.yml']
    """
    files = {
        SUITE_FILE: _shipped("templates/scripted.yml" if scripted else "templates/passhat.yml"),
        ".passhat/suite.schema.json": _shipped("suite.schema.json"),
        ".passhat/.gitignore": IGNORE,
    }
    if not scripted:
        files |= _cassettes()
    if ci is not None:
        files[CI_FILES[ci]] = _shipped(f"templates/{ci}.yml")
    if pytest:
        files[TEST_FILE] = _shipped("templates/test_reliability.py.txt")
    return files


def _cassettes() -> dict[str, str]:
    folder = resources.files("passhat.suite").joinpath("templates", CASSETTES)
    return {
        f"{CASSETTES}/{file.name}": file.read_text(encoding="utf-8") for file in folder.iterdir()
    }


def _shipped(name: str) -> str:
    return resources.files("passhat.suite").joinpath(name).read_text(encoding="utf-8")
