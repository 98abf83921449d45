"""Descendants that left their group or session: found on Linux by a mark that they all inherit.

A daemon forks twice and calls setsid, so neither its group nor its parent is one of ours. But it
still has the environment that it was started with. Where there is no /proc, none is found.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from passhat.dataclass import dataclass

MARK = "PASSHAT_GROUPS"
"""The variable that holds the marks of all the groups a process descends from, split by colons."""

WRAPPED = 20.0
"""Seconds after which the numbers of processes may have wrapped around."""

_PROC = Path("/proc")
_DEAD = ("Z", "X")


@dataclass(frozen=True, slots=True)
class Descendant:
    """A process, from /proc/PID/stat. A pid is used again; together with the start it is unique."""

    pid: int
    parent: int
    started: int


def marked(env: Mapping[str, str], mark: str) -> dict[str, str]:
    """An environment with one more mark, besides those that we were started with.

    >>> marked({"PASSHAT_GROUPS": "outer"}, "inner")
    {'PASSHAT_GROUPS': 'outer:inner'}
    """
    before = env.get(MARK) or os.environ.get(MARK)
    return {**env, MARK: f"{before}:{mark}" if before else mark}


def descendants(leader: int, mark: str, *, leads: bool, age: float = 0.0) -> list[Descendant]:
    """All descendants of a leader that was started `age` seconds ago, even if it is dead.

    A process that has cleared its environment is found by its parent, as long as that one lives.
    `leads` says that the leader lives: once it is gone, another process may get its number.
    """
    alive = {one.pid: one for one in _younger_than(leader, age)}
    found = [one for one in alive.values() if _has_mark(one.pid, mark)]
    family = {one.pid for one in found} | ({leader} if leads else set())
    while more := [one for one in alive.values() if one.parent in family and one.pid not in family]:
        family |= {one.pid for one in more}
        found += more
    return [one for one in found if one.pid not in (leader, os.getpid())]


def with_mark(mark: str) -> list[Descendant]:
    """All processes with a mark, whichever process started them."""
    return [one for one in _younger_than(0, 0.0) if _has_mark(one.pid, mark)]


def kill(one: Descendant) -> None:
    """Kill this process, and not another one that has got its number since."""
    with suppress(OSError):
        handle = os.pidfd_open(one.pid)
        try:
            if lives(one):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)


def lives(one: Descendant) -> bool:
    """Whether it is still there, and is no zombie."""
    now = _look(one.pid)
    return now is not None and now.started == one.started


def _younger_than(leader: int, age: float) -> Iterator[Descendant]:
    """Living processes with a higher number: those that were started later.

    Numbers begin at the start again when they are used up. If that may have happened, every
    process may be younger.
    """
    try:
        newest = int((_PROC / "loadavg").read_text().split()[-1])
        pids = [int(path.name) for path in _PROC.iterdir() if path.name.isdigit()]
    except (OSError, ValueError):
        return
    for pid in pids:
        younger = pid > leader or newest < leader or age > WRAPPED
        if younger and (one := _look(pid)) is not None:
            yield one


def _look(pid: int) -> Descendant | None:
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name in brackets may hold anything, brackets and blanks too.
    fields = text.rpartition(")")[2].split()
    if len(fields) < 20 or fields[0] in _DEAD:
        return None  # it is gone, or a zombie
    return Descendant(pid, int(fields[1]), int(fields[19]))


def _has_mark(pid: int, mark: str) -> bool:
    assert mark, "an empty mark fits every process"
    try:
        variables = (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return False
    name = f"{MARK}=".encode()
    mine = next((v for v in variables if v.startswith(name)), b"").removeprefix(name)
    return mark.encode() in mine.split(b":")
