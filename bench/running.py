"""Running trials: start-up; 200 tasks ten times with a durable log, beside peers; a storm."""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

TASKS, RUNS = 200, 10
SIZES = (1_000, 10_000, 100_000)
STORM = {"429": 0.20, "500": 0.03, "529": 0.02, "cut": 0.02}
STORM_CALLS = 10_000

MEASURE = """
import json, resource, sys, time
begun = time.process_time()
{setup}
ready, wall = time.process_time(), time.perf_counter()
{work}
print(json.dumps({{
    "start": ready,
    "cpu": time.process_time() - ready,
    "wall": time.perf_counter() - wall,
    "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    "trials": trials,
}}))
"""

SUITE = """
from pathlib import Path
from passhat.history import History, RunJournal
from passhat.records import *
from passhat.runner import run_trials
folder, tasks, runs = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
script = (Behaviour(answer="ok", weight=2), Behaviour(answer="wrong"))
system = {system}
expect = (Expectation(matcher="contains", value="ok"),)
suite = Suite(name="bench", directory=folder, pairings=tuple(
    Pairing(system=system, task=Task(name=f"t{{i}}", prompt=f"say ok {{i}}", expect=expect),
            runs=runs, label=f"t{{i}}")
    for i in range(tasks)))
history = History.open(folder / "history.db")
journal = RunJournal(history, history.start_run("bench"))
"""
WORK = "trials = len(run_trials(suite, journal=journal, concurrency=32).trials)"

SYSTEMS = {
    "passhat, scripted model": (
        'ModelSystem(name="agent", model=Model(name="scripted", script=script))'
    ),
    "passhat, Python function": (
        'PythonSystem(name="agent", function="bench_agent:run", search=folder)'
    ),
}
AGENT = "import random\n\ndef run(prompt):\n    return random.choice(['ok', 'ok', 'wrong'])\n"

INSPECT_SETUP = """
import random
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
folder, tasks, runs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
luck = random.Random(1)
def answers():
    while True:
        answer = ModelOutput.from_content("mockllm/model", luck.choice(["ok", "ok", "wrong"]))
        answer.usage = ModelUsage(input_tokens=4, output_tokens=3, total_tokens=7)
        yield answer
samples = [Sample(id=f"t{i}", input=f"say ok {i}", target="ok") for i in range(tasks)]
task = Task(dataset=samples, scorer=includes(), epochs=runs)
model = get_model("mockllm/model", custom_outputs=answers())
"""
INSPECT_WORK = """
logs = eval(task, model=model, log_dir=folder, display="none", max_connections=32)
if logs[0].status != "success":
    raise SystemExit(str(logs[0].error))
trials = tasks * runs
"""

PYTEST_SETUP = """
import os
from pathlib import Path
import pytest
folder, tasks, runs = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
(folder / "test_bench.py").write_text(
    "import random, pytest\\n"
    f"@pytest.mark.parametrize('task', range({tasks}))\\n"
    "def test_task(task):\\n    assert random.choice(['ok', 'ok', 'wrong']) == 'ok'\\n")
os.chdir(folder)
"""
PYTEST_WORK = """
import contextlib, io
with contextlib.redirect_stdout(io.StringIO()):
    pytest.main(["-q", "--count", str(runs), "--junitxml", "out.xml", "-p", "no:cacheprovider",
                 "--tb=no", "-c", "/dev/null", "--rootdir", str(folder)])
trials = (folder / "out.xml").read_text().count("<testcase")
"""

STORM_WORK = """
from passhat.testing import WireServer
from passhat.runner.models.exchange import Reply
answer = lambda asked: Reply(text="ok", usage=TokenUsage(tokens_in=3, tokens_out=2))
with WireServer(answer, troubles={storm!r}, keep=False) as server:
    model = Model(name="m", base_url=server.url, prices=Prices(input=1e6, output=1e6))
    from dataclasses import replace
    agent = ModelSystem(name="agent", model=model)
    suite = replace(suite, retries=50,
                    pairings=tuple(replace(p, system=agent) for p in suite.pairings))
    result = run_trials(suite, journal=journal, concurrency=16)
trials = len(result.trials)
sys.stderr.write(json.dumps({{"answered": server.answered, "troubled": server.troubled.total(),
                             "distinct": len({{(t.task, t.trial) for t in result.trials}}),
                             "passed": sum(t.outcome == 1 for t in result.trials),
                             "tokens": result.tokens}}))
"""

