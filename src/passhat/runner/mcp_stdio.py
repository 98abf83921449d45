"""An MCP server as a child process: the transport under the SDK's client.

The SDK's own stdio transport splits its whole buffer again at every chunk (quadratic in the size of
a message), dies on bytes that are not UTF-8 and leaves grandchildren behind; this one does not.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from passhat.errors import ServerError
from passhat.records import StdioServer
from passhat.runner.processes import (
    Tail,
    end_group,
    inherited_environment,
    start_group,
    unbroken,
)
from passhat.runner.programs import lacks_program

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import TransportStreams
    from mcp.shared.message import SessionMessage

LONGEST_MESSAGE = 8 * 2**20
MOST_GARBAGE = 2**20
"""Bytes on stdout that are not JSON-RPC before we stop listening; a banner is tolerated."""

CHUNK = 2**16
EXIT_GRACE = 0.5


class StdioPipe:
    """One server process and the two streams to it."""

    def __init__(self, server: StdioServer, *, directory: Path, workdir: Path | None) -> None:
        self._server = server
        self._directory = directory
        self._workdir = workdir
        self._stderr = Tail()
        self._garbage = 0
        self._last_garbage = ""
        self._failure = ""
        self._exit_grace = EXIT_GRACE
        self._ended_by_us = False
        self._process: asyncio.subprocess.Process | None = None

    @contextlib.asynccontextmanager
    async def connect(self) -> AsyncIterator[TransportStreams]:
        """The streams, in the form that the SDK's client takes."""
        import anyio

        process = await self._start()
        to_client, incoming = anyio.create_memory_object_stream["SessionMessage | Exception"](16)
        outgoing, from_client = anyio.create_memory_object_stream["SessionMessage"](16)
        tasks = [
            asyncio.create_task(self._stderr.follow(_stream(process.stderr))),
            asyncio.create_task(self._read(process, to_client)),
            asyncio.create_task(self._write(process, from_client)),
        ]
        try:
            yield incoming, outgoing
        finally:
            streams = (to_client, incoming, outgoing, from_client)
            await unbroken(self._put_away(process, tasks, streams))

    def explain(self) -> str:
        """What is known about why the server does not answer."""
        parts = [self._failure] if self._failure else []
        code = None if self._process is None else self._process.returncode
        if not parts and code is not None and not self._ended_by_us:
            parts.append(f"it exited with code {code}")
        if self._garbage:
            parts.append(f"it wrote to stdout what is not JSON-RPC: {self._last_garbage!r}")
        # The last line first: an exception is at the end, and long messages are cut there.
        before, _, last = self._stderr.text.rpartition("\n")
        if last:
            parts.append(f"its last line on stderr: {last[-500:].strip()}")
        if before.strip():
            parts.append(f"before that: {before[-1000:].strip()}")
        return "; ".join(parts)

    def hurry(self) -> None:
        """Kill the process as soon as the connection ends."""
        self._exit_grace = 0.0

    async def exited(self) -> None:
        """Wait a moment for a dying process to be gone and its last output to be read."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.2):
                while self._process is not None and self._process.returncode is None:
                    await asyncio.sleep(0.005)
        await asyncio.sleep(0.01)

    async def _start(self) -> asyncio.subprocess.Process:
        server = self._server
        env = inherited_environment()
        env |= {name: secret.reveal() for name, secret in server.env.items()}
        workdir = "" if self._workdir is None else str(self._workdir)
        if workdir:
            env["PASSHAT_WORKDIR"] = workdir
        argv = [part.replace("{workdir}", workdir) for part in server.argv]
        try:
            self._process = await start_group(argv, env=env, cwd=self._cwd())
        except (OSError, ValueError) as error:
            why = lacks_program(server, self._directory) or f"{' '.join(argv)!r}: {error}"
            raise ServerError(f'server "{server.name}" cannot be started: {why}') from error
        return self._process

    def _cwd(self) -> Path:
        cwd = self._server.cwd
        if cwd is not None and cwd.name == "{workdir}" and self._workdir is not None:
            return self._workdir
        return cwd or self._directory

    async def _put_away(
        self,
        process: asyncio.subprocess.Process,
        tasks: Sequence[asyncio.Task[None]],
        streams: Sequence[Any],
    ) -> None:
        await self._stop(process)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for stream in streams:
            stream.close()

    async def _stop(self, process: asyncio.subprocess.Process) -> None:
        # A server that closed its output has ended by itself, even if its code is not known yet.
        self._ended_by_us = process.returncode is None and not _stream(process.stdout).at_eof()
        if process.stdin is not None:
            process.stdin.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._exit_grace):
                while process.returncode is None:
                    await asyncio.sleep(0.005)
        await end_group(process)

    async def _read(
        self,
        process: asyncio.subprocess.Process,
        to_client: MemoryObjectSendStream[SessionMessage | Exception],
    ) -> None:
        stdout = _stream(process.stdout)
        buffer = bytearray()
        with to_client:
            while chunk := await stdout.read(CHUNK):
                searched = len(buffer)
                buffer += chunk
                start = 0
                while (end := buffer.find(b"\n", max(start, searched))) >= 0:
                    await self._deliver(bytes(buffer[start:end]), to_client)
                    start = end + 1
                del buffer[:start]
                if len(buffer) > LONGEST_MESSAGE:
                    self._failure = f"a message of more than {LONGEST_MESSAGE} bytes"
                if self._failure:
                    break
        # The client knows by now; the rest is read so that the server does not block on its exit.
        while await stdout.read(CHUNK):
            pass

    async def _deliver(
        self, line: bytes, to_client: MemoryObjectSendStream[SessionMessage | Exception]
    ) -> None:
        from mcp.shared.message import SessionMessage
        from mcp_types import jsonrpc_message_adapter

        text = line.decode("utf-8", "replace").strip()
        if not text:
            return
        try:
            message = jsonrpc_message_adapter.validate_json(text, by_name=False)
        except ValueError:
            self._garbage += len(line)
            self._last_garbage = text[:200]
            if self._garbage > MOST_GARBAGE:
                self._failure = f"more than {MOST_GARBAGE} bytes that are not JSON-RPC"
            return
        import anyio

        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await to_client.send(SessionMessage(message))

    async def _write(
        self,
        process: asyncio.subprocess.Process,
        from_client: MemoryObjectReceiveStream[SessionMessage],
    ) -> None:
        stdin = process.stdin
        assert stdin is not None
        async for session_message in from_client:
            message = session_message.message
            stdin.write(message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
            try:
                await stdin.drain()
            except (ConnectionError, OSError):
                return  # the reader sees the end of stdout and tells the client


def _stream(stream: asyncio.StreamReader | None) -> asyncio.StreamReader:
    assert stream is not None, "every stream is piped"
    return stream
