"""The how-to pages about running are followed to the letter: files written, commands run."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from passhat.cli import main
from passhat.cli.setup import NAME
from passhat.runner.models.local import why_not_here

PAGES = Path(__file__).parents[2] / "docs" / "how-to"
NAMED_FILE = re.compile(r"^`([\w./-]+)`:\n\n```\w+\n(.*?)^```", re.DOTALL | re.MULTILINE)
CONSOLE = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^\$ passhat (.*?)(?:  # exit (\d+))?$", re.MULTILINE)


def steps(page):
    """The files and the commands of a page, in the order of the page."""
    found = [(m.start(), ("file", m[1], m[2])) for m in NAMED_FILE.finditer(page)]
    for block in CONSOLE.finditer(page):
        commands = list(COMMAND.finditer(block[1]))
        ends = [*(m.start() for m in commands[1:]), len(block[1])]
        for match, end in zip(commands, ends, strict=True):
            shown = block[1][match.end() + 1 : end]
            step = ("command", match[1], int(match[2] or 0), shown)
            found.append((block.start(1) + match.start(), step))
    return [step for _, step in sorted(found)]


def as_pattern(shown):
    """The output as a page shows it: `...` stands for anything, and lines may be wrapped."""
    words = " ".join(shown.split())
    return ".*?".join(re.escape(part.strip()) for part in words.split("..."))


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "name",
    [
        "run-your-agent",
        "record-and-replay",
        "talk-with-simulated-users",
        "reword-prompts",
        pytest.param("run-a-suite", marks=pytest.mark.slow("runs with a hundred trials each")),
        pytest.param("faults", marks=pytest.mark.slow("a process for each trial and fault")),
        pytest.param(
            "run-with-a-local-model", marks=pytest.mark.slow("a real model answers on this machine")
        ),
    ],
)
def test_the_page_does_what_it_says(name, here):
    if name == "run-with-a-local-model" and (reason := why_not_here(NAME)):
        pytest.skip(reason)
    for kind, what, *rest in steps((PAGES / f"{name}.md").read_text()):
        if kind == "file":
            (here / what).write_text(rest[0])
            continue
        code, shown = rest
        done = CliRunner().invoke(main, shlex.split(what, comments=True))
        assert done.exit_code == code, f"{what}: {done.output}"
        said = " ".join(done.output.split())
        assert re.search(as_pattern(shown), said), f"{what}: {shown!r} is not in {said!r}"
