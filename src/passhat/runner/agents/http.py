"""A system that is an endpoint: the task is posted to it, and it answers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from passhat.errors import RunError
from passhat.records import HttpSystem, Observation
from passhat.runner.agents.attempt_request import AttemptRequest
from passhat.runner.agents.reported import observe_value

if TYPE_CHECKING:
    import httpx2

MOST_ANSWER = 16 * 2**20


class HttpAgent:
    """Posts `{"task", "prompt", "trial", "seed", "values", ...}` and reads JSON or text."""

    def __init__(self, system: HttpSystem, client: httpx2.AsyncClient) -> None:
        self._system = system
        self._client = client

    async def attempt(self, request: AttemptRequest, /) -> Observation:
        import httpx2

        try:
            async with asyncio.timeout(request.timeout):
                content, kind = await self._post(msgspec.json.encode(request.describe()))
        except httpx2.HTTPError as error:
            raise RunError(
                f"{self._system.name} at {self._system.url}: {type(error).__name__} {error}"
            ) from error
        return observe_value(self._value(content, kind), about=self._system.name)

    async def _post(self, body: bytes) -> tuple[bytes, str]:
        headers = {name: secret.reveal() for name, secret in self._system.headers.items()}
        headers = {"content-type": "application/json", **headers}
        async with self._client.stream(
            "POST", self._system.url, content=body, headers=headers, timeout=None
        ) as response:
            content = bytearray()
            async for chunk in response.aiter_bytes():
                content += chunk
                if len(content) > MOST_ANSWER:
                    raise RunError(f"{self._system.name} answers with over {MOST_ANSWER} bytes")
        if not response.is_success:
            said = bytes(content[:300]).decode("utf-8", "replace")
            raise RunError(f"{self._system.name} answers {response.status_code}: {said!r}")
        return bytes(content), response.headers.get("content-type", "")

    def _value(self, content: bytes, kind: str) -> object:
        if "json" not in kind:
            return content.decode("utf-8", "replace")
        try:
            return msgspec.json.decode(content)
        except msgspec.DecodeError as error:
            raise RunError(f"{self._system.name} answers with broken JSON: {error}") from error
