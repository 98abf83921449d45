"""Labels given on a page: one trial at a time, the verdict hidden, and writes that are guarded."""

import json
import re
from html import unescape
from urllib.parse import urlencode

import pytest
from starlette.testclient import TestClient

from passhat.dashboard import server
from passhat.dashboard.responses import Access, Address
from passhat.history import History
from passhat.journeys.overview import ReportCache
from passhat.records import Outcome, Trial

FORM = {"content-type": "application/x-www-form-urlencoded"}
TASK = "t <b>&"


@pytest.fixture
def judged(tmp_path):
    """A run of twelve tasks with five trials each, two of three passed by the judge."""
    path = tmp_path / "history.db"
    trials = [
        Trial(
            system="agent",
            task=f"{TASK} {i // 5:02}",
            trial=i % 5,
            outcome=Outcome.PASSED if i % 3 else Outcome.FAILED,
        )
        for i in range(60)
    ]
    check = {"target": "answer", "matcher": "judge", "score": 1.0, "weight": 1.0}
    with History.open(path) as history:
        run = history.start_run("support")
        history.add_trials(run, trials)
        with history.writing():
            for i, trial in enumerate(trials):
                checks = [{**check, "message": "judged by the model"}]
                said = {"answer": f"said {i} <b>x</b>", "checks": checks}
                history.add_transcript(run.id, trial, json.dumps(said))
        history.finish_run(run)
    return path


def fields(text):
    found = re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', text)
    return {name: unescape(value) for name, value in found}


def following(text):
    """Where the page of a trial that was labelled leads."""
    return unescape(re.search(r'accesskey="j" href="([^"]+)"', text)[1])


def labels_in(path):
    with History.open(path, read_only=True) as history:
        return history.labels(history.find_run("latest"))


def post(site, data, **headers):
    given = {**FORM, **site.cookie, "origin": site.origin, **headers}
    given = {name: value for name, value in given.items() if value is not None}
    return site.ask("/run/latest/label", method="POST", headers=given, body=urlencode(data))


def test_a_page_asks_for_one_trial_hides_its_verdict_and_keeps_the_answer_at_once(
    serve_site, judged
):
    site = serve_site(judged)
    assert "Your name" in site.get("/run/latest/label")[2]
    assert "Label trials" in site.get("/run/latest")[2]
    status, _, text = site.get("/run/latest/label?by=ann&budget=4")
    assert status == 200
    assert "4 of 4 left for ann" in text
    assert "said " in text
    assert "<b>" not in text
    assert "judged by the model" not in text
    assert not re.search(r"udge (passed|failed)", text)
    for left in (3, 2, 1, 0):
        status, headers, _ = post(site, {**fields(text), "passed": "yes", "note": "seen"})
        assert status == 303
        asked = fields(text)
        text = site.get(headers["location"])[2]
        # The same trial, now with what the judge says of it; the next one is asked for by itself.
        assert re.search(r"The judge (passed|failed) it", text)
        assert f"{asked['task']} #{int(asked['trial']) + 1}</h1>" in unescape(text)
        assert "judged by the model" in text
        assert f"{left} of 4 left" in text
        assert re.search(rf"agree on \d of {4 - left} trial", text)
        assert 'name="passed"' not in text
        text = site.get(following(text))[2]
        assert not re.search(r"udge (passed|failed)|judged by the model", text)
        assert (f"{left} of 4 left" if left else "Nothing left to label") in text
    said = [one for own in labels_in(judged).values() for one in own]
    assert [(one.passed, one.by, one.note, one.chosen) for one in said] == [
        (True, "ann", "seen", "verdict")
    ] * 4
    assert all(one.chance for one in said)


def queue(text):
    """The marks of the queue, and the places that are open and current."""
    items = re.findall(r'<li><a href="[^"]+"( aria-current="true")?><span[^>]*>(.)</span>', text)
    return "".join(mark for _, mark in items), [i for i, (here, _) in enumerate(items) if here]


