"""What a run may cost, by what earlier trials cost."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from passhat.defaults import CONFIDENCE
from passhat.records import Trials
from passhat.stats.arguments import confidence_level
from passhat.stats.estimate import Estimate, Interval, Unavailable

FEWEST_TRIALS = 2


def expected_cost(
    trials: Trials, planned: Mapping[tuple[str, str], int], *, confidence: float = CONFIDENCE
) -> Estimate | Unavailable:
    """The cost of so many runs of each (system, task), with the range the next bill falls in.

    The range is a prediction interval: it holds both what is not known of the mean cost of a task
    and the luck of the runs still to be made.

    >>> past = Trials.from_columns(task=["a"] * 4, passed=[True] * 4, cost=[0.1, 0.1, 0.2, 0.2])
    >>> round(expected_cost(past, {("system", "a"): 10}).value, 3)
    1.5
    """
    from passhat.stats.special import ndtri

    costs = trials.features.get("cost")
    if costs is None:
        return Unavailable("no earlier trial tells its cost")
    total, variance, seen = 0.0, 0.0, 0
    for (system, task), runs in planned.items():
        known = _known(trials, costs, system, task)
        if len(known) < FEWEST_TRIALS:
            return Unavailable(f"fewer than {FEWEST_TRIALS} earlier trials of {task} by {system}")
        spread = float(known.var(ddof=1))
        total += runs * float(known.mean())
        variance += spread * (runs + runs**2 / len(known))
        seen += len(known)
    reach = float(ndtri((1 + confidence_level(confidence)) / 2)) * variance**0.5
    return Estimate(
        value=total,
        interval=Interval(max(0.0, total - reach), total + reach),
        method="normal prediction interval over earlier trials",
        confidence=confidence,
        runs=seen,
    )


def _known(
    trials: Trials, costs: np.ndarray[tuple[int], np.dtype[np.float64]], system: str, task: str
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    rows = np.zeros(len(trials), dtype=bool)
    if system in trials.systems and task in trials.tasks:
        rows = (trials.system.codes == trials.system.code(system)) & (
            trials.task.codes == trials.task.code(task)
        )
    return costs[rows & ~np.isnan(costs)]
