"""Crews and agents of CrewAI as they are."""

import pytest

from passhat.records import Expectation

pytest.importorskip("crewai", reason="crewai is not installed: see `make frameworks`")

SAID = (Expectation(matcher="contains", value="24"),)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["crew", "agent"])
def test_a_crew_and_an_agent_are_agents(all_passed, trials_of, name):
    trials, _ = trials_of("CrewAI", name, runs=6, expect=SAID)
    all_passed(trials)
