"""What the documents say can be run: code runs, commands and their options exist, links lead on."""

import ast
import itertools
import json
import re
import shlex
import tomllib
from datetime import date
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from ruamel.yaml import YAML

import passhat
from passhat.cli import FORMERLY, main
from passhat.reporters.wording import GLOSSARY

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")])
FENCE = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)


def name(page):
    return str(page.relative_to(ROOT))


def blocks(page, language):
    return [body for kind, body in FENCE.findall(page.read_text()) if kind == language]


def console_commands(page):
    """The `$ passhat ...` lines, continued ones joined, without comments and redirections."""
    text = "\n".join(blocks(page, "console")).replace("\\\n", " ")
    for line in re.findall(r"^\$ (passhat .*)$", text, flags=re.MULTILINE):
        words = shlex.split(line, comments=True)[1:]
        stop = [i for i, word in enumerate(words) if word in ("|", ">", ">>", "&&", ";", "<")]
        yield words[: stop[0]] if stop else words


def parse(words):
    """Let click read the words as it would, and run nothing."""
    command, context = main, click.Context(main, info_name="passhat")
    rest = list(words)
    while True:
        parsed = command.make_parser(context).parse_args(rest)[1]
        if not isinstance(command, click.Group) or not parsed:
            return
        found = command.get_command(context, parsed[0])
        assert found is not None, f"no such command: {parsed[0]}"
        command, rest = found, parsed[1:]
        context = click.Context(command, parent=context, info_name=parsed[0])


def former_names(words):
    """The former names of commands and options that the words use."""
    group, rest = main, list(words)
    if rest[0] in FORMERLY:
        return rest[:1]
    while isinstance(group, click.Group) and rest and not rest[0].startswith("-"):
        if rest[0] in getattr(group, "formerly", {}):
            return [f"{group.name} {rest[0]}"]
        group = group.get_command(click.Context(group), rest.pop(0)) or group
    used = {word.partition("=")[0] for word in itertools.takewhile(lambda w: w != "--", rest)}
    former = (getattr(param, "formerly", ()) for param in group.params)
    return sorted(used.intersection(itertools.chain(*former)))


def inline_commands(page):
    """What stands between backticks in a sentence and begins with `passhat`."""
    prose = FENCE.sub("", page.read_text())
    for line in re.findall(r"`passhat\s([a-z][^`]*)`", prose):
        yield line.replace("'", " ").replace('"', " ").split()


def test_no_page_uses_a_former_name_of_a_command_or_an_option():
    for page in PAGES:
        told = page.parent.name != "reference"
        for words in [*console_commands(page), *inline_commands(page)] if told else ():
            if words != ["validate", "-o", "faults.sarif"]:  # `check` writes no file
                assert not former_names(words), (name(page), shlex.join(["passhat", *words]))


def test_a_former_name_is_found_wherever_it_stands():
    found = ["resume", "run --runs 3", "history list", "repeat --runs=3 -- ./agent", "flaky -v"]
    assert all(former_names(shlex.split(one)) for one in found)
    fine = ["run --trials 3", "history", "repeat --trials 3 -- ./agent --runs 3", "run --resume"]
    assert not any(former_names(shlex.split(one)) for one in fine)


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=name)
def test_python_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile("\n".join(blocks(page, "python")), name(page), "exec"), {"__name__": "example"})


def test_commands_and_options_in_examples_exist():
    for page in PAGES:
        for words in console_commands(page):
            try:
                parse(words)
            except click.UsageError as error:
                pytest.fail(f"{name(page)}: {shlex.join(words)}: {error}")


def test_links_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
            if not target.startswith(("http:", "https:", "#", "mailto:")):
                assert (page.parent / target.partition("#")[0]).exists(), (name(page), target)


def test_every_gate_on_a_page_can_be_read():
    """The page of commands has the examples of every help page."""
    for page in PAGES:
        for words in re.findall(r"--require '([^'\n]+)'", page.read_text()):
            assert passhat.parse_gate(words).label == words, name(page)


def test_make_targets_in_the_readme_exist():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    for page in PAGES:
        named = re.findall(r"^\$ make ([a-z]+)", page.read_text(), flags=re.MULTILINE)
        assert set(named) <= targets


def test_every_extra_is_in_the_table_of_extras():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    rows = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs/reference/extras.md").read_text(), re.M)
    assert sorted(rows) == sorted(extras.keys() - {"dev", "docs", "bench"})


RETIRED = re.compile(
    r"tasks like these|(?:for |\")this suite|(?:one|1) try\b|pass\^1(?!\d)|told apart"
    r"|further runs|settled|(?<!CI )\bsystems\b|random draws|can depend on|be depended on"
)
"""Former words for what the glossary calls otherwise; tests of screens have a list too."""

