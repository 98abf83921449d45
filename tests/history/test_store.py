import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passhat.errors import HistoryError
from passhat.history import Checkout, History, read_checkout
from passhat.records import Outcome, Source, Trial

NAMES = st.text(min_size=1, max_size=8).filter(lambda text: "\0" not in text)
NUMBERS = st.none() | st.floats(0, 1e9)
TRIALS = st.builds(
    Trial,
    system=NAMES,
    task=NAMES,
    trial=st.integers(0, 50),
    outcome=st.sampled_from([Outcome.PASSED, Outcome.FAILED]),
    score=st.none() | st.floats(0, 1),
    seed=st.none() | st.integers(0, 2**62),
    tokens_in=NUMBERS,
    cost=NUMBERS,
    tools=st.lists(NAMES, max_size=3).map(tuple),
    tags=st.lists(NAMES, max_size=2).map(tuple),
    level=st.none() | NAMES,
    family=st.none() | NAMES,
    weight=st.none() | st.floats(0.125, 8),
    started=st.none() | NAMES,
    error=st.none() | NAMES,
)


def trial(number: int, *, system: str = "agent", task: str = "refund") -> Trial:
    outcome = Outcome.PASSED if number % 3 else Outcome.FAILED
    return Trial(system=system, task=task, trial=number, outcome=outcome)


@pytest.fixture
def history(address):
    with History.open(address) as store:
        yield store


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def one_store(request, tmp_path_factory):
    if request.param == "sqlite":
        address = tmp_path_factory.mktemp("store") / "history.db"
    else:
        address = request.getfixturevalue("postgres").new_database()
    with History.open(address) as store:
        yield store


@given(trials=st.lists(TRIALS, max_size=12, unique_by=lambda t: (t.system, t.task, t.trial)))
@settings(max_examples=40, deadline=None)
def test_trials_come_back_as_they_were_kept_and_in_order(one_store, trials):
    run = one_store.start_run("suite")
    one_store.add_trials(run, trials)
    assert list(one_store.trials(run)) == trials


def test_counts_made_in_the_database_are_those_of_the_trials(history):
    run = history.start_run("suite")
    scored = [
        Trial(system=f"s{i % 2}", task=f"t{i % 5}", trial=i, outcome=Outcome(i % 3), score=i / 40)
        for i in range(40)
    ]
    history.add_trials(run, scored)
    trials = history.trials(run)
    for tally in history.tallies(run):
        expected = trials.tally(tally.system)
        assert tally.tasks == expected.tasks
        for name in ("passed", "failed", "errored", "score_total", "score_squares"):
            assert np.allclose(getattr(tally, name), getattr(expected, name))


def test_the_rate_of_a_run_is_the_mean_over_tasks_however_often_each_was_tried(history):
    run = history.start_run("suite")
    assert run.pass_rate is None
    counts = {("a", "easy"): (30, 30), ("a", "hard"): (1, 4), ("b", "easy"): (1, 2)}
    history.add_trials(
        run,
        [
            Trial(system=system, task=task, trial=i, outcome=Outcome(int(i < passed)))
            for (system, task), (passed, runs) in counts.items()
            for i in range(runs)
        ],
    )
    history.add_trials(run, [Trial(system="b", task="hard", trial=0, outcome=Outcome.ERRORED)])
    run = history.run_by_id(run.id)
    assert run.pass_rate == pytest.approx((1 + 1 / 4 + 1 / 2 + 0) / 4)
    assert (run.passed, run.trials) == (32, 37)


def test_a_trial_is_kept_once_and_a_second_try_changes_nothing(history):
    run = history.start_run("suite")
    history.add_trials(run, [trial(0)])
    with pytest.raises(HistoryError, match="a trial is kept once"):
        history.add_trials(run, [trial(1), trial(0)])
    assert len(history.trials(run)) == 1


def test_a_run_is_found_by_key_tag_branch_commit_and_latest(history):
    here = Checkout(commit="0123456789abcdef", branch="main", dirty=False)
    first = history.start_run("suite", checkout=here)
    history.tag(first, "baseline")
    second = history.start_run("suite", checkout=Checkout(branch="topic"))
    for reference in (first.key, first.key[:5], "baseline", "main", "0123456"):
        assert history.find_run(reference).id == first.id
    assert history.find_run("latest").id == history.find_run("latest~0").id == second.id
    assert history.find_run("latest~1").id == first.id
    with pytest.raises(HistoryError, match="latest~2 is before the first run"):
        history.find_run("latest~2")
    with pytest.raises(HistoryError, match="no run, tag, branch or commit 'nowhere'"):
        history.find_run("nowhere")


def test_a_run_remembers_its_circumstances_and_counts_its_trials(history):
    source = Source(name="log.json", format="promptfoo", sha256="ab", notes=("said",))
    at = Checkout(commit="c" * 40, branch="main", dirty=True, host="h", versions={"passhat": "1"})
    run = history.start_run("suite", seed=7, checkout=at, options={"k": [1]}, sources=[source])
    history.add_trials(run, [trial(i) for i in range(4)])
    run = history.finish_run(run)
    assert (run.status, run.seed, run.checkout, run.options, run.sources) == (
        "finished", 7, at, {"k": [1]}, (source,),
    )  # fmt: skip
    assert (run.trials, run.passed, run.errored, run.tasks) == (4, 2, 0, 1)


