"""The form of a wire format: how a request is written and how an answer is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from passhat.errors import ModelBusy
from passhat.runner.models.exchange import Reply, Request

Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """A wire format, as pure functions.

    `assemble` turns the events of a stream into the body that a request without streaming would
    have brought, and refuses a stream that ended before the model did.
    """

    name: str
    path: str
    list_path: str
    headers: Callable[[str], dict[str, str]]
    encode: Callable[[str, Request, bool], dict[str, Any]]
    decode: Callable[[Body], Reply]
    assemble: Callable[[Iterable[Body]], Body]


def cut_off(what: str) -> ModelBusy:
    """The error for an answer that stops in the middle: asking again may bring all of it."""
    return ModelBusy(f"the stream ended before {what}: the connection was cut or the server died")
