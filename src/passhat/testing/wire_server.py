"""A model API on loopback that speaks the wire formats of all providers, and fails on request."""

from __future__ import annotations

import asyncio
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any, Literal, Self
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from passhat.records import TokenUsage
from passhat.runner.models.exchange import Reply
from passhat.testing.wire_formats import WireForm, form_of

Trouble = Literal[
    "429", "429-date", "500", "503", "529", "cut", "early-end", "garbage", "wrong-json", "hang"
]
"""What can go wrong with a request: refused, cut in the middle, ended early, answered nonsense."""

OVERLOADED = {"429": 429, "429-date": 429, "500": 500, "503": 503, "529": 529}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedRequest:
    """One request as the server saw it; `number` counts requests from 0."""

    number: int
    form: str
    path: str
    model: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] = field(default_factory=dict)


Answering = Callable[[ReceivedRequest], Reply]


def say_hello(asked: ReceivedRequest) -> Reply:
    """The answer of a server that was given no other."""
    return Reply(text="Hello.", usage=TokenUsage(tokens_in=10, tokens_out=2))


class WireServer:
    """Serves in another thread until the end of the `with`.

    `troubles` gives the chance of each trouble for every request, drawn with `seed`; it may be
    changed meanwhile. `answered` counts the answers that were sent completely; `asked` holds the
    requests (unless `keep` is False). With `models`, other names do not exist. Answers with
    `store: true` are kept in `stored` with their metadata, and listed by it; those with
    `background: true` are ready after `latency`.

    >>> with WireServer(troubles={"429": 0.2}) as server:
    ...     server.url.startswith("http://127.0.0.1:")
    True
    """

    def __init__(
        self,
        answer: Answering = say_hello,
        *,
        troubles: Mapping[Trouble, float] | None = None,
        seed: int = 0,
        latency: float = 0.0,
        retry_after: float = 0.0,
        models: Sequence[str] = (),
        keep: bool = True,
    ) -> None:
        self._answer = answer
        self.troubles: dict[Trouble, float] = dict(troubles or {})
        self._rng = random.Random(seed)  # noqa: S311 - troubles are seeded
        self.latency = latency
        self._retry_after = retry_after
        self._models = tuple(models)
        self._keep = keep
        self._count = 0
        self.asked: list[ReceivedRequest] = []
        self.stored: list[tuple[Mapping[str, str], dict[str, Any]]] = []
        self._background: dict[str, tuple[float, dict[str, Any]]] = {}
        self.troubled: Counter[str] = Counter()
        self.answered = 0

    def __enter__(self) -> Self:
        ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, args=(ready,), daemon=True)
        self._thread.start()
        ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    @property
    def url(self) -> str:
        """The base address for the OpenAI formats; Anthropic's is the same without /v1."""
        return f"http://127.0.0.1:{self._port}/v1"

    def _serve(self, ready: threading.Event) -> None:
        asyncio.run(self._main(ready))

    async def _main(self, ready: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._open: set[asyncio.Task[None]] = set()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self._port = server.sockets[0].getsockname()[1]
        ready.set()
        await self._stop.wait()
        server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._converse(reader, writer))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the other side left
        finally:
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Serve one request; False to close the connection."""
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        method, path, _ = first.split(" ", 2)
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines if line)
        }
        content = await reader.readexactly(int(headers.get("content-length", 0)))
        form = form_of(path.partition("?")[0])
        if path.rpartition("/")[2] in self._background:
            self._send(writer, 200, self._in_background(path.rpartition("/")[2]))
            return True
        if form is None:
            self._send(writer, 200, {"object": "list", "data": [{"id": m} for m in self._models]})
            return True
        if method == "GET":
            self._send(writer, 200, {"object": "list", "data": self._stored_as(path)})
            return True
        asked = self._note(form, path, headers, msgspec.json.decode(content))
        if self._models and asked.model not in self._models:
            text = f"model {asked.model} does not exist"
            self._send(writer, 404, {"error": {"type": "not_found_error", "message": text}})
            return True
        if asked.body.get("background"):
            self._send(writer, 200, self._prepare(asked, form))
            return True
        if self.latency:
            await asyncio.sleep(self.latency)
        return await self._respond(asked, form, writer)

    def _prepare(self, asked: ReceivedRequest, form: WireForm) -> dict[str, Any]:
        """Begin an answer in the background; only its name is sent at once."""
        name = f"resp_{asked.number}"
        body = {**form.whole(self._answer(asked), asked.model), "id": name}
        self._background[name] = (time.monotonic() + self.latency, body)
        return {**body, "status": "queued", "output": []}

    def _in_background(self, name: str) -> dict[str, Any]:
        ready, body = self._background[name]
        if time.monotonic() < ready:
            return {**body, "status": "in_progress", "output": []}
        self.answered += 1
        return body

    def _stored_as(self, path: str) -> list[dict[str, Any]]:
        """The answers that were stored with the metadata that a query names."""
        query = dict(parse_qsl(urlsplit(path).query))
        wanted = {
            name[len("metadata[") : -1]: value
            for name, value in query.items()
            if name.startswith("metadata[")
        }
        return [body for kept, body in self.stored if wanted.items() <= kept.items()]

    def _note(
        self, form: WireForm, path: str, headers: Mapping[str, str], body: Mapping[str, Any]
    ) -> ReceivedRequest:
        asked = ReceivedRequest(
            number=self._count,
            form=form.name,
            path=path,
            model=str(body.get("model") or _model_in(path)),
            headers=headers,
            body=body,
        )
        self._count += 1
        if self._keep:
            self.asked.append(asked)
        return asked

    async def _respond(
        self, asked: ReceivedRequest, form: WireForm, writer: asyncio.StreamWriter
    ) -> bool:
        trouble = self._draw()
        if trouble is not None:
            self.troubled[trouble] += 1
        if trouble in OVERLOADED:
            error = {"error": {"type": "overloaded", "message": f"{trouble} on purpose"}}
            self._send(writer, OVERLOADED[trouble], error, self._wait_headers(trouble))
            return True
        if trouble == "garbage":
            self._send_bytes(writer, 200, b"\xff\xfe<html>not an answer", "text/html")
            return True
        if trouble == "wrong-json":
            self._send(writer, 200, {"unexpected": True})
            return True
        if trouble == "hang":
            await self._stop.wait()
            return False
        return await self._send_reply(self._answer(asked), asked, form, trouble, writer)

    async def _send_reply(
        self,
        reply: Reply,
        asked: ReceivedRequest,
        form: WireForm,
        trouble: Trouble | None,
        writer: asyncio.StreamWriter,
    ) -> bool:
        if form.events is not None and (form.streams or asked.body.get("stream")):
            events = [_event(kind, body) for kind, body in form.events(reply, asked.model)]
            if form.name == "openai-chat":
                events.append(b"data: [DONE]\n\n")
            content, kind = b"".join(events), "text/event-stream"
            if trouble == "early-end":
                content = b"".join(events[: len(events) // 2])
        else:
            body = form.whole(reply, asked.model)
            if asked.body.get("store"):
                self.stored.append((asked.body.get("metadata") or {}, body))
            content, kind = msgspec.json.encode(body), "application/json"
        if trouble == "cut":
            head = _head(200, kind, len(content))
            writer.write(head + content[: len(content) // 2])
            await writer.drain()
            return False
        self._send_bytes(writer, 200, content, kind)
        await writer.drain()
        self.answered += trouble is None
        return True

    def _draw(self) -> Trouble | None:
        chance = self._rng.random()
        for trouble, share in self.troubles.items():
            if chance < share:
                return trouble
            chance -= share
        return None

    def _wait_headers(self, trouble: str) -> dict[str, str]:
        if trouble == "429":
            return {"retry-after": f"{self._retry_after:g}"}
        if trouble == "429-date":
            return {"retry-after": formatdate(time.time() + self._retry_after, usegmt=True)}
        return {}

    def _send(
        self,
        writer: asyncio.StreamWriter,
        status: int,
        body: object,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        content = msgspec.json.encode(body)
        self._send_bytes(writer, status, content, "application/json", headers)

    def _send_bytes(
        self,
        writer: asyncio.StreamWriter,
        status: int,
        content: bytes,
        kind: str,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        writer.write(_head(status, kind, len(content), headers) + content)


def _head(status: int, kind: str, length: int, headers: Mapping[str, str] | None = None) -> bytes:
    lines = [f"HTTP/1.1 {status} X", f"content-type: {kind}", f"content-length: {length}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def _event(kind: str, body: Mapping[str, Any]) -> bytes:
    data = {"type": kind, **body} if kind else body
    name = f"event: {kind}\n" if kind else ""
    return name.encode() + b"data: " + msgspec.json.encode(data) + b"\n\n"


def _model_in(path: str) -> str:
    """The model that an address names, as those of Bedrock and Gemini do.

    >>> _model_in("/model/nova%3A1/converse"), _model_in("/v1beta/models/gemini-3:generateContent")
    ('nova:1', 'gemini-3')
    """
    found = re.search(r"/model/(?P<model>[^/]+)/|/models/(?P<named>[^/:]+):", path)
    return unquote(found["model"] or found["named"]) if found else ""
