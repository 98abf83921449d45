"""Why trials fail, read from the store, is what would be computed anew; so is what was asked."""

import json
from dataclasses import fields

import pytest
from click.testing import CliRunner

from passhat.analysis.explaining.explain import explain
from passhat.cli import main
from passhat.history import History
from passhat.history.queries import all_transcripts
from passhat.journeys import stored_runs
from passhat.journeys.stored_runs import explain_run, keep_explanation, numbers_basis, requests_of
from passhat.records import Outcome, Trial
from passhat.records.transcript import Call, Transcript, Turn

TRIALS = 8


def said(task, *tools):
    turns = [Turn(role="user", text=f"Please\n  refund {task}")]
    for i, tool in enumerate(tools):
        call = Call(name=tool, arguments=json.dumps({"order": task}), id=str(i))
        turns += [
            Turn(role="assistant", calls=(call,)),
            Turn(role="tool", text='{"status": "ok"}', call_id=str(i)),
        ]
    return Transcript(messages=tuple(turns), stop_reason="done").to_json()


@pytest.fixture
def history(tmp_path):
    with History.open(tmp_path / "history.db") as opened:
        yield opened


@pytest.fixture
def run(history):
    """Trials of three tasks that fail where they cancel; the last task never passes."""
    started = history.start_run("support")
    for place in range(3 * TRIALS):
        task, trial = f"task-{place // TRIALS}", place % TRIALS
        passed = trial % 3 > 0 and task != "task-2"
        outcome = Outcome.PASSED if passed else Outcome.FAILED
        ended = Trial(system="bot", task=task, trial=trial, outcome=outcome, cost=0.1 + trial)
        history.add_trials(started, [ended], first_sequence=place)
        tools = ("look", "refund") if passed else ("look", "cancel")
        history.add_transcript(started.id, ended, said(task, *tools))
    return history.finish_run(started)


def test_what_is_kept_is_what_would_be_computed_anew(history, run, tmp_path, monkeypatch):
    anew = explain(history.trials(run), all_transcripts(history, run))
    assert anew.causes
    assert anew.pairs
    monkeypatch.setattr(stored_runs, "KEPT_IN_COLUMNS", 1)
    keep_explanation(run.key, tmp_path / "history.db")
    assert history.kept(run, "why", repr(numbers_basis(run))) is not None
    kept = explain_run(history, run)
    assert kept.examples == ()  # pages of a store lead to the page of a trial
    for each in fields(anew):
        if each.name == "examples":
            continue
        assert getattr(kept, each.name) == getattr(anew, each.name), each.name


def test_results_of_another_tool_keep_it_when_they_are_added(tmp_path):
    rows = [
        {"task": f"t{i % 25}", "trial": i // 25, "passed": i % 3 > 0, "said": said("x", "look")}
        for i in range(200)
    ]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, rows)))
    store = tmp_path / "history.db"
    command = ["history", "add", str(tmp_path / "log.jsonl"), "--transcript-column", "said"]
    done = CliRunner().invoke(main, [*command, "--store", str(store)])
    assert done.exit_code == 0, done.output
    with History.open(store, read_only=True) as history:
        (added,) = history.runs()
        assert history.kept(added, "why", repr(numbers_basis(added))) is not None
        assert explain_run(history, added).counts.failed == sum(not row["passed"] for row in rows)


def test_of_very_many_trials_some_are_compared_and_all_are_counted(history, run, monkeypatch):
    monkeypatch.setattr(stored_runs, "MOST_READ", 10)
    monkeypatch.setattr(stored_runs, "MOST_COMPARED", 6)
    counts = explain_run(history, run).counts
    assert counts.runs == run.trials
    assert 0 < counts.unread < run.trials
    assert counts.without_transcript == 0


def test_a_run_keeps_what_was_first_said_in_each_task(history, run):
    asked = {("bot", f"task-{i}"): f"Please refund task-{i}" for i in range(3)}
    assert requests_of(history, run) == asked
    assert history.kept(run, "requests", repr(numbers_basis(run))) is not None
    assert requests_of(history, run) == asked
