import json
from pathlib import Path

import pytest

from passhat import read_trials, render_json, render_markdown, simulate
from passhat.analysis.reports.measure import measure
from passhat.cli.error_messages import in_options_of
from passhat.cli.options import parse_bars
from passhat.cli.report import report as report_command
from passhat.errors import ArgumentError
from passhat.ingest.write import write_trials

ROWS = "agent,task,passed\n" + "".join(
    f"{agent},{task},{int((i * k) % 5 != 0)}\n"
    for k, agent in enumerate(("one", "two"), 1)
    for task in "abcdef"
    for i in range(6)
)


@pytest.fixture
def results(here: Path) -> str:
    (here / "results.csv").write_text(ROWS)
    return "results.csv"


def test_the_answer_is_on_standard_output_and_talk_is_not(call, results):
    done = call("report", results, "--only", "one")
    assert done.exit_code == 0
    assert done.stdout.startswith("one is not reliable: ")
    assert done.stderr == ""


def test_json_on_standard_output_is_the_librarys_json(call, results, here):
    done = call("report", results, "--json", "--k", "1,3", "--seed", "4")
    report = measure(read_trials([results]), ks=[1, 3], seed=4)
    assert done.stdout == render_json(report)


def test_the_same_call_gives_the_same_bytes(call, results):
    first, second = (call("report", results, "--json").stdout_bytes for _ in range(2))
    assert first == second


def test_files_are_written_by_their_endings_and_named_on_standard_error(call, results, here):
    done = call("report", results, "-o", "r.json", "-o", "r.md", "-o", "r.txt")
    assert done.exit_code == 0
    assert done.stdout == ""
    assert done.stderr.splitlines() == ["wrote r.json", "wrote r.md", "wrote r.txt"]
    report = measure(read_trials([results]))
    assert (here / "r.json").read_text() == render_json(report)
    shown = render_markdown(
        report, results="results.csv", wording=lambda text: in_options_of(text, report_command)
    )
    assert (here / "r.md").read_text() == shown
    assert "\x1b" not in (here / "r.txt").read_text()


def test_quiet_says_nothing(call, results):
    assert call("report", results, "-o", "r.json", "--quiet").stderr == ""


def test_the_options_reach_the_analysis(call, results):
    done = call(
        "report", results, "--json", "--confidence", "90%", "--errors", "exclude", "--bar", "0.8"
    )
    options = json.loads(done.stdout)["provenance"]["options"]
    assert options == {"k": None, "confidence": 0.9, "errors": "exclude", "bars": 0.8, "seed": 0}


def test_columns_may_be_named(call, here):
    (here / "odd.csv").write_text("who,question,points\nx,q1,0.9\nx,q1,0.2\nx,q2,0.85\n")
    done = call(
        *("report", "odd.csv", "--json", "--task", "question", "--score", "points"),
        *("--system", "who", "--pass-if", "score>=0.8"),
    )
    (system,) = json.loads(done.stdout)["systems"]
    assert system["name"] == "x"
    assert [row["passed"] for row in system["task_table"]] == [1, 1]
    assert system["metrics"]["mean_score"]["value"] == pytest.approx((0.55 + 0.85) / 2)


def test_limits_may_be_set_and_are_handed_on_to_the_next_command(call, results):
    refused = call("report", results, "--limit", "max_bytes=10")
    assert refused.exit_code == 2
    assert (
        "above max_bytes = 10; read it in parts, or allow more with --limit max_bytes="
        in refused.stderr
    )
    mistyped = call("report", "nowhere.csv", "--limit", "max_byte=10")
    assert mistyped.exit_code == 2
    assert "--limit must be NAME=NUMBER" in mistyped.stderr
    wide = ("--limit", "max_bytes=10000", "--limit", "max_ratio=3")
    said = " ".join(call("report", results, *wide).stdout.replace("\\\n", "").split())
    assert f"{results} {' '.join(wide)}" in said


def test_a_column_is_left_out_by_an_empty_name_and_so_it_is_by_the_next_command(call, here):
    (here / "odd.csv").write_text("task,passed,cost,turns\na,1,much,few\na,1,more,many\n")
    assert "leave it out with --columns turns=''" in call("report", "odd.csv", "--cost", "").stderr
    done = call("report", "odd.csv", "--cost", "", "--turns", "")
    assert done.exit_code == 0
    said = " ".join(done.stdout.replace("\\\n", "").split())
    assert 'passhat plan odd.csv --columns cost=,turns= --gate "pass^2 >= 0.9"' in said
    next_words = ("plan", "odd.csv", "--columns", "cost=,turns=", "--gate", "pass^2 >= 0.9")
    assert call(*next_words).exit_code == 0


def test_standard_input_is_read_where_a_dash_stands(here):
    from click.testing import CliRunner

    from passhat.cli import main

    done = CliRunner().invoke(main, ["report", "-", "--json"], input=ROWS)
    assert [system["name"] for system in json.loads(done.stdout)["systems"]] == ["one", "two"]


