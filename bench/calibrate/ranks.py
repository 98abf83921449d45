"""More than two systems on the same tasks: what rank sets hold, and how often equals are parted."""

from __future__ import annotations

from itertools import product

import numpy as np

from bench.calibrate.cells import run_tables
from bench.calibrate.comparison_peers import naive_rank_sets
from bench.calibrate.simulated_suites import beta_rates
from bench.calibrate.table import Table
from passhat.stats.arguments import Floats
from passhat.stats.ranking import Ranking, rank_systems

SEED = 20261121
REPLICATES = 1_000


def tables(*, quick: bool = False) -> list[Table]:
    """Every table of this module; `quick` for a glance of some seconds."""
    makers = [(_joint, 40 if quick else 500), (_equals, 200 if quick else 2000)]
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
        rows=tuple(rows),
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
            parted = np.zeros(2)
            for _ in range(repetitions):
                passes = rng.binomial(4, beta_rates(rng, (tasks, systems), icc=0.95, mean=0.5))
                values = passes / 4 if k == 1 else (passes == 4).astype(float)
                ranking = _ranked(values, rng)
                told = any(pair.told_apart for pair in ranking.pairs)
                parted += [told, told or _by_residuals(ranking)]
            shares += [f"{share:.3f}" for share in parted / repetitions]
        rows.append((str(tasks), *shares))
    cases = ("2, pass^1", "2, pass^4", "6, pass^1", "6, pass^4")
    return Table(
        title="Equal systems told apart, on few tasks that are nearly all or nothing",
        header=("tasks", *(f"{case}{of}" for case in cases for of in ("", ", residuals alone"))),
        rows=tuple(rows),
        finding="Chance that any two of 2 or 6 systems are told apart that pass equally often, "
        "each on tasks of its own; nominally at most 0.05. ICC 0.95, mean 0.5, 4 runs a task. "
        "Beside it, what intervals from flipped residuals alone would say.",
        repetitions=repetitions,
        seed=SEED + 1,
    )


def _by_residuals(ranking: Ranking) -> bool:
    critical = ranking.critical_value
    return critical is not None and any(
        abs(pair.value) > critical * pair.standard_error * (1 + 1e-9) > 0 for pair in ranking.pairs
    )


def _ranked(values: Floats, rng: np.random.Generator) -> Ranking:
    ranking = rank_systems(values, replicates=REPLICATES, rng=rng)
    assert isinstance(ranking, Ranking)
    return ranking
