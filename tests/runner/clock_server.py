"""A small MCP server without the SDK: it starts in a twentieth of the time."""

import json
import sys

PROPERTIES = {name: {"type": "string"} for name in ("source_timezone", "target_timezone", "time")}
TOOL = {
    "name": "convert_time",
    "description": "The time elsewhere.",
    "inputSchema": {"type": "object", "properties": PROPERTIES, "required": ["time"]},
}
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
        answer["result"] = {"tools": [TOOL]}
    elif message["method"] == "tools/call":
        calls += 1
        time = message["params"]["arguments"].get("time")
        text = f"call {calls}: {time} there is 20:00 here"
        answer["result"] = {"content": [{"type": "text", "text": text}]}
    else:
        answer["error"] = {"code": -32601, "message": "unknown"}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
