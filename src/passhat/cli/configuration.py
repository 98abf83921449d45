"""Defaults of commands from `[tool.passhat]` in pyproject.toml, or from passhat.toml."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from passhat.errors import ConfigurationError
from passhat.messages import closest, short_value

OWN_FILE, PROJECT_FILE = "passhat.toml", "pyproject.toml"

EVERY_COMMAND = "*"
"""Stands for all commands; one without such an option ignores it."""


def configured_defaults(folder: Path, commands: Iterable[str]) -> dict[str, Any] | None:
    """The defaults of each command's options; None if nothing is configured.

    The nearest configuration counts: the folder's, or that of the folders above it up to the root
    of the repository.
    """
    for place in (folder, *folder.parents):
        own, project = place / OWN_FILE, place / PROJECT_FILE
        if own.is_file():
            return _defaults(own, _read(own), commands)
        # Most projects have no such table: then it is not parsed, which would cost every start.
        if project.is_file() and b"passhat" in project.read_bytes():
            table = _read(project).get("tool", {}).get("passhat")
            if table is not None:
                return _defaults(project, table, commands)
        if (place / ".git").exists():
            return None
    return None


def _read(path: Path) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: is not valid TOML: {error}") from error


def _defaults(path: Path, table: Mapping[str, Any], commands: Iterable[str]) -> dict[str, Any]:
    defaults: dict[str, Any] = {}
    for key, value in table.items():
        if key not in CONFIGURED:
            raise _unknown(path, key, CONFIGURED)
        by_command = CONFIGURED[key](path, value)
        everywhere = by_command.pop(EVERY_COMMAND, None)
        by_command = (dict.fromkeys(commands, everywhere) if everywhere else {}) | by_command
        for command, options in by_command.items():
            defaults.setdefault(command, {}).update(options)
    return defaults


def _confidence(path: Path, value: Any) -> dict[str, dict[str, Any]]:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
        raise _wrong(path, "confidence", "must lie strictly between 0 and 1", value)
    return {EVERY_COMMAND: {"confidence": float(value)}}


def _store(path: Path, value: Any) -> dict[str, dict[str, Any]]:
    if not isinstance(value, str) or not value:
        raise _wrong(path, "store", "must be a path or an address", value)
    place = value if "://" in value else str(path.parent / value)
    return {EVERY_COMMAND: {"store": place}, "repeat": {}}  # which stores nothing unless asked to


def _ks(path: Path, value: Any) -> dict[str, dict[str, Any]]:
    ks = value if isinstance(value, list) else [value]
    if not ks or not all(type(k) is int and k > 0 for k in ks):
        raise _wrong(path, "k", "must be whole numbers, such as [1, 2, 4]", value)
    text = ",".join(map(str, ks))
    return {command: {"ks": text} for command in ("report", "compare", "rank", "profile")}


def _gates(path: Path, value: Any) -> dict[str, dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(demand, str) for demand in value):
        raise _wrong(path, "gates", "must be a list of demands, such as ['pass^3 >= 0.8']", value)
    return {command: {"require": tuple(value)} for command in ("gate", "run")}


def _columns(path: Path, value: Any) -> dict[str, dict[str, Any]]:
    from passhat.cli.error_messages import COLUMN
    from passhat.cli.reading import COLUMNS

    if not isinstance(value, dict):
        raise _wrong(path, "columns", "must be a table, such as {task = 'question'}", value)
    for name, column in value.items():
        if name not in COLUMNS:
            raise _unknown(path, name, COLUMNS, "a column that")
        if not isinstance(column, str):
            raise _wrong(path, f"columns.{name}", "must be the name of a column", column)
    options = {f"{COLUMN}{name}": column for name, column in value.items()}
    return {EVERY_COMMAND: options, "history": {"add": options}}


CONFIGURED: dict[str, Callable[[Path, Any], dict[str, dict[str, Any]]]] = {
    "confidence": _confidence,
    "store": _store,
    "k": _ks,
    "gates": _gates,
    "columns": _columns,
}


def _unknown(
    path: Path, key: str, known: Iterable[str], what: str = "a key that"
) -> ConfigurationError:
    near = closest(key, known)
    guess = f"Did you mean {near!r}?" if near else f"There are: {', '.join(known)}."
    return ConfigurationError(f"{path}: {key!r} is not {what} passhat knows. {guess}")


def _wrong(path: Path, key: str, rule: str, value: Any) -> ConfigurationError:
    return ConfigurationError(f"{path}: {key} {rule}, got {short_value(value)}")
