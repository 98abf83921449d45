"""Keys that other tools let into their logs are neither shown nor stored."""

import json

import pytest
from click.testing import CliRunner

from passhat.cli import main
from passhat.ingest import Limits, read_trials, read_with_transcripts

KEY = "sk-ant-api03-" + "0123456789abcdef" * 2
SAID = [{"role": "user", "content": f"log in with\n{KEY}"}, {"role": "assistant", "content": "Ok"}]

LOGS = {
    "table.json": [{"task": "a", "passed": True, "messages": SAID}] * 2,
    "tau.json": [{"task_id": 1, "reward": 0.0, "trial": 0, "info": {}, "traj": SAID}],
}


@pytest.fixture(params=LOGS)
def log(request, tmp_path):
    path = tmp_path / request.param
    path.write_text(json.dumps(LOGS[request.param]))
    return path


def test_a_key_in_a_transcript_is_not_handed_out(log):
    _, said = read_with_transcripts(log)
    texts = list(said.values())
    assert texts
    assert all(KEY not in text and "log in with\\n[redacted]" in text for text in texts)


def test_a_key_in_an_error_is_not_handed_out():
    rows = [{"task": "a", "passed": False, "error": f"401: wrong key {KEY}"}]
    assert read_trials(json.dumps(rows).encode()).to_columns()["error"] == [
        "401: wrong key [redacted]"
    ]


def test_a_page_shows_no_key(log, tmp_path):
    page = tmp_path / "page.html"
    ran = CliRunner().invoke(main, ["report", str(log), "-o", str(page), "--transcripts"])
    assert ran.exit_code == 0, ran.output
    shown = page.read_text()
    assert KEY not in shown
    assert "log in with" in shown


def test_a_history_stores_no_key(log, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = CliRunner().invoke(main, ["history", "add", str(log), "--suite", "s", "--store", "h.db"])
    assert ran.exit_code == 0, ran.output
    shown = CliRunner().invoke(main, ["report", "h.db", "-o", "page.html", "--transcripts"])
    assert shown.exit_code == 0, shown.output
    page = (tmp_path / "page.html").read_text()
    assert KEY not in page
    assert "log in with" in page


@pytest.mark.parametrize("before", [*range(170, 202, 3), 188, 187])
def test_a_cut_leaves_no_part_of_a_key_in_an_error(before):
    error = "x" * (before - 1) + " " + KEY
    table = {"columns": ["inputs", "right/score", "error"], "data": [["a", None, error]]}
    columns = read_trials(json.dumps(table).encode()).to_columns()
    assert columns["error"][0].startswith("xxx")
    assert not any(part in columns["error"][0] for part in ("sk", "api03", "0123"))


@pytest.mark.parametrize("shown", range(10, 60, 7))
def test_a_cut_leaves_no_part_of_a_key_in_a_transcript(log, shown):
    limits = Limits(max_transcript=shown + 40)
    _, said = read_with_transcripts(log, limits=limits)
    assert said
    for text in said.values():
        assert not any(part in text for part in ("sk-", "api03", "0123"))
