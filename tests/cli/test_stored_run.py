"""A run of the history, reported as a page with what was said in it."""

import html
import json
import re
from dataclasses import replace

import pytest

import passhat
from passhat.cli.output import Output
from passhat.cli.run_output import show_run
from passhat.history import Checkout, History
from passhat.records import Outcome, Trial


@pytest.fixture
def store(here):
    kept = json.dumps({"messages": [{"role": "user", "text": "Hi <b>"}], "stop_reason": "done"})
    with History.open(here / ".passhat" / "history.db") as history:
        for i in range(2):
            run = history.start_run("suite", started=f"2026-11-0{i + 1}")
            trials = [
                Trial(system=system, task="t", trial=n, outcome=Outcome.PASSED if i else Outcome(n))
                for system in ("a", "b")
                for n in range(2)
            ]
            history.add_trials(run, trials)
            with history.writing():
                history.add_transcript(run.id, trials[0], kept)
            history.tag(run, f"v{i}")
            history.finish_run(run)
    return ".passhat/history.db"


def written(path):
    """The transcripts that are written out on a page, as words."""
    runs = re.findall(
        r'<article [^>]* data-transcript="">.*?<div class="said">(.*?)</div></article>',
        path.read_text(),
        re.DOTALL,
    )
    return [" ".join(html.unescape(re.sub("<[^>]*>", " ", run)).split()) for run in runs]


def test_a_kept_run_becomes_a_page_with_or_without_what_was_said(call, here, store):
    with_them = ("history", "show", "v1", "-o", "with.html", "--transcripts")
    assert call(*with_them).exit_code == 0
    assert written(here / "with.html") == ["stopped with done User 1 Hi <b>"]
    assert call("history", "show", "v1", "-o", "without.html").exit_code == 0
    assert written(here / "without.html") == []


def test_report_reads_one_run_of_a_store_and_says_what_history_says(call, here, store):
    told = call("report", store, "--run", "v0")
    assert told.exit_code == 0, told.output
    # Commands that are advised name the run as it was named.
    shown = call("history", "show", "v0").stdout
    assert told.stdout.replace(".passhat/history.db --run v0", "v0") == shown
    shown = call("history", "show", "latest").stdout
    assert call("report", store).stdout.replace(".passhat/history.db", "latest") == shown
    call("report", store, "--run", "v1", "--transcripts", "-o", "report.html")
    call("history", "show", "v1", "--transcripts", "-o", "shown.html")
    page, shown = (
        (here / name).read_text().partition("<body")[2] for name in ("report.html", "shown.html")
    )
    assert page.replace(".passhat/<wbr>history.db --run v1", "v1") == shown


def test_one_agent_of_a_kept_run_can_be_asked_for(call, store):
    answer = json.loads(call("report", store, "--only", "b", "--json").stdout)
    assert [system["name"] for system in answer["systems"]] == ["b"]


def test_a_run_that_is_not_there_is_named(call, store):
    told = call("report", store, "--run", "nothing")
    assert told.exit_code == 2
    assert "no run, tag, branch or commit 'nothing'" in told.output


def test_a_log_is_kept_under_its_own_name_and_the_way_to_one_suite_is_said(call, here):
    (here / "monday.csv").write_text("task,trial,passed\nt,1,1\nt,2,0\n")
    told = call("history", "add", "monday.csv")
    assert told.stderr.startswith("stored 2 trials as run ")
    assert " of suite monday" in told.stderr
    assert "--suite NAME" in told.stderr
    named = call("history", "add", "monday.csv", "--suite", "support")
    assert " of suite support" in named.stderr
    assert "--suite NAME" not in named.stderr
    assert "  passhat trend monday\n  passhat trend support\n" in call("trend").stderr


def test_a_trend_of_a_suite_that_is_not_there_lists_those_that_are(call, store):
    told = call("trend", "NOPE")
    assert told.exit_code == 2
    assert "no stored run of NOPE; its suites: suite" in told.stderr


def test_a_store_without_runs_says_how_to_get_some(call, here):
    History.open(here / ".passhat" / "history.db").close()
    assert "it has no run yet: `passhat run`" in call("trend").stderr


def test_the_store_may_be_named_before_or_behind_what_is_done_with_it(call, here, store):
    (here / store).rename(here / "runs.db")
    before = call("history", "--store", "runs.db", "list")
    behind = call("history", "list", "--store", "runs.db")
    assert before.exit_code == behind.exit_code == 0
    assert before.stdout == behind.stdout
    for words in (
        ("show", "v1"),
        ("export", "v1", "v1.jsonl"),
        ("tag", "v1", "best"),
        ("add", "v1.jsonl"),
        ("delete", "best", "--yes"),
        ("vacuum",),
    ):
        done = call("history", *words, "--store", "runs.db")
        assert done.exit_code == 0, done.output
    assert not (here / ".passhat" / "history.db").exists()


