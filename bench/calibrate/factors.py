"""What a factor moves: coverage of its numbers, error and power of its test; what pooling does."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from bench.calibrate.cells import run_cells
from bench.calibrate.table import Table
from passhat.analysis.reports.factors import LevelTable, worst_level
from passhat.stats.estimate import TASKS_LIKE_THESE, THIS_SUITE, Estimate, Number
from passhat.stats.factors import factor_effect, level_test, pass_hat_of_levels
from passhat.stats.suite_mean import suite_estimate

SEED = 20261118
SIZES = ((12, 2, 5), (30, 2, 5), (30, 4, 5), (30, 5, 3))
WORLDS = ((0.0, 0.0), (0.4, 0.6), (0.9, 1.0))
"""How far levels differ, in logits: as a whole, and from task to task."""
LAWS = ("logit-normal", "Beta(2, 1)")
POPULATION = 4000
"""Tasks over which the truth of a population is added up."""
DRAWS = 199

NAMES = (
    *("luck", "moved", "share", "worst level", "2 in a row, one level", "2 in a row, others"),
    *(
        "cells, these tasks",
        "pooled, these tasks",
        "cells, similar tasks",
        "no base, similar tasks",
    ),
)

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]


def tables(*, quick: bool = False) -> list[Table]:
    """What a factor moves, and pass^3 of levels kept apart and pooled."""
    share = float(os.environ.get("PASSHAT_SHARE", "1"))
    repetitions = 30 if quick else max(20, round(100 * share))
    sizes = ((12, 2, 5), (30, 4, 5)) if quick else SIZES
    worlds = (WORLDS[0], WORLDS[-1]) if quick else WORLDS
    cells = [
        (*size, *world, law, repetitions)
        for size in sizes
        for world in worlds
        for law in range(len(LAWS))
    ]
    found = [cover(*cell) for cell in cells] if quick else run_cells("factors", cover, cells)
    by_cell = dict(zip(cells, found, strict=True))
    moved, pooled = [], []
    for size in sizes:
        for world in worlds:
            own = [by_cell[cell] for cell in cells if cell[:5] == (*size, *world)]
            start = (f"{size[0]}", f"{size[1]} x {size[2]}", f"{world[0]:g}, {world[1]:g}")
            shown = [_worst_and_width([one[name] for one in own]) for name in NAMES]
            rejected = f"{np.mean([one['rejected'][0] for one in own]):.2f}"
            moved.append((*start, *shown[:6], rejected))
            pooled.append((*start, *shown[6:]))
    header = ("tasks", "levels x trials", "levels differ by")
    return [
        Table(
            title="What a factor moves",
            header=(*header, *NAMES[:6], "p <= 0.05"),
            rows=moved,
            finding="Coverage / mean width at a nominal 0.95 for similar tasks and these levels "
            "(the worst level: these tasks), the lower of two laws of pass rates (logit-normal "
            "with mean 1.2 and sd 1.5, Beta(2, 1)); levels differ by so many logits (sd) as a "
            "whole, and from task to task. Where they do not, p <= 0.05 is the test's error.",
            repetitions=repetitions,
            seed=SEED,
        ),
        Table(
            title="Levels are tasks of their own",
            header=(*header, *NAMES[6:]),
            rows=pooled,
            finding="Coverage / mean width of pass^3 with one level in all three trials. Levels "
            "that are pooled into one task give another number; cells without their base task are "
            "taken for more tasks than were drawn.",
            repetitions=repetitions,
            seed=SEED,
        ),
    ]


def cover(
    tasks: int, levels: int, runs: int, whole: float, apart: float, law: int, repetitions: int
) -> dict[str, tuple[float, float]]:
    """How often each interval holds the truth, and how wide it is on average."""
    rng = np.random.default_rng([SEED, tasks, levels, runs, int(10 * whole), law])
    hits: dict[str, list[tuple[bool, float]]] = {name: [] for name in NAMES}
    rejected = 0
    for _ in range(repetitions):
        shift = whole * rng.normal(size=(1, levels))
        drawn, every = (_rates(rng, size, shift, apart, law) for size in (tasks, POPULATION))
        n = np.full((tasks, levels), runs)
        c = rng.binomial(n, drawn)
        test = level_test(n, c, draws=DRAWS, rng=rng)
        rejected += bool(test) and test.p_value <= 0.05
        for name, (number, truth) in _numbers(n, c, drawn, every).items():
            if isinstance(number, Estimate) and number.interval is not None:
                ends = number.interval
                inside = ends.low - 1e-3 <= truth <= ends.high + 1e-3
                hits[name].append((inside, ends.width))
    found = {
        name: (float(np.mean([hit for hit, _ in own])), float(np.mean([wide for _, wide in own])))
        for name, own in hits.items()
    }
    return found | {"rejected": (rejected / repetitions, 0.0)}


def _rates(rng: np.random.Generator, tasks: int, shift: Floats, apart: float, law: int) -> Floats:
    if law == 0:
        logit = rng.normal(1.2, 1.5, size=(tasks, 1))
    else:
        rate = rng.beta(2.0, 1.0, size=(tasks, 1))
        logit = np.log(rate / (1 - rate))
    rates: Floats = 1 / (
        1 + np.exp(-(logit + shift + apart * rng.normal(size=(tasks, shift.size))))
    )
    return rates


def _numbers(n: Counts, c: Counts, drawn: Floats, every: Floats) -> dict[str, tuple[Number, float]]:
    """Each number, and its truth."""
    levels = n.shape[1]
    total = every.sum(axis=1)
    pairs = (total**2 - (every**2).sum(axis=1)) / (levels * (levels - 1))
    same = float((2 * every * (1 - every)).mean())
    other = float((2 * (total / levels - pairs)).mean())
    effect = factor_effect(n, c)
    unit = np.arange(len(n))
    table = LevelTable(
        levels=tuple(map(str, range(levels))),
        names=tuple(map(str, unit)),
        unit=unit,
        runs=n,
        passes=c,
    )
    base = np.repeat(unit, levels)
    runs, passes = n.ravel(), c.ravel()
    pooled = suite_estimate(n.sum(axis=1), c.sum(axis=1), k=3, scope=THIS_SUITE)
    here, there = float((drawn**3).mean()), float((every**3).mean())
    numbers: dict[str, tuple[Number, float]] = {
        "worst level": (worst_level(table, 0.95)[1], float(drawn.mean(axis=0).min())),
        "2 in a row, one level": (
            pass_hat_of_levels(n, c, 2, other=False),
            float((every**2).mean()),
        ),
        "2 in a row, others": (pass_hat_of_levels(n, c, 2, other=True), float(pairs.mean())),
        "cells, these tasks": (suite_estimate(runs, passes, k=3), here),
        "pooled, these tasks": (pooled, here),
        "cells, similar tasks": (
            suite_estimate(runs, passes, k=3, scope=TASKS_LIKE_THESE, family=base),
            there,
        ),
        "no base, similar tasks": (
            suite_estimate(runs, passes, k=3, scope=TASKS_LIKE_THESE),
            there,
        ),
    }
    if effect:
        gap = max(0.0, other - same)
        numbers |= {
            "luck": (effect.luck, same),
            "moved": (effect.moved, gap),
            "share": (effect.share, gap / other),
        }
    return numbers


def _worst_and_width(found: list[tuple[float, float]]) -> str:
    return f"{min(hit for hit, _ in found):.2f} / {np.mean([wide for _, wide in found]):.2f}"
