"""Single runs by their names, the suite by --config, and the reason of the exit code."""

import json
import sqlite3
from pathlib import Path

import pytest

WEATHER_SERVER = Path(__file__).parents[1] / "weather_server.py"

SUITE = """\
name: rows
defaults: {runs: 5, model: scripted}
agents:
  - name: coin
    prompt: Heads or tails?
    expect: [{contains: heads}]
    script: [{answer: heads, weight: 2}, {answer: tails}]
  - {name: sum, prompt: "2 + 2?", expect: [{contains: "4"}], script: [{answer: "4"}]}
"""


def rows_of(here):
    with sqlite3.connect(here / ".passhat" / "history.db") as store:
        found = store.execute(
            "SELECT names.text, trial, outcome FROM trials JOIN names ON names.id = trials.task"
        ).fetchall()
    store.close()
    return sorted(found)


def test_one_run_is_run_again_by_its_name_with_the_same_outcome(suite, call, here, tmp_path):
    suite(SUITE)
    call("run", "--store", str(tmp_path / "all.db"))
    with sqlite3.connect(tmp_path / "all.db") as store:
        (third,) = store.execute(
            "SELECT outcome FROM trials JOIN names ON names.id = trials.task "
            "WHERE trial = 2 AND names.text = 'coin'"
        ).fetchone()
    store.close()
    done = call("run", "--task", "coin #3")
    assert done.exit_code in (0, 1), done.output
    assert rows_of(here) == [("coin", 2, third)]


def test_names_and_single_runs_can_be_mixed(suite, call, here):
    suite(SUITE)
    call("run", "--task", "coin #1", "--task", "coin #4", "--task", "sum")
    assert [(task, trial) for task, trial, _ in rows_of(here)] == [
        ("coin", 0), ("coin", 3), *[("sum", trial) for trial in range(5)]
    ]  # fmt: skip


@pytest.mark.parametrize("row", ["coin #6", "coin #0"])
def test_a_run_that_there_is_not_is_refused(suite, call, row):
    suite(SUITE)
    done = call("run", "--task", row)
    assert done.exit_code == 2
    assert "must name one of the 5 runs of coin" in done.output


def test_the_suite_may_be_named_by_config(suite, call, here):
    (here / "other.yml").write_text(SUITE)
    done = call("run", "--config", "other.yml", "--task", "sum", "--no-store")
    assert done.exit_code == 0, done.output
    done = call("run", "other.yml", "--config", "other.yml")
    assert "name the suite once" in done.output


def test_the_reason_of_the_exit_code_is_said_once(suite, call):
    """In line 1 of the answer or, where it is not on the terminal, on standard error."""
    suite(SUITE)
    words = ("run", "--task", "coin", "--require", "pass@1 >= 0.999", "--no-store")
    shown, hidden = call(*words), call(*words, "--json")
    for done in (shown, hidden):
        assert done.exit_code in (1, 4)
    assert "pass@1 >= 0.999" in shown.stdout.splitlines()[0]
    (warning,) = [line for line in shown.stderr.splitlines() if "pass@1" in line]
    assert "can never PASS" in warning  # said before the first trial, and not why it ended so
    assert "pass@1 >= 0.999" in hidden.stderr


def test_a_floor_that_fails_is_in_line_1_and_its_reason_beside_it(suite, call):
    floor = "tool_selection: {expected_tool: fly, min_selection_rate: 0.5}"
    suite(SUITE.replace("prompt: Heads", f"{floor}\n    prompt: Heads"))
    reason = "fly was called in 0% of the trials, and 50% are demanded"
    for gates in ((), ("--require", "pass@1 >= 0.001")):
        done = call("run", "--task", "coin", "--no-store", *gates)
        assert done.exit_code == 1
        assert done.stdout.startswith("FAIL  1 of 1 tool-selection floor failed.\n")
        assert "\ntool-selection floor [FAIL] coin: " in done.stdout
        assert reason in done.stdout
    assert "[FAIL] coin: " in call("run", "--task", "coin", "--no-store", "--json").stderr


