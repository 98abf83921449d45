"""Child processes that never outlive their purpose: each leads a group, and the group is killed."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

INHERITED = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
"""What a child sees of our environment unless the suite gives it more."""

TERM_GRACE = 0.3
POLL = 0.005

_living: set[int] = set()
"""Leaders of groups that were started and not yet ended."""


async def start_group(
    argv: Sequence[str], *, env: Mapping[str, str], cwd: Path | None, limit: int = 2**16
) -> asyncio.subprocess.Process:
    """Start a process at the head of a new group, with all three streams piped."""
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=dict(env),
            cwd=cwd,
            limit=limit,
            start_new_session=True,
        )
    )
    try:
        process = await asyncio.shield(starting)
    except asyncio.CancelledError:
        # Between the fork and our hearing of it the child would belong to nobody.
        with suppress(OSError, ValueError):
            await end_group(await starting, grace=0.0)
        raise
    _living.add(process.pid)
    return process


def inherited_environment() -> dict[str, str]:
    """The few variables that every child may see."""
    return {name: os.environ[name] for name in INHERITED if name in os.environ}


async def unbroken(work: Coroutine[Any, Any, None]) -> None:
    """Carry a short piece of work to its end, even if whoever waits for it is cancelled.

    Putting things away half is worse than being late.
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
    """End a process and all its descendants: politely, then not. Never hangs, never half done.

    Children of an exited leader keep its group alive, so the group is signalled even then.
    """
    await unbroken(_end_group(process, grace))


async def _end_group(process: asyncio.subprocess.Process, grace: float) -> None:
    for sign, patience in ((signal.SIGTERM, grace), (signal.SIGKILL, TERM_GRACE)):
        if not signal_group(process.pid, sign):
            break
        await _gone(process.pid, patience)
    with suppress(TimeoutError):
        async with asyncio.timeout(TERM_GRACE):
            while process.returncode is None:
                await asyncio.sleep(POLL)
    _living.discard(process.pid)
    # A descendant that left the group may hold a pipe open; the transport must not wait for it.
    transport = getattr(process, "_transport", None)
    if transport is not None:
        transport.close()


def kill_groups() -> None:
    """Kill everything that was started, now: for the last moment of a process."""
    for pid in list(_living):
        signal_group(pid, signal.SIGKILL)


def signal_group(pid: int, sign: int) -> bool:
    """Signal a whole group; False if there is nobody left in it."""
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
