"""How often each interval for a suite's mean holds the truth, cell by cell of a grid of designs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from bench.calibrate.simulated_suites import Difficulty, Suites, draw_suites
from passhat.stats import special
from passhat.stats.arguments import Floats
from passhat.stats.beta_binomial import fit_cells
from passhat.stats.estimate import TASKS_LIKE_THESE, THIS_SUITE, Scope
from passhat.stats.mean_intervals import (
    around_mean,
    bca_interval,
    default_bounds,
    mean_and_variance,
    percentile_interval,
    resampled_cells,
    student_quantile,
    variance_of_mean,
)
from passhat.stats.passk import share_of_passing_subsets
from passhat.stats.proportions import Bounds, wilson_bounds
from passhat.stats.sufficient_statistics import Cells

NOMINAL = 0.95
RESAMPLES = 1000
SCOPES: tuple[Scope, ...] = (THIS_SUITE, TASKS_LIKE_THESE)

Prior = tuple[Floats, Floats]
Formula = Callable[[Cells, int, Scope, float, Prior], Bounds]


def _around(cells: Cells, k: int, scope: Scope, quantile: Floats | float) -> Bounds:
    mean = mean_and_variance(cells, k)[0]
    return around_mean(mean, variance_of_mean(cells, k, scope), quantile)


ANALYTIC: dict[str, Formula] = {
    "default": lambda cells, k, scope, confidence, _: default_bounds(cells, k, scope, confidence),
    "t": lambda cells, k, scope, confidence, _: _around(
        cells, k, scope, student_quantile(cells.task_count - 1, confidence)
    ),
    "z (CLT)": lambda cells, k, scope, confidence, _: _around(
        cells, k, scope, special.ndtri((1 + confidence) / 2)
    ),
    "Wilson on pooled runs": lambda cells, k, scope, confidence, _: wilson_bounds(
        mean_and_variance(cells, k)[0], cells.run_count, special.ndtri((1 + confidence) / 2)
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """Tasks, runs of each, and the difficulty they are drawn from."""

    difficulty: Difficulty
    runs: tuple[int, ...]

    @property
    def tasks(self) -> int:
        return len(self.runs)

    def __str__(self) -> str:
        least, most = min(self.runs), max(self.runs)
        n = str(least) if least == most else f"{least}..{most}"
        return f"{self.difficulty.name}, T = {self.tasks}, n = {n}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """What one method did in one cell of the grid."""

    design: Design
    metric: str
    k: int
    scope: Scope
    method: str
    coverage: float
    width: float
    truth: float

    def __str__(self) -> str:
        return f"{self.metric.replace('k', str(self.k))}, {self.design}"


def grid(
    difficulties: tuple[Difficulty, ...], tasks: tuple[int, ...], runs: tuple[int, ...]
) -> list[Design]:
    """Every combination, the same number of runs for every task."""
    every = product(difficulties, tasks, runs)
    return [Design(difficulty=d, runs=(n,) * count) for d, count, n in every]


def cover(
    designs: list[Design],
    *,
    powers: tuple[int, ...],
    repetitions: int,
    rng: np.random.Generator,
    formulas: dict[str, Formula] | None = None,
    scopes: tuple[Scope, ...] = SCOPES,
    resampled: int = 0,
) -> Iterator[Covered]:
    """Coverage of every formula, metric, scope and k; bootstraps on `resampled` suites only."""
    for design in designs:
        suites = draw_suites(design.difficulty, np.array(design.runs, float), repetitions, rng)
        a, b = fit_cells(suites.cells)
        for k, metric in _questions(powers, min(design.runs)):
            asked, prior = (suites, (a, b)) if metric == "pass^k" else (suites.mirrored(), (b, a))
            for scope, (name, formula) in product(scopes, (formulas or ANALYTIC).items()):
                bounds = formula(asked.cells, k, scope, NOMINAL, prior)
                yield _covered(design, metric, k, scope, name, bounds, _truth(asked, k, scope))
        if resampled:
            yield from _cover_bootstraps(design, suites, powers, resampled, rng)


def _questions(powers: tuple[int, ...], runs: int) -> list[tuple[int, str]]:
    """pass@1 is pass^1."""
    metrics = ((k, m) for k in powers if k <= runs for m in ("pass^k", "pass@k"))
    return [(k, metric) for k, metric in metrics if (k, metric) != (1, "pass@k")]


def _truth(suites: Suites, k: int, scope: Scope) -> Floats:
    if scope == THIS_SUITE:
        return np.asarray((suites.rates**k).mean(axis=1))
    return np.full(len(suites.rates), suites.difficulty.mean_power(k))


def _covered(
    design: Design, metric: str, k: int, scope: Scope, name: str, bounds: Bounds, truth: Floats
) -> Covered:
    low, high = bounds
    inside = (low <= truth + 1e-12) & (truth <= high + 1e-12)
    return Covered(
        design=design,
        metric=metric,
        k=k,
        scope=scope,
        method=name,
        coverage=float(inside.mean()),
        width=float((high - low).mean()),
        truth=float(truth.mean()) if metric == "pass^k" else float(1 - truth.mean()),
    )


def _cover_bootstraps(
    design: Design,
    suites: Suites,
    powers: tuple[int, ...],
    resampled: int,
    rng: np.random.Generator,
) -> Iterator[Covered]:
    """The same tallies serve every k and metric: they are what costs."""
    tasks = suites.cells.tasks[:resampled]
    again = resampled_cells(Cells(n=suites.cells.n, c=suites.cells.c, tasks=tasks))
    drawn = [_tallies(row, rng) for row in tasks]
    drawn_twice = [_tallies(row, rng) for row in again.tasks]
    for k, metric in _questions(powers, min(design.runs)):
        asked = suites if metric == "pass^k" else suites.mirrored()
        values = share_of_passing_subsets(asked.cells.n, asked.cells.c, k)
        means = [tally @ values / design.tasks for tally in drawn]
        biased = [tally @ values / design.tasks for tally in drawn_twice]
        ends = {
            "task bootstrap": [percentile_interval(m, NOMINAL) for m in means],
            "BCa": [bca_interval(m, values, t, NOMINAL) for m, t in zip(means, tasks, strict=True)],
            "hierarchical bootstrap (agentrel)": [percentile_interval(m, NOMINAL) for m in biased],
        }
        for scope, (name, intervals) in product(SCOPES, ends.items()):
            bounds = np.array([i.low for i in intervals]), np.array([i.high for i in intervals])
            truth = _truth(asked, k, scope)[:resampled]
            yield _covered(design, metric, k, scope, name, bounds, truth)


def _tallies(tasks: Floats, rng: np.random.Generator) -> Floats:
    count = round(tasks.sum())
    return rng.multinomial(count, tasks / tasks.sum(), size=RESAMPLES).astype(np.float64)
