"""Defaults of commands from `[tool.passhat]` in pyproject.toml, or from passhat.toml."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from passhat.errors import ConfigurationError
from passhat.messages import closest, short_value

OWN_FILE, PROJECT_FILE = "passhat.toml", "pyproject.toml"

_ANALYSES = ("report", "compare", "rank", "gate", "profile", "plan", "trend", "why", "demo")
_READERS = (
    *("report", "compare", "rank", "gate", "profile", "plan", "why", "diff"),
    *("convert", "view"),
)
_STORES = (
    *("run", "resume", "history", "trend", "flaky", "mcp"),
    *("report", "compare", "rank", "gate", "profile", "plan", "why", "diff", "convert"),
)


def configured_defaults(folder: Path) -> dict[str, Any] | None:
    """What options are where the user gives none, for each command; None without configuration.

    The nearest configuration counts: that of the folder, else of the folders above it up to the
    root of the repository.
    """
    for place in (folder, *folder.parents):
        found = _own_table(place) or _project_table(place)
        if found is not None:
            path, table = found
            return _defaults(path, table)
        if (place / ".git").exists():
            return None
    return None


def _own_table(folder: Path) -> tuple[Path, dict[str, Any]] | None:
    path = folder / OWN_FILE
    return (path, _read(path)) if path.is_file() else None


def _project_table(folder: Path) -> tuple[Path, dict[str, Any]] | None:
    path = folder / PROJECT_FILE
    # Most projects have no such table: then the file is not parsed, which would cost every start.
    if not path.is_file() or b"passhat" not in path.read_bytes():
        return None
    table = _read(path).get("tool", {}).get("passhat")
    return None if table is None else (path, table)


def _read(path: Path) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: is not valid TOML: {error}") from error


def _defaults(path: Path, table: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in table.items():
        if key not in CONFIGURED:
            raise _unknown(path, key, CONFIGURED)
        for command, options in CONFIGURED[key](path, value).items():
            _merge(found, command, options)
    return found


def _merge(found: dict[str, Any], command: str, options: dict[str, Any]) -> None:
    """Options of a command; those of `history add` lie below `history`."""
    place = found
    for word in command.split():
        place = place.setdefault(word, {})
    place.update(options)


def _confidence(path: Path, value: Any) -> dict[str, dict[str, Any]]:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
        raise _wrong(path, "confidence", "must lie strictly between 0 and 1", value)
    return {command: {"confidence": float(value)} for command in _ANALYSES}


def _store(path: Path, value: Any) -> dict[str, dict[str, Any]]:
    if not isinstance(value, str) or not value:
        raise _wrong(path, "store", "must be a path or an address", value)
    place = value if "://" in value else str(path.parent / value)
    options = {command: {"store": place} for command in _STORES}
    for below in ("list", "show", "tag", "delete", "export", "vacuum", "add"):
        options[f"history {below}"] = {"store": place}
    return options


def _ks(path: Path, value: Any) -> dict[str, dict[str, Any]]:
    ks = value if isinstance(value, list) else [value]
    if not ks or not all(type(k) is int and k > 0 for k in ks):
        raise _wrong(path, "k", "must be whole numbers, such as [1, 2, 4]", value)
    text = ",".join(map(str, ks))
    return {command: {"ks": text} for command in ("report", "compare", "rank", "profile")}


def _gates(path: Path, value: Any) -> dict[str, dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise _wrong(path, "gates", "must be a list of demands, such as ['pass^3 >= 0.8']", value)
    return {command: {"require": tuple(value)} for command in ("gate", "run")}


def _columns(path: Path, value: Any) -> dict[str, dict[str, Any]]:
    from passhat.cli.reading import COLUMN_NAMES

    if not isinstance(value, dict):
        raise _wrong(path, "columns", "must be a table, such as {task = 'question'}", value)
    for name, column in value.items():
        if name not in COLUMN_NAMES:
            raise _unknown(path, name, COLUMN_NAMES, of="columns")
        if not isinstance(column, str):
            raise _wrong(path, f"columns.{name}", "must be the name of a column", column)
    options = {COLUMN_NAMES[name]: column for name, column in value.items()}
    return {command: dict(options) for command in (*_READERS, "history add")}


CONFIGURED: dict[str, Callable[[Path, Any], dict[str, dict[str, Any]]]] = {
    "confidence": _confidence,
    "store": _store,
    "k": _ks,
    "gates": _gates,
    "columns": _columns,
}


def _unknown(path: Path, key: str, known: Mapping[str, Any], of: str = "") -> ConfigurationError:
    near = closest(key, known)
    guess = f"Did you mean {near!r}?" if near else f"There are: {', '.join(known)}."
    where = f" of {of}" if of else ""
    return ConfigurationError(f"{path}: {key!r} is not a key{where} of passhat. {guess}")


def _wrong(path: Path, key: str, rule: str, value: Any) -> ConfigurationError:
    return ConfigurationError(f"{path}: {key} {rule}, got {short_value(value)}")
