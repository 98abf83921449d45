"""Help is what people read first: a page for every command, and everything in --help-all."""

import re

import click
import pytest
from click.testing import CliRunner

from passhat.cli import COMMANDS, FIELD_WORDS, FORMERLY, main
from passhat.reporters.wording import GLOSSARY

pytestmark = pytest.mark.usefixtures("few_suites_drawn")


def commands(group=main, path=()):
    with click.Context(group) as context:
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            yield (*path, name)
            if isinstance(command, click.Group):
                yield from commands(command, (*path, name))


def said(*words):
    result = CliRunner().invoke(main, words, prog_name="passhat", env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    return result.stdout


def command_at(path):
    command = main
    for name in path:
        command = command.get_command(click.Context(main), name)
    return command


EVERY = [(), *commands()]


@pytest.mark.parametrize("path", EVERY, ids=" ".join)
def test_help_is_a_page_of_at_most_25_lines_and_80_columns(path):
    page = said(*path, "--help")
    assert page == said(*path, "-h")
    assert "\\b" not in page
    assert "\b" not in page
    assert len(page.splitlines()) <= 25
    assert max(map(len, page.splitlines())) <= 80


@pytest.mark.parametrize("path", list(commands()), ids=" ".join)
def test_every_option_is_in_help_all_and_those_on_the_page_exist(path):
    everything, command = said(*path, "--help-all"), command_at(path)
    known = {name for param in command.params for name in (*param.opts, *param.secondary_opts)}
    for name in known - {param.name for param in command.params}:
        if name.startswith("-"):
            assert re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", everything), name
    for line in getattr(command, "brief", ()):
        for name in re.findall(r"(?<![\w-])--?[a-z][a-z-]*", line):
            below = line.startswith(("passhat ", "Record", "It is now", "See one"))
            assert below or name in known, f"{name} is on the page and no option of {path}"


PAGES = {
    "": "Usage: passhat COMMAND",
    "report": "Usage: passhat report RESULTS... [OPTIONS]",
    "run": "Usage: passhat run [SUITE] [OPTIONS]",
    "gate": "Usage: passhat gate RESULTS... [OPTIONS]",
    "plan": "Usage: passhat plan [RESULTS...] [OPTIONS]",
    "repeat": "Usage: passhat repeat [OPTIONS] -- COMMAND...",
}


@pytest.mark.parametrize(("name", "usage"), PAGES.items())
def test_the_first_line_of_a_page_is_what_to_type(name, usage):
    assert said(*name.split(), "--help").splitlines()[0] == usage


def test_the_page_of_the_program_names_every_command_that_people_need():
    page = said("--help")
    rare = ("deploy", "local", "vary", "profile")
    for name, purpose in COMMANDS.items():
        assert purpose.endswith((".", "?"))
        assert (re.search(rf"^  (.*  )?{name}  ", page, re.M) is None) is (name in rare), name
    assert len(COMMANDS) <= 25
    everything = said("--help-all")
    for name in (*COMMANDS, *FORMERLY):
        assert re.search(rf"^  {name}  ", everything, re.M), name


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
    said = " ".join(CliRunner().invoke(main, [*path, "--help-all"]).output.split())
    assert f"its ending chooses the format: {endings}. -.md" in said


ANOTHER = [
    pytest.param(name, marks=pytest.mark.slow("every format of one more command"))
    for name in ("trend", "compare", "rank", "plan")
]


@pytest.mark.parametrize("command", ["report", "gate", *ANOTHER])
def test_an_ending_that_help_does_not_name_is_refused_with_those_it_does(command, tmp_path):
    said = " ".join(CliRunner().invoke(main, [command, "--help-all"]).output.split())
    named = said.partition("its ending chooses the format: ")[2].partition(". -.md")[0]
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


FIELD = (
    "reliability@k", "capability", "floor", "selection rate", "coverage", "half-width", "power",
    "thresholded reliability", "graceful degradation", "variance amplification", "cascade",
    "Reliability Decay Curve", "between-seed error", "containment", "partial credit", "paired",
    "bootstrap", "Wilson", "target", "provenance", "compounding", "power analysis",
)  # fmt: skip
"""What the sources of passhat call things."""


@pytest.mark.parametrize("name", FIELD)
def test_a_name_of_the_sources_is_in_the_glossary_and_in_help(name):
    assert re.search(rf"\b{re.escape(name)}", " ".join(said("--help-all").split()))
    assert any(name in f"{term}: {meaning}" for term, meaning in GLOSSARY.items())


def test_what_help_names_for_the_words_of_others_is_there():
    told = " ".join(FIELD_WORDS.values())
    for command, option in re.findall(r"`(report|plan|run) (--?[a-z-]+)", told):
        names = {name for param in command_at((command,)).params for name in param.opts}
        assert option in names, option
