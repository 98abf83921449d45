"""Processes that try to outlive their trial: daemons, those that hide, those that multiply."""

import asyncio
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

from passhat.records import CommandSystem, Expectation, Outcome, Task
from passhat.runner import processes, run_trials
from passhat.runner.processes import end_group, kill_groups, start_group

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/environ").exists(),
    reason="those that leave their group are found by /proc, which is not here",
)

DAEMON = """
import os, sys, time
def daemon(clean):
    if os.fork():
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)
    argv = [sys.executable, "-c", "import os, sys, time\\n"
            "open(sys.argv[1], 'a').write(f'{os.getpid()}\\\\n')\\ntime.sleep(60)", sys.argv[1]]
    os.execve(sys.executable, argv, {} if clean else os.environ)
"""
WAIT = """
def until_it_lives():
    while not os.path.exists(sys.argv[1]) or not open(sys.argv[1]).read().endswith("\\n"):
        time.sleep(0.01)
"""

# Trials that are to run out of time get more of it, if on a busy machine their child never began.
MORE_TIME = (2.0, 8.0, 32.0)


def command(code, *arguments, **options):
    return CommandSystem(name="agent", argv=(sys.executable, "-c", code, *arguments), **options)


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def pids(path: Path) -> list[int]:
    return [int(line) for line in path.read_text().split()]


@pytest.mark.parametrize("ending", ["", "time.sleep(60)", "os.kill(os.getpid(), 9)"])
def test_a_daemon_that_left_its_session_ends_with_its_trial(suite_of, tmp_path, ending):
    code = f"{DAEMON}{WAIT}daemon(clean=False)\nuntil_it_lives()\n{ending}"
    for seconds in MORE_TIME if "sleep" in ending else (60.0,):
        system = command(code, str(tmp_path / "pids"), timeout=seconds)
        assert len(run_trials(suite_of(system, runs=3)).trials) == 3
        if (tmp_path / "pids").exists():
            break
    assert not any(map(is_alive, pids(tmp_path / "pids")))


def test_one_that_cleans_its_environment_ends_with_its_parent(suite_of, tmp_path):
    code = """
import os, subprocess, sys, time
hidden = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(60)"
subprocess.Popen([sys.executable, "-c", hidden, sys.argv[1]], env={}, start_new_session=True)
time.sleep(60)
"""
    for seconds in MORE_TIME:
        run_trials(suite_of(command(code, str(tmp_path / "pids"), timeout=seconds)))
        if (tmp_path / "pids").exists():
            break
    (hidden,) = pids(tmp_path / "pids")
    assert not is_alive(hidden)


def test_one_that_forks_itself_anew_all_the_time_is_caught(suite_of, tmp_path):
    code = """
import os, sys, time
if os.fork():
    while not os.path.exists(sys.argv[1]):
        time.sleep(0.01)
    os._exit(0)
for stream in range(3):
    os.close(stream)
until = time.monotonic() + 20
while time.monotonic() < until:
    os.setsid() if os.getsid(0) != os.getpid() else None
    open(sys.argv[1], "w").write(str(os.getpid()))
    time.sleep(0.02)
    if os.fork():
        os._exit(0)
"""
    path = tmp_path / "last"
    run_trials(suite_of(command(code, str(path))))
    before = path.read_text()
    time.sleep(0.2)
    assert path.read_text() == before


def test_a_daemon_with_an_empty_environment_ends_with_its_trial(suite_of, tmp_path):
    """Nothing of its parents is left by then: it is known by its limits alone."""
    code = f"{DAEMON}{WAIT}daemon(clean=True)\nuntil_it_lives()"
    run_trials(suite_of(command(code, str(tmp_path / "pids"), timeout=20.0), runs=3), concurrency=3)
    assert not any(map(is_alive, pids(tmp_path / "pids")))


def test_a_shell_that_clears_the_environment_at_once_leaves_nobody(suite_of, tmp_path):
    """It forks before we hear that it was started."""
    daemon = '(setsid env -i sh -c \'echo $$ >> "$0"; sleep 60\' "$0" >/dev/null 2>&1 &)'
    code = f'env -i sh -c {shlex.quote(daemon)} "$0"; while ! [ -s "$0" ]; do sleep 0.01; done'
    system = CommandSystem(name="agent", argv=("sh", "-c", code, str(tmp_path / "pids")))
    run_trials(suite_of(system))
    (hidden,) = pids(tmp_path / "pids")
    assert not is_alive(hidden)