def test_the_queue_has_every_trial_and_the_last_label_can_be_taken_back(serve_site, judged):
    site = serve_site(judged)
    text = site.get("/run/latest/label?by=ann&budget=4")[2]
    assert queue(text) == ("····", [0])
    assert 'name="undo"' not in text
    first = fields(text)["task"], fields(text)["trial"]
    text = site.get(post(site, {**fields(text), "passed": "yes"})[1]["location"])[2]
    assert queue(text) == ("✓···", [0])
    text = site.get(following(text))[2]
    skipped = unescape(re.search(r'accesskey="s" href="([^"]+)"', text)[1])
    text = site.get(skipped)[2]
    assert queue(text) == ("✓···", [2])
    text = site.get(post(site, {**fields(text), "passed": "no"})[1]["location"])[2]
    assert queue(text) == ("✓·✕·", [2])
    assert re.search(r"agree on \d of 2 trials", text)
    assert sum(map(int, re.findall(r'<td class="n">(\d)</td>', text))) == 2
    before = unescape(re.search(r'accesskey="k" href="([^"]+)"', text)[1])
    assert queue(site.get(before)[2])[1] == [1]
    for left in (1, 0, 0):
        text = site.get(post(site, {**fields(text), "undo": "yes"})[1]["location"])[2]
        assert len(labels_in(judged)) == left
    assert queue(text) == ("····", [0])
    assert (fields(text)["task"], fields(text)["trial"]) == first
    assert not re.search(r"udge (passed|failed)|judged by the model", text)


def test_nobody_takes_back_the_label_of_another_person(serve_site, judged):
    site = serve_site(judged)
    text = site.get("/run/latest/label?by=ann&budget=4")[2]
    post(site, {**fields(text), "passed": "yes"})
    asked = fields(site.get("/run/latest/label?by=ben&budget=4")[2])
    assert post(site, {**asked, "undo": "yes"})[0] == 303
    assert post(site, {**asked, "undo": "yes", "token": "x"})[0] == 403
    assert len(labels_in(judged)) == 1


def test_a_report_that_was_shown_before_has_the_labels_given_since(serve_site, judged):
    site = serve_site(judged)
    assert "orrected with" not in site.get("/run/latest")[2]
    text = site.get("/run/latest/label?by=ann&budget=40")[2]
    for _ in range(40):
        _, headers, _ = post(site, {**fields(text), "passed": "no"})
        text = site.get(following(site.get(headers["location"])[2]))[2]
    assert "Corrected with 40 labels of people" in site.get("/run/latest")[2]


def test_nothing_is_kept_that_did_not_come_from_a_page_of_ours(serve_site, judged):
    site = serve_site(judged)
    sent = {**fields(site.get("/run/latest/label?by=ann")[2]), "passed": "yes"}
    assert post(site, sent, origin="http://evil.example")[0] == 403
    assert post(site, sent, origin=None)[0] == 403
    assert post(site, sent, **{"sec-fetch-site": "cross-site"})[0] == 403
    assert post(site, sent, cookie=None)[0] == 401
    assert post(site, sent, cookie=f"passhat-{site.port}=wrong")[0] == 401
    for wrong in ("x", site.access.session, ""):
        assert post(site, {**sent, "token": wrong})[0] == 403
    assert post(site, {**sent, "note": "x" * 5_000})[0] == 403
    assert post(site, {**sent, "trial": "99"})[0] == 400
    assert post(site, {**sent, "passed": "perhaps"})[0] == 400
    assert post(site, {**sent, "budget": "9" * 40})[0] == 400
    assert post(site, {**sent, "by": " "})[0] == 400
    assert labels_in(judged) == {}
    headers = {**FORM, **site.cookie, "origin": site.origin}
    for path in ("/run/latest", "/run/latest/label/x", "/label", "/"):
        assert site.ask(path, method="POST", headers=headers, body=urlencode(sent))[0] == 405
    for method in ("PUT", "DELETE", "PATCH"):
        assert site.ask("/run/latest/label", method=method, headers=headers)[0] == 405
    assert post(site, sent)[0] == 303
    assert len(labels_in(judged)) == 1


def test_a_second_person_reads_one_in_five_again(serve_site, judged):
    site = serve_site(judged)
    text = site.get("/run/latest/label?by=ann&budget=10")[2]
    for _ in range(10):
        text = site.get(post(site, {**fields(text), "passed": "yes"})[1]["location"])[2]
        text = site.get(following(text))[2]
    assert "2 of 10 left for ben" in site.get("/run/latest/label?by=ben&budget=10")[2]


def test_logs_that_are_only_looked_at_are_not_labelled(judged):
    access, address = Access(), Address(host="127.0.0.1", port=80)
    reports = ReportCache(judged, title="logs", writable=False)
    site = server._build_app(reports, access=access, address=address)
    client = TestClient(site, base_url="http://127.0.0.1", cookies={"passhat-80": access.session})
    assert "are only read" in client.get("/run/latest/label").text
    assert "Label trials" not in client.get("/run/latest").text
