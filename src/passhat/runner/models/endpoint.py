"""A model behind an HTTP address, in any wire format."""

from __future__ import annotations

import asyncio
import hashlib
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote, urlsplit, urlunsplit

import msgspec

from passhat.dataclass import dataclass
from passhat.errors import MissingExtra, ModelBusy, ModelError, SuiteError
from passhat.messages import listed
from passhat.records.ledger import CallKey
from passhat.runner.models.exchange import Body, Pricing, Reply, Request, WireFormat
from passhat.runner.models.retrying import current_deadline, retry_after

if TYPE_CHECKING:
    import httpx2

BUSY = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
"""Statuses after which the same request may succeed."""

QUOTA = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})
"""Codes of errors with the status 429 for which waiting does not help: there is no money left."""

REQUEST_TIMEOUT = 600.0
CONNECT_TIMEOUT = 15.0
LONGEST_ANSWER = 64 * 2**20
SHOWN = 500
"""Characters of a server's message that ours quotes."""

LISTED = 20

CALL = "passhat_call"
"""The key of the metadata under which a provider stores an answer."""

POLL_SECONDS = (0.5, 5.0)
"""First and longest wait between two looks at an answer that is prepared in the background. Each
wait is half as long again as the one before: short answers come soon, long ones are asked for
rarely."""

POLL_FAILURES = 10
"""Looks in a row that may fail before such an answer counts as lost."""

PENDING = ("queued", "in_progress")
"""What the status of a background answer is until it is there."""

Sign = Callable[[str, bytes], Mapping[str, str]]
"""From the address and the body of a request to the headers that sign it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAddress:
    """Where one model answers, in which wire format, and with which key.

    `key_variable` is named when the key is refused; `sign` signs requests if there is no key.
    `prices` is the provider's name in the price table. `renamed` gives the names that this
    provider has for keys of the request.
    """

    model: str
    wire_format: WireFormat
    base_url: str
    provider: str = ""
    key: str = ""
    key_variable: str = ""
    prices: str | None = None
    renamed: Mapping[str, str] = field(default_factory=dict)
    sign: Sign | None = None


class CallLog(Protocol):
    """Records each call: when it is sent, and the provider's name for it."""

    def mark_sent(self, call: CallKey, /) -> None: ...

    async def accept(self, call: CallKey, remote: str, /) -> None: ...


def http_client(*, timeout: float = REQUEST_TIMEOUT) -> httpx2.AsyncClient:
    """The one client that all models of a run share."""
    try:
        import httpx2
    except ImportError:
        raise MissingExtra("calling a model over HTTP", "run") from None
    return httpx2.AsyncClient(
        timeout=httpx2.Timeout(timeout, connect=CONNECT_TIMEOUT),
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=64),
    )


