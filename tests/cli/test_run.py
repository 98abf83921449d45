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
        "systems: [{name: mute, command: [echo, hello], outcome: json}]\n"
        "tasks: [{name: anything, prompt: hi}]\n",
    )
    done = call("run")
    assert done.exit_code == 3
    assert "mute printed no JSON line" in done.stdout


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


@pytest.mark.parametrize("arguments", [("run",), ("run", "--dry-run"), ("validate",), ("doctor",)])
def test_an_unknown_model_is_told_with_its_place_and_nothing_is_begun(here, suite, call, arguments):
    suite("agents:\n  - name: a\n    model: gtp-5\n    prompt: hi\n")
    done = call(*arguments)
    assert done.exit_code == 2
    assert 'suite.yml:3:5: agents[0].model: no model is called "gtp-5"' in done.output
    assert "Did you mean gpt-5" in done.output
    assert not (here / ".passhat").exists()


def test_a_run_that_is_refused_leaves_nothing_to_resume(here, suite, call):
    suite("agents: [{name: a, model: gpt-5, prompt: hi}]")
    refused = call("run")
    assert refused.exit_code == 2
    assert "needs a key: set OPENAI_API_KEY" in refused.output
    assert "No runs yet" in call("history").output
    assert "every run is finished" in call("resume").output


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "systems: [{name: s, command: ./agent.sh}]\ntasks: [{name: t, prompt: hi}]",
            'agent.sh": install it, or give its path',
        ),
        (
            "systems: [{name: s, command: no-such-agent}]\ntasks: [{name: t, prompt: hi}]",
            'suite.yml:1:21: systems[0].command: there is no program "no-such-agent"',
        ),
        (
            """
servers: {w: {command: no-such-server}}
agents: [{name: a, model: scripted, script: [{}], servers: [w], prompt: hi}]
""",
            'suite.yml:2:15: servers.w.command: there is no program "no-such-server"',
        ),
    ],
)
def test_a_program_that_is_not_here_is_told_before_any_trial(here, suite, call, text, said):
    suite(text)
    done = call("run")
    assert done.exit_code == 2
    assert said in done.output
    assert not (here / ".passhat").exists()


def test_all_that_is_not_here_is_told_at_once_where_it_stands_and_nothing_is_begun(
    here, suite, call
):
    (here / "fn_here.py").write_text("def answer(prompt): return True\nvalue = 1\n")
    suite(
        "systems:\n"
        "  - {name: fine, python: 'fn_here:answer'}\n"
        "  - {name: typo, python: 'fn_here:anser'}\n"
        "  - {name: gone, command: no-such-agent}\n"
        "  - {name: lost, python: 'no_such_module:f'}\n"
        "tasks: [{name: t, prompt: hi}]\n"
    )
    done = call("run")
    assert done.exit_code == 2
    assert done.stdout == ""
    assert [line.removeprefix("Error: ") for line in done.stderr.splitlines()] == [
        'suite.yml:3:18: systems[1].python: "fn_here:anser": fn_here has no anser',
        (
            'suite.yml:4:18: systems[2].command: there is no program "no-such-agent": '
            "install it, or give its path"
        ),
        (
            'suite.yml:5:18: systems[3].python: "no_such_module:f" cannot be imported: '
            "No module named 'no_such_module'"
        ),
    ]
    assert not (here / ".passhat").exists()


def test_a_program_that_may_not_be_executed_says_so(here, suite, call):
    (here / "agent.sh").write_text("#!/bin/sh\n")
    suite("systems: [{name: s, command: ./agent.sh}]\ntasks: [{name: t, prompt: hi}]")
    assert "may not be executed: chmod +x" in call("run").output


CRASHING = """\
systems:
  - name: agent
    command: [sh, -c, "echo refunded; printf 'boot\\\\n\\\\033[31mkaboom\\\\n' >&2; exit 7"]
tasks: [{name: refund, prompt: hi, runs: 3, expect: [{contains: refunded}]}]
"""


def test_a_crash_is_a_failure_and_its_reason_has_code_and_last_word(here, suite, call):
    suite(CRASHING)
    done = call("run")
    assert done.exit_code == 1
    assert "refund, 3 trials: exit code 7: \\x1b[31mkaboom" in done.stdout
    assert "\x1b" not in done.stdout


def test_a_crash_is_named_beside_the_expectation_that_it_broke(here, suite, call):
    suite(
        CRASHING.replace("echo refunded; ", "").replace(
            "- name: agent", "- name: agent\n    outcome: expect"
        )
    )
    done = call("run")
    assert done.exit_code == 1
    assert "exit code 7:" in done.stdout
    assert "expected to contain 'refunded', got ''" in done.stdout


def test_exit_codes_that_are_fine_are_named_in_the_suite(here, suite, call):
    suite(CRASHING.replace("- name: agent", "- name: agent\n    exit_codes: [0, 7]"))
    assert call("run").exit_code == 0
