"""More than two systems on the same tasks: what rank sets hold, and how often equals are parted."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from bench.calibrate.cells import run_tables
from bench.calibrate.comparison_peers import naive_rank_sets
from bench.calibrate.simulated_suites import beta_rates
from bench.calibrate.table import Table
from passhat.stats.arguments import Floats
from passhat.stats.multiple_testing import tukey
from passhat.stats.ranking import Ranking, rank_systems

SEED = 20261121


def tables(*, quick: bool = False) -> list[Table]:
    """Every table of this module; `quick` for a glance of some seconds."""
    makers = [(_joint, 40, 500), (_equals, 200, 2000), (_coherent, 10, 200)]
    return run_tables("ranks", makers, quick=quick)


def _joint(repetitions: int, *, quick: bool) -> Table:
    rng = np.random.default_rng(SEED)
    rows = []
    truths = {
        "six tied": np.ones(6),
        "three pairs": np.array([1.0, 1.0, 0.85, 0.85, 0.7, 0.7]),
        "all differ": np.linspace(1, 0.75, 6),
    }
    grid = product((30,) if quick else (10, 30, 80), (5,) if quick else (1, 5), truths)
    for tasks, n, name in grid:
        factors = truths[name]
        best = 1 + (factors[None, :] > factors[:, None]).sum(axis=1)
        worst = 6 - (factors[None, :] < factors[:, None]).sum(axis=1)
        held, widths = np.zeros(2), np.zeros(2)
        for _ in range(repetitions):
            skill = beta_rates(rng, (tasks, 1), icc=0.5, mean=0.6)
            values = rng.binomial(n, skill * factors, size=(tasks, 6)) / n
            for j, sets in enumerate(
                (_ranked(values, rng).rank_sets, naive_rank_sets(values, rng))
            ):
                low, high = np.array(sets).T
                held[j] += bool((low <= best).all() and (worst <= high).all())
                widths[j] += float((high - low + 1).mean())
        shares = [f"{x / repetitions:.3f}" for x in (*held, *widths)]
        rows.append((name, str(tasks), str(n), shares[0], shares[1], shares[2][:4], shares[3][:4]))
    return Table(
        title="More than two systems: joint coverage of the rank sets",
        header=("truth", "tasks", "runs", "passhat", "naive", "ranks a set", "naive ranks a set"),
        rows=rows,
        finding="Chance that all six rank sets hold all the ranks their system may truly claim "
        "(tied systems share theirs), nominally 0.95, beside percentiles of bootstrapped ranks; "
        "ICC 0.5, mean 0.6.",
        repetitions=repetitions,
        seed=SEED,
    )


def _equals(repetitions: int, *, quick: bool) -> Table:
    rng = np.random.default_rng(SEED + 1)
    rows = []
    for tasks in (6, 10) if quick else (5, 6, 7, 8, 10, 15, 30):
        shares = []
        for systems, k in product((2, 6), (1, 4)):
            parted = 0
            for _ in range(repetitions):
                passes = rng.binomial(4, beta_rates(rng, (tasks, systems), icc=0.95, mean=0.5))
                values = passes / 4 if k == 1 else (passes == 4).astype(float)
                parted += any(pair.told_apart for pair in _ranked(values, rng).pairs)
            shares.append(f"{parted / repetitions:.3f}")
        rows.append((str(tasks), *shares))
    return Table(
        title="Equal systems told apart, on few tasks that are nearly all or nothing",
        header=("tasks", "2, pass^1", "2, pass^4", "6, pass^1", "6, pass^4"),
        rows=rows,
        finding="Chance that any two of 2 or 6 systems are told apart that pass equally often, "
        "each on tasks of its own; nominally at most 0.05. ICC 0.95, mean 0.5, 4 runs a task.",
        repetitions=repetitions,
        seed=SEED + 1,
    )


def _coherent(repetitions: int) -> Table:
    """Tukey's level for a pair against Bonferroni's, and whether a failure ever helps."""
    rng = np.random.default_rng(SEED + 2)
    rows = []
    for systems, tasks, n in ((3, 30, 5), (6, 10, 5), (6, 30, 5), (6, 80, 5), (12, 80, 5)):
        factors = np.linspace(1, 0.75, systems)
        rank = np.arange(1, systems + 1)
        held, widths, better = np.zeros(2), np.zeros(2), 0
        for _ in range(repetitions):
            skill = beta_rates(rng, (tasks, 1), icc=0.5, mean=0.6)
            values = rng.binomial(n, skill * factors, size=(tasks, systems)) / n
            kept = _ranked(values, np.random.default_rng(0))
            for j, sets in enumerate((kept.rank_sets, _bonferroni_sets(kept))):
                low, high = np.array(sets).T
                held[j] += bool((low <= rank).all() and (rank <= high).all())
                widths[j] += float((high - low + 1).mean())
            better += _improved_by_a_failure(values, n, kept.rank_sets, rng)
        shares = [f"{x / repetitions:.3f}" for x in (*held, *widths)]
        rows.append(
            (
                f"{systems} systems, {tasks} x {n}",
                *shares,
                f"{widths[1] / widths[0]:.3f}",
                f"{better} of {repetitions}",
            )
        )
    return Table(
        title="Rank sets that are coherent by construction",
        header=(
            *("design", "hold", "by Bonferroni", "ranks a set", "by Bonferroni", "ratio"),
            "improved by a failure",
        ),
        rows=rows,
        finding="All systems differ. Each pair is judged by itself, by the interval and the "
        "sign-flip test of a comparison, at Tukey's level for so many systems; beside it at 0.05 "
        "over the number of pairs. Last: how often one pass fewer of a random system on a random "
        "task made its rank set better.",
        repetitions=repetitions,
        seed=SEED + 2,
    )


def _bonferroni_sets(ranking: Ranking) -> list[tuple[int, int]]:
    """What the same pairs say at 0.05 over their number: a smaller p than Tukey's asks for."""
    systems = len(ranking.means)
    limit = tukey([0.05 / len(ranking.pairs)], systems)[0]
    above = np.zeros((systems, systems), dtype=bool)
    for pair in ranking.pairs:
        if pair.p_value <= limit:
            places = (pair.first, pair.second)
            above[places if pair.value > 0 else places[::-1]] = True
    return [
        (1 + int(above[:, one].sum()), systems - int(above[one].sum())) for one in range(systems)
    ]


def _improved_by_a_failure(
    values: Floats, runs: int, before: Sequence[tuple[int, int]], rng: np.random.Generator
) -> bool:
    task, system = np.argwhere(values > 0)[rng.integers(int((values > 0).sum()))]
    fewer = values.copy()
    fewer[task, system] -= 1 / runs
    low, high = _ranked(fewer, np.random.default_rng(0)).rank_sets[system]
    return bool(low < before[system][0] or high < before[system][1])


def _ranked(values: Floats, rng: np.random.Generator) -> Ranking:
    ranking = rank_systems(values, rng=rng)
    assert isinstance(ranking, Ranking)
    return ranking
