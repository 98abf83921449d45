"""The programs that a suite starts, looked up before anything is started."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from passhat.records import CommandSystem, ModelSystem, Server, StdioServer, Suite, System


def absent_programs(suite: Suite) -> Iterator[str]:
    """What is said of each program that the suite starts and that is not here.

    >>> from passhat.records import Pairing, Task
    >>> agent = CommandSystem(name="mine", argv=("no-such-agent", "{prompt}"))
    >>> suite = Suite(name="s", pairings=(
    ...     Pairing(system=agent, task=Task(name="t"), runs=1, label="t"),))
    >>> list(absent_programs(suite))
    ['system mine: there is no program "no-such-agent": install it, or give its path']
    """
    systems = {p.system.name: p.system for p in suite.pairings}.values()
    used = dict.fromkeys(n for s in systems if isinstance(s, ModelSystem) for n in s.servers)
    for system in systems:
        if reason := lacks_program(system, suite.directory):
            yield f"system {system.name}: {reason}"
    for server in (suite.servers[name] for name in used):
        if reason := lacks_program(server, suite.directory):
            yield f"server {server.name}: {reason}"


def lacks_program(what: System | Server, directory: Path) -> str | None:
    """Why a system or a server cannot be started: its program is not here. None where it is."""
    if not isinstance(what, CommandSystem | StdioServer) or "{" in what.argv[0]:
        return None
    program = what.argv[0]
    # A path is taken from where the program will run; a name is looked up as it will be.
    path = what.env["PATH"].reveal() if "PATH" in what.env else os.environ.get("PATH")
    place = str((what.cwd or directory) / program) if "/" in program else program
    if shutil.which(place, path=path) is not None:
        return None
    if "/" in program and Path(place).is_file():
        return f'"{place}" may not be executed: chmod +x, or name its interpreter first'
    return f'there is no program "{program}": install it, or give its path'
