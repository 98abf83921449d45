"""What a gate on a suite does at each true mean, by many repetitions run side by side."""

from __future__ import annotations

from collections.abc import Callable
from math import log

import numpy as np
from numpy.typing import ArrayLike

from passhat.arguments import whole_number
from passhat.dataclass import dataclass
from passhat.errors import ArgumentError
from passhat.stats.arguments import Counts, Floats, RandomSource, random_generator, score_array
from passhat.stats.sequential.operating import OperatingCharacteristics
from passhat.stats.sequential.projection import FAIL_SIDE, PASS_SIDE, tilted
from passhat.stats.sequential.score_gate import ScoreGate
from passhat.stats.sequential.suite_gate import SuiteGate

# Of the tasks drawn by the repetitions still running: results in [0, 1], and the runs they cost.
Results = Callable[[np.random.Generator, Counts, Counts], tuple[Floats, Counts | int]]

# Tasks that always or never pass are kept off the ends, where the logit scale has none.
_NEARLY_NEVER = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """Draws and runs that each repetition took, and its end: PASS (1), FAIL (0) or none (-1)."""

    draws: Counts
    runs: Counts
    verdicts: Counts

    def share(self, verdict: int) -> float:
        return float((self.verdicts == verdict).mean())

    def mean_draws(self, *, in_flight: int = 1) -> float:
        """Mean draws paid for when they are made in batches of this size."""
        return float((-(-self.draws // in_flight) * in_flight).mean())


def simulated_characteristics(
    gate: SuiteGate,
    means: ArrayLike,
    *,
    icc: float,
    repetitions: int = 400,
    rng: RandomSource = None,
) -> OperatingCharacteristics:
    """Chances of each verdict and expected runs at true suite means, for passes and failures.

    Tasks differ as beta-distributed rates with intraclass correlation `icc`. For blocks (k > 1)
    `means` and `icc` are those of the blocks' results: pass^k or pass@k.

    >>> gate = SuiteGate(tasks=20, mu0=0.7, mu1=0.8)
    >>> found = simulated_characteristics(gate, [0.7, 0.8], icc=0.5, repetitions=50, rng=1)
    >>> bool((found.expected_runs < gate.fixed_runs).all())
    True
    """
    truths = np.atleast_1d(score_array("means", means))
    if not 0 <= icc < 1:
        raise ArgumentError("icc", "must lie in [0, 1)", icc)
    shape = whole_number("repetitions", repetitions), gate.tasks
    generator, seed = random_generator(rng)
    ends = []
    for mean in truths:
        rates = suite_rates(mean, icc, shape, generator)
        ends.append(simulated_ends(gate, blocks_at(rates, gate), shape[0], generator))
    return OperatingCharacteristics(
        p=truths,
        pass_probability=np.array([end.share(1) for end in ends]),
        fail_probability=np.array([end.share(0) for end in ends]),
        undecided_probability=np.array([end.share(-1) for end in ends]),
        expected_runs=np.array([end.runs.mean() for end in ends]),
        runs_95=np.array([np.quantile(end.runs, 0.95) for end in ends]),
        max_runs=gate.k * gate.max_draws,
        repetitions=repetitions,
        seed=seed,
    )


def simulated_ends(
    gate: SuiteGate | ScoreGate, results: Results, repetitions: int, rng: np.random.Generator
) -> Ends:
    """Many repetitions of a gate, with the bets that the gate itself makes."""
    levels = -log(gate.alpha), -log(gate.beta)
    wealth = gate.first_wealth((repetitions, gate.tasks))
    alive = np.arange(repetitions)
    ends = Ends(
        draws=np.full(repetitions, gate.max_draws),
        runs=np.zeros(repetitions, np.int64),
        verdicts=np.full(repetitions, -1),
    )
    for draw in range(1, gate.max_draws + 1):
        task = rng.integers(gate.tasks, size=alive.size)
        scores, cost = results(rng, alive, task)
        ends.runs[alive] += cost
        wealth = wealth.after((np.arange(alive.size), task), scores)
        passed = wealth.log[PASS_SIDE] >= levels[PASS_SIDE]
        ended = passed | (wealth.log[FAIL_SIDE] >= levels[FAIL_SIDE])
        if ended.any():
            ends.draws[alive[ended]], ends.verdicts[alive[ended]] = draw, passed[ended]
            wealth, alive = wealth.rows(~ended), alive[~ended]
            if not alive.size:
                break
        if draw % gate.draws_per_bet == 0:
            wealth = wealth.with_new_bets()
    return ends


def suite_rates(
    mean: float, icc: float, shape: tuple[int, int], rng: np.random.Generator
) -> Floats:
    """Suites (rows) of beta-distributed rates, each moved on the logit scale to exactly `mean`."""
    if icc == 0 or mean in (0, 1):
        return np.full(shape, mean)
    spread = 1 / icc - 1
    rates = rng.beta(spread * mean, spread * (1 - mean), shape)
    rates = rates.clip(_NEARLY_NEVER, 1 - _NEARLY_NEVER)
    return tilted(rates, np.full(shape[0], mean), np.zeros(shape[0]))[0]


def passes_at(rates: Floats) -> Results:
    """Passes and failures at the rates of each repetition's suite."""

    def results(
        rng: np.random.Generator, alive: Counts, task: Counts
    ) -> tuple[Floats, Counts | int]:
        return (rng.random(alive.size) < rates[alive, task]).astype(np.float64), 1

    return results


def blocks_at(rates: Floats, gate: SuiteGate) -> Results:
    """Results of the gate's blocks, which pass at these rates, run by run."""
    if gate.k == 1:
        return passes_at(rates)
    all_must_pass = gate.metric == "pass^k"
    # The chance that one run does not settle the block: a pass for pass^k, a failure for pass@k.
    lasts = (rates if all_must_pass else 1 - rates) ** (1 / gate.k)

    def results(
        rng: np.random.Generator, alive: Counts, task: Counts
    ) -> tuple[Floats, Counts | int]:
        settled = rng.random((alive.size, gate.k)) >= lasts[alive, task][:, None]
        early = settled.any(axis=1)
        cost = np.where(early, settled.argmax(axis=1) + 1, gate.k)
        return (early != all_must_pass).astype(np.float64), cost

    return results
