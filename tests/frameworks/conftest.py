"""Real frameworks against a model on loopback; each runs in an environment of its own."""

import json
import sys
import textwrap

import pytest

from passhat.records import Expectation, Pairing, PythonSystem, Suite, Task, TokenUsage
from passhat.runner import MemoryJournal, run_trials
from passhat.runner.models.exchange import CallRequest, Reply
from passhat.testing import WireServer

RUNS = 12
AT_ONCE = 6


def answer(asked):
    """Call the weather tool, then say what it said."""
    usage = TokenUsage(tokens_in=100, tokens_out=10)
    if "tool" in json.dumps(asked.body.get("messages"))[-4000:] and _answered(asked.body):
        if "final_answer" in json.dumps(asked.body.get("tools", "")):
            done = {"answer": "It is 24 degrees in Rome."}
            call = CallRequest(id="call_2", name="final_answer", arguments=done)
            return Reply(calls=(call,), usage=usage)
        return Reply(text="It is 24 degrees in Rome.", usage=usage)
    call = CallRequest(id="call_1", name="get_weather", arguments={"city": "Rome"})
    return Reply(calls=(call,), usage=usage)


def _answered(body):
    for message in body.get("messages", []):
        content = message.get("content")
        blocks = content if isinstance(content, list) else []
        if message.get("role") in ("tool", "tool-response"):
            return True
        if any(b.get("type") == "tool_result" for b in blocks if isinstance(b, dict)):
            return True
        if message.get("role") != "system" and "Observation" in str(content):
            return True
    return False


@pytest.fixture(scope="session")
def model():
    """The address of a model that speaks OpenAI's and Anthropic's wire formats."""
    with WireServer(answer) as server:
        yield server.url


@pytest.fixture
def trials_of(model, tmp_path, monkeypatch):
    """Run what a module defines, several at once; all trials and the first transcript."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "not-a-key")
    for name in ("OPENAI_AGENTS_DISABLE_TRACING", "OTEL_SDK_DISABLED", "CREWAI_DISABLE_TELEMETRY"):
        monkeypatch.setenv(name, "true")
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # it would ask GitHub
    monkeypatch.setenv("CREWAI_STORAGE_DIR", str(tmp_path / "crewai"))
    monkeypatch.setenv("MODEL_URL", model)

    def run(source, *names, workers=0, runs=RUNS, expect=()):
        module = f"agents_of_{len(list(tmp_path.glob('*.py')))}_{tmp_path.name}".replace("-", "_")
        (tmp_path / f"{module}.py").write_text(textwrap.dedent(source))
        demands = expect or (
            Expectation(matcher="contains", value="24"),
            Expectation(matcher="called", value="get_weather"),
            Expectation(matcher="exact", target="tool_calls[0].arguments.city", value="Rome"),
        )
        task = Task(name="weather", prompt="What is the weather in Rome?", expect=demands)
        pairings = tuple(
            Pairing(
                system=PythonSystem(
                    name=name,
                    function=f"{module}:{name}",
                    search=tmp_path,
                    workers=workers,
                    timeout=120,
                ),
                task=task,
                runs=runs,
                label=name,
            )
            for name in names
        )
        suite = Suite(name="s", pairings=pairings, directory=tmp_path, concurrency=AT_ONCE)
        journal = MemoryJournal()
        trials = run_trials(suite, journal=journal, handle_signals=False).trials
        sys.modules.pop(module, None)
        transcript = json.loads(journal.finished()[0].transcript)
        return trials, transcript

    return run


@pytest.fixture
def all_passed():
    """Every trial passed, and told what it spent."""

    def check(trials, *, tokens=True):
        broken = [(t.system, t.outcome.name, t.error) for t in trials if t.outcome.name != "PASSED"]
        assert broken == []
        if tokens:
            assert all(t.tokens_in and t.tokens_out for t in trials)

    return check