def test_every_run_has_a_row_in_the_list(suite, call):
    suite(SUITE)
    assert "coin #3" in call("list", "--rows").stdout
    assert json.loads(call("list", "--json").stdout)[0]["runs"] == 5


def test_every_run_may_be_a_test_case(suite, call, here):
    suite(SUITE)
    call("run", "--no-store", "--rows", "runs", "-o", "r.xml", "-o", "r.ctrf.json")
    text = (here / "r.xml").read_text()
    assert text.count("<testcase") == 10
    assert 'name="coin #3"' in text
    failed = text.count("<failure")
    assert 0 < failed < 5
    assert len(json.loads((here / "r.ctrf.json").read_text())["results"]["tests"]) == 10
    gated = call(
        "run", "--no-store", "--rows", "runs", "-o", "g.xml", "--require", "pass@1 >= 0.01"
    )
    assert gated.exit_code == 0, gated.output
    text = (here / "g.xml").read_text()
    assert "<failure" not in text
    assert text.count("<skipped") == failed


WEATHER = """\
name: covered
servers: {weather: {command: ["{python}", 'SERVER']}}
defaults: {runs: 1, model: scripted}
agents:
  - name: w
    servers: [weather]
    prompt: Weather?
    script: [{calls: [{tool: get_weather, args: {city: Rome}}], answer: "{result}"}]
"""


def test_the_tools_that_a_suite_never_calls_are_named_and_gated(suite, call):
    suite(WEATHER.replace("SERVER", str(WEATHER_SERVER)))
    done = call("run", "--json", "--no-store")
    notes = json.loads(done.stdout)["report"]["notes"]
    (covered,) = [note for note in notes if "1 of the 3 tools of the servers was called" in note]
    assert "never: " in covered
    assert done.exit_code == 0
    demanded = call("run", "--no-store", "--coverage-threshold", "1")
    assert demanded.exit_code == 1
    said = " ".join(demanded.stdout.split())
    assert said.startswith("FAIL 1 of the 3 tools of the servers was called (33%), 100% are ")
    assert "never: " in said


def test_every_run_has_a_row_on_the_terminal_with_its_reason(suite, call):
    suite(SUITE)
    brief = call("run", "--no-store").stdout
    assert "coin #3" not in brief
    full = call("run", "--no-store", "-v").stdout
    rows = [line.split() for line in full.splitlines() if line.lstrip().startswith("coin #")]
    assert [row[1] for row in rows] == ["#1", "#2", "#3", "#4", "#5"]
    assert {row[2] for row in rows} == {"passed", "failed"}
    assert all("got 'tails'" in " ".join(row) for row in rows if row[2] == "failed")


def test_the_row_of_a_failed_run_says_why_in_a_file_of_test_cases(suite, call, here):
    suite(SUITE)
    call("run", "--no-store", "--rows", "runs", "-o", "r.xml", "-o", "r.ctrf.json")
    text = (here / "r.xml").read_text()
    assert "<failure message=\"expected to contain 'heads', got 'tails'\"" in text
    tests = json.loads((here / "r.ctrf.json").read_text())["results"]["tests"]
    failed = [test["message"] for test in tests if test["status"] == "failed"]
    assert set(failed) == {"expected to contain 'heads', got 'tails'"}


def test_a_resumed_run_keeps_its_rows(suite, call, here):
    suite(SUITE)
    call("run", "--rows", "runs", "-o", "r.xml", "--max-tokens", "8")
    (here / "r.xml").unlink()
    call("resume", "--max-tokens", "1000")
    assert 'name="coin #3"' in (here / "r.xml").read_text()


def test_a_floor_that_fails_twice_names_both_reasons(suite, call):
    floor = "tool_selection: {expected_tool: fly, min_selection_rate: 0.5, max_total_tokens: 1}"
    suite(SUITE.replace("prompt: Heads", f"{floor}\n    prompt: Heads"))
    done = call("run", "--task", "coin", "--no-store")
    assert done.exit_code == 1
    said = " ".join(done.stdout.split())
    assert "fly was called in 0% of the trials, and 50% are demanded; a trial took" in said
    assert "tokens, and 1 are allowed" in said
