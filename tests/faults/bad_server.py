"""An MCP server that works until it is told to break: `bad_server.py MODE [PIDFILE]`.

Written without the SDK, so that it can do what the SDK would not let it.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

MODE = sys.argv[1]
TOOL = {
    "name": "get",
    "description": "Gets.",
    "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}},
}


def main() -> None:
    if len(sys.argv) > 2:  # a grandchild that outlives everybody, unless its group is killed
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
        Path(sys.argv[2]).write_text(f"{os.getpid()} {child.pid}")
    if MODE == "hang-at-start":
        time.sleep(300)
    if MODE == "die-at-start":
        sys.stderr.write("no database\n")
        sys.exit(7)
    if MODE == "garbage-at-start":
        os.write(1, b"\xff\xfe\x00 listening on port 80\n" * 3)
        time.sleep(300)
    if MODE == "flood":
        while True:
            os.write(1, b"\xff not json \n" * 4096)
    if MODE == "banner":
        os.write(1, b"Welcome! This line is not JSON-RPC.\n")
    for line in sys.stdin:
        answer(json.loads(line))


def answer(message: dict) -> None:
    method, number = message.get("method"), message.get("id")
    if number is None:
        return
    if method == "initialize":
        reply(number, {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "bad", "version": "1"},
        })  # fmt: skip
    elif method == "tools/list":
        reply(number, {"tools": [TOOL]})
    elif method == "tools/call":
        call(number)
    else:
        send({"jsonrpc": "2.0", "id": number, "error": {"code": -32601, "message": "unknown"}})


def call(number: int) -> None:
    if MODE == "hang":
        time.sleep(300)
    if MODE == "crash":
        sys.stderr.write("segmentation fault (almost)\n")
        os._exit(11)
    if MODE == "garbage":
        os.write(1, b"\xff\xfe\x00\x01 oops\n")
        time.sleep(300)
    if MODE == "oversized":
        os.write(1, b"x" * (9 * 2**20))
        time.sleep(300)
    if MODE == "half-a-message":
        os.write(1, b'{"jsonrpc": "2.0", "id":')
        os._exit(0)
    if MODE == "ignores-sigterm":
        import signal

        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    text = "y" * 2**20 if MODE == "large" else "fine"
    reply(number, {"content": [{"type": "text", "text": text}]})
    if MODE == "ignores-sigterm":
        time.sleep(300)


def reply(number: int, result: dict) -> None:
    send({"jsonrpc": "2.0", "id": number, "result": result})


def send(message: dict) -> None:
    data = memoryview(json.dumps(message).encode() + b"\n")
    while data:
        data = data[os.write(1, data) :]


main()
