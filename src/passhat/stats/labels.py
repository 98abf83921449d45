"""Solid, flaky or broken: what a task's runs say about it, or that they leave it undecided."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from passhat.errors import ArgumentError
from passhat.fast_dataclass import dataclass
from passhat.messages import repr_fields
from passhat.stats import special
from passhat.stats.arguments import Floats, probability
from passhat.stats.betabinomial import chance_above
from passhat.stats.cells import Cells, count_cells, task_counts
from passhat.stats.difficulty_atoms import fit_with_atoms, log_chance
from passhat.stats.hyperposterior import PriorWeights, prior_weights

SOLID, FLAKY, BROKEN, UNDECIDED = "solid", "flaky", "broken", "undecided"

BROKEN_BELOW, SOLID_ABOVE, CERTAINTY = 0.1, 0.95, 0.9
"""The pass rates between which a task is flaky, and the chance that a label takes."""

PRIOR_SHARE = 0.9
"""The weight of the priors that must each give a label its chance.

The mean over the priors is not enough: where the true chance is 0.86, the suites in which it looks
like 0.9 are those that get labels, and 14 % of them are wrong (bench/calibrate/labels.py).
"""

_ROUNDING = 1e-9
# Priors times cells at most: a suite with very many distinct cells pins its prior down, and
# fewer priors move no chance by more than 1e-3.
_EFFORT = 3_000
# The unlikeliest priors move no chance by more than 1e-4, and the incomplete beta is slow.
_COVERED = 0.999


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TaskLabels:
    """One label per task, and the posterior chance of each: they add up to 1."""

    labels: NDArray[np.str_]
    solid: Floats
    flaky: Floats
    broken: Floats

    __repr__ = repr_fields

    def count(self, label: str) -> int:
        return int((self.labels == label).sum())


def label_tasks(
    n: ArrayLike,
    c: ArrayLike,
    *,
    broken_below: float = BROKEN_BELOW,
    solid_above: float = SOLID_ABOVE,
    certainty: float = CERTAINTY,
) -> TaskLabels:
    """Label each task by its pass rate p: broken below 0.1, solid above 0.95, flaky between.

    The chance of each is the posterior of p under the beta priors that the suite leaves possible,
    with a share of tasks that always pass and one of tasks that never do where the counts ask.
    A task gets a label when its chance reaches `certainty` under priors with nine tenths of the
    weight, and is undecided otherwise. To be called flaky, its own runs must also exclude both
    other labels (exact binomial tests at 1 - `certainty`): whatever its rate, a task that is not
    flaky is called so with a chance of at most 0.1.

    >>> label_tasks([60, 60, 60, 2], [60, 30, 0, 2]).labels.tolist()
    ['solid', 'flaky', 'broken', 'undecided']
    """
    low = probability("broken_below", broken_below, open_ends=True)
    high = probability("solid_above", solid_above, open_ends=True)
    if low >= high:
        raise ArgumentError("broken_below", f"must be less than solid_above = {high}", low)
    sure = probability("certainty", certainty, open_ends=True)
    runs, passes = task_counts(n, c)
    cells = count_cells(runs, passes)
    if cells.having(1).n.size == 0:
        return _unknown(runs.size)
    weight, broken, solid = _chances(cells, low, high)
    earned = earned_labels(weight[:, None], broken, solid, sure)
    earned[1] &= excludes_both(cells.n, cells.c, low, high, 1 - sure)
    earned &= cells.n > 0  # the prior alone labels nothing
    place = cells.place(runs, passes)
    means = weight @ solid, weight @ (1 - solid - broken), weight @ broken
    return TaskLabels(
        labels=_names(earned)[place],
        solid=means[0][place],
        flaky=means[1][place],
        broken=means[2][place],
    )


def earned_labels(
    weight: Floats, broken: Floats, solid: Floats, sure: float, *, share: float = PRIOR_SHARE
) -> NDArray[np.bool_]:
    """Whether enough priors (rows) give each cell (column) its chance to be solid, flaky, broken.

    At most one label is earned: no prior gives two a chance above a half.
    """
    chances = np.stack((solid, 1 - solid - broken, broken))
    return np.asarray((weight * (chances >= sure)).sum(axis=1) >= share)


def excludes_both(n: Floats, c: Floats, low: float, high: float, error: float) -> NDArray[np.bool_]:
    """Whether runs alone exclude a rate up to `low` and one from `high` on: exact binomial tests.

    Runs that all ended alike never do. The counts may be fractions: runs that are still to come.
    """
    # Of a fraction the part that is sure to be there counts, of passes as of failures.
    passed, failed = np.floor(c + _ROUNDING), np.floor(n - c + _ROUNDING)
    mixed = (passed > 0) & (failed > 0)
    passed, failed = np.where(mixed, passed, 1.0), np.where(mixed, failed, 1.0)
    as_many = special.betainc(passed, n - passed + 1, low)  # P(at least c pass) at the rate `low`
    as_few = special.betainc(failed, n - failed + 1, 1 - high)  # P(at most c pass) at `high`
    return np.asarray(mixed & (as_many <= error) & (as_few <= error))


def _chances(cells: Cells, low: float, high: float) -> tuple[Floats, Floats, Floats]:
    """The weight of each prior, and under it P(p < low) and P(p > high) in each cell.

    Where the counts ask for tasks that always or never pass, those are part of the model, as in
    what is said beyond the runs there are (`extrapolate_pass_hat_k`).
    """
    model = fit_with_atoms(cells.having(1))
    priors = prior_weights(model.rest).covering(_COVERED)
    priors = priors.heaviest(max(1, _EFFORT // cells.n.size))
    a, b = _posterior(priors, cells)
    broken, solid = special.betainc(a, b, low), chance_above(a, b, high)
    if not model.atoms:
        return priors.weight, broken, solid
    prior = log_chance(cells.n, cells.c, priors.a[:, None], priors.b[:, None])
    seen = np.exp(prior) * (1 - model.solid - model.broken)
    always, never = model.solid * (cells.c == cells.n), model.broken * (cells.c == 0)
    total = seen + always + never
    return priors.weight, (seen * broken + never) / total, (seen * solid + always) / total


def _posterior(priors: PriorWeights, cells: Cells) -> tuple[Floats, Floats]:
    return priors.a[:, None] + cells.c, priors.b[:, None] + cells.n - cells.c


def _names(earned: NDArray[np.bool_]) -> NDArray[np.str_]:
    found = np.array((SOLID, FLAKY, BROKEN))[earned.argmax(axis=0)]
    return np.where(earned.any(axis=0), found, UNDECIDED)


def _unknown(tasks: int) -> TaskLabels:
    """No run anywhere: every label is open."""
    third = np.full(tasks, 1 / 3)
    labels = np.full(tasks, UNDECIDED)
    return TaskLabels(labels=labels, solid=third, flaky=third, broken=third)
