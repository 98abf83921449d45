"""The tools that people already use, each in an environment of its own (`make tools`)."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Tool:
    """An environment in which a tool and passhat are installed."""

    folder: Path

    def run(self, *words, cwd, env=None, given=None, programs="bin", timeout=280):
        """Run a program of this environment; the finished process, its output as text."""
        program = self.folder / programs / words[0]
        return subprocess.run(
            [program, *words[1:]],
            cwd=cwd,
            env=env,
            input=given,
            timeout=timeout,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture(scope="session")
def tool():
    """`tool("notebook")`: the environment of that name; a test skips where there is none."""

    def find(name):
        folder = ROOT / ".venv-tools" / name
        if not (folder / ".installed").exists():
            pytest.skip(f"{name} is not installed: make .venv-tools/{name}/.installed")
        return Tool(folder)

    return find
