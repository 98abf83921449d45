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


def test_the_empty_directory_of_a_run_killed_before_it_had_a_lock_is_swept(folder):
    empty, other = folder / f"{PREFIX}abcd1234", folder / f"{PREFIX}efgh5678"
    empty.mkdir()
    (other / "kept").mkdir(parents=True)
    sweep(folder)
    assert empty.exists()  # its run may just be about to lock it
    for path in (empty, other):
        age(path)
    sweep(folder)
    assert sorted(folder.iterdir()) == [other]


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


def deep(folder: Path, levels: int) -> None:
    """A chain of folders that is deeper than any stack and longer than any path."""
    here = Path.cwd()
    os.chdir(folder)
    try:
        for _ in range(levels):
            Path("d").mkdir()
            Path("f").touch()
            os.chdir("d")
    finally:
        os.chdir(here)


def wide(folder: Path) -> None:
    for number in range(300):
        (folder / f"d{number}" / "e").mkdir(parents=True)
        (folder / f"d{number}" / "e" / "f").touch()


def locked(folder: Path) -> None:
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "f").touch()
    for part in ("a/b", "a", "."):
        (folder / part).chmod(0)


def odd(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / OWNED).mkdir()
    (folder / "to-itself").symlink_to(folder / "to-itself")
    (folder / "to-nothing").symlink_to("nowhere")
    (folder / os.fsdecode(b"\xff\xfe\n")).mkdir()
    (folder / ("n" * 255)).touch()


@pytest.mark.parametrize("leave", [lambda folder: deep(folder, 3000), wide, locked, odd])
def test_whatever_an_agent_leaves_is_removed(folder, leave):
    scratch = Scratch()
    (scratch.path / "0").mkdir()
    leave(scratch.path / "0")
    scratch.close()
    assert list(folder.iterdir()) == []


def test_links_out_of_a_folder_are_removed_and_what_they_name_stays(folder):
    precious = folder / "precious"
    precious.mkdir()
    (precious / "file").write_text("kept")
    scratch = Scratch()
    (scratch.path / "link").symlink_to(precious)
    (scratch.path / "in").mkdir()
    (scratch.path / "in" / "link").symlink_to(precious)
    scratch.close()
    assert [path.name for path in folder.iterdir()] == ["precious"]
    assert (precious / "file").read_text() == "kept"


def test_what_cannot_be_removed_keeps_its_mark_for_the_next_run(folder):
    left = folder / f"{PREFIX}left"
    (left / "stuck").mkdir(parents=True)
    (left / "loose").touch()
    (left / OWNED).touch()
    age(left)
    if subprocess.run(
        ["chattr", "+i", left / "stuck"], capture_output=True, check=False
    ).returncode:
        pytest.skip("no file can be made immutable here")
    try:
        sweep(folder)
        assert sorted(path.name for path in left.iterdir()) == [OWNED, "stuck"]
    finally:
        subprocess.run(["chattr", "-i", left / "stuck"], check=True)
    age(left)
    sweep(folder)
    assert not left.exists()


@pytest.mark.slow("removes folders that lie thousands deep")
def test_an_agent_that_leaves_deep_folders_ends_neither_its_run_nor_the_next(folder):
    """The files are looked at, too."""
    suite = folder / "suite.yml"
    agent = folder / "agent.py"
    agent.write_text(
        "import os\nfor i in range(1100):\n    os.mkdir('d')\n    os.chdir('d')\nprint('ok')\n"
    )
    suite.write_text(
        "name: deep\ndefaults: {runs: 2}\n"
        f"systems: [{{name: c, command: ['{{python}}', {agent}]}}]\n"
        "tasks: [{name: t, prompt: x, expect: [{contains: ok}, {target: files, exact: []}]}]\n"
    )
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-m", "passhat", "run", suite, "--no-store"],
            env={**os.environ, "TMPDIR": str(folder)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert not list(folder.glob(f"{PREFIX}*"))
