"""Agents of smolagents as they are."""

import pytest

pytest.importorskip("smolagents", reason="smolagents is not installed: see `make frameworks`")

AGENT = """
    import os
    from smolagents import OpenAIServerModel, ToolCallingAgent, tool

    @tool
    def get_weather(city: str) -> str:
        \"\"\"The weather of a city.

        Args:
            city: the city
        \"\"\"
        return "24 degrees"

    model = OpenAIServerModel("stub-1", api_base=os.environ["MODEL_URL"] + "/v1", api_key="x")
    agent = ToolCallingAgent(tools=[get_weather], model=model, max_steps=4, verbosity_level=0)
"""


@pytest.mark.parametrize("workers", [0, 2])
def test_an_agent_is_an_agent(all_passed, trials_of, workers):
    trials, transcript = trials_of(AGENT, "agent", workers=workers)
    all_passed(trials)
    assert transcript["messages"][0]["role"] == "user"
    assert all(t.tools[0] == "get_weather" for t in trials)
