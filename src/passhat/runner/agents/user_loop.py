"""One event loop for all Python code of users, for the whole life of the process.

Clients that a module makes once (`client = AsyncOpenAI()`) belong to the loop that first used
them. With a loop of its own for each call, the second call would fail.
"""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import functools
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any

JOIN_PATIENCE = 0.5


class UserLoop:
    """An event loop in a thread of its own, so that code that blocks it does not block a run."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._live, name="passhat-user-loop", daemon=True)
        self._thread.start()

    async def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine there and wait for it here."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def close(self) -> None:
        """End the loop; code that blocks it is left behind."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(JOIN_PATIENCE)

    def _live(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._loop.close()


@functools.cache
def user_loop() -> UserLoop:
    """The loop of this process, made when it is first needed: a notebook may run several suites."""
    loop = UserLoop()
    atexit.register(loop.close)
    return loop


class BorrowedLoop(asyncio.AbstractEventLoop):
    """What synchronous code finds as its event loop: work for it is done on the shared one.

    `agent.run_sync(...)` of many frameworks asks for the loop of its thread and runs a coroutine
    on it until it is complete. Set with `asyncio.set_event_loop` in a thread, this runs it on the
    shared loop and lets only the thread wait.
    """

    def __init__(self, shared: asyncio.AbstractEventLoop) -> None:
        self._shared = shared

    def __getattribute__(self, name: str) -> Any:
        if name in _OWN:
            return super().__getattribute__(name)
        return getattr(super().__getattribute__("_shared"), name)

    def run_until_complete(self, future: Any) -> Any:
        if asyncio.iscoroutine(future):
            return self._send(lambda: self._shared.create_task(future)).result()
        return asyncio.run_coroutine_threadsafe(_awaited(future), self._shared).result()

    def create_task(self, coro: Any, **options: Any) -> Any:
        made: Future[Any] = Future()
        context = contextvars.copy_context()

        def make() -> None:
            made.set_result(self._shared.create_task(coro, **options))

        self._shared.call_soon_threadsafe(make, context=context)
        return made.result()

    def _send(self, start: Callable[[], asyncio.Task[Any]]) -> Future[Any]:
        """Start a task over there in the context of this thread; its result comes back."""
        result: Future[Any] = Future()

        def settle(task: asyncio.Task[Any]) -> None:
            if task.cancelled():
                result.cancel()
            elif (error := task.exception()) is not None:
                result.set_exception(error)
            else:
                result.set_result(task.result())

        def go() -> None:
            start().add_done_callback(settle)

        self._shared.call_soon_threadsafe(go, context=contextvars.copy_context())
        return result

    def is_running(self) -> bool:
        return False

    def is_closed(self) -> bool:
        return False

    def close(self) -> None:
        """Whoever lent the loop closes it."""


_OWN = frozenset(
    {
        "_shared",
        "_send",
        "run_until_complete",
        "create_task",
        "is_running",
        "is_closed",
        "close",
        "__class__",
        "__dict__",
    }
)


def borrowed(shared: asyncio.AbstractEventLoop) -> asyncio.AbstractEventLoop:
    """A loop for a thread that does its work on a shared one."""
    # typeshed calls all methods abstract; those that are not ours are the shared loop's.
    return BorrowedLoop(shared)  # type: ignore[abstract]


async def _awaited(future: Any) -> Any:
    return await future
