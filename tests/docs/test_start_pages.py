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


NIGHTLY_SUITE = """
name: nightly
systems: [{name: bot, python: "bot:answer"}]
defaults: {runs: 10}
tasks:
  - {name: a, prompt: x, expect: [{contains: right}]}
  - {name: b, prompt: y, expect: [{contains: right}]}
"""
BOT = "import time\ndef answer(prompt):\n    time.sleep({pause})\n    return '{answer}'\n"


@pytest.mark.slow("three runs of the installed command, two of them at once")
def test_the_nightly_script_judges_its_own_run_whoever_else_runs_the_suite(tmp_path):
    page = (ROOT / "docs" / "start" / "platform-engineer.md").read_text()
    (script,) = [body for _, file, body in BLOCK.findall(page) if file == "nightly.sh"]
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": tools, "PASSHAT_STORE": str(tmp_path / "history.db")}

    def night(name, answer, pause=0.0):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        (folder / "passhat.yml").write_text(NIGHTLY_SUITE)
        (folder / "bot.py").write_text(BOT.format(answer=answer, pause=pause))
        (folder / "env").touch()
        (folder / "nightly.sh").write_text(script.replace("/srv/evals", str(folder)))
        words = ["sh", str(folder / "nightly.sh")]
        return subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    first = night("good", "right")
    assert b"'good'" in first.communicate()[1], "no run is good yet, which is printed"
    assert first.returncode == 2
    subprocess.run(["passhat", "run", "-q"], cwd=tmp_path / "good", env=env, check=True)
    tag = ["passhat", "history", "tag", "latest", "good"]
    subprocess.run(tag, cwd=tmp_path / "good", env=env, check=True)
    bad, calm = night("bad", "wrong", pause=0.5), night("good", "right")
    assert calm.communicate() == (b"", b"")
    assert calm.returncode == 4, "two tasks x 10 trials do not show 5 points"
    printed = bad.communicate()[0].decode()
    assert bad.returncode == 1
    assert printed.startswith("FAIL"), printed


def test_the_index_for_programs_names_every_page():
    named = set(re.findall(r"\]\(([^)]+)\)", (ROOT / "docs" / "llms.txt").read_text()))
    pages = {str(p.relative_to(ROOT / "docs")) for p in (ROOT / "docs").rglob("*.md")}
    assert named == pages - {"index.md"}
