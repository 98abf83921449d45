"""The reference of the commands is that of the commands."""

import re
import runpy
from pathlib import Path

import click
import pytest

from passhat.cli import COMMANDS, main
from passhat.cli.exit_codes import ExitCode

ROOT = Path(__file__).parents[2]
GENERATOR = ROOT / "docs" / "reference" / "generate_commands.py"
PAGE = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")


def commands(group=main, parent=None):
    """Every command, those of groups too, with its context."""
    context = parent or click.Context(main, info_name="passhat", **main.context_settings)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        own = click.Context(command, info_name=name, parent=context, **command.context_settings)
        yield own
        if isinstance(command, click.Group):
            yield from commands(command, own)


ALL = {context.command_path: context for context in commands()}


def section(path):
    return re.search(rf"^#+ {re.escape(path)}$(.*?)(?=^#|\Z)", PAGE, re.DOTALL | re.MULTILINE)[1]


def test_the_page_is_as_the_commands_are():
    assert runpy.run_path(str(GENERATOR))["page_text"]() == PAGE, (
        f"run python {GENERATOR.relative_to(ROOT)}"
    )


@pytest.mark.parametrize("path", ALL)
def test_a_command_is_on_the_page_with_its_usage_and_all_its_options(path):
    text, context = section(path), ALL[path]
    assert context.command.get_usage(context).removeprefix("Usage: ").split() == (
        re.search(r"```text\n(.*)\n```", text)[1].split()
    )
    for option in context.command.params:
        if isinstance(option, click.Option):
            assert all(re.search(rf"`[^`]*{name}\b", text) for name in option.opts)


@pytest.mark.parametrize("path", ALL)
def test_every_option_says_what_it_does_and_every_default_is_told(path):
    context = ALL[path]
    for option in context.command.params:
        if not isinstance(option, click.Option):
            continue
        assert option.help, option.opts
        if isinstance(option.default, str | int | float | Path) and not option.is_flag:
            assert f"| `{option.default}` |" in section(path), option.opts


def test_every_exit_code_is_explained():
    table = PAGE.partition("## Exit codes")[2].partition("\n## ")[0]
    explained = {int(code) for cell in re.findall(r"^\| ([\d, ]+) \|", table, re.MULTILINE)
                 for code in cell.split(", ")}  # fmt: skip
    assert explained == set(ExitCode)


def test_the_table_leads_to_every_command():
    for name, purpose in COMMANDS.items():
        assert f"| [{name}](#passhat-{name}) | {purpose} |" in PAGE
        assert f"\n## passhat {name}\n" in PAGE


def test_the_site_and_the_readme_lead_to_the_page():
    assert "reference/commands" in (ROOT / "docs" / "index.md").read_text()
    assert "](docs/reference/commands.md)" in (ROOT / "README.md").read_text()
