"""Tags, notes, names and deletions on a run's page: each guarded, and kept with who did it."""

import json
import re
import threading
from html import unescape
from urllib.parse import urlencode

import pytest
from starlette.testclient import TestClient

from passhat.analysis.planning.simulate import simulate
from passhat.cli import main
from passhat.dashboard import server
from passhat.dashboard.responses import Access, Address
from passhat.errors import HistoryError, InputError
from passhat.history import History
from passhat.history.runs import this_person
from passhat.ingest import read_trials
from passhat.journeys.overview import ReportCache

FORM = {"content-type": "application/x-www-form-urlencoded"}
HOSTILE = "</title>\"><script>hit()</script>{{7*7}}'"
TOKEN = "a-token-that-the-user-chose"


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path):
    """A store with one run of a suite, as a file and in PostgreSQL."""
    path = tmp_path / "history.db"
    if request.param == "postgres":
        path = request.getfixturevalue("new_database")()
    return filled(path)


@pytest.fixture
def store(tmp_path):
    return filled(tmp_path / "history.db")


def filled(path):
    with History.open(path) as history:
        run = history.start_run("support")
        history.add_trials(run, simulate(tasks=4, runs=3, seed=1))
        history.finish_run(run)
    return path


def newest(path):
    with History.open(path, read_only=True) as history:
        return history.find_run("latest")


def log_of(path, key=None):
    with History.open(path, read_only=True) as history:
        return [(one.person, one.action, one.text) for one in history.changes(key)]


def token_of(site, key):
    return re.search(r'name="token" value="(\w+)"', site.get(f"/run/{key}")[2])[1]


def send(site, key, data, **headers):
    given = {**FORM, **site.cookie, "origin": site.origin, **headers}
    given = {name: value for name, value in given.items() if value is not None}
    data = {"token": site.access.form_token, **data}
    return site.ask(f"/run/{key}/change", method="POST", headers=given, body=urlencode(data))


def test_a_person_tags_notes_renames_and_deletes_and_the_page_says_who(serve_site, place):
    site, run, me = serve_site(place), newest(place), this_person()
    token = token_of(site, run.key)
    for data in (
        {"do": "tag", "text": "baseline"},
        {"do": "tag", "text": "v1"},
        {"do": "untag", "text": "baseline"},
        {"do": "note", "text": "the proxy was\r\n down"},
        {"do": "rename", "text": "shop", "was": "support"},
    ):
        status, headers, _ = send(site, run.key, {**data, "token": token})
        assert (status, headers["location"]) == (303, f"/run/{run.key}")
    changed = newest(place)
    assert (changed.tags, changed.suite, changed.trials) == (("v1",), "shop", 12)
    text = unescape(site.get(f"/run/{run.key}")[2])
    for said in ("tagged it v1", "removed the tag baseline", "the proxy was down",
                 "renamed its suite: support to shop"):  # fmt: skip
        assert said in text
    assert f"</time> {me}" in text
    with History.open(place) as history:  # what a checksum seals is sealed again
        assert [error for _, error in history.verify_all()] == [None]
    assert send(site, run.key, {"do": "delete", "text": "shop"})[0] == 400
    assert send(site, run.key, {"do": "delete", "text": run.key})[0] == 400  # its name is v1 now
    status, headers, _ = send(site, run.key, {"do": "delete", "text": "v1"})
    assert (status, headers["location"]) == (303, "/runs?suite=shop")
    assert site.get(f"/run/{run.key}")[0] == 404
    assert log_of(place)[0] == (me, "delete", "shop, 12 trials")
    assert "note" not in [action for _, action, _ in log_of(place, run.key)]  # gone with its run


def test_nothing_changes_by_a_form_that_is_not_from_a_page_of_ours(serve_site, store):
    site, run = serve_site(store), newest(store)
    sent = {"do": "tag", "text": "mine"}
    assert send(site, run.key, sent, origin="http://evil.example")[0] == 403
    assert send(site, run.key, sent, origin=None)[0] == 403
    assert send(site, run.key, sent, **{"sec-fetch-site": "cross-site"})[0] == 403
    assert send(site, run.key, sent, cookie=None)[0] == 401
    for token in ("", "x", site.access.session):
        assert send(site, run.key, {**sent, "token": token})[0] == 403
    assert site.get(f"/run/{run.key}/change")[0] == 405
    assert send(site, run.key, {**sent, "text": "x" * 30_000})[0] == 403
    assert (newest(store).tags, log_of(store)) == ((), [])


