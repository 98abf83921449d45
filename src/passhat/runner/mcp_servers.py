"""The MCP servers of a run and their tools: one process for each trial, or one for all."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import re
import time
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from passhat.dataclass import dataclass
from passhat.errors import MissingExtra, PasshatError, ServerError, ServerNeverStarted
from passhat.records import HttpServer, Server, StdioServer
from passhat.records.secrets import bare_address
from passhat.runner.models.exchange import (
    GET_PROMPT,
    READ_RESOURCE,
    Attachment,
    ToolRequest,
    ToolResult,
    ToolSpec,
    unknown_tool,
)
from passhat.runner.preflight import lacks_program
from passhat.runner.processes import Tail, end_group, inherited_environment, start_group, unbroken

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import TransportStreams
    from mcp.client.client import Client
    from mcp.shared.message import SessionMessage

MOST_FAILED_STARTS = 3
"""How often a server that has never started may fail before the run is given up."""
NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9_-]")
LONGEST_NAME = 64
"""What model APIs accept as the name of a tool."""

LIST_RESOURCES = ToolSpec(
    name="list_mcp_resources",
    description="List the resources that can be read: the address of each, and what it is.",
    parameters={"type": "object", "properties": {}},
)
READ_MCP_RESOURCE = ToolSpec(
    name="read_mcp_resource",
    description="Read a resource by its address.",
    parameters={
        "type": "object",
        "properties": {"uri": {"type": "string", "description": "the address of the resource"}},
        "required": ["uri"],
    },
)
RESOURCE_TOOLS = (LIST_RESOURCES, READ_MCP_RESOURCE)


class McpTools:
    """The tools of several running servers, each under a name of its own.

    A tool keeps its name unless another server has one of the same name: then both are called
    SERVER__TOOL. Characters that model APIs refuse become underscores, and names that are then
    equal get a number. Servers with `resource_tools` share two more tools, to list and to read
    resources.
    """

    def __init__(self, servers: Sequence[RunningServer]) -> None:
        self._servers = servers
        self._routes: dict[str, tuple[RunningServer, str]] = {}
        self._readable = [server for server in servers if server.server.resource_tools]
        shared = RESOURCE_TOOLS if self._readable else ()
        taken = {spec.name for spec in shared}
        offered = [tool.name for server in servers for tool in server.tools]
        specs = []
        for server in servers:
            for tool in server.tools:
                clash = offered.count(tool.name) > 1
                name = f"{server.server.name}__{tool.name}" if clash else tool.name
                name = _free_name(name, taken)
                taken.add(name)
                self._routes[name] = (server, tool.name)
                specs.append(replace(tool, name=name))
        self.specs = (*specs, *shared)

    async def call(self, request: ToolRequest, /) -> ToolResult:
        given = request.arguments
        if request.name == READ_RESOURCE:
            return await self._first(given, lambda server: server.read_resource(given["uri"]))
        if request.name == GET_PROMPT:
            name, values = given["name"], given["arguments"]
            return await self._first(given, lambda server: server.get_prompt(name, values))
        if self._readable and request.name in (LIST_RESOURCES.name, READ_MCP_RESOURCE.name):
            return await self._resources(request)
        route = self._routes.get(request.name)
        if route is None:
            return unknown_tool(request.name, self.specs)
        server, tool = route
        return await server.call(tool, request.arguments)

    def server_of(self, name: str) -> Server | None:
        """The server that a tool belongs to."""
        route = self._routes.get(name)
        return None if route is None else route[0].server

    async def _first(
        self,
        given: Mapping[str, Any],
        asking: Callable[[RunningServer], Awaitable[ToolResult]],
        among: Sequence[RunningServer] | None = None,
    ) -> ToolResult:
        """The first answer that is not a refusal; else the last refusal."""
        named = given.get("server")
        servers = self._servers if among is None else among
        result = ToolResult(text=f"there is no server {named!r}" if named else "", is_error=True)
        for server in servers:
            if named in (None, server.server.name):
                result = await asking(server)
                if not result.is_error:
                    return result
        return result

    async def _resources(self, request: ToolRequest) -> ToolResult:
        """The result of one of the two tools for resources."""
        if request.name == READ_MCP_RESOURCE.name:
            uri = str(request.arguments.get("uri", ""))
            return await self._first({}, lambda server: server.read_resource(uri), self._readable)
        lists = [await server.list_resources() for server in self._readable]
        lines = [listed.text for listed in lists if listed.text and not listed.is_error]
        return ToolResult(
            text="\n".join(lines) or "There are no resources.",
            server=self._readable[0].server.name,
            seconds=sum(listed.seconds for listed in lists),
        )


@dataclass(slots=True)
class _Starts:
    """How the starts of one server have gone so far."""

    pending: int = 0
    failed: int = 0
    succeeded: int = 0


class ServerPool:
    """The servers of a run: a process for each trial, or one for all where `shared` says so."""

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
        """Stop the shared servers."""
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
        """Start a server; give up the run if it never starts.

        One failure while others are starting may be bad luck. A failure with no other start under
        way, or the third, is not: all trials that need the server would fail the same way.
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
            # A server that died is started again: only the trial that was using it fails.
            if running is None or running.gone:
                running = RunningServer(server, directory=self._directory)
                await self._start(running)
                self._shared[server.name] = running
            return running


