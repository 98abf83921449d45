"""LangGraph and LangChain objects as they are."""

import pytest

pytest.importorskip("langgraph", reason="langgraph is not installed: see `make frameworks`")

MORE = """
def state(prompt):
    return agent.invoke({"messages": [("user", prompt)]})


async def awaited(prompt):
    return await agent.ainvoke({"messages": [("user", prompt)]})
"""


@pytest.mark.parametrize("workers", [0, 2])
def test_a_graph_is_an_agent(all_passed, trials_of, workers):
    trials, transcript = trials_of("LangGraph", "agent", workers=workers)
    all_passed(trials)
    roles = [turn["role"] for turn in transcript["messages"]]
    assert roles == ["user", "assistant", "tool", "assistant"]
    assert trials[0].tokens_in == 200


def test_the_state_that_a_graph_returns_is_read(all_passed, trials_of):
    trials, _ = trials_of("LangGraph", "state", "awaited", more=MORE)
    all_passed(trials)
