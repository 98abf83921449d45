"""Which process this is, so that another one can tell whether it still lives."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

from passhat.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessIdentity:
    """A process: the host's name, where its pid counts, the pid, and when it was born.

    A pid alone is not enough: it is used again after a while, and two containers that share a
    host's name each have a process 1. `place` is the boot of the machine and the pid namespace.
    """

    host: str
    place: str
    pid: int
    born: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"

    def is_dead(self) -> bool:
        """Whether the process is known to be gone; False where that cannot be seen from here."""
        if not self.place or self.place != _place():
            return False
        return _born(self.pid) != self.born

    def is_this(self) -> bool:
        """Whether it is the process that asks."""
        return self == this_process()


def this_process() -> ProcessIdentity:
    """The identity of the process that asks."""
    pid = os.getpid()
    return ProcessIdentity(host=platform.node(), place=_place(), pid=pid, born=_born(pid))


def _place() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        # Elsewhere a pid counts on the whole machine; its name is the best there is.
        return platform.node()


def _born(pid: int) -> str:
    """When a process started, in the words of the system; "" if there is none, or a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return "" if Path("/proc/self/stat").exists() else _born_by_ps(pid)
    except OSError:
        return ""
    # The name of the program, in brackets, may hold anything; behind it come state, ..., starttime.
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] in "ZX" else fields[19]


def _born_by_ps(pid: int) -> str:
    done = subprocess.run(
        ["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return done.stdout.strip()
