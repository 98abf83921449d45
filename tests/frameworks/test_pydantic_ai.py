"""pydantic-ai agents as they are, and `run_sync` with one client for all trials."""

import pytest

pytest.importorskip("pydantic_ai", reason="pydantic-ai is not installed: see `make frameworks`")

MORE = """
def in_sync(prompt):
    return agent.run_sync(prompt)


async def awaited(prompt):
    return await agent.run(prompt)
"""


@pytest.mark.parametrize("workers", [0, 2])
def test_an_agent_is_an_agent(all_passed, trials_of, workers):
    trials, transcript = trials_of("pydantic-ai", "agent", workers=workers)
    all_passed(trials)
    roles = [turn["role"] for turn in transcript["messages"]]
    assert roles == ["user", "assistant", "tool", "assistant"]


@pytest.mark.parametrize("workers", [0, 2])
def test_one_client_serves_sync_and_async_functions_at_once(all_passed, trials_of, workers):
    trials, _ = trials_of("pydantic-ai", "in_sync", "awaited", "agent", workers=workers, more=MORE)
    all_passed(trials)
