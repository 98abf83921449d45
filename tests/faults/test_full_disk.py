"""A disk that is full, or a store that cannot be written: a sentence, exit 3, and resume works."""

import ctypes
import json
import os
import re
import resource
import shlex
import subprocess
import sys

import pytest

SUITE = """\
name: full
defaults: {runs: 120, model: scripted}
agents:
  - name: coin
    prompt: Heads or tails?
    expect: [{contains: heads}]
    script: [{answer: heads, weight: 2}, {answer: tails}]
"""


def passhat(*arguments, cwd, first=None):
    return subprocess.run(
        [sys.executable, "-m", "passhat", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=first,
        # Python would put the part of a module's bytecode that fits in its place, for all after it.
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
    )


def fill_the_disk():
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))


def test_a_full_disk_ends_the_run_with_a_sentence_and_resume_completes_it(tmp_path):
    (tmp_path / "passhat.yml").write_text(SUITE)
    # A limit on the size of files is what a full disk looks like to SQLite.
    done = passhat("run", "--json", cwd=tmp_path, first=fill_the_disk)
    assert done.returncode == 3, done.stderr
    assert "Traceback" not in done.stderr
    assert "the store cannot be used now" in done.stderr
    said = " ".join(done.stderr.split())
    assert re.search(r"your [\d,]+ trials are stored; resume with: passhat run --resume", said)
    again = passhat("resume", "--json", cwd=tmp_path)
    assert again.returncode == 1, again.stderr
    assert json.loads(again.stdout)["report"]["systems"][0]["task_table"][0]["runs"] == 120


def test_a_store_that_cannot_be_made_is_a_sentence(tmp_path):
    (tmp_path / "passhat.yml").write_text(SUITE)
    (tmp_path / "file").write_text("")
    done = passhat("run", "--runs", "1", "--store", "file/history.db", cwd=tmp_path)
    assert done.returncode in (2, 3), done.stderr
    assert "Traceback" not in done.stderr
    assert "file/history.db" in done.stderr


def obey_permissions():
    """Let file permissions bind root too: drop CAP_DAC_OVERRIDE (1) by PR_CAPBSET_DROP (24)."""
    ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)


@pytest.mark.slow("starts a run again on another disk")
def test_a_store_that_is_read_only_is_a_sentence_and_resume_works_later(tmp_path):
    (tmp_path / "passhat.yml").write_text(SUITE)
    begun = passhat("run", "--runs", "40", "--max-tokens", "20", cwd=tmp_path)
    assert "left undone" in begun.stdout + begun.stderr
    store = tmp_path / ".passhat"
    modes = {path: path.stat().st_mode for path in (store, *store.iterdir())}
    for path in modes:
        path.chmod(0o555 if path.is_dir() else 0o444)
    for command in (("resume", "--max-tokens", "9999"), ("run", "--runs", "2")):
        done = passhat(*command, cwd=tmp_path, first=obey_permissions)
        assert done.returncode == 3, (command, done.stderr)
        assert "Traceback" not in done.stderr
        assert "store" in done.stderr
        assert "cannot be written" in done.stderr or "cannot be used now" in done.stderr
    for path, mode in modes.items():
        path.chmod(mode)
    again = passhat("resume", "--max-tokens", "9999", "--json", cwd=tmp_path)
    assert again.returncode == 1, again.stderr
    assert json.loads(again.stdout)["report"]["systems"][0]["task_table"][0]["runs"] == 40


@pytest.mark.parametrize("name", ["report.html", "report.json"])
def test_an_answer_that_cannot_be_written_is_a_sentence(tmp_path, name):
    (tmp_path / "passhat.yml").write_text(SUITE)
    done = passhat("run", "--runs", "1", "-o", f"nowhere/{name}", cwd=tmp_path)
    assert done.returncode in (2, 3), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow("fills a disk once more")
def test_a_report_that_does_not_fit_on_the_disk_leaves_no_half_of_it(tmp_path):
    """Exit code 3, as the request was right; a file that was there stays as it was."""
    (tmp_path / "passhat.yml").write_text(SUITE.replace("120", "4"))
    assert passhat("run", cwd=tmp_path).returncode in (0, 1)
    (tmp_path / "old.html").write_text("as it was")
    for name in ("new.html", "old.html"):
        done = passhat("report", "latest", "-o", name, cwd=tmp_path, first=little_room)
        assert done.returncode == 3, done.stderr
        assert f"Error: -o {name}: File too large; nothing was written there" in done.stderr
        assert "Usage" not in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"passhat.yml", "old.html", ".passhat"}
    assert (tmp_path / "old.html").read_text() == "as it was"


def little_room():
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))


@pytest.mark.slow("fills a disk once more")
def test_a_cassette_that_does_not_fit_on_the_disk_ends_the_run_and_resume_completes_it(tmp_path):
    """What was recorded stays whole; every trial is in the store and in the cassette once."""
    (tmp_path / "passhat.yml").write_text(SUITE.replace("120", "60"))
    # A recording that was interrupted takes most of the room.
    (tmp_path / "cassettes").mkdir()
    before = {"kind": "setup", "task": "before", "asked": {"prompt": "?" * 1_990_000}}
    (tmp_path / "cassettes" / "scripted.jsonl.partial").write_text(json.dumps(before) + "\n")
    done = passhat(
        "run",
        "--record",
        cwd=tmp_path,
        first=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000,) * 2),
    )
    assert done.returncode == 3, done.stderr
    said = " ".join(done.stderr.split())
    assert "Traceback" not in said
    assert "cassettes/scripted.jsonl: File too large; no cassette was written" in said
    stored = re.search(r"your (\d+) trials are stored; resume with: (passhat run .*)$", said)
    assert 5 < int(stored[1]) < 60
    (partial,) = (tmp_path / "cassettes").iterdir()
    assert partial.name == "scripted.jsonl.partial"
    assert partial.read_bytes().endswith(b"}\n")
    assert all(json.loads(line) for line in partial.read_text().splitlines())
    again = passhat(*shlex.split(stored[2])[1:], cwd=tmp_path)
    assert again.returncode == 1, again.stderr
    assert f"{stored[1]} of 60 trials are already done" in again.stderr
    assert [path.name for path in (tmp_path / "cassettes").iterdir()] == ["scripted.jsonl"]
    replayed = passhat("run", "--replay", "--json", cwd=tmp_path)
    assert json.loads(replayed.stdout)["report"]["systems"][0]["task_table"][0]["runs"] == 60
