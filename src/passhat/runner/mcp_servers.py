"""MCP servers for the trials of a run: started, asked, and always put away."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from passhat.errors import MissingExtra, PasshatError, ServerError, ServerNeverStarted
from passhat.records import HttpServer, Server, StdioServer
from passhat.runner.mcp_stdio import LONGEST_MESSAGE, StdioPipe
from passhat.runner.models.exchange import Attachment, ToolSpec
from passhat.runner.processes import unbroken
from passhat.runner.tools import ToolRequest, ToolResult, unknown_tool

if TYPE_CHECKING:
    from mcp.client.client import Client

STOP_PATIENCE = 5.0
MOST_PAGES = 100
MARGIN = 5.0
MOST_FAILED_STARTS = 3
"""So often a server that has never started may fail before the run is given up."""
NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9_-]")
LONGEST_NAME = 64
"""What model APIs accept as the name of a tool."""


class RunningServer:
    """One started server. A task of its own holds the connection.

    The SDK's scopes must be left by the task that entered them; with a task of their own, a
    trial that is cancelled never tears them.
    """

    def __init__(self, server: Server, *, directory: Path, workdir: Path | None = None) -> None:
        self.server = server
        self.tools: tuple[ToolSpec, ...] = ()
        self._pipe = (
            StdioPipe(server, directory=directory, workdir=workdir)
            if isinstance(server, StdioServer)
            else None
        )
        self._stop = asyncio.Event()
        self._ready = asyncio.Event()
        self._client: Client | None = None
        self._error: BaseException | None = None
        self._owner: asyncio.Task[None] | None = None

    @property
    def gone(self) -> bool:
        """Whether the connection is closed."""
        return self._client is None

    async def start(self) -> None:
        """Start it and read its list of tools, within its `start_timeout`."""
        _require_mcp()
        self._owner = asyncio.create_task(self._own())
        self._owner.add_done_callback(lambda _: self._ready.set())
        try:
            async with asyncio.timeout(self.server.start_timeout):
                await self._ready.wait()
        except TimeoutError:
            text = f"did not start within {self.server.start_timeout:g} s"
            error = self._failure(text)
            await self.stop()
            raise error from None
        if self._client is None:
            raise self._failure("did not start") from self._error

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Call one of its tools, within its `call_timeout`."""
        from mcp.shared.exceptions import MCPError
        from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT

        if self._client is None:
            raise self._failure(f"is gone before the call of {name}")
        started = time.perf_counter()
        try:
            async with asyncio.timeout(self.server.call_timeout):
                result = await self._client.call_tool(name, dict(arguments))
        except TimeoutError:
            seconds = self.server.call_timeout
            raise self._failure(f"did not answer the call of {name} within {seconds:g} s") from None
        except MCPError as error:
            if error.code in (CONNECTION_CLOSED, REQUEST_TIMEOUT) or self.gone:
                raise await self._broken(name, error) from error
            # A refusal of this call, such as arguments that do not fit: the model's to read.
            return self._result(str(error), started, is_error=True)
        except Exception as error:
            raise await self._broken(name, error) from error
        attachments = tuple(_attachments(result))
        return replace(
            self._result(_text_of(result), started, is_error=result.is_error),
            attachments=attachments,
        )

    async def stop(self) -> None:
        """Put the server away, with everything that it started."""
        unfinished = not self._ready.is_set()
        self._client = None
        self._stop.set()
        if self._owner is None:
            return
        if unfinished:
            if self._pipe is not None:
                self._pipe.hurry()
            self._owner.cancel()
        await unbroken(_ended(self._owner))

    def _result(self, text: str, started: float, *, is_error: bool) -> ToolResult:
        if len(text) > LONGEST_MESSAGE:
            raise self._failure(f"answered with more than {LONGEST_MESSAGE} characters")
        return ToolResult(
            text=text,
            is_error=is_error,
            server=self.server.name,
            seconds=time.perf_counter() - started,
        )

    async def _broken(self, name: str, error: BaseException) -> ServerError:
        if self._pipe is not None:
            await self._pipe.exited()
        self._error = error
        return self._failure(f"broke during the call of {name}")

    def _failure(self, what: str) -> ServerError:
        why = "" if self._pipe is None else self._pipe.explain()
        if not why and self._error is not None:
            if isinstance(cause := _first_cause(self._error), PasshatError):
                return ServerError(str(cause))
            why = f"{type(cause).__name__}: {cause}"
        return ServerError(f'server "{self.server.name}" {what}' + (f": {why}" if why else ""))

    async def _own(self) -> None:
        try:
            async with self._connected() as client:
                self.tools = await _list_tools(client)
                self._client = client
                self._ready.set()
                await self._stop.wait()
        except (Exception, BaseExceptionGroup) as error:
            self._error = error
            if self._pipe is not None:
                await self._pipe.exited()
        finally:
            self._client = None

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[Client]:
        from mcp.client.client import Client
        from mcp.client.sse import sse_client
        from mcp.client.streamable_http import streamable_http_client
        from mcp.shared._httpx_utils import create_mcp_http_client

        async with AsyncExitStack() as stack:
            if self._pipe is not None:
                transport = self._pipe.connect()
            else:
                assert isinstance(self.server, HttpServer)
                headers = {name: secret.reveal() for name, secret in self.server.headers.items()}
                if self.server.transport == "sse":
                    transport = sse_client(self.server.url, headers=headers)
                else:
                    http = await stack.enter_async_context(create_mcp_http_client(headers=headers))
                    transport = streamable_http_client(self.server.url, http_client=http)
            # The handshake has `start_timeout`, a call has `call_timeout`: each is bounded where
            # it is made, and this one must not cut the longer of them short.
            longest = max(self.server.start_timeout, self.server.call_timeout) + MARGIN
            client = Client(transport, read_timeout_seconds=longest, cache=None)
            yield await stack.enter_async_context(client)


