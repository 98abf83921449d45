"""A disk that is full, or a store that cannot be written: a sentence, exit 3, and resume works."""

import json
import resource
import subprocess
import sys

import pytest

SUITE = """\
name: full
defaults: {runs: 1500, model: scripted}
agents:
  - name: coin
    prompt: Heads or tails?
    expect: [{contains: heads}]
    script: [{answer: heads, weight: 2}, {answer: tails}]
"""


def passhat(*arguments, cwd, most_bytes=None):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))

    return subprocess.run(
        [sys.executable, "-m", "passhat", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limit if most_bytes else None,
    )


def test_a_full_disk_ends_the_run_with_a_sentence_and_resume_completes_it(tmp_path):
    (tmp_path / "passhat.yml").write_text(SUITE)
    # A limit on the size of files is what a full disk looks like to SQLite.
    done = passhat("run", "--json", cwd=tmp_path, most_bytes=300_000)
    assert done.returncode == 3, done.stderr
    assert "Traceback" not in done.stderr
    assert "the store cannot be used now" in done.stderr
    again = passhat("resume", "--json", cwd=tmp_path)
    assert again.returncode == 1, again.stderr
    assert json.loads(again.stdout)["report"]["systems"][0]["task_table"][0]["runs"] == 1500


def test_a_store_that_cannot_be_made_is_a_sentence(tmp_path):
    (tmp_path / "passhat.yml").write_text(SUITE)
    (tmp_path / "file").write_text("")
    done = passhat("run", "--runs", "1", "--store", "file/history.db", cwd=tmp_path)
    assert done.returncode in (2, 3), done.stderr
    assert "Traceback" not in done.stderr
    assert "file/history.db" in done.stderr


@pytest.mark.parametrize("name", ["report.html", "report.json"])
def test_an_answer_that_cannot_be_written_is_a_sentence(tmp_path, name):
    (tmp_path / "passhat.yml").write_text(SUITE)
    done = passhat("run", "--runs", "1", "-o", f"nowhere/{name}", cwd=tmp_path)
    assert done.returncode in (2, 3), done.stderr
    assert "Traceback" not in done.stderr
