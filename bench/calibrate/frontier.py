"""Agents by price and reliability: who is wrongly left out; and HAL's metrics: coverage."""

from __future__ import annotations

import numpy as np

from bench.calibrate.cells import run_tables
from bench.calibrate.table import Table
from passhat.analysis.comparing.ranking import Frontier, find_frontier
from passhat.analysis.reports.measure import measure
from passhat.records import Trials
from passhat.stats.arguments import Floats
from passhat.stats.estimate import Estimate

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

POPULATION = 400_000
"""Tasks over which the truths of HAL's metrics are added up."""


def tables(*, quick: bool = False) -> list[Table]:
    return run_tables("frontier", [(_frontier, 100, 120), (_hal, 100, 120)], quick=quick)


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


NAMES = ("consistency_trajectory_sequence", "consistency_resource", "safety_compliance")


def _hal(repetitions: int, *, quick: bool = False) -> list[Table]:
    rows, truth = [], _truths(np.random.default_rng(SEED))
    for tasks, runs in ((26, 3),) if quick else ((10, 3), (26, 3), (26, 5), (50, 5)):
        rng = np.random.default_rng([SEED, tasks, runs])
        hits: dict[str, list[tuple[bool, float]]] = {name: [] for name in NAMES}
        theirs: dict[str, list[float]] = {name: [] for name in NAMES}
        for _ in range(repetitions):
            found = measure(_walked(rng, tasks, runs)).system().hal
            for name in NAMES:
                number, by_hal = found[name].number, found[name].hal_value
                if isinstance(number, Estimate) and number.interval is not None:
                    ends = number.interval
                    hits[name].append((truth[name] in ends, ends.width))
                theirs[name] += [] if by_hal is None else [by_hal]
        cells = (
            f"{np.mean([hit for hit, _ in hits[name]]):.2f} / "
            f"{np.mean([width for _, width in hits[name]]):.2f} ({np.mean(theirs[name]):.3f})"
            for name in NAMES
        )
        rows.append((f"{tasks} x {runs}", *cells))
    return [
        Table(
            title="HAL's metrics with intervals",
            header=("tasks x trials", *(f"{name}: {truth[name]:.3f}" for name in NAMES)),
            rows=rows,
            finding="Coverage / mean width at a nominal 0.95 for similar tasks, and in brackets "
            "the mean of what HAL's own formula gives. The header has the truth of ours: of two "
            "trials that both pass, how alike the order of their calls is; the smaller over the "
            "larger of what two trials cost (log-normal); the share of trials without a violation.",
            repetitions=repetitions,
            seed=SEED,
        )
    ]


MAIN, SIDES = tuple("abcd"), (tuple("abd"), tuple("axyd"))
LIKENESS = 0.75, 0.5, 0.5
"""Of the main path with either side path, and of the two side paths."""


def _world(rng: np.random.Generator, tasks: int) -> tuple[Floats, ...]:
    """For each task: how often it takes the main path, passes on it and on others; cost; limits."""
    on_main = rng.beta(5, 1.5, tasks)
    return (
        rng.beta(4, 1, tasks),
        on_main,
        on_main * rng.beta(2, 2, tasks),
        0.6 * np.exp(0.4 * rng.normal(size=tasks)),
        rng.beta(12, 1, tasks),
    )


def _truths(rng: np.random.Generator) -> dict[str, float]:
    main, good, other, spread, kept = _world(rng, POPULATION)
    passes = np.stack((main * good, (1 - main) / 2 * other, (1 - main) / 2 * other))
    like = np.array(
        [[1, *LIKENESS[:2]], [LIKENESS[0], 1, LIKENESS[2]], [LIKENESS[1], LIKENESS[2], 1]]
    )
    both = np.einsum("it,jt,ij->t", passes, passes, like)
    apart = np.abs(spread * rng.normal(size=spread.size) * np.sqrt(2))
    return {
        NAMES[0]: float(both.sum() / (passes.sum(axis=0) ** 2).sum()),
        NAMES[1]: float(np.exp(-apart).mean()),
        NAMES[2]: float(kept.mean()),
    }


def _walked(rng: np.random.Generator, tasks: int, runs: int) -> Trials:
    main, good, other, spread, kept = (one[:, None] for one in _world(rng, tasks))
    shape = (tasks, runs)
    side = rng.integers(1, 3, shape)
    way = np.where(rng.random(shape) < main, 0, side)
    passed = rng.random(shape) < np.where(way == 0, good, other)
    broken = rng.random(shape) >= kept
    return Trials.from_columns(
        task=[f"t{i}" for i in np.indices(shape)[0].ravel().tolist()],
        passed=passed.ravel().tolist(),
        tools=[(MAIN, *SIDES)[i] for i in way.ravel().tolist()],
        cost=np.exp(spread * rng.normal(size=shape)).ravel().tolist(),
        tags=[
            ("constraint:high" if one else "constraint:kept",) for one in broken.ravel().tolist()
        ],
    )
