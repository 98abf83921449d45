"""The MCP servers of a run and their tools: one process for each trial, or one for all."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from passhat.dataclass import dataclass
from passhat.errors import ServerError, ServerNeverStarted
from passhat.records import Server
from passhat.runner.mcp_servers import RunningServer
from passhat.runner.models.exchange import ToolSpec
from passhat.runner.tools import GET_PROMPT, READ_RESOURCE, ToolRequest, ToolResult, unknown_tool

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
        lines = [one.text for one in lists if one.text and not one.is_error]
        return ToolResult(
            text="\n".join(lines) or "There are no resources.",
            server=self._readable[0].server.name,
            seconds=sum(one.seconds for one in lists),
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