def test_the_space_of_deleted_runs_is_freed_in_a_file_and_on_a_server(call, store, new_database):
    address = new_database()
    History.open(address).close()
    for where in (store, address):
        done = call("history", "vacuum", "--store", where)
        assert done.exit_code == 0, done.output
        assert done.stderr.startswith("freed ")


def test_that_the_newest_of_several_runs_of_a_commit_is_taken_is_said(call, here):
    with History.open(here / ".passhat" / "history.db") as history:
        for day in (1, 2):
            at = Checkout(commit="1f2e3d4")
            run = history.start_run("suite", checkout=at, started=f"2026-11-0{day}")
            trials = [Trial(system="a", task="t", trial=n, outcome=Outcome(1)) for n in range(day)]
            history.add_trials(run, trials)
    for words in (
        ("history", "show", "1f2e3d4"),
        ("report", ".passhat/history.db", "--run", "1f2e"),
    ):
        assert f"2 runs of commit 1f2e3d4; taken: the newest, {run.key}" in call(*words).stderr
        assert "taken" not in call(*words, "-q").stderr


def test_who_is_profiled_must_be_said_where_there_are_several(call, store):
    told = call("profile", store)
    assert told.exit_code == 2
    assert "a profile is of one agent; there are 2: a, b. Name one with --only AGENT" in told.stderr


@pytest.fixture
def two_days(here):
    with History.open(here / ".passhat" / "history.db") as history:
        for day, passed in ((1, 2), (2, 6)):
            run = history.start_run("suite", started=f"2026-11-0{day}")
            trials = [
                Trial(system=name, task=f"t{i}", trial=n, outcome=Outcome(int(n < passed)))
                for name in ("a", "b")
                for i in range(8)
                for n in range(8)
            ]
            history.add_trials(run, trials)
            history.finish_run(run)
    return ".passhat/history.db"


def test_the_page_of_a_kept_run_says_what_changed_since_the_run_before(call, here, two_days):
    commands = (
        ("report", "latest", "--only", "a"),
        ("report", two_days, "--only", "a"),
    )
    for command in commands:
        assert call(*command, "-o", "page.html").exit_code == 0
        page = (here / "page.html").read_text()
        assert re.search(
            r"Against the run (of 1 Nov \(\w+\) alone|before): [^<]*(higher|rose)", page
        )


def test_the_tag_decides_what_a_kept_run_is_compared_with(call, here, two_days):
    call("history", "tag", "latest", "baseline")
    call("report", "latest", "--only", "a", "-o", "page.html")
    assert " alone: " not in (here / "page.html").read_text()
    with History.open(here / two_days) as history:
        first = history.runs()[-1]
    call("history", "tag", first.key, "baseline")
    call("report", "latest", "--only", "a", "-o", "page.html")
    assert re.search(
        r"Against the baseline of 1 Nov \(\w+\) alone: ", (here / "page.html").read_text()
    )


def test_results_in_a_file_have_no_baseline(call, here):
    (here / "a.csv").write_text("task,passed\nt,1\nt,0\n")
    assert call("report", "a.csv", "-o", "page.html").exit_code == 0
    assert "Against" not in (here / "page.html").read_text()


def test_the_page_of_a_run_is_written_even_if_its_store_refuses_us(here, capsys):
    pytest.importorskip("psycopg")
    suite = here / "suite.yml"
    suite.write_text(
        "systems: [{name: a, model: scripted, script: [{answer: sure}]}]\n"
        "tasks: [{name: t, prompt: hi, expect: [{contains: sure}]}]\n"
    )
    stored = passhat.run(suite, store="history.db")
    # An answer has the address of its store without the password.
    answer = replace(stored, store="postgresql://127.0.0.1:9/evals")
    output = Output(format=None, paths_out=("page.html",), quiet=False)
    assert show_run(lambda on_event: answer, output) == 0
    assert (here / "page.html").exists()
    said = capsys.readouterr().err
    assert "the run is not compared with those before it: " in said
    assert "127.0.0.1:9" in said


def test_the_page_of_a_run_uses_the_address_that_was_given_and_not_the_one_that_is_shown(here):
    suite = here / "suite.yml"
    suite.write_text(
        "defaults: {runs: 3}\n"
        "systems: [{name: a, model: scripted, script: [{answer: sure}]}]\n"
        "tasks: [{name: t, prompt: hi, expect: [{contains: sure}]}]\n"
    )
    stored = [passhat.run(suite, store="history.db") for _ in range(2)][1]
    answer = replace(stored, store="postgresql://127.0.0.1:9/evals")
    output = Output(format=None, paths_out=("page.html",), quiet=True)
    assert show_run(lambda on_event: answer, output, store="history.db") == 0
    assert "Against the run of " in (here / "page.html").read_text()
