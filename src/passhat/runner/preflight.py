"""Whether the programs and functions of a suite are there, before anything is started."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from passhat.dataclass import dataclass
from passhat.errors import SuiteError
from passhat.records import (
    CommandSystem,
    PythonSystem,
    Server,
    StdioServer,
    Suite,
    System,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingProgram:
    """Something that a system or server of a suite needs and does not have, by its key."""

    section: Literal["systems", "servers", "users"]
    name: str
    key: str
    reason: str

    def __str__(self) -> str:
        return f"{self.section.removesuffix('s')} {self.name}: {self.reason}"


def absent_programs(suite: Suite) -> Iterator[MissingProgram]:
    """Each program that the suite starts and that is not here.

    >>> from passhat.records import Pairing, Task
    >>> agent = CommandSystem(name="mine", argv=("no-such-agent", "{prompt}"))
    >>> suite = Suite(name="s", pairings=(
    ...     Pairing(system=agent, task=Task(name="t"), runs=1, label="t"),))
    >>> [str(absent) for absent in absent_programs(suite)]
    ['system mine: there is no program "no-such-agent": install it, or give its path']
    """
    for system in _systems(suite):
        if reason := lacks_program(system, suite.directory):
            yield MissingProgram(section="systems", name=system.name, key="command", reason=reason)
    for server in suite.used_servers:
        if reason := lacks_program(server, suite.directory):
            yield MissingProgram(section="servers", name=server.name, key="command", reason=reason)


def absent_functions(suite: Suite) -> Iterator[MissingProgram]:
    """Each function that the suite calls and that cannot be imported or called.

    Functions that run in worker processes are not imported here: they may hang or crash.
    """
    for system in _systems(suite):
        if not isinstance(system, PythonSystem) or system.workers:
            continue
        if reason := lacks_function(system):
            yield MissingProgram(section="systems", name=system.name, key="python", reason=reason)
    for user in suite.users:
        if user.function is not None and (reason := _lacks(user.function, suite.directory)):
            yield MissingProgram(section="users", name=user.name, key="python", reason=reason)


def absent_modules(suite: Suite) -> Iterator[MissingProgram]:
    """Each module of a function that is not here; nothing is imported, so nothing of it runs."""
    named: list[tuple[Literal["systems", "users"], str, str, Path | None]] = [
        ("systems", system.name, system.function, system.search)
        for system in _systems(suite)
        if isinstance(system, PythonSystem)
    ]
    named += [
        ("users", user.name, user.function, suite.directory)
        for user in suite.users
        if user.function is not None
    ]
    for section, name, function, search in named:
        module = function.partition(":")[0]
        if not _can_find(module, search):
            where = f"neither in {search or Path()} nor among the installed packages"
            reason = f'there is no module "{module}", {where}'
            yield MissingProgram(section=section, name=name, key="python", reason=reason)


def _can_find(module: str, folder: Path | None) -> bool:
    """Whether a module can be found, in the folder first; parents are looked into, not imported."""
    top, *below = module.split(".")
    spec = PathFinder.find_spec(top, [str((folder or Path()).absolute())]) or find_spec(top)
    name = top
    for part in below:
        if spec is None or not spec.submodule_search_locations:
            break
        name = f"{name}.{part}"
        spec = PathFinder.find_spec(name, list(spec.submodule_search_locations))
    return spec is not None


def lacks_function(system: PythonSystem) -> str | None:
    """Why the function of a system cannot be called; None if it can."""
    from passhat.runner.agents.python import load_agent, wanted_by

    try:
        wanted_by(load_agent(system.function, search=system.search), about=system.function)
    except SuiteError as error:
        return str(error)
    return None


def _lacks(function: str, directory: Path) -> str | None:
    from passhat.runner.agents.python import load_function

    try:
        load_function(function, search=directory)
    except SuiteError as error:
        return str(error)
    return None


def lacks_program(what: System | Server, directory: Path) -> str | None:
    """Why a system or a server cannot be started: its program is not here. None if it is."""
    if not isinstance(what, CommandSystem | StdioServer):
        return None
    if "{" in what.argv[0] or "{" in str(what.cwd or ""):
        return None  # it is different for each trial, and not known yet
    program = what.argv[0]
    # A path starts from where the program will run; a name is looked up on its PATH.
    path = what.env["PATH"].reveal() if "PATH" in what.env else os.environ.get("PATH")
    place = str((what.cwd or directory) / program) if "/" in program else program
    if shutil.which(place, path=path) is not None:
        return None
    if "/" in program and Path(place).is_file():
        return f'"{place}" may not be executed: chmod +x, or name its interpreter first'
    agent = what.agent if isinstance(what, CommandSystem) else None
    if agent is not None:
        from passhat.records.coding_agents import CODING_AGENTS

        return f'there is no program "{program}": {CODING_AGENTS[agent].install}'
    return f'there is no program "{program}": install it, or give its path'


def _systems(suite: Suite) -> Iterable[System]:
    return {pairing.system.name: pairing.system for pairing in suite.pairings}.values()
