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


def told():
    """Every command that a sentence or a table of the README names."""
    text = CONSOLE.sub("", (ROOT / "README.md").read_text(encoding="utf-8"))
    return dict.fromkeys(re.findall(r"`(passhat [^`]+)`", text))


ENDLESS = {"passhat watch traces.jsonl": " --once", "passhat view": " --help"}
"""What goes on until it is stopped, and what ends it here."""


@pytest.mark.slow("every command of the page, each in a process of its own")
def test_every_command_that_a_sentence_names_runs(tmp_path):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    rows = "".join(f"q{i % 9},{i % 4 > 0:d}\n" for i in range(90))
    (tmp_path / "results.csv").write_text("question,ok\n" + rows)
    (tmp_path / "my-agent").write_text("#!/bin/sh\nexit 0\n")
    (tmp_path / "my-agent").chmod(0o755)

    def shell(command):
        return subprocess.run(
            ["bash", "-c", command],
            cwd=tmp_path,
            env={**os.environ, "PATH": path, "NO_COLOR": "1", "COLUMNS": "80"},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    for name, rate in (("old", 0.7), ("new", 0.8), ("traces", 0.9)):
        assert shell(f"passhat simulate --rate {rate} -o {name}.jsonl").returncode == 0
    # What goes on with a run, and what looks back on runs, takes one.
    assert shell("passhat init . --scripted && passhat run -q").returncode in (0, 1)
    commands = told()
    assert len(commands) >= 9
    assert set(ENDLESS) <= set(commands)
    for command in commands:
        done = shell(f"{command}{ENDLESS.get(command, '')}")
        gated = command.startswith(("passhat gate", "passhat run", "passhat watch"))
        assert done.returncode in ((0, 1, 4) if gated else (0,)), f"{command}\n{done.stderr}"
        assert done.stdout or done.stderr, command
