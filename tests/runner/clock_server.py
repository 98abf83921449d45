"""A small MCP server without the SDK: it starts in a twentieth of the time.

Its tools have the names that it is started with; each page of an "endless" list has a next one.
"""

import json
import sys

PROPERTIES = {name: {"type": "string"} for name in ("source_timezone", "target_timezone", "time")}
TOOL = {
    "name": "convert_time",
    "description": "The time elsewhere.",
    "inputSchema": {"type": "object", "properties": PROPERTIES, "required": ["time"]},
}
TOOLS = [{**TOOL, "name": name} for name in sys.argv[1:] or [TOOL["name"]]]
SERVER = {"name": "clock", "version": "1"}
calls = 0

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] == "initialize":
        version = message["params"]["protocolVersion"]
        answer["result"] = {
            "protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": SERVER,
        }  # fmt: skip
    elif message["method"] == "tools/list":
        more = {"nextCursor": "more"} if sys.argv[1:] == ["endless"] else {}
        answer["result"] = {"tools": TOOLS, **more}
    elif message["method"] == "tools/call":
        calls += 1
        time = message["params"]["arguments"].get("time")
        text = f"call {calls}: {time} there is 20:00 here"
        if sys.argv[1:]:
            text = message["params"]["name"]
        answer["result"] = {"content": [{"type": "text", "text": text}]}
    else:
        answer["error"] = {"code": -32601, "message": "unknown"}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