def test_deleting_a_run_takes_all_that_was_its_own_and_nothing_else(history):
    gone, kept = history.start_run("suite"), history.start_run("suite")
    for run in (gone, kept):
        history.add_trials(run, [trial(0)])
        with history.writing():
            history.add_transcript(run.id, trial(0), "hello " * 100)
    history.tag(gone, "old")
    history.delete(gone)
    history.vacuum()
    assert [run.id for run in history.runs()] == [kept.id]
    assert history.transcript(kept, "agent", "refund", 0) == "hello " * 100
    assert history.query("SELECT count(*) FROM transcripts")[1] == [(1,)]
    assert history.query("SELECT count(*) FROM tags")[1] == [(0,)]


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM trials",
        "DROP TABLE runs",
        "PRAGMA user_version = 9",
        "ATTACH 'other.db' AS other",
        "SELECT 1; DELETE FROM trials",
        "COPY (SELECT 1) TO '/dev/null'",
        "WITH gone AS (DELETE FROM trials RETURNING 1) SELECT 1",
    ],
)
def test_a_query_cannot_change_the_store(history, sql, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = history.start_run("suite")
    history.add_trials(run, [trial(0)])
    with pytest.raises(HistoryError, match="`sql`: "):
        history.query(sql)
    assert len(history.trials(run)) == 1
    assert not (tmp_path / "other.db").exists()


def test_a_file_that_is_no_store_is_refused(tmp_path):
    path = tmp_path / "history.db"
    path.write_text("these are not the bytes of a database" * 100)
    with pytest.raises(HistoryError, match="not a passhat history store"):
        History.open(path)
    with pytest.raises(HistoryError, match="no history here yet"):
        History.open(tmp_path / "absent.db", read_only=True)


WRITER = """
import sys
from passhat.history import History
from passhat.records import Outcome, Trial
with History.open(sys.argv[1]) as store:
    run = store.start_run(f"writer {sys.argv[2]}")
    for i in range(60):
        one = Trial(system="s", task=f"t{i % 7}", trial=i, outcome=Outcome.PASSED)
        store.add_trials(run, [one], first_sequence=i)
    store.finish_run(run)
"""
READER = """
import sys
from passhat.history import History
most = 0
while most < 8 * 60:
    with History.open(sys.argv[1], read_only=True) as store:
        total = sum(len(store.trials(run)) for run in store.runs())
    assert total >= most, "a reader saw fewer trials than before"
    most = total
"""


@pytest.mark.slow("a storm of twelve processes")
def test_eight_writers_and_four_readers_lose_nothing_and_are_never_locked_out(address):
    History.open(address).close()
    jobs = [(WRITER, str(i)) for i in range(8)] + [(READER, "") for _ in range(4)]
    processes = [
        subprocess.Popen([sys.executable, "-c", code, str(address), name], stderr=subprocess.PIPE)
        for code, name in jobs
    ]
    complaints = [process.communicate(timeout=120)[1].decode() for process in processes]
    assert complaints == [""] * len(jobs)
    with History.open(address) as store:
        assert [run.trials for run in store.runs()] == [60] * 8


def test_a_checkout_says_commit_branch_and_whether_it_was_changed(tmp_path):
    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
        subprocess.run(
            ["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True
        )

    assert read_checkout(tmp_path).commit is None
    git("init", "-b", "main")
    (tmp_path / "file").write_text("a")
    git("add", ".")
    git("commit", "-m", "first")
    clean = read_checkout(tmp_path)
    (tmp_path / "file").write_text("b")
    changed = read_checkout(tmp_path)
    assert clean.branch == "main"
    assert clean.dirty is False
    assert len(clean.commit) == 40
    assert (changed.commit, changed.dirty) == (clean.commit, True)


def test_each_commit_of_a_store_waits_for_the_disk(tmp_path):
    # In a process of its own: the stores of these tests do not wait (tests/conftest.py).
    code = """
from passhat.history import History
with History.open("h.db") as store:
    print(store.database._connection.execute("PRAGMA synchronous").fetchone()[0])
"""
    shown = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert shown.stdout == "2\n"  # FULL


def test_a_store_path_may_hold_any_character(tmp_path: Path):
    path = tmp_path / "a b?c#d%.db"
    History.open(path).close()
    assert path.exists()


def test_a_clock_that_was_set_back_ends_no_run_before_it_began(address):
    with History.open(address) as store:
        run = store.start_run("suite", started="2999-01-01T00:00:00.000+00:00")
        ended = store.finish_run(run)
        assert ended.finished == ended.started
        again = store.finish_run(store.reopen_run(ended))
        assert again.finished >= again.started
        past = store.finish_run(store.start_run("suite", started="2020-01-01T00:00:00.000+00:00"))
        assert past.finished > past.started