class McpTools:
    """The tools of several running servers, each under a name of its own.

    A tool keeps its name unless another server has one of the same name: then both are called
    SERVER__TOOL.
    """

    def __init__(self, servers: Sequence[RunningServer]) -> None:
        self._routes: dict[str, tuple[RunningServer, str]] = {}
        specs = []
        offered = [tool.name for server in servers for tool in server.tools]
        for server in servers:
            for tool in server.tools:
                clash = offered.count(tool.name) > 1
                name = f"{server.server.name}__{tool.name}" if clash else tool.name
                name = NOT_IN_A_NAME.sub("_", name)[:LONGEST_NAME]
                self._routes[name] = (server, tool.name)
                specs.append(
                    ToolSpec(name=name, description=tool.description, parameters=tool.parameters)
                )
        self.specs = tuple(specs)

    async def call(self, request: ToolRequest, /) -> ToolResult:
        route = self._routes.get(request.name)
        if route is None:
            return unknown_tool(request.name, self.specs)
        server, tool = route
        return await server.call(tool, request.arguments)

    def server_of(self, name: str) -> Server | None:
        """The server that a tool belongs to."""
        route = self._routes.get(name)
        return None if route is None else route[0].server


@dataclass(slots=True)
class _Starts:
    """How the starts of one server have gone so far."""

    pending: int = 0
    failed: int = 0
    succeeded: int = 0


