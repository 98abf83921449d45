"""What a wire format consists of: how a request is written and how an answer is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from passhat.dataclass import dataclass
from passhat.errors import ModelBusy, ModelError
from passhat.runner.models.exchange import Attachment, Message, Reply, Request

Body = Mapping[str, Any]

EFFORTS = ((0, "none"), (4_096, "low"), (16_384, "medium"), (float("inf"), "high"))
"""About how many tokens of thinking each word means."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
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
