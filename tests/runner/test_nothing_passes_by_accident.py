"""Nothing passes by accident: what does not say that it succeeded has not passed."""

import json
import sys
import textwrap
from dataclasses import replace

import pytest
from click.testing import CliRunner

from passhat.cli import main
from passhat.errors import ServerNeverStarted
from passhat.records import (
    CommandSystem,
    Expectation,
    Outcome,
    PythonSystem,
    StdioServer,
    Step,
    Task,
)
from passhat.runner import MemoryJournal, run_trials
from passhat.runner.agents.agent_output import observe_report, observe_value
from passhat.runner.agents.command import json_spans, read_aider, read_coding_tool


def echo(text, **options):
    """A program that prints a text."""
    code = f"import sys; sys.stdout.write({text!r})"
    return CommandSystem(name="agent", argv=(sys.executable, "-c", code), **options)


def coding_tool_report(printed):
    return read_coding_tool(value for value, _, _ in json_spans(printed))


@pytest.fixture
def function(tmp_path):
    """A system from the source of a function `run`."""

    def make(source, **options):
        number = len(list(tmp_path.glob("agent_*.py")))
        module = f"agent_{number}_{abs(hash(source)) % 10**8}"
        (tmp_path / f"{module}.py").write_text(textwrap.dedent(source))
        return PythonSystem(name="agent", function=f"{module}:run", search=tmp_path, **options)

    return make


@pytest.fixture
def trial_of(suite_of):
    """One trial of a system, and its transcript."""

    def one(system, task=None):
        journal = MemoryJournal()
        run_trials(suite_of(system, task=task), journal=journal, environment={})
        (entry,) = journal.finished()
        return entry.trial, json.loads(entry.transcript)

    return one


@pytest.mark.parametrize(
    ("returned", "keys"),
    [
        ('{"thoughts": "hm", "elapsed": 3}', "thoughts, elapsed"),
        ('"a text"', "answer"),
        ("{}", "nothing"),
    ],
)
def test_a_result_that_says_nothing_about_success_is_an_error(function, trial_of, returned, keys):
    trial, _ = trial_of(function(f"def run(prompt): return {returned}"))
    assert trial.outcome is Outcome.ERRORED
    assert f"does not say whether it succeeded (it returned: {keys})" in trial.error


def test_an_expectation_decides_about_any_result(function, trial_of):
    task = Task(
        name="t",
        prompt="?",
        expect=(Expectation(matcher="exact", target="reported.elapsed", value=3),),
    )
    trial, _ = trial_of(function('def run(prompt): return {"elapsed": 3}'), task)
    assert trial.outcome is Outcome.PASSED


@pytest.mark.parametrize("negate", [False, True])
def test_an_answer_under_an_unknown_key_is_an_error_and_not_an_empty_answer(
    function, trial_of, negate
):
    expected = Expectation(matcher="exact", value="4", negate=negate)
    agent = function('def run(prompt): return {"reply": "4", "cost": 0.1}')
    for task in (
        Task(name="t", prompt="?", expect=(expected,)),
        Task(name="t", steps=(Step(name="first", prompt="?", expect=(expected,)),)),
    ):
        trial, _ = trial_of(agent, task)
        assert trial.outcome is Outcome.ERRORED
        assert "agent gives no answer (it returned: reply, cost): return a text" in trial.error


@pytest.mark.parametrize("report", ['{"answer": None}', '{"tool_calls": []}', '{"output": ""}'])
def test_a_report_with_a_known_key_and_no_answer_is_a_failure(function, trial_of, report):
    task = Task(name="t", prompt="?", expect=(Expectation(matcher="exact", value="4"),))
    trial, _ = trial_of(function(f"def run(prompt): return {report}"), task)
    assert trial.outcome is Outcome.FAILED


def test_json_over_several_lines_is_a_report(trial_of):
    trial, _ = trial_of(echo('thinking\n{\n  "passed": false,\n  "score": 0.0\n}\n'))
    assert trial.outcome is Outcome.FAILED
    trial, _ = trial_of(echo('{"passed": true}\n{\n  "passed": false\n}\n'))
    assert trial.outcome is Outcome.FAILED


def test_broken_and_deep_json_is_looked_at_once_and_left():
    assert list(json_spans("{\n" * 20_000)) == []
    assert list(json_spans("[" * 200_000)) == []
    assert [value for value, _, _ in json_spans('{"a": [{\n"b": 1}]}\nx')] == [{"a": [{"b": 1}]}]


