"""A server on loopback that speaks the comments and checks of GitHub and the notes of GitLab."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

LONGEST_BODY = 65_536


@dataclass
class Forge:
    """What the server holds, and how it behaves."""

    url: str = ""
    comments: dict[int, dict[str, Any]] = field(default_factory=dict)
    checks: list[dict[str, Any]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    foreign: set[int] = field(default_factory=set)
    files: list[dict[str, Any]] = field(default_factory=list)
    user: dict[str, Any] | None = None
    us: dict[str, Any] = field(default_factory=lambda: {"login": "ci[bot]", "type": "Bot"})
    may_write: bool = True
    redirect_to: str | None = None
    before_create: Any = None
    lock: Any = field(default_factory=threading.Lock)

    def add(self, body: str, user: dict[str, Any] | None = None) -> int:
        with self.lock:
            number = 1 + max(self.comments, default=0)
            self.comments[number] = {"id": number, "body": body, "user": user or self.us}
            return number


@contextmanager
def forge_server() -> Iterator[Forge]:
    forge = Forge()
    server = ThreadingHTTPServer(("127.0.0.1", 0), lambda *args: _Handler(forge, *args))
    forge.url = f"http://127.0.0.1:{server.server_port}/"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield forge
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, forge: Forge, *args: Any) -> None:
        self.forge = forge
        super().__init__(*args)

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._answer("GET")

    def do_POST(self) -> None:
        self._answer("POST")

    def do_PATCH(self) -> None:
        self._answer("PATCH")

    def do_PUT(self) -> None:
        self._answer("PUT")

    def do_DELETE(self) -> None:
        self._answer("DELETE")

    def _answer(self, method: str) -> None:
        forge, place = self.forge, urlsplit(self.path)
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        forge.calls.append(f"{method} {place.path}")
        if forge.redirect_to:
            return self._send(302, {}, location=forge.redirect_to)
        token = self.headers.get("Authorization") or self.headers.get("PRIVATE-TOKEN")
        if not token:
            return self._send(401, {"message": "Requires authentication"})
        if method != "GET" and not forge.may_write:
            return self._send(403, {"message": "Resource not accessible by integration"})
        if len(body.get("body", "")) > LONGEST_BODY:
            return self._send(422, {"message": "body is too long (maximum is 65536 characters)"})
        if place.path == "/user":
            known = forge.user is not None
            return self._send(200 if known else 403, forge.user or {"message": "not by an app"})
        if place.path.endswith(("/files", "/diffs")):
            return self._send(200, forge.files)
        if place.path.endswith("/check-runs"):
            forge.checks.append(body)
            return self._send(201, {"id": len(forge.checks)})
        return self._comments(method, place.path, parse_qs(place.query), body)

    def _comments(self, method: str, path: str, query: Any, body: dict[str, Any]) -> None:
        forge = self.forge
        number = int(found[1]) if (found := re.search(r"/(?:comments|notes)/(\d+)$", path)) else 0
        if number in forge.foreign:
            return self._send(403, {"message": "Must be the author"})
        if method == "GET":
            size, page = int(query["per_page"][0]), int(query["page"][0])
            with forge.lock:
                every = list(forge.comments.values())
            return self._send(200, every[size * (page - 1) : size * page])
        if method == "POST":
            if forge.before_create:
                forge.before_create()
            return self._send(201, {"id": forge.add(body["body"])})
        with forge.lock:
            if method == "DELETE":
                forge.comments.pop(number, None)
            else:
                forge.comments[number]["body"] = body["body"]
        return self._send(204 if method == "DELETE" else 200, {})

    def _send(self, status: int, content: Any, location: str | None = None) -> None:
        data = b"" if status == 204 else json.dumps(content).encode()
        self.send_response(status)
        if location:
            self.send_header("Location", location)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
