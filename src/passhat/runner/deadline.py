"""The time that an attempt may take, without the time that it waits for providers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Self

_current: ContextVar[Deadline | None] = ContextVar("passhat_deadline", default=None)


class Deadline:
    """`async with Deadline(30)` ends its body with TimeoutError after 30 s, without pauses."""

    __slots__ = ("_scope", "_seconds", "_token")

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds

    async def __aenter__(self) -> Self:
        self._scope = asyncio.timeout(self._seconds)
        await self._scope.__aenter__()
        self._token = _current.set(self)
        return self

    async def __aexit__(self, *error: Any) -> None:
        _current.reset(self._token)
        await self._scope.__aexit__(*error)

    @property
    def left(self) -> float | None:
        """The seconds left, or None without a limit."""
        when = self._scope.when()
        return None if when is None else when - asyncio.get_running_loop().time()

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Stop the clock for the body of a `with`."""
        left = self.left
        if left is None or left <= 0:
            yield
            return
        self._scope.reschedule(None)
        try:
            yield
        finally:
            if not self._scope.expired():
                self._scope.reschedule(asyncio.get_running_loop().time() + left)


@contextmanager
def excused() -> Iterator[None]:
    """Stop the clock of the attempt under way, if there is one.

    The agent is not to blame for waiting for a rate limit or a busy provider.
    """
    deadline = _current.get()
    if deadline is None:
        yield
        return
    with deadline.stopped():
        yield
