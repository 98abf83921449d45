"""LangGraph and LangChain objects as they are."""

import pytest

pytest.importorskip("langgraph", reason="langgraph is not installed: see `make frameworks`")

AGENT = """
    import os
    from langchain.agents import create_agent
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI

    @tool
    def get_weather(city: str) -> str:
        "The weather of a city."
        return "24 degrees"

    model = ChatOpenAI(model="stub-1", base_url=os.environ["MODEL_URL"] + "/v1")
    agent = create_agent(model, [get_weather])
    chat = model

    def state(prompt):
        return agent.invoke({"messages": [("user", prompt)]})

    async def awaited(prompt):
        return await agent.ainvoke({"messages": [("user", prompt)]})
"""


@pytest.mark.parametrize("workers", [0, 2])
def test_a_graph_is_an_agent(all_passed, trials_of, workers):
    trials, transcript = trials_of(AGENT, "agent", workers=workers)
    all_passed(trials)
    roles = [turn["role"] for turn in transcript["messages"]]
    assert roles == ["user", "assistant", "tool", "assistant"]
    assert trials[0].tokens_in == 200


def test_the_state_that_a_graph_returns_is_read(all_passed, trials_of):
    trials, _ = trials_of(AGENT, "state", "awaited")
    all_passed(trials)