USAGE = {"input_tokens": 50, "output_tokens": 20, "cache_read_input_tokens": 30}
CLAUDE = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "num_turns": 3,
    "result": "It is 24 degrees.",
    "total_cost_usd": 0.0123,
    "duration_ms": 1500,
    "usage": USAGE,
}
CLAUDE_STREAM = [
    {"type": "system", "subtype": "init", "session_id": "s"},
    {
        "type": "assistant",
        "message": {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}},
            ],
        },
    },
    {
        "type": "user",
        "message": {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "README"}],
        },
    },
    CLAUDE,
]
CODEX = [
    {"type": "thread.started", "thread_id": "th"},
    {"type": "turn.started"},
    {
        "type": "item.completed",
        "item": {
            "id": "i0",
            "type": "command_execution",
            "command": "ls",
            "aggregated_output": "README",
            "exit_code": 0,
            "status": "completed",
        },
    },
    {"type": "item.completed", "item": {"id": "i1", "type": "agent_message", "text": "It is 24."}},
    {
        "type": "turn.completed",
        "usage": {"input_tokens": 80, "cached_input_tokens": 30, "output_tokens": 20},
    },
]
GEMINI = {
    "response": "It is 24.",
    "stats": {
        "models": {"gemini-2.5-pro": {"tokens": {"prompt": 80, "candidates": 20, "total": 100}}},
        "tools": {"totalCalls": 1, "byName": {"read_file": {"count": 1, "success": 1}}},
    },
}
GEMINI_STREAM = [
    {"type": "init", "session_id": "s", "model": "gemini-2.5-pro"},
    {"type": "message", "role": "user", "content": "?"},
    {"type": "tool_use", "tool_name": "read_file", "tool_id": "r1", "parameters": {"path": "a"}},
    {"type": "tool_result", "tool_id": "r1", "status": "success", "output": "README"},
    {"type": "message", "role": "assistant", "content": "It is ", "delta": True},
    {"type": "message", "role": "assistant", "content": "24.", "delta": True},
    {"type": "result", "status": "success", "stats": {"input_tokens": 80, "output_tokens": 20}},
]
OPENCODE = [
    {"type": "step_start", "sessionID": "ses_1", "part": {"type": "step-start"}},
    {
        "type": "tool_use",
        "sessionID": "ses_1",
        "part": {
            "tool": "bash",
            "state": {"status": "completed", "input": {"command": "ls"}, "output": "README"},
        },
    },
    {"type": "text", "sessionID": "ses_1", "part": {"type": "text", "text": "It is 24."}},
    {
        "type": "step_finish",
        "sessionID": "ses_1",
        "part": {"reason": "stop", "cost": 0.5, "tokens": {"input": 80, "output": 20}},
    },
]
AIDER = (
    "Applied edit to a.py\n"
    "Tokens: 2.6k sent, 219 received. Cost: $0.0039 message, $0.0078 session.\n"
)


def lines(events):
    return "\n".join(map(json.dumps, events))


@pytest.mark.parametrize(
    ("printed", "seen"),
    [
        (json.dumps(CLAUDE), {"tokens_in": 80, "cost": 0.0123, "turns": 3, "seconds": 1.5}),
        (json.dumps(CLAUDE, indent=2), {"tokens_in": 80, "cost": 0.0123, "turns": 3}),
        (lines(CLAUDE_STREAM), {"tokens_in": 80, "tools": ["Bash"], "turns": 3}),
        (json.dumps(CLAUDE_STREAM), {"tokens_in": 80, "tools": ["Bash"], "turns": 3}),
        (lines(CODEX), {"tokens_in": 80, "tools": ["shell"], "turns": 1}),
        (json.dumps(GEMINI, indent=2), {"tokens_in": 80, "tools": ["read_file"]}),
        (lines(GEMINI_STREAM), {"tokens_in": 80, "tools": ["read_file"]}),
        (lines(OPENCODE), {"tokens_in": 80, "tools": ["bash"], "cost": 0.5, "turns": 1}),
    ],
)
def test_the_output_of_coding_tools_is_understood(printed, seen):
    found = observe_report(coding_tool_report(f"warming up\n{printed}\n"), about="agent")
    assert "It is 24" in found.answer
    assert found.error is None
    told = {
        "tokens_in": found.usage.tokens_in,
        "cost": found.cost,
        "turns": found.turns,
        "seconds": found.seconds,
        "tools": [call.name for call in found.tool_calls],
    }
    assert {key: told[key] for key in seen} == seen
    assert found.usage.tokens_out == 20


