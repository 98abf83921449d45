"""Whether the runs that a plan promises bring the width, and the power, that it was asked for."""

from __future__ import annotations

import numpy as np

from bench.calibrate.cells import run_tables
from bench.calibrate.simulated_suites import DIFFICULTIES, Difficulty, beta_rates
from bench.calibrate.table import Table
from passhat.analysis.planning.plan import plan
from passhat.records import Tally
from passhat.stats.arguments import Counts
from passhat.stats.assurance import CLOSE
from passhat.stats.estimate import Estimate, Scope, Unavailable
from passhat.stats.paired import PairedDifference, paired_difference
from passhat.stats.sufficient_statistics import TaskSums
from passhat.stats.suite_mean import suite_estimate

SEED = 20261116
NEAR_ONE = Difficulty("Beta(19, 1)", beta=(19.0, 1.0))
DESIGNS = ((8, 5, 1), (8, 10, 1), (8, 10, 3), (50, 4, 1))
"""Tasks, runs of the pilot, and the k of pass^k that is planned."""
HALF_WIDTH = 0.05
POWER_DESIGNS = ((8, 10, 0.85, 0.4), (8, 10, 0.5, 0.5), (8, 5, 0.7, 0.3), (30, 5, 0.85, 0.4))
"""Tasks, runs of each, mean pass rate, and intraclass correlation."""


def tables(*, quick: bool = False) -> list[Table]:
    """Every table of this module; `quick` for a glance of some seconds."""
    return run_tables("plans", [(_widths, 1, 25), (_power, 60, 600)], quick=quick, least=1)


def _widths(repetitions: int) -> Table:
    rng = np.random.default_rng(SEED)
    rows = []
    for tasks, runs, k in DESIGNS:
        found = [
            one
            for difficulty in (*DIFFICULTIES, NEAR_ONE)
            for _ in range(repetitions)
            if (one := _follow(difficulty, tasks, runs, k, rng)) is not None
        ]
        promised, here, there = (np.array(column) for column in zip(*found, strict=True))
        rows.append(
            (
                f"{tasks} x {runs}, pass^{k}",
                str(len(found)),
                f"{np.median(promised):.0f}",
                f"{np.mean(here <= 1):.3f}",
                f"{np.mean(here <= CLOSE):.3f}",
                f"{np.median(here):.2f} / {here.max():.2f}",
                f"{np.mean(there <= CLOSE):.3f}",
                f"{np.median(there):.2f} / {there.max():.2f}",
            )
        )
    return Table(
        title="The runs that a plan from trials promises for a half-width of 0.05",
        header=(
            *("pilot", "suites", "median runs", "reached", "within 1.25", "median / largest ratio"),
            *("like these, within 1.25", "median / largest ratio"),
        ),
        rows=rows,
        finding=(
            "Suites of every difficulty above and of Beta(19, 1), run anew at their true rates "
            "with as many runs of every task as promised for this suite; the ratio is the "
            "half-width that was reached over 0.05. Promised: 0.8 reach it, 0.95 come within 1.25. "
            "Like these: the half-width for tasks like these after three times the runs of the "
            "pilot, over what the plan said of it."
        ),
        repetitions=repetitions,
        seed=SEED,
    )


def _follow(
    difficulty: Difficulty, tasks: int, runs: int, k: int, rng: np.random.Generator
) -> tuple[int, float, float] | None:
    """The runs promised, and what was reached of what was promised; None where nothing was."""
    rates = difficulty.draw((tasks,), rng)
    pilot = _tally(rng.binomial(runs, rates), runs)
    promise = plan(pilot, runs=3 * runs, half_width=HALF_WIDTH, k=k).assured
    if isinstance(promise, Unavailable) or isinstance(promise.runs, Unavailable):
        return None
    if promise.runs <= runs:
        return None
    here = _half_width(rng.binomial(promise.runs, rates), promise.runs, k, "this suite")
    there = _half_width(rng.binomial(3 * runs, rates), 3 * runs, k, "tasks like these")
    return promise.runs, here / HALF_WIDTH, there / promise.tasks_like_these


def _half_width(passes: Counts, runs: int, k: int, scope: Scope) -> float:
    n = np.full(passes.size, runs)
    found = suite_estimate(n, passes, metric="pass^k", k=k, scope=scope)
    assert isinstance(found, Estimate)
    assert found.interval is not None
    return found.interval.width / 2


def _power(repetitions: int) -> Table:
    rng = np.random.default_rng(SEED + 1)
    rows = []
    for tasks, runs, rate, icc in POWER_DESIGNS:
        planned = plan(tasks=tasks, runs=runs, rate=rate, correlation=icc)
        drawn, formula = planned.assured_comparison, planned.detectable
        assert not isinstance(drawn, Unavailable)
        assert not isinstance(formula, Unavailable)
        gap = drawn.detectable
        assert gap is not None
        shares = [
            np.mean([_told_apart(rng, tasks, runs, rate, icc, size) for _ in range(repetitions)])
            for size in (gap, formula.value)
        ]
        rows.append(
            (
                f"{tasks} x {runs}, rate {rate}, ICC {icc}",
                f"{gap:.3f}",
                f"{shares[0]:.3f}",
                f"{formula.value:.3f}",
                f"{shares[1]:.3f}",
            )
        )
    return Table(
        title="The power that a plan promises",
        header=("design", "difference planned", "power", "by the paired t", "power there"),
        rows=rows,
        finding=(
            "How often `compare` tells two agents apart, for tasks like these, that differ by what "
            "a plan says is seen with a power of 0.8; beside it the difference that the formula of "
            "the paired t test gives."
        ),
        repetitions=repetitions,
        seed=SEED + 1,
    )


def _told_apart(
    rng: np.random.Generator, tasks: int, runs: int, rate: float, icc: float, gap: float
) -> bool:
    """Two agents that find half of the tasks equally hard, the second worse by `gap`."""
    first, other = beta_rates(rng, (2, tasks), icc=icc, mean=rate)
    second = np.where(rng.random(tasks) < 0.5, first, other) * (1 - gap / rate)
    n = np.full(tasks, runs)
    sides = (TaskSums.of_passes(n, rng.binomial(runs, one)) for one in (first, second))
    found = paired_difference(*sides, scope="tasks like these")
    assert isinstance(found, PairedDifference)
    return found.answer == "better"


def _tally(passes: Counts, runs: int) -> Tally:
    score = passes.astype(np.float64)
    return Tally(
        system="simulated",
        tasks=tuple(f"task-{i}" for i in range(passes.size)),
        passed=passes,
        failed=runs - passes,
        errored=np.zeros_like(passes),
        score_total=score,
        score_squares=score,
        features={},
    )
