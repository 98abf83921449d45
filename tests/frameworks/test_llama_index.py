"""Agents of LlamaIndex as they are."""

import pytest

pytest.importorskip("llama_index.core", reason="llama-index is not installed: `make frameworks`")

AGENT = """
    import os
    from llama_index.core.agent.workflow import FunctionAgent
    from llama_index.llms.openai_like import OpenAILike

    def get_weather(city: str) -> str:
        "The weather of a city."
        return "24 degrees"

    llm = OpenAILike(
        model="stub-1", api_base=os.environ["MODEL_URL"] + "/v1", api_key="x",
        is_chat_model=True, is_function_calling_model=True,
    )
    agent = FunctionAgent(tools=[get_weather], llm=llm, streaming=False)

    async def awaited(prompt):
        return await agent.run(prompt)
"""


@pytest.mark.parametrize("workers", [0, 2])
def test_an_agent_is_an_agent(all_passed, trials_of, workers):
    trials, transcript = trials_of(AGENT, "agent", workers=workers)
    all_passed(trials, tokens=False)
    assert transcript["messages"][-1]["text"] == "It is 24 degrees in Rome."


def test_the_result_of_a_run_is_read(all_passed, trials_of):
    trials, _ = trials_of(AGENT, "awaited")
    all_passed(trials, tokens=False)
