"""pass^k for more attempts than were run, by the beta model of task difficulty."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from passhat.defaults import CONFIDENCE
from passhat.stats import special
from passhat.stats.arguments import Floats, confidence_level, whole_number
from passhat.stats.betabinomial import fit_cells
from passhat.stats.cells import count_cells
from passhat.stats.estimate import TASKS_LIKE_THESE, Estimate, Interval, Unavailable
from passhat.stats.hyperposterior import prior_weights

MODEL_WARNING = (
    "model-based: assumes the tasks' pass rates follow a beta; wrong where they fall into clumps, "
    "such as some tasks always passing and the rest never"
)


def extrapolate_pass_hat_k(
    n: ArrayLike, c: ArrayLike, k: int, *, confidence: float = CONFIDENCE
) -> Estimate | Unavailable:
    """The suite's pass^k for any k, also beyond the runs there are: E[p^k] under the fitted beta.

    The interval is the credible interval over the priors that the suite leaves possible.

    >>> extrapolate_pass_hat_k([5] * 4, [5, 5, 4, 2], 32).method
    'beta-binomial extrapolation (model-based)'
    """
    power, level = whole_number("k", k), confidence_level(confidence)
    every = count_cells(n, c)
    cells = every.having(1)
    if cells.n.size == 0:
        return Unavailable(f"extrapolating pass^{power} needs a task with a run; there is none")
    a, b = fit_cells(cells)
    value = float(_moment(a, b, power))
    priors = prior_weights(cells)
    interval = priors.interval(_moment(priors.a, priors.b, power), level)
    return Estimate(
        value=value,
        interval=Interval(min(interval.low, value), max(interval.high, value)),
        method="beta-binomial extrapolation (model-based)",
        confidence=level,
        scope=TASKS_LIKE_THESE,
        tasks=int(cells.task_count),
        runs=int(cells.run_count),
        excluded_tasks=int(every.task_count - cells.task_count),
        notes=(MODEL_WARNING,),
    )


def _moment(a: Floats, b: Floats, k: int) -> Floats:
    """E[p^k] under Beta(a, b), as a ratio of gammas that stays accurate for large k."""
    return np.asarray(np.exp(special.betaln(a + k, b) - special.betaln(a, b)))
