"""The way from an agent to its model: through passhat, which has the key and counts every call.

An agent that is a program gets an address on its own loopback and a word in place of a key. What it
asks there is sent on with the real key, streamed back as it comes, priced, held to the budget, and
kept in the cassette of the run. The same address is a proxy to the hosts that `network:` names, and
to no others.
"""

from __future__ import annotations

import asyncio
import itertools
import re
import secrets
import socket
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import msgspec

from passhat.dataclass import dataclass
from passhat.errors import MachineError, ModelBusy, ModelError, PasshatError, RunError
from passhat.messages import plural
from passhat.records import Amount, Model, ModelParameters, Observation, TokenUsage, ToolCall
from passhat.records.ledger import CallKey, both
from passhat.runner.agents.conversation import Charge
from passhat.runner.journal import JournalCache, JournalWriter, ResponseCache
from passhat.runner.models.anthropic import ANTHROPIC
from passhat.runner.models.endpoint import (
    LONGEST_ANSWER,
    ModelAddress,
    join_address,
    server_events,
)
from passhat.runner.models.exchange import (
    Body,
    Message,
    Pricing,
    Reply,
    Request,
    WireFormat,
    call_request,
)
from passhat.runner.models.openai import OPENAI_CHAT, OPENAI_RESPONSES
from passhat.runner.models.retrying import Throttle
from passhat.runner.sandbox import GATEWAY_PORT
from passhat.runner.spending import BudgetedModel, Exhausted, RunSpending, most_of

if TYPE_CHECKING:
    import httpx2

    from passhat.runner.workspaces import AddedFile

LONGEST_HEAD = 2**16
LONGEST_BODY = 64 * 2**20
MOST_REFUSALS = 20

LAST_CALLS_SECONDS = 5.0
"""How long calls may take that are under way when the agent has ended: then their cost is known."""

PROXIES = ("http_proxy", "https_proxy")

PROXY_PORTS = (80, 443)
"""The ports of a host that `network:` names without one."""

DROPPED = frozenset(
    {
        *("host", "connection", "keep-alive", "proxy-connection", "proxy-authorization", "te"),
        *("trailer", "transfer-encoding", "upgrade", "content-length", "accept-encoding"),
        *("authorization", "x-api-key", "x-goog-api-key", "api-key", "cookie", "expect"),
    }
)
"""Headers of an agent that are not sent on: those of the connection, and every kind of key."""

