"""Crews and agents of CrewAI as they are."""

import pytest

from passhat.records import Expectation

pytest.importorskip("crewai", reason="crewai is not installed: see `make frameworks`")

AGENT = """
    import os
    from crewai import LLM, Agent, Crew, Task
    from crewai.tools import tool

    @tool("get_weather")
    def get_weather(city: str) -> str:
        "The weather of a city."
        return "24 degrees"

    llm = LLM(model="openai/stub-1", base_url=os.environ["MODEL_URL"] + "/v1", api_key="x")
    agent = Agent(role="weather", goal="tell it", backstory="-", llm=llm, tools=[get_weather])
    task = Task(description="{prompt}", expected_output="the weather", agent=agent)
    crew = Crew(agents=[agent], tasks=[task])
"""
SAID = (Expectation(matcher="contains", value="24"),)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["crew", "agent"])
def test_a_crew_and_an_agent_are_agents(all_passed, trials_of, name):
    trials, _ = trials_of(AGENT, name, runs=6, expect=SAID)
    all_passed(trials)
