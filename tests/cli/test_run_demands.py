"""Gates, floors and what they make of the exit code."""

import json
import re
from pathlib import Path

import pytest

WEATHER_SERVER = Path(__file__).parents[1] / "weather_server.py"

SHAKY = """\
name: sums
defaults: {model: scripted, runs: 40}
agents:
  - name: two and two
    prompt: What is 2 + 2?
    expect: [{contains: "4"}]
    script: [{answer: "4", weight: 3}, {answer: "5"}]
"""
GATE = "gates: [pass@1 >= 0.75]\n"
FLOOR = """\
agents:
  - name: weather selection
    model: scripted
    runs: 10
    prompt: What is the weather in Sacramento?
    servers: [weather]
    tool_selection: {{expected_tool: get_weather, min_selection_rate: {rate}{more}}}
    script:
      - calls: [{{tool: {tool}, arguments: {{city: Sacramento}}}}]
        answer: ok
        tokens_in: 1800
        tokens_out: 40
servers:
  weather: {{command: ["{{python}}", '{server}'], shared: true}}
"""


def floor(tool="get_weather", *, rate=0.8, more=""):
    return FLOOR.format(tool=tool, rate=rate, more=more, server=WEATHER_SERVER)


@pytest.mark.parametrize(
    ("demand", "code"),
    [("pass@1 >= 0.4", 0), ("pass@1 >= 0.95", 1), ("pass@1 >= 0.75", 4)],
)
def test_with_a_gate_the_gate_decides(suite, call, demand, code):
    suite(SHAKY)
    done = call("run", "--require", demand)
    assert done.exit_code == code, done.output
    assert {0: "PASS", 1: "FAIL", 4: "UNDECIDED"}[code] in done.stdout


def test_gates_of_the_suite_and_of_the_command_line_are_both_judged(suite, call):
    suite(SHAKY + 'gates: ["pass@1 >= 0.4"]\n')
    answer = json.loads(call("run", "--json", "--require", "pass^2 >= 0.99").stdout)
    assert [verdict["verdict"] for verdict in answer["verdicts"]] == ["PASS", "FAIL"]
    assert answer["verdict"] == "FAIL"


def test_a_demand_that_cannot_be_read_is_refused_before_anything_is_run(suite, call, here):
    suite(SHAKY)
    done = call("run", "--require", "pas^3 >= 0.8")
    assert done.exit_code == 2
    assert 'did you mean "pass^3"?' in done.stderr
    assert not (here / ".passhat").exists()


def test_until_settled_stops_paying_when_the_verdict_is_clear(suite, call):
    suite(SHAKY)
    done = call("run", "--json", "--require", "pass@1 >= 0.2", "--until-settled")
    answer = json.loads(done.stdout)
    assert done.exit_code == 0
    assert answer["verdicts"][0]["evidence"] == "sequential"
    assert answer["report"]["systems"][0]["trials"] < 40


def test_a_task_in_quarantine_is_shown_and_not_gated(suite, call):
    suite(SHAKY + "quarantine: [{task: two and two, until: 2999-12-31, reason: known}]\n")
    done = call("run")
    assert done.exit_code == 0
    assert "two and two" in done.stdout


def test_the_floor_line_has_the_form_its_users_know(suite, call, here):
    suite(floor())
    done = call("run", "--html", "page.html")
    assert done.exit_code == 0, done.stderr
    line = (
        "tool-selection floor [PASS] weather selection: "
        "selection 10/10 (100%), pass^k 100%, max tokens 1840"
    )
    assert line in done.stdout.splitlines()
    assert line in (here / "page.html").read_text()


@pytest.mark.parametrize(
    ("tool", "more", "line"),
    [
        ("get_time", "", "selection 0/10 (0%), pass^k 0%, max tokens 1840"),
        (
            "get_weather",
            ", max_total_tokens: 1000",
            "selection 10/10 (100%), pass^k 100%, max tokens 1840",
        ),
        ("get_weather", ", bound: true", "selection 10/10 (100%), pass^k 100%, max tokens 1840"),
    ],
)
def test_a_floor_that_is_breached_exits_1(suite, call, tool, more, line):
    suite(floor(tool, more=more))
    done = call("run", "--json")
    assert done.exit_code == 1, done.stderr
    assert f"tool-selection floor [FAIL] weather selection: {line}" in done.stderr


