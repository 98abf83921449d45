"""What people mistype is answered by what came and what to type instead, with exit code 2."""

import io
import zipfile

import pytest

from passhat.cli import Refusal

SUITE = (
    "name: small\n"
    "defaults: {model: scripted, runs: 2}\n"
    "agents: [{name: a, prompt: hi, expect: [{contains: x}], script: [{answer: x}]}]\n"
)


@pytest.fixture(autouse=True)
def files(here):
    """A table, a spreadsheet, a suite and an empty folder; no history."""
    (here / "s.csv").write_text("task,passed\na,1\na,0\nb,1\nb,1\n")
    rows = "".join(
        f"{who},t{t},{(t * i) % 3 > 0:d}\n" for who in "abc" for t in range(4) for i in range(4)
    )
    (here / "three.csv").write_text(f"agent,task,passed\n{rows}")
    (here / "suite.yml").write_text(SUITE)
    (here / "folder").mkdir()
    with zipfile.ZipFile(here / "s.ods", "w") as book:
        book.writestr("content.xml", "<office/>")


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("report", "name the results: a file, a folder, or a stored run such as latest"),
        (
            "report s.ods",
            "s.ods: is a spreadsheet that passhat cannot read; save it as .xlsx, or the",
        ),
        (
            "report s.csv --csv",
            "Print it with '--as csv', or write it to a file with '-o FILE.csv'",
        ),
        ("report s.csv --html x", "Print it with '--as html', or write it to a file with '-o FILE"),
        ("run --format json", "No such option '--format'. Did you mean '--as'?"),
        ("report s.csv --format csv", "to read a csv file, leave --format out; to print csv, use"),
        ("report s.csv --format html", "a tool that writes results; to print html, use --as html"),
        ("report s.csv --format tabel", "(did you mean table?), got 'tabel'"),
        ("report s.csv --as jsn", "Did you mean 'json'?"),
        ("schema reprot", "Did you mean 'report'?"),
        ("report s.csv --drop-rounds 9", "--drop-rounds must be among the 2 rounds, got '9'"),
        (
            "report s.csv --drop-rounds 1,2",
            "--drop-rounds must leave some of the 2 rounds, got '1, 2'",
        ),
        ("report s.csv --share x", "--share must be GROUP=SHARE, such as refunds=0.7, got 'x'"),
        ("report s.csv --confidence 95", "between 0 and 1, got 95; for 95 percent write 95%"),
        ("report s.csv -o no/x.html", "-o no/x.html: there is no folder no"),
        ("run --html no/x.html", "--html no/x.html: there is no folder no"),
        ("run --html x.doc", "--html x.doc: cannot write .doc; the ending must be one of"),
        ("report none.csv", "none.csv: no such file or folder\n"),
        ("report none*.csv", "none*.csv: no file or folder matches this pattern\n"),
        ("flaky s.csv", "s.csv: is a file, but this looks at stored runs; store it with `passhat"),
        ("trend suite.yml", "give the name of the suite, as `name:` in the file says"),
        ("plan --gate pass^3>=0.8 --k 5", "a gate names its own number and how it is decided"),
        ("plan --gate pass^3>=0.8 --max-cost 9", "is planned without it: leave out --max-cost"),
        ("plan --judge 0.9,0.8 --power 0.9", "labels are planned without it: leave out --power"),
        ("plan --tasks 1 --k 5", "--k must be 1 to plan for one task; gates can be planned for it"),
        ("compare three.csv --margin 0.1", "these are ranked: leave out --margin"),
        ("compare three.csv --for these-tasks", "are for similar tasks: leave out --for"),
        ("compare three.csv --by pass^2 --k 3", "--by pass^2 says by which number: leave out --k"),
        ("report s.csv --matrix --for similar-tasks", "lists every task: leave out --for"),
        ("run --executor ray", "--store must be a postgresql:// address with --executor ray"),
        ("run suite.yml --dry-run --html x.html", "write the plan with -o plan.html"),
        ("run none.yml", "none.yml: there is no such file; `passhat init` writes a suite"),
        ("run folder", "folder: is a folder; give the suite file in it"),
        ("run s.csv", "To read results, use `passhat report`"),
        ("run --tag x", "--tag chooses nothing: no task has a tag, got 'x'"),
        ("run --max-cost much", "'much' is not a number"),
        ("run --max-cost 0", "must be above 0, got 0"),
        ("view --port 99999", "must be from 0 to 65535, got 99999"),
        ("gate s.csv pass^2>=0.8", "'pass^2>=0.8' reads like a demand: give it with --require"),
        ("gate s.csv -r pass^2>=0.8 --margin 0.1", "--margin is about a baseline: give --against"),
        ("plan --indifference 0.1", "--indifference is about a gate: give --gate"),
        ("cassette show folder", "folder is a folder; name one of the cassettes in it"),
        ("cassette show s.csv", "s.csv: not a cassette: its first line is not JSON"),
        ("history add s.csv --started noon", "--started must be a time such as 2026-"),
        ("history list --store folder", "'folder' is a folder; a store is a file such as"),
    ],
)
def test_a_mistake_is_answered_by_what_to_type_instead(call, line, answer):
    done = call(*line.split())
    assert done.exit_code == 2
    assert answer in done.stderr


def test_a_store_in_the_place_of_a_suite_and_a_mistyped_run_are_recognised(call):
    assert call("history", "add", "s.csv").exit_code == 0
    store = ".passhat/history.db"
    assert f"is a history store: give it as --store {store}" in call("flaky", store).stderr
    assert (
        "no run, tag, branch or commit 'latst' (did you mean latest?)"
        in call("report", "latst").stderr
    )
    assert "x/y.csv: there is no folder x" in call("history", "export", "latest", "x/y.csv").stderr
    assert "DATASET must be a folder or an address" in call("history", "search", "a", "no").stderr
    for name in ("", "latest"):
        assert "NAME must have a letter or more" in call("history", "tag", "latest", name).stderr
    refused = call("history", "--sql", "DROP TABLE runs")
    assert "--sql: must be a SELECT query; the store is only read" in refused.stderr
    assert "no stored run of s on branch b; its suites: s" in call("trend", "--branch", "b").stderr


def test_an_error_breaks_between_words_on_a_terminal_and_is_one_line_in_a_log(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    text = "graded.csv: which columns? " + "Say --columns task=Question-and-more " * 5
    terminal, log = io.StringIO(), io.StringIO()
    terminal.isatty = lambda: True
    for stream in (terminal, log):
        Refusal(text.strip()).show(stream)
    lines = terminal.getvalue().splitlines()
    assert max(map(len, lines)) <= 60
    assert " ".join(lines) == log.getvalue().strip() == f"Error: {text.strip()}"


@pytest.mark.parametrize("option", ["--pass-if", "--missing", "--error-words", "--score", "--task"])
def test_what_says_how_to_read_is_given_once(call, here, option):
    (here / "t.csv").write_text("task,passed\na,1\na,0\n")
    done = call("report", "t.csv", option, "passed>=0.5", option, "passed>=1")
    assert done.exit_code == 2
    assert "is given twice: passed>=0.5 and passed>=1" in done.stderr
    twice = ("--pass-if", "passed>=0.5") * 2
    assert call("report", "t.csv", *twice).stdout.startswith("t ")
