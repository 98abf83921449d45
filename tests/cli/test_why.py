"""`passhat why` and `passhat diff` through the installed command."""

import json
import re
import shlex
from pathlib import Path

import pytest

PROMPTFOO = Path(__file__).parents[1] / "samples" / "promptfoo" / "out.json"


def line(trial, task="refund", system="bot"):
    tools = ["refund"] if trial % 2 else ["find_order", "refund"]
    calls = [
        {"id": tool, "function": {"name": tool, "arguments": '{"order": "W1"}'}} for tool in tools
    ]
    messages = [
        {"role": "user", "content": "Refund order W1"},
        {"role": "assistant", "tool_calls": calls},
        *({"role": "tool", "tool_call_id": tool, "content": "ok"} for tool in tools),
        {"role": "assistant", "content": "Done."},
    ]
    return {
        "system": system,
        "case": task,
        "trial": trial,
        "passed": trial % 2 == 0,
        "messages": messages,
    }


@pytest.fixture
def log(here):
    rows = [line(trial, task) for task in ("refund", "--odd") for trial in range(8)]
    text = "".join(json.dumps({**row, "task": row.pop("case")}) + "\n" for row in rows)
    (here / "said.jsonl").write_text(text)
    return "said.jsonl"


def test_why_names_what_goes_together_with_failing(call, log):
    done = call("why", log)
    assert done.exit_code == 0
    assert done.stdout.startswith("The agent skips find_order: in 8 of 8 failing trials it did")
    told = " ".join(call("why", log, "-v").stdout.split())
    assert "8 of 8 failing trials called refund without calling find_order first" in told


def test_one_task_is_explained_by_name_and_an_unknown_one_is_refused(call, log):
    found = json.loads(call("why", log, "--task", "refund", "--json").stdout)
    assert found["counts"]["runs"] == 8
    done = call("why", log, "--task", "refnd")
    assert done.exit_code == 2
    assert "did you mean refund?" in done.stderr


def test_calls_that_do_not_count_are_not_said_to_be_the_same(call, log):
    # in one task alone the name of find_order says that it only looks, but trials differ in it
    said = " ".join(call("why", log, "--task", "refund").stdout.split())
    assert "no call that matters differs from a passing trial's" in said
    assert "same calls" not in said


def test_the_column_of_tasks_has_an_option_of_its_own(call, here, log):
    (here / "cases.jsonl").write_text("".join(json.dumps(line(i)) + "\n" for i in range(8)))
    done = call("why", "cases.jsonl", "--task-column", "case")
    assert done.exit_code == 0
    assert "passhat why cases.jsonl --columns task=case refund" in done.stdout


def test_every_command_that_is_suggested_runs(call, log):
    asked = [[log], [log, "--task=--odd"], [log, "-v"], [log, "--task=--odd", "-v"]]
    found = [re.findall("passhat why .*", call("why", *words).stdout) for words in asked]
    assert all(found)
    commands = [command for those in found for command in those]
    assert any("-- --odd" in command for command in commands)
    for command in commands:
        done = call(*shlex.split(command)[1:])
        assert done.exit_code == 0, done.stderr


def test_a_run_of_the_history_is_named_like_a_file(call, log):
    assert call("history", "add", log, "--suite", "s").exit_code == 0
    assert call("history", "tag", "latest", "monday").exit_code == 0
    for name in ("latest", "monday", ".passhat/history.db"):
        done = call("why", name)
        assert done.exit_code == 0, done.stderr
        assert "8 of 8 failing trials" in done.stdout
    headline = "refund: trial 2 (failed) did not call find_order, as trial 3 (passed) did."
    for name in ("why", "diff"):
        done = call(name, "monday", "refund", "2", "3")
        assert done.stdout.startswith(headline), done.stderr


def test_without_a_history_a_name_that_is_no_file_is_told_as_such(call, here):
    done = call("why", "monday")
    assert done.exit_code == 2
    assert "monday" in done.stderr


