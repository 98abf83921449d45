"""Ctrl-C and SIGTERM: the first lets trials finish, the second ends the run at once."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from passhat.runner.processes import kill_groups

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def is_cancelled() -> bool:
    """Whether this task is being cancelled; code of users may raise CancelledError by itself."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


@contextmanager
def signals_to_thread(interrupt: Callable[[int], None], *, enabled: bool = True) -> Iterator[None]:
    """As `signals_to`, for a run that waits in the main thread without an event loop."""
    here = enabled and threading.current_thread() is threading.main_thread()
    receive = _receiver(interrupt)
    before = {sign: signal.signal(sign, receive) for sign in SIGNALS} if here else {}
    try:
        yield
    finally:
        for sign, handler in before.items():
            signal.signal(sign, handler)


@contextmanager
def signals_to(interrupt: Callable[[int], None], *, enabled: bool = True) -> Iterator[None]:
    """Pass the first signal to `interrupt`; at the next, kill all children and exit at once."""
    loop = asyncio.get_running_loop()
    receive = _receiver(interrupt)
    installed = []
    for sign in SIGNALS if enabled else ():
        try:
            loop.add_signal_handler(sign, receive, sign)
        except (NotImplementedError, RuntimeError, ValueError):
            continue  # not the main thread: whatever runs there handles signals
        installed.append(sign)
    try:
        yield
    finally:
        for sign in installed:
            loop.remove_signal_handler(sign)


def _receiver(interrupt: Callable[[int], None]) -> Callable[..., None]:
    asked = False

    def receive(number: int, *_: object) -> None:
        nonlocal asked
        if asked:
            kill_groups()
            os._exit(128 + number)
        asked = True
        interrupt(number)

    return receive
