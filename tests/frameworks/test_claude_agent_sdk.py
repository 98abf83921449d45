"""Options of the Claude Agent SDK as an agent: the real program against a model on loopback."""

import pytest

from passhat.records import Expectation

sdk = pytest.importorskip(
    "claude_agent_sdk", reason="claude-agent-sdk is not installed: see `make frameworks`"
)


def test_options_are_an_agent(all_passed, trials_of, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
    said = (Expectation(matcher="exists", value=True),)
    trials, transcript = trials_of("Claude Agent SDK", "agent", runs=2, expect=said)
    all_passed(trials, tokens=False)
    assert transcript["messages"]
