"""Agents by price and reliability: who is wrongly left out; and HAL's metrics: coverage."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.calibrate.cells import run_tables
from bench.calibrate.table import Table
from passhat.analysis.comparing.ranking import Frontier, find_frontier
from passhat.analysis.reports.measure import measure
from passhat.records import Trials
from passhat.stats.arguments import Floats
from passhat.stats.estimate import Estimate
from passhat.stats.probability_calibration import auroc
from passhat.stats.usage import mix_likeness, path_likeness

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


NAMES = (
    "consistency_outcome",
    "consistency_trajectory_distribution",
    "consistency_trajectory_sequence",
    "consistency_resource",
    "robustness_fault_injection",
    "predictability_calibration",
    "predictability_roc_auc",
    "predictability_brier_score",
    "safety_compliance",
    "safety_harm_severity",
)
"""Of the twelve; the other two robustness metrics are the same number of another factor."""


def _hal(repetitions: int, *, quick: bool = False) -> list[Table]:
    truth = _truths(np.random.default_rng(SEED))
    sizes = ((26, 3),) if quick else ((10, 3), (26, 3), (26, 5), (50, 5))
    columns = [_covered(size, repetitions, truth) for size in sizes]
    rows = [
        (name, f"{truth[name]:.3f}", *(column[place] for column in columns))
        for place, name in enumerate(NAMES)
    ]
    return [
        Table(
            title="HAL's metrics with intervals",
            header=("metric", "truth", *(f"{tasks} x {runs}" for tasks, runs in sizes)),
            rows=rows,
            finding="Coverage / mean width at a nominal 0.95 for similar tasks, by tasks x trials, "
            "and in brackets the mean of what HAL's own formula gives; the truth is that of ours. "
            "Where a metric is refused in some of the repetitions, those do not count.",
            repetitions=repetitions,
            seed=SEED,
        )
    ]


def _covered(size: tuple[int, int], repetitions: int, truth: dict[str, float]) -> list[str]:
    rng = np.random.default_rng([SEED, *size])
    hits: dict[str, list[tuple[bool, float]]] = {name: [] for name in NAMES}
    theirs: dict[str, list[float]] = {name: [] for name in NAMES}
    for _ in range(repetitions):
        found = measure(_walked(rng, *size)).system().hal
        for name in NAMES:
            number, by_hal = found[name].number, found[name].hal_value
            if isinstance(number, Estimate) and number.interval is not None:
                ends = number.interval
                hits[name].append((truth[name] in ends, ends.width))
            theirs[name] += [] if by_hal is None else [by_hal]
    return [
        f"{np.mean([hit for hit, _ in hits[name]]):.2f} / "
        f"{np.mean([width for _, width in hits[name]]):.2f} ({np.mean(theirs[name]):.3f})"
        for name in NAMES
    ]


WAYS = tuple("abcd"), tuple("abd"), tuple("axyd")
"""The path that is taken most, and two others."""


@dataclass(frozen=True, slots=True)
class _World:
    """Of each task: how often it takes the first path, and passes on it and on the others.

    Then the share of passes that faults leave, what trials cost, how often they keep the limits.
    """

    first: Floats
    good: Floats
    other: Floats
    left: Floats
    spread: Floats
    kept: Floats

    @classmethod
    def drawn(cls, rng: np.random.Generator, tasks: int) -> _World:
        good = rng.beta(5, 1.5, tasks)
        return cls(
            first=rng.beta(4, 1, tasks),
            good=good,
            other=good * rng.beta(2, 2, tasks),
            left=rng.beta(8, 2, tasks),
            spread=0.6 * np.exp(0.4 * rng.normal(size=tasks)),
            kept=rng.beta(12, 1, tasks),
        )

    def trials(
        self, rng: np.random.Generator, runs: int
    ) -> tuple[NDArray[np.intp], NDArray[np.bool_], Floats, NDArray[np.intp], NDArray[np.bool_]]:
        """Path, outcome, stated confidence, severity of a violation, outcome under faults."""
        shape = (self.first.size, runs)
        side = rng.integers(1, 3, shape)
        way = np.where(rng.random(shape) < self.first[:, None], 0, side)
        chance = np.where(way == 0, self.good[:, None], self.other[:, None])
        passed = rng.random(shape) < chance
        logit = np.log(chance / (1 - chance)) + 0.4 + 0.8 * rng.normal(size=shape)
        broken = rng.random(shape) >= self.kept[:, None]
        severity = np.where(broken, rng.integers(1, 4, shape), 0)
        under = rng.random(shape) < chance * self.left[:, None]
        return way, passed, 1 / (1 + np.exp(-logit)), severity, under


SEVERITY = np.array([0.0, 0.25, 0.5, 1.0])
WORDS = ("constraint:kept", "constraint:low", "constraint:medium", "constraint:high")


def _truths(rng: np.random.Generator) -> dict[str, float]:
    """Of ours, over a population of tasks: exact given the tasks, or from one trial of each."""
    world = _World.drawn(rng, POPULATION)
    passes = np.stack((world.first * world.good, *[(1 - world.first) / 2 * world.other] * 2))
    whole = passes.sum(axis=0)
    both = (whole**2).sum()
    like = {
        name: np.array([[measure_of(one, other) for other in WAYS] for one in WAYS])
        for name, measure_of in (("distribution", mix_likeness), ("sequence", path_likeness))
    }
    paths = {
        f"consistency_trajectory_{name}": float(
            np.einsum("it,jt,ij->", passes, passes, one, optimize=True) / both
        )
        for name, one in like.items()
    }
    apart = np.abs(world.spread * rng.normal(size=POPULATION) * np.sqrt(2))
    _, passed, stated, severity, under = (one.ravel() for one in world.trials(rng, 1))
    bins = np.minimum((10 * stated).astype(np.intp), 9)
    gaps = np.abs(np.bincount(bins, stated - passed, minlength=10))
    ranked = auroc(stated, passed.astype(np.float64))
    assert ranked is not None, "some pass and some fail"
    return paths | {
        "consistency_outcome": 1 - 4 * float((whole * (1 - whole)).mean()),
        "consistency_resource": float(np.exp(-apart).mean()),
        "robustness_fault_injection": float(under.mean() / passed.mean()),
        "predictability_calibration": 1 - float(gaps.sum() / POPULATION),
        "predictability_roc_auc": ranked,
        "predictability_brier_score": 1 - float(((stated - passed) ** 2).mean()),
        "safety_compliance": float(world.kept.mean()),
        "safety_harm_severity": 1 - float(SEVERITY[severity].mean()),
    }


def _walked(rng: np.random.Generator, tasks: int, runs: int) -> Trials:
    world = _World.drawn(rng, tasks)
    way, passed, stated, severity, under = (one.ravel().tolist() for one in world.trials(rng, runs))
    names = [f"t{i}" for i in np.repeat(np.arange(tasks), runs).tolist()]
    cost = np.exp(np.repeat(world.spread, runs) * rng.normal(size=tasks * runs)).tolist()
    return Trials.from_columns(
        task=[*names, *(f"{name} [fault=all]" for name in names)],
        base=[*names, *names],
        at=[("fault=none",)] * len(names) + [("fault=all",)] * len(names),
        passed=[*passed, *under],
        tools=[WAYS[i] for i in (*way, *way)],
        cost=[*cost, *cost],
        stated_confidence=[*stated, *stated],
        tags=[(WORDS[i],) for i in (*severity, *severity)],
    )
