"""What logs say, on the page, in the history and in the local site."""

import base64
import html
import json
import re
import zlib
from pathlib import Path

import pytest

from passhat.cli.serve import _store
from passhat.history import History, queries

LOG = Path(__file__).parents[1] / "samples" / "inspect" / "flaky_5x5_two_scorers_1error.eval"
MODEL, TASK = "mockllm/model", "flaky_task/t4"


def shown(path):
    """The transcripts of a page in words: those that are written out, and those that are packed."""
    page = path.read_text()
    written = re.findall(
        r'<article [^>]* data-transcript="">.*?<div class="said">(.*?)</div></article>', page, re.S
    )
    packed = []
    if 'id="transcripts">' in page:
        for block in json.loads(page.split('id="transcripts">')[1].split("</script>")[0]):
            packed += json.loads(zlib.decompress(base64.b64decode(block), wbits=-zlib.MAX_WBITS))
    return [html.unescape(re.sub(r"<[^>]*>", " ", one)) for one in (*written, *packed)]


def test_a_log_becomes_a_page_with_what_was_said_in_it(call, here):
    told = call("report", str(LOG), "--transcripts", "-o", "report.html")
    assert told.exit_code == 0, told.output
    said = shown(here / "report.html")
    assert len(said) == 25
    assert all(re.search(r"User\s.*say ok \d.*Agent", one, re.S) for one in said)
    page = (here / "report.html").read_text()
    # Inspect counts its epochs from 1, and so do we.
    assert page.count("Trial #1 <span") == page.count("Trial #5 <span") == 5
    assert "Trial #6" not in page
    assert call("report", str(LOG), "-o", "without.html").exit_code == 0
    assert shown(here / "without.html") == []


def test_the_transcripts_of_a_page_are_those_of_the_agents_on_it(call, here):
    rows = "agent,task,passed,answer\na,t,1,of a\nb,t,0,of b\n"
    (here / "two.csv").write_text(rows)
    call("report", "two.csv", "--only", "b", "--transcripts", "-o", "report.html")
    (said,) = shown(here / "report.html")
    assert "of b" in said


@pytest.mark.slow("fills a page to its limit: 12,000 transcripts")
def test_more_than_a_page_can_hold_is_told_on_it_and_on_standard_error(call, here):
    rows = (f"t{n % 50},{n % 3},{'x' * 2_100}" for n in range(12_000))
    (here / "many.csv").write_text("task,passed,answer\n" + "\n".join(rows).replace(",2,", ",0,"))
    told = call("report", "many.csv", "--transcripts", "-o", "report.html")
    assert told.exit_code == 0, told.output
    count = len(shown(here / "report.html"))
    note = f"Of 12,000 transcripts this page leaves out {12_000 - count:,}"
    assert 9_000 < count < 12_000
    assert note in told.stderr
    assert "`passhat view` shows them all" in told.stderr
    assert note in (here / "report.html").read_text()
    assert (here / "report.html").stat().st_size < 8_000_000


def test_a_file_without_transcripts_says_so_on_its_page(call, here):
    (here / "plain.csv").write_text("task,passed\na,1\na,0\n")
    assert call("report", "plain.csv", "--transcripts", "-o", "report.html").exit_code == 0
    assert "this file holds no transcripts" in (here / "report.html").read_text()


def test_naming_the_column_of_transcripts_asks_for_them(call, here):
    (here / "said.csv").write_text("task,passed,words\na,1,It went well.\n")
    asked = ("report", "said.csv", "--transcript-column", "words", "-o", "report.html")
    assert call(*asked).exit_code == 0
    (said,) = shown(here / "report.html")
    assert "It went well." in said


@pytest.mark.parametrize("command", ["report", "history"])
def test_transcripts_without_a_page_are_not_asked_for_in_silence(call, here, command):
    call("history", "add", str(LOG))
    asked = ("report", str(LOG)) if command == "report" else ("history", "show", "latest")
    told = call(*asked, "--transcripts")
    assert told.exit_code == 0
    assert "transcripts are shown on a page: add -o report.html" in told.stderr


def test_history_keeps_what_a_log_says_unless_it_is_told_not_to(call, here):
    kept = call("history", "add", str(LOG), "--suite", "with")
    assert "stored 25 trials" in kept.stderr
    assert "with 25 transcripts" in kept.stderr
    assert "transcripts" not in call("history", "add", str(LOG), "--no-transcripts").stderr
    with History.open(here / ".passhat" / "history.db", read_only=True) as history:
        bare, full = history.runs()
        assert queries.all_transcripts(history, bare) == {}
        assert len(queries.all_transcripts(history, full)) == 25
        said = history.transcript(full, MODEL, TASK, 5)
    assert json.loads(said)["answer"] == "wrong"


def test_a_kept_log_gives_the_same_page_as_the_log_itself(call, here):
    call("history", "add", str(LOG))
    call("history", "show", "latest", "--transcripts", "-o", "kept.html")
    call("report", str(LOG), "--transcripts", "-o", "read.html")
    assert sorted(shown(here / "kept.html")) == sorted(shown(here / "read.html"))


def test_a_site_over_logs_has_their_transcripts_unless_it_is_told_not_to(here):
    from contextlib import ExitStack

    from passhat.cli.reading import ReadingOptions

    reading = ReadingOptions(paths=(str(LOG),), format=None, duplicates="error", columns={})
    for wanted in (True, False):
        with ExitStack() as stack:
            store, _ = _store(reading, stack, default="", transcripts=wanted)
            with History.open(store, read_only=True) as history:
                (run,) = history.runs()
                trials = queries.page_of_trials(history, run, MODEL, TASK)
                assert [kept.transcript for kept in trials] == [wanted] * 5
                assert queries.first_trial(history, run) == 1