def test_why_writes_a_page_markdown_and_json(call, here, log):
    done = call("why", log, "-o", "why.html", "-o", "why.md", "-o", "why.json")
    assert done.exit_code == 0
    page = (here / "why.html").read_text()
    assert "8 of 8 failing trials" in page
    assert "Content-Security-Policy" in page
    assert json.loads((here / "why.json").read_text())["schema"] == "passhat.explanation/1"
    assert (here / "why.md").read_text().startswith("**The agent skips find")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["said.jsonl"], "give RESULTS, TASK and up to two trials"),
        (["said.jsonl", "refund", "x"], "a trial is a whole number, got 'x'"),
        (["said.jsonl", "refund", "1", "2", "3"], "give at most two trials"),
        (["said.jsonl", "refund", "77"], "the first TRIAL must be the number of a trial"),
        (["said.jsonl", "nobody"], "no task is called 'nobody': there "),
    ],
)
def test_diff_refuses_what_it_cannot_show(call, log, words, message):
    done = call("diff", *words)
    assert done.exit_code == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_runs_without_a_call_are_said_to_have_made_none(call, here):
    rows = [
        {"task": "a", "passed": one, "transcript": [{"role": "assistant", "content": said}]}
        for one, said in ((True, "4"), (False, "5"))
    ]
    (here / "calm.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    done = call("diff", "calm.jsonl", "a", "2", "1")
    headline = "a: trials 2 (failed) and 1 (passed) made no calls; read what they said."
    assert done.stdout.startswith(headline), done.stderr


def test_results_without_transcripts_say_so(call, here):
    (here / "plain.csv").write_text("task,passed\na,1\na,0\n")
    done = call("why", "plain.csv")
    assert done.exit_code == 0
    assert "hold no transcripts" in done.stdout


def test_a_task_that_one_agent_never_passed_is_said_of_that_agent(call, here):
    rows = ["hard,x,0", "hard,y,0", "mean,x,0", "mean,y,1", "easy,x,1", "easy,y,1", "easy,y,0"]
    (here / "two.csv").write_text("task,agent,passed\n" + "".join(f"{row}\n" for row in rows))
    shown = call("why", "two.csv").stdout
    assert "Never passed: hard (too hard, or the check is wrong).\n" in shown
    assert "Never passed: mean by x.\n" in shown
    assert " by x" not in call("why", "two.csv", "--only", "x").stdout


def test_the_page_of_a_report_says_why_runs_fail(call, here, log):
    done = call("report", log, "--transcripts", "-o", "report.html")
    assert done.exit_code == 0, done.stderr
    page = (here / "report.html").read_text()
    assert 'class="failures"' in page
    assert "8 of 8 failing trials called refund without calling find_order first" in page
    assert call("report", log, "-o", "plain.html").exit_code == 0
    assert 'class="failures"' not in (here / "plain.html").read_text()


def test_the_review_of_a_suite_is_in_sentences_with_units(call):
    said = " ".join(call("why", str(PROMPTFOO), "-v").stdout.split())
    assert "1 task passes in every trial, too easy to show where this agent fails: always." in said
    assert "A failing trial cost $0.0000875 on average, a passing one $0.0001; 29% of all" in said
    assert "agree in 80% of 5 trials, no better than chance (kappa 0.00)" in said
    assert "of the variation between trials" not in said  # one of two tasks that vary: no news


@pytest.mark.parametrize(
    "names_it",
    [
        "expected_tool: find",
        "tool_selection: {expected_tool: find, min_selection_rate: 0.1}",
        "expect: [{called: find}]",
    ],
)
def test_the_tool_that_the_suite_names_is_set_against_those_called(suite, call, names_it):
    suite(f"""\
name: tools
defaults: {{runs: 8, model: scripted}}
agents:
  - name: search
    prompt: Find it.
    {names_it}
    script: [{{calls: [find], answer: found, weight: 2}}, {{calls: [guess], answer: maybe}}]
""")
    call("run", "-q")
    ways = json.loads(call("why", "latest", "--json").stdout)["trajectories"]
    assert ways["expected_tools_given"] is True
    counts = {(cell["expected"], cell["chosen"]): cell["count"] for cell in ways["tool_matrix"]}
    assert set(counts) == {("find", "find"), ("find", "guess")}
    assert sum(counts.values()) == 8


def test_of_a_big_log_some_trials_are_compared_and_all_are_counted(call, here, monkeypatch):
    rows = [line(trial, task) for task in "abcdefgh" for trial in range(60)]
    (here / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    size = (here / "log.jsonl").stat().st_size
    command = ("why", "log.jsonl", "--columns", "task=case")
    whole = call(*command)
    monkeypatch.setattr("passhat.journeys.analyses.MOST_COMPARED", size // 4)
    some = call(*command)
    assert whole.stdout.splitlines()[0].startswith("The agent skips find_order: in 240 of 240")
    assert some.stdout.startswith("The agent skips find_order: in ")
    assert "  30/60  a" in some.stdout  # every trial counts in the table
    assert re.search(r"Compared: the transcripts of (\d+)\s+of 480\s+trials", some.stdout)
    counts = json.loads(call(*command, "--json").stdout)["counts"]
    assert (counts["runs"], counts["failed"], counts["without_transcript"]) == (480, 240, 0)
    assert 360 <= counts["unread"] < 400
    one = json.loads(call(*command, "--task", "b", "--json").stdout)["counts"]
    assert (one["runs"], one["unread"], one["failing"]) == (60, 0, 30)
