"""Our agent loop: turns, tools, time, steps, faults, and what each leaves in the row."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from passhat.records import (
    Behaviour,
    Budget,
    Expectation,
    Fault,
    Model,
    ModelParameters,
    ModelSystem,
    Outcome,
    Prices,
    ScriptedCall,
    StdioServer,
    Step,
    Task,
    TokenUsage,
    ToolSelection,
)
from passhat.runner import MemoryJournal, run_trials
from passhat.runner.models.exchange import CallRequest, Reply
from passhat.runner.schedule import Retry
from passhat.testing import WireServer

CLOCK = StdioServer(
    name="clock", argv=(sys.executable, str(Path(__file__).with_name("clock_server.py")))
)
CALL = ScriptedCall(tool="convert_time", arguments={"time": "12:00"})


@pytest.fixture
def one(suite_of):
    """Run one trial and give its row and its transcript."""

    def run(system, task=None, servers=(), **options):
        journal = MemoryJournal()
        suite = suite_of(system, task=task, servers={s.name: s for s in servers}, **options)
        (trial,) = run_trials(suite, journal=journal).trials
        return trial, json.loads(journal.finished()[0].transcript)

    return run


def test_a_model_calls_tools_until_it_has_an_answer(one, scripted):
    agent = scripted(Behaviour(calls=(CALL, CALL), answer="It says: {result}"), servers=("clock",))
    trial, said = one(agent, servers=[CLOCK])
    assert said["messages"][-1]["text"] == "It says: call 2: 12:00 there is 20:00 here"
    assert (trial.turns, trial.tool_calls, trial.tools) == (3, 2, ("convert_time", "convert_time"))
    assert said["stop_reason"] == "done"


def test_a_server_is_fresh_for_every_trial_unless_it_is_shared(suite_of, scripted):
    agent = scripted(Behaviour(calls=(CALL,), answer="{result}"), servers=("clock",))
    counts = {}
    for shared in (False, True):
        journal = MemoryJournal()
        servers = {"clock": replace(CLOCK, shared=shared)}
        run_trials(suite_of(agent, runs=4, servers=servers), journal=journal, concurrency=1)
        said = [
            json.loads(entry.transcript)["messages"][-1]["text"] for entry in journal.finished()
        ]
        counts[shared] = [text.split(":")[0] for text in said]
    assert counts[False] == ["call 1"] * 4
    assert counts[True] == ["call 1", "call 2", "call 3", "call 4"]


def test_turns_are_limited(one, scripted):
    agent = scripted(Behaviour(calls=(CALL,) * 9), servers=("clock",), max_turns=3)
    trial, said = one(agent, servers=[CLOCK])
    assert (trial.turns, trial.tool_calls, said["stop_reason"]) == (3, 3, "max_turns")


def test_a_tool_that_does_not_exist_is_the_model_s_to_hear(one, scripted):
    agent = scripted(
        Behaviour(calls=(ScriptedCall(tool="fly"),), answer="{result}"), servers=("clock",)
    )
    trial, said = one(agent, servers=[CLOCK])
    assert said["messages"][-1]["text"] == "There is no tool 'fly'. Tools: convert_time"
    assert trial.outcome is Outcome.PASSED


def test_broken_arguments_are_the_model_s_to_hear(one):
    def answer(asked):
        if asked.number == 0:
            return Reply(calls=(CallRequest(id="c", name="convert_time", broken='{"time": '),))
        return Reply(text=asked.body["messages"][-1]["content"])

    with WireServer(answer) as server:
        model = Model(name="m", base_url=server.url)
        _, said = one(ModelSystem(name="agent", model=model, servers=("clock",)), servers=[CLOCK])
    assert said["messages"][-1]["text"].startswith("The arguments of convert_time are not a JSON")


def test_an_agent_out_of_time_has_failed_with_what_it_did(one, scripted):
    slow = Behaviour(calls=(CALL,), answer="late", seconds=2.4, tokens_in=10, tokens_out=4)
    agent = scripted(slow, servers=("clock",), timeout=2.2)
    trial, said = one(agent, servers=[CLOCK])
    assert (trial.outcome, trial.error, said["stop_reason"]) == (Outcome.FAILED, None, "timeout")
    assert (trial.tool_calls, trial.tokens_in) == (1, 5)


def test_time_spent_waiting_for_a_busy_provider_is_not_the_agent_s(suite_of):
    waits = []

    def relent(event):
        if isinstance(event, Retry):
            waits.append(event.wait)
            if len(waits) == 2:
                server.troubles.clear()

    with WireServer(troubles={"429": 1.0}, retry_after=1.2) as server:
        system = ModelSystem(name="agent", model=Model(name="m", base_url=server.url), timeout=2.0)
        (trial,) = run_trials(suite_of(system), on_event=relent).trials
    assert sum(waits) >= 2.4
    assert (trial.outcome, trial.error) == (Outcome.PASSED, None)


def test_a_provider_that_never_recovers_is_an_error(one):
    with WireServer(troubles={"503": 1.0}) as server:
        system = ModelSystem(name="agent", model=Model(name="m", base_url=server.url))
        trial, _ = one(system, retries=1)
    assert trial.outcome is Outcome.ERRORED
    assert "503 503 on purpose (asked 2 times)" in trial.error


def test_the_budget_of_a_trial_ends_it_as_a_failure(one, scripted):
    greedy = Behaviour(calls=(CALL,) * 5, answer="done", tokens_in=600, tokens_out=0)
    agent = scripted(greedy, servers=("clock",))
    trial, said = one(agent, servers=[CLOCK], trial_budget=Budget(max_tokens=250))
    assert (trial.outcome, said["stop_reason"]) == (Outcome.FAILED, "budget")
    assert trial.tokens_in == 300
    own = Task(name="t", prompt="?", budget=Budget(max_tokens=10_000))
    trial, said = one(agent, own, servers=[CLOCK], trial_budget=Budget(max_tokens=250))
    assert (trial.outcome, said["stop_reason"]) == (Outcome.PASSED, "done")


def test_tokens_and_money_add_up_over_turns(one):
    usage = TokenUsage(tokens_in=100, tokens_out=10, cached_in=50)

    def answer(asked):
        calls = (CallRequest(id="c", name="convert_time", arguments={"time": "1"}),)
        return Reply(calls=calls if asked.number < 2 else (), text="ok", usage=usage)

    with WireServer(answer) as server:
        prices = Prices(input=1e4, output=1e5, cached=1e3)
        model = Model(name="m", base_url=server.url, prices=prices)
        trial, _ = one(ModelSystem(name="agent", model=model, servers=("clock",)), servers=[CLOCK])
    assert (trial.tokens_in, trial.tokens_out) == (300, 30)
    assert trial.cost == pytest.approx(3 * (50 * 0.01 + 50 * 0.001 + 10 * 0.1))


def test_each_trial_sends_its_own_seed_unless_one_is_given(suite_of):
    for given, distinct in ((None, 5), (7, 1)):
        with WireServer() as server:
            parameters = ModelParameters(seed=given)
            model = Model(name="m", base_url=server.url, parameters=parameters)
            run_trials(suite_of(ModelSystem(name="agent", model=model), runs=5))
        assert len({asked.body["seed"] for asked in server.asked}) == distinct


def test_a_floor_alone_passes_the_runs_that_select_the_tool(suite_of, scripted):
    agent = scripted(
        Behaviour(calls=(CALL,), answer="x", weight=1), Behaviour(answer="x", weight=1),
        servers=("clock",),
    )  # fmt: skip
    floor = ToolSelection(expected_tool="convert_time", min_selection_rate=0.5)
    task = Task(name="t", prompt="?", tool_selection=floor)
    result = run_trials(suite_of(agent, task=task, runs=12, servers={"clock": CLOCK}))
    assert all((t.outcome is Outcome.PASSED) == ("convert_time" in t.tools) for t in result.trials)
    assert {t.outcome for t in result.trials} == {Outcome.PASSED, Outcome.FAILED}


def test_steps_follow_one_another_until_one_fails(one, scripted):
    def step(name, word):
        return Step(name=name, prompt=name, expect=(Expectation(matcher="contains", value=word),))

    task = Task(name="t", steps=(step("fetch", "4"), step("book", "5"), step("pay", "4")))
    trial, said = one(scripted(), task)
    assert trial.outcome is Outcome.FAILED
    assert trial.score == pytest.approx(1 / 3)
    assert trial.tags == ("step-passed:fetch", "step-failed:book")
    assert [m["text"] for m in said["messages"] if m["role"] == "user"] == ["fetch", "book"]


def test_a_grader_that_breaks_is_an_error(one, scripted):
    task = Task(name="t", prompt="?", expect=(Expectation(matcher="python", value="no:such"),))
    trial, _ = one(scripted(), task)
    assert trial.outcome is Outcome.ERRORED
    assert "no:such" in trial.error


@pytest.mark.parametrize(
    ("kind", "answer", "outcome"),
    [
        ("tool_error", "convert_time failed: internal error", Outcome.PASSED),
        ("timeout", "convert_time timed out", Outcome.PASSED),
        ("malformed_result", '{"result": "ok", "value": 4', Outcome.PASSED),
        ("empty_result", None, Outcome.PASSED),
        ("wrong_schema", '{"unexpected"', Outcome.PASSED),
        ("latency", "call 1: 12:00", Outcome.PASSED),
        ("server_crash", None, Outcome.ERRORED),
    ],
)
def test_faults_of_tools_strike_where_they_are_told(one, scripted, kind, answer, outcome):
    agent = scripted(Behaviour(calls=(CALL,), answer="got {result}"), servers=("clock",))
    broken = replace(CLOCK, faults=(Fault(kind=kind, nth=1, seconds=0.01),))
    trial, said = one(agent, servers=[broken])
    assert trial.outcome is outcome
    if outcome is Outcome.PASSED:
        assert f"fault:{kind}" in trial.tags
        assert (answer or "got ") in said["messages"][-1]["text"]
    else:
        assert 'server "clock" crashed, on purpose' in trial.error


@pytest.mark.slow("simulates an error rate")
def test_faults_by_chance_are_seeded_and_hit_about_as_often_as_told(suite_of, scripted):
    agent = scripted(Behaviour(calls=(CALL,), answer="{result}"), servers=("clock",))
    shared = replace(CLOCK, shared=True, faults=(Fault(kind="tool_error", probability=0.3),))
    suite = suite_of(agent, runs=200, servers={"clock": shared})
    struck = [
        ["fault:tool_error" in trial.tags for trial in run_trials(suite).trials] for _ in range(2)
    ]
    assert struck[0] == struck[1]
    assert abs(sum(struck[0]) - 60) < 5 * (200 * 0.3 * 0.7) ** 0.5


@pytest.mark.parametrize(
    ("calls", "answer", "mark"),
    [
        ((CALL, CALL), "20:00", "retried"),
        ((CALL, ScriptedCall(tool="other")), "20:00", "other tool"),
        ((CALL,), "I am unable to do that.", "gave up"),
        ((CALL,), "It is 20:00.", "made up a result"),
        ((CALL,) * 6, "20:00", "looped"),
    ],
)
def test_what_an_agent_did_after_a_fault_is_told(one, scripted, calls, answer, mark):
    agent = scripted(Behaviour(calls=calls, answer=answer), servers=("clock",))
    broken = replace(CLOCK, faults=(Fault(kind="tool_error", nth=1),))
    trial, _ = one(agent, servers=[broken])
    assert f"after-fault:{mark}" in trial.tags


def test_faults_of_models_are_met_by_patience_or_seen_as_cut_off(one, scripted):
    def with_faults(*faults):
        agent = scripted(Behaviour(answer="a long answer"))
        return replace(agent, model=replace(agent.model, faults=faults))

    trial, said = one(with_faults(Fault(kind="rate_limit", nth=1)))
    assert trial.outcome is Outcome.PASSED
    assert said["messages"][-1]["text"] == "a long answer"
    trial, said = one(with_faults(Fault(kind="truncated_answer", nth=1)))
    assert said["messages"][-1]["text"] == "a long"
    assert said["stop_reason"] == "max_tokens"
    assert "fault:truncated_answer" in trial.tags
    trial, said = one(with_faults(Fault(kind="rate_limit", probability=1.0)), retries=2)
    assert trial.outcome is Outcome.ERRORED
