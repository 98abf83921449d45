"""MCP servers for the trials of a run: started, asked, stopped; and what they return."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from passhat.errors import MissingExtra, PasshatError, ServerError
from passhat.records import HttpServer, Server, StdioServer
from passhat.records.secrets import bare_address
from passhat.runner.mcp_stdio import LONGEST_MESSAGE, StdioPipe
from passhat.runner.models.exchange import Attachment, ToolSpec
from passhat.runner.processes import unbroken
from passhat.runner.tools import ToolResult

if TYPE_CHECKING:
    from mcp.client.client import Client

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
            found = (await client.read_resource(uri)).contents
            return ToolResult(
                text=_resource_text(found),
                attachments=tuple(_resource_attachments(found)),
            )

        return await self._ask(f"the request for {uri}", read)

    async def get_prompt(self, name: str, arguments: Mapping[str, str]) -> ToolResult:
        """The messages of one of its prompts, as JSON; `is_error` if it has none of the name."""

        async def get(client: Client) -> ToolResult:
            prompt = await client.get_prompt(name, dict(arguments))
            shown = _attachments(message.content for message in prompt.messages)
            return ToolResult(text=_prompt_turns(prompt), attachments=tuple(shown))

        return await self._ask(f"the request for the prompt {name}", get)

    async def list_resources(self) -> ToolResult:
        """A line for each of its resources and templates; nothing if it has none."""

        async def list_all(client: Client) -> ToolResult:
            found = await _pages(client.list_resources, "resources")
            lines = [f"{one.uri}  {one.description or one.name}" for one in found]
            templates = await _pages(client.list_resource_templates, "resource_templates")
            lines += [f"{one.uri_template}  {one.description or one.name}" for one in templates]
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
        await unbroken(_ended(self._owner))

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
                self.tools = tuple(map(_tool_spec, listed))
                self.may_change = {
                    tool.name: said
                    for tool in listed
                    if (said := _says_it_changes(tool)) is not None
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


async def _ended(owner: asyncio.Task[None]) -> None:
    _, pending = await asyncio.wait([owner], timeout=STOP_PATIENCE)
    for task in pending:
        task.cancel()
    await asyncio.gather(owner, return_exceptions=True)


def _tool_spec(tool: Any) -> ToolSpec:
    return ToolSpec(
        name=tool.name, description=tool.description or "", parameters=dict(tool.input_schema)
    )


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
    found: list[Any] = []
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        page = await listing(cursor=cursor)
        found += getattr(page, what)
        cursor = page.next_cursor
        if not cursor:
            return found
    raise ValueError(f"the list of {what} has more than {MOST_PAGES} pages")


def _first_cause(error: BaseException) -> BaseException:
    """The first exception inside nested groups that is not a cancellation."""
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


def _resource_text(contents: Iterable[Any]) -> str:
    """The contents of a resource as text, each between marks with its address."""
    return "\n".join(
        f'<resource uri="{part.uri}">\n{_contents_text(part)}\n</resource>' for part in contents
    )


def _resource_attachments(contents: Iterable[Any]) -> Iterator[Attachment]:
    """The images and sounds among the contents of a resource."""
    for part in contents:
        if _is_media(part) and len(part.blob) <= LONGEST_MESSAGE:
            yield Attachment(mime=part.mime_type, data=part.blob)


def _prompt_turns(result: Any) -> str:
    """The messages of a prompt as JSON: `[{"role": "user", "text": "..."}]`."""
    turns = [
        {"role": message.role, "text": _block_text(message.content)} for message in result.messages
    ]
    return msgspec.json.encode(turns).decode()


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
