"""The installed command, in a process of its own, in an empty directory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


def _environment(**changes: str) -> dict[str, str]:
    return {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8", **changes}


class Shell:
    """Runs `passhat` in a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def __call__(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "passhat", *arguments],
            cwd=self.directory,
            env=_environment(**environment),
            capture_output=True,
            text=True,
            timeout=600,  # a model on a busy machine takes its time
            check=False,
        )

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        """A command that is still running on return."""
        return subprocess.Popen(
            [sys.executable, "-m", "passhat", *arguments],
            cwd=self.directory,
            env=_environment(**environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def write(self, name: str, text: str) -> Path:
        """A file in the directory."""
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)
