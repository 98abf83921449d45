"""Breaks cassettes and what agents print: `make mutations` breaks twenty thousand of each.

A cassette that accidents damaged gives the same trials as before, or is refused in a sentence. Of
one that a person changed, sums included, and of what an agent prints, only our own errors come.
"""

import json
import random
import sys
import tempfile
import time
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

from passhat.errors import PasshatError
from passhat.records import (
    Behaviour,
    CassetteSettings,
    CommandSystem,
    Expectation,
    Model,
    ModelSystem,
    Pairing,
    ScriptedCall,
    Suite,
    Task,
)
from passhat.runner import run_trials
from passhat.runner.agents.command import CommandAgent
from passhat.runner.cassettes import encode_lines, open_cassettes

FILES = 20_000
LONGEST = 5.0
MOST_CHARACTERS = 4000

ODD_VALUES = (
    *(None, True, 0, -1, 1.5, 1e308, 2**64 - 1, "", "x", "a\0b", "7" * 5000, "../../x"),
    *([], {}, [1], {"a": 1}, [[1], [2]], [{"role": 3}], {"kind": "end"}),
)
ODD_BYTES = (
    *(b"", b"\0", b"\xff", b"\xed\xa0\x80", b'"', b"{", b"}", b"\n", b",", b"1" * 400, b"NaN"),
    *(b"[" * 5000, b'{"a":' * 3000, b'"sum":', b"\r\n", b"null", b"{}", b"[]"),
)


def small_suite(directory):
    """Two trials with a tool call each, which is refused, and an answer."""
    call = ScriptedCall(tool="look", arguments={"at": "the sky"})
    script = (Behaviour(calls=(call,), answer="blue"), Behaviour(answer="grey", weight=1.0))
    system = ModelSystem(name="agent", model=Model(name="scripted", script=script))
    task = Task(name="sky", prompt="?", expect=(Expectation(matcher="contains", value="blue"),))
    pairing = Pairing(system=system, task=task, runs=3, label="sky")
    return Suite(
        name="suite", pairings=(pairing,), directory=directory,
        cassette=CassetteSettings(directory=Path("cassettes")),
    )  # fmt: skip


def trials_of(suite, mode="replay"):
    with open_cassettes(suite, mode, environment={}) as cassettes:
        result = run_trials(suite, cassettes=cassettes, environment={}, handle_signals=False)
    return [replace(trial, started=None) for trial in result.trials]


def damaged(data, rng):
    """Bytes as a disk, a merge or an editor might leave them."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(data) + 1)
        match rng.randrange(6):
            case 0:
                del data[at:]
            case 1:
                del data[at : at + rng.choice((1, 20, 400))]
            case 2:
                data[at : at + rng.choice((0, 1, 20))] = rng.choice(ODD_BYTES)
            case 3 if data:
                data[at % len(data)] ^= 1 << rng.randrange(8)
            case 4:
                data[at:at] = data[at : at + 200]
            case 5:
                lines = bytes(data).split(b"\n")
                rng.shuffle(lines)
                data = bytearray(b"\n".join(lines))
    return bytes(data)


def changed(data, rng):
    """The lines of a cassette with odd values in them, and sums that fit."""
    lines = [json.loads(line) for line in data.splitlines()][:-1]
    for line in lines:
        del line["sum"]
    for _ in range(rng.choice((1, 1, 3))):
        spot = line = rng.choice(lines)
        while True:
            keys = list(spot) if isinstance(spot, dict) else range(len(spot))
            key = rng.choice(list(keys))
            inner = spot[key]
            if isinstance(inner, dict | list) and inner and rng.random() < 0.7:
                spot = inner
                continue
            break
        if isinstance(spot, dict) and len(spot) > 1 and rng.random() < 0.3:
            del spot[key]
        elif isinstance(spot, dict) and rng.random() < 0.1:
            spot["odd"] = deepcopy(rng.choice(ODD_VALUES))
        else:
            spot[key] = deepcopy(rng.choice(ODD_VALUES))
    return b"".join(encode_lines(lines))


PRINTED = (
    '{"type": "result", "subtype": "success", "result": "blue", "usage": {"input_tokens": 5}}\n',
    (
        '{"type": "item.completed", "item": {"type": "agent_message", "text": "blue"}}\n'
        '{"type": "turn.completed", "usage": {"input_tokens": 9, "output_tokens": 2}}\n'
    ),
    (
        '{"stats": {"models": {"m": {"tokens": {"prompt": 3}}}, "tools": {"byName": {"x": '
        '{"count": 2}}}}, "response": "blue"}\n'
    ),
    '{"sessionID": "s", "type": "step_finish", "part": {"cost": 0.1, "tokens": {"input": 3}}}\n',
    (
        'thinking\n{"score": 1, "answer": "blue", "cost": 0.1, "tool_calls": [{"name": "look", '
        '"args": {"at": "sky"}}], "messages": [{"role": "assistant", "content": "blue"}]}\n'
    ),
    "Tokens: 1.2k sent, 4 received. Cost: $1.2 message, $1.2 session.\n",
)
READS = (None, "json", "claude-code", "codex", "gemini", "opencode", "aider")


def read_one_printed(rng):
    """Read what an agent printed, and broke; the error that it gives, or None."""
    text = rng.choice(PRINTED) * rng.choice((1, 1, 2))
    text = damaged(text.encode(), rng).decode("utf-8", "replace")
    outcome = rng.choice(("auto", "json", "expect"))
    system = CommandSystem(name="agent", argv=("x",), reads=rng.choice(READS), outcome=outcome)
    agent = CommandAgent(system)
    try:
        report = agent._report(text, anywhere=rng.random() < 0.5)
        agent._observe(rng.choice((0, 1)), text, "", Path(), report)
    except PasshatError as error:
        return str(error)
    return None


class BrokenCassettes:
    """A recording in a folder, whose cassette is broken in another way for each seed."""

    def __init__(self, folder):
        self.suite = small_suite(folder)
        self.before = trials_of(self.suite, "record")
        (self.path,) = (folder / "cassettes").iterdir()
        self.whole = self.path.read_bytes()

    def read_one(self, rng):
        """Replay a broken cassette; the sentence that refuses it, or None."""
        by_hand = rng.random() < 0.5
        self.path.write_bytes((changed if by_hand else damaged)(self.whole, rng))
        try:
            after = trials_of(self.suite)
        except PasshatError as error:
            return str(error)
        assert by_hand or after == self.before, "other numbers"
        return None


def main(files=FILES, first=0):
    """Break that many cassettes and that many outputs, seeds counted from `first`."""
    with tempfile.TemporaryDirectory() as folder:
        cassettes = BrokenCassettes(Path(folder))
        for what, read in (("cassettes", cassettes.read_one), ("outputs", read_one_printed)):
            refused, slowest = 0, 0.0
            for seed in range(first, first + files):
                before = time.process_time()
                try:
                    told = read(random.Random(seed))
                except Exception as error:
                    raise SystemExit(f"{what}, seed {seed}: {error!r}") from error
                taken = time.process_time() - before
                slowest = max(slowest, taken)
                refused += told is not None
                if taken > LONGEST or (told is not None and not 0 < len(told) <= MOST_CHARACTERS):
                    raise SystemExit(f"{what}, seed {seed}: {taken:.1f} s, {str(told)[:300]!r}")
            sys.stdout.write(
                f"{files:,} broken {what}: {refused:,} refused in a sentence; the slowest took "
                f"{slowest:.2f} CPU-s\n"
            )


if __name__ == "__main__":
    with suppress(BrokenPipeError):
        main(*map(int, sys.argv[1:]))
