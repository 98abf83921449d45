"""Agents of LlamaIndex as they are."""

import pytest

pytest.importorskip("llama_index.core", reason="llama-index is not installed: `make frameworks`")

MORE = """
async def awaited(prompt):
    return await agent.run(prompt)
"""


@pytest.mark.parametrize("workers", [0, 2])
def test_an_agent_is_an_agent(all_passed, trials_of, workers):
    trials, transcript = trials_of("LlamaIndex", "agent", workers=workers)
    all_passed(trials, tokens=False)
    assert transcript["messages"][-1]["text"] == "It is 24 degrees in Rome."


def test_the_result_of_a_run_is_read(all_passed, trials_of):
    trials, _ = trials_of("LlamaIndex", "awaited", more=MORE)
    all_passed(trials, tokens=False)
