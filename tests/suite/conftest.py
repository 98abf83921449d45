from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from passhat.errors import SuiteError
from passhat.records import Suite
from passhat.suite import load_suite

Load = Callable[..., Suite]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Load a suite from its text, in a directory of its own."""

    def load_text(text: str, *, env: Mapping[str, str] | None = None) -> Suite:
        file = tmp_path / "suite.yml"
        file.write_text(text, encoding="utf-8")
        return load_suite(file, env=env or {})

    return load_text


@pytest.fixture
def problems(load: Load) -> Callable[..., list[str]]:
    """What is said of a suite that is not valid: one line each, without the directory."""

    def lines(text: str, *, env: Mapping[str, str] | None = None) -> list[str]:
        with pytest.raises(SuiteError, match=r"suite\.yml:") as caught:
            load(text, env=env)
        return [line.partition("/suite.yml")[2] for line in str(caught.value).splitlines()]

    return lines
