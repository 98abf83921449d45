"""The reference of the commands is that of the commands."""

import re
import runpy
from pathlib import Path

import click

from passhat.cli import COMMANDS, FORMERLY, main
from passhat.errors import ExitCode

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


FORMER = {f"passhat {name}": now for name, (_, now) in FORMERLY.items()} | {
    f"{path} {name}": now
    for path, context in ALL.items()
    for name, now in getattr(context.command, "formerly", {}).items()
}
"""Commands that have become others, with what to type now: they still work."""
SHOWN = [path for path in ALL if path not in FORMER]
HELP = {"--help", "--help-all"}
"""Options of every command, told once at the top."""


def section(path):
    return re.search(rf"^#+ {re.escape(path)}$(.*?)(?=^#|\Z)", PAGE, re.DOTALL | re.MULTILINE)[1]


def test_the_page_is_as_the_commands_are():
    assert runpy.run_path(str(GENERATOR))["page_text"]() == PAGE, (
        f"run python {GENERATOR.relative_to(ROOT)}"
    )


def test_former_names_are_commands_and_the_others_are_the_shown_ones():
    assert set(FORMER) <= set(ALL)
    assert {path.split()[1] for path in SHOWN} == set(COMMANDS)


def test_a_former_name_is_on_the_page_with_what_it_is_called_now():
    for path, now in FORMER.items():
        assert f"\n| `{path.removeprefix('passhat ')}` | `{now}` |\n" in PAGE
        assert not re.search(rf"^#+ {re.escape(path)}$", PAGE, re.MULTILINE), path


def test_what_a_former_name_is_called_now_is_a_shown_command_with_these_options():
    for now in (now for names in FORMER.values() for now in names.split("` or `")):
        if now.startswith("--"):  # an option of passhat itself
            assert any(now.split()[0] in option.opts for option in main.params)
            continue
        found = max((one for one in SHOWN if f"passhat {now} ".startswith(f"{one} ")), key=len)
        for flag in re.findall(r"(?<!\S)--?[a-z][a-z-]*", now):
            told = re.search(rf"^\| `[^`]*(?<![\w-]){flag}\b", section(found), re.MULTILINE)
            assert told, (found, flag)


def test_a_command_is_on_the_page_with_its_usage_and_all_its_options():
    for path in SHOWN:
        text, context = section(path), ALL[path]
        assert context.command.get_usage(context).removeprefix("Usage: ").split() == (
            re.search(r"```text\n(.*)\n```", text)[1].split()
        )
        for option in context.command.params:
            if isinstance(option, click.Option) and not HELP.intersection(option.opts):
                told = [name for name in option.opts if re.search(rf"`[^`]*{name}\b", text)]
                assert told == option.opts, path


def test_the_options_of_every_command_are_told_once():
    assert "`passhat COMMAND --help-all`" in PAGE.partition("\n## ")[0]


def test_every_option_says_what_it_does_and_every_default_is_told():
    for path, context in ALL.items():
        for option in context.command.params:
            if not isinstance(option, click.Option):
                continue
            assert option.help, (path, option.opts)
            if path in FORMER or option.is_flag:
                continue
            if isinstance(option.default, str | int | float | Path):
                assert f"| `{option.default}` |" in section(path), (path, option.opts)


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