class ServerPool:
    """The servers of a run: a process each per trial, or one for all where `shared` says so."""

    def __init__(self, *, directory: Path) -> None:
        self._directory = directory
        self._shared: dict[str, RunningServer] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._starts: dict[str, _Starts] = {}

    @asynccontextmanager
    async def tools(
        self, servers: Sequence[Server], *, workdir: Path | None = None
    ) -> AsyncIterator[McpTools]:
        """The tools of these servers, for the length of one trial."""
        own: list[RunningServer] = []
        try:
            started = await _all_or_none([self._serve(each, workdir, own) for each in servers])
            yield McpTools(started)
        finally:
            await asyncio.gather(*(server.stop() for server in own))

    async def close(self) -> None:
        """Put the shared servers away."""
        await asyncio.gather(*(server.stop() for server in self._shared.values()))
        self._shared.clear()

    async def _serve(
        self, server: Server, workdir: Path | None, own: list[RunningServer]
    ) -> RunningServer:
        if server.shared:
            return await self._share(server)
        running = RunningServer(server, directory=self._directory, workdir=workdir)
        own.append(running)
        await self._start(running)
        return running

    async def _start(self, running: RunningServer) -> None:
        """Start a server; give the run up where it never starts.

        One failure among many that start at the same time may be bad luck. One that is alone, or
        the third, is not: all trials that need the server would fail the same way.
        """
        name = running.server.name
        starts = self._starts.setdefault(name, _Starts())
        starts.pending += 1
        try:
            await running.start()
        except ServerError as error:
            starts.failed += 1
            hopeless = starts.pending == 1 or starts.failed >= MOST_FAILED_STARTS
            if not starts.succeeded and hopeless:
                raise ServerNeverStarted(str(error)) from error
            raise
        finally:
            starts.pending -= 1
        starts.succeeded += 1

    async def _share(self, server: Server) -> RunningServer:
        async with self._locks.setdefault(server.name, asyncio.Lock()):
            running = self._shared.get(server.name)
            # One that died is started anew: its death was an error of one trial, not of all.
            if running is None or running.gone:
                running = RunningServer(server, directory=self._directory)
                await self._start(running)
                self._shared[server.name] = running
            return running


async def _ended(owner: asyncio.Task[None]) -> None:
    _, pending = await asyncio.wait([owner], timeout=STOP_PATIENCE)
    for task in pending:
        task.cancel()
    await asyncio.gather(owner, return_exceptions=True)


async def _all_or_none(starting: Sequence[Any]) -> list[RunningServer]:
    tasks = [asyncio.ensure_future(each) for each in starting]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


async def _list_tools(client: Client) -> tuple[ToolSpec, ...]:
    specs: list[ToolSpec] = []
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        page = await client.list_tools(cursor=cursor)
        specs += [
            ToolSpec(
                name=tool.name,
                description=tool.description or "",
                parameters=dict(tool.input_schema),
            )
            for tool in page.tools
        ]
        cursor = page.next_cursor
        if not cursor:
            return tuple(specs)
    raise ServerError(f"its list of tools has more than {MOST_PAGES} pages")


def _text_of(result: Any) -> str:
    """The result of a call as text: what is not text is named, not shown."""
    parts = []
    for block in result.content:
        if block.type == "text":
            parts.append(block.text)
        elif block.type == "resource" and hasattr(block.resource, "text"):
            parts.append(block.resource.text)
        elif block.type == "resource_link":
            parts.append(f"[{block.uri}]")
        else:
            parts.append(f"[{block.type} {getattr(block, 'mime_type', '')}]".replace(" ]", "]"))
    if not parts and result.structured_content is not None:
        import msgspec

        return msgspec.json.encode(result.structured_content).decode()
    return "\n".join(parts)


def _attachments(result: Any) -> Iterator[Attachment]:
    """The images and sounds of a result, for models that take them."""
    total = 0
    for block in result.content:
        if block.type in ("image", "audio"):
            total += len(block.data)
            if total <= LONGEST_MESSAGE:
                yield Attachment(mime=block.mime_type or "image/png", data=block.data)


def _first_cause(error: BaseException) -> BaseException:
    """What lies inside nested groups of exceptions: the first that is not a cancellation."""
    if isinstance(error, BaseExceptionGroup):
        inner = [_first_cause(each) for each in error.exceptions]
        real = [each for each in inner if not isinstance(each, asyncio.CancelledError)]
        return (real or inner)[0]
    return error


def _require_mcp() -> None:
    try:
        import mcp  # noqa: F401
    except ImportError:
        raise MissingExtra("using MCP servers", "run") from None