NOT_RETURNED = frozenset(
    {"connection", "keep-alive", "transfer-encoding", "content-length", "content-encoding"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """Where the calls of an agent go and how fast, what its models cost, and who counts that."""

    at: ModelAddress
    client: httpx2.AsyncClient
    price: Callable[[str], Pricing | None]
    spending: RunSpending
    writer: JournalWriter
    throttle: Throttle
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """One request of an agent."""

    method: str
    target: str
    headers: Mapping[str, str]
    content: bytes
    keeps_open: bool

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def key(self) -> str:
        """The key that came with it, in whatever header its API has for that."""
        given = self.headers.get("authorization", "")
        own = (self.headers.get(name) for name in ("x-api-key", "x-goog-api-key", "api-key"))
        return next(filter(None, own), "") or given.removeprefix("Bearer ").strip()


class Gateway:
    """The gateway of one attempt.

    `names` are variables that lead a certain program here, besides those of its model's API.
    An agent with a `model` is answered by the `cassette` where that knows the answer, else by the
    `upstream`; a replay has none. All attempts of a trial share the `steps` of its calls, how many
    of them were `alike`, and `charge`, which says when the budget of the trial is used up. Of the
    files that were `added` for the agent, `read` has the places of those that its model was shown.
    """

    def __init__(
        self,
        *,
        network: Iterable[str] = (),
        model: Model | None = None,
        names: Mapping[str, str] | None = None,
        place: CallKey | None = None,
        steps: Iterator[int] | None = None,
        alike: Counter[str] | None = None,
        upstream: Upstream | None = None,
        journal: JournalCache | None = None,
        cassette: ResponseCache | None = None,
        charge: Charge = lambda reply: False,
        added: Iterable[AddedFile] = (),
    ) -> None:
        self._added, self.read = tuple(added), set[str]()
        self._network = tuple(network)
        self._place, self._steps = place or CallKey(), steps or itertools.count()
        self._alike = Counter[str]() if alike is None else alike
        self._model, self._names = model, names or {}
        self._upstream = upstream
        self._journal, self._cassette = journal, cassette
        self._charge = charge
        self._key: str | None = None
        self._address = f"http://127.0.0.1:{GATEWAY_PORT}"
        self._servers: list[asyncio.Server] = []
        self._open: set[asyncio.Task[None]] = set()
        self._calling: set[asyncio.Task[Any]] = set()
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._replies: list[Reply] = []
        self._asked = 0
        self.machine_failed = False  # and not the agent, nor its model
        self._refused: Counter[str] = Counter()
        self._first_problem = ""

    # What the agent is given.

    @property
    def has_model(self) -> bool:
        """Whether a model is behind it, and not only the hosts of `network:`."""
        return self._model is not None

    def variables(self) -> dict[str, str]:
        """The environment that leads an agent here."""
        url, env = self._address, dict[str, str]()
        if self._model is not None:
            from passhat.runner.models.catalog import provider_of

            usual = {**VARIABLES["openai"], **VARIABLES.get(provider_of(self._model), {})}
            env = {name: self.filled(text) for name, text in {**usual, **self._names}.items()}
            env["PASSHAT_GATEWAY"] = url
        if self._network and self._key is None:
            env |= {name: url for word in PROXIES for name in (word, word.upper())}
            env |= dict.fromkeys(("no_proxy", "NO_PROXY"), "127.0.0.1,localhost")
        return env

    def filled(self, text: str) -> str:
        """A text with the address of the gateway and the key of the trial in it."""
        return text.replace("{url}", self._address).replace("{key}", self._key or "passhat")

    async def listen(self) -> None:
        """Listen on this machine's own loopback, for an agent outside a sandbox, with a key."""
        self._key = f"passhat-{secrets.token_hex(16)}"
        with socket.create_server(("127.0.0.1", 0)) as server:
            self._address = f"http://127.0.0.1:{server.getsockname()[1]}"
            await self.serve(server.dup())

    async def serve(self, listening: socket.socket) -> None:
        """Serve a socket that listens: in a sandbox, one of its own network."""
        limit = LONGEST_HEAD
        self._servers.append(
            await asyncio.start_server(self._connected, sock=listening, limit=limit)
        )

    async def close(self) -> None:
        """Stop, when calls under way are answered or have had their time."""
        for server in self._servers:
            server.close()
        if self._calling:
            await asyncio.wait(self._calling, timeout=LAST_CALLS_SECONDS)
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    # What is seen of the attempt.

    async def observe(self, attempt: Awaitable[Observation]) -> Observation:
        """Let an agent work until it ends or may spend no more; what it took is what was counted.

        Its time may be over, or something around it broken: what it spent until then is known.
        """
        if not self.has_model:
            try:
                return await attempt
            finally:
                await self.close()
        try:
            seen = await self._until_over(attempt)
            error = seen.error
        except TimeoutError:
            seen, error = Observation(stop_reason="timeout", score=0.0), None
        except RunError as problem:
            seen, error = Observation(), str(problem)
            self.machine_failed = isinstance(problem, MachineError)
        finally:
            await self.close()
        if self._over.done():
            self._over.result()  # raises what ended the attempt, if that was an error
        if not self._replies:
            error = error or self._silence(seen.stop_reason == "timeout")
        reported = {name: value for name, value in seen.reported.items() if name != "tokens"}
        called = [call for reply in self._replies for call in reply.calls]
        usage, cost = self.taken
        return replace(
            seen,
            error=error,
            usage=usage,
            cost=cost,
            reported=reported,
            tool_calls=seen.tool_calls
            or tuple(ToolCall(name=call.name, arguments=call.sent) for call in called),
        )

    async def _until_over(self, attempt: Awaitable[Observation]) -> Observation:
        working = asyncio.ensure_future(attempt)
        either: tuple[asyncio.Future[Any], ...] = (working, self._over)
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not working.done():
                working.cancel()
                await asyncio.gather(working, return_exceptions=True)
        if working.cancelled():
            return Observation(stop_reason="budget", score=0.0)
        seen = working.result()
        return replace(seen, stop_reason="budget") if self._over.done() else seen

    @property
    def has_answered(self) -> bool:
        """Whether the model has answered the agent at least once."""
        return bool(self._replies)

    @property
    def taken(self) -> tuple[TokenUsage | None, float | None]:
        """What its answers took together; None where one of them does not say it."""
        return _taken(self._replies)

    def _silence(self, timed_out: bool) -> str | None:
        """Why the model answered nothing; None if it was never asked in time."""
        if self._asked:
            return f"the model never answered{self._first_problem and f': {self._first_problem}'}"
        if timed_out:
            return None
        return (
            "it never asked its model: the address is in the environment (PASSHAT_GATEWAY and the "
            "variables of the model's own API)"
        )

    def record(self) -> dict[str, Any] | None:
        """What is kept of it: calls and tokens by model, and what was refused."""
        by_model: dict[str, list[Reply]] = {}
        for reply in self._replies:
            by_model.setdefault(reply.model, []).append(reply)
        models, lines = [], []
        for model, replies in by_model.items():
            usage, cost = _taken(replies)
            models.append({"model": model, "calls": len(replies), "usage": usage, "cost": cost})
            took = "tokens unknown"
            if usage is not None:
                took = f"{usage.tokens_in:,} tokens in, {usage.tokens_out:,} out"
            price = "price unknown" if cost is None else f"${cost:.4f}"
            lines.append(f"{plural(len(replies), 'call')} of {model}: {took}, {price}")
        lines += [f"refused: {what} ({count}x)" for what, count in self._refused.items()]
        return {"models": models, "said": lines} if lines else None

    # One connection after the other, one request after the other.

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._converse(reader, writer))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (asked := await _read_request(reader, writer)) is not None:
                if asked.method == "CONNECT" or asked.target.startswith("http://"):
                    await self._tunnel(asked, reader, writer)
                    break
                await self._answer(asked, writer)
                if not asked.keeps_open:
                    break
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass  # it left, or speaks something else
        finally:
            writer.close()

    async def _answer(self, asked: _Asked, writer: asyncio.StreamWriter) -> None:
        # As bytes: texts are compared only where they are ASCII.
        own = self._key and self._key.encode()
        if own and not secrets.compare_digest(asked.key.encode(), own):
            await _send_error(writer, 401, "this is not the key of the trial")
            return
        if asked.path == "/":
            await _send(writer, 200, "application/json", b"{}")
            return
        form = next((f for ending, f in FORMS.items() if asked.path.endswith(ending)), None)
        if not self.has_model:
            await self._refuse(writer, f"{asked.method} {asked.path}: this agent has no model")
        elif form is not None and asked.method == "POST":
            await self._call(form, asked, writer)
        elif FREE.search(asked.path) and asked.method in ("GET", "HEAD", "POST"):
            await self._ask_for_free(asked, writer)
        else:
            # The key opens more than models: files, batches, the account's other data.
            await self._refuse(writer, f"{asked.method} {asked.path}")

    async def _refuse(self, writer: asyncio.StreamWriter, what: str) -> None:
        if len(self._refused) < MOST_REFUSALS or what in self._refused:
            self._refused[what] += 1
        await _send_error(writer, 403, f"passhat does not let this through: {what}")

    # Calls of the model.

    async def _call(self, form: WireFormat, asked: _Asked, writer: asyncio.StreamWriter) -> None:
        try:
            body = msgspec.json.decode(asked.content, type=dict[str, Any])
        except msgspec.DecodeError:
            await _send_error(writer, 400, "the request is no JSON object")
            return
        if body.get("background"):
            await self._refuse(writer, f"{asked.path} in the background, where nobody counts it")
            return
        if self._over.done():
            await _send_error(writer, 429, "the budget of the trial is used up")
            return
        self.read |= {
            added.place
            for added in self._added
            if added.place not in self.read and added.is_in(asked.content)
        }
        model = str(body.get("model") or _model_in(asked.path))
        likeness = _likeness(form, model, body)
        number, self._alike[likeness] = self._alike[likeness], self._alike[likeness] + 1
        place = self._place._replace(step=next(self._steps))
        self._asked += 1
        call = _Call(form, model, asked, body, writer)
        calling = asyncio.ensure_future(self._complete(call, place, f"{likeness} #{number}"))
        self._calling.add(calling)
        calling.add_done_callback(self._calling.discard)
        await calling

    async def _complete(self, call: _Call, place: CallKey, likeness: str) -> None:
        try:
            known = self._recall(place, likeness)
            if known is None:
                reply = await self._live(call, place)
                if self._cassette is not None:
                    await self._cassette.keep("wire", place, likeness, call.kept(reply))
            else:
                self._count(await call.replay(known))
        except Exhausted as problem:
            await call.refuse(429, "the budget of the run is used up")
            self._end(problem)
        except (PasshatError, TimeoutError) as problem:
            self._first_problem = self._first_problem or str(problem)
            await call.fail(str(problem))
            if not isinstance(problem, ModelError):
                self._end(problem)

    def _count(self, reply: Reply) -> None:
        self._replies.append(reply)
        try:
            if self._charge(reply):
                self._end(None)
        except ModelError as problem:  # nobody knows what it takes
            self._end(problem)

    def _recall(self, place: CallKey, likeness: str) -> bytes | None:
        return None if self._cassette is None else self._cassette.recall("wire", place, likeness)

    async def _live(self, call: _Call, place: CallKey) -> Reply:
        """Ask the model, inside the budget; what is spent is written down before it is."""
        up = self._upstream
        assert up is not None, "the cassette of a replay answers or refuses"
        price = up.price(call.model)
        # The whole request counts as its text: a token of it is at least one byte.
        request = Request(
            messages=(Message(role="user", text=call.asked.content.decode("utf-8", "replace")),),
            parameters=ModelParameters(max_tokens=call.most_tokens()),
            place=place,
        )
        relay = _Relay(call, up, price)
        model = BudgetedModel(relay, up.spending, name=call.model, price=price, writer=up.writer)
        try:
            async with up.throttle.turn():
                reply = await model.complete(request)
        except ModelBusy as error:
            if error.perhaps_paid:
                most = most_of(request, up.spending, name=call.model, price=price)
                up.spending.lose(most)
                await up.writer.lose(place, most or Amount())
            raise
        if reply.usage is not None:
            up.throttle.spent(reply.usage.total)
        self._count(reply)  # before anything is awaited: the agent may have its next question ready
        if self._journal is not None:
            kept = Reply(usage=reply.usage, cost=reply.cost, model=reply.model)
            await self._journal.keep(
                "model", place, request.fingerprint(), msgspec.json.encode(kept)
            )
        return reply

    def _end(self, problem: BaseException | None) -> None:
        """Let the attempt end: with an error, or (None) because its own budget is used up."""
        if self._over.done():
            return
        if problem is None:
            self._over.set_result(None)
        else:
            self._over.set_exception(problem)
            self._over.exception()  # it is raised where the attempt is observed

    async def _ask_for_free(self, asked: _Asked, writer: asyncio.StreamWriter) -> None:
        """Pass on a question that costs nothing: which models there are, how long a text is."""
        import httpx2

        if (up := self._upstream) is None:
            await _send_error(writer, 404, "this is a replay")
            return
        try:
            response = await up.client.request(
                asked.method,
                _address(up.at, None, asked),
                headers=_headers(up, None, asked),
                content=asked.content,
            )
        except httpx2.HTTPError as error:
            await _send_error(writer, 502, f"{type(error).__name__} {error}")
            return
        kind = response.headers.get("content-type", "application/json")
        content = b"" if asked.method == "HEAD" else response.content
        await _send(writer, response.status_code, kind, content)

    # Other hosts.

    async def _tunnel(
        self, asked: _Asked, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Join a connection with a host that `network:` names."""
        plain = asked.method != "CONNECT"
        parts = urlsplit(asked.target if plain else f"//{asked.target}")
        host, port = (parts.hostname or "").rstrip("."), parts.port or (80 if plain else 443)
        if not allows(self._network, host, port) or self._key is not None:
            await self._refuse(writer, f"host {host}:{port}, which is not in network:")
            return
        try:
            far_reader, far_writer = await asyncio.open_connection(host, port)
        except OSError as error:
            await _send_error(writer, 502, f"{host}:{port}: {error}")
            return
        if plain:
            path = asked.target.partition("//")[2].partition("/")[2]
            own = {k: v for k, v in asked.headers.items() if not k.startswith("proxy-")}
            head = {**own, "connection": "close", "content-length": str(len(asked.content))}
            lines = [f"{asked.method} /{path} HTTP/1.1", *(f"{k}: {v}" for k, v in head.items())]
            far_writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + asked.content)
        else:
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        try:
            await asyncio.gather(_pour(reader, far_writer), _pour(far_reader, writer))
        finally:
            far_writer.close()


def _taken(replies: Iterable[Reply]) -> tuple[TokenUsage | None, float | None]:
    """What answers took together; None where one of them does not say it."""
    usage: TokenUsage | None = TokenUsage()
    cost: float | None = 0.0
    for reply in replies:
        usage, cost = both(usage, reply.usage), both(cost, reply.cost)
    return usage, cost


def allows(network: Iterable[str], host: str, port: int) -> bool:
    """Whether a host is one of those that `network:` names.

    >>> allows(["example.org", "*.internal:8443"], "example.org", 443)
    True
    >>> allows(["example.org", "*.internal:8443"], "git.internal", 8443)
    True
    >>> allows(["example.org"], "evil-example.org", 443), allows(["example.org"], "example.org", 22)
    (False, False)
    """
    for entry in network:
        name, _, given = entry.lower().partition(":")
        same = host.lower().endswith(name[1:]) if name.startswith("*.") else host.lower() == name
        if same and port in ((int(given),) if given else PROXY_PORTS):
            return True
    return False


class _Call:
    """One call of a model, from the agent's request to the last byte of its answer."""

    def __init__(
        self,
        form: WireFormat,
        model: str,
        asked: _Asked,
        body: dict[str, Any],
        writer: asyncio.StreamWriter,
    ) -> None:
        self.form, self.model, self.asked, self.body = form, model, asked, body
        self._writer = writer
        self.began = self._ended = False
        self._there = True
        self._kind, self._content = "", bytearray()
        # Chat Completions say what a stream took only if they are asked to.
        options = body.get("stream_options")
        asks_usage = isinstance(options, Mapping) and bool(options.get("include_usage"))
        self._adds_usage = form is OPENAI_CHAT and bool(body.get("stream")) and not asks_usage
        self._pending = b""

    def sent_on(self) -> bytes:
        """The body as the provider gets it."""
        if not self._adds_usage:
            return self.asked.content
        options = {**(self.body.get("stream_options") or {}), "include_usage": True}
        return msgspec.json.encode({**self.body, "stream_options": options})

    def most_tokens(self) -> int | None:
        """The most tokens that the answer may have, where the request says so."""
        names = ("max_tokens", "max_completion_tokens", "max_output_tokens")
        settings = self.body.get("generationConfig")
        inner = settings.get("maxOutputTokens") if isinstance(settings, Mapping) else None
        given = [value for value in (*map(self.body.get, names), inner) if isinstance(value, int)]
        return max(given) if given and max(given) > 0 else None

    async def begin(self, status: int, kind: str, headers: Mapping[str, str]) -> None:
        """Send the head of the answer; the rest follows in pieces."""
        self.began, self._kind = True, kind
        given = {**headers, "content-type": kind, "transfer-encoding": "chunked"}
        await self._write(_head(status, given))

    async def add(self, piece: bytes) -> None:
        """Send a piece of the answer as it came; a line that only we asked for is left out."""
        self._content += piece
        if self._adds_usage:
            *events, self._pending = (self._pending + piece).split(b"\n\n")
            piece = b"".join(event + b"\n\n" for event in events if not _tells_usage_only(event))
        if piece:
            await self._write(b"%x\r\n%b\r\n" % (len(piece), piece))

    async def end(self) -> None:
        if self._pending:
            piece, self._pending = self._pending, b""
            await self._write(b"%x\r\n%b\r\n" % (len(piece), piece))
        self._ended = True
        await self._write(b"0\r\n\r\n")

    async def refuse(self, status: int, text: str) -> None:
        with suppress(OSError):
            await _send_error(self._writer, status, text)

    async def fail(self, text: str) -> None:
        """Say that there is no answer; one that broke off ends as abruptly for the agent."""
        if not self.began:
            await self.refuse(502, text)
        elif not self._ended:
            self._writer.transport.abort()

    async def _write(self, data: bytes) -> None:
        # An agent that left before the end does not change what the answer costs.
        if self._there:
            try:
                self._writer.write(data)
                await self._writer.drain()
            except OSError:
                self._there = False

    def reply(self, price: Pricing | None) -> Reply:
        """What was answered, and what it cost; ModelBusy if the answer broke off."""
        content = bytes(self._content)
        try:
            if "event-stream" in self._kind:
                assert self.form.assemble is not None
                whole = self.form.assemble(server_events(content))
            else:
                decoded = msgspec.json.decode(content)
                whole = _last_of_gemini(decoded) if isinstance(decoded, list) else decoded
            reply = self.form.decode(whole)
        except ModelBusy as error:
            raise ModelBusy(str(error), perhaps_paid=True) from None
        except (LookupError, TypeError, AttributeError, ValueError):
            reply = Reply(usage=None)  # nobody knows what it took, and a budget says so
        cost = None if price is None or reply.usage is None else price(reply.usage)
        return replace(reply, cost=0.0 if price is None else cost, model=reply.model or self.model)

    def kept(self, reply: Reply) -> bytes:
        """The answer as a cassette has it, with its cost."""
        text = self._content.decode("utf-8", "replace")
        return msgspec.json.encode({"type": self._kind, "body": text, "cost": reply.cost})

    async def replay(self, known: bytes) -> Reply:
        """Answer from a cassette."""
        kept = msgspec.json.decode(known)
        await self.begin(200, kept["type"], {})
        await self.add(kept["body"].encode())
        await self.end()
        return self.reply(lambda usage: kept.get("cost"))


class _Relay:
    """Sends a call on to the provider, and its answer back as it comes."""

    def __init__(self, call: _Call, up: Upstream, price: Pricing | None) -> None:
        self._call, self._up, self._price = call, up, price

    async def complete(self, request: Request, /) -> Reply:
        import httpx2

        call, up = self._call, self._up
        url, headers = (
            _address(up.at, call.form, call.asked),
            _headers(up, call.form, call.asked),
        )
        content = call.sent_on()
        up.writer.mark_sent(request.place)
        size = 0
        try:
            async with up.client.stream("POST", url, content=content, headers=headers) as response:
                kind = response.headers.get("content-type", "application/json")
                back = {
                    name: value
                    for name, value in response.headers.items()
                    if name not in NOT_RETURNED and name != "content-type"
                }
                await call.begin(response.status_code, kind, back)
                async for piece in response.aiter_bytes():
                    size += len(piece)
                    if size > LONGEST_ANSWER:
                        raise ModelBusy(
                            f"an answer is longer than {LONGEST_ANSWER} bytes", perhaps_paid=True
                        )
                    await call.add(piece)
                await call.end()
        except (httpx2.TransportError, httpx2.DecodingError) as error:
            text = f"{urlsplit(url).hostname}: {type(error).__name__} {error}".strip()
            raise ModelBusy(text, perhaps_paid=call.began) from error
        if not response.is_success:
            raise ModelError(f"{response.status_code} from {urlsplit(url).hostname}")
        return call.reply(self._price)


def _address(at: ModelAddress, form: WireFormat | None, asked: _Asked) -> str:
    """Where a request of an agent belongs at the provider."""
    path, _, query = asked.target.partition("?")
    if form is GEMINI or path.startswith("/v1beta/"):
        root = at.base_url.rstrip("/").removesuffix("/openai").removesuffix("/v1beta")
        url = root + path
    elif form is ANTHROPIC or "/messages" in path or at.wire_format is ANTHROPIC:
        url = join_address(at.base_url, path if path.startswith("/v1/") else f"/v1{path}")
    else:
        url = join_address(at.base_url, path.removeprefix("/v1"))
    if not query:
        return url
    return f"{url}{'&' if '?' in url else '?'}{query}"


def _headers(up: Upstream, form: WireFormat | None, asked: _Asked) -> dict[str, str]:
    """The headers of the agent, with the real key in place of its own."""
    key = up.at.key
    own = {name: value for name, value in asked.headers.items() if name not in DROPPED}
    wire = form or (GEMINI if asked.path.startswith("/v1beta/") else up.at.wire_format)
    given = wire.headers(key)
    if key and (urlsplit(up.at.base_url).hostname or "").endswith(".azure.com"):
        given["api-key"] = key
    return {**given, **own, **up.headers, "accept-encoding": "identity"}


def _likeness(form: WireFormat, model: str, body: Mapping[str, Any]) -> str:
    """What a call is recognised by in a cassette: its model, its turn, and whether it has tools.

    Not its words: agents put dates, times and names of sessions in them.
    """
    spoken = next((body[k] for k in ("messages", "input", "contents") if k in body), ())
    turns = len(spoken) if isinstance(spoken, list) else 1
    return f"{form.name} {model} {turns} {'with' if body.get('tools') else 'without'} tools"


def _model_in(path: str) -> str:
    match = re.search(r"/models/([^/:]+):", path)
    return unquote(match[1]) if match else ""


def _tells_usage_only(event: bytes) -> bool:
    """Whether an event of Chat Completions is the one that says what the stream took."""
    return b'"usage"' in event and re.search(rb'"choices"\s*:\s*\[\s*\]', event) is not None


# Gemini's own API: agents speak it, and passhat's own models do not.


def _decode_gemini(body: Body) -> Reply:
    usage = body.get("usageMetadata") or {}
    parts = [
        part
        for candidate in body.get("candidates") or ()
        for part in (candidate.get("content") or {}).get("parts") or ()
    ]
    return Reply(
        text="".join(str(part.get("text") or "") for part in parts),
        calls=tuple(
            call_request(str(part.get("id") or ""), call["name"], call.get("args") or {})
            for part in parts
            if (call := part.get("functionCall"))
        ),
        usage=TokenUsage(
            tokens_in=usage.get("promptTokenCount") or 0,
            tokens_out=(usage.get("candidatesTokenCount") or 0)
            + (usage.get("thoughtsTokenCount") or 0),
            cached_in=usage.get("cachedContentTokenCount") or 0,
        )
        if usage
        else None,
        model=str(body.get("modelVersion") or ""),
    )


def _last_of_gemini(events: Iterable[Body]) -> Body:
    """The parts of all events of a stream, with what the last of them says it took."""
    whole: dict[str, Any] = {"candidates": []}
    for event in events:
        whole["candidates"] += event.get("candidates") or []
        whole |= {k: v for k, v in event.items() if k != "candidates"}
    return whole


def _never_encoded(model: str, request: Request, stream: bool) -> dict[str, Any]:
    raise NotImplementedError("only agents ask in this wire format")


GEMINI = WireFormat(
    name="gemini",
    path="",
    list_path="",
    headers=lambda key: {"x-goog-api-key": key} if key else {},
    encode=_never_encoded,
    decode=_decode_gemini,
    assemble=_last_of_gemini,
)

FORMS: dict[str, WireFormat] = {
    "/messages": ANTHROPIC,
    "/chat/completions": OPENAI_CHAT,
    "/responses": OPENAI_RESPONSES,
    ":generateContent": GEMINI,
    ":streamGenerateContent": GEMINI,
}
"""How the paths end at which models are asked, and what is spoken there."""

FREE = re.compile(r"/(models(/[^/]+)?|messages/count_tokens)$|:countTokens$")
"""Paths at which nothing is paid."""

SPOKEN = frozenset(form.name for form in FORMS.values())

VARIABLES: dict[str, dict[str, str]] = {
    "anthropic": {"ANTHROPIC_BASE_URL": "{url}", "ANTHROPIC_API_KEY": "{key}"},
    "google": {"GOOGLE_GEMINI_BASE_URL": "{url}", "GEMINI_API_KEY": "{key}"},
    "openai": {
        "OPENAI_BASE_URL": "{url}/v1", "OPENAI_API_BASE": "{url}/v1", "OPENAI_API_KEY": "{key}",
    },
}  # fmt: skip
"""By which variables programs are told where a model is, by provider. Most others also speak as
OpenAI does."""


# HTTP, as far as clients of models need it.


async def _read_request(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> _Asked | None:
    """The next request of a connection; None at its end."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, version = first.split(" ", 2)
    headers = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(":") for line in lines if line)
    }
    content = b""
    if method != "CONNECT":
        if headers.get("expect", "").lower() == "100-continue":
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if "chunked" in headers.get("transfer-encoding", "").lower():
            content = await _read_chunks(reader)
        else:
            length = int(headers.get("content-length") or 0)
            if not 0 <= length <= LONGEST_BODY:
                raise ValueError("too long")
            content = await reader.readexactly(length)
        if headers.get("content-encoding", "identity") != "identity":
            content = b""  # nobody could count it; as no JSON object it is refused
    closes = "close" in headers.get("connection", "").lower() or version != "HTTP/1.1"
    return _Asked(
        method=method, target=target, headers=headers, content=content, keeps_open=not closes
    )


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    content = bytearray()
    while True:
        size = int((await reader.readuntil(b"\r\n")).partition(b";")[0], 16)
        if len(content) + size > LONGEST_BODY:
            raise ValueError("too long")
        if size == 0:
            while (await reader.readuntil(b"\r\n")) != b"\r\n":
                pass
            return bytes(content)
        content += await reader.readexactly(size)
        await reader.readexactly(2)


async def _pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await reader.read(2**16):
            writer.write(piece)
            await writer.drain()
    with suppress(OSError):
        writer.write_eof()


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} -", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


async def _send(writer: asyncio.StreamWriter, status: int, kind: str, content: bytes) -> None:
    head = _head(status, {"content-type": kind, "content-length": str(len(content))})
    writer.write(head + content)
    await writer.drain()


async def _send_error(writer: asyncio.StreamWriter, status: int, text: str) -> None:
    """An error in the form that all APIs have in common."""
    error = {"type": "error", "error": {"type": "passhat", "code": "passhat", "message": text}}
    await _send(writer, status, "application/json", msgspec.json.encode(error))
