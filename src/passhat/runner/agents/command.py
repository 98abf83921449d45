"""A system that is a program: each trial starts it in a group and a directory of its own."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from passhat.errors import RunError
from passhat.records import CommandSystem, Observation
from passhat.runner.agents.attempt_request import AttemptRequest
from passhat.runner.agents.coding_tools import json_values, read_coding_tool
from passhat.runner.agents.reported import TELLING, observe_report
from passhat.runner.processes import Tail, end_group, inherited_environment, start_group, talk

MOST_OUTPUT = 2**20
"""Bytes of output that are kept: the last ones, for the result is at the end."""

LONGEST_VARIABLE = 100_000
"""Bytes of the prompt in the environment; Linux starts no program with a variable above 131,072.
The file that PASSHAT_TASK_FILE names always has the whole prompt."""


class CommandAgent:
    """Runs the command of a system and reads its outcome."""

    def __init__(self, system: CommandSystem) -> None:
        self._system = system

    async def attempt(self, request: AttemptRequest, /) -> Observation:
        request.make_workdir()
        argv = _argv(self._system, request)
        cwd = self._system.cwd or request.workdir
        try:
            process = await start_group(argv, env=_environment(self._system, request), cwd=cwd)
        except (OSError, ValueError) as error:
            raise RunError(_cannot_start(self._system.name, argv[0], error)) from error
        stdout, stderr = Tail(MOST_OUTPUT), Tail()
        try:
            async with asyncio.timeout(request.timeout):
                code = await talk(process, self._stdin(request), stdout, stderr)
        finally:
            await end_group(process, grace=0.0)
            _task_file(request).unlink(missing_ok=True)
        return self._observe(code, stdout.text, stderr.text, cwd)

    def _stdin(self, request: AttemptRequest) -> bytes:
        """The prompt goes to stdin where the command line has no place for it."""
        if any("{prompt}" in part for part in self._system.argv):
            return b""
        return request.prompt.encode()

    def _observe(self, code: int, stdout: str, stderr: str, cwd: Path) -> Observation:
        well = code in self._system.exit_codes
        report = self._report(stdout)
        if report is not None:
            seen = observe_report(report, about=self._system.name)
            # A report that says nothing about success leaves that to the exit code.
            score = float(well) if seen.score is None else seen.score
            seen = replace(seen, answer=seen.answer or stdout, score=score)
        elif self._system.outcome == "json" and well:
            raise RunError(
                f"{self._system.name} printed no JSON with a score; it ended with: "
                f"{stdout[-200:]!r}"
            )
        else:
            seen = Observation(answer=stdout, score=float(well))
        if not well and self._system.outcome != "expect":
            seen = replace(seen, score=0.0)
        reason = "exit" if seen.stop_reason == "done" else seen.stop_reason
        return replace(seen, exit_code=code, stderr=stderr, files=cwd, stop_reason=reason)

    def _report(self, stdout: str) -> Mapping[str, object] | None:
        if self._system.outcome == "exit":
            return None
        if (report := read_coding_tool(stdout)) is not None:
            return report
        return None if self._system.outcome == "expect" else last_report(stdout)


def last_report(stdout: str) -> dict[str, object] | None:
    r"""The last JSON object in an output that has a result in it, on one line or on several.

    >>> last_report('thinking\n{"score": 0.5}\nbye')
    {'score': 0.5}
    >>> last_report('{\n  "passed": false\n}')
    {'passed': False}
    """
    found = None
    for value in json_values(stdout):
        if isinstance(value, dict) and TELLING & value.keys():
            found = value
    return found


def _cannot_start(name: str, program: str, error: OSError | ValueError) -> str:
    if isinstance(error, OSError) and error.errno == errno.E2BIG:
        return (
            f"{name} cannot be started: the prompt is too long for a command line; leave "
            "{prompt} out of the command, and the program gets it on standard input"
        )
    return f"{name} cannot be started: {program!r}: {error}"


def _argv(system: CommandSystem, request: AttemptRequest) -> list[str]:
    argv = system.argv if system.cwd is not None else _absolute(system.argv, request.directory)
    argv = [part.replace("{workdir}", str(request.workdir)) for part in argv]
    return [part.replace("{prompt}", request.prompt) for part in argv]


def _absolute(argv: Sequence[str], directory: Path) -> Sequence[str]:
    """Files beside the suite by their full path, for the command runs elsewhere."""
    return [
        str((directory / part).absolute())
        if _looks_like_a_path(part) and os.path.isfile(directory / part)  # noqa: PTH113 - never raises
        else part
        for part in argv
    ]


def _looks_like_a_path(part: str) -> bool:
    # A file called "python" beside the suite must not take the place of the command.
    return "/" in part or "." in part


def _environment(system: CommandSystem, request: AttemptRequest) -> dict[str, str]:
    _task_file(request).write_bytes(msgspec.json.encode(request.describe(), enc_hook=str))
    return {
        **(os.environ if system.inherit_env else inherited_environment()),
        "PASSHAT_TASK": request.task.name,
        "PASSHAT_PROMPT": _cut(request.prompt.replace("\0", "")),
        "PASSHAT_TASK_FILE": str(_task_file(request)),
        "PASSHAT_TRIAL": str(request.place.trial),
        "PASSHAT_SEED": str(request.seed),
        "PASSHAT_WORKDIR": str(request.workdir),
        "PASSHAT_STEP": str(request.place.step + 1),
        **{name: secret.reveal() for name, secret in system.env.items()},
    }


def _cut(text: str) -> str:
    return text.encode("utf-8", "replace")[:LONGEST_VARIABLE].decode("utf-8", "ignore")


def _task_file(request: AttemptRequest) -> Path:
    # Beside the working directory, which belongs to the agent alone.
    return request.workdir.with_name(f"{request.workdir.name}.task.json")
