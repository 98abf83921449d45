"""Child processes: each leads a group, and when it ends the whole group is killed."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import time
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from passhat.runner import orphan_processes

INHERITED = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
"""What a child sees of our environment unless the suite gives it more."""

LONGEST_QUOTE = 160
"""Characters of the last line on stderr that a reason quotes."""

TERM_GRACE = 0.3
POLL = 0.005

_living: dict[asyncio.subprocess.Process, tuple[str, float]] = {}
"""Leaders of groups that were started and not yet ended: the mark of the group, and its start."""

_starting: set[str] = set()
"""Marks of groups whose leader is being started: it may run before we have its pid."""


async def start_group(
    argv: Sequence[str], *, env: Mapping[str, str], cwd: Path | None, limit: int = 2**16
) -> asyncio.subprocess.Process:
    """Start a process at the head of a new group, with all three streams piped."""
    mark = secrets.token_hex(8)
    _starting.add(mark)
    try:
        return await _start(mark, argv, env=env, cwd=cwd, limit=limit)
    finally:
        _starting.discard(mark)


async def _start(
    mark: str, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path | None, limit: int
) -> asyncio.subprocess.Process:
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=orphan_processes.marked(env, mark),
            cwd=cwd,
            limit=limit,
            start_new_session=True,
        )
    )
    try:
        process = await asyncio.shield(starting)
    except asyncio.CancelledError:
        # A child would be lost if this were cancelled between the fork and its return.
        with suppress(OSError, ValueError):
            process = await starting
            _living[process] = mark, time.monotonic()
            await end_group(process, grace=0.0)
        raise
    _living[process] = mark, time.monotonic()
    return process


def inherited_environment() -> dict[str, str]:
    """The few variables that every child gets."""
    return {name: os.environ[name] for name in INHERITED if name in os.environ}


async def unbroken(work: Coroutine[Any, Any, None]) -> None:
    """Finish a short piece of work, even if the task that waits for it is cancelled.

    A cleanup that is cut off halfway is worse than a late one.
    """
    task = asyncio.ensure_future(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            cancelled = True
    if cancelled and not task.cancelled():
        task.result()
        raise asyncio.CancelledError


async def end_group(process: asyncio.subprocess.Process, *, grace: float = TERM_GRACE) -> None:
    """End a process and all its descendants: with SIGTERM, then with SIGKILL. It never hangs.

    Children of an exited leader keep its group alive, so the group is signalled even then.
    """
    await unbroken(_end_group(process, grace))


async def _end_group(process: asyncio.subprocess.Process, grace: float) -> None:
    family = _descendants(process)
    for sign, patience in ((signal.SIGTERM, grace), (signal.SIGKILL, TERM_GRACE)):
        if not signal_group(process.pid, sign):
            break
        await _gone(process.pid, patience)
    with suppress(TimeoutError):
        async with asyncio.timeout(TERM_GRACE):
            while process.returncode is None:
                await asyncio.sleep(POLL)
    await _end_orphans(process, family)
    _living.pop(process, None)
    # A descendant that left the group may hold a pipe open; the transport must not wait for it.
    transport = getattr(process, "_transport", None)
    if transport is not None:
        transport.close()


def _descendants(process: asyncio.subprocess.Process) -> list[orphan_processes.Descendant]:
    if process not in _living:
        return []  # ended before
    mark, since = _living[process]
    return orphan_processes.descendants(
        process.pid, mark, leads=process.returncode is None, age=time.monotonic() - since
    )


async def _end_orphans(
    process: asyncio.subprocess.Process, family: list[orphan_processes.Descendant]
) -> None:
    """Kill those that left the group, and those that they forked meanwhile, until none is left."""
    loop = asyncio.get_running_loop()
    until = loop.time() + TERM_GRACE
    while loop.time() < until:
        # Those that were killed are waited for too: that takes a moment on a busy machine.
        family = list({*filter(orphan_processes.lives, family), *_descendants(process)})
        if not family:
            return
        for one in family:
            orphan_processes.kill(one)
        await asyncio.sleep(POLL)


def kill_groups() -> None:
    """Kill everything that was started, at once: just before this process exits."""
    for process in list(_living):
        family = _descendants(process)
        signal_group(process.pid, signal.SIGKILL)
        for one in family:
            orphan_processes.kill(one)
    until = time.monotonic() + TERM_GRACE
    for mark in _starting:
        # They may fork while they are listed, and are gone only after a moment.
        while (newborn := orphan_processes.with_mark(mark)) and time.monotonic() < until:
            for one in newborn:
                orphan_processes.kill(one)


def signal_group(pid: int, sign: int) -> bool:
    """Signal a whole group; False if no process is left in it."""
    try:
        os.killpg(pid, sign)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


async def _gone(pid: int, patience: float) -> None:
    loop = asyncio.get_running_loop()
    until = loop.time() + patience
    while signal_group(pid, 0) and loop.time() < until:
        await asyncio.sleep(POLL)


def exit_sentence(code: int, stderr: str) -> str:
    r"""How a program ended, with its last line on stderr.

    >>> exit_sentence(7, "loading\nkaboom\n")
    'exit code 7: kaboom'
    """
    last = stderr.strip().rpartition("\n")[2].strip()
    if len(last) > LONGEST_QUOTE:
        last = f"{last[:LONGEST_QUOTE]}…"
    return f"exit code {code}" + (f": {last}" if last else "")


class Tail:
    """The last bytes of a stream, for messages; reading it keeps the writer from blocking."""

    def __init__(self, size: int = 4096) -> None:
        self._size = size
        self._bytes = b""

    async def follow(self, stream: asyncio.StreamReader) -> None:
        while chunk := await stream.read(2**16):
            self._bytes = (self._bytes + chunk)[-self._size :]

    @property
    def text(self) -> str:
        return self._bytes.decode("utf-8", "replace").strip()


async def talk(
    process: asyncio.subprocess.Process, stdin: bytes, stdout: Tail, stderr: Tail
) -> int:
    """Give a program its input, follow its output, and return its exit code.

    This does not wait for the pipes to close: a child that it left behind may hold them open.
    """
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    following = asyncio.gather(stdout.follow(process.stdout), stderr.follow(process.stderr))
    try:
        process.stdin.write(stdin)
        process.stdin.close()
        while process.returncode is None:
            await asyncio.wait([following], timeout=POLL if following.done() else 10 * POLL)
            if following.done():
                await asyncio.sleep(0.001)
        await asyncio.wait([following], timeout=0.2)
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
    return process.returncode
