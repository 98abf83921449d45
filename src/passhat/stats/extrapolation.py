"""pass^k for more attempts than were run, by the beta model of task difficulty."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from passhat.arguments import CONFIDENCE, whole_number
from passhat.stats import special
from passhat.stats.arguments import Floats, confidence_level
from passhat.stats.cells import Cells, count_cells, remembered
from passhat.stats.difficulty_model import DifficultyModel, fit_with_atoms, prior_weights
from passhat.stats.estimate import TASKS_LIKE_THESE, Estimate, Interval, Unavailable
from passhat.stats.passk import share_of_passing_subsets
from passhat.stats.population_mean import population_bounds
from passhat.stats.proportions import interval_at

MODEL_WARNING = (
    "model-based: assumes the tasks' pass rates follow a beta, with some tasks that always or "
    "never pass where the counts ask for them"
)
ATOMS_NOTE = "more tasks pass or fail every time than a beta allows: the interval needs no model"


def extrapolate_pass_hat_k(
    n: ArrayLike, c: ArrayLike, k: int, *, confidence: float = CONFIDENCE
) -> Estimate | Unavailable:
    """The suite's pass^k for any k, also beyond the runs there are: E[p^k] under the fitted beta.

    Beyond the runs that every task has, n of them, value and interval stay inside the limits that
    need no model: (pass^n)^(k/n) <= pass^k <= pass^n, the first by Jensen. The interval is the
    credible interval over the priors that the suite leaves possible; where tasks at 0 or 1 are
    too many for any beta, it is those limits themselves.

    >>> extrapolate_pass_hat_k([5] * 4, [5, 5, 4, 2], 32).method
    'beta-binomial extrapolation (model-based)'
    """
    return extrapolate_pass_hat_ks(n, c, (k,), confidence=confidence)[0]


def extrapolate_pass_hat_ks(
    n: ArrayLike, c: ArrayLike, ks: Sequence[int], *, confidence: float = CONFIDENCE
) -> list[Estimate | Unavailable]:
    """The same for several k: one model serves them all."""
    powers, level = [whole_number("k", k) for k in ks], confidence_level(confidence)
    every = count_cells(n, c)
    cells = every.having(1)
    if cells.n.size == 0:
        return [
            Unavailable(f"extrapolating pass^{power} needs a task with a run; there is none")
            for power in powers
        ]
    model = fit_with_atoms(cells)
    left_out = int(every.task_count - cells.task_count)
    return [_extrapolated(cells, model, power, level, left_out) for power in powers]


def _extrapolated(
    cells: Cells, model: DifficultyModel, power: int, level: float, left_out: int
) -> Estimate:
    value = model.solid + (1 - model.solid - model.broken) * float(_moment(model.a, model.b, power))
    limits, free = _limits(cells, power, level)
    value = min(max(value, limits.low), limits.high)
    if model.atoms:
        interval = free
    else:
        priors = prior_weights(cells)
        interval = priors.interval(_moment(priors.a, priors.b, power), level)
        low = min(max(interval.low, free.low), free.high)
        interval = Interval(low, max(low, min(interval.high, free.high)))
    return Estimate(
        value=value,
        interval=Interval(min(interval.low, value), max(interval.high, value)),
        method="beta-binomial extrapolation (model-based)",
        confidence=level,
        scope=TASKS_LIKE_THESE,
        tasks=int(cells.task_count),
        runs=int(cells.run_count),
        excluded_tasks=left_out,
        notes=(MODEL_WARNING, ATOMS_NOTE) if model.atoms else (MODEL_WARNING,),
    )


def _limits(cells: Cells, power: int, confidence: float) -> tuple[Interval, Interval]:
    """Where pass^k must lie given pass^n, and given its interval; every task has n runs.

    Up to n runs, that is the estimate of pass^k itself.
    """
    runs = min(int(cells.n.min()), power)
    seen, ends = _seen(cells, runs, confidence)
    share = power / runs
    return Interval(seen**share, seen), Interval(ends.low**share, ends.high)


@remembered
def _seen(cells: Cells, k: int, confidence: float) -> tuple[float, Interval]:
    """pass^k of the runs there are, with its interval."""
    values = share_of_passing_subsets(cells.n, cells.c, k)
    ends = interval_at(population_bounds(values, cells.tasks, confidence))
    return float(cells.mean(values)), ends


def _moment(a: Floats, b: Floats, k: int) -> Floats:
    """E[p^k] under Beta(a, b), as a ratio of gammas that stays accurate for large k."""
    return np.asarray(np.exp(special.betaln(a + k, b) - special.betaln(a, b)))
