import asyncio
import sys

import pytest

pytest.importorskip("mcp", reason="the extra `run` is not installed")


@pytest.mark.slow("starts a real server")
def test_the_example_server_speaks_mcp_over_stdio_and_does_what_its_tools_say() -> None:
    from mcp import Client, StdioServerParameters

    async def talk() -> tuple[list[str], list[str]]:
        server = StdioServerParameters(
            command=sys.executable, args=["-m", "passhat.testing.weather_server"]
        )
        async with Client(server, read_timeout_seconds=30) as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            calls = [
                await client.call_tool("get_weather", {"city": "Sacramento"}),
                await client.call_tool("get_time", {"city": "Tokyo"}),
                await client.call_tool("send_email", {"to": "a@b", "subject": "s", "body": "xyz"}),
            ]
            return tools, [call.content[0].text for call in calls]

    tools, results = asyncio.run(talk())
    assert tools == ["get_weather", "get_time", "send_email"]
    assert results == [
        "Sacramento: 24 degrees, clear",
        "Tokyo: 20:30",
        "sent 3 characters to a@b: s",
    ]
