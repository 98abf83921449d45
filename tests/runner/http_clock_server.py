"""An MCP server of the SDK over HTTP: `http_clock_server.py PORT [streamable-http|sse]`."""

import sys

import anyio
from mcp.server.mcpserver import Context, Image, MCPServer

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


@server.tool()
def picture() -> Image:
    """Show something."""
    return Image(data=b"icon", format="png")


transport = sys.argv[2] if len(sys.argv) > 2 else "streamable-http"
server.run(transport, host="127.0.0.1", port=int(sys.argv[1]))
