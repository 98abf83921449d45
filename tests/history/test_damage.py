"""A store that is damaged says so: the same numbers as before, or a sentence that refuses."""

import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from passhat.cli import main
from passhat.errors import HistoryError, PasshatError
from passhat.history import History
from passhat.records import Outcome, Trial


def trials(seed):
    rng = random.Random(seed)
    for number in range(180):
        yield Trial(
            system="agent",
            task=f"task {number % 3}",
            trial=number // 3,
            outcome=Outcome.PASSED if rng.random() < 0.7 else Outcome.FAILED,
            score=round(rng.random(), 3),
            cost=0.01 * rng.random(),
            tools=("search",),
        )


def make_store(path, runs=2):
    with History.open(path) as history:
        for seed in range(runs):
            run = history.start_run("suite", seed=seed)
            history.add_trials(run, trials(seed))
            history.finish_run(run)
            history.keep_notes(run, ["a note"])


def numbers(path):
    """Everything that a report of the newest run is made of."""
    with History.open(path, read_only=True) as history:
        run = history.runs()[0]
        table, counts = history.trials(run), history.tallies(run, features=True)
        return [repr(list(table)), repr(counts), run.suite, run.sources]


def test_a_run_is_whole_when_it_ended_and_after_notes_and_more_trials(address):
    with History.open(address) as history:
        run = history.start_run("suite")
        history.verify(run)
        history.add_trials(run, trials(1))
        run = history.finish_run(run)
        history.verify(run, whole=True)
        history.keep_notes(run, ["late"])
        run = history.run_by_id(run.id)
        history.verify(run, whole=True)
        run = history.reopen_run(run)
        more = Trial(system="agent", task="more", trial=0, outcome=Outcome.PASSED)
        history.add_trials(run, [more], first_sequence=180)
        history.verify(history.finish_run(run), whole=True)


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM trials WHERE trial = 7",
        "UPDATE trials SET outcome = 1 - outcome WHERE trial = 7 AND outcome < 2",
        "UPDATE trials SET cost = cost * 2",
        "UPDATE names SET text = 'other' WHERE text = 'task 1'",
        "UPDATE runs SET options = '{}', seed = 77",
        "UPDATE runs SET sealed = 'open'",
    ],
)
def test_what_was_changed_in_a_store_is_noticed_by_every_reader(address, damage):
    with History.open(address) as history:
        run = history.start_run("suite")
        history.add_trials(run, trials(1))
        run = history.finish_run(run)
        with history.writing():
            history.database.execute(damage)
    with History.open(address, read_only=True) as history:
        run = history.run_by_id(run.id)
        for read in (history.trials, history.tallies, history.verify):
            with pytest.raises(HistoryError, match="the store is damaged"):
                read(run)


def mutate(data, rng):
    data = bytearray(data)
    kind = rng.choice(["cut", "flips", "noise", "zeros"])
    if kind == "cut":
        return data[: rng.randrange(100, len(data))]
    if kind == "flips":
        for _ in range(rng.choice([1, 20])):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        return data
    at = rng.randrange(0, max(1, len(data) - 512))
    data[at : at + 512] = rng.randbytes(512) if kind == "noise" else bytes(512)
    return data


@pytest.mark.parametrize(
    "count", [25, pytest.param(200, marks=pytest.mark.slow("two hundred damaged stores"))]
)
def test_no_random_damage_gives_other_numbers(tmp_path, count):
    refusals, slowest = refusals_of_damage(tmp_path, count)
    assert len(refusals) > count / 5
    assert not any("\n" in refusal for refusal in refusals), "each is a sentence"
    assert slowest < 5


def refusals_of_damage(folder, count, seed=None):
    """What refuses so many damaged stores, and the most CPU seconds of one."""
    path = folder / "whole.db"
    make_store(path)
    before = numbers(path)
    rng = random.Random(count if seed is None else seed)
    refusals, slowest = [], 0.0
    for number in range(count):
        damaged = folder / f"{number}.db"
        damaged.write_bytes(mutate(path.read_bytes(), rng))
        began = time.process_time()
        try:
            after = numbers(damaged)
        except PasshatError as error:
            refusals.append(str(error))
        else:
            assert after == before
        slowest = max(slowest, time.process_time() - began)
    return refusals, slowest


def test_damage_of_the_write_ahead_log_changes_no_finished_run(tmp_path):
    path, rng = tmp_path / "history.db", random.Random(1)
    make_store(path)
    before = numbers(path)
    # A process that dies leaves its log behind.
    code = (
        "import os, sys; sys.path.insert(0, sys.argv[2]); from test_damage import trials\n"
        "from passhat.history import History\n"
        "h = History.open(sys.argv[1]); r = h.start_run('later', started='2000-01-01')\n"
        "h.add_trials(r, trials(5)); os._exit(9)"
    )
    folder = __file__.rpartition("/")[0]
    subprocess.run([sys.executable, "-c", code, path, folder], check=False)
    log = tmp_path / "history.db-wal"
    whole, base = log.read_bytes(), path.read_bytes()
    refusals = []
    for number in range(25):
        copy = tmp_path / f"copy{number}.db"
        copy.write_bytes(base)
        (tmp_path / f"copy{number}.db-wal").write_bytes(mutate(whole, rng))
        try:
            assert numbers(copy) == before
        except PasshatError as error:
            refusals.append(str(error))
    assert not any("\n" in refusal for refusal in refusals)


def test_a_run_whose_process_died_is_resumed_only_in_a_whole_store(tmp_path):
    path = tmp_path / "history.db"
    make_store(path)
    with History.open(path) as history:
        run = history.start_run("suite")
        history.add_trials(run, trials(3))
    with closing(sqlite3.connect(path)) as connection:
        (page,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'trials'"
        ).fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    whole = path.read_bytes()
    with History.open(path) as history:
        assert history.reopen_run(history.run_by_id(run.id)).status == "running"
    at = (page - 1) * size + size // 2
    path.write_bytes(whole[:at] + bytes(size // 2) + whole[at + size // 2 :])
    with (
        History.open(path) as history,
        pytest.raises(HistoryError, match="the store is damaged"),
    ):
        history.reopen_run(run)


def test_history_verify_names_the_run_that_is_damaged(tmp_path):
    path = tmp_path / "history.db"
    make_store(path)
    call = CliRunner().invoke
    whole = call(main, ["history", "verify", "--store", str(path)])
    assert (whole.exit_code, whole.stdout) == (0, "2 runs: all whole\n")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE trials SET score = 0.5 WHERE run = 1 AND trial = 0")
        (key,) = connection.execute("SELECT key FROM runs WHERE id = 1").fetchone()
    done = call(main, ["history", "verify", "--store", str(path)])
    assert done.exit_code == 2
    assert f"run {key} is not what was stored" in done.stderr
    assert f"damaged: 1 run: {key}" in done.stderr


def report(count=200, seed=None):
    """Damage that many stores: `make mutations` runs this."""
    with tempfile.TemporaryDirectory() as folder:
        refusals, slowest = refusals_of_damage(Path(folder), count, seed)
    sys.stdout.write(
        f"{count:,} damaged stores: {len(refusals):,} refused in a sentence, "
        f"{count - len(refusals):,} with the same numbers; the slowest took {slowest:.2f} CPU-s\n"
    )


if __name__ == "__main__":
    report(*map(int, sys.argv[1:]))
