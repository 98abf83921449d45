"""What agents, tools and models exchange: wire formats, requests and replies, and their cost."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import field, fields
from functools import cache, lru_cache
from operator import attrgetter
from typing import Any, Literal, Protocol

import msgspec

from passhat.dataclass import dataclass
from passhat.errors import MissingExtra, ModelBusy, ModelError
from passhat.records import ModelParameters, Prices, TokenUsage
from passhat.records.ledger import Amount, CallKey
from passhat.records.providers import find_provider

Body = Mapping[str, Any]

EFFORTS = ((0, "none"), (4_096, "low"), (16_384, "medium"), (float("inf"), "high"))
"""About how many tokens of thinking each word means."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WireFormat:
    """A wire format, as pure functions.

    `assemble` turns the events of a stream into the body of an answer that was not streamed, and
    refuses a stream that ended before the model did; without it, answers are never streamed. In
    `path`, `{model}` is the model's name; `stream_path` is where streams are asked for, if that is
    elsewhere.
    """

    name: str
    path: str
    list_path: str
    headers: Callable[[str], dict[str, str]]
    encode: Callable[[str, Request, bool], dict[str, Any]]
    decode: Callable[[Body], Reply]
    assemble: Callable[[Iterable[Body]], Body] | None
    stream_path: str = ""


def bearer(key: str) -> dict[str, str]:
    """The header of a key as a bearer token; none if there is no key."""
    return {"authorization": f"Bearer {key}"} if key else {}


def cut_off(what: str) -> ModelBusy:
    """The error for an answer that stops in the middle: asking again may give all of it."""
    return ModelBusy(f"the stream ended before {what}: the connection was cut or the server died")


def effort(reasoning: str | int) -> str:
    """A number of tokens as one of OpenAI's words.

    >>> effort("high"), effort(2000), effort(0)
    ('high', 'low', 'none')
    """
    if isinstance(reasoning, str):
        return reasoning
    return next(word for most, word in EFFORTS if reasoning <= most)


def joined_turns(
    messages: Iterable[Message], blocks: Callable[[Message], list[dict[str, Any]]]
) -> list[dict[str, Any]]:
    """The messages as turns of blocks, for APIs in which user and assistant must take turns.

    Neighbours of one role are joined: the results of several tools form one turn of the user.
    """
    turns: list[dict[str, Any]] = []
    for message in messages:
        role = "assistant" if message.role == "assistant" else "user"
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks(message)
        else:
            turns.append({"role": role, "content": blocks(message)})
    return turns


def attachments_of(message: Message, *kinds: str, wire: str) -> list[Attachment]:
    """The attachments of a message that the wire format takes: `image`, `audio`.

    An attachment of the user that cannot be sent is an error. One of a tool is left out: the text
    of its result names it.
    """
    refused = [each.mime for each in message.attachments if each.kind not in kinds]
    if refused and message.role == "user":
        takes = " and ".join(f"{kind} files" for kind in kinds)
        raise ModelError(f"{refused[0]} cannot be sent: the wire format {wire} takes {takes}")
    return [each for each in message.attachments if each.kind in kinds]


# The interface between an agent and its tools.

READ_RESOURCE, GET_PROMPT = "resources/read", "prompts/get"
"""Requests that passhat makes itself, by their names in MCP. They are handled as tool calls, so
that they are recorded and resumed in the same way; models may not make them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRequest:
    """One call of a tool."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    place: CallKey = CallKey()

    def fingerprint(self, clean: Callable[[str], str] = str) -> str:
        """A hash of what is asked; `clean` takes secrets out."""
        text = clean(msgspec.json.encode((self.name, self.arguments), order="sorted").decode())
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """The result of a tool call, as the model sees it; `fault` names an injected fault."""

    text: str = ""
    is_error: bool = False
    server: str = ""
    seconds: float = 0.0
    fault: str | None = None
    attachments: tuple[Attachment, ...] = ()


class Tools(Protocol):
    """Tools that can be called: of MCP servers, of a recording, or none at all."""

    @property
    def specs(self) -> tuple[ToolSpec, ...]: ...

    async def call(self, request: ToolRequest, /) -> ToolResult: ...


class NoTools:
    """The tools of an agent that has none."""

    specs: tuple[ToolSpec, ...] = ()

    async def call(self, request: ToolRequest, /) -> ToolResult:
        return unknown_tool(request.name, self.specs)


