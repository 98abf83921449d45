"""From the parts of a suite file to frozen servers, models and systems."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from passhat.dataclass import dataclass
from passhat.records import (
    Behaviour,
    CommandSystem,
    Fault,
    HttpServer,
    HttpSystem,
    Model,
    ModelParameters,
    ModelSystem,
    Prices,
    PythonSystem,
    ScriptedCall,
    Secret,
    Server,
    StdioServer,
    System,
)
from passhat.records.suite import DEFAULT_MAX_TURNS, DEFAULT_TIMEOUT
from passhat.suite.fields import Part
from passhat.suite.references import secret
from passhat.suite.schema import AgentPart, DefaultsPart
from passhat.suite.system_schema import (
    FaultPart,
    ModelFields,
    ReferencePart,
    ServerPart,
    SystemPart,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a part of a suite is read against: its directory, the environment, the defaults."""

    directory: Path
    env: Mapping[str, str]
    defaults: DefaultsPart

    def choose(self, entry: Part, name: str) -> Any:
        """What the entry says, or else what the defaults say."""
        return getattr(entry if name in entry.written else self.defaults, name)


def build_server(name: str, entry: ServerPart, around: Surroundings) -> Server:
    """A server: a process where there is a command, else an address."""
    if entry.url is not None:
        headers = build_secrets(entry.headers, around)
        if entry.auth is not None:
            text = f"Bearer ${{{entry.auth.bearer_token_env}}}"
            headers["Authorization"] = secret(text, around.env)
        return HttpServer(
            name=name,
            url=entry.url,
            transport=entry.transport,
            headers=headers,
            **_shared_fields(entry),
        )
    return StdioServer(
        name=name,
        argv=_argv([*(entry.command or ()), *entry.args]),
        cwd=around.directory / (entry.cwd or ""),
        env=_environment(entry.env, around),
        **_shared_fields(entry),
    )


def build_system(entry: SystemPart, around: Surroundings) -> System:
    """A system of the kind that the entry names."""
    timeout = around.choose(entry, "timeout") or DEFAULT_TIMEOUT
    if entry.command is not None:
        return CommandSystem(
            name=entry.name,
            argv=_argv(entry.command, beside=around.directory),
            cwd=around.directory / entry.cwd if entry.cwd else None,
            env=_environment(entry.env, around),
            inherit_env=bool(entry.inherit_env),
            outcome=entry.outcome or "auto",
            exit_codes=tuple(entry.exit_codes or (0,)),
            timeout=timeout,
        )
    if entry.python is not None:
        return PythonSystem(
            name=entry.name,
            function=entry.python,
            search=around.directory,
            workers=entry.workers or 0,
            timeout=timeout,
        )
    if entry.http is not None:
        headers = build_secrets(entry.headers, around)
        response = {} if entry.response is None else entry.response.values()
        return HttpSystem(
            name=entry.name,
            url=entry.http,
            headers=headers,
            request=entry.request,
            reads={what: tuple(paths) for what, paths in response.items() if paths},
            timeout=timeout,
        )
    return _model_system(entry, entry.name, str(entry.model), around)


def build_agents(entry: AgentPart, around: Surroundings) -> list[System]:
    """The systems of one agent: one for each of its models, named after it."""
    names = entry.models or [str(entry.model or around.defaults.model)]
    return [_model_system(entry, name, name, around) for name in names]


def build_model(name: str, entry: ModelFields, around: Surroundings) -> Model:
    """A model by name, with the entry's settings over the defaults."""
    settings = {field: around.choose(entry, field) for field in ModelFields.field_types()}
    prices, key = settings["prices"], settings["api_key"]
    return Model(
        name=name,
        parameters=ModelParameters(
            **{field.name: settings[field.name] for field in fields(ModelParameters)}
            | {"stop": tuple(settings["stop"])}
        ),
        wire=settings["wire"],
        base_url=settings["base_url"],
        api_key=_secret(key, around) if key is not None else None,
        headers=build_secrets(settings["headers"], around),
        prices=Prices(**prices.values()) if prices is not None else None,
        script=tuple(
            Behaviour(
                **item.values()
                | {"calls": tuple(ScriptedCall(**call.values()) for call in item.calls)}
            )
            for item in settings["script"]
        ),
        faults=_faults(settings["faults"]),
    )


def build_secrets(
    references: Mapping[str, ReferencePart], around: Surroundings
) -> dict[str, Secret]:
    """Names and the secrets they stand for."""
    return {name: _secret(reference, around) for name, reference in references.items()}


def _model_system(
    entry: AgentPart | SystemPart, name: str, model: str, around: Surroundings
) -> ModelSystem:
    return ModelSystem(
        name=name,
        model=build_model(model, entry, around),
        servers=tuple(around.choose(entry, "servers")),
        system_prompt=around.choose(entry, "system"),
        max_turns=around.choose(entry, "max_turns") or DEFAULT_MAX_TURNS,
        timeout=around.choose(entry, "timeout") or DEFAULT_TIMEOUT,
    )


def _shared_fields(entry: ServerPart) -> dict[str, Any]:
    names = ("shared", "start_timeout", "call_timeout", "resource_tools")
    return {name: getattr(entry, name) for name in names} | {"faults": _faults(entry.faults)}


def _faults(entries: Iterable[FaultPart]) -> tuple[Fault, ...]:
    return tuple(Fault(**entry.values()) for entry in entries)


def _environment(
    references: Mapping[str, ReferencePart], around: Surroundings
) -> dict[str, Secret]:
    """The variables a process sees: one that is only passed on may be unset."""
    return {
        name: _secret(reference, around)
        for name, reference in references.items()
        if reference.env is None or reference.env in around.env
    }


def _secret(reference: ReferencePart, around: Surroundings) -> Secret:
    text = reference.text if reference.text is not None else f"${{{reference.env}}}"
    return secret(text, around.env)


def _argv(words: Iterable[str], *, beside: Path | None = None) -> tuple[str, ...]:
    """The words of a command; a program given by a relative path is next to the suite."""
    program, *arguments = (word.replace("{python}", sys.executable) for word in words)
    if beside is not None and "/" in program:
        program = str(beside / program)
    return (program, *arguments)
