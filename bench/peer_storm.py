"""Killing passhat, Inspect and promptfoo with SIGKILL: which calls does each of them pay twice?

Every trial is one call with a question of its own, so that a question which the model gets again is
a call paid again. Each tool is resumed with its own command. Inspect and promptfoo live in
environments of their own:

    python -m bench.peer_storm --inspect PATH/bin/inspect --promptfoo PATH/.bin/promptfoo
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.kill_storm import TOKENS, suite_text
from passhat.history import History
from passhat.runner.models.exchange import Reply
from passhat.testing import ReceivedRequest, WireServer

CONCURRENCY = 10
LATENCY = (0.1, 0.5)
"""Seconds that a call takes, drawn evenly: answers come one by one, as those of real models do."""

LONGEST_LIFE = 2.0
"""Seconds after the first call of a start at which it is killed at the latest."""

SETTLED = 0.1
"""Seconds after which an answer counts as received; a later one was still being read."""

LONGEST_START = 180.0

INSPECT_TASK = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import includes
from inspect_ai.solver import generate


@task
def storm():
    samples = [Sample(input=f"question {{i}}", target="done") for i in range({trials})]
    return Task(dataset=samples, solver=generate(), scorer=includes())
"""

Commands = list[list[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """How a tool is set up, started and resumed, and how many trials it has in the end.

    Of the commands that start or resume, the last makes the calls and is the one that is killed.
    """

    name: str
    set_up: Callable[[Path, str, int], None]
    start: Callable[[Path], Commands]
    resume: Callable[[Path], Commands]
    kept: Callable[[Path], int]
    variables: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerStorm:
    """What came of a tool that was killed again and again.

    `again_unanswered` counts calls that were on the wire when the tool died and that it made
    again; `again_answered` those that it made again although it had got their answer.
    """

    tool: str
    kills: int
    trials: int
    kept: int
    calls: int
    again_unanswered: int
    again_answered: int


class Till:
    """A model that remembers which questions it has answered, and counts those it gets again.

    What was sent to a process within `SETTLED` seconds of its death, or after it, reached nobody.
    """

    def __init__(self) -> None:
        self.asked: set[str] = set()
        self.answered: dict[str, float] = {}
        self.calls = self.again_unanswered = self.again_answered = 0

    def __call__(self, asked: ReceivedRequest) -> Reply:
        question = str(asked.body["messages"][-1]["content"])
        self.answered.setdefault(question, time.monotonic())
        return Reply(text="done", usage=TOKENS)

    def forget_unheard(self, death: float) -> None:
        """Take back the answers that a process which died then cannot have received."""
        self.answered = {q: when for q, when in self.answered.items() if when < death - SETTLED}

    def note(self, asked: ReceivedRequest) -> None:
        """Take one request when it comes in."""
        question = str(asked.body["messages"][-1]["content"])
        self.calls += 1
        if question in self.answered:
            self.again_answered += 1
        elif question in self.asked:
            self.again_unanswered += 1
        self.asked.add(question)


class Counting(WireServer):
    """A wire server that shows each request to the till before it answers."""

    def __init__(self, till: Till) -> None:
        super().__init__(till, keep=False)
        self._till = till
        self._delays = random.Random(2)

    async def _respond(self, *given: Any) -> bool:
        await asyncio.sleep(self._delays.uniform(*LATENCY))
        return await super()._respond(*given)

    def _note(self, *given: Any) -> ReceivedRequest:
        asked = super()._note(*given)
        self._till.note(asked)
        return asked


def peer_storm(tool: Tool, *, kills: int, trials: int, seed: int = 1) -> PeerStorm:
    """Start a tool, kill it shortly after its first call, resume it; at the end let it finish."""
    rng, till = random.Random(seed), Till()
    with tempfile.TemporaryDirectory() as folder, Counting(till) as server:
        home = Path(folder)
        tool.set_up(home, server.url, trials)
        variables = {
            **os.environ,
            "OPENAI_API_KEY": "not-a-key",
            "OPENAI_BASE_URL": server.url,
            "HOME": str(home),
            **{name: value.format(home=home) for name, value in tool.variables.items()},
        }
        made = 0
        while made < kills and len(till.answered) < trials:
            commands = tool.resume(home) if till.calls else tool.start(home)
            made += _start_and_kill(commands, home, variables, rng, till)
            print(f"{tool.name}: kill {made}, {till.calls} calls", file=sys.stderr)
        for command in tool.resume(home):
            _finish(command, home, variables)
        return PeerStorm(
            tool=tool.name,
            kills=made,
            trials=trials,
            kept=tool.kept(home),
            calls=till.calls,
            again_unanswered=till.again_unanswered,
            again_answered=till.again_answered,
        )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--trials", type=int, default=1200)
    parser.add_argument("--inspect", type=Path)
    parser.add_argument("--promptfoo", type=Path)
    parser.add_argument("--no-passhat", action="store_true")
    chosen = parser.parse_args()
    tools = [] if chosen.no_passhat else [passhat()]
    tools += [inspect(chosen.inspect.absolute())] if chosen.inspect else []
    tools += [promptfoo(chosen.promptfoo.absolute())] if chosen.promptfoo else []
    print("| tool | kills | trials in the end | calls | again: on the wire | again: answered |")
    print("|---|---|---|---|---|---|")
    for tool in tools:
        came = peer_storm(tool, kills=chosen.kills, trials=chosen.trials)
        print(
            f"| {came.tool} | {came.kills} | {came.kept} of {came.trials} | {came.calls} | "
            f"{came.again_unanswered} | {came.again_answered} |",
            flush=True,
        )


def passhat() -> Tool:
    """passhat, resumed with `passhat resume`."""

    def set_up(home: Path, url: str, trials: int) -> None:
        (home / "suite.yml").write_text(suite_text(url, trials))

    def kept(home: Path) -> int:
        with History.open(home / ".passhat/history.db", read_only=True) as history:
            return len(list(history.trials(history.find_run("latest"))))

    command, limit = [sys.executable, "-m", "passhat"], ["--concurrency", str(CONCURRENCY), "-q"]
    return Tool(
        name="passhat",
        set_up=set_up,
        start=lambda home: [[*command, "run", "suite.yml", "--runs", "1", *limit]],
        resume=lambda home: [[*command, "resume", *limit]],
        kept=kept,
    )


def inspect(program: Path) -> Tool:
    """Inspect, resumed with `inspect log recover` and `inspect eval-retry`."""

    def set_up(home: Path, url: str, trials: int) -> None:
        (home / "storm.py").write_text(INSPECT_TASK.format(trials=trials))

    def newest(home: Path) -> str:
        return str(max((home / "logs").glob("*.eval"), key=lambda log: log.stat().st_mtime))

    def resume(home: Path) -> Commands:
        log = newest(home)
        recover = [str(program), "log", "recover", log, "--overwrite", "--display", "none"]
        return [recover, [str(program), "eval-retry", log, *common]]

    def kept(home: Path) -> int:
        count = "from inspect_ai.log import read_eval_log as r; import sys; "
        count += "print(len(r(sys.argv[1]).samples or []))"
        python = str(program.parent / "python")
        done = subprocess.run([python, "-c", count, newest(home)], capture_output=True, check=True)
        return int(done.stdout)

    common = ["--max-connections", str(CONCURRENCY), "--max-samples", str(CONCURRENCY)]
    common += ["--display", "none", "--log-dir", "logs"]
    first = [str(program), "eval", "storm.py", "--model", "openai/gpt-4o-mini", *common]
    return Tool(name="Inspect", set_up=set_up, start=lambda home: [first], resume=resume, kept=kept)


def promptfoo(program: Path) -> Tool:
    """promptfoo, resumed with `promptfoo eval --resume`; its cache is on, as it is by default."""

    def set_up(home: Path, url: str, trials: int) -> None:
        tests = "".join(f"  - vars: {{q: 'question {i}'}}\n" for i in range(trials))
        provider = f"{{id: 'openai:chat:gpt-4o-mini', config: {{apiBaseUrl: '{url}'}}}}"
        check = "defaultTest: {assert: [{type: contains, value: done}]}"
        text = f"prompts: ['{{{{q}}}}']\nproviders: [{provider}]\n{check}\ntests:\n{tests}"
        (home / "promptfooconfig.yaml").write_text(text)

    def kept(home: Path) -> int:
        with sqlite3.connect(home / ".promptfoo/promptfoo.db") as store:
            newest = "SELECT id FROM evals ORDER BY created_at DESC LIMIT 1"
            query = f"SELECT COUNT(DISTINCT test_idx) FROM eval_results WHERE eval_id = ({newest})"
            (count,) = store.execute(query).fetchone()
        store.close()
        return int(count)

    common = ["-j", str(CONCURRENCY), "--no-table", "--no-progress-bar", "--no-share"]
    return Tool(
        name="promptfoo",
        set_up=set_up,
        start=lambda home: [[str(program), "eval", *common]],
        resume=lambda home: [[str(program), "eval", "--resume", *common]],
        kept=kept,
        variables={
            "PROMPTFOO_CONFIG_DIR": "{home}/.promptfoo",
            "PROMPTFOO_DISABLE_TELEMETRY": "1",
            "PROMPTFOO_DISABLE_UPDATE": "1",
        },
    )


def _start_and_kill(
    commands: Commands, home: Path, variables: dict[str, str], rng: random.Random, till: Till
) -> int:
    """Kill the last command after its first call; 1, or 0 where it ended without making one."""
    for command in commands[:-1]:
        _finish(command, home, variables)
    begun = till.calls
    process = subprocess.Popen(
        commands[-1],
        cwd=home,
        env=variables,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    until = time.monotonic() + LONGEST_START
    while till.calls == begun and process.poll() is None and time.monotonic() < until:
        time.sleep(0.005)
    if till.calls == begun:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise SystemExit(f"{commands[-1]} made no call")
    time.sleep(rng.uniform(0, LONGEST_LIFE))
    death = time.monotonic()
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    time.sleep(LATENCY[1] + SETTLED)  # until the server has answered everything
    till.forget_unheard(death)
    return 1


def _finish(command: list[str], home: Path, variables: dict[str, str]) -> None:
    subprocess.run(command, cwd=home, env=variables, capture_output=True, check=False)


if __name__ == "__main__":
    main()