class Endpoint:
    """One model of one provider.

    With `run`, the key of a run, and `store: true` in the request, an answer can be found again by
    `find`. `log` is notified of each call just before it is sent.
    """

    def __init__(
        self,
        at: ModelAddress,
        *,
        client: httpx2.AsyncClient,
        headers: Mapping[str, str] | None = None,
        stream: bool = False,
        price: Pricing | None = None,
        run: str = "",
        log: CallLog | None = None,
    ) -> None:
        self._at = at
        self._client = client
        self._assemble = at.wire_format.assemble if stream else None
        self._price = price
        self._run = run
        self._log = log
        # Some providers name the model in the address; its colons and slashes are escaped there.
        path = (self._assemble and at.wire_format.stream_path) or at.wire_format.path
        self._url = join_address(at.base_url, path.replace("{model}", quote(at.model, safe="")))
        host = urlsplit(at.base_url).hostname or ""
        given = {
            **at.wire_format.headers(at.key),
            **({"api-key": at.key} if at.key and host.endswith(".azure.com") else {}),
            **(headers or {}),
        }
        self._headers = {
            "content-type": "application/json",
            **sendable_headers(given, about=f'model "{at.model}"', source=at.key_variable),
        }

    async def complete(self, request: Request, /) -> Reply:
        body = self._at.wire_format.encode(self._at.model, request, self._assemble is not None)
        body = {self._at.renamed.get(key, key): value for key, value in body.items()}
        if self._named and body.get("store"):
            body["metadata"] = {**(body.get("metadata") or {}), CALL: self._call_name(request)}
        started = time.perf_counter()
        content = await self._post(msgspec.json.encode(body), request)
        if body.get("background") and self._assemble is None:
            content = await self._await_answer(content, request)
        return self._counted(self._read(content), time.perf_counter() - started)

    async def find(self, request: Request, remote: str | None = None) -> Reply | None:
        """The answer that the provider has of this call of this run, if it does.

        Chat Completions with `store: true` are found by their metadata, Responses with
        `background: true` by the name that the provider gave them (`remote`). Other APIs offer no
        way to find an answer whose identifier never arrived.
        """
        import httpx2

        started = time.perf_counter()
        try:
            if remote is None:
                reply = await self._find_stored(request)
            else:
                reply = self._read(await self._poll(remote))
        except (httpx2.HTTPError, ModelError, msgspec.DecodeError, KeyError, TypeError, IndexError):
            return None  # then it is asked again, and counted as perhaps paid twice
        return None if reply is None else self._counted(reply, time.perf_counter() - started)

    async def _find_stored(self, request: Request) -> Reply | None:
        by_metadata = self._run and self._at.wire_format.name == "openai-chat"
        if not by_metadata or not request.parameters.extra.get("store"):
            return None
        wanted = {f"metadata[{CALL}]": self._call_name(request), "limit": "1"}
        stored = (await self._get(self._url, params=wanted))["data"]
        return _checked(self._at.wire_format.decode(stored[0])) if stored else None

    async def _await_answer(self, content: bytes, request: Request) -> bytes:
        """The whole of an answer that the provider prepares in the background."""
        try:
            first = _object(content)
            remote = str(first["id"]) if first.get("status") in PENDING else ""
        except (msgspec.DecodeError, KeyError):
            return content  # reading it says what is wrong with it
        if not remote:
            return content
        if self._log is not None:
            await self._log.accept(request.place, remote)
        return await self._poll(remote)

    async def _poll(self, remote: str) -> bytes:
        """Look at a background answer until it is there. Looking costs nothing."""
        import httpx2

        wait, failures = POLL_SECONDS[0], 0
        while True:
            try:
                body = await self._get(f"{self._url}/{quote(remote, safe='')}")
            except (httpx2.HTTPError, msgspec.DecodeError) as error:
                failures += 1
                if failures >= POLL_FAILURES:
                    text = f"the answer {remote} cannot be fetched: {error}"
                    raise self._busy(text, perhaps_paid=True) from error
            else:
                failures = 0
                if body.get("status") not in PENDING:
                    return msgspec.json.encode(body)
            await asyncio.sleep(wait)
            wait = min(wait * 1.5, POLL_SECONDS[1])

    async def _get(self, url: str, params: Mapping[str, str] | None = None) -> dict[str, Any]:
        response = await self._client.get(
            url, params=params, headers=self._headers, timeout=CONNECT_TIMEOUT
        )
        response.raise_for_status()
        return _object(response.content)

    @property
    def _named(self) -> bool:
        """Whether the provider can keep an answer under a name that we give it."""
        return bool(self._run) and self._at.wire_format.name in ("openai-chat", "openai-responses")

    def _call_name(self, request: Request) -> str:
        """A name that no other call has: the run, the place in it, and what is asked."""
        at = request.place
        parts = (at.system, at.task, str(at.trial), str(at.step), request.fingerprint())
        digest = hashlib.blake2b("\x1f".join(parts).encode(), digest_size=16).hexdigest()
        return f"{self._run}-{digest}"

    def _counted(self, reply: Reply, seconds: float) -> Reply:
        return replace(
            reply,
            cost=None if self._price is None or reply.usage is None else self._price(reply.usage),
            seconds=seconds,
            model=reply.model or self._at.model,
        )

    async def _post(self, body: bytes, request: Request) -> bytes:
        import httpx2

        signed = {} if self._at.sign is None else self._at.sign(self._url, body)
        length = {"content-length": str(len(body))}
        outgoing = _Outgoing(body, request, self._log)
        deadline = current_deadline()
        if deadline is not None:
            deadline.asked()
        try:
            async with self._client.stream(
                "POST", self._url, content=outgoing, headers={**self._headers, **length, **signed}
            ) as response:
                if deadline is not None:
                    deadline.heard()
                content = await self._receive(response)
        except (httpx2.TransportError, httpx2.DecodingError) as error:
            text = f"{type(error).__name__} {error}".strip()
            raise self._busy(
                text, perhaps_paid=outgoing.sent, retries=_worth_asking(error)
            ) from error
        if not response.is_success:
            await self._refuse(response, content)
        return content

    async def _receive(self, response: httpx2.Response) -> bytes:
        content = bytearray()
        async for chunk in response.aiter_bytes():
            content += chunk
            if len(content) > LONGEST_ANSWER:
                text = f"the answer is longer than {LONGEST_ANSWER} bytes"
                raise self._busy(text, perhaps_paid=True)
        return bytes(content)

    def _read(self, content: bytes) -> Reply:
        wire_format = self._at.wire_format
        try:
            body = (
                _object(content)
                if self._assemble is None
                else self._assemble(server_events(content))
            )
            return _checked(wire_format.decode(body))
        except ModelBusy as error:
            raise self._busy(str(error), perhaps_paid=True) from error
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            text = f"the answer is not {wire_format.name} ({type(error).__name__} {error}): "
            raise self._busy(text + _error_text(content), perhaps_paid=True) from error

    async def _refuse(self, response: httpx2.Response, content: bytes) -> None:
        status, message = response.status_code, _error_text(content)
        if status in BUSY:
            raise self._busy(
                f"{status} {message}",
                retry_after=retry_after(response.headers),
                retries=1 if status == 429 and _is_over_quota(content) else None,
            )
        text = f"{status} {message}"
        if status in (401, 403) and self._at.key_variable:
            text += f". Check {self._at.key_variable}"
        if status == 404 or (status == 400 and "model" in message.lower()):
            text += await self._existing()
        raise ModelError(self._about(text))

    async def _existing(self) -> str:
        """The models that the endpoint has, in words; nothing if it does not say."""
        import httpx2

        try:
            listing = await self._get(
                join_address(self._at.base_url, self._at.wire_format.list_path)
            )
            names = sorted(str(entry["id"]) for entry in listing["data"])
        except (httpx2.HTTPError, msgspec.DecodeError, KeyError, TypeError):
            return ""
        return f". Models there: {listed(names, LISTED)}" if names else ""

    def _busy(self, text: str, **facts: Any) -> ModelBusy:
        return ModelBusy(self._about(text), **facts)

    def _about(self, text: str) -> str:
        return f"{self._at.model} at {urlsplit(self._url).netloc.rpartition('@')[2]}: {text}"


