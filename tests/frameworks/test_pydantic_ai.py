"""pydantic-ai agents as they are, and `run_sync` with one client for all trials."""

import pytest

pytest.importorskip("pydantic_ai", reason="pydantic-ai is not installed: see `make frameworks`")

AGENT = """
    import os
    from pydantic_ai import Agent, Tool
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    def get_weather(city: str) -> str:
        return "24 degrees"

    provider = OpenAIProvider(base_url=os.environ["MODEL_URL"] + "/v1", api_key="x")
    agent = Agent(OpenAIChatModel("stub-1", provider=provider), tools=[Tool(get_weather)])

    def in_sync(prompt):
        return agent.run_sync(prompt)

    async def awaited(prompt):
        return await agent.run(prompt)
"""


@pytest.mark.parametrize("workers", [0, 2])
def test_an_agent_is_an_agent(all_passed, trials_of, workers):
    trials, transcript = trials_of(AGENT, "agent", workers=workers)
    all_passed(trials)
    roles = [turn["role"] for turn in transcript["messages"]]
    assert roles == ["user", "assistant", "tool", "assistant"]


@pytest.mark.parametrize("workers", [0, 2])
def test_one_client_serves_sync_and_async_functions_at_once(all_passed, trials_of, workers):
    trials, _ = trials_of(AGENT, "in_sync", "awaited", "agent", workers=workers)
    all_passed(trials)
