"""Agents of Google's ADK as they are."""

import pytest

pytest.importorskip("google.adk", reason="google-adk is not installed: see `make frameworks`")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("workers", [0, 2])
def test_an_agent_is_an_agent(all_passed, trials_of, workers):
    trials, transcript = trials_of("Google ADK", "agent", workers=workers)
    all_passed(trials)
    roles = [turn["role"] for turn in transcript["messages"]]
    assert roles == ["assistant", "tool", "assistant"]
