"""Help is what people read first: every command has it, and it is fit to print."""

import click
import pytest
from click.testing import CliRunner

from passhat.cli import COMMANDS, main


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
    for name, (_, purpose) in COMMANDS.items():
        assert name in listed
        assert purpose.endswith((".", "?"))
