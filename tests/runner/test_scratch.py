"""The directory of a run is gone when the run is, at the latest when the next one begins."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from passhat.runner.processes import OWNED, PREFIX, Scratch, sweep

LONG_AGO = 1_000_000_000


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def age(path: Path) -> None:
    os.utime(path, (LONG_AGO, LONG_AGO))


def test_a_run_leaves_nothing(folder):
    scratch = Scratch()
    (scratch.path / "0").mkdir()
    scratch.close()
    assert list(folder.iterdir()) == []


def test_what_a_killed_run_left_is_swept_by_the_next(folder):
    code = "import time; from passhat.runner.processes import *; print(Scratch().path, flush=True)"
    killed = subprocess.Popen(
        [sys.executable, "-c", f"{code}; time.sleep(60)"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder)},
    )
    left = Path(killed.stdout.readline().strip())
    age(left)
    Scratch().close()
    assert left.is_dir(), "its owner lives"
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    killed.stdout.close()
    Scratch().close()
    assert not left.exists()


def test_a_new_directory_whose_owner_holds_no_lock_yet_is_left_alone(folder):
    new = folder / f"{PREFIX}new"
    new.mkdir()
    (new / OWNED).touch()
    sweep(folder)
    assert new.is_dir()
    age(new)
    sweep(folder)
    assert not new.exists()


def test_only_what_a_run_made_is_swept(folder):
    precious = folder / "precious"
    precious.mkdir()
    (precious / OWNED).touch()
    (folder / f"{PREFIX}link").symlink_to(precious)
    os.utime(folder / f"{PREFIX}link", (LONG_AGO, LONG_AGO), follow_symlinks=False)
    mine = folder / f"{PREFIX}mine"  # somebody's own, with a name like ours
    mine.mkdir()
    age(mine)
    sweep(folder)
    assert precious.is_dir()
    assert mine.is_dir()
