"""Requests to models and their replies, in one form for all providers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import field, fields
from functools import cache
from operator import attrgetter
from typing import Any, Literal, Protocol

import msgspec

from passhat.dataclass import dataclass
from passhat.records import ModelParameters, TokenUsage
from passhat.records.ledger import Amount, CallKey

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
    found = dict(zip(names, parts(value), strict=True))
    for name in later:
        if part := getattr(value, name):
            found[name] = part
    return found


@cache
def _fields(cls: Any) -> tuple[list[str], Callable[[Any], tuple[Any, ...]], list[str]]:
    """The names of the first fields of a class, what reads them all, and the names of `LATER`."""
    names = [one.name for one in fields(cls)]
    first = [name for name in names if name not in LATER]
    return first, attrgetter(*first), [name for name in names if name in LATER]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What came back: text, tool calls, why it ended, and what it cost.

    `stop_reason` is one of `done`, `tool_calls`, `max_tokens`, `refused`, or the provider's own
    word. `cost` is None if no price is known. `faults` names what was injected on purpose.
    """

    text: str = ""
    calls: tuple[CallRequest, ...] = ()
    stop_reason: str = "done"
    usage: TokenUsage = field(default_factory=TokenUsage)
    cost: float | None = None
    seconds: float = 0.0
    model: str = ""
    raw: tuple[Mapping[str, Any], ...] = ()
    faults: tuple[str, ...] = ()

    @property
    def spent(self) -> Amount:
        """What it cost, in money and tokens."""
        return Amount(cost=self.cost, tokens=self.usage.total)

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
