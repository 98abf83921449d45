"""Help is what people read first: every command has it, and it is fit to print."""

import click
import pytest
from click.testing import CliRunner

from passhat.cli import COMMANDS, main

pytestmark = pytest.mark.usefixtures("few_suites_drawn")


def commands(group=main, path=()):
    with click.Context(group) as context:
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            yield (*path, name)
            if isinstance(command, click.Group):
                yield from commands(command, (*path, name))


@pytest.mark.parametrize("path", list(commands()), ids=" ".join)
def test_help_of_every_command_is_plain_text_within_100_columns(path):
    result = CliRunner().invoke(main, [*path, "--help"], terminal_width=100)
    assert result.exit_code == 0
    assert "\\b" not in result.output
    assert "\b" not in result.output
    assert max(map(len, result.output.splitlines())) <= 100


def test_the_table_of_commands_says_what_each_is_for():
    listed = CliRunner().invoke(main, ["--help"]).output
    for name, purpose in COMMANDS.items():
        assert name in listed
        assert purpose.endswith((".", "?"))


ENDINGS = [".txt", ".json", ".md", ".html", ".xml", ".svg", ".docx"]


CASES = ".xml .ctrf.json .sarif .tap .codequality.json .prom .badge.svg .badge.json"


@pytest.mark.parametrize(
    ("path", "endings"),
    [
        (
            ("report",),
            ".txt .json .md .html .fragment.html .csv .ndjson .tex {CASES} .svg .png .pdf",
        ),
        (
            ("history", "show"),
            ".txt .json .md .html .fragment.html .csv .ndjson .tex {CASES} .svg .png .pdf",
        ),
        (("trend",), ".txt .json .md .html .fragment.html .csv .ndjson .tex .svg .png .pdf"),
        (("compare",), ".txt .json .md .html .fragment.html .csv .ndjson .tex .svg .png .pdf"),
        (("rank",), ".txt .json .md .html .fragment.html .csv .ndjson .tex .svg .png .pdf"),
        (("run",), ".txt .json .md .html .fragment.html .csv .ndjson .tex {CASES} .svg .png .pdf"),
        (
            ("resume",),
            ".txt .json .md .html .fragment.html .csv .ndjson .tex {CASES} .svg .png .pdf",
        ),
        (
            ("repeat",),
            ".txt .json .md .html .fragment.html .csv .ndjson .tex {CASES} .svg .png .pdf",
        ),
        (("gate",), ".txt .json .md .html .fragment.html .csv .ndjson .tex {CASES} .svg .png .pdf"),
        (("plan",), ".txt .json .md .html .fragment.html .csv .ndjson .tex .svg .png .pdf"),
    ],
)
def test_help_names_the_endings_that_the_command_can_write(path, endings):
    endings = endings.format(CASES=CASES)
    said = " ".join(CliRunner().invoke(main, [*path, "--help"]).output.split())
    assert f"its ending chooses the format: {endings}. May be repeated." in said


@pytest.mark.parametrize("command", ["trend", "compare", "rank", "gate", "report", "plan"])
def test_an_ending_that_help_does_not_name_is_refused_with_those_it_does(command, tmp_path):
    said = " ".join(CliRunner().invoke(main, [command, "--help"]).output.split())
    named = (
        said.partition("its ending chooses the format: ")[2].partition(". May")[0].partition(";")[0]
    )
    rows = "".join(
        f"{agent},{task},{i},{i % 2}\n" for agent in "ab" for task in "xy" for i in range(4)
    )
    (tmp_path / "log.csv").write_text("system,task,trial,passed\n" + rows)
    subject = {"trend": ["--store", str(tmp_path / "h.db")], "plan": ["--only", "a"]}
    arguments = [
        command,
        *subject.get(command, []),
        *(["-r", "pass^1 >= 0.5"] * (command == "gate")),
    ]
    if command == "trend":
        added = ["history", "--store", str(tmp_path / "h.db"), "add", str(tmp_path / "log.csv")]
        assert CliRunner().invoke(main, added).exit_code == 0
    else:
        arguments.append(str(tmp_path / "log.csv"))
    for ending in ENDINGS:
        done = CliRunner().invoke(main, [*arguments, "-o", str(tmp_path / f"out{ending}")])
        refused = done.exit_code == 2 and f"cannot write {ending}" in done.output
        assert refused is (ending not in named.split()), done.output


@pytest.mark.parametrize(("command", "usage"), [("plan", "[RESULTS...]"), ("report", "RESULTS...")])
def test_usage_shows_whether_results_must_be_given(command, usage):
    first = CliRunner().invoke(main, [command, "--help"]).output.splitlines()[0]
    assert first.endswith(f"[OPTIONS] {usage}")
