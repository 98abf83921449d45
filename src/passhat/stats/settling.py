"""What it would take to settle a comparison that the runs so far leave undecided."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from passhat.stats.estimate import THIS_SUITE, Scope
from passhat.stats.paired_fit import Fit, Pair
from passhat.stats.special import ndtri

SETTLING_POWER = 0.8
# Times the runs there are: nobody plans that.
_HOPELESS = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Needed:
    """What would settle an undecided comparison with `power`, if the difference stays as it is.

    `more_runs` counts further runs of both systems on the same tasks; `more_tasks` counts new
    tasks run like the present ones. None: no number of these would do, or it cannot be told.
    """

    more_runs: int | None
    more_tasks: int | None
    power: float = SETTLING_POWER


def needed(pair: Pair, fit: Fit, scope: Scope, alpha: float, margin: float | None) -> Needed | None:
    """The runs or tasks still needed; None where the observed difference gives no aim."""
    target = _target_error(fit, alpha, margin)
    if target <= 0 or fit.error == 0:
        return None
    growth = (fit.error / target) ** 2
    if growth > _HOPELESS:
        return None
    tasks = max(1, int(np.ceil((growth - 1) * fit.tasks)))
    if scope == THIS_SUITE:
        return Needed(more_runs=_more_runs(pair, growth), more_tasks=None)
    return Needed(more_runs=_population_runs(pair, fit, target), more_tasks=tasks)


def _target_error(fit: Fit, alpha: float, margin: float | None) -> float:
    """The standard error that would settle it: away from 0, or inside the margin if nearer."""
    power = float(ndtri(SETTLING_POWER))
    target = abs(fit.value) / (fit.quantile(1 - alpha / 2) + power)
    if margin is not None:
        inside = (margin - abs(fit.value)) / (fit.quantile(1 - alpha) + power)
        target = max(target, inside)
    return target


def _population_runs(pair: Pair, fit: Fit, target: float) -> int | None:
    """Runs shrink only the noise within tasks; what tasks differ by stays."""
    if pair.sums is None or pair.single.any():
        return None
    noise = float(pair.run_noise.mean())
    between = max(0.0, fit.error**2 * fit.tasks - noise)
    room = target**2 * fit.tasks - between
    if room <= 0 or noise == 0:
        return None
    return _more_runs(pair, noise / room)


def _more_runs(pair: Pair, growth: float) -> int:
    assert pair.sums is not None
    return sum(
        int(np.maximum(np.ceil(side.runs * growth) - side.runs, 1).sum()) for side in pair.sums
    )
