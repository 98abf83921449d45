"""Whatever an agent prints or reports, its trial ends and the run goes on."""

import json
import random
import sys
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.runner.mutations import read_one_printed

from passhat.errors import RunError
from passhat.history import History, RunJournal
from passhat.records import (
    CommandSystem,
    Expectation,
    Observation,
    Outcome,
    PythonSystem,
    Task,
)
from passhat.runner import MemoryJournal, run_trials
from passhat.runner.agents.agent_output import observe_report
from passhat.runner.agents.command import read_aider, read_coding_tool
from passhat.runner.cassettes import open_cassettes

KEYS = (
    *("answer", "messages", "usage", "cost", "turns", "tool_calls", "error", "is_error", "tokens"),
    *("type", "subtype", "result", "errors", "message", "item", "sessionID", "part", "text"),
    *("stats", "response", "models", "tools", "byName", "count", "status", "role", "content"),
    *("tool_call_id", "call_id", "id", "function", "name", "arguments", "choices", "score"),
    *("input_tokens", "prompt_tokens", "state", "input", "output", "tool_use_id", "calls"),
)
WORDS = ("result", "success", "tool", "tool_result", "item.completed", "turn.completed", "error")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(WORDS),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5)
    ),
    max_leaves=12,
)
MUCH = '{"role": "assistant", "usage": {"input_tokens": 9e17}}'
OBJECTS = st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=6)


@given(report=OBJECTS)
@example(report={"messages": [{"role": "assistant", "tool_calls": 5}]})
@example(report={"messages": [{"role": "tool", "tool_call_id": [1], "content": "x"}]})
@example(report={"messages": [{"role": "user", "content": [{"type": ["text"]}]}]})
@example(report={"usage": {"input_tokens": float("nan")}})
def test_a_report_is_read_or_refused(report):
    with suppress(RunError):
        assert isinstance(observe_report(report, about="mine"), Observation)


@given(lines=st.lists(OBJECTS, max_size=4))
@example(lines=[{"stats": {"models": {"a": 3}}, "response": "r"}])
@example(lines=[{"stats": {"tools": {"byName": {"x": {"count": 10**12}}}}, "response": "r"}])
@example(lines=[{"type": "result", "subtype": "x", "errors": 5}])
@example(lines=[{"sessionID": "x", "type": "step_finish", "part": {"cost": "much"}}])
def test_the_output_of_a_coding_tool_is_read_or_left_alone(lines):
    report = read_coding_tool(lines)
    assert report is None or isinstance(report, dict)


def test_broken_output_is_read_or_refused_in_a_sentence():
    """`make mutations` breaks twenty thousand."""
    refusals = [read_one_printed(random.Random(seed)) for seed in range(1000)]
    assert any(refusals)
    assert not any("\n" in told for told in refusals if told)


def test_numbers_that_are_none_are_not_those_of_aider():
    line = "Tokens: 1.2.3k sent, 4 received. Cost: $1.2 message, $1.2.3 session."
    assert read_aider(line) is None


def test_usage_of_several_turns_is_added_up_with_what_the_cache_took():
    turn = {"type": "turn.completed", "usage": {"input_tokens": 9, "cache_write_tokens": 2}}
    report = read_coding_tool([turn, turn])
    assert report is not None
    assert report["usage"]["tokens_in"] == 18
    assert report["usage"]["cache_written"] == 4


def agent(tmp_path, source, **options):
    path = tmp_path / "agent.py"
    path.write_text(source)
    return CommandSystem(name="agent", argv=(sys.executable, str(path)), **options)


def test_half_a_character_in_a_report_does_not_end_the_run(tmp_path, suite_of):
    source = r"""print('{"answer": "cut \\ud83d", "passed": true}')"""
    journal = MemoryJournal()
    (trial,) = run_trials(suite_of(agent(tmp_path, source)), journal=journal).trials
    assert trial.outcome is Outcome.PASSED
    assert json.loads(journal.finished()[0].transcript)["answer"] == "cut ?"


@pytest.mark.parametrize("letter", ["a", "語"])
def test_a_long_prompt_reaches_a_program_whole_whatever_its_letters(tmp_path, suite_of, letter):
    source = "import sys; print(len(sys.stdin.read()))"
    task = Task(
        name="long", prompt=letter * 150_000, expect=(Expectation(matcher="exact", value="150000"),)
    )
    system = agent(tmp_path, source, outcome="expect")
    (trial,) = run_trials(suite_of(system, task=task)).trials
    assert (trial.error, trial.outcome) == (None, Outcome.PASSED)


def test_a_prompt_too_long_for_a_command_line_says_where_else_it_can_go(suite_of):
    system = CommandSystem(name="agent", argv=("echo", "{prompt}"))
    (trial,) = run_trials(suite_of(system, task=Task(name="long", prompt="a" * 200_000))).trials
    assert trial.error is not None
    assert "too long for a command line; leave {prompt} out" in trial.error


@pytest.mark.parametrize(
    "prompt",
    [
        r'{"answer": "cut \ud83d", "passed": true}',
        r'{"passed": true, "messages": [{"role": "assistant", "content": "cut \ud83d"}]}',
    ],
)
def test_half_a_character_from_a_function_does_not_end_the_run(tmp_path, suite_of, prompt):
    system = PythonSystem(name="agent", function="json:loads")
    suite = suite_of(system, task=Task(name="t", prompt=prompt), directory=tmp_path)
    with open_cassettes(suite, "record") as cassettes:
        (trial,) = run_trials(suite, cassettes=cassettes).trials
    assert trial.outcome is Outcome.PASSED


def test_half_a_character_in_an_error_can_be_stored(tmp_path, suite_of):
    source = r'def fail(prompt): raise ValueError("cut \ud83d")'
    (tmp_path / "failing_half.py").write_text(source)
    system = PythonSystem(name="agent", function="failing_half:fail", search=tmp_path)
    suite = suite_of(system)
    with History.open(tmp_path / "history.db") as history:
        run = history.start_run("suite")
        (trial,) = run_trials(suite, journal=RunJournal(history, run)).trials
        (stored,) = history.trials(run)
    assert (
        stored.error
        == trial.error
        == ("failing_half:fail raised ValueError: cut ? (failing_half.py, line 1)")
    )


@pytest.mark.parametrize(
    "spent",
    [
        *(f'"tokens": {total}' for total in ("1" + "0" * 30, "-5", "true", "NaN", "1e999")),
        f'"messages": [{", ".join([MUCH] * 20)}]',
    ],
)
def test_tokens_that_no_attempt_can_take_do_not_end_the_run(tmp_path, suite_of, spent):
    source = f"""print('{{"passed": true, {spent}}}')"""
    with History.open(tmp_path / "history.db") as history:
        run = history.start_run("suite")
        run_trials(suite_of(agent(tmp_path, source)), journal=RunJournal(history, run))
        (stored,) = history.trials(run)
    assert (stored.outcome, stored.tokens, stored.tokens_in) == (Outcome.PASSED, None, None)
