"""Agents of Google's ADK as they are."""

import pytest

pytest.importorskip("google.adk", reason="google-adk is not installed: see `make frameworks`")

AGENT = """
    import os
    from google.adk.agents import LlmAgent
    from google.adk.models.lite_llm import LiteLlm

    def get_weather(city: str) -> str:
        "The weather of a city."
        return "24 degrees"

    model = LiteLlm(model="openai/stub-1", api_base=os.environ["MODEL_URL"] + "/v1", api_key="x")
    agent = LlmAgent(name="weather", model=model, tools=[get_weather])
"""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("workers", [0, 2])
def test_an_agent_is_an_agent(all_passed, trials_of, workers):
    trials, transcript = trials_of(AGENT, "agent", workers=workers)
    all_passed(trials)
    roles = [turn["role"] for turn in transcript["messages"]]
    assert roles == ["assistant", "tool", "assistant"]
