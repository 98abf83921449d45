"""Agents of the OpenAI Agents SDK as they are, and `run_sync` with one client for all trials."""

import pytest

pytest.importorskip("agents", reason="openai-agents is not installed: see `make frameworks`")

AGENT = """
    import os
    from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool
    from agents import set_tracing_disabled
    from openai import AsyncOpenAI

    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=os.environ["MODEL_URL"] + "/v1", api_key="x")

    @function_tool
    def get_weather(city: str) -> str:
        "The weather of a city."
        return "24 degrees"

    agent = Agent(
        name="weather", model=OpenAIChatCompletionsModel("stub-1", client), tools=[get_weather]
    )

    def in_sync(prompt):
        return Runner.run_sync(agent, prompt)

    async def awaited(prompt):
        return await Runner.run(agent, prompt)
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