def _free_name(name: str, taken: Collection[str]) -> str:
    """A name that model APIs accept and no other tool has.

    >>> _free_name("get.time", {"get_time"})
    'get_time_2'
    """
    plain = NOT_IN_A_NAME.sub("_", name)[:LONGEST_NAME]
    numbered = (f"{plain[: LONGEST_NAME - len(f'_{n}')]}_{n}" for n in itertools.count(2))
    return next(each for each in itertools.chain([plain], numbered) if each not in taken)


async def _all_or_none(starting: Sequence[Any]) -> list[RunningServer]:
    tasks = [asyncio.ensure_future(each) for each in starting]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


STOP_PATIENCE = 5.0

MOST_PAGES = 100
MARGIN = 5.0


class RunningServer:
    """One started server. A separate task holds the connection.

    The SDK's scopes must be left by the task that entered them: no trial does, so that one that is
    cancelled does not break them.
    """

    def __init__(self, server: Server, *, directory: Path, workdir: Path | None = None) -> None:
        self.server = server
        self.tools: tuple[ToolSpec, ...] = ()
        self.may_change: dict[str, bool] = {}
        """Whether a tool may change something, by name, where the server says so. It is not part of
        a ToolSpec because models are not shown it."""
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
        try:
            import mcp  # noqa: F401
        except ImportError:
            raise MissingExtra("using MCP servers", "run") from None
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
        except asyncio.CancelledError:
            # Nobody else knows of a server that is being started; and a task of the SDK that is
            # cancelled with the loop, before its first step, waits for ever.
            await self.stop()
            raise
        if self._client is None:
            raise self._failure("did not start") from self._error

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Call one of its tools, within its `call_timeout`."""

        async def call(client: Client) -> ToolResult:
            result = await client.call_tool(name, dict(arguments))
            return ToolResult(
                text=_result_text(result),
                is_error=bool(result.is_error),
                attachments=tuple(_attachments(result.content)),
            )

        return await self._ask(f"the call of {name}", call)

    async def read_resource(self, uri: str) -> ToolResult:
        """Read one of its resources; a result with `is_error` if it has none of that name."""

        async def read(client: Client) -> ToolResult:
            contents = (await client.read_resource(uri)).contents
            texts = [
                f'<resource uri="{part.uri}">\n{_contents_text(part)}\n</resource>'
                for part in contents
            ]
            attachments = tuple(_resource_attachments(contents))
            return ToolResult(text="\n".join(texts), attachments=attachments)

        return await self._ask(f"the request for {uri}", read)

    async def get_prompt(self, name: str, arguments: Mapping[str, str]) -> ToolResult:
        """The messages of one of its prompts, as JSON; `is_error` if it has none of the name."""

        async def get(client: Client) -> ToolResult:
            prompt = await client.get_prompt(name, dict(arguments))
            turns = [
                {"role": message.role, "text": _block_text(message.content)}
                for message in prompt.messages
            ]
            shown = _attachments(message.content for message in prompt.messages)
            return ToolResult(text=msgspec.json.encode(turns).decode(), attachments=tuple(shown))

        return await self._ask(f"the request for the prompt {name}", get)

    async def list_resources(self) -> ToolResult:
        """A line for each of its resources and templates; nothing if it has none."""

        async def list_all(client: Client) -> ToolResult:
            resources = await _pages(client.list_resources, "resources")
            lines = [f"{r.uri}  {r.description or r.name}" for r in resources]
            templates = await _pages(client.list_resource_templates, "resource_templates")
            lines += [f"{t.uri_template}  {t.description or t.name}" for t in templates]
            return ToolResult(text="\n".join(lines))

        return await self._ask("the request for its resources", list_all)

    async def _ask(
        self, what: str, asking: Callable[[Client], Awaitable[ToolResult]]
    ) -> ToolResult:
        """Ask the server something, within its `call_timeout`; a refusal is a result too."""
        from mcp.shared.exceptions import MCPError
        from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT

        if self._client is None:
            raise self._failure(f"is gone before {what}")
        started = time.perf_counter()
        try:
            async with asyncio.timeout(self.server.call_timeout):
                result = await asking(self._client)
        except TimeoutError:
            seconds = self.server.call_timeout
            raise self._failure(f"did not answer {what} within {seconds:g} s") from None
        except MCPError as error:
            if error.code in (CONNECTION_CLOSED, REQUEST_TIMEOUT) or self.gone:
                raise await self._broken(what, error) from error
            # A refusal of this request (arguments that do not fit) is for the model to read.
            result = ToolResult(text=str(error), is_error=True)
        except Exception as error:
            raise await self._broken(what, error) from error
        if len(result.text) > LONGEST_MESSAGE:
            raise self._failure(f"answered with more than {LONGEST_MESSAGE} characters")
        seconds = time.perf_counter() - started
        return replace(result, server=self.server.name, seconds=seconds)

    async def stop(self) -> None:
        """Stop the server, with everything that it started."""
        unfinished = not self._ready.is_set()
        self._client = None
        self._stop.set()
        if self._owner is None:
            return
        if unfinished:
            if self._pipe is not None:
                self._pipe.hurry()
            self._owner.cancel()
        await unbroken(_end_task(self._owner))

    async def _broken(self, what: str, error: BaseException) -> ServerError:
        if self._pipe is not None:
            await self._pipe.exited()
        self._error = error
        return self._failure(f"broke during {what}")

    def _failure(self, what: str) -> ServerError:
        why = "" if self._pipe is None else self._pipe.explain()
        if not why and self._error is not None:
            if isinstance(cause := _first_cause(self._error), PasshatError):
                return ServerError(str(cause))
            why = f"{type(cause).__name__}: {cause}"
        if isinstance(self.server, HttpServer):
            why = why.replace(self.server.url, bare_address(self.server.url))
        return ServerError(f'server "{self.server.name}" {what}' + (f": {why}" if why else ""))

    async def _own(self) -> None:
        try:
            async with self._connected() as client:
                listed = await _pages(client.list_tools, "tools")
                self.tools = tuple(
                    ToolSpec(
                        name=tool.name,
                        description=tool.description or "",
                        parameters=dict(tool.input_schema),
                    )
                    for tool in listed
                )
                self.may_change = {
                    tool.name: words
                    for tool in listed
                    if (words := _says_it_changes(tool)) is not None
                }
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


async def _end_task(task: asyncio.Task[None]) -> None:
    _, pending = await asyncio.wait([task], timeout=STOP_PATIENCE)
    if pending:
        task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _says_it_changes(tool: Any) -> bool | None:
    """What the annotations of a tool say; None if they say nothing that decides it.

    A tool that is "not destructive" may still add something.
    """
    hints = tool.annotations
    if hints is None:
        return None
    if hints.read_only_hint is not None:
        return not hints.read_only_hint
    return True if hints.destructive_hint else None


async def _pages(listing: Callable[..., Awaitable[Any]], what: str) -> list[Any]:
    """Everything in a list that a server returns page by page."""
    items: list[Any] = []
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        page = await listing(cursor=cursor)
        items += getattr(page, what)
        cursor = page.next_cursor
        if not cursor:
            return items
    raise ValueError(f"the list of {what} has more than {MOST_PAGES} pages")


def _first_cause(error: BaseException) -> BaseException:
    """The first exception inside nested groups that is not a cancellation."""
    if isinstance(error, BaseExceptionGroup):
        inner = [_first_cause(each) for each in error.exceptions]
        real = [each for each in inner if not isinstance(each, asyncio.CancelledError)]
        return (real or inner)[0]
    return error


def _result_text(result: Any) -> str:
    """The result of a tool call as text."""
    if not result.content and result.structured_content is not None:
        return msgspec.json.encode(result.structured_content).decode()
    return "\n".join(map(_block_text, result.content))


def _attachments(blocks: Iterable[Any]) -> Iterator[Attachment]:
    """The images and sounds among content blocks, for models that take them."""
    total = 0
    for block in blocks:
        mime, data = _media(block)
        total += len(data)
        if data and total <= LONGEST_MESSAGE:
            yield Attachment(mime=mime or "image/png", data=data)


def _resource_attachments(contents: Iterable[Any]) -> Iterator[Attachment]:
    """The images and sounds among the contents of a resource."""
    for part in contents:
        if _is_media(part) and len(part.blob) <= LONGEST_MESSAGE:
            yield Attachment(mime=part.mime_type, data=part.blob)


def _block_text(block: Any) -> str:
    """A content block as text; what is not text is only named."""
    if block.type == "text":
        return str(block.text)
    if block.type == "resource":
        return _contents_text(block.resource)
    if block.type == "resource_link":
        return f"[{block.uri}]"
    return f"[{block.type} {getattr(block, 'mime_type', '')}]".replace(" ]", "]")


def _contents_text(part: Any) -> str:
    if hasattr(part, "text"):
        return str(part.text)
    if (part.mime_type or "").startswith(("text/", "application/json")):
        return base64.b64decode(part.blob).decode("utf-8", "replace")
    return f"[{part.mime_type or 'binary data'}]"


def _media(block: Any) -> tuple[str | None, str]:
    """The type and the data of an image or a sound, also of one embedded as a resource."""
    if block.type in ("image", "audio"):
        return block.mime_type, block.data
    resource = getattr(block, "resource", None)
    if resource is not None and _is_media(resource):
        return resource.mime_type, resource.blob
    return None, ""


def _is_media(part: Any) -> bool:
    return hasattr(part, "blob") and (part.mime_type or "").startswith(("image/", "audio/"))


# An MCP server as a child process: the transport under the SDK's client.
#
# The SDK's own stdio transport splits its whole buffer again at every chunk (quadratic in the
# size of a message), dies on bytes that are not UTF-8 and leaves grandchildren behind; this one
# does not.

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
