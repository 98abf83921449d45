"""A model API on loopback that speaks the wire formats of all providers, and fails on request."""

from __future__ import annotations

import asyncio
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from functools import partial
from typing import Any, Literal, Self
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from passhat.records import TokenUsage
from passhat.runner.models.exchange import Reply

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
        serve = partial(asyncio.run, self._serve(ready))
        self._thread = threading.Thread(target=serve, daemon=True)
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

    async def _serve(self, ready: threading.Event) -> None:
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
        place = path.partition("?")[0]
        form = next((form for ending, form in FORMS.items() if place.endswith(ending)), None)
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
            if reply.usage is None:  # as some servers do
                body.pop("usage", None)
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
    match = re.search(r"/model/(?P<model>[^/]+)/|/models/(?P<named>[^/:]+):", path)
    return unquote(match["model"] or match["named"]) if match else ""


# Replies written the way each provider writes them, whole and streamed.


Body = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class WireForm:
    """How one provider writes an answer: its whole body, and the events of a stream.

    Without `events` nothing is streamed; where `streams` is True everything is. Otherwise the
    request asks for it.
    """

    name: str
    whole: Callable[[Reply, str], Body]
    events: Callable[[Reply, str], Iterator[tuple[str, Body]]] | None = None
    streams: bool = False


def _used(reply: Reply) -> TokenUsage:
    return reply.usage or TokenUsage()


def _chat(reply: Reply, model: str) -> Body:
    message: Body = {"role": "assistant", "content": reply.text or None}
    if reply.calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.sent_text},
            }
            for call in reply.calls
        ]
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": _chat_reason(reply)}],
        "usage": _chat_usage(reply),
    }


def _chat_events(reply: Reply, model: str) -> Iterator[tuple[str, Body]]:
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": model}

    def chunk(delta: Body, reason: str | None = None) -> tuple[str, Body]:
        return "", {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}

    yield chunk({"role": "assistant", "content": ""})
    for piece in _pieces(reply.text):
        yield chunk({"content": piece})
    for index, call in enumerate(reply.calls):
        begun = {"name": call.name, "arguments": ""}
        first = {"index": index, "id": call.id, "type": "function", "function": begun}
        yield chunk({"tool_calls": [first]})
        for piece in _pieces(call.sent_text):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, _chat_reason(reply))
    yield "", {**head, "choices": [], "usage": _chat_usage(reply)}


def _chat_reason(reply: Reply) -> str:
    words = {"done": "stop", "max_tokens": "length", "refused": "content_filter"}
    return "tool_calls" if reply.calls else words.get(reply.stop_reason, reply.stop_reason)


def _chat_usage(reply: Reply) -> Body:
    usage = _used(reply)
    return {
        "prompt_tokens": usage.tokens_in,
        "completion_tokens": usage.tokens_out,
        "total_tokens": usage.total,
        "prompt_tokens_details": {
            "cached_tokens": usage.cached_in,
            "cache_write_tokens": usage.cache_written,
        },
    }


def _messages(reply: Reply, model: str) -> Body:
    content: list[Body] = [{"type": "text", "text": reply.text}] if reply.text else []
    content += [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": call.sent}
        for call in reply.calls
    ]
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": _messages_reason(reply),
        "stop_sequence": None,
        "usage": _messages_usage(reply),
    }


def _messages_events(reply: Reply, model: str) -> Iterator[tuple[str, Body]]:
    whole = _messages(reply, model)
    start = {**whole, "content": [], "stop_reason": None}
    start["usage"] = {**whole["usage"], "output_tokens": 1}
    yield "message_start", {"message": start}
    for index, block in enumerate(whole["content"]):
        begun = {**block, "input": {}} if block["type"] == "tool_use" else {**block, "text": ""}
        yield "content_block_start", {"index": index, "content_block": begun}
        for delta in _deltas(block):
            yield "content_block_delta", {"index": index, "delta": delta}
        yield "content_block_stop", {"index": index}
    delta = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield "message_delta", {"delta": delta, "usage": {"output_tokens": _used(reply).tokens_out}}
    yield "message_stop", {}


def _deltas(block: Body) -> Iterator[Body]:
    if block["type"] == "text":
        for piece in _pieces(block["text"]):
            yield {"type": "text_delta", "text": piece}
        return
    given = block["input"]
    text = given if isinstance(given, str) else msgspec.json.encode(given).decode()
    for piece in _pieces(text):
        yield {"type": "input_json_delta", "partial_json": piece}


def _messages_reason(reply: Reply) -> str:
    words = {"done": "end_turn", "refused": "refusal"}
    return "tool_use" if reply.calls else words.get(reply.stop_reason, reply.stop_reason)


def _messages_usage(reply: Reply) -> Body:
    usage = _used(reply)
    return {
        "input_tokens": usage.tokens_in - usage.cached_in - usage.cache_written,
        "output_tokens": usage.tokens_out,
        "cache_read_input_tokens": usage.cached_in,
        "cache_creation_input_tokens": usage.cache_written,
    }


