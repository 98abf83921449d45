"""Errors in the words of the shell: arguments become options, remedies become commands."""

from __future__ import annotations

from collections.abc import Iterator

import click

from passhat.errors import ArgumentError, PasshatError


def shell_message(error: PasshatError, command: click.Command | None) -> str:
    """The message of an error, where an argument of the library is named by its option.

    >>> option = click.Option(["--task", "tasks"])
    >>> shell_message(ArgumentError("tasks", "must be one of a, b", "c"),
    ...               click.Command("run", params=[option]))
    "--task must be one of a, b, got 'c'"
    """
    if not isinstance(error, ArgumentError) or command is None:
        return str(error)
    options = dict(_options(command))
    flag = options.get(error.argument)
    return str(error) if flag is None else error.worded(flag)


def _options(command: click.Command) -> Iterator[tuple[str, str]]:
    """The longest option of each argument of a command, and of the commands below it."""
    if isinstance(command, click.Group):
        for below in command.commands.values():
            yield from _options(below)
    for param in command.params:
        if isinstance(param, click.Option) and param.name is not None:
            yield param.name, max(param.opts, key=len)