@pytest.mark.slow("starts the command")
def test_a_daemon_that_came_to_the_command_cannot_act_on_the_end_of_its_child(tmp_path):
    """The orphan is our child by then; ended after its own child, it would go on in between."""
    daemon = "(setsid env -i sh -c 'echo $$ > began; sleep 60; echo acted > acted' &)"
    (tmp_path / "agent.sh").write_text(
        f"cd {shlex.quote(str(tmp_path))}\nenv -i sh -c {shlex.quote(daemon)} >/dev/null 2>&1\n"
        "while ! [ -s began ]; do sleep 0.01; done\necho done\n"
    )
    (tmp_path / "passhat.yml").write_text(
        "name: s\nsystems: [{name: a, command: [sh, agent.sh]}]\n"
        "tasks: [{name: t, prompt: x, expect: [{contains: done}]}]\n"
    )
    subprocess.run(
        [sys.executable, "-m", "passhat", "run", "--no-store"],
        cwd=tmp_path, capture_output=True, check=True,
    )  # fmt: skip
    assert not is_alive(*pids(tmp_path / "began"))
    assert not (tmp_path / "acted").exists()


HIDING = """
import os, resource, sys, time
if sys.argv[1] == "daemon":
    if os.fork() == 0:
        os.setsid()
    open(sys.argv[2], "a").write(f"{os.getpid()}\\n")
    time.sleep(300)
resource.setrlimit(10, (resource.RLIM_INFINITY,) * 2)
path = f"{sys.argv[1]}.{os.environ['PASSHAT_TRIAL']}"
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)
    os.execve(sys.executable, [sys.executable, __file__, "daemon", path], {})
while not os.path.exists(path) or open(path).read().count("\\n") < 2:
    time.sleep(0.01)
"""


