"""What a system is asked, as a cassette records it, and what has changed since."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec

from passhat.records import (
    CommandSystem,
    HttpSystem,
    ModelSystem,
    Pairing,
    PythonSystem,
    Suite,
    Task,
)
from passhat.records.redaction import Redactor

SHOWN = 120


def setup_of(pairing: Pairing, suite: Suite) -> dict[str, Any]:
    """Everything that shapes the answers to a task, and nothing that only grades them."""
    task, system = pairing.task, pairing.system
    parts = {
        "prompt": task.prompt,
        "steps": [step.prompt for step in task.steps],
        "images": [_digest(path) for path in task.images],
        "server_prompt": task.server_prompt,
        "resources": task.resources,
        "values": dict(task.values),
    }
    asked: dict[str, Any] = {name: part for name, part in parts.items() if part}
    match system:
        case ModelSystem():
            asked |= _model_setup(task, system, suite)
        case CommandSystem():
            asked["command"] = list(system.argv)
        case PythonSystem():
            asked["python"] = system.function
        case HttpSystem():
            asked["http"] = system.url
            if system.request is not None:
                asked["request"] = system.request
    setup: dict[str, Any] = plain(asked)
    return setup


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The differences of two setups, a line each.

    >>> changes({"prompt": "Hi", "model": "a"}, {"prompt": "Hello", "model": "a"})
    ["prompt was 'Hi', is 'Hello'"]
    """
    return [
        f"{key} was {_show(before.get(key))}, is {_show(now.get(key))}"
        for key in sorted(before.keys() | now.keys())
        if before.get(key) != now.get(key)
    ]


def tool_changes(
    before: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]]
) -> list[str]:
    """The differences of two lists of tools, a line each."""
    old, new = ({str(spec["name"]): spec for spec in specs} for specs in (before, now))
    return list(_tool_lines(old, new))


def plain(value: Any) -> Any:
    """A value as JSON has it: the same form is written and compared."""
    return msgspec.json.decode(_sorted_json(value))


def cleaned(value: Any, redactor: Redactor) -> Any:
    """A value as JSON has it, without secrets."""
    return msgspec.json.decode(redactor.clean_json(_sorted_json(value)))


def _sorted_json(value: Any) -> str:
    return msgspec.json.encode(value, order="sorted", enc_hook=str).decode()


def _digest(path: Path) -> str:
    found = hashlib.blake2b(path.read_bytes(), digest_size=8).hexdigest() if path.exists() else ""
    return f"{path.name} {found}"


def _model_setup(task: Task, system: ModelSystem, suite: Suite) -> dict[str, Any]:
    parameters = asdict(system.model.parameters)
    given = {key: value for key, value in parameters.items() if value not in (None, (), {})}
    setup = {"model": system.model.name, "max_turns": task.max_turns or system.max_turns}
    faults = [asdict(fault) for fault in system.model.faults]
    faults += [asdict(fault) for name in system.servers for fault in suite.servers[name].faults]
    optional = {
        "system_prompt": task.system_prompt or system.system_prompt,
        "parameters": given,
        "servers": list(system.servers),
        "script": [asdict(behaviour) for behaviour in system.model.script],
        "faults": faults,
    }
    return setup | {key: value for key, value in optional.items() if value}


def _tool_lines(
    old: Mapping[str, Mapping[str, Any]], new: Mapping[str, Mapping[str, Any]]
) -> Iterator[str]:
    for name in sorted(old.keys() | new.keys()):
        if name not in new:
            yield f"tool {name} is gone"
        elif name not in old:
            yield f"tool {name} is new"
        else:
            yield from (f"tool {name}: {change}" for change in changes(old[name], new[name]))


def _show(value: Any) -> str:
    if value is None:
        return "absent"
    text = value if isinstance(value, str) else _sorted_json(value)
    return repr(text if len(text) <= SHOWN else f"{text[:SHOWN]}...")