KEY_LINK = re.compile(r"\[systems(?=\])")
"""The part of a reference that tells of the key `systems:`."""


def test_pages_have_one_name_for_one_thing():
    for page in PAGES:
        text = KEY_LINK.sub("", page.read_text())
        text = re.sub(r"^```.*?^```|`[^`\n]*`|\]\([^)]*\)", "", text, flags=re.M | re.S)
        assert RETIRED.findall(BESIDE.sub("", text)) == [], name(page)


TEMPLATES = sorted(
    path for ending in ("html", "js") for path in (ROOT / "src").rglob(f"*.{ending}")
)


TAGS = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}|<[^>]*>|\$\{[^}]*\}", re.S)


def test_templates_have_the_words_of_the_pages():
    """What a template says itself: neither its tags and expressions, nor code but for its texts."""
    assert TEMPLATES
    for template in TEMPLATES:
        text = template.read_text()
        if template.suffix == ".js":
            quoted = re.findall(r"\"[^\"\n]*\"|'[^'\n]*'|`[^`]*`", text)
            text = "\n".join(one for one in quoted if " " in one)
        assert RETIRED.findall(TAGS.sub(" ", text)) == [], name(template)


def helps(group=main, before=()):
    """The words of every command, former ones too."""
    context = click.Context(group)
    for word in [*group.list_commands(context), *(() if before else FORMERLY)]:
        command = group.get_command(context, word)
        yield (*before, word)
        if isinstance(command, click.Group):
            yield from helps(command, (*before, word))


@pytest.mark.parametrize("layer", ["--help", "--help-all"])
def test_help_has_the_words_of_the_pages(layer):
    for words in [(), *helps()]:
        told = CliRunner().invoke(main, [*words, layer])
        assert told.exit_code == 0, words
        said = re.sub(r"--[a-z-]+", "", BESIDE.sub("", told.stdout))
        assert RETIRED.findall(said) == [], words


KEPT_NAMES = {
    "this suite",
    "tasks like these",
    "mean_score, this suite",
    "mean_score, tasks like these",
}
"""What scopes and numbers are called in files."""

BESIDE = re.compile(
    r"\"(this suite|tasks like these)\" in files|pass\^1 is pass@1|`[^`]*`|\bsystems:"
    r"|\b\w+_(systems|settled)\b|pass\^1 to pass\^4 as published"
)
"""The former word told beside today's; what is written in files."""


NO_PROSE = re.compile(
    r"\b(SELECT|INSERT|WHERE|FROM|JOIN|CREATE|ORDER|VALUES|CONFLICT)\b"
    r"|^\.\w+, \.|^schema |\w=\w+\.\w|\bfeatures tools \w+"
)
"""Queries, and the keys of JSON objects."""


BETWEEN_LINES = re.compile(r"""["']\s*\n\s*[fr]*["']""")
"""Where a text goes on in the next line."""


def messages(module):
    """The texts with several words in a module, but for docstrings, queries and lists of keys."""
    source = module.read_text(encoding="utf-8")
    if not RETIRED.search(BETWEEN_LINES.sub("", source)):  # parsing them all takes 4 CPU-s
        return
    nodes = list(ast.walk(ast.parse(source)))
    about = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if not isinstance(node, ast.Constant) or id(node) in about:
            continue
        text = node.value if isinstance(node.value, str) else ""
        if " " in text.strip() and text not in KEPT_NAMES and not NO_PROSE.search(text):
            yield node.lineno, text


@pytest.mark.slow("reads every module; test_screens looks at what people see")
def test_messages_have_the_words_of_the_pages():
    said = {
        f"{name(module)}:{line}": found
        for module in (ROOT / "src/passhat").rglob("*.py")
        for line, text in messages(module)
        if (found := RETIRED.findall(BESIDE.sub("", text)))
    }
    assert said == {}


def test_meanings_in_the_glossary_and_cells_of_the_notebook_have_todays_words():
    for word, meaning in GLOSSARY.items():
        assert RETIRED.findall(BESIDE.sub("", meaning)) == [], word
    cells = json.loads((ROOT / "docs/how-to/notebook.ipynb").read_text())["cells"]
    for cell in cells:
        assert RETIRED.findall("".join(cell["source"])) == []


def test_the_citation_is_complete_and_of_this_version():
    """The keys that the Citation File Format 1.2.0 asks for, and those that a reference needs."""
    cited = YAML(typ="safe").load(ROOT / "CITATION.cff")
    required = {"cff-version", "message", "title", "authors"}
    assert required | {"version", "date-released", "url", "license", "abstract"} <= set(cited)
    assert cited["cff-version"] == "1.2.0"
    assert passhat.__version__.startswith(str(cited["version"]))
    date.fromisoformat(str(cited["date-released"]))
