"""Tasks with fewer than 2k runs: pass^k of each is known, its spread only for all together.

With n = k runs a task's pass^k is seen as 0 or 1, once. Of T such tasks the share that passed is
bounded as a proportion is, by Beta(S, T - S): a Dirichlet weight for each task. With more runs a
task shows more, so the weights vary less: Gamma(n / (2k - n)) in the place of Gamma(1).
"""

from __future__ import annotations

import numpy as np

from passhat.stats import special
from passhat.stats.arguments import Floats
from passhat.stats.dirichlet_mean import UNSEEN
from passhat.stats.roots import crossing_within

# Of ln(rho - 1): where it nearly always lies, and where it lies at all.
_USUAL_RHO = (-4.0, 5.0)
_RHO_RANGE = (-12.0, 40.0)
_TINY = 1e-300


def few_runs_quantile(
    values: Floats, tasks: Floats, weight: Floats, tail: Floats | float
) -> Floats:
    """The `tail` quantile of sum G Y / (sum G + G_0), with Y = 1 with the chance of each value.

    G has the law Gamma(weight) for each task, and G_0 that of 3/4 for a task that was not seen.
    The last axis runs over distinct values, the others over questions, each with its weight. By
    the saddle point: for a ratio rho of its two factors, all else follows in closed form.
    """
    target = special.ndtri(1 - np.asarray(tail))
    some = np.vecdot(tasks, values) > 0
    missing, count = 1 - values, tasks.sum(axis=-1)

    def at(log: Floats) -> tuple[Floats, Floats]:
        rho = 1 + np.exp(log)
        # beyond e^700 a float overflows; the tilt is 0 long before
        odds = np.exp(np.minimum(weight * np.log(rho), 700.0))
        tilted = values / (values + missing * odds[..., None])
        held = np.vecdot(tasks, tilted)
        ones = weight * held
        rest = weight * (count - held) + UNSEEN
        theta = ones / (ones + rest * rho)
        s = (rho - 1) / (1 - theta + rho * theta)
        up, down = 1 + s * (1 - theta), 1 - s * theta
        mixed = values * (up**-weight)[..., None] + missing * (down**-weight)[..., None]
        cumulant = np.vecdot(tasks, np.log(mixed)) - UNSEEN * np.log(down)
        root = np.sqrt(np.maximum(-2 * cumulant, _TINY))
        one, zero = (1 - theta) / up, theta / down
        jump = np.vecdot(tasks, tilted * (1 - tilted)) * (weight * (one + zero)) ** 2
        spread = s * np.sqrt(jump + ones * one**2 + rest * zero**2)
        return theta, root + np.log(np.maximum(spread, _TINY) / root) / root

    def beyond(minus_log: Floats) -> Floats:
        return np.where(some, at(-minus_log)[1] - target, 0.0)

    usual, range_ = ((-end[1], -end[0]) for end in (_USUAL_RHO, _RHO_RANGE))
    theta = at(-crossing_within(beyond, some.shape, usual, range_))[0]
    return np.where(some, theta, 0.0)
