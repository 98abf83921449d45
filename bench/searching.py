"""What it costs to find words in 100,000 transcripts, in a SQLite file and in PostgreSQL.

`python -m bench searching` keeps the same trials in both, as runs do, and searches each as the
dashboard does. The CPU is that of the search with that of the server's process that serves it.
"""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from passhat.analysis.planning.simulate import simulate
from passhat.history import History
from passhat.history.queries import search_said
from passhat.history.sqlite import SqliteDatabase
from passhat.testing.postgres import postgres_server

RUNS, TASKS, TRIALS = 10, 100, 100
WORDS, VOCABULARY = 100, 20_000
"""Words of a transcript, and words they are drawn from: the n-th as often as 1/n, as in speech."""
NUMBERS = 20
"""Order numbers of a transcript, each said nowhere else, which all begin with a 1."""

_RNG = np.random.default_rng(1)
_SYLLABLES = np.array([a + b for a in "bcdfghklmnprstvw" for b in ("a", "e", "i", "o", "u", "an")])
VOCABULARY_WORDS = np.unique(
    ["".join(_RNG.choice(_SYLLABLES, size=n)) for n in _RNG.integers(1, 5, 2 * VOCABULARY)]
)
_RNG.shuffle(VOCABULARY_WORDS)
VOCABULARY_WORDS = VOCABULARY_WORDS[:VOCABULARY]

QUESTIONS = {
    "a word of almost every trial": VOCABULARY_WORDS[0],
    "a word of one trial in a hundred": VOCABULARY_WORDS[1_200],
    "a word of none": "elsewhere",
    "two frequent words": f"{VOCABULARY_WORDS[3]} {VOCABULARY_WORDS[7]}",
    "two rare words": f"{VOCABULARY_WORDS[1_500]} {VOCABULARY_WORDS[2_500]}",
    "a short word that begins others": "san",
    "the first letter of many words": "s",
    "the first digit of all order numbers": "1",
    "a frequent word and that digit": f"{VOCABULARY_WORDS[3]} 1",
}
MOST_CPU = 0.3
VISITS = 11


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        stores = {
            "SQLite": str(Path(folder) / "history.db"),
            "PostgreSQL": stack.enter_context(postgres_server()).new_database(),
        }
        opened = {}
        for name, address in stores.items():
            with History.open(address) as history:
                fill(history)
            opened[name] = stack.enter_context(History.open(address, read_only=True))
        print("## Finding words in 100,000 transcripts\n")
        print(f"| searched for | {', CPU-s | '.join(opened)}, CPU-s | limit |")
        print("|---|--:|--:|--:|")
        for title, question in QUESTIONS.items():
            spent = (cpu_of_search(history, question) for history in opened.values())
            cells = " | ".join(f"{first:.3f} (again {again:.3f})" for first, again in spent)
            print(f"| {title} | {cells} | {MOST_CPU:g} |", flush=True)
    print(
        f"\n{RUNS} runs of {TASKS} tasks x {TRIALS} trials, {WORDS} words and "
        f"{NUMBERS} numbers in each. The first search, and the mean of {VISITS - 1} after it; "
        "the process of the server that answers is counted, in hundredths of a second."
    )


def fill(history: History) -> None:
    rng = np.random.default_rng(1)
    chance = 1 / np.arange(1, VOCABULARY + 1)
    for seed in range(RUNS):
        run = history.start_run("support")
        trials = simulate(tasks=TASKS, runs=TRIALS, seed=seed)
        history.add_trials(run, trials)
        drawn = rng.choice(VOCABULARY_WORDS, size=(len(trials), WORDS), p=chance / chance.sum())
        first = 10_000_000 + seed * len(trials) * NUMBERS
        numbers = np.arange(first, first + len(trials) * NUMBERS).reshape(-1, NUMBERS)
        said = {
            (trial.system, trial.task, trial.trial): " ".join([*own, *map(str, its)])
            for trial, own, its in zip(trials, drawn, numbers, strict=True)
        }
        history.add_transcripts(run, said)
        history.finish_run(run)


def cpu_of_search(history: History, question: str) -> tuple[float, float]:
    """CPU seconds of the first search, and the mean of those after it."""
    server = _server_process(history)
    at = [time.process_time() + _cpu_of(server)]
    for _ in range(VISITS):
        search_said(history, question)
        at.append(time.process_time() + _cpu_of(server))
    return at[1] - at[0], (at[-1] - at[1]) / (VISITS - 1)


def _server_process(history: History) -> int | None:
    if isinstance(history.database, SqliteDatabase):
        return None
    row = history.database.execute("SELECT pg_backend_pid()").fetchone()
    assert row is not None
    return int(row[0])


def _cpu_of(process: int | None) -> float:
    """CPU seconds of another process, in user and system mode."""
    if process is None:
        return 0.0
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
