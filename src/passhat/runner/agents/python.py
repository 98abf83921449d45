"""A system that is a Python function: called in a thread, awaited, or run in worker processes."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import inspect
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from passhat.errors import RunError, SuiteError
from passhat.records import Observation, PythonSystem
from passhat.runner.agent_output import prints_to_stderr
from passhat.runner.agents.attempt_request import AttemptRequest
from passhat.runner.agents.frameworks import agent_function
from passhat.runner.agents.parameters import wanted_by
from passhat.runner.agents.reported import observe_value
from passhat.runner.agents.user_loop import borrowed, user_loop


class PythonAgent:
    """Calls the function or the framework's agent of a system, in this process."""

    def __init__(self, system: PythonSystem) -> None:
        self._system = system
        self._function = load_agent(system.function, search=system.search)
        self._wanted = wanted_by(self._function, about=system.function)

    async def attempt(self, request: AttemptRequest, /) -> Observation:
        about = self._system.function
        offered = offer(request)
        if "workdir" in self._wanted.keys:
            request.make_workdir()
        call = self._wanted.call(self._function, offered)
        async with asyncio.timeout(request.timeout):
            value = await user_loop().run(made(call, about=about))
        return observe_value(value, about=about)


def load_agent(reference: str, *, search: Path | None = None) -> Callable[..., Any]:
    """What `module:name` refers to, as a function of the prompt: one, or a framework's agent."""
    found = load_object(reference, search=search)
    return agent_function(found) or _callable(found, reference)


def load_function(reference: str, *, search: Path | None = None) -> Callable[..., Any]:
    """The function that `module:name` refers to; the module may lie in `search`.

    >>> load_function("json:loads").__name__
    'loads'
    """
    return _callable(load_object(reference, search=search), reference)


def load_object(reference: str, *, search: Path | None = None) -> Any:
    """Whatever `module:name` refers to; the module may lie in `search`."""
    module_name, colon, name = reference.partition(":")
    if not colon or not name:
        raise SuiteError(f'"{reference}" must be of the form module:function')
    if search is not None and str(search.absolute()) not in sys.path:
        sys.path.insert(0, str(search.absolute()))
    try:
        with prints_to_stderr():
            found: Any = importlib.import_module(module_name)
        for part in name.split("."):
            found = getattr(found, part)
    except ImportError as error:
        raise SuiteError(f'"{reference}" cannot be imported: {error}') from error
    except AttributeError:
        raise SuiteError(f'"{reference}": {module_name} has no {name}') from None
    return found


def _callable(found: Any, reference: str) -> Callable[..., Any]:
    if callable(found):
        return found  # type: ignore[no-any-return]  # just checked to be callable
    raise SuiteError(
        f'"{reference}" is not a function but a {type(found).__name__}, and no agent of a '
        "framework that passhat knows"
    )


def offer(request: AttemptRequest) -> dict[str, Any]:
    """All that a function may ask for."""
    return {
        "prompt": request.prompt,
        "task": request.task.name,
        "trial": request.place.trial,
        "seed": request.seed,
        "workdir": request.workdir,
        "values": request.task.values,
        "history": [dict(message) for message in request.history],
    }


async def made(call: Callable[[], Any], *, about: str) -> Any:
    """Make a call, in a thread unless it is async; its own exceptions become ours.

    A failed assertion is a failed attempt; anything else that it raises is an error.
    """
    try:
        if inspect.iscoroutinefunction(call):
            return await call()
        value = await in_thread(call)
        return await value if inspect.isawaitable(value) else value
    except AssertionError as error:
        return {"passed": False, "answer": str(error)}
    except Exception as error:
        raise RunError(f"{about} raised {type(error).__name__}: {error}") from error


async def in_thread(call: Callable[[], Any]) -> Any:
    """Make a call in a thread of its own.

    Not in a pool: its threads are waited for at exit, and a function that hangs would hold up
    the whole run.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def settle(value: Any, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is None:
            done.set_result(value)
        else:
            done.set_exception(error)

    def work() -> None:
        value: Any = None
        error: BaseException | None = None
        asyncio.set_event_loop(borrowed(loop))
        try:
            value = call()
        except (StopIteration, SystemExit, KeyboardInterrupt) as caught:
            # A future cannot hold the first; the others would end the run, not the attempt.
            error = RuntimeError(f"{type(caught).__name__}: {caught}")
        except BaseException as caught:
            error = caught
        asyncio.set_event_loop(None)
        with contextlib.suppress(RuntimeError):  # the run is over and the result is not needed
            loop.call_soon_threadsafe(settle, value, error)

    threading.Thread(target=work, daemon=True).start()
    return await done