@pytest.mark.parametrize(
    ("data", "status"),
    [
        ({"do": "tag", "text": " "}, 400),
        ({"do": "tag", "text": "latest"}, 400),
        ({"do": "tag", "text": "two\x1ftags"}, 400),
        ({"do": "tag", "text": "x" * 201}, 400),
        ({"do": "untag", "text": "never given"}, 404),
        ({"do": "note", "text": "x" * 2_001}, 400),
        ({"do": "rename", "text": "a\nb", "was": "support"}, 400),
        ({"do": "rename", "text": "b", "was": "what it never was"}, 404),
        ({"do": "delete", "text": ""}, 400),
        ({"do": "drop", "text": "x"}, 400),
        ({}, 400),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_reason_and_changes_nothing(
    serve_site, store, data, status
):
    site, run = serve_site(store), newest(store)
    assert send(site, run.key, data)[0] == status
    assert (newest(store).tags, newest(store).suite, log_of(store)) == ((), "support", [])


def test_a_run_that_is_not_there_or_is_called_by_a_moving_name_is_left_alone(serve_site, store):
    site = serve_site(store)
    assert send(site, "ffffffff", {"do": "note", "text": "x"})[0] == 404
    assert send(site, "latest", {"do": "note", "text": "x"})[0] == 400
    assert log_of(store) == []


def test_a_hostile_name_is_text_wherever_it_is_shown(serve_site, store):
    site, run = serve_site(store), newest(store)
    for data in (
        {"do": "tag", "text": HOSTILE},
        {"do": "note", "text": HOSTILE},
        {"do": "rename", "text": HOSTILE, "was": "support"},
    ):
        assert send(site, run.key, data)[0] == 303
    pages = ["/", "/runs", f"/run/{run.key}", "/trend", "/compare", f"/compare?run={run.key}",
             "/search?q=hit", f"/run/{run.key}/live", f"/run/{run.key}/page"]  # fmt: skip
    for path in pages:
        status, _, text = site.get(path)
        assert status == 200
        assert "<script>hit" not in text
        assert "49" not in re.findall(r"</script>(\d+)", unescape(text))
    assert send(site, run.key, {"do": "delete", "text": HOSTILE})[0] == 303
    assert "<script>hit" not in site.get("/runs")[2]


def test_of_two_people_at_once_one_wins_and_both_are_told(place, serve_site):
    site, run = serve_site(place), newest(place)
    answers = []

    def rename(name):
        answers.append(send(site, run.key, {"do": "rename", "text": name, "was": "support"})[0])

    people = [threading.Thread(target=rename, args=(name,)) for name in ("a", "b", "c", "d")]
    for one in people:
        one.start()
    for one in people:
        one.join()
    assert sorted(answers) == [303, 404, 404, 404]
    assert [action for _, action, _ in log_of(place)] == ["rename"]
    assert log_of(place)[0][2] == f"support to {newest(place).suite}"


def test_what_comes_too_late_for_a_deleted_run_is_refused(place):
    run = newest(place)
    with History.open(place) as one, History.open(place) as other:
        one.delete(run, by="ann")
        for late in (
            lambda: other.tag(run, "x", by="ben"),
            lambda: other.note(run, "x", by="ben"),
            lambda: other.rename(run, "x", by="ben"),
            lambda: other.delete(run, by="ben"),
        ):
            with pytest.raises(HistoryError, match="deleted meanwhile"):
                late()
    assert log_of(place) == [("ann", "delete", "support, 12 trials")]


def test_a_run_in_progress_is_neither_deleted_nor_renamed(serve_site, tmp_path):
    path = tmp_path / "history.db"
    with History.open(path) as history:
        run = history.start_run("support")
    site = serve_site(path)
    assert "in progress" in send(site, run.key, {"do": "delete", "text": run.key})[2]
    assert send(site, run.key, {"do": "rename", "text": "x", "was": "support"})[0] == 400
    assert send(site, run.key, {"do": "note", "text": "slow today"})[0] == 303
    assert newest(path).suite == "support"


@pytest.mark.parametrize("change", ["delete", "rename"])
def test_a_run_that_is_resumed_while_somebody_types_is_neither_deleted_nor_renamed(
    tmp_path, change
):
    path = tmp_path / "history.db"
    with History.open(path) as seen, History.open(path) as other:
        run = seen.finish_run(seen.start_run("support"))
        other.reopen_run(run)
        with pytest.raises(InputError, match="in progress"):
            seen.delete(run, by="ann") if change == "delete" else seen.rename(run, "x", by="ann")
    assert newest(path).suite == "support"
    assert log_of(path) == []


def test_the_person_whom_a_proxy_names_is_kept_and_nobody_without_a_name_changes_anything(
    serve_site, store
):
    site, run = serve_site(store), newest(store)
    site.access.token, site.access.reusable = TOKEN, True
    site.access.person_header = "X-Forwarded-User"
    ann = {"cookie": None, "x-passhat-proxy": TOKEN, "x-forwarded-user": "ann@example.org"}
    assert send(site, run.key, {"do": "note", "text": "seen"}, **ann)[0] == 303
    assert log_of(store) == [("ann@example.org", "note", "seen")]
    # a token that several people share says nothing about who asks
    assert send(site, run.key, {"do": "note", "text": "me too"})[0] == 403
    assert "Delete this run" not in site.get(f"/run/{run.key}")[2]
    assert len(log_of(store)) == 1


def test_a_site_that_is_only_looked_at_takes_no_change(store):
    run, access, address = newest(store), Access(), Address(host="127.0.0.1", port=80)
    site = server._build_app(
        ReportCache(store, title="x", writable=False), access=access, address=address
    )
    client = TestClient(site, base_url="http://127.0.0.1", cookies={"passhat-80": access.session})
    data = {"token": access.form_token, "do": "tag", "text": "x"}
    told = client.post(f"/run/{run.key}/change", data=data, headers={"origin": "http://127.0.0.1"})
    assert (told.status_code, "--read-only" in told.text) == (400, True)
    assert "Delete this run" not in client.get(f"/run/{run.key}").text
    assert newest(store).tags == ()


def test_commands_do_the_same_and_the_page_shows_what_they_did(serve_site, store, invoke):
    run = newest(store)
    given = ("--store", str(store))
    for words in (("tag", run.key, "v1"), ("note", run.key, "by hand"), ("rename", "v1", "shop")):
        assert invoke("history", *words, *given).exit_code == 0
    said = serve_site(store).get(f"/run/{run.key}")[2]
    assert "by hand" in said
    assert "tagged it v1" in said
    lines = invoke("history", "log", *given).output.splitlines()
    assert [line.partition(": ")[2] for line in lines] == [
        "renamed its suite: support to shop", "by hand", "tagged it v1",
    ]  # fmt: skip
    assert invoke("history", "tag", "v1", "v1", "--remove", *given).exit_code == 0
    assert invoke("history", "delete", run.key, "--yes", *given).exit_code == 0
    told = json.loads(invoke("history", "log", run.key, "--json", *given).output)
    assert told["schema"] == "passhat.run-log/1"
    assert [(one["person"], one["action"]) for one in told["changes"]] == [
        (this_person(), action) for action in ("delete", "untag", "rename", "tag")
    ]
    assert invoke("history", "log", "ffff", *given).exit_code == 2


@pytest.fixture
def invoke():
    from click.testing import CliRunner

    return lambda *words: CliRunner().invoke(main, list(words))


def test_a_run_is_exported_and_saved_as_one_file(serve_site, store, tmp_path):
    site, run = serve_site(store), newest(store)
    with History.open(store, read_only=True) as history:
        trials = list(history.trials(run))
    for ending in ("csv", "jsonl"):
        _, headers, text = site.get(f"/run/{run.key}/export?as={ending}")
        assert headers["content-disposition"] == f'attachment; filename="run-{run.key}.{ending}"'
        (file := tmp_path / f"x.{ending}").write_text(text)
        assert [(t.task, t.trial, t.outcome) for t in read_trials(file)] == [
            (t.task, t.trial, t.outcome) for t in trials
        ]
    assert site.get(f"/run/{run.key}/export?as=exe")[0] == 400
    for more in ("", "?transcripts=1"):
        status, headers, text = site.get(f"/run/{run.key}/page{more}")
        assert (status, f"run-{run.key}.html" in headers["content-disposition"]) == (200, True)
        assert "passhat report" in text or "pass@1" in text
        # It needs no server; what closes a dialog sends nothing.
        text = text.replace('<form method="dialog">', "")
        for outside in ("<form", " action=", 'href="/', "src="):
            assert outside not in re.sub(r"<(script|style).*?</\1>", "", text, flags=re.DOTALL)


def test_the_files_of_a_trial_are_listed_on_its_page_and_saved_as_they_are(serve_site, store):
    from passhat.history.artefacts import add_artefacts

    odd = 'files/<b>"x".html'
    with History.open(store) as history:
        run = history.runs()[0]
        trial = next(iter(history.trials(run)))
        history.reopen_run(run)
        files = {"changes.diff": b"+ a", odd: b"<script>alert(1)</script>"}
        with history.writing():
            ids = history.name_ids([trial.system, trial.task])
            own = {(trial.system, trial.task, trial.trial): files}
            add_artefacts(history.database, run.id, own, ids)
        history.finish_run(run)
    site = serve_site(store)
    query = urlencode({"system": trial.system, "task": trial.task, "trial": trial.trial})
    page = site.get(f"/run/{run.key}/trial?{query}")[2]
    assert ">changes.diff</a>" in page
    assert "<b>" not in page.partition('id="files"')[2].partition("</ul>")[0]
    status, headers, text = site.get(f"/run/{run.key}/artefact?{query}&{urlencode({'name': odd})}")
    assert (status, text) == (200, "<script>alert(1)</script>")
    assert headers["content-type"] == "application/octet-stream"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-disposition"] == 'attachment; filename="b-x-.html"'
    assert site.get(f"/run/{run.key}/artefact?{query}&name=../x")[0] == 404
