"""The tools of `passhat.testing.weather_server` without the SDK: it starts seven times as fast.

For tests that need a server and are about something else. Those about servers start real ones.
"""

import inspect
import json
import sys

from passhat.testing.weather_server import get_time, get_weather, send_email

TOOLS = {tool.__name__: tool for tool in (get_weather, get_time, send_email)}


def answer(method: str, params: dict) -> dict:
    match method:
        case "initialize":
            return {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "weather", "version": "1"},
            }
        case "tools/list":
            return {"tools": [described(tool) for tool in TOOLS.values()]}
        case "tools/call":
            said = TOOLS[params["name"]](**params["arguments"])
            return {"content": [{"type": "text", "text": said}]}
    return {}


def described(tool) -> dict:
    names = list(inspect.signature(tool).parameters)
    properties = {name: {"type": "string"} for name in names}
    return {
        "name": tool.__name__,
        "description": (tool.__doc__ or "").splitlines()[0],
        "inputSchema": {"type": "object", "properties": properties, "required": names},
    }


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = answer(message["method"], message.get("params") or {})
        reply = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()