def _responses(reply: Reply, model: str) -> Body:
    output: list[Body] = []
    if reply.text:
        part = {"type": "output_text", "text": reply.text, "annotations": []}
        output.append(
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": [part],
            }
        )
    output += [
        {
            "type": "function_call",
            "id": f"fc_{index}",
            "call_id": call.id,
            "name": call.name,
            "arguments": call.sent_text,
            "status": "completed",
        }
        for index, call in enumerate(reply.calls)
    ]
    cut = reply.stop_reason == "max_tokens"
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 0,
        "model": model,
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "error": None,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": _used(reply).tokens_in,
            "output_tokens": _used(reply).tokens_out,
            "total_tokens": _used(reply).total,
            "input_tokens_details": {
                "cached_tokens": _used(reply).cached_in,
                "cache_write_tokens": _used(reply).cache_written,
            },
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }


def _responses_events(reply: Reply, model: str) -> Iterator[tuple[str, Body]]:
    whole = _responses(reply, model)
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    events: list[tuple[str, Body]] = [
        ("response.created", {"response": begun}),
        ("response.in_progress", {"response": begun}),
    ]
    for index, item in enumerate(whole["output"]):
        events += _item_events(item, index)
    events.append((f"response.{whole['status']}", {"response": whole}))
    for number, (kind, body) in enumerate(events):
        yield kind, {**body, "sequence_number": number}


def _item_events(item: Body, index: int) -> Iterator[tuple[str, Body]]:
    """An item of the output as it grows: it is added, filled piece by piece, and done."""
    at = {"output_index": index, "item_id": item["id"]}
    is_call = item["type"] == "function_call"
    empty: Body = {"arguments": ""} if is_call else {"content": []}
    added = {**item, **empty, "status": "in_progress"}
    yield "response.output_item.added", {"output_index": index, "item": added}
    if is_call:
        kind = "response.function_call_arguments"
        for piece in _pieces(item["arguments"]):
            yield f"{kind}.delta", {**at, "delta": piece}
        yield f"{kind}.done", {**at, "arguments": item["arguments"], "name": item["name"]}
    else:
        yield from _part_events(item["content"][0], {**at, "content_index": 0})
    yield "response.output_item.done", {"output_index": index, "item": item}


def _part_events(part: Body, at: Body) -> Iterator[tuple[str, Body]]:
    yield "response.content_part.added", {**at, "part": {**part, "text": ""}}
    for piece in _pieces(part["text"]):
        yield "response.output_text.delta", {**at, "delta": piece, "logprobs": []}
    yield "response.output_text.done", {**at, "text": part["text"], "logprobs": []}
    yield "response.content_part.done", {**at, "part": part}


def _pieces(text: str, size: int = 7) -> Iterator[str]:
    for start in range(0, len(text), size):
        yield text[start : start + size]


def _converse(reply: Reply, model: str) -> Body:
    blocks: list[Body] = [{"text": reply.text}] if reply.text else []
    blocks += [
        {"toolUse": {"toolUseId": call.id, "name": call.name, "input": call.sent}}
        for call in reply.calls
    ]
    reason = {"done": "end_turn", "tool_calls": "tool_use"}.get(reply.stop_reason)
    used = _used(reply)
    return {
        "output": {"message": {"role": "assistant", "content": blocks}},
        "stopReason": "tool_use" if reply.calls else reason or reply.stop_reason,
        "usage": {
            "inputTokens": used.tokens_in - used.cached_in - used.cache_written,
            "outputTokens": used.tokens_out,
            "cacheReadInputTokens": used.cached_in,
            "cacheWriteInputTokens": used.cache_written,
        },
    }


def _gemini(reply: Reply, model: str) -> Body:
    parts: list[Body] = [{"text": reply.text}] if reply.text else []
    parts += [
        {"functionCall": {"id": call.id, "name": call.name, "args": call.sent}}
        for call in reply.calls
    ]
    words = {"done": "STOP", "tool_calls": "STOP", "max_tokens": "MAX_TOKENS", "refused": "SAFETY"}
    candidate = {
        "index": 0,
        "content": {"role": "model", "parts": parts},
        "finishReason": words.get(reply.stop_reason, "OTHER"),
    }
    usage = {
        "promptTokenCount": _used(reply).tokens_in,
        "candidatesTokenCount": _used(reply).tokens_out,
        "cachedContentTokenCount": _used(reply).cached_in,
        "totalTokenCount": _used(reply).total,
    }
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": model}


def _gemini_events(reply: Reply, model: str) -> Iterator[tuple[str, Body]]:
    for piece in _pieces(reply.text):
        content = {"role": "model", "parts": [{"text": piece}]}
        yield "", {"candidates": [{"index": 0, "content": content}], "modelVersion": model}
    yield "", _gemini(replace(reply, text=""), model)


FORMS: dict[str, WireForm] = {
    ":generateContent": WireForm(name="gemini", whole=_gemini, events=_gemini_events),
    ":streamGenerateContent": WireForm(
        name="gemini", whole=_gemini, events=_gemini_events, streams=True
    ),
    ":rawPredict": WireForm(name="anthropic", whole=_messages, events=_messages_events),
    ":streamRawPredict": WireForm(
        name="anthropic", whole=_messages, events=_messages_events, streams=True
    ),
    "/converse": WireForm(name="bedrock-converse", whole=_converse),
    "/chat/completions": WireForm(name="openai-chat", whole=_chat, events=_chat_events),
    "/messages": WireForm(name="anthropic", whole=_messages, events=_messages_events),
    "/responses": WireForm(name="openai-responses", whole=_responses, events=_responses_events),
}