MARKED = """
import os, time
from pathlib import Path

def run(prompt):
    Path(os.environ["MARK"]).write_text(str(time.process_time()))
    return True
"""
SMALL = {
    "a Python function": 'systems: [{name: s, python: "marked:run"}]',
    "a command": (
        "systems: [{name: s, command: ['{python}', -S, -c, 'pass']}]\n"
        "defaults: {expect: [{python: 'marked:run'}]}"
    ),
    "a scripted model": (
        "systems: [{name: s, model: scripted, script: [{answer: hello}]}]\n"
        "defaults: {expect: [{python: 'marked:run'}]}"
    ),
}
TRIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one job took, in a process of its own; `start` is CPU before the first trial."""

    start: float
    cpu: float
    wall: float
    peak: float
    trials: int


def main() -> None:
    """Print the tables; every figure of a table is measured in this run."""
    start_up()
    beside_peers()
    flatness()
    sandboxed()
    storm()


def start_up() -> None:
    """The whole command on one task, once: CPU until the trial is under way, and in all."""
    print("## `passhat run` on one task, once\n")
    print("| system | CPU-s until the first trial | CPU-s in all |")
    print("|---|---|---|")
    for name, system in SMALL.items():
        costs = [_command(system) for _ in range(TRIES)]
        first, whole = (min(values) for values in zip(*costs, strict=True))
        print(f"| {name} | {first:.2f} | {whole:.2f} |")
    print()


def beside_peers() -> None:
    """The same trivial work, with each tool's own durable log."""
    print(f"## Running {TASKS} tasks {RUNS} times, trivial trials, durable log\n")
    print("| runner | trials per CPU-s | per s | peak MB | start-up CPU-s |")
    print("|---|---|---|---|---|")
    for name, system in SYSTEMS.items():
        _row(name, SUITE.format(system=system), WORK)
    for name, package, setup, work in (
        ("inspect_ai", "inspect_ai", INSPECT_SETUP, INSPECT_WORK),
        ("pytest-repeat with JUnit", "pytest_repeat", PYTEST_SETUP, PYTEST_WORK),
    ):
        if importlib.util.find_spec(package) is None:
            print(f"| {name} | not installed here | | | |")
        else:
            _row(name, setup, work)
    print()


