"""Agents by price and reliability: who is wrongly left out."""

from __future__ import annotations

import numpy as np

from bench.calibrate.cells import run_tables
from bench.calibrate.table import Table
from passhat.analysis.comparing.ranking import Frontier, find_frontier
from passhat.records import Trials

SEED = 20_261_121
SIZES = ((12, 5), (30, 5))
AGENTS = {
    "all alike": ((0.0, 1.0), (0.0, 1.0), (0.0, 1.0)),
    "as reliable, dearer": ((0.0, 1.0), (0.0, 2.0), (0.0, 4.0)),
    "better and dearer": ((0.0, 1.0), (1.0, 2.0), (2.0, 4.0)),
    "one is beaten": ((1.0, 1.0), (0.0, 2.0), (1.5, 4.0)),
    "one is badly beaten": ((2.0, 1.0), (0.0, 3.0), (2.5, 4.0)),
}
"""What each agent adds to the logits of tasks, and its price; only a second one is ever beaten."""
QUICK = ("as reliable, dearer", "one is badly beaten")
"""Where an agent is most often left out wrongly, and where it should be left out."""


def tables(*, quick: bool = False) -> list[Table]:
    return run_tables("frontier", [(_frontier, 100, 120)], quick=quick)


def _frontier(repetitions: int, *, quick: bool = False) -> list[Table]:
    rows = []
    for tasks, runs in SIZES[:1] if quick else SIZES:
        for place, (name, agents) in enumerate(AGENTS.items()):
            if quick and name not in QUICK:
                continue
            rng = np.random.default_rng([SEED, tasks, place])
            wrong = found = 0
            for _ in range(repetitions):
                result = find_frontier(_agents(rng, tasks, runs, agents), k=3)
                assert isinstance(result, Frontier)
                beaten = {one.name for one in result.systems if one.beaten_by is not None}
                truly = {"agent 1"} if "beaten" in name else set()
                wrong += bool(beaten - truly)
                found += beaten >= truly
            power = f"{found / repetitions:.2f}" if "beaten" in name else ""
            rows.append((f"{tasks} x {runs}", name, f"{wrong / repetitions:.3f}", power))
    return [
        Table(
            title="The frontier of cost and pass^3: three agents",
            header=(
                "tasks x trials",
                "agents",
                "one is wrongly left out",
                "the beaten one is found",
            ),
            rows=rows,
            finding="At 95% no agent that is truly on the frontier is to be left out in more than "
            "5% of comparisons. Tasks: logit-normal, mean 0.5, sd 1.5; prices: log-normal, sd 0.5 "
            "between tasks and 0.3 between trials.",
            repetitions=repetitions,
            seed=SEED,
        )
    ]


def _agents(
    rng: np.random.Generator, tasks: int, runs: int, agents: tuple[tuple[float, float], ...]
) -> Trials:
    ease, dear = rng.normal(0.5, 1.5, tasks), rng.normal(0, 0.5, tasks)
    shape = (len(agents), tasks, runs)
    better, price = (np.array([one[i] for one in agents])[:, None, None] for i in (0, 1))
    chance = 1 / (1 + np.exp(-(ease[None, :, None] + better)))
    cost = price * np.exp(dear[None, :, None] + rng.normal(0, 0.3, shape))
    agent, task, _ = (one.ravel().tolist() for one in np.indices(shape))
    return Trials.from_columns(
        system=[f"agent {i}" for i in agent],
        task=[f"t{i}" for i in task],
        passed=(rng.random(shape) < chance).ravel().tolist(),
        cost=cost.ravel().tolist(),
    )