class _Outgoing:
    """The body of a request; the log is notified of the call just before the body is sent.

    A provider has nothing to answer before it has the body.
    """

    def __init__(self, body: bytes, request: Request, log: CallLog | None) -> None:
        self._body = body
        self._request = request
        self._log = log
        self.sent = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        self.sent = True
        if self._log is not None:
            self._log.mark_sent(self._request.place)
        yield self._body


def sendable_headers(
    headers: Mapping[str, str], *, about: str, source: str = ""
) -> Mapping[str, str]:
    """The headers, if they can be sent; the error shows no value, for most are secrets.

    >>> sendable_headers({"x-key": "naïve"}, about="agent", source="MY_KEY")
    Traceback (most recent call last):
        ...
    passhat.errors.SuiteError: agent: the header x-key has characters that cannot be sent (only \
printable ASCII can): check MY_KEY
    """
    for name, value in headers.items():
        if not (value.isascii() and value.isprintable()):
            where = f": check {source}" if source else ""
            raise SuiteError(
                f"{about}: the header {name} has characters that cannot be sent (only printable "
                f"ASCII can){where}"
            )
    return headers


def server_events(content: bytes) -> Iterator[Body]:
    """The objects in a stream of server-sent events."""
    # Lines of bytes: those of a text also end at U+2028 and U+0085, which may be in an answer.
    for line in content.decode("utf-8", "replace").encode().splitlines():
        if line.startswith(b"data:") and (data := line[5:].strip()) not in (b"", b"[DONE]"):
            yield _object(data)


def _checked(reply: Reply) -> Reply:
    """The reply, if its fields have the right types; a number that is written as text has."""
    return msgspec.json.decode(msgspec.json.encode(reply), type=Reply, strict=False)


def _object(content: bytes) -> dict[str, Any]:
    return msgspec.json.decode(content, type=dict[str, Any])


LASTING = {
    ssl.SSLCertVerificationError: 1,
    socket.gaierror: 1,  # a name that nobody knows
    ConnectionRefusedError: 3,  # nothing listens; a server that starts takes a few seconds
}
"""Faults of a connection that most likely stay, and how often it is tried again."""


def _worth_asking(error: Exception) -> int | None:
    """How often to ask again after a fault of the connection; None for as often as allowed."""
    causes = list(_causes(error))
    return next(
        (
            retries
            for kind, retries in LASTING.items()
            if any(isinstance(cause, kind) for cause in causes)
        ),
        None,
    )


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An exception and those that it was raised from or while handling, or that it groups."""
    while error is not None:
        yield error
        if isinstance(error, BaseExceptionGroup):  # one for each address that was tried
            for each in error.exceptions:
                yield from _causes(each)
        error = error.__cause__ or error.__context__


def _is_over_quota(content: bytes) -> bool:
    try:
        error = _object(content)["error"]
        return bool(QUOTA & {str(error.get("code")), str(error.get("type"))})
    except (msgspec.DecodeError, KeyError, AttributeError):
        return False


def _error_text(content: bytes) -> str:
    """What the server says went wrong, on one line."""
    try:
        error = _object(content).get("error", "")
        text = error.get("message", error) if isinstance(error, Mapping) else error
    except msgspec.DecodeError:
        text = content.decode("utf-8", "replace")
    line = " ".join(str(text).split())
    return line[:SHOWN] or "without a word"


def join_address(base_url: str, path: str) -> str:
    """The address under a base, which may carry a query (as Azure's api-version does).

    >>> join_address("https://host/openai/deployments/x?api-version=1", "/chat/completions")
    'https://host/openai/deployments/x/chat/completions?api-version=1'
    >>> join_address("https://api.anthropic.com/v1", "/v1/messages")
    'https://api.anthropic.com/v1/messages'
    """
    parts = urlsplit(base_url)
    base = parts.path.rstrip("/")
    if path.startswith("/v1/"):
        base = base.removesuffix("/v1")
    return urlunsplit(parts._replace(path=base + path))
