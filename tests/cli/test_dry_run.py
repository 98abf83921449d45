"""`passhat run --dry-run`: the plan and its price, with nothing started."""

import json

import pytest

import passhat

SUITE = """\
name: paid
servers: {weather: {command: [./server], shared: true}}
agents:
  - name: weather
    model: claude-opus-5
    servers: [weather]
    prompt: What is the weather?
    runs: 10
gates: ["pass^3 >= 0.8"]
budget: {max_minutes: 5}
"""


@pytest.fixture(autouse=True)
def server(here):
    """A program that nobody starts."""
    path = here / "server"
    path.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def plan(call, *arguments):
    done = call("run", "--dry-run", "--json", *arguments)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_it_says_what_would_be_run_and_runs_nothing(suite, call, here):
    suite(SUITE)
    done = call("run", "--dry-run")
    assert done.exit_code == 0, done.output
    for text in ("10 trials", "claude-opus-5", "./server (shared)", "pass^3 >= 0.8", "max_minutes"):
        assert text in done.stdout
    assert not (here / ".passhat").exists()


def test_the_cost_is_a_range_that_grows_with_the_runs(suite, call):
    suite(SUITE)
    ten, twenty = plan(call)["cost"], plan(call, "--runs", "20")["cost"]
    assert 0 < ten["low"] < ten["high"]
    assert twenty["high"] == pytest.approx(2 * ten["high"])


def test_a_budget_caps_it(suite, call):
    suite(SUITE)
    cost = plan(call, "--max-cost", "0.01")["cost"]
    assert cost["high"] == 0.01
    assert "stopped by max_cost" in cost["how"]


def test_the_suites_own_prices_count(suite, call):
    own = "model: my-model\n    base_url: http://localhost:9/v1\n    prices: {input: 0, output: 0}"
    suite(SUITE.replace("model: claude-opus-5", own))
    assert plan(call)["cost"]["high"] == 0.0


def test_a_model_without_a_price_is_said_to_have_none(suite, call):
    own = "model: my-model\n    base_url: http://localhost:9/v1"
    suite(SUITE.replace("model: claude-opus-5", own))
    assert plan(call)["cost"] == {
        "low": 0.0,
        "high": None,
        "how": "no price is known for my-model",
    }


def test_earlier_runs_know_better_than_rules_of_thumb(suite, call):
    suite(
        "name: metered\n"
        "agents:\n"
        "  - {name: a, model: scripted, prompt: hi, runs: 30, prices: {input: 1, output: 1},\n"
        "     script: [{answer: x, tokens_in: 1000000, tokens_out: 0},\n"
        "              {answer: y, tokens_in: 3000000, tokens_out: 0}]}\n"
    )
    assert call("run").exit_code == 0
    cost = plan(call, "--runs", "100")["cost"]
    assert cost["how"] == "from the cost of 30 earlier trials"
    assert 100 < cost["low"] < 200 < cost["high"] < 300


def test_the_plan_is_written_in_every_format_that_can_hold_it(suite, call, here):
    suite(SUITE)
    assert call("run", "--dry-run", "-o", "plan.md", "-o", "plan.csv").exit_code == 0
    assert "Gates: pass^3 &gt;= 0.8\n" in (here / "plan.md").read_text()
    assert (here / "plan.csv").read_text().startswith("suite,size,mode,tasks,systems,trials,")
    assert call("run", "--dry-run", "--as", "markdown").stdout == (here / "plan.md").read_text()


def test_a_format_that_cannot_hold_the_plan_is_refused(suite, call):
    suite(SUITE)
    refused = call("run", "--dry-run", "--as", "junit")
    assert refused.exit_code == 2
    assert "--as junit: must be one of text json markdown" in refused.output
    refused = call("run", "--dry-run", "-o", "plan.xml")
    assert refused.exit_code == 2
    assert "-o plan.xml: cannot write .xml" in refused.output


def test_a_plan_shows_itself_in_a_notebook(suite):
    suite(SUITE)
    found = passhat.plan_run()
    assert repr(found).startswith("<RunPlan of 'paid': 1 task, 1 agent, 10 trials, $")
    assert "./server (shared)" in found._repr_html_()
    assert found.cost.high == pytest.approx(10 * passhat.plan_run(runs=1).cost.high)


ONCE = "each task runs once, which cannot show whether it passes every time: write `runs: 10` under"
SCRIPTED = """\
systems: [{name: a, model: scripted, script: [{answer: sure}]}]
tasks: [{name: t, prompt: hi, expect: [{contains: sure}]}]
"""


def test_a_suite_without_runs_says_what_to_write_before_and_after_it_is_run(suite, call):
    suite(SCRIPTED)
    for command in (["check"], ["run", "--dry-run"], ["run"], ["run", "--no-store"]):
        done = call(*command)
        assert done.exit_code == 0
        assert ONCE in " ".join(done.output.split()), command
        assert "runs=10" not in done.output, "an argument of Python"


@pytest.mark.parametrize(
    "given", [["--runs", "1"], ["--require", "pass^1 >= 0.5", "--until-settled"]]
)
def test_who_asked_for_one_run_or_for_a_verdict_is_not_told_of_runs(suite, call, given):
    suite(SCRIPTED)
    assert ONCE not in " ".join(call("run", *given).output.split())
    suite(SCRIPTED + "defaults: {runs: 2}\n")
    assert ONCE not in " ".join((call("run").output + call("check").output).split())


LOCAL = """\
name: local
agents:
  - {{name: mine, {agent}, prompt: Hello, runs: 2}}
{gates}
"""


@pytest.mark.parametrize(
    ("agent", "gates"),
    [
        ("command: [./no-such-agent]", ""),
        ("python: no_such_module:answer", ""),
        ("command: [./server]", "gates: [no_worse_than main by 0.05]"),
    ],
    ids=["no program", "no module", "no baseline"],
)
def test_it_refuses_what_the_run_refuses(suite, call, here, agent, gates):
    (here / "old.csv").write_text("task,passed\na,1\na,0\n", encoding="utf-8")
    assert call("history", "add", "old.csv").exit_code == 0  # a store without such a run
    suite(LOCAL.format(agent=agent, gates=gates))
    planned, done = call("run", "--dry-run"), call("run")
    assert planned.exit_code == done.exit_code == 2
    assert planned.stderr.splitlines()[0] == done.stderr.splitlines()[0]


def test_a_baseline_needs_a_store(suite, call, here):
    suite(LOCAL.format(agent="command: [./server]", gates="gates: [no_worse_than main by 0.05]"))
    for options in ((), ("--no-store",)):
        done = call("run", "--dry-run", *options)
        assert done.exit_code == 2, done.output
    assert not (here / ".passhat").exists()
