"""Folders of results: what is not asked for stays closed, and nothing is opened twice."""

import bz2
import io
import json
import lzma
import sqlite3
import sys
import tarfile
import zipfile
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from passhat.errors import HistoryError, ReadError
from passhat.history.database import MIGRATIONS
from passhat.history.sqlite import SqliteDatabase
from passhat.ingest import Limits, read_trials, read_with_transcripts
from passhat.ingest.readers import COMPANIONS, READERS
from passhat.records.transcript import CUT

HUGE = 5 * 2**30


WATCHED = {}
"""By folder, how often each file in it was opened, by the file's name."""


def count_opened(event, args):
    if event == "open" and isinstance(args[0], (str, Path)):
        for folder, seen in WATCHED.items():
            if str(args[0]).startswith(folder):
                seen[Path(args[0]).name] += 1


@pytest.fixture(scope="session")
def audited():
    """Python calls the hook for every file, whatever opens it; a hook cannot be taken back."""
    sys.addaudithook(count_opened)


@pytest.fixture
def opened(audited, tmp_path):
    """How often each file of the test was opened, by its name."""
    WATCHED[str(tmp_path)] = seen = Counter()
    yield seen
    del WATCHED[str(tmp_path)]


def put(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


def put_huge(path):
    """A file of gigabytes that takes no place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as stream:
        stream.truncate(HUGE)


def tau2_run(folder, simulations, *, index=True):
    info = {"agent_info": {"llm": "gpt"}, "environment_info": {"domain_name": "retail"}}
    names = [{"id": f"s{n}", "task_id": "0", "trial": n, "reward": 1.0} for n in range(simulations)]
    put(
        folder / "results.json",
        {"info": info, "tasks": [], "simulation_index": names if index else None},
    )
    for name in names:
        message = {"role": "user", "content": f"said in {name['id']}"}
        put(folder / "simulations" / f"{name['id']}.json", {**name, "messages": [message]})
    return folder / "simulations"


def terminal_bench_run(folder, episodes, text="x" * 100):
    trial = {"task_id": "t", "trial_name": "t.1-of-1", "is_resolved": True, "instruction": "Go"}
    put(folder / "results.json", {"results": [trial], "pass_at_k": {}, "n_resolved": 1})
    logs = folder / "t" / "t.1-of-1" / "agent-logs"
    for number in range(episodes):
        put(logs / f"episode-{number}" / "prompt.txt", text)
        put(logs / f"episode-{number}" / "response.txt", text)
    return logs


def harbor_job(folder, trials):
    put(folder / "result.json", {"n_total_trials": trials, "stats": {}})
    for number in range(trials):
        trial = {
            "task_name": f"t{number}",
            "agent_info": {"name": "a"},
            "verifier_result": {"rewards": {"reward": 1.0}},
        }
        put(folder / f"trial-{number}" / "result.json", trial)
        steps = {"steps": [{"source": "user", "message": "Do it"}]}
        put(folder / f"trial-{number}" / "agent" / "trajectory.json", steps)
        put(folder / f"trial-{number}" / "verifier" / "test-stdout.txt", "1 passed")


def mcpmark_run(folder, runs):
    for number in range(1, runs + 1):
        meta = {"task_name": "t", "model_name": "m", "execution_result": {"success": True}}
        put(folder / f"run-{number}" / "t" / "meta.json", meta)
        words = [{"role": "user", "content": "Do it"}]
        put(folder / f"run-{number}" / "t" / "messages.json", words)


def test_a_file_is_opened_once(tmp_path, opened):
    put(tmp_path / "t.csv", "task,passed\na,1\n")
    opened.clear()
    read_trials(tmp_path / "t.csv")
    assert opened == {"t.csv": 1}


def test_the_numbers_of_a_folder_are_read_without_its_words(tmp_path, opened):
    tau2_run(tmp_path / "tau2", 3)
    terminal_bench_run(tmp_path / "terminal", 3)
    harbor_job(tmp_path / "harbor", 3)
    mcpmark_run(tmp_path / "mcpmark", 3)
    opened.clear()
    trials = [len(read_trials(tmp_path / n)) for n in ("tau2", "terminal", "harbor", "mcpmark")]
    assert trials == [3, 1, 3, 3]
    assert opened == {"results.json": 2, "result.json": 4, "meta.json": 3}


def test_the_words_of_a_folder_are_opened_once_when_they_are_asked_for(tmp_path, opened):
    tau2_run(tmp_path / "tau2", 2)
    put(tmp_path / "tau2" / "simulations" / "of another run.json", "must stay closed")
    terminal_bench_run(tmp_path / "terminal", 2)
    harbor_job(tmp_path / "harbor", 3)
    mcpmark_run(tmp_path / "mcpmark", 3)
    opened.clear()
    names = ("tau2", "terminal", "harbor", "mcpmark")
    said = [len(read_with_transcripts(tmp_path / name)[1]) for name in names]
    assert said == [2, 1, 3, 3]
    assert opened == {
        "results.json": 2, "s0.json": 1, "s1.json": 1, "prompt.txt": 2, "response.txt": 2,
        "result.json": 4, "trajectory.json": 3, "test-stdout.txt": 3,
        "meta.json": 3, "messages.json": 3,
    }  # fmt: skip


def test_a_tau2_folder_beyond_the_limits_is_refused_before_any_of_it_is_opened(tmp_path, opened):
    folder = tau2_run(tmp_path, 5, index=False)
    size = sum(path.stat().st_size for path in folder.iterdir())
    opened.clear()
    with pytest.raises(ReadError, match=r"simulations: holds more than max_members = 4 files"):
        read_trials(tmp_path, limits=Limits(max_members=4))
    with pytest.raises(ReadError, match=r"simulations: holds [\d,]+ bytes or more, above max_byt"):
        read_trials(tmp_path, limits=Limits(max_bytes=size - 1))
    assert set(opened) == {"results.json"}
    assert len(read_trials(tmp_path, limits=Limits(max_bytes=size, max_members=5))) == 5


def test_a_tau2_simulation_beyond_the_limits_is_refused_by_its_name(tmp_path, opened):
    folder = tau2_run(tmp_path, 2)
    put_huge(folder / "s1.json")
    assert len(read_trials(tmp_path)) == 2
    opened.clear()
    with pytest.raises(ReadError, match=r"s1.json: holds 5,368,709,120 bytes or more"):
        read_with_transcripts(tmp_path)
    assert "s1.json" not in opened


def test_a_tau2_simulation_that_was_left_half_written_says_so_in_its_place(tmp_path):
    folder = tau2_run(tmp_path, 2)
    put(folder / "s1.json", '{"id": "s1", "messages": [')
    _, said = read_with_transcripts(tmp_path)
    kept = [json.loads(text) for text in said.values()]
    assert kept[0]["messages"][0]["text"] == "said in s0"
    assert "s1.json: not valid JSON" in kept[1]["error"]


def test_a_tau2_file_that_is_being_written_is_no_simulation_yet(tmp_path):
    folder = tau2_run(tmp_path / "run", 2, index=False)
    put(folder / ".sim_half.json", "{")
    assert len(read_trials(tmp_path / "run")) == 2


def test_a_tau2_simulation_that_lies_elsewhere_is_neither_opened_nor_left_out_in_silence(tmp_path):
    folder = tau2_run(tmp_path / "run", 2, index=False)
    put(tmp_path / "secret.json", {"task_id": "9", "reward": 1.0})
    (folder / "link.json").symlink_to(tmp_path / "secret.json")
    with pytest.raises(ReadError, match=r"link\.json: .* leads out of the folder"):
        read_trials(tmp_path / "run")


def test_what_belongs_to_one_result_hides_no_result_of_another_folder(tmp_path):
    meta = {"task_name": "t", "model_name": "m", "execution_result": {"success": True}}
    put(tmp_path / "a" / "meta.json", meta)
    put(tmp_path / "a" / "messages.json", [{"role": "user", "content": "hello"}])
    put(tmp_path / "b" / "messages.json", [{"task": "t", "passed": True, "system": "other"}])
    assert "other" in read_trials(tmp_path).systems


def test_a_link_that_leads_to_itself_is_passed_by(tmp_path):
    put(tmp_path / "results.jsonl", {"task": "t", "passed": True})
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "loop.json").symlink_to(tmp_path / "loop.json")
    assert len(read_trials(tmp_path)) == 1


@pytest.mark.parametrize("limit", [700, 2_000, 5_000])
def test_episodes_are_opened_while_there_is_room_and_the_others_are_counted(
    tmp_path, opened, limit
):
    terminal_bench_run(tmp_path, 30)
    opened.clear()
    _, said = read_with_transcripts(tmp_path, limits=Limits(max_transcript=limit))
    (kept,) = map(json.loads, said.values())
    turns = [turn for turn in kept["messages"] if turn["role"] != "passhat"]
    looked_at = opened["prompt.txt"] + opened["response.txt"]
    assert len(turns) == 1 + looked_at
    assert kept["messages"][-1]["text"] == f"{CUT}{60 - looked_at} more messages]"
    assert sum(len(turn["text"]) for turn in turns) <= limit


def test_a_terminal_that_filled_the_disk_is_read_as_far_as_it_is_shown(tmp_path):
    logs = terminal_bench_run(tmp_path, 1, text="é" * 50_000)
    put(logs.parent / "panes" / "post-agent.txt", "never opened")
    _, said = read_with_transcripts(tmp_path, limits=Limits(max_transcript=4_000))
    (kept,) = map(json.loads, said.values())
    _, shown, rest = kept["messages"]
    text, _, mark = shown["text"].partition(f" {CUT}")
    assert mark == f"{100_000 - 2 * len(text):,} more bytes]"
    assert rest["text"] == f"{CUT}2 more messages]"


def test_more_or_bigger_episodes_than_the_limits_are_refused_unread(tmp_path, opened):
    logs = terminal_bench_run(tmp_path, 5)
    opened.clear()
    with pytest.raises(ReadError, match=r"agent-logs: holds more than max_members = 4 files"):
        read_with_transcripts(tmp_path, limits=Limits(max_members=4))
    assert set(opened) == {"results.json"}
    put_huge(logs / "episode-0" / "prompt.txt")
    opened.clear()
    with pytest.raises(ReadError, match=r"prompt.txt: holds 5,368,709,120 bytes or more"):
        read_with_transcripts(tmp_path)
    assert set(opened) == {"results.json"}
    assert len(read_trials(tmp_path)) == 1


def test_a_harbor_trajectory_beyond_the_limits_is_refused_unread_where_it_is_asked_for(
    tmp_path, opened
):
    harbor_job(tmp_path, 2)
    put_huge(tmp_path / "trial-1" / "agent" / "trajectory.json")
    opened.clear()
    assert len(read_trials(tmp_path)) == 2
    with pytest.raises(ReadError, match=r"trajectory.json: holds 5,368,709,120 bytes or more"):
        read_with_transcripts(tmp_path)
    assert opened["trajectory.json"] == 1


def test_a_job_of_more_trials_than_the_limits_is_refused_before_the_first_is_opened(
    tmp_path, opened
):
    harbor_job(tmp_path, 5)
    opened.clear()
    with pytest.raises(ReadError, match=r"holds more than max_members = 4 files"):
        read_trials(tmp_path, limits=Limits(max_members=4))
    assert not opened


def test_the_names_of_companions_are_those_that_readers_have():
    assert {name for reader in READERS.values() for name in reader.reading.companions} == COMPANIONS


TABLES = {"gpt/runs.csv": "task,passed\na,1\nb,0\n", "o3/runs.csv": "task,passed\na,1\nb,1\n"}


def packed(path):
    """The two tables in an archive, beside a file that is no result."""
    files = {**TABLES, "README.md": "# Results"}
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in files.items():
                archive.writestr(name, text)
        return path
    with tarfile.open(path, f"w:{path.suffix[1:]}") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return path


@pytest.mark.parametrize("name", ["all.zip", "all.tar.gz", "all.tar.bz2", "all.tar.xz"])
def test_an_archive_says_what_its_folder_says(tmp_path, name):
    for inside, text in TABLES.items():
        path = tmp_path / "all" / inside
        path.parent.mkdir(parents=True)
        path.write_text(text)
    folder, archive = read_trials(tmp_path / "all"), read_trials(packed(tmp_path / name))
    assert archive.systems == folder.systems == ("gpt", "o3")
    assert archive.outcome.tolist() == folder.outcome.tolist()


def test_an_archive_that_is_damaged_or_holds_no_result_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("README.md", "# Results")
    with pytest.raises(ReadError, match="holds no result file that passhat can read"):
        read_trials(tmp_path / "a.zip")
    whole = packed(tmp_path / "b.tar.xz").read_bytes()
    (tmp_path / "c.tar.xz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ReadError, match="damaged"):
        read_trials(tmp_path / "c.tar.xz")


@pytest.mark.parametrize("pack", [bz2.compress, lzma.compress])
def test_a_table_in_bzip2_or_xz_is_read(tmp_path, pack):
    (tmp_path / "runs.csv.x").write_bytes(pack(b"task,passed\na,1\n"))
    assert len(read_trials(tmp_path / "runs.csv.x")) == 1


@pytest.mark.parametrize("version", [0, 3, len(MIGRATIONS), 99])
def test_a_database_of_another_tool_is_named_as_what_it_is(tmp_path, version):
    """Whatever its tables are called and its version is; and nothing is written to it."""
    path = tmp_path / "evals.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE runs (id TEXT, ok INTEGER)")
        database.execute("CREATE TABLE metrics (id TEXT)")
        database.execute(f"PRAGMA user_version = {version}")
        database.commit()
    before = path.read_bytes()
    said = "is an SQLite database, but no history of passhat"
    with pytest.raises(ReadError, match=said):
        read_trials(path)
    for read_only in (True, False):
        with pytest.raises(HistoryError, match=rf"{said} \(its tables are metrics, runs\)"):
            SqliteDatabase.open(path, read_only=read_only)
    assert path.read_bytes() == before
