"""Errors in the words of the shell: an argument of the library becomes an option of the command.

Messages of the library write arguments as Python does, between backticks: `only="o3"`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping

import click

from passhat.errors import ArgumentError, PasshatError

COLUMN = "column_"
"""What the parameters of the options on columns begin with: `task` is `column_task`."""

NOT_COLUMNS = ("scorer", "pass_if", "reference_level", "missing", "error_words")
"""Fields of `ColumnMap` that say how to read a column: they have options of their own."""

_CASSETTE_OPTIONS = {
    f"`cassette='{mode}'`": f"--{flag}"
    for mode, flag in (
        *(("append", "append"), ("all", "record=all"), ("record", "record")),
        *(("drifted", "record=drifted"), ("none", "live")),
    )
}
"""The ways to use cassettes are one argument in Python, and an option each in a shell."""

_COMMANDS = {
    "`passhat.targets(report)`": "`passhat report --targets`",
    "`render_json`": "--json",
    "`trials.where(system=SYSTEM)`": "`passhat convert FILE --only SYSTEM -o one.jsonl`",
}
"""Calls in Python that are a command in a shell."""

_WITHOUT_OPTION = {
    "left": "the first TRIAL",
    "right": "the second TRIAL",
    "trials": "RESULTS",
    "task": "TASK",
    "path": "FILE",
    "tag": "NAME",
    "dataset": "DATASET",
}
"""Arguments that a command takes by position."""

_OTHERWISE = {"gate": "require", "system": "only"}
"""Arguments that the command line calls by another name."""

_ARGUMENT = re.compile(r"`(\w+)(?:=([^`]*))?`")
_TWO_COLUMNS = re.compile(r"(--columns [\w-]+=[\w-]+) and --columns ([\w-]+=[\w-]+)")


def shell_message(error: PasshatError, command: click.Command | None) -> str:
    """The message of an error, where each argument is named by the option that gives it.

    >>> option = click.Option(["--task", "tasks"])
    >>> shell_message(ArgumentError("tasks", "must be one of a, b", "c"),
    ...               click.Command("run", params=[option]))
    "--task must be one of a, b, got 'c'"
    """
    options = {} if command is None else dict(_options(command))
    text = str(error)
    columns = _columns(options)
    if isinstance(error, ArgumentError):
        named = {
            **_WITHOUT_OPTION,
            **{name: options[flag] for name, flag in _OTHERWISE.items() if flag in options},
            **options,
            **{f"ColumnMap.{name}": flag for name, flag in columns.items()},
            **{name: flag for name, flag in columns.items() if name in NOT_COLUMNS},
        }
        if error.argument in named:
            text = error.worded(named[error.argument].rstrip("="))
    return with_options(text, columns | options)


def in_options_of(text: str, command: click.Command) -> str:
    """A note of an answer in which arguments are the options of a command."""
    options = dict(_options(command))
    return with_options(text, _columns(options) | options)


def with_options(text: str, options: Mapping[str, str]) -> str:
    """A text in which arguments between backticks are the options of the same name.

    Calls that are a command in a shell become that command.

    >>> with_options('use `pass_if="score>=0.8"` or `changed=True`, not `seed`',
    ...              {"pass_if": "--pass-if", "changed": "--changed"})
    "use --pass-if 'score>=0.8' or --changed, not `seed`"
    """

    def written(match: re.Match[str]) -> str:
        name, value = match.groups()
        flag = options.get(name)
        if flag is None:
            return match[0]
        if value in (None, "True"):
            return flag.rstrip("=")
        return f"{flag}{'' if flag.endswith('=') else ' '}{_shell_value(value)}"

    for call, command in (_CASSETTE_OPTIONS | _COMMANDS).items():
        text = text.replace(call, command)
    return _TWO_COLUMNS.sub(r"\1,\2", _ARGUMENT.sub(written, text))


def _shell_value(value: str) -> str:
    """A Python literal as a shell word; a placeholder such as FILE stays as it is.

    >>> _shell_value("'a b'"), _shell_value("FILE"), _shell_value("Limits(max_depth=...)")
    ("'a b'", 'FILE', 'max_depth=...')
    >>> _shell_value("(3, 4)")
    '3,4'
    """
    if value.startswith("Limits("):
        return value.removeprefix("Limits(").removesuffix(")")
    import ast  # loaded only after a mistake

    try:
        literal = ast.literal_eval(value)
    except (SyntaxError, ValueError):
        return value
    if isinstance(literal, tuple):
        return ",".join(map(str, literal))
    return shlex.quote(str(literal))


def _columns(options: Mapping[str, str]) -> dict[str, str]:
    """What names each column, by the argument of `ColumnMap`."""
    flags = {name.removeprefix(COLUMN): f for name, f in options.items() if name.startswith(COLUMN)}
    return column_words(flags)


def column_words(flags: Mapping[str, str]) -> dict[str, str]:
    """What to type to name each column, from the option that each has: `--columns task=`.

    >>> column_words({"task": "--task", "seed": "--seed-column", "scorer": "--scorer"})
    {'task': '--columns task=', 'seed': '--columns seed=', 'scorer': '--scorer'}
    """
    return {
        name: flag if name in NOT_COLUMNS else f"--columns {column_word(flag)}="
        for name, flag in flags.items()
    }


def column_word(option: str) -> str:
    """What --columns calls the column that an option or a field names.

    >>> column_word("--seed-column"), column_word("label_by"), column_word("--system")
    ('seed', 'label-by', 'agent')
    """
    word = option.lstrip("-").removesuffix("-column").replace("_", "-")
    return "agent" if word == "system" else word


def _options(command: click.Command) -> Iterator[tuple[str, str]]:
    """The longest flag of each option of a command, and of the commands below it."""
    if isinstance(command, click.Group):
        for below in command.commands.values():
            yield from _options(below)
    for param in command.params:
        if isinstance(param, click.Option) and param.name is not None:
            former = getattr(param, "formerly", ())
            flag = max((name for name in param.opts if name not in former), key=len)
            yield param.name, flag
            if not param.name.startswith(COLUMN):
                yield flag.lstrip("-").replace("-", "_"), flag  # `rate` in Python, `rates` in click
