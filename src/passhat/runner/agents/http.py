"""A system that is an HTTP endpoint: the task is posted to it, and it answers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from passhat.errors import RunError
from passhat.records import HttpSystem, Observation
from passhat.records.secrets import bare_address
from passhat.runner.agents.agent_output import observe_report, observe_value
from passhat.runner.agents.conversation import AttemptRequest
from passhat.runner.matchers import MISSING, value_at
from passhat.runner.models.endpoint import sendable_headers

if TYPE_CHECKING:
    import httpx2

MOST_ANSWER = 16 * 2**20
SHOWN = 300
"""Characters of an answer that a message quotes."""

PLACE = re.compile(r"\{(\w+)\}")


class HttpAgent:
    """Posts the request of the suite, or everything about the trial, and reads JSON or text."""

    def __init__(self, system: HttpSystem, client: httpx2.AsyncClient) -> None:
        self._system = system
        self._client = client

    async def attempt(self, request: AttemptRequest, /) -> Observation:
        import httpx2

        try:
            async with asyncio.timeout(request.timeout):
                content, kind = await self._post(self._body(request))
        except httpx2.HTTPError as error:
            where = f"{self._system.name} at {bare_address(self._system.url)}"
            raise RunError(f"{where}: {type(error).__name__} {error}") from error
        return self._observe(self._value(content, kind))

    def _body(self, request: AttemptRequest) -> bytes:
        known = request.describe()
        if self._system.request is None:
            return msgspec.json.encode(known, enc_hook=str)
        messages = [*request.history, {"role": "user", "content": request.prompt}]
        return msgspec.json.encode(
            filled(self._system.request, {**known, "messages": messages}), enc_hook=str
        )

    def _observe(self, value: object) -> Observation:
        if not self._system.reads:
            return observe_value(value, about=self._system.name)
        report = {}
        for what, paths in self._system.reads.items():
            parts = (value_at(value, path) for path in paths)
            part = next((part for part in parts if part is not MISSING and part is not None), None)
            if part is not None:
                report[what] = part
        if "answer" in self._system.reads and not {"answer", "error"} & report.keys():
            places = " or ".join(self._system.reads["answer"])
            text = msgspec.json.encode(value, enc_hook=str)[:SHOWN].decode("utf-8", "replace")
            raise RunError(
                f"{self._system.name} gives no answer: there is nothing at {places} in {text}"
            )
        reported = value if isinstance(value, Mapping) else {"body": value}
        return replace(observe_report(report, about=self._system.name), reported=reported)

    async def _post(self, body: bytes) -> tuple[bytes, str]:
        given = {name: secret.reveal() for name, secret in self._system.headers.items()}
        checked = sendable_headers(given, about=self._system.name)
        headers = {"content-type": "application/json", **checked}
        async with self._client.stream(
            "POST", self._system.url, content=body, headers=headers, timeout=None
        ) as response:
            content = bytearray()
            async for chunk in response.aiter_bytes():
                content += chunk
                if len(content) > MOST_ANSWER:
                    raise RunError(f"{self._system.name} answers with over {MOST_ANSWER} bytes")
        if not response.is_success:
            text = bytes(content[:SHOWN]).decode("utf-8", "replace")
            raise RunError(f"{self._system.name} answers {response.status_code}: {text!r}")
        return bytes(content), response.headers.get("content-type", "")

    def _value(self, content: bytes, kind: str) -> object:
        if "json" not in kind:
            return content.decode("utf-8", "replace")
        try:
            return msgspec.json.decode(content)
        except msgspec.DecodeError as error:
            raise RunError(f"{self._system.name} answers with broken JSON: {error}") from error


def filled(template: Any, known: Mapping[str, Any]) -> Any:
    """A template with its placeholders filled in; a lone placeholder becomes the value itself.

    >>> filled({"q": "Say {prompt}", "all": "{messages}"}, {"prompt": "hi", "messages": [1]})
    {'q': 'Say hi', 'all': [1]}
    """
    if isinstance(template, Mapping):
        return {key: filled(value, known) for key, value in template.items()}
    if isinstance(template, list):
        return [filled(value, known) for value in template]
    if not isinstance(template, str):
        return template
    alone = PLACE.fullmatch(template)
    if alone and alone[1] in known:
        return known[alone[1]]
    return PLACE.sub(lambda m: str(known[m[1]]) if m[1] in known else m[0], template)
