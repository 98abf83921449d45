"""Graders that users write: Python functions, and programs whose exit code decides."""

from __future__ import annotations

import asyncio
import functools
import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from passhat.errors import GraderError
from passhat.records import Expectation, Observation
from passhat.runner.graders.matches import Match, shown, text_of
from passhat.runner.interruption import is_cancelled
from passhat.runner.processes import Tail, end_group, start_group, talk
from passhat.runner.value_paths import MISSING


async def match_function(
    value: Any, observation: Observation, expectation: Expectation, *, directory: Path
) -> Match:
    """Call a function `module:name(value)` or `(value, observation)` for a bool or a score.

    A failed assertion is a failure; any other exception is a broken grader.
    """
    name = str(expectation.value)
    function = load_function(name, directory)
    arguments = (None if value is MISSING else value, observation)[: _arity(function)]
    try:
        if inspect.iscoroutinefunction(function):
            returned = await function(*arguments)
        else:
            returned = await asyncio.to_thread(function, *arguments)
        if inspect.isawaitable(returned):  # an object with an async __call__
            returned = await returned
    except AssertionError as error:
        return Match(0.0, f"{name}: {str(error) or 'an assertion did not hold'}")
    except (Exception, asyncio.CancelledError) as error:
        if isinstance(error, asyncio.CancelledError) and is_cancelled():
            raise
        raise GraderError(f"{name} broke: {type(error).__name__}: {error}") from error
    return _as_match(name, returned)


@functools.lru_cache(maxsize=256)
def load_function(name: str, directory: Path) -> Callable[..., Any]:
    """The function `module:name`; a module beside the suite comes before an installed one."""
    module_name, _, attribute = name.partition(":")
    try:
        found: Any = _load_module(module_name, directory)
        for part in attribute.split("."):
            found = getattr(found, part)
    except Exception as error:
        raise GraderError(f"{name} cannot be loaded: {type(error).__name__}: {error}") from error
    if not callable(found):
        raise GraderError(f"{name} is not a function")
    return functools.partial(found) if isinstance(found, type) else found


async def match_command(
    observation: Observation, expectation: Expectation, *, directory: Path
) -> Match:
    """Run a program: exit code 0 is a pass, 1 a failure, anything else a broken grader.

    It runs where the attempt left its files, and reads the observation as JSON.
    """
    argv = [word.replace("{python}", sys.executable) for word in expectation.value]
    if "/" in argv[0]:
        argv[0] = str(directory / argv[0])
    timeout = float(expectation.options.get("timeout", 60.0))
    code, said = await _run(argv, observation, cwd=observation.files or directory, timeout=timeout)
    if code not in (0, 1):
        raise GraderError(f"{argv[0]} broke: exit code {code}: {said}")
    return Match(float(code == 0), f"{argv[0]} exited with {code}: {said}")


def _load_module(name: str, directory: Path) -> Any:
    file = directory / f"{name.replace('.', '/')}.py"
    if not file.is_file():
        return importlib.import_module(name)
    # Under a unique name: two suites may both have a `graders.py`.
    unique = f"passhat_suite_{abs(hash(file.resolve())):x}_{name.replace('.', '_')}"
    if unique in sys.modules:
        return sys.modules[unique]
    spec = importlib.util.spec_from_file_location(unique, file)
    assert spec is not None, "a file that ends in .py has a loader"
    assert spec.loader is not None, "a file that ends in .py has a loader"
    module = importlib.util.module_from_spec(spec)
    sys.modules[unique] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[unique]
        raise
    return module


def _arity(function: Callable[..., Any]) -> int:
    """How many of (value, observation) a function takes by position."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 1
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return 2
    positional = (p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD))
    return min(2, len(list(positional)))


def _as_match(name: str, returned: Any) -> Match:
    """A bool, a score, (score, message), or a mapping with `score` or `passed`."""
    score, message = returned, ""
    if isinstance(returned, Mapping):
        score, message = returned.get("score", returned.get("passed")), returned.get("message", "")
    elif isinstance(returned, tuple) and len(returned) == 2:
        score, message = returned
    if not isinstance(score, bool | int | float) or not 0 <= score <= 1:
        raise GraderError(f"{name} must return a bool or a score in [0, 1], got {shown(returned)}")
    return Match(float(score), f"{name}: {message or f'score {float(score):g}'}")


async def _run(
    argv: list[str], observation: Observation, *, cwd: Path, timeout: float
) -> tuple[int, str]:
    try:
        process = await start_group(argv, env=os.environ, cwd=cwd)
    except OSError as error:
        raise GraderError(f"{argv[0]} cannot be started: {error.strerror}") from None
    said, complained = Tail(1000), Tail(1000)
    given = text_of(observation).encode("utf-8", "replace")
    try:
        async with asyncio.timeout(timeout):
            code = await talk(process, given, said, complained)
            return code, complained.text or said.text
    except TimeoutError:
        raise GraderError(f"{argv[0]} took longer than {timeout:g} s") from None
    finally:
        await end_group(process)
