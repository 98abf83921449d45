"""A stored trial as cards, with the trials beside it, and beside a run that passed."""

import json

import pytest

from passhat.history import History
from passhat.records import Outcome, Trial
from passhat.records.transcript import Call, Check, Transcript, Turn


def said(*tools, check=1.0):
    turns = [Turn(role="user", text="Refund me")]
    for i, tool in enumerate(tools):
        call = Call(name=tool, arguments=json.dumps({"order": "W1"}), id=str(i))
        turns += [
            Turn(role="assistant", calls=(call,)),
            Turn(role="tool", text='{"status": "ok"}', call_id=str(i)),
        ]
    checks = (Check(target="answer", matcher="contains", score=check, message="says so"),)
    return Transcript(messages=tuple(turns), checks=checks, stop_reason="done").to_json()


@pytest.fixture
def site(serve_site, tmp_path):
    path = tmp_path / "history.db"
    with History.open(path) as history:
        run = history.start_run("support")
        for number, (outcome, tools) in enumerate(
            [
                (Outcome.FAILED, ["cancel"]),
                (Outcome.PASSED, ["look", "refund"]),
                (Outcome.FAILED, ["look", "cancel"]),
            ]
        ):
            trial = Trial(system="bot", task="a", trial=number, outcome=outcome)
            history.add_trials(run, [trial], first_sequence=number)
            history.add_transcript(run.id, trial, said(*tools, check=float(outcome)))
        alone = Trial(system="bot", task="b", trial=0, outcome=Outcome.FAILED)
        history.add_trials(run, [alone], first_sequence=9)
        history.add_transcript(run.id, alone, said("cancel", check=0.0))
        history.finish_run(run)
    found = serve_site(path)
    return found, run.key


def test_pages_of_a_run_and_of_its_tasks_quote_what_was_asked(site):
    found, key = site
    for place in (f"/run/{key}", f"/run/{key}/task?system=bot&task=a"):
        assert "“Refund me”" in found.get(place)[2]


def test_a_trial_is_shown_as_cards_with_its_failed_check_on_top(site):
    found, key = site
    status, _, page = found.get(f"/run/{key}/trial?system=bot&task=a&trial=2")
    assert status == 200
    assert page.index("✕ failed") < page.index('class="card user"')
    assert page.count('class="card call"') == 2
    assert "stopped with done" in page


def test_a_trial_leads_to_those_beside_it_and_to_one_that_passed(site):
    found, key = site
    page = found.get(f"/run/{key}/trial?system=bot&task=a&trial=1")[2]
    assert "Previous trial" in page
    assert "Next trial" in page
    assert "Beside a trial that passed" not in page
    page = found.get(f"/run/{key}/trial?system=bot&task=a&trial=0")[2]
    assert "Previous trial" not in page
    assert f"/run/{key}/diff?system=bot&amp;task=a&amp;trial=0" in page


def test_a_trial_beside_one_that_passed_tells_where_they_part(site):
    found, key = site
    status, headers, page = found.get(f"/run/{key}/diff?system=bot&task=a&trial=2")
    assert status == 200
    assert "Task a: trial 3 (failed) called cancel, trial 2 (passed) refund." in page
    assert "Here they first differ" in page
    assert "content-security-policy" in headers


def test_where_no_other_run_passed_it_says_so(site):
    found, key = site
    status, _, page = found.get(f"/run/{key}/diff?system=bot&task=b&trial=0")
    assert 400 <= status < 500
    assert "no other trial of task b passed" in page
