"""Agents of smolagents as they are."""

import pytest

pytest.importorskip("smolagents", reason="smolagents is not installed: see `make frameworks`")


@pytest.mark.parametrize("workers", [0, 2])
def test_an_agent_is_an_agent(all_passed, trials_of, workers):
    trials, transcript = trials_of("smolagents", "agent", workers=workers)
    all_passed(trials)
    assert transcript["messages"][0]["role"] == "user"
    assert all(t.tools[0] == "get_weather" for t in trials)