def unknown_tool(name: str, specs: tuple[ToolSpec, ...]) -> ToolResult:
    """The result of a call to a tool that does not exist.

    >>> unknown_tool("fly", (ToolSpec(name="walk"),)).text
    "There is no tool 'fly'. Tools: walk"
    """
    known = ", ".join(spec.name for spec in specs) or "none"
    return ToolResult(text=f"There is no tool {name!r}. Tools: {known}", is_error=True)


# Requests to models and their replies, in one form for all providers.

LATER = frozenset({"attachments", "reasoning", "prompt_cache"})
"""Fields of messages and parameters that came after the first cassettes."""

FORMATS = {"mpeg": "mp3", "x-wav": "wav", "wave": "wav", "vnd.wave": "wav", "x-m4a": "m4a"}
"""Formats whose media type has another name: Python guesses audio/x-wav for a .wav file."""

Role = Literal["user", "assistant", "tool"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool as it is described to the model; `parameters` is a JSON Schema."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"type": "object"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRequest:
    """A tool call that the model asks for; `broken` holds arguments that are no JSON object."""

    id: str
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    broken: str | None = None

    @property
    def sent(self) -> Mapping[str, Any] | str:
        """The arguments as the model sent them: an object, or a text that is none."""
        return self.arguments if self.broken is None else self.broken

    @property
    def sent_text(self) -> str:
        """The arguments as text."""
        return msgspec.json.encode(self.arguments).decode() if self.broken is None else self.broken


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """An image or a sound: its media type, and its bytes in base64."""

    mime: str
    data: str

    @property
    def kind(self) -> str:
        """`image`, `audio`, `application`: the part before the slash."""
        return self.mime.partition("/")[0]

    @property
    def format(self) -> str:
        """The format as model APIs name it.

        >>> Attachment(mime="audio/x-wav", data="").format
        'wav'
        """
        name = self.mime.partition("/")[2]
        return FORMATS.get(name, name)

    @property
    def url(self) -> str:
        """The whole of it as a data URL."""
        return f"data:{self.mime};base64,{self.data}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One entry of the conversation.

    `raw` is an assistant turn in the provider's own words: it goes back as it came, so that
    signed reasoning survives from one turn to the next.
    """

    role: Role
    text: str = ""
    calls: tuple[CallRequest, ...] = ()
    call_id: str = ""
    is_error: bool = False
    raw: tuple[Mapping[str, Any], ...] = ()
    attachments: tuple[Attachment, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One question to a model: the conversation so far, the tools, and how to answer."""

    messages: tuple[Message, ...]
    system: str = ""
    tools: tuple[ToolSpec, ...] = ()
    parameters: ModelParameters = field(default_factory=ModelParameters)
    place: CallKey = CallKey()

    def fingerprint(self, clean: Callable[[str], str] = str) -> str:
        """A hash of all that the model sees, and of nothing else; `clean` takes secrets out.

        >>> from dataclasses import replace
        >>> hello = Request(messages=(Message(role="user", text="Hello"),))
        >>> later = replace(hello, place=CallKey(step=3))
        >>> later.fingerprint() == hello.fingerprint()
        True
        """
        messages = [_without_defaults(message) for message in self.messages]
        asked = msgspec.json.encode((messages, self.system, self.tools), order="sorted")
        how = msgspec.json.encode(_without_defaults(self.parameters), order="sorted")
        # Apart, because only the seed differs from run to run: `clean` remembers the rest.
        text = f"{clean(asked.decode())[:-1]},{clean(how.decode())}]"
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _without_defaults(value: Any) -> dict[str, Any]:
    """The fields of a value; those that came later only if they are set.

    A value from before a field was added must keep its hash: cassettes hold it.
    """
    names, parts, later = _fields(value.__class__)
    by_name = dict(zip(names, parts(value), strict=True))
    for name in later:
        if part := getattr(value, name):
            by_name[name] = part
    return by_name


@cache
def _fields(cls: Any) -> tuple[list[str], Callable[[Any], tuple[Any, ...]], list[str]]:
    """The names of the first fields of a class, what reads them all, and the names of `LATER`."""
    names = [field.name for field in fields(cls)]
    first = [name for name in names if name not in LATER]
    return first, attrgetter(*first), [name for name in names if name in LATER]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What came back: text, tool calls, why it ended, and what it cost.

    `stop_reason` is one of `done`, `tool_calls`, `max_tokens`, `refused`, or the provider's own
    word. `usage` is None if the server does not say it, and `cost` if no price is known either.
    `faults` names what was injected on purpose.
    """

    text: str = ""
    calls: tuple[CallRequest, ...] = ()
    stop_reason: str = "done"
    usage: TokenUsage | None = field(default_factory=TokenUsage)
    cost: float | None = None
    seconds: float = 0.0
    model: str = ""
    raw: tuple[Mapping[str, Any], ...] = ()
    faults: tuple[str, ...] = ()

    @property
    def spent(self) -> Amount:
        """What it cost, in money and tokens."""
        return Amount(cost=self.cost, tokens=None if self.usage is None else self.usage.total)

    def message(self) -> Message:
        """The reply as an entry of the conversation."""
        return Message(role="assistant", text=self.text, calls=self.calls, raw=self.raw)


class ChatModel(Protocol):
    """Anything that answers a request: an API, a script, a recording."""

    async def complete(self, request: Request, /) -> Reply: ...


def call_request(call_id: str, name: str, arguments: str | Mapping[str, Any]) -> CallRequest:
    """A tool call as it came off the wire, with its arguments parsed where that can be done.

    >>> call_request("1", "add", '{"a": 1}').arguments
    {'a': 1}
    >>> call_request("1", "add", '{"a": ').broken
    '{"a": '
    """
    if isinstance(arguments, Mapping):
        return CallRequest(id=call_id, name=name, arguments=arguments)
    try:
        parsed = msgspec.json.decode(arguments.strip() or "{}")
    except msgspec.DecodeError:
        parsed = None
    if isinstance(parsed, dict):
        return CallRequest(id=call_id, name=name, arguments=parsed)
    return CallRequest(id=call_id, name=name, broken=arguments)


# What an exchange cost: by the prices in the suite, or by the table of genai-prices (offline).

Pricing = Callable[[TokenUsage], float | None]

PER = 1_000_000


def pricing(model: str, *, provider: str | None, prices: Prices | None = None) -> Pricing:
    """The function from tokens to dollars for one model; it gives None if no price is known.

    >>> cost = pricing("mine", provider=None, prices=Prices(input=1.0, output=10.0, cached=0.5))
    >>> cost(TokenUsage(tokens_in=1_000_000, tokens_out=100_000, cached_in=400_000))
    1.8
    """
    if prices is not None:
        return lambda usage: _by_rates(usage, prices)
    if provider is None or not has_price(model, provider):
        return lambda usage: None
    return lambda usage: _by_table(usage, model, provider)


def listed_cost(model: str, usage: TokenUsage) -> float | None:
    """What tokens of a model cost by the price table; None if it does not know the model's name.

    >>> listed_cost("gpt-4o-mini", TokenUsage(tokens_in=1_000_000))
    0.15
    """
    provider = find_provider(model, variables={})
    if provider is None or provider[0].prices is None:
        return None
    with suppress(MissingExtra):
        return pricing(provider[1], provider=provider[0].prices)(usage)
    return None


@lru_cache(maxsize=1024)
def has_price(model: str, provider: str) -> bool:
    """Whether the price table knows the model."""
    try:
        _snapshot().find_provider_model(model, None, provider, None)
    except LookupError:
        return False
    return True


def _by_rates(usage: TokenUsage, prices: Prices) -> float:
    cached = prices.input if prices.cached is None else prices.cached
    written = prices.input if prices.cache_write is None else prices.cache_write
    fresh = usage.tokens_in - usage.cached_in - usage.cache_written
    return (
        fresh * prices.input
        + usage.cached_in * cached
        + usage.cache_written * written
        + usage.tokens_out * prices.output
    ) / PER


def _by_table(usage: TokenUsage, model: str, provider: str) -> float | None:
    from genai_prices import Usage, calc_price

    given = Usage(
        input_tokens=usage.tokens_in,
        output_tokens=usage.tokens_out,
        cache_read_tokens=usage.cached_in,
        cache_write_tokens=usage.cache_written,
    )
    try:
        return float(calc_price(given, model, provider_id=provider).total_price)
    except (LookupError, ValueError):
        return None


def _snapshot() -> Any:
    try:
        from genai_prices import data_snapshot
    except ImportError:
        raise MissingExtra("knowing what models cost", "run") from None
    return data_snapshot.get_snapshot()