def test_a_floor_alone_tolerates_the_failures_it_allows(suite, call):
    text = floor(rate=0.2)
    suite(text.replace("    script:\n", '    script:\n      - {answer: "no tool"}\n'))
    done = call("run", "--json")
    answer = json.loads(done.stdout)
    assert 0 < answer["floors"][0]["selected"] < 10
    assert done.exit_code == 0, done.stderr


def test_a_budget_stop_says_what_was_left_undone_and_is_not_a_pass(suite, call):
    suite(SHAKY.replace('{answer: "4", weight: 3}, {answer: "5"}', '{answer: "4", tokens_in: 600}'))
    done = call("run", "--max-tokens", "3100", "--concurrency", "1")
    assert done.exit_code == 3
    assert "max_tokens was reached: 35 of 40 trials were left undone" in " ".join(
        done.stdout.split()
    )
    resumed = call("resume", "--max-tokens", "100000", "--json")
    assert resumed.exit_code == 0, resumed.stderr
    assert json.loads(resumed.stdout)["report"]["systems"][0]["trials"] == 40


def test_resume_writes_the_files_of_the_run_unless_others_are_named(here, suite, call):
    suite(SHAKY.replace('{answer: "4", weight: 3}, {answer: "5"}', '{answer: "4", tokens_in: 60}'))
    asked = ("--max-tokens", "300", "--concurrency", "1", "-o", "kept.xml")
    call("run", *asked)
    (here / "kept.xml").unlink()
    call("resume", "-o", "other.json", "--html", "page.html")
    assert {p.name for p in here.iterdir()} >= {"other.json", "page.html"}
    assert not (here / "kept.xml").exists()
    call("resume", "--max-tokens", "100000")
    assert (here / "kept.xml").exists()
    assert "40 of 40 trials are already done" in call("run", *asked[2:], "--resume").stderr


def test_a_run_is_compared_with_a_tagged_baseline(suite, call):
    suite(SHAKY)
    call("run")
    assert call("history", "tag", "latest", "good").exit_code == 0
    worse = SHAKY.replace("weight: 3", "weight: 0.05")
    suite(worse)
    done = call("run", "--require", "no_worse_than good by 0.1")
    assert done.exit_code == 1, done.output
    suite(SHAKY)
    assert call("run", "--require", "no_worse_than good by 0.9").exit_code == 0


def test_bars_of_tasks_that_only_some_systems_run_are_gated_where_they_are_run(suite, call):
    suite(
        "defaults: {runs: 30}\n"
        "agents: [{name: a, model: scripted, prompt: hi, bar: 0.5, script: [{answer: x}]}]\n"
        'systems: [{name: other, command: ["true"]}]\n'
        "tasks: [{name: b, prompt: hi, bar: 0.3, runs: 10}]\n"
        'gates: ["every task: pass^2 >= its bar"]\n'
    )
    done = call("run", "--json")
    assert done.exit_code == 0, done.stderr
    judged = json.loads(done.stdout)["verdicts"]
    assert [verdict["system"] for verdict in judged] == ["scripted", "other"]


def test_a_stored_run_keeps_the_bars_of_its_suite(suite, call):
    bars = SHAKY.replace("runs: 40", "runs: 40, bar: 0.9") + (
        "  - {name: draft, prompt: hi, bar: 0.1, expect: [{contains: x}], script: [{answer: x}]}\n"
    )
    suite(bars)
    (ran,) = json.loads(call("run", "--json").stdout)["report"]["systems"]
    assert ran["bars"][0]["above"] == ["draft"]
    suite(SHAKY)  # what the file says now is another matter
    for results in "latest", ".passhat/history.db":
        (read,) = json.loads(call("report", results, "--json").stdout)["systems"]
        assert read["bars"] == ran["bars"]
        demand = ["--require", "every task: pass^2 >= its bar"]
        judged = call("gate", results, *demand)
        assert judged.exit_code == 1, judged.output
        assert "two and two" in judged.stdout
        assert call("gate", results, *demand, "--bar", "two and two=0").exit_code == 0
        assert call("gate", results, *demand, "--bar", "0.999").exit_code == 1


def test_a_gate_on_bars_that_some_tasks_do_not_have_is_refused_first(suite, call, here):
    suite(
        SHAKY + "  - {name: draft, prompt: hi, bar: 0.1, script: [{answer: hi}]}\n"
        'gates: ["every task: pass^2 >= its bar"]\n'
    )
    done = call("run")
    assert done.exit_code == 2
    assert "1 of 2 tasks have none: two and two" in done.stderr
    assert not (here / ".passhat").exists()