def test_aider_tells_its_tokens_and_its_cost_in_words():
    found = observe_report(read_aider(AIDER), about="agent")
    assert (found.usage.tokens_in, found.usage.tokens_out, found.cost) == (2600, 219, 0.0078)


def test_a_coding_tool_that_ran_into_an_error_is_an_error_that_was_paid_for(trial_of):
    broken = CLAUDE | {"subtype": "error_during_execution", "is_error": True, "result": None}
    trial, _ = trial_of(echo(json.dumps(broken)))
    assert trial.outcome is Outcome.ERRORED
    assert trial.error == "agent reports an error: error_during_execution"
    assert (trial.cost, trial.tokens_in) == (0.0123, 80)


@pytest.mark.parametrize("reason", ["max_turns", "max_budget_usd"])
def test_a_coding_tool_that_used_up_its_turns_has_failed(trial_of, reason):
    spent = CLAUDE | {"subtype": f"error_{reason}", "is_error": True, "result": None}
    trial, _ = trial_of(echo(json.dumps(spent)))
    assert trial.outcome is Outcome.FAILED
    assert trial.turns == 3


@pytest.mark.parametrize(
    "broken",
    [
        lines([*CODEX[:2], {"type": "turn.failed", "error": {"message": "quota"}}]),
        lines([{"type": "error", "sessionID": "s", "error": {"data": {"message": "quota"}}}]),
        json.dumps({"error": {"message": "quota"}, "stats": {}}),
        lines([{"type": "result", "status": "error", "error": {"message": "quota"}, "stats": {}}]),
    ],
)
def test_the_errors_of_other_coding_tools_are_told(broken):
    found = observe_report(coding_tool_report(broken), about="agent")
    assert found.error == "agent reports an error: quota"


STEPS = Task(
    name="t",
    steps=(
        Step(name="one", prompt="hello", expect=(Expectation(matcher="contains", value="hello"),)),
        Step(
            name="two", prompt="and then?", expect=(Expectation(matcher="contains", value="then"),)
        ),
    ),
)


def test_each_step_of_a_task_is_said_to_a_command_and_graded(trial_of):
    system = CommandSystem(
        name="agent", argv=("sh", "-c", 'echo "$PASSHAT_STEP" >> steps; echo "$0"', "{prompt}")
    )
    counted = replace(
        STEPS, expect=(Expectation(matcher="command", value=["grep", "-q", "2", "steps"]),)
    )
    trial, _ = trial_of(system, counted)
    assert trial.outcome is Outcome.PASSED, trial
    assert set(trial.tags) == {"step-passed:one", "step-passed:two"}


@pytest.mark.parametrize("workers", [0, 1])
def test_a_function_is_told_what_was_said_in_the_steps_before(function, trial_of, workers):
    source = """
        def run(prompt, history):
            said = [message["content"] for message in history]
            return "then " + "".join(said) if said else prompt
    """
    last = Step(
        name="two",
        prompt="and then?",
        expect=(Expectation(matcher="exact", value="then hellohello"),),
    )
    task = replace(STEPS, steps=(STEPS.steps[0], last))
    trial, _ = trial_of(function(source, workers=workers), task)
    assert trial.outcome is Outcome.PASSED, trial


def test_a_step_that_fails_ends_the_task_there(function, trial_of):
    trial, _ = trial_of(function("def run(prompt): return 'no'"), STEPS)
    assert trial.outcome is Outcome.FAILED
    assert trial.score == 0
    assert trial.tags == ("step-failed:one",)


def test_the_reason_of_a_timeout_is_the_timeout(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "passhat.yml").write_text(
        "name: t\nsystems: [{name: slow, command: [sleep, '60'], timeout: 0.3}]\n"
        "tasks: [{name: w, prompt: x, expect: [{contains: '24'}]}]\n"
    )
    done = CliRunner().invoke(main, ["run", "--runs", "1", "--no-store"])
    assert "stopped by its timeout of 0.3 s" in done.output
    assert "to contain" not in done.output


