"""MCP servers that hang, crash, babble or flood: a typed error in time, and nothing left behind."""

import asyncio
import gc
import os
import re
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from passhat.errors import ServerError, ServerNeverStarted
from passhat.records import (
    Behaviour,
    Model,
    ModelSystem,
    Pairing,
    StdioServer,
    Suite,
    Task,
)
from passhat.runner import run_trials
from passhat.runner.mcp_servers import ServerPool
from passhat.runner.models.exchange import ToolRequest

SCRIPT = Path(__file__).with_name("bad_server.py")


def bad(mode, *more, **options):
    given = {"start_timeout": 20.0, "call_timeout": 20.0} | options
    argv = (sys.executable, str(SCRIPT), mode, *map(str, more))
    return StdioServer(name="bad", argv=argv, **given)


def call(server):
    async def main():
        pool = ServerPool(directory=Path.cwd())
        async with pool.tools([server]) as tools:
            return await tools.call(ToolRequest(name="get"))

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("mode", "message"),
    [
        ("die-at-start", r"did not start: it exited with code 7; .*no database"),
        ("crash", r"broke during the call of get: it exited with code 11; .*segmentation fault"),
        ("oversized", r"broke during the call of get: a message of more than 8388608 bytes"),
        ("half-a-message", r"broke during the call of get: it exited with code 0"),
        ("flood", r"did not start: more than 1048576 bytes that are not JSON-RPC"),
    ],
)
def test_a_server_that_breaks_is_an_error_that_says_how(mode, message):
    with pytest.raises(ServerError, match=r'server "bad" ' + message):
        call(bad(mode))


@pytest.mark.parametrize(
    ("mode", "message"),
    [
        ("hang-at-start", r"did not start within \d+ s"),
        (
            "garbage-at-start",
            r"did not start within \d+ s: .*not JSON-RPC: '.* listening on port 80'",
        ),
    ],
)
def test_a_server_that_does_not_start_is_given_up_in_time(mode, message):
    for seconds in (1.0, 4.0, 16.0):  # on a busy machine it says nothing in the first second
        with pytest.raises(ServerError, match=f"did not start within {seconds:g} s") as raised:
            call(bad(mode, start_timeout=seconds))
        if re.search(message, str(raised.value)):
            return
    pytest.fail(str(raised.value))


@pytest.mark.parametrize("mode", ["hang", "garbage"])
def test_a_call_without_an_answer_is_given_up_in_time(mode):
    with pytest.raises(ServerError, match=r"did not answer the call of get within 0.5 s"):
        call(bad(mode, call_timeout=0.5))


@pytest.mark.parametrize(("mode", "length"), [("banner", 4), ("large", 2**20)])
def test_a_server_that_is_merely_odd_still_serves(mode, length):
    assert len(call(bad(mode)).text) == length


def test_a_command_that_does_not_exist_is_named():
    missing = StdioServer(name="bad", argv=("no-such-server", "--stdio"))
    with pytest.raises(
        ServerError, match='cannot be started: there is no program "no-such-server"'
    ):
        call(missing)


@pytest.mark.parametrize("mode", ["fine", "crash", "hang", "hang-at-start", "ignores-sigterm"])
def test_no_grandchild_survives(mode, tmp_path):
    pids = tmp_path / "pids"
    for seconds in (2.0, 8.0, 32.0):  # on a busy machine it has no child after two seconds
        started = {"start_timeout": seconds if mode == "hang-at-start" else 60.0}
        try:
            call(bad(mode, pids, **started, call_timeout=20.0 if mode == "fine" else 0.5))
        except ServerError:
            assert mode != "fine"
        if pids.exists():
            break
    for pid in map(int, pids.read_text().split()):
        assert not _alive(pid), f"process {pid} of mode {mode} survives"


def test_a_server_that_fails_takes_its_neighbours_with_it(tmp_path):
    async def main():
        pool = ServerPool(directory=Path.cwd())
        good = bad("fine", tmp_path / "pids")
        async with pool.tools([good, bad("die-at-start")]):
            pass

    with pytest.raises(ServerError, match="no database"):
        asyncio.run(main())
    for pid in map(
        int, (tmp_path / "pids").read_text().split() if (tmp_path / "pids").exists() else ()
    ):
        assert not _alive(pid)


def test_a_start_that_is_cancelled_leaves_neither_task_nor_process(tmp_path):
    pids = tmp_path / "pids"

    async def main():
        pool = ServerPool(directory=Path.cwd())
        shared = replace(bad("hang-at-start", pids, start_timeout=120.0), shared=True)
        starting = asyncio.ensure_future(pool.tools([shared]).__aenter__())
        while not pids.exists():
            await asyncio.sleep(0.01)
        starting.cancel()
        await asyncio.wait([starting])
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())
    assert not any(map(_alive, map(int, pids.read_text().split())))


def test_a_shared_server_that_never_starts_ends_the_run_and_does_not_hold_it_up():
    """The next trial in line has begun to start it when the first gives up."""
    server = replace(bad("die-at-start"), shared=True)
    model = Model(name="scripted", script=(Behaviour(answer="4"),))
    system = ModelSystem(name="agent", model=model, servers=("bad",))
    pairing = Pairing(system=system, task=Task(name="t", prompt="?"), runs=5, label="t")
    suite = Suite(name="s", pairings=(pairing,), servers={"bad": server})
    with pytest.raises(ServerNeverStarted, match="no database"):
        run_trials(suite, concurrency=5)


def test_a_shared_server_that_died_is_started_anew_for_the_next_trial():
    async def main():
        pool = ServerPool(directory=Path.cwd())
        server = bad("crash", shared=True)
        try:
            for _ in range(2):
                async with pool.tools([server]) as tools:
                    with pytest.raises(ServerError, match="code 11"):
                        await tools.call(ToolRequest(name="get"))
        finally:
            await pool.close()

    asyncio.run(main())


@pytest.mark.slow("cancels at twelve moments, a real server each time")
@pytest.mark.parametrize("mode", ["fine", "die-at-start", "hang-at-start", "hang"])
def test_a_trial_cancelled_at_any_moment_leaves_nobody_behind(mode, tmp_path):
    async def main():
        pool = ServerPool(directory=Path.cwd())

        async def trial(number):
            async with pool.tools([bad(mode, tmp_path / f"{number}", start_timeout=5.0)]) as tools:
                await tools.call(ToolRequest(name="get"))

        for number in range(12):
            task = asyncio.create_task(trial(number))
            await asyncio.sleep(0.03 * number)
            task.cancel()
            await asyncio.sleep(0.002 * number)
            task.cancel()  # the second one comes while things are being put away
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(main())
    gc.collect()  # what was not closed would warn, and warnings are errors
    for written in tmp_path.iterdir():
        for pid in map(int, written.read_text().split()):
            assert not _alive(pid)


def _alive(pid):
    """Whether a process runs; one that is dead and only waits to be reaped does not."""
    for _ in range(100):
        try:
            os.kill(pid, 0)
            state = Path(f"/proc/{pid}/stat")
            if state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z":
                return False
        except (ProcessLookupError, FileNotFoundError):
            return False
        time.sleep(0.02)
    return True
