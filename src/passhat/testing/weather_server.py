"""A small MCP server over stdio, for first suites and tests: weather, time, and e-mail.

Run it with `python -m passhat.testing.weather_server`. It reaches nothing, and keeps nothing.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from passhat.errors import MissingExtra

if TYPE_CHECKING:
    from mcp.server import MCPServer

SKIES = ("clear", "cloudy", "rain", "snow", "wind")
KNOWN = {"sacramento": (24, "clear"), "paris": (12, "rain"), "tokyo": (18, "cloudy")}
ZONES = {"sacramento": "03:30", "paris": "12:30", "tokyo": "20:30"}


def get_weather(city: str) -> str:
    """The current weather in a city.

    >>> get_weather("Sacramento")
    'Sacramento: 24 degrees, clear'
    """
    degrees, sky = KNOWN.get(city.strip().lower()) or _made_up(city)
    return f"{city}: {degrees} degrees, {sky}"


def get_time(city: str) -> str:
    """The local time in a city (this is an example: it is always half past eleven in London)."""
    return f"{city}: {ZONES.get(city.strip().lower(), '11:30')}"


def send_email(to: str, subject: str, body: str) -> str:
    """Send an e-mail (this is an example: nothing is sent)."""
    return f"sent {len(body)} characters to {to}: {subject}"


def build_server() -> MCPServer:
    """The server with its three tools."""
    try:
        from mcp.server import MCPServer
    except ModuleNotFoundError:
        raise MissingExtra("an MCP server", "run") from None
    server = MCPServer("weather")
    for tool in (get_weather, get_time, send_email):
        server.add_tool(tool, description=(tool.__doc__ or "").splitlines()[0])
    return server


def _made_up(city: str) -> tuple[int, str]:
    """Weather for any other place: the same every time."""
    first, second = hashlib.sha256(city.strip().lower().encode()).digest()[:2]
    return first % 40 - 5, SKIES[second % len(SKIES)]


if __name__ == "__main__":
    build_server().run()