def test_what_agents_print_does_not_mix_with_the_answer(tmp_path):
    import subprocess

    (tmp_path / "chatty.py").write_text(
        "import os, subprocess\nprint('at import')\n"
        "def run(prompt):\n"
        "    print('STRAY'); os.write(1, b'RAW\\n'); subprocess.run(['echo', 'CHILD'])\n"
        "    return True\n"
    )
    (tmp_path / "passhat.yml").write_text(
        "name: p\nsystems: [{name: a, python: 'chatty:run'}]\ntasks: [{name: w, prompt: x}]\n"
    )
    argv = [sys.executable, "-m", "passhat", "run", "--json", "--no-store"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert json.loads(done.stdout)
    assert all(word in done.stderr for word in ("at import", "STRAY", "RAW", "CHILD"))


def test_a_server_that_cannot_start_ends_the_run_with_its_last_words(suite_of, scripted):
    code = "import sys; sys.stderr.write('loading\\nModuleNotFoundError: no pandas'); sys.exit(1)"
    server = StdioServer(name="broken", argv=(sys.executable, "-c", code))
    suite = suite_of(
        scripted(servers=("broken",)), tasks=5, runs=20, servers={"broken": server}, concurrency=4
    )
    journal = MemoryJournal()
    with pytest.raises(
        ServerNeverStarted,
        match=r'server "broken" did not start.*line on stderr: ModuleNotFoundError',
    ):
        run_trials(suite, journal=journal, environment={})
    assert len(journal.launched()) < 20


@pytest.mark.slow("waits for a slow server")
def test_a_slow_handshake_is_bounded_by_the_time_to_start(suite_of, scripted):
    argv = ("sh", "-c", f"sleep 1.5; exec {sys.executable} -m passhat.testing.weather_server")
    server = StdioServer(name="slow", argv=argv, call_timeout=1.0, start_timeout=60.0)
    suite = suite_of(scripted(servers=("slow",)), servers={"slow": server})
    (trial,) = run_trials(suite, environment={}).trials
    assert trial.error is None


def test_files_that_a_function_leaves_can_be_expected(function, trial_of):
    source = """
        def run(prompt, workdir):
            (workdir / "out.txt").write_text("24")
            return "done"
    """
    task = Task(
        name="t",
        prompt="?",
        expect=(
            Expectation(matcher="command", value=["grep", "-q", "24", "out.txt"]),
            Expectation(matcher="contains", target="files", value="out.txt"),
        ),
    )
    trial, _ = trial_of(function(source), task)
    assert trial.outcome is Outcome.PASSED, trial


def test_the_account_that_an_agent_gives_is_in_its_transcript(function, trial_of):
    source = """
        def run(prompt):
            call = {"id": "c1", "type": "function",
                    "function": {"name": "get_weather", "arguments": '{"city": "Rome"}'}}
            return {"passed": True, "usage": {"prompt_tokens": 11, "completion_tokens": 7},
                    "messages": [
                        {"role": "user", "content": prompt},
                        {"role": "assistant", "content": None, "tool_calls": [call]},
                        {"role": "tool", "tool_call_id": "c1", "content": "24"},
                        {"role": "assistant", "content": "It is 24."}]}
    """
    trial, transcript = trial_of(function(source))
    assert (trial.tokens_in, trial.tokens_out, trial.tools) == (11, 7, ("get_weather",))
    assert transcript["messages"] == [
        {"role": "user", "text": "Say 4."},
        {
            "role": "assistant",
            "calls": [{"name": "get_weather", "arguments": {"city": "Rome"}, "id": "c1"}],
        },
        {"role": "tool", "text": "24"},
        {"role": "assistant", "text": "It is 24."},
    ]


def test_calls_without_messages_are_in_the_transcript_too(function, trial_of):
    calls = '[{"name": "f", "args": {"a": 1}, "result": "ok"}, {"name": "g", "error": "no"}]'
    source = f"def run(prompt): return {{'passed': True, 'answer': 'x', 'tool_calls': {calls}}}"
    _, transcript = trial_of(function(source))
    roles = [(m["role"], m.get("text"), m.get("is_error", False)) for m in transcript["messages"]]
    assert roles == [
        ("user", "Say 4.", False),
        ("assistant", None, False),
        ("tool", "ok", False),
        ("assistant", None, False),
        ("tool", "no", True),
        ("assistant", "x", False),
    ]


def test_an_openai_shaped_answer_is_read():
    body = {
        "choices": [{"message": {"role": "assistant", "content": "It is 24."}}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4},
    }
    seen = observe_value(body, about="agent")
    assert (seen.answer, seen.usage.total) == ("It is 24.", 7)