@pytest.mark.slow("hunts processes that hide")
@pytest.mark.parametrize("concurrency", [1, 3])
def test_what_hides_on_purpose_from_the_command_ends_with_its_trials(tmp_path, concurrency):
    """It clears its environment and resets its limits; what is left is that it is our orphan."""
    (tmp_path / "hiding.py").write_text(HIDING)
    (tmp_path / "passhat.yml").write_text(
        "name: s\nsystems: [{name: a, command: ['{python}', hiding.py, PIDS]}]\n"
        "tasks: [{name: t, prompt: x, runs: 3}]\n".replace("PIDS", str(tmp_path / "pids"))
    )
    words = ["run", "--no-store", "--concurrency", str(concurrency)]
    done = subprocess.run(
        [sys.executable, "-m", "passhat", *words],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    found = [pid for path in tmp_path.glob("pids.*") for pid in pids(path)]
    assert len(found) == 6
    assert not any(map(is_alive, found))


FORKING = """
import os, resource, sys, time
if sys.argv[1] == "chain":
    for generation in range(10**9):
        if os.fork():
            os._exit(0)
        if generation % 50 == 0:
            open("last", "a").write(f"{os.getpid()}\\n")
if sys.argv[1] == "pair":
    while True:
        open("last", "a").write(f"{os.getpid()}\\n")
        parent = os.getpid()
        if os.fork():
            time.sleep(300)
        while os.getppid() == parent:
            time.sleep(0.0002)
resource.setrlimit(10, (resource.RLIM_INFINITY,) * 2)
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    os.chdir(os.path.dirname(__file__))
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)
    os.execve(sys.executable, [sys.executable, __file__, sys.argv[2]], {})
while not os.path.exists(os.path.join(os.path.dirname(__file__), "last")):
    time.sleep(0.01)
"""


@pytest.mark.slow("hunts processes that hide")
@pytest.mark.parametrize("way", ["chain", "pair"])
def test_what_hides_and_forks_anew_all_the_time_does_not_outrun_its_end(tmp_path, way):
    """Each of a chain lives for a moment; of a pair the child follows its parent's death."""
    (tmp_path / "forking.py").write_text(FORKING)
    (tmp_path / "passhat.yml").write_text(
        f"name: s\nsystems: [{{name: a, command: ['{{python}}', forking.py, hide, {way}]}}]\n"
        "tasks: [{name: t, prompt: x, runs: 1}]\n"
    )
    subprocess.run(
        [sys.executable, "-m", "passhat", "run", "--no-store"],
        cwd=tmp_path, capture_output=True, check=True,
    )  # fmt: skip
    before = pids(tmp_path / "last")
    time.sleep(0.3)
    assert pids(tmp_path / "last") == before
    assert way == "chain" or len(before) == 1, "none could act on the end of another"
    assert not is_alive(before[-1])


def test_what_the_host_program_starts_meanwhile_is_not_taken_for_an_agents(monkeypatch):
    """Its children may get the tag of a group, if another thread forks at the same moment."""
    mark = "0123456789abcdef"
    code = [sys.executable, "-c", "import time; time.sleep(60)"]
    with processes._tagged(mark):
        strangers = [subprocess.Popen(code, start_new_session=new) for new in (True, False)]
    try:
        assert processes.descendants(0, mark, leads=False) == []
        monkeypatch.setattr(os, "getpid", lambda: 1)  # as if they were somebody else's
        found = [process.pid for process in processes.descendants(0, mark, leads=False)]
        assert found == [strangers[0].pid]
    finally:
        for stranger in strangers:
            stranger.kill()
            stranger.wait()


def test_trials_side_by_side_leave_each_others_daemons_alone(suite_of, tmp_path):
    # The long trial looks after its daemon when all the short ones have ended.
    long = f"""{DAEMON}{WAIT}
daemon(clean=False)
until_it_lives()
while len(os.listdir(sys.argv[2])) < 5:
    time.sleep(0.02)
time.sleep(0.3)
os.kill(int(open(sys.argv[1]).read()), 0)
print("it lives")
"""
    short = "import os, sys; open(os.path.join(sys.argv[2], os.environ['PASSHAT_TRIAL']), 'w')"
    code = f"import os\nif os.environ['PASSHAT_TRIAL'] == '0':\n  exec({long!r})\nelse:\n  {short}"
    (tmp_path / "ended").mkdir()
    system = command(code, str(tmp_path / "pids"), str(tmp_path / "ended"), timeout=20.0)
    result = run_trials(suite_of(system, runs=6), concurrency=3)
    assert [trial.outcome for trial in result.trials] == [Outcome.PASSED] * 6
    assert not any(map(is_alive, pids(tmp_path / "pids")))


def test_nobody_else_is_touched_and_no_zombie_is_left(suite_of, tmp_path):
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        code = f"{DAEMON}{WAIT}daemon(clean=False)\nuntil_it_lives()"
        run_trials(suite_of(command(code, str(tmp_path / "pids")), runs=4))
        assert is_alive(stranger.pid)
        children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
        states = [
            Path(f"/proc/{c}/stat").read_text().rpartition(")")[2].split()[0] for c in children
        ]
        assert "Z" not in states
    finally:
        stranger.kill()
        stranger.wait()


def test_ending_a_group_twice_touches_nobody():
    async def main():
        process = await start_group([sys.executable, "-c", ""], env=os.environ, cwd=None)
        await end_group(process, grace=0.0)
        stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        try:
            await end_group(process, grace=0.0)
            assert is_alive(stranger.pid)
        finally:
            stranger.kill()
            stranger.wait()

    asyncio.run(main())


def test_a_killed_process_is_seen_gone_however_long_that_takes(monkeypatch):
    # As on a busy machine: with its memory to give back, it is not gone at once.
    monkeypatch.setattr(processes, "TERM_GRACE", 0.0)
    code = "held = b'.' * 2**27; print(flush=True); input()"

    async def end():
        process = await start_group([sys.executable, "-c", code], env={}, cwd=None)
        await process.stdout.readline()
        await end_group(process, grace=0.0)
        return process.returncode

    assert asyncio.run(end()) < 0


def test_a_run_within_a_run_keeps_both_marks(suite_of, monkeypatch):
    monkeypatch.setenv("PASSHAT_GROUPS", "outer")
    task = Task(name="t", expect=(Expectation(matcher="regex", value=r"^outer:\w{16}$"),))
    code = "import os; print(os.environ['PASSHAT_GROUPS'])"
    (trial,) = run_trials(suite_of(command(code), task=task)).trials
    assert trial.outcome is Outcome.PASSED


def test_groups_that_are_just_being_started_are_killed_with_the_others(monkeypatch):
    """Between the fork and our hearing of it, a second Ctrl-C would leave the children behind.

    On a busy machine one look at all processes takes longer than we wait for them to end.
    """
    monkeypatch.setattr(processes, "TERM_GRACE", 0.0)

    async def caught_in_the_act():
        argv = [sys.executable, "-c", "import time; time.sleep(300)"]
        starts = [asyncio.ensure_future(start_group(argv, env={}, cwd=None)) for _ in range(3)]
        newborn = []
        while len(newborn) < 3:
            await asyncio.sleep(0)
            assert not any(start.done() for start in starts), "one was started before we looked"
            newborn = [
                child
                for mark in processes._starting
                for child in processes.descendants(0, mark, leads=False)
            ]
        kill_groups()
        until = time.monotonic() + 60
        while any(map(processes.is_alive, newborn)):  # SIGKILL takes a moment
            assert time.monotonic() < until
            await asyncio.sleep(0.01)
        for start in starts:
            await end_group(await start)

    asyncio.run(caught_in_the_act())
    assert not processes._starting