def flatness() -> None:
    """What one trial costs as there are more of them."""
    print("## CPU per trial as the number of trials grows\n")
    print("| trials | CPU us per trial | peak MB |")
    print("|---|---|---|")
    setup = SUITE.format(system=SYSTEMS["passhat, scripted model"])
    for size in SIZES:
        cost = _measure(setup, WORK, size // 10, 10)
        print(f"| {size:,} | {cost.cpu / cost.trials * 1e6:.0f} | {cost.peak:.0f} |")
    print()


SANDBOXED_RUNS = 30
SMALL_FILES, LARGE_FILES, FILE_BYTES = 1, 4_000, 50_000
"""Files of a workspace: one, and 200 MB of them."""

HIDDEN_TEST = """
import os, unittest

class Hidden(unittest.TestCase):
    def test_it(self):
        self.assertTrue(os.path.exists("done"))
"""
RUN_HIDDEN = ["/usr/bin/python3", "-m", "unittest", "-v", "hidden_tests"]


def sandboxed() -> None:
    """What a trial costs in a workspace: its sandbox, its hidden tests, and beside them."""
    from passhat.errors import RunError
    from passhat.messages import plural
    from passhat.runner.sandbox import overlay_works, require_bubblewrap

    print("## A trial in a workspace, with a sandbox and hidden tests\n")
    try:
        require_bubblewrap()
    except RunError as error:
        print(f"Not measured: {error}\n")
        return
    print("| workspace | fresh copies by | CPU-s a trial | of them its agent and tests alone |")
    print("|---|---|---|---|")
    way = "overlay" if overlay_works(Path(tempfile.gettempdir())) else "copying"
    for files in (SMALL_FILES, LARGE_FILES):
        whole, alone = _workspace_trial(files)
        size = f"{files * FILE_BYTES / 1e6:g} MB in {plural(files, 'file')}"
        print(f"| {size} | {way} | {whole:.3f} | {alone:.3f} |")
    print()


def _workspace_trial(files: int) -> tuple[float, float]:
    """CPU-s of one trial more, children counted, and of its two commands without passhat."""
    from passhat.records import CommandSystem, Expectation, Pairing, Suite, Task, Workspace
    from passhat.runner import run_trials

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("work", "hidden"):
            (folder / part).mkdir()
        for number in range(files):
            (folder / "work" / f"{number}.bin").write_bytes(os.urandom(FILE_BYTES))
        (folder / "hidden" / "hidden_tests.py").write_text(HIDDEN_TEST)
        tests = Expectation(
            matcher="tests", value=" ".join(RUN_HIDDEN), options={"files": ["hidden/"]}
        )
        task = Task(
            name="t", prompt="?", workspace=Workspace(source=folder / "work"), expect=(tests,)
        )
        agent = ("sh", "-c", "echo x > done")
        system = CommandSystem(name="agent", argv=agent)

        def took(runs: int) -> float:
            pairing = Pairing(system=system, task=task, runs=runs, label="t")
            before = _cpu()
            trials = run_trials(Suite(name="bench", directory=folder, pairings=(pairing,))).trials
            assert all(trial.outcome == 1 for trial in trials), trials[0].error
            return _cpu() - before

        took(2)
        whole = (took(SANDBOXED_RUNS + 2) - took(2)) / SANDBOXED_RUNS
        before = _cpu()
        for _ in range(10):
            subprocess.run(agent, cwd=folder / "hidden", check=True)
            subprocess.run(RUN_HIDDEN, cwd=folder / "hidden", check=True, capture_output=True)
        return whole, (_cpu() - before) / 10


def _cpu() -> float:
    """CPU-s of this process and of the children that it has waited for."""
    whole = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in whole)


def storm() -> None:
    """Calls to a server that refuses, fails and hangs up, through the whole runner."""
    setup = SUITE.format(system=SYSTEMS["passhat, scripted model"])
    program = MEASURE.format(setup=setup, work=STORM_WORK.format(storm=STORM))
    done = _run(program, STORM_CALLS // 100, 100)
    cost, told = Cost(**json.loads(done.stdout)), json.loads(done.stderr.splitlines()[-1])
    print(f"## {STORM_CALLS:,} model calls in a storm (20% 429, 5% 5xx, 2% cut connections)\n")
    print(f"- troubled calls: {told['troubled']:,}; all asked again")
    print(f"- lost: {STORM_CALLS - told['passed']}; counted twice: "
          f"{told['answered'] - told['distinct']}")  # fmt: skip
    print(f"- tokens: {told['tokens']:,} of {5 * STORM_CALLS:,}")
    print(f"- {cost.cpu / STORM_CALLS * 1e3:.1f} ms CPU per answered call, server included\n")


def _command(system: str) -> tuple[float, float]:
    """CPU of `passhat run` until the agent (or what grades it) is called, and to the end."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "marked.py").write_text(MARKED)
        Path(folder, "suite.yml").write_text(f"{system}\ntasks: [{{name: t, prompt: hello}}]\n")
        mark = Path(folder, "mark")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-m", "passhat", "run", "-q"],
            cwd=folder,
            env={**os.environ, "MARK": str(mark)},
            stdout=subprocess.DEVNULL,
            check=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        whole = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return float(mark.read_text()), whole


def _row(name: str, setup: str, work: str) -> None:
    cost = _measure(setup, work, TASKS, RUNS)
    speed, pace = cost.trials / cost.cpu, cost.trials / cost.wall
    print(f"| {name} | {speed:,.0f} | {pace:,.0f} | {cost.peak:.0f} | {cost.start:.2f} |")


def _measure(setup: str, work: str, tasks: int, runs: int) -> Cost:
    return Cost(**json.loads(_run(MEASURE.format(setup=setup, work=work), tasks, runs).stdout))


def _run(program: str, tasks: int, runs: int) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "bench_agent.py").write_text(AGENT)
        command = [sys.executable, "-c", program, folder, str(tasks), str(runs)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    done.stdout = done.stdout.strip().splitlines()[-1]
    return done


if __name__ == "__main__":
    main()
