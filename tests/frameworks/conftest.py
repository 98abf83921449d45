"""Real frameworks against a model on loopback; each runs in an environment of its own."""

import json
import re
import sys
from pathlib import Path

import pytest

from passhat.records import Expectation, Pairing, PythonSystem, Suite, Task, TokenUsage
from passhat.runner import MemoryJournal, run_trials
from passhat.runner.models.exchange import CallRequest, Reply
from passhat.testing import WireServer

RUNS = 12
AT_ONCE = 6


PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "run-your-agent.md"
RESULTS = ("tool", "tool-response", "function_call_output")
"""Roles and types of a message that holds what a tool returned."""


def _on_page(framework):
    """The module that the how-to page shows for a framework."""
    heading = re.escape(f"**{framework}")
    return re.search(rf"^{heading}.*?^```py\n(.*?)^```", PAGE.read_text(), re.S | re.M)[1]


def answer(asked):
    """Call the weather tool, then say what it said."""
    usage = TokenUsage(tokens_in=100, tokens_out=10)
    if _answered(asked.body):
        if "final_answer" in json.dumps(asked.body.get("tools", "")):
            done = {"answer": "It is 24 degrees in Rome."}
            call = CallRequest(id="call_2", name="final_answer", arguments=done)
            return Reply(calls=(call,), usage=usage)
        return Reply(text="It is 24 degrees in Rome.", usage=usage)
    call = CallRequest(id="call_1", name="get_weather", arguments={"city": "Rome"})
    return Reply(calls=(call,), usage=usage)


def _answered(body):
    """Whether the tool has returned something, in any wire format."""
    said = body.get("messages") or body.get("input") or body.get("contents") or ()
    for message in said if isinstance(said, list) else ():
        content = message.get("content") or message.get("parts")
        blocks = [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []
        if message.get("role") in RESULTS or message.get("type") in RESULTS:
            return True
        if any(b.get("type") == "tool_result" or "functionResponse" in b for b in blocks):
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
    """Run what the page shows for a framework, several at once: trials, the first transcript."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.setenv(name, "not-a-key")
    for name in ("OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.setenv(name, model)
    for name in ("ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL"):
        monkeypatch.setenv(name, model.removesuffix("/v1"))
    for name in ("OPENAI_AGENTS_DISABLE_TRACING", "OTEL_SDK_DISABLED", "CREWAI_DISABLE_TELEMETRY"):
        monkeypatch.setenv(name, "true")
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # it would ask GitHub
    monkeypatch.setenv("CREWAI_STORAGE_DIR", str(tmp_path / "crewai"))

    shown = re.search(r"^`weather.py`:\n\n```python\n(.*?)^```", PAGE.read_text(), re.S | re.M)
    (tmp_path / "weather.py").write_text(shown[1])

    def run(framework, *names, more="", workers=0, runs=RUNS, expect=()):
        module = f"agents_of_{len(list(tmp_path.glob('agents_*.py')))}_{tmp_path.name}".replace(
            "-", "_"
        )
        (tmp_path / f"{module}.py").write_text(_on_page(framework) + more)
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
        for name in (module, "weather"):
            sys.modules.pop(name, None)
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
