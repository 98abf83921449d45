"""Tasks and levels that both stand for others: what a report of days promises of them."""

from __future__ import annotations

from math import comb

import numpy as np
from numpy.typing import NDArray

from bench.calibrate.cells import run_tables
from bench.calibrate.table import Table
from passhat.analysis.reports.factors import LevelTable, levels_like_these
from passhat.analysis.reports.measure import measure
from passhat.records import Trials
from passhat.stats.arguments import Floats
from passhat.stats.dependent_runs import with_excess
from passhat.stats.estimate import TASKS_LIKE_THESE, Estimate, Number
from passhat.stats.suite_mean import suite_estimate

SEED = 20_261_122
TASKS, RUNS = 30, 5
LEVELS = (2, 3, 4, 5, 6, 10)
WORLDS = ((0.0, 0.0), (0.4, 0.6), (0.9, 1.0))
"""How far levels differ, in logits: as a whole, and from task to task."""
POPULATION = 400_000
"""Tasks over which a truth is added up, each on three days of its own."""


def tables(*, quick: bool = False) -> list[Table]:
    return run_tables("similar_levels", [(_both, 40, 300)], quick=quick)


def _both(repetitions: int, *, quick: bool = False) -> Table:
    rows = []
    names = ("pass@1, report", "pass^3, report", "pass@1, one level", "pass^3, one level")
    for levels in (5,) if quick else LEVELS:
        for whole, apart in (WORLDS[0], WORLDS[-1]) if quick else WORLDS:
            rng = np.random.default_rng([SEED, levels, int(10 * whole)])
            truths = _truths(rng, levels, whole, apart)
            hits: dict[str, list[tuple[bool, float]]] = {name: [] for name in names}
            for _ in range(repetitions):
                shift = whole * rng.normal(size=(1, levels))
                rates = _rates(rng, TASKS, shift + apart * rng.normal(size=(TASKS, levels)))
                passed = rng.random((TASKS, levels, RUNS)) < rates[..., None]
                numbers = (*_of_report(passed), *_of_levels(passed.sum(axis=2)))
                for name, number, truth in zip(names, numbers, truths, strict=True):
                    if isinstance(number, Estimate) and number.interval is not None:
                        hits[name].append((truth in number.interval, number.interval.width))
            cells = [
                f"{np.mean([hit for hit, _ in own]):.2f} / {np.mean([w for _, w in own]):.2f}"
                if own
                else "refused"
                for own in hits.values()
            ]
            rows.append((f"{levels}", f"{whole:g}, {apart:g}", *cells))
    return Table(
        title="Tasks and levels that both stand for others",
        header=("levels", "levels differ by", *names),
        rows=rows,
        finding=f"Coverage / mean width at a nominal 0.95 for similar tasks and levels like these "
        f"(days), on {TASKS} tasks x {RUNS} trials at each. The report's three trials are any of a "
        "task's, on whichever days; those of one level are all on one. Fewer than five levels do "
        "not stand for others: a report of them speaks of these levels, and its rows here show "
        "what that leaves out.",
        repetitions=repetitions,
        seed=SEED,
    )


def _rates(rng: np.random.Generator, tasks: int, shift: Floats) -> Floats:
    rates: Floats = 1 / (1 + np.exp(-(rng.normal(1.2, 1.5, size=(tasks, 1)) + shift)))
    return rates


def _truths(
    rng: np.random.Generator, levels: int, whole: float, apart: float
) -> tuple[float, float, float, float]:
    """Over all tasks and days: of a trial, of three of a task, of three of it on one day."""
    first, second, third = _rates(
        rng, POPULATION, np.sqrt(whole**2 + apart**2) * rng.normal(size=(POPULATION, 3))
    ).T
    same = float((first**3).mean())
    all_apart = comb(levels, 3) * RUNS**3 / comb(levels * RUNS, 3)
    all_same = levels * comb(RUNS, 3) / comb(levels * RUNS, 3)
    mixed = all_same * same + all_apart * float((first * second * third).mean())
    mixed += (1 - all_same - all_apart) * float((first**2 * second).mean())
    once = float(first.mean())
    return once, mixed, once, same


def _of_report(passed: NDArray[np.bool_]) -> tuple[Number, Number]:
    task, day, _ = (index.ravel().tolist() for index in np.indices(passed.shape))
    trials = Trials.from_columns(
        task=[f"t{i}" for i in task],
        at=[(f"day={i}",) for i in day],
        passed=passed.ravel().tolist(),
    )
    report = measure(trials, ks=(1, 3)).system()
    return report.pass_hat(1).similar_tasks, report.pass_hat(3).similar_tasks


def _of_levels(passes: NDArray[np.int64]) -> list[Number]:
    """Of cells: the interval for similar tasks, wider by what levels like these add to it."""
    tasks, levels = passes.shape
    names = (tuple(map(str, range(size))) for size in (levels, tasks))
    runs, unit = np.full(passes.shape, RUNS), np.arange(tasks)
    table = LevelTable(levels=next(names), names=next(names), unit=unit, runs=runs, passes=passes)
    numbers: list[Number] = []
    for k in (1, 3):
        here = suite_estimate(runs.ravel(), passes.ravel(), k=k)
        alike = suite_estimate(
            runs.ravel(),
            passes.ravel(),
            k=k,
            scope=TASKS_LIKE_THESE,
            family=np.repeat(unit, levels),
        )
        wider = levels_like_these(table, k, 0.95)
        if isinstance(wider, Estimate) and isinstance(alike, Estimate):
            assert isinstance(here, Estimate)
            numbers.append(with_excess(alike, here, wider, "levels"))
        else:
            numbers.append(wider)
    return numbers