@pytest.mark.parametrize(
    ("gate", "said"),
    [
        ("{require: pass@1 >= 0.5, system: nobody}", "must name an agent of the suite (scripted)"),
        (
            "{require: pass@1 >= 0.5, tags: [sum]}",
            "must find a task with one of its tags; there are sums, got 'sum'",
        ),
        (
            "{require: 'tags[sum].pass^2 >= 0.5', on_undecided: pass}",
            "no tag is called 'sum': there is sums (did you mean sums?)",
        ),
        ("'every task: pass^2 >= its bar'", "needs a `bar:` on every task"),
    ],
)
def test_a_gate_that_could_never_be_judged_is_refused_first(suite, call, here, gate, said):
    suite(SHAKY + f"    tags: [sums]\ngates: [{gate}]\n")
    done = call("run")
    assert done.exit_code == 2
    assert said in done.stderr
    assert not (here / ".passhat").exists()


def test_a_baseline_that_is_not_there_is_refused_before_anything_is_run(suite, call):
    suite(SHAKY)
    done = call("run", "--require", "no_worse_than main by 0.1")
    assert done.exit_code == 2
    assert "'main'" in done.stderr
    assert json.loads(call("history", "list", "--json").stdout)["runs"] == []


def test_gates_about_what_is_not_run_now_are_left_out(suite, call):
    more = SHAKY.partition("agents:\n")[2].replace("two and two", "tagged")
    gates = "gates: [{require: pass@1 >= 0.01, tags: [x]}, {require: pass@1 >= 0.2}]\n"
    suite(f"{SHAKY}{more}    tags: [x]\n{gates}")
    answer = json.loads(call("run", "--json", "--task", "two and two").stdout)
    assert [verdict["require"] for verdict in answer["verdicts"]] == ["pass@1 >= 0.2"]


def test_a_budget_that_ends_a_run_before_every_task_is_not_a_verdict(suite, call):
    suite(SHAKY + SHAKY.partition("agents:\n")[2].replace("two and two", "again") + GATE)
    done = call("run", "--max-calls", "1", "--concurrency", "1")
    assert done.exit_code == 3, done.output
    assert "resume with a higher limit: passhat run --resume" in " ".join(done.stdout.split())
    assert "--max-calls N" in done.stdout


@pytest.mark.parametrize("options", [(), ("--until-settled",)])
@pytest.mark.parametrize("demands", [(), ("pass@1 >= 0.1",), ("pass@1 >= 0.1", "pass^3 >= 0.99")])
def test_the_first_line_of_all_that_a_run_says_is_its_verdict_which_is_said_once(
    suite, call, demands, options
):
    suite(SHAKY)
    asked = [word for demand in demands for word in ("--require", demand)]
    done = call("run", "-v", *asked, *(options if demands else ()))
    word = "PASS" if done.exit_code == 0 else "FAIL"
    assert re.match(rf"{word}\b", done.stdout)
    for demand in demands:
        assert len(re.findall(rf"^(?:PASS|FAIL) .*{re.escape(demand)}", done.stdout, re.M)) == 1


def test_a_gate_that_ran_out_of_runs_says_how_to_allow_more(suite, call):
    suite(SHAKY.replace("runs: 40", "runs: 3") + GATE)
    kept = call("run", "--until-settled")
    assert kept.exit_code == 4
    # A second look takes one trial more than a new run.
    assert re.search(r"^Decide it: passhat run --resume \w+ --trials 12$", kept.stdout, re.M)
    lost = call("run", "--until-settled", "--no-store")
    # As many as an agent takes that never fails: with fewer it would be undecided again.
    assert "Run again with --trials 11 or more." in lost.stdout


def test_the_command_that_allows_more_runs_allows_as_many_as_the_verdict_says(suite, call):
    suite(SHAKY.replace("runs: 40", "runs: 10"))
    done = call("run", "--require", "pass^1 >= 0.7")
    assert done.exit_code == 4, done.stdout
    said = " ".join(done.stdout.split())
    further = int(re.search(r"About ([\d,]+) more trials would decide", said)[1].replace(",", ""))
    assert further > 10
    assert f"--trials {10 + further}" in said


@pytest.mark.parametrize("demand", ["pass@1 >= 0.75", "pass@1 >= 75%"])
def test_a_gate_of_the_suite_that_is_asked_for_again_is_judged_once(suite, call, demand):
    suite(SHAKY + GATE)
    done = json.loads(call("run", "--require", demand, "--json").stdout)
    assert [one["require"] for one in done["verdicts"]] == ["pass@1 >= 0.75"]
