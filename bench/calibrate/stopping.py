"""Planned runs that stop early against the same runs made in full: errors, power and runs."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from bench.calibrate.cells import run_tables
from bench.calibrate.table import Table
from passhat.analysis.gates.gate import parse_gate
from passhat.analysis.gates.rounds import RoundGate, simulated_rounds
from passhat.stats.arguments import Floats
from passhat.stats.numerics import bisect
from passhat.stats.sequential import TaskGate
from passhat.stats.special import bdtr, betaincinv

SEED = 20261117
ALPHA = 0.05
# T x R, tasks, k, threshold: the cells of suites.
CELLS = (
    (4, 20, "equal", 3, 0.8),
    (4, 20, "equal", 1, 0.8),
    (4, 20, "high", 3, 0.8),
    (4, 20, "sparse", 3, 0.8),
    (4, 50, "equal", 3, 0.8),
    (20, 10, "equal", 1, 0.8),
    (20, 10, "equal", 3, 0.8),
    (20, 10, "low", 3, 0.8),
    (20, 10, "high", 3, 0.8),
    (20, 10, "sparse", 3, 0.8),
    (20, 20, "equal", 5, 0.8),
    (20, 20, "high", 5, 0.5),
    (100, 5, "equal", 1, 0.8),
    (100, 5, "high", 3, 0.8),
)
PAIRS = ((20, 10, 0.0), (20, 10, 0.1), (20, 20, 0.0), (100, 5, 0.0))
_SPREAD = {"equal": 0.0, "low": 0.4, "high": 2.5, "sparse": 0.0}
_ALWAYS_PASS = 0.6
# How far the truth is from the threshold, in standard errors of the estimate after all runs.
_NEAR, _FAR = 2.5, 5.0


def tables(*, quick: bool = False) -> list[Table]:
    """Every table of this module; `quick` for a glance of some seconds."""
    makers = [(_one_task, 0, 0), (_suites, 5, 10_000), (_pairs, 5, 4_000)]
    return run_tables("stopping", makers, quick=quick)


def _one_task(_repetitions: int) -> Table:
    rows = []
    for k, threshold in ((1, 0.8), (3, 0.8), (5, 0.5), (1, 0.5)):
        p0 = threshold ** (1 / k)
        for runs in (50, 100, 400):
            gate = TaskGate.at_threshold(p0, max_runs=runs)
            at = gate.operating_characteristics(p0)
            most = max(d for d in range(-1, runs) if d < 0 or bdtr(d, runs, 1 - p0) <= ALPHA)
            rates = 1 - betaincinv(most + 1.0, runs - most, np.array([0.2, 0.05]))
            found = gate.operating_characteristics(rates)
            never = next(n for n, need in enumerate(gate.boundaries.pass_at, 1) if need <= n)
            rows.append(
                (
                    f"pass^{k} >= {threshold:g}, {runs}",
                    f"{at.pass_probability[0]:.4f}",
                    f"{at.fail_probability[0]:.4f}",
                    *(
                        f"{power:.3f} / {spent:.0f}"
                        for power, spent in zip(
                            found.pass_probability, found.expected_runs, strict=True
                        )
                    ),
                    str(never),
                )
            )
    return Table(
        title="Stopping early, one task",
        header=("demand, N", "wrong PASS", "wrong FAIL", "full run .80", ".95", "never fails"),
        rows=rows,
        finding="Errors at the threshold (promised .05), then the chance of a PASS and the mean "
        "runs at the two rates where all N runs pass with chance .80 and .95, and the runs after "
        "which an agent that never fails passes. Exact.",
        repetitions=0,
        seed=SEED,
    )


def _suites(repetitions: int) -> Table:
    rows, worst, largest = [], 0.0, 0.0
    for tasks, rounds, kind, k, threshold in CELLS:
        gate = parse_gate(f"pass^{k} >= {threshold:g}")
        watch = RoundGate(gate, (rounds,) * tasks, rounds)
        step = standard_error(spread_rates(tasks, kind, k, threshold), k, rounds)
        cells = []
        for distance in (0.0, -_NEAR, _NEAR, _FAR):
            truth = threshold + distance * step
            if not 0 < truth < 1:
                cells.append("")
                continue
            rates = np.tile(spread_rates(tasks, kind, k, truth), (repetitions, 1))
            # The same seed twice: the run in full sees the same outcomes.
            words, spent = simulated_rounds(watch, [rates], np.random.default_rng(SEED))
            full = in_full(watch, rates, threshold, np.random.default_rng(SEED))
            if distance == 0:
                cells.append(f"{(words == 1).mean():.3f} {(words == 0).mean():.3f}")
                cells.append(f"{(full == 1).mean():.3f} {(full == 0).mean():.3f}")
                largest = max(largest, (words == 1).mean(), (words == 0).mean())
                continue
            right = int(distance > 0)
            power, before = (words == right).mean(), (full == right).mean()
            worst = max(worst, before - power)
            cells.append(f"{power:.3f} / {spent.mean():.0f} ({before:.3f})")
        rows.append((f"{tasks} x {rounds} {kind}, pass^{k} >= {threshold:g}", *cells))
    return Table(
        title="Stopping early, suites in rounds",
        header=(
            "suite", "wrong PASS FAIL", "in full", "FAIL at -2.5 s.e.", "PASS at +2.5", "PASS at +5"
        ),
        rows=rows,
        finding="At the threshold the chances of a wrong PASS and a wrong FAIL (promised .05), of "
        "rounds and of the run in full; then the chance of the right verdict / mean runs, and in "
        f"brackets that of the run in full. The largest error is {largest:.3f}; the most power "
        f"lost in a cell is {worst:.3f}, on the same outcomes.",
        repetitions=repetitions,
        seed=SEED,
    )  # fmt: skip


def _pairs(repetitions: int) -> Table:
    rng, rows = np.random.default_rng(SEED + 1), []
    for tasks, rounds, difference in PAIRS:
        old = np.tile(spread_rates(tasks, "high", 1, 0.7), (repetitions, 1))
        new = np.tile(spread_rates(tasks, "high", 1, 0.7 + difference), (repetitions, 1))
        cells = []
        for demand in ("better_than b", "no_worse_than b by 0.05", "equivalent_to b by 0.1"):
            watch = RoundGate(parse_gate(demand), (rounds,) * tasks, rounds)
            words, spent = simulated_rounds(watch, [new, old], rng)
            share = f"{(words == 1).mean():.3f} {(words == 0).mean():.3f}"
            cells.append(f"{share} / {spent.mean():.0f}")
        rows.append((f"{tasks} x {rounds}, {difference:+.2f}", f"{2 * tasks * rounds}", *cells))
    return Table(
        title="Stopping early, two systems side by side",
        header=("T x R, difference", "runs in full", "better", "no worse by .05", "equivalent .1"),
        rows=rows,
        finding="PASS and FAIL / mean runs. `better_than` is wrong with either verdict at a "
        "difference of 0 (promised .05 each).",
        repetitions=repetitions,
        seed=SEED + 1,
    )


def spread_rates(tasks: int, kind: str, k: int, truth: float) -> Floats:
    """Rates of tasks whose mean pass^k is the truth; `sparse` has 60% that always pass."""
    z = np.array([NormalDist().inv_cdf((i + 0.5) / tasks) for i in range(tasks)])

    def shifted(mean: float) -> Floats:
        rates = 1 / (1 + np.exp(-(mean + _SPREAD[kind] * z)))
        if kind == "sparse":
            rates[: int(_ALWAYS_PASS * tasks)] = 1.0
        return rates

    return shifted(bisect(lambda mean: bool((shifted(mean) ** k).mean() >= truth), -20, 20)[1])


def standard_error(rates: Floats, k: int, rounds: int) -> float:
    slope = k * rates ** (k - 1)
    return float(np.sqrt((slope**2 * rates * (1 - rates)).sum() / rounds) / rates.size)


def in_full(watch: RoundGate, rates: Floats, threshold: float, rng: np.random.Generator) -> Floats:
    passes = np.zeros(rates.shape, dtype=int)
    for _ in range(watch.rounds):
        passes += rng.random(rates.shape) < rates
    low, high = watch.bounds(passes, watch.rounds, ALPHA)
    return np.where(low >= threshold, 1, np.where(high < threshold, 0, -1))