def test_targets_are_listed(call, results):
    done = call("report", results, "--only", "one", "--targets")
    assert any(line.startswith("pass^2 ") for line in done.stdout.splitlines())


def test_the_schema_is_printed_without_any_result(call):
    done = call("report", "--schema")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["$id"] == "passhat.report/1"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.csv"], "nowhere.csv"),
        ([], "name the results: a file, a folder, or a stored run such as latest"),
        (["results.csv", "--k", "0"], "k must be at least 1, got 0"),
        (["results.csv", "--k", "two"], "'two' is not a list of whole numbers such as 1,2,4"),
        (["results.csv", "--confidence", "95"], "must lie strictly between 0 and 1, got 95"),
        (["results.csv", "--only", "three"], "--only must be one of one, two, got 'three'"),
        (["results.csv", "--bar", "high"], "--bar must be a share or TASK=SHARE, got 'high'"),
        (["results.csv", "--bar", "z=0.5"], "--bar must name tasks that were run, got 'z'"),
        (["results.csv", "-o", "x.docx"], "the ending must be one of"),
        (["results.csv", "-o", "no/such/folder.md"], "there is no folder no/such"),
        (
            ["results.csv", "--json", "--markdown"],
            "--json, --markdown, --as and -o -.md cannot be used together",
        ),
        (["broken.json"], "broken.json"),
        (["results.csv", "--task", "nothing"], "nothing"),
        (["results.csv", "--format", "inspekt"], "inspekt"),
    ],
)
def test_bad_input_is_one_message_and_exit_code_2(call, results, here, arguments, message):
    (here / "broken.json").write_text('{"runs": [')
    done = call("report", *arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert done.exception is None or isinstance(done.exception, SystemExit)


def test_a_message_about_nasty_data_cannot_steer_the_terminal(call, here):
    name = "\x1b]0;owned\x07.csv"
    (here / name).write_text("a,b\n1,2\n")
    done = call("report", name)
    assert done.exit_code == 2
    assert "\x1b" not in done.stderr


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [({}, False), ({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False)],
)
def test_colour_follows_the_environment(call, results, monkeypatch, environment, coloured):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert ("\x1b[" in call("report", results, "--only", "one").stdout) is coloured


def test_the_width_follows_columns(call, results, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    wide = call("report", results, "--only", "one").stdout
    monkeypatch.setenv("COLUMNS", "80")
    assert max(map(len, wide.splitlines())) > 100
    assert max(map(len, call("report", results, "--only", "one").stdout.splitlines())) <= 80


def test_bars_are_for_all_tasks_or_for_some():
    assert parse_bars([]) is None
    assert parse_bars(["0.8"]) == 0.8
    assert parse_bars(["a=0.9"]) == {"a": 0.9}
    assert parse_bars(["0.8", "a=b=0.9"]) == {"*": 0.8, "a=b": 0.9}
    with pytest.raises(ArgumentError, match="bars must be a share or TASK=SHARE, got 'c='"):
        parse_bars(["c="])


def test_a_table_too_big_to_hold_is_counted_and_gives_the_same_numbers(call, here, monkeypatch):
    write_trials(simulate(tasks=10, runs=8, seed=1), here / "trials.csv")
    rows = json.loads(call("report", "trials.csv", "--json").stdout)["systems"][0]
    monkeypatch.setattr("passhat.ingest.tallies.BIG_BYTES", 100)
    counted = call("report", "trials.csv", "--json")
    (counts,) = json.loads(counted.stdout)["systems"]
    assert counts["metrics"] == rows["metrics"]
    assert counts["labels"] == rows["labels"]
    assert counts["task_table"][0]["sequence"] is None


@pytest.mark.parametrize("command", ["report", "compare", "rank", "plan", "convert"])
def test_a_name_too_long_for_a_file_is_told_as_one_that_is_not_there(call, command):
    told = call(command, "a" * 5000)
    assert told.exit_code == 2
    assert told.stderr.startswith("Error: aaa")
    assert len(told.stderr) < 500


def test_rounds_are_left_out_on_request_and_never_in_silence(call, here):
    rows = [f"t{i},{r},{int(r != 3 and (i + r) % 9 != 0)}" for i in range(20) for r in range(6)]
    (here / "outage.csv").write_text("task,trial,passed\n" + "\n".join(rows) + "\n")
    whole = call("report", "outage.csv")
    assert whole.stdout.startswith("outage is not reliable: ")
    assert "Round 4 is out of line: 20 of 20 trials failed" in " ".join(whole.stdout.split())
    assert "--drop-rounds 4" in whole.stdout
    left = call("report", "outage.csv", "--drop-rounds", "4")
    assert left.stderr.startswith("left out by request: round 4, 20 of 120 trials")
    assert "out of line" not in left.stdout
    wrong = call("report", "outage.csv", "--drop-rounds", "zero")
    assert wrong.exit_code == 2
    assert "is not a list of rounds such as 4 or 2,4" in wrong.stderr
