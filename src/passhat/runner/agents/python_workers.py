"""A Python function in worker processes, where it may crash or hang without harm."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from passhat.errors import PasshatError, RunError
from passhat.records import Observation, PythonSystem
from passhat.runner.agents.attempt_request import AttemptRequest
from passhat.runner.agents.frameworks import encodable, report_of
from passhat.runner.agents.parameters import wanted_by
from passhat.runner.agents.python import load_agent, made, offer
from passhat.runner.agents.reported import observe_value
from passhat.runner.processes import Tail, end_group, start_group

LONGEST_LINE = 16 * 2**20
SERVE = "from passhat.runner.agents.python_workers import serve; serve()"


class WorkerAgent:
    """Gives requests to at most `workers` processes; each works on one at a time."""

    def __init__(self, system: PythonSystem) -> None:
        self._system = system
        self._slots = asyncio.Semaphore(system.workers)
        self._idle: list[_Worker] = []

    async def attempt(self, request: AttemptRequest, /) -> Observation:
        offered = {**offer(request), "workdir": str(request.make_workdir())}
        async with self._slots:
            worker = self._idle.pop() if self._idle else await _Worker.start(self._system)
            try:
                async with asyncio.timeout(request.timeout):
                    answer = await worker.ask(offered)
            except BaseException:
                await worker.end()  # it hangs, or it died
                raise
            self._idle.append(worker)
        if "error" in answer:
            raise RunError(answer["error"])
        return observe_value(answer["value"], about=self._system.function)

    async def close(self) -> None:
        """End the workers."""
        await asyncio.gather(*(worker.end() for worker in self._idle))
        self._idle.clear()


def serve() -> None:
    """What a worker does: read requests from stdin, call the function, write what it returned.

    What the function prints goes to stderr, because stdout is ours. There is one event loop for all
    calls: clients that the module makes once belong to the loop that first used them.
    """
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    function, search = sys.argv[1], sys.argv[2]
    folder = Path(search) if search else None
    loaded = load_agent(function, search=folder)
    wanted = wanted_by(loaded, about=function)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    for line in sys.stdin.buffer:
        offered = msgspec.json.decode(line)
        offered["workdir"] = Path(offered["workdir"])
        try:
            call = wanted.call(loaded, offered)
            value = loop.run_until_complete(made(call, about=function, search=folder))
            report = report_of(value)
            answer = msgspec.json.encode(
                {"value": value if report is None else report}, enc_hook=encodable
            )
        except PasshatError as error:
            answer = msgspec.json.encode({"error": str(error)})
        answers.write(answer + b"\n")
        answers.flush()


class _Worker:
    def __init__(self, process: asyncio.subprocess.Process, about: str) -> None:
        self._process = process
        self._about = about
        self._stderr = Tail()
        assert process.stderr is not None
        self._following = asyncio.create_task(self._stderr.follow(process.stderr))

    @classmethod
    async def start(cls, system: PythonSystem) -> _Worker:
        search = "" if system.search is None else str(system.search.absolute())
        argv = [sys.executable, "-c", SERVE, system.function, search]
        process = await start_group(argv, env=os.environ, cwd=None, limit=LONGEST_LINE)
        return cls(process, system.function)

    async def ask(self, offered: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(msgspec.json.encode(offered, enc_hook=str) + b"\n")
            await self._process.stdin.drain()
            line = await self._process.stdout.readline()
        except (ConnectionError, ValueError) as error:
            raise RunError(f"the worker of {self._about} broke: {error}") from error
        if not line.endswith(b"\n"):
            await asyncio.sleep(0.05)  # until its last output is read
            said = self._stderr.text[-1000:] or "it printed nothing on stderr"
            raise RunError(f"the worker of {self._about} died: {said}")
        return msgspec.json.decode(line, type=dict[str, Any])

    async def end(self) -> None:
        await end_group(self._process, grace=0.0)
        self._following.cancel()
        await asyncio.gather(self._following, return_exceptions=True)
