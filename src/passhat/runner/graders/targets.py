"""The part of an observation that an expectation is about, by its dotted path."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from passhat.errors import GraderError
from passhat.records import Observation, ToolCall
from passhat.records.suite import TARGETS
from passhat.runner.value_paths import MISSING, inside, path_parts

MAX_FILE = 2**20
MAX_FILES = 10_000

CALL_FIELDS = tuple(field.name for field in fields(ToolCall))


def find(observation: Observation, target: str) -> Any:
    """The value at a path, or MISSING.

    >>> seen = Observation(answer="24", tool_calls=(ToolCall(name="f", arguments={"x": 1}),))
    >>> find(seen, "tool_calls[0].arguments.x"), find(seen, "tool_calls[1].name")
    (1, nothing)
    """
    # Suites written for other tools say conversation.tokens.total.
    path = target.removeprefix("conversation.")
    if path == "files" or path.startswith(("files.", "files[")):
        return _files(observation.files, path)
    root, *rest = _parts(path)
    value = _root(observation, str(root))
    for part in rest:
        value = _step(value, part)
    return value


def _parts(path: str) -> tuple[str | int, ...]:
    parts = path_parts(path)
    if parts is None:
        raise GraderError(
            f"target {path!r} is not a path: write it like tool_calls[0].arguments.city"
        )
    return parts


def _root(observation: Observation, name: str) -> Any:
    if name not in TARGETS:
        raise GraderError(f"target {name!r} is unknown: there are {', '.join(sorted(TARGETS))}")
    usage, seconds = observation.usage, observation.seconds
    match TARGETS[name]:
        case "tool_names":
            return [call.name for call in observation.tool_calls]
        case "tokens" if usage is not None:
            return {
                "total": usage.total,
                "in": usage.tokens_in,
                "input": usage.tokens_in,
                "out": usage.tokens_out,
                "output": usage.tokens_out,
                "cached": usage.cached_in,
            }
        case "duration_ms" if seconds is not None:
            return seconds * 1000
        case "tokens" | "duration_ms":
            return MISSING
        case attribute:
            value = getattr(observation, attribute)
            return MISSING if value is None else value


def _step(value: Any, part: str | int) -> Any:
    if isinstance(value, ToolCall):
        name = "arguments" if part == "args" else part
        found = getattr(value, str(name)) if name in CALL_FIELDS else None
        return MISSING if found is None else found
    return inside(value, part)


def _files(directory: Path | None, path: str) -> Any:
    """The names of the files an attempt left, or the text of one of them."""
    if directory is None:
        return MISSING
    if path == "files":
        return sorted(itertools.islice(_names(directory), MAX_FILES))
    name = path.removeprefix("files").removeprefix(".").strip("[]\"'")
    file = directory / name
    try:
        # What the agent wrote may be a link to anywhere: only what is inside the folder is read.
        if not file.resolve().is_relative_to(directory.resolve()) or not file.is_file():
            return MISSING
        with file.open("rb") as stream:
            return stream.read(MAX_FILE).decode("utf-8", "replace")
    except OSError as error:
        raise GraderError(f"target files.{name} cannot be read: {error.strerror}") from None
    except RuntimeError:  # a link to itself
        return MISSING


def _names(directory: Path) -> Iterator[str]:
    for parent, _, names in os.walk(directory):
        for name in names:
            yield (Path(parent) / name).relative_to(directory).as_posix()
