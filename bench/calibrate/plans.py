"""Whether the runs that a plan promises bring a suite's mean to the width it was asked for."""

from __future__ import annotations

import numpy as np

from bench.calibrate.cells import run_tables
from bench.calibrate.simulated_suites import DIFFICULTIES, Difficulty
from bench.calibrate.table import Table
from passhat.analysis.planning.plan import plan
from passhat.analysis.reports.measure import measure
from passhat.records import Tally
from passhat.stats.arguments import Counts

SEED = 20261115
DESIGNS = ((5, 5), (10, 5), (50, 4))
HALF_WIDTH = 0.05


def tables(*, quick: bool = False) -> list[Table]:
    """Every table of this module; `quick` for a glance of some seconds."""
    return run_tables("plans", [(_promises, 3 if quick else 60)], quick=quick, least=3)


def _promises(repetitions: int) -> Table:
    rng = np.random.default_rng(SEED)
    rows = []
    for tasks, runs in DESIGNS:
        found = [
            one
            for difficulty in DIFFICULTIES
            for _ in range(repetitions)
            if (one := _follow(difficulty, tasks, runs, rng)) is not None
        ]
        promised, reached, widths = (np.array(column) for column in zip(*found, strict=True))
        rows.append(
            (
                f"{tasks} x {runs}",
                str(len(found)),
                f"{np.median(promised):.0f}",
                f"{reached.mean():.3f}",
                f"{np.median(widths):.3f}",
                f"{np.quantile(widths, 0.9):.3f}",
            )
        )
    return Table(
        title="The runs that a plan from trials promises to bring this suite's mean to 0.05",
        header=("tasks x runs", "suites", "median runs", "reached", "median width", "90 % below"),
        rows=tuple(rows),
        finding=(
            "Suites of every difficulty above that were not there yet, run anew at their true "
            "rates with as many runs of every task as promised. The width depends on what is seen, "
            "so about half of them reach it where tasks are few; the widths beside show by how "
            "little the others miss it."
        ),
        repetitions=repetitions,
        seed=SEED,
    )


def _follow(
    difficulty: Difficulty, tasks: int, runs: int, rng: np.random.Generator
) -> tuple[int, bool, float] | None:
    """The runs promised, whether they reached the width, and the width; None where nothing was."""
    rates = difficulty.draw((tasks,), rng)
    promised = plan(_tally(rng.binomial(runs, rates), runs), half_width=HALF_WIDTH)
    needed = promised.chosen.runs_this_suite
    if needed is None or needed <= runs:
        return None
    interval = measure([_tally(rng.binomial(needed, rates), needed)]).system().mean_score
    width = interval.this_suite.interval.width / 2  # type: ignore[union-attr] # every task has runs
    return needed, width <= HALF_WIDTH, width


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
