"""Commands called in this process, in an empty directory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from passhat.cli import main


@pytest.fixture(autouse=True, scope="module")
def quick_plans(few_suites_drawn: None) -> None:
    """What a command does with a plan shows on a rough one; tests/analysis has the numbers."""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory that commands are called in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def call(here: Path) -> Callable[..., Result]:
    """Call `passhat` with these arguments."""

    def call(*arguments: str) -> Result:
        return CliRunner().invoke(main, list(arguments))

    return call


@pytest.fixture
def suite(here: Path) -> Callable[[str], Path]:
    """Write the suite of the directory."""

    def write(text: str) -> Path:
        path = here / "suite.yml"
        path.write_text(text, encoding="utf-8")
        return path

    return write
