"""Agents of the OpenAI Agents SDK as they are, and `run_sync` with one client for all trials."""

import pytest

pytest.importorskip("agents", reason="openai-agents is not installed: see `make frameworks`")

MORE = """
from agents import Runner


def in_sync(prompt):
    return Runner.run_sync(agent, prompt)


async def awaited(prompt):
    return await Runner.run(agent, prompt)
"""


@pytest.mark.parametrize("workers", [0, 2])
def test_an_agent_is_an_agent(all_passed, trials_of, workers):
    trials, transcript = trials_of("OpenAI Agents SDK", "agent", workers=workers)
    all_passed(trials)
    roles = [turn["role"] for turn in transcript["messages"]]
    assert roles == ["user", "assistant", "tool", "assistant"]


@pytest.mark.parametrize("workers", [0, 2])
def test_one_client_serves_sync_and_async_functions_at_once(all_passed, trials_of, workers):
    trials, _ = trials_of(
        "OpenAI Agents SDK", "in_sync", "awaited", "agent", workers=workers, more=MORE
    )
    all_passed(trials)
