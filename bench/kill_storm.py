"""Killing runs with SIGKILL: what is lost, and which calls are paid a second time."""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from passhat.history import History, RunJournal
from passhat.records import TokenUsage, UnansweredCalls
from passhat.runner.models.exchange import Reply
from passhat.testing import ReceivedRequest, WireServer

TOKENS = TokenUsage(tokens_in=20, tokens_out=10)
SUITE = """
name: storm
systems:
  - name: agent
    model: m
    base_url: "{url}"
    prices: {{input: 1, output: 1}}
    max_tokens: 64
    wire: {wire}
    extra: {extra}
defaults: {{expect: [{{contains: done}}]}}
tasks:
{tasks}
"""

KEPT = {
    "": ("openai-chat", "{}"),
    "store": ("openai-chat", "{store: true}"),
    "background": ("openai-responses", "{background: true}"),
}
"""How a model can keep its answers: the wire format, and what asks for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Storm:
    """What came of a run that was killed again and again.

    `billed` counts calls that the model was asked, `needed` the different ones among them;
    `reported` is what the last start says was perhaps paid twice, `unsure` how many of those it
    says were perhaps never sent, and `found` those whose answers the model still had.
    """

    kills: int
    trials: int
    kept: int
    lost: int
    billed: int
    needed: int
    reported: int
    unsure: int
    found: int
    most_at_once: int

    @property
    def paid_twice(self) -> int:
        """Calls that were asked again."""
        return self.billed - self.needed


def storm(
    *,
    kills: int,
    tasks: int,
    runs: int,
    concurrency: int = 10,
    latency: float = 0.05,
    seed: int = 1,
    keep: str = "",
) -> Storm:
    """Start a run, kill it after a moment, resume it and kill it again; then let it finish.

    With `keep`, one of `KEPT`, the model keeps its answers, and a resumed run finds lost ones.
    """
    rng = random.Random(seed)
    with (
        tempfile.TemporaryDirectory() as folder,
        WireServer(answer_done, latency=latency) as server,
    ):
        home = Path(folder)
        home.joinpath("suite.yml").write_text(suite_text(server.url, tasks, keep=keep))
        done = lost = made = most = 0
        seen: set[tuple[str, int]] = set()
        first = ["run", "suite.yml", "--runs", str(runs), "-q"]
        while made < kills and (made == 0 or len(seen) < tasks * runs):
            command = first if made == 0 else ["resume", "-q"]
            before = len(server.asked)
            _start_and_kill([*command, "--concurrency", str(concurrency)], home, rng, server)
            most = max(most, len(server.asked) - before)
            made += 1
            if (home / ".passhat/history.db").exists() and len(server.asked):
                kept = _finished(home)
                lost += len(seen - kept)
                seen = kept
            if made == 1 and not seen and not len(server.asked):
                made = 0  # it was killed before it had begun
        _passhat(["resume", "-q"] if made else first, home)
        done = len(_finished(home))
        calls = Counter(call_identity(asked) for asked in server.asked)
        said, found = _reported(home)
        return Storm(
            kills=made,
            trials=tasks * runs,
            kept=done,
            lost=lost,
            billed=calls.total(),
            needed=len(calls),
            reported=said.calls,
            unsure=said.unsure,
            found=found,
            most_at_once=most,
        )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--tasks", type=int, default=20)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--keep", choices=[*KEPT], default="", help="how the model keeps answers")
    chosen = parser.parse_args([] if __name__ != "__main__" else None)
    result = storm(kills=chosen.kills, tasks=chosen.tasks, runs=chosen.runs, keep=chosen.keep)
    print(f"## {result.kills} kills of a run at concurrency 10\n")
    print(
        "| tool | kills | trials kept | finished trials lost | calls | paid twice | it says | "
        "perhaps never sent | found at the provider |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    print(
        f"| passhat | {result.kills} | {result.kept} of {result.trials} | {result.lost} | "
        f"{result.billed} | {result.paid_twice} | {result.reported} | {result.unsure} | "
        f"{result.found} |"
    )


def suite_text(url: str, tasks: int, *, keep: str = "") -> str:
    lines = "\n".join(f"  - {{name: t{i}, prompt: 'question {i}'}}" for i in range(tasks))
    wire, extra = KEPT[keep]
    return SUITE.format(url=url, tasks=lines, wire=wire, extra=extra)


def answer_done(asked: ReceivedRequest) -> Reply:
    return Reply(text="done", usage=TOKENS)


def call_identity(asked: ReceivedRequest) -> tuple[str, object]:
    """Which call it is: the conversation so far, and what every trial has of its own.

    That is the seed, or the name under which the answer is kept: Responses take no seed.
    """
    said = asked.body.get("messages") or asked.body.get("input")
    return str(said), asked.body.get("seed") or str(asked.body.get("metadata"))


def _start_and_kill(command: list[str], home: Path, rng: random.Random, server: WireServer) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "passhat", *command],
        cwd=home,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    begun = len(server.asked)
    # The clock starts with the first call: before it there is nothing to lose.
    while len(server.asked) == begun and process.poll() is None:
        time.sleep(0.005)
    time.sleep(rng.uniform(0, 0.4))
    process.kill()
    process.wait()


def _passhat(command: list[str], home: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "passhat", *command],
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
    )
    over = "every run is finished" in done.stderr  # the last kill came after the end
    if not over and done.returncode not in (0, 1):
        raise SystemExit(done.stderr)
    return done.stdout


def _finished(home: Path) -> set[tuple[str, int]]:
    with History.open(home / ".passhat/history.db", read_only=True) as history:
        runs = history.runs(limit=1)
        if not runs:
            return set()
        return {(trial.task, trial.trial) for trial in history.trials(runs[0])}


def _reported(home: Path) -> tuple[UnansweredCalls, int]:
    """The numbers in the sentence of the report: perhaps paid twice, and found."""
    with History.open(home / ".passhat/history.db") as history:
        journal = RunJournal(history, history.find_run("latest"))
        return journal.asked_again(), journal.recovered()


if __name__ == "__main__":
    main()
