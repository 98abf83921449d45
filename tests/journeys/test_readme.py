"""The recipes of the README run as they stand, in its order, in a fresh clone."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONSOLE = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.fixture
def clone(tmp_path):
    """A folder with what of the clone the recipes name."""
    shutil.copytree(ROOT / "tests" / "samples", tmp_path / "tests" / "samples")
    return tmp_path


def recipes():
    """Every command of the README but those that set something up, in order, with its output."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for block in CONSOLE.findall(text):
        for part in block.removeprefix("$ ").split("\n$ "):
            command, _, printed = part.partition("\n")
            if not command.startswith(("make ", "pip ")):
                yield command, printed.strip("\n")


@pytest.mark.slow("every command of the page, each in a process of its own")
def test_every_recipe_runs_and_exits_with_0_or_as_a_gate_says(clone):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ran = list(recipes())
    assert len((ROOT / "README.md").read_text().splitlines()) <= 90
    assert len(ran) >= 6
    here = clone / "here"
    here.write_text(str(clone))
    assert sum(bool(printed) for _, printed in ran) >= 4
    for command, printed in ran:
        # Each command starts in the folder where the one before it ended, as in one terminal.
        done = subprocess.run(
            ["bash", "-c", f"{command}\ncode=$?\npwd > {shlex.quote(str(here))}\nexit $code"],
            cwd=here.read_text().strip(),
            env={**os.environ, "PATH": path, "NO_COLOR": "1", "COLUMNS": "80"},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        gated = "passhat run" in command or "--require" in command
        assert done.returncode in ((0, 1, 4) if gated else (0,)), f"{command}\n{done.stderr}"
        assert done.stdout or "wrote" in done.stderr
        assert printed in done.stdout, command
