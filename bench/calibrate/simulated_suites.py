"""Suites drawn from known difficulty, thousands at once, as tallies over (n, c) cells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from passhat.stats.arguments import Counts, Floats
from passhat.stats.sufficient_statistics import Cells


@dataclass(frozen=True, slots=True)
class Difficulty:
    """How pass rates are spread over tasks: a beta, or rates with shares."""

    name: str
    beta: tuple[float, float] | None = None
    rates: tuple[float, ...] = ()
    shares: tuple[float, ...] = ()

    def draw(self, size: tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Pass rates of tasks."""
        if self.beta is not None:
            return rng.beta(*self.beta, size=size)
        return rng.choice(np.array(self.rates), p=np.array(self.shares), size=size)

    def mean_power(self, k: int) -> float:
        """E[p^k]: the pass^k of tasks like these."""
        if self.beta is not None:
            a, b = self.beta
            return float(np.exp(special.betaln(a + k, b) - special.betaln(a, b)))
        return float(np.array(self.shares) @ np.array(self.rates) ** k)

    def mirrored(self) -> Difficulty:
        """The spread of failure rates."""
        if self.beta is not None:
            return Difficulty(self.name, beta=self.beta[::-1])
        return Difficulty(self.name, rates=tuple(1 - p for p in self.rates), shares=self.shares)


# Even, skewed either way, nearly solved, all or nothing, alike, and two kinds of task.
DIFFICULTIES = (
    Difficulty("Beta(1, 1)", beta=(1.0, 1.0)),
    Difficulty("Beta(3, 1)", beta=(3.0, 1.0)),
    Difficulty("Beta(1, 3)", beta=(1.0, 3.0)),
    Difficulty("Beta(8, 1)", beta=(8.0, 1.0)),
    Difficulty("Beta(0.5, 0.5)", beta=(0.5, 0.5)),
    Difficulty("Beta(4, 4)", beta=(4.0, 4.0)),
    Difficulty("70% at 0.95, 30% at 0.3", rates=(0.95, 0.3), shares=(0.7, 0.3)),
)
# Difficulties that no beta describes, or that a few tasks do not show.
HARSH = (
    Difficulty("60% at 0.98, 40% at 0.02", rates=(0.98, 0.02), shares=(0.6, 0.4)),
    Difficulty("90% at 0.99, 10% at 0.5", rates=(0.99, 0.5), shares=(0.9, 0.1)),
    Difficulty("85% at 0.95, 15% at 0.2", rates=(0.95, 0.2), shares=(0.85, 0.15)),
    Difficulty("all at 0.9", rates=(0.9,), shares=(1.0,)),
)


@dataclass(frozen=True, slots=True, eq=False)
class Suites:
    """Repetitions of one design: the tallies, and the pass rates they were drawn from."""

    cells: Cells
    rates: Floats
    difficulty: Difficulty

    def mirrored(self) -> Suites:
        """The same suites with failures in place of passes."""
        return Suites(self.cells.mirrored(), 1 - self.rates, self.difficulty.mirrored())


def beta_rates(
    rng: np.random.Generator, shape: int | tuple[int, int], *, icc: float, mean: float
) -> Floats:
    """Pass rates of tasks with this mean and intraclass correlation."""
    weight = 1 / icc - 1
    return rng.beta(mean * weight, (1 - mean) * weight, shape)


def draw_suites(
    difficulty: Difficulty, runs: Floats, repetitions: int, rng: np.random.Generator
) -> Suites:
    """`repetitions` suites in which task i has runs[i] runs."""
    rates = difficulty.draw((repetitions, runs.size), rng)
    passes = rng.binomial(runs.astype(np.int64), rates)
    return Suites(tally_suites(runs, passes), rates, difficulty)


def tally_suites(runs: Floats, passes: Counts) -> Cells:
    """Suites (rows) of passes, task i of runs[i] runs, counted over (n, c) cells."""
    repetitions = len(passes)
    sizes = np.unique(runs)
    first = np.concatenate(([0], np.cumsum(sizes + 1)))[:-1].astype(np.int64)
    n = np.repeat(sizes, (sizes + 1).astype(np.int64))
    c = np.concatenate([np.arange(size + 1) for size in sizes])
    cell = first[np.searchsorted(sizes, runs)] + passes
    keys = np.arange(repetitions)[:, None] * n.size + cell
    tallies = np.bincount(keys.ravel(), minlength=repetitions * n.size)
    return Cells(n=n, c=c, tasks=tallies.reshape(repetitions, n.size).astype(np.float64))
