"""Pages to follow step by step: their files are written and every command is run, as it stands."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLLOWED = ("test-a-python-agent-in-ci", "families-of-tasks", "read-the-log-of-your-tool")
PAGES = [
    *sorted((ROOT / "docs" / "start").glob("*.md")),
    *(ROOT / "docs" / "how-to" / f"{name}.md" for name in FOLLOWED),
    ROOT / "docs" / "migrate" / "from-promptfoo.md",
]
SAMPLES = {"from-promptfoo": ("promptfoo/out.json", "out.json")}
"""The log of another tool that a page begins with."""
BLOCK = re.compile(r"^```(\w+)(?: ([\w./-]+))?\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)
ANSWERS = (0, 1, 4)
"""Passed, failed and undecided are answers; anything else is a page that does not work."""


@pytest.mark.slow("runs every command of ten pages, each in a process of its own")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_of_the_page_gives_an_answer(page, tmp_path, request, monkeypatch):
    if "export PASSHAT_STORE=" in page.read_text():
        monkeypatch.setenv("PASSHAT_STORE", request.getfixturevalue("new_database")())
    if page.stem in SAMPLES:
        sample, name = SAMPLES[page.stem]
        (tmp_path / name).write_bytes((ROOT / "tests" / "samples" / sample).read_bytes())
    for kind, file, body in BLOCK.findall(page.read_text()):
        if file:
            (tmp_path / file).parent.mkdir(exist_ok=True)
            (tmp_path / file).write_text(body)
        elif kind == "console":
            for line in re.findall(r"^\$ ((?:passhat|pytest) .*)$", body, flags=re.MULTILINE):
                run(line, tmp_path)


def run(line, folder):
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", line], cwd=folder, capture_output=True, text=True, timeout=120,
        env={**os.environ, "PATH": tools},
    )  # fmt: skip
    assert done.returncode in ANSWERS, f"{line}\n{done.stdout}{done.stderr}"
    assert "Traceback" not in done.stderr, line


def test_the_index_for_programs_names_every_page():
    named = set(re.findall(r"\]\(([^)]+)\)", (ROOT / "docs" / "llms.txt").read_text()))
    pages = {str(p.relative_to(ROOT / "docs")) for p in (ROOT / "docs").rglob("*.md")}
    assert named == pages - {"index.md"}
