"""An MCP server of the SDK over streamable HTTP: `http_clock_server.py PORT`."""

import sys

import anyio
from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("remote")


@server.tool()
def whoami(ctx: Context) -> str:
    """Who is asking."""
    return ctx.request_context.request.headers.get("authorization", "nobody")


@server.tool()
def explode() -> str:
    """Fail."""
    raise ValueError("boom")


@server.tool()
async def sleep() -> str:
    """Take very long."""
    await anyio.sleep(300)
    return "late"


server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
