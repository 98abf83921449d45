"""`passhat run`: options, exit codes, and where the answer goes."""

import json

import pytest

SURE = """\
name: sums
defaults: {model: scripted, runs: 4}
agents:
  - name: two and two
    prompt: What is 2 + 2?
    expect: [{contains: "4"}]
    script: [{answer: "4"}]
"""
SHAKY = SURE.replace('[{answer: "4"}]', '[{answer: "4"}, {answer: "5"}]').replace(
    "runs: 4", "runs: 20"
)


def test_a_suite_whose_expectations_all_hold_exits_0(here, suite, call):
    suite(SURE)
    done = call("run")
    assert done.exit_code == 0, done.stderr
    assert "sums: 1 task, 1 system, 4 trials" in done.stderr
    assert "4 trials in" in done.stderr


def test_without_gates_a_failed_expectation_exits_1(here, suite, call):
    suite(SHAKY)
    assert call("run", "suite.yml").exit_code == 1


def test_a_trial_that_errors_is_not_a_failure_but_leaves_the_run_incomplete(here, suite, call):
    suite(
        "systems: [{name: gone, command: [./no-such-program]}]\n"
        "tasks: [{name: anything, prompt: hi}]\n",
    )
    done = call("run")
    assert done.exit_code == 3
    assert "no-such-program" in done.stdout


def test_a_suite_that_is_wrong_exits_2_with_the_line(here, suite, call):
    suite(SURE.replace("prompt:", "promt:"))
    done = call("run")
    assert done.exit_code == 2
    assert 'suite.yml:5:5: agents[0].promt: "promt" is not a key' in done.stderr
    assert not (here / ".passhat").exists()


def test_without_a_suite_the_way_out_is_said(here, suite, call):
    done = call("run")
    assert done.exit_code == 2
    assert "write one with `passhat init`" in done.stderr


def test_json_markdown_and_a_page_come_from_one_run(here, suite, call):
    suite(SHAKY)
    done = call("run", "--json", "--html", "page.html", "-o", "notes.md", "--quiet")
    answer = json.loads(done.stdout)
    assert answer["schema"] == "passhat.run/1"
    assert answer["report"]["schema"] == "passhat.report/1"
    assert answer["report"]["systems"][0]["trials"] == 20
    assert done.stderr == ""
    assert "<!doctype html>" in (here / "page.html").read_text().lower()
    assert "pass^1" in (here / "notes.md").read_text().replace("\\", "")


def test_the_same_seed_gives_the_same_numbers_and_another_one_others(here, suite, call):
    suite(SHAKY)
    first, again, other = (
        json.loads(call("run", "--json", "-q", "--seed", seed).stdout)["report"]["systems"][0]
        for seed in ("1", "1", "2")
    )
    assert first["task_table"] == again["task_table"]
    assert first["task_table"] != other["task_table"]


@pytest.mark.parametrize(
    ("arguments", "trials"),
    [
        (["--task", "two*"], 4),
        (["--tag", "hard"], 4),
        (["--only", "scripted", "--runs", "3"], 6),
        (["--only", "three and three"], 4),
    ],
)
def test_a_part_of_the_suite_can_be_run(here, suite, call, arguments, trials):
    more = SURE.partition("agents:\n")[2].replace("two and two", "three and three")
    suite(SURE + more + "    tags: [hard]\n")
    done = call("run", "--json", "-q", *arguments)
    assert json.loads(done.stdout)["report"]["systems"][0]["trials"] == trials


def test_a_filter_that_matches_nothing_names_what_there_is(here, suite, call):
    suite(SURE)
    done = call("run", "--task", "two and to")
    assert done.exit_code == 2
    assert "--task must be one of two and two (did you mean two and two?)" in done.stderr


def test_every_run_is_in_the_history_with_its_status(here, suite, call):
    suite(SURE)
    call("run")
    done = call("history", "list", "--json")
    (run,) = json.loads(done.stdout)["runs"] if "runs" in done.stdout else json.loads(done.stdout)
    assert (run["suite"], run["trials"], run["status"]) == ("sums", 4, "finished")


def test_nothing_is_kept_where_nothing_may_be_kept(here, suite, call):
    suite(SURE)
    assert call("run", "--no-store").exit_code == 0
    assert not (here / ".passhat").exists()
