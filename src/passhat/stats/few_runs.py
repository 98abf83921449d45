"""Tasks with fewer than 2k runs: pass^k of each is known, its spread only for all together.

With n = k runs a task's pass^k is seen as 0 or 1, once. Of T such tasks the share that passed is
bounded as a proportion is, by Beta(S, T - S): a Dirichlet weight for each task. With more runs a
task shows more, so the weights vary less: Gamma(n / (2k - n)) in the place of Gamma(1).
"""

from __future__ import annotations

import numpy as np

from passhat.stats import special
from passhat.stats.arguments import Floats
from passhat.stats.cells import Cells
from passhat.stats.dirichlet_mean import UNSEEN
from passhat.stats.lattice_sums import SumLaw, sum_law
from passhat.stats.passk import share_of_passing_subsets
from passhat.stats.roots import crossing
from passhat.stats.task_laws import expected_shortfall, split_on_lattice

_RHO_RANGE = (-12.0, 40.0)
# Fixed levels at which the number of passing groups is taken: normal deviates, closer in the
# middle than the 1e-5 tails need.
_LEVELS = np.linspace(-4.5, 4.5, 37)
_POINTS = 256


def few_runs_quantile(values: Floats, tasks: Floats, weight: float, tail: float) -> Floats:
    """The `tail` quantile of sum G Y / (sum G + G_0), with Y = 1 with the chance of each value.

    G has the law Gamma(weight) for each task, and G_0 that of 3/4 for a task that was not seen.
    By the saddle point: for a ratio rho of the two factors, all else follows in closed form.
    """

    def at(log: Floats) -> tuple[Floats, Floats]:
        rho = 1 + np.exp(log)
        tilted = values / (values + (1 - values) * rho[..., None] ** weight)
        ones = weight * (tasks * tilted).sum(axis=-1)
        rest = weight * (tasks * (1 - tilted)).sum(axis=-1) + UNSEEN
        theta = ones / (ones + rest * rho)
        s = (rho - 1) / (1 - theta + rho * theta)
        up, down = 1 + s * (1 - theta), 1 - s * theta
        return theta, _signed_root(values, tasks, tilted, weight, (theta, s, up, down))

    def beyond(log: Floats) -> Floats:
        return at(log)[1] - target

    target = float(special.ndtri(1 - tail))
    shape = tasks.shape[:-1]
    low, high = (np.full(shape, end) for end in _RHO_RANGE)
    log = -crossing(lambda minus: beyond(-minus), -high, -low)
    none = (tasks * values).sum(axis=-1) <= 0
    return np.where(none, 0.0, at(log)[0])


def _signed_root(
    values: Floats,
    tasks: Floats,
    tilted: Floats,
    weight: float,
    saddle: tuple[Floats, Floats, Floats, Floats],
) -> Floats:
    theta, s, up, down = saddle
    mixed = values * (up**-weight)[..., None] + (1 - values) * (down**-weight)[..., None]
    cumulant = (tasks * np.log(mixed)).sum(axis=-1) - UNSEEN * np.log(down)
    root = np.sqrt(np.maximum(-2 * cumulant, 1e-300))
    one, zero = (1 - theta) / up, theta / down
    jump = (tasks * tilted * (1 - tilted)).sum(axis=-1) * (weight * (one + zero)) ** 2
    ones = weight * (tasks * tilted).sum(axis=-1)
    rest = weight * (tasks * (1 - tilted)).sum(axis=-1) + UNSEEN
    spread = s * np.sqrt(jump + ones * one**2 + rest * zero**2)
    return np.asarray(root + np.log(np.maximum(spread, 1e-300) / root) / root)


def few_runs_law(cells: Cells, k: int, steps: int) -> SumLaw:
    """The law of the summed pass^k of such tasks, in steps, where others have more runs.

    The number of passing groups S is taken at fixed levels of its law, and given S the mean has
    the law Beta(S A, (T - S) A).
    """
    values = share_of_passing_subsets(cells.n, cells.c, k)
    weight = float((cells.n / (2 * k - cells.n)).min())
    count = float(cells.task_count.flat[0])
    groups = sum_law(np.column_stack((1 - values, values)), cells.tasks)
    stride = int(np.ceil(count * steps / _POINTS))
    places = np.arange(int(np.ceil(count * steps / stride)) + 2) * (stride / (count * steps))
    chances = [
        _mixed_betas(_at_levels(*row), count, weight, places)
        for row in zip(
            groups.positions.reshape(-1, groups.positions.shape[-1]),
            groups.chances.reshape(-1, groups.chances.shape[-1]),
            strict=True,
        )
    ]
    shape = (*cells.tasks.shape[:-1], places.size - 1)
    positions = np.arange(places.size - 1) * float(stride)
    return SumLaw(positions=positions, chances=np.array(chances).reshape(shape))


def _at_levels(positions: Floats, chances: Floats) -> Floats:
    order = np.argsort(positions)
    reached = np.cumsum(chances[order]) - chances[order] / 2
    return np.interp(special.ndtr(_LEVELS), reached, positions[order])


def _mixed_betas(groups: Floats, count: float, weight: float, places: Floats) -> Floats:
    """Chances on the lattice of the mean, over the levels of the number of passing groups."""
    edges = np.concatenate(([-np.inf], (_LEVELS[1:] + _LEVELS[:-1]) / 2, [np.inf]))
    shares = np.diff(special.ndtr(edges))
    inner = np.clip(groups, 1e-9 * count, (1 - 1e-9) * count)
    shapes = (inner * weight, (count - inner) * weight)
    below = expected_shortfall(shapes, np.ones(groups.size), places)
    none, every = groups <= 1e-6 * count, groups >= (1 - 1e-6) * count
    below[none], below[every] = places, np.maximum(places - 1, 0.0)
    return split_on_lattice((shares @ below)[None, :], 1 / (places[1] - places[0]))[0]
