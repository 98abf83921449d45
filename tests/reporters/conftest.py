"""Answers to render, and gold files to hold the text against."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from passhat.analysis.planning.simulate import SimulationModel, simulate
from passhat.analysis.reports.measure import measure
from passhat.analysis.reports.report import Report
from passhat.records import Trials

GOLD = Path(__file__).parents[1] / "gold"


@pytest.fixture(scope="session")
def trials() -> Trials:
    """One agent with all there is: errors, seeds, costs, partial credit's absence."""
    world = SimulationModel(luck=0.5, seeds=5, error_rate=0.03)
    return simulate(tasks=12, runs=10, rate={"support-bot": 0.8}, world=world, seed=7)


@pytest.fixture(scope="session")
def report(trials: Trials) -> Report:
    return measure(trials, bars=0.8)


@pytest.fixture(scope="session")
def three() -> Report:
    """Three agents."""
    rate = {"gpt": 0.9, "opus": 0.85, "tiny": 0.4}
    return measure(
        simulate(tasks=15, runs=6, rate=rate, world=SimulationModel(error_rate=0.05), seed=2)
    )


@pytest.fixture
def gold() -> Callable[[str, str], None]:
    """Hold a text against its gold file; PASSHAT_GOLD=write writes it anew, to be looked at."""

    def check(name: str, text: str) -> None:
        path = GOLD / name
        if os.environ.get("PASSHAT_GOLD") == "write":
            path.write_text(text, encoding="utf-8", newline="\n")
        assert text == path.read_text(encoding="utf-8")

    return check
