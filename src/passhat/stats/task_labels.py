"""Solid, flaky or broken: a label for each task; and how many tasks clear a bar on pass^k."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from passhat.arguments import CONFIDENCE, confidence_level, probability, whole_number
from passhat.dataclass import dataclass, result_dataclass
from passhat.errors import ArgumentError
from passhat.stats import special
from passhat.stats.arguments import Counts, Floats, score_array
from passhat.stats.beta_binomial import (
    PriorWeights,
    chance_above,
    fit_cells,
    fit_with_atoms,
    log_chance,
    prior_weights,
)
from passhat.stats.decay import MODEL_WARNING
from passhat.stats.estimate import THIS_SUITE, Estimate, Interval, Unavailable
from passhat.stats.passk import share_of_passing_subsets
from passhat.stats.proportions import lower_bound, upper_bound
from passhat.stats.sufficient_statistics import Cells, count_cells, task_counts

SOLID, FLAKY, BROKEN, UNDECIDED = "solid", "flaky", "broken", "undecided"

BROKEN_BELOW, SOLID_ABOVE, CERTAINTY = 0.1, 0.95, 0.9
"""The pass rates between which a task is flaky, and the chance that a label takes."""

SOLID_ERROR = 0.05
"""The share of the tasks called solid that may not be: what a reader of the label asks.

A chance for each task would not do. Of ten runs of a task at 0.9 all pass one time in three, so
where 30 % of the tasks are such and the rest always pass, 13 % of the clean ones are not solid,
whatever the prior says (bench/calibrate/labels.py)."""

_MIDDLE = 0.8
"""Tasks that are not solid have a p beyond it one time in five or more, solid ones rarely. It is
fixed: a further run moves no other task's line. Five runs without a failure have 0.77."""

FEWEST_RUNS = 2
"""A label takes two runs of the task: after one, it would depend on the other tasks alone."""

PRIOR_SHARE = 0.9
"""The weight of the priors that must each give a label its chance.

The mean over the priors is not enough: where the true chance is 0.86, the suites in which it looks
like 0.9 are those that get labels, and 14 % of them are wrong (bench/calibrate/labels.py).
"""

# Weighted counts are whole numbers but for rounding.
_ROUNDING = 1e-9
# Priors times cells at most: a suite with very many distinct cells pins its prior down, and
# fewer priors move no chance by more than 1e-3.
_EFFORT = 3_000
# The unlikeliest priors move no chance by more than 1e-4, and the incomplete beta is slow.
_COVERED = 0.999
# A plan need not be exact to a single run, and each number tried takes time.
HORIZONS = np.array(
    (*range(1, 7), 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100, 150, 200, 300, 500, 1000, 10_000)
)
"""The numbers of further runs that are tried; a label beyond the last is not promised."""
# Priors times open cells at most, and the share of the weight that the likeliest must have: the
# incomplete beta is slow. The rest moves few chances by more than the margin that a promise keeps.
_RUNS_EFFORT = 160
_RUNS_COVERED = 0.98
_MARGIN = 0.005
# A promise needs priors with more of the weight than a label does, because fewer priors are used:
# with 0.93 it is kept for 99.7 % of the tasks that continue at the same rate, with 0.9 for 96.9 %.
_RUNS_SHARE = 0.93


@result_dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TaskLabels:
    """One label per task, and the posterior chance of each: they add up to 1."""

    labels: NDArray[np.str_]
    solid: Floats
    flaky: Floats
    broken: Floats

    def count(self, label: str) -> int:
        return int((self.labels == label).sum())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Ahead:
    """The open cells, the posterior of each under each prior, and every horizon's weights.

    `as_good` counts the tasks with as many runs or more that pass at least as often as each, which
    would be called solid with it, and `not_solid` how many are then taken for tasks that are not.
    """

    cells: Cells
    as_good: Floats
    not_solid: float
    a: Floats
    b: Floats
    weights: Floats


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
    with shares of tasks that always pass or never do where the counts need them. A task gets a
    label when its chance reaches `certainty` under priors with nine tenths of the weight, and is
    undecided otherwise. To be called flaky, its own runs must also exclude both other labels (exact
    binomial tests at 1 - `certainty`): whatever its rate, a task that is not flaky is called flaky
    with a chance of at most 0.1. To be called solid, the runs of all tasks together must show that
    at most 5 % of the tasks called so are not (exact tests, Benjamini-Hochberg). A task that ran
    once has no label.

    >>> label_tasks([90, 60, 60, 2], [90, 30, 0, 2]).labels.tolist()
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
        labels, third = np.full(runs.size, UNDECIDED), np.full(runs.size, 1 / 3)
        return TaskLabels(labels=labels, solid=third, flaky=third, broken=third)
    weight, broken, solid = _chances(cells, low, high)
    earned = _earned(weight[:, None], broken, solid, sure)
    ran = np.where(cells.n > 0, cells.tasks, 0)
    earned[0] &= _discovered(ran, _chance_if_not_solid(cells.n, cells.c, high))
    earned[1] &= _excludes_both(cells.n, cells.c, low, high, 1 - sure)
    earned &= cells.n >= FEWEST_RUNS
    names = np.array((SOLID, FLAKY, BROKEN))[earned.argmax(axis=0)]
    place = cells.place(runs, passes)
    return TaskLabels(
        labels=np.where(earned.any(axis=0), names, UNDECIDED)[place],
        solid=(weight @ solid)[place],
        flaky=(weight @ (1 - solid - broken))[place],
        broken=(weight @ broken)[place],
    )


def runs_to_label(
    n: ArrayLike,
    c: ArrayLike,
    labels: NDArray[np.str_],
    *,
    broken_below: float = BROKEN_BELOW,
    solid_above: float = SOLID_ABOVE,
    certainty: float = CERTAINTY,
) -> Counts:
    """The further runs after which each task without a label has one; 0 if no number does.

    Every such task is assumed to run that many times more and to pass as often as it did. The
    priors of `label_tasks` get new weights from those runs: with the present weights, a suite of
    one or two tasks would wait several times too long.

    In 1,008 simulated suites of 1 to 40 tasks and 2 to 10 runs (bench/calibrate/labels.py), 83 %
    of the tasks that continued at the observed rate had a label within the runs promised, and 44 %
    of those that continued at their true one: one that looks clean after a few runs often is not.

    >>> runs_to_label([90, 2], [90, 2], label_tasks([90, 2], [90, 2]).labels).tolist()
    [0, 60]
    """
    runs, passes = task_counts(n, c)
    open_ = (labels == UNDECIDED) & (runs > 0)
    needed = np.zeros(runs.size, dtype=np.int64)
    if open_.any():
        every = count_cells(runs, passes).having(1)
        ahead = _look_ahead(every, runs[open_], passes[open_], solid_above)
        settled = _first_settled(ahead, (broken_below, solid_above), certainty + _MARGIN)
        needed[open_] = settled[ahead.cells.place(runs[open_], passes[open_])]
    return needed


def _earned(
    weight: Floats, broken: Floats, solid: Floats, sure: float, *, share: float = PRIOR_SHARE
) -> NDArray[np.bool_]:
    """Whether enough priors (rows) give each cell (column) its chance to be solid, flaky, broken.

    At most one label is earned: no prior gives two a chance above a half.
    """
    chances = np.stack((solid, 1 - solid - broken, broken))
    return np.asarray((weight * (chances >= sure)).sum(axis=1) >= share)


def _chance_if_not_solid(n: Floats, c: Floats, high: float) -> Floats:
    """How likely so many passes are at the border of solid, at most: an exact binomial test.

    The counts may be fractions, runs that are still to come: passes are rounded down.
    """
    passed = np.floor(c + _ROUNDING)
    chance = special.betainc(np.maximum(passed, 1.0), n - passed + 1, high)
    return np.where(passed > 0, chance, 1.0)


def _discovered(tasks: Floats, p: Floats) -> NDArray[np.bool_]:
    """The cells with a p so small that at most `SOLID_ERROR` of the tasks in them are errors.

    Benjamini and Hochberg (1995) over tasks, with the number of tasks that are not solid by Storey,
    Taylor and Siegmund (2004). So few runs are enough where hardly a task of many ever failed. A
    larger p anywhere can only take tasks out.
    """
    order = np.argsort(p, kind="stable")
    cumulative = np.cumsum(tasks[order])
    limit = _not_solid(tasks.sum(), tasks[p > _MIDDLE].sum())
    small = np.flatnonzero((p[order] <= _MIDDLE) & (p[order] * limit <= SOLID_ERROR * cumulative))
    line = p[order][small[-1]] if small.size else -1.0
    return np.asarray(p <= line)


def _not_solid(tasks: float, beyond: float) -> float:
    """How many of the tasks are not solid, on the large side: so many lie beyond the middle."""
    return min(tasks, (1 + beyond) / (1 - _MIDDLE))


def _excludes_both(
    n: Floats, c: Floats, low: float, high: float, error: float
) -> NDArray[np.bool_]:
    """Whether runs alone exclude a rate up to `low` and one from `high` on: exact binomial tests.

    Runs that all ended alike never do. The counts may be fractions: runs that are still to come.
    """
    # Fractions are rounded down, for passes and for failures.
    passed, failed = np.floor(c + _ROUNDING), np.floor(n - c + _ROUNDING)
    mixed = (passed > 0) & (failed > 0)
    passed, failed = np.where(mixed, passed, 1.0), np.where(mixed, failed, 1.0)
    as_many = special.betainc(passed, n - passed + 1, low)  # P(at least c pass) at the rate `low`
    as_few = special.betainc(failed, n - failed + 1, 1 - high)  # P(at most c pass) at `high`
    return np.asarray(mixed & (as_many <= error) & (as_few <= error))


def _chances(cells: Cells, low: float, high: float) -> tuple[Floats, Floats, Floats]:
    """The weight of each prior, and under it P(p < low) and P(p > high) in each cell.

    If the counts need tasks that always or never pass, those are part of the model, as in
    `extrapolate_pass_hat_k`.
    """
    model = fit_with_atoms(cells.having(1))
    priors = prior_weights(model.rest).covering(_COVERED)
    priors = priors.heaviest(max(1, _EFFORT // cells.n.size))
    a, b = _posterior(priors, cells)
    broken, solid = np.asarray(special.betainc(a, b, low), np.float64), chance_above(a, b, high)
    if not model.atoms:
        return priors.weight, broken, solid
    prior = log_chance(cells.n, cells.c, priors.a[:, None], priors.b[:, None])
    seen = np.exp(prior) * (1 - model.solid - model.broken)
    always, never = model.solid * (cells.c == cells.n), model.broken * (cells.c == 0)
    total = seen + always + never
    return priors.weight, (seen * broken + never) / total, (seen * solid + always) / total


def _posterior(priors: PriorWeights, cells: Cells) -> tuple[Floats, Floats]:
    return priors.a[:, None] + cells.c, priors.b[:, None] + cells.n - cells.c


def _look_ahead(every: Cells, runs: Counts, passes: Counts, solid_above: float) -> _Ahead:
    cells = count_cells(runs, passes)
    priors = prior_weights(every).covering(_RUNS_COVERED)
    priors = priors.heaviest(max(1, _RUNS_EFFORT // cells.n.size))
    a, b = _posterior(priors, cells)
    passed = HORIZONS[:, None, None] * (cells.c / cells.n)
    failed = HORIZONS[:, None, None] - passed
    # The marginal likelihood of the runs to come, over all open tasks at once.
    gained = special.betaln(a + passed, b + failed) - special.betaln(a, b)
    log = gained @ cells.tasks + np.log(priors.weight)
    weights = np.exp(log - log.max(axis=1, keepdims=True))
    rates = every.c / every.n
    as_good = rates >= (cells.c / cells.n)[:, None] - _ROUNDING
    as_good &= every.n >= cells.n[:, None]
    return _Ahead(
        cells=cells,
        as_good=as_good @ every.tasks,
        not_solid=_not_solid(every.tasks.sum(), every.tasks[rates <= solid_above].sum()),
        a=a,
        b=b,
        weights=weights / weights.sum(axis=1, keepdims=True),
    )


def _first_settled(ahead: _Ahead, borders: tuple[float, float], certainty: float) -> Counts:
    """The first horizon at which each cell has a label, by bisection: more runs keep the label."""
    rate = ahead.cells.c / ahead.cells.n

    def settled(horizon: Counts) -> NDArray[np.bool_]:
        more = HORIZONS[horizon]
        a, b = ahead.a + rate * more, ahead.b + (1 - rate) * more
        weights = ahead.weights[horizon].T
        broken, solid = special.betainc(a, b, borders[0]), chance_above(a, b, borders[1])
        earned = _earned(weights, broken, solid, certainty, share=_RUNS_SHARE)
        n, c = ahead.cells.n + more, ahead.cells.c + rate * more
        chance = _chance_if_not_solid(n, c, borders[1]) * ahead.not_solid
        earned[0] &= chance <= SOLID_ERROR * ahead.as_good
        earned[1] &= _excludes_both(n, c, *borders, 1 - certainty)
        return np.asarray(earned.any(axis=0))

    low = np.full(rate.size, -1)
    high = np.full(rate.size, HORIZONS.size - 1)
    never = ~settled(high)
    while (high - low > 1).any():
        middle = (low + high + 1) // 2  # of neighbours, the settled one: nothing moves
        enough = settled(middle)
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.where(never, 0, HORIZONS[high])


# How many tasks clear a bar on pass^k: certified counts, and the share that a model expects.

ABOVE, BELOW, UNDETERMINED = "above", "below", "undetermined"


@result_dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BarsCleared:
    """Tasks certified above their bar, certified below it, and those with too few runs to tell.

    `verdicts` has one word per task. `model_share` is the share of tasks above by the fitted beta
    model. `plug_in_share`, the share of estimates above, is biased, and only there to reproduce
    other tools.
    """

    k: int
    confidence: float
    above: int
    below: int
    undetermined: int
    verdicts: NDArray[np.str_]
    model_share: Estimate | Unavailable
    plug_in_share: float | None


def bars_cleared(
    n: ArrayLike, c: ArrayLike, *, k: int, bars: ArrayLike, confidence: float = CONFIDENCE
) -> BarsCleared:
    """Which tasks have a p^k at or above their bar (one bar, or one per task).

    Each verdict is exact: a one-sided Clopper-Pearson bound on p, to the power k.

    >>> cleared = bars_cleared([60, 60, 5], [60, 20, 5], k=3, bars=0.8)
    >>> cleared.above, cleared.below, cleared.undetermined
    (1, 1, 1)
    """
    runs, passes = task_counts(n, c)
    power, level = whole_number("k", k), confidence_level(confidence)
    bar = score_array("bars", bars)
    if bar.ndim > 1 or (bar.ndim == 1 and bar.shape != runs.shape):
        raise ArgumentError(
            "bars", f"must be one bar, or one for each of {runs.size} tasks", bar.shape
        )
    bar = np.broadcast_to(bar, runs.shape)
    verdicts = _verdicts(runs, passes, power, bar, level)
    tallies = {word: int((verdicts == word).sum()) for word in (ABOVE, BELOW, UNDETERMINED)}
    return BarsCleared(
        k=power,
        confidence=level,
        verdicts=verdicts,
        model_share=_model_share(runs, passes, bar ** (1 / power), level),
        plug_in_share=_plug_in_share(runs, passes, power, bar),
        **tallies,
    )


def _verdicts(runs: Counts, passes: Counts, k: int, bar: Floats, level: float) -> NDArray[np.str_]:
    if runs.size == 0:
        return np.array([], dtype=np.str_)
    cells = count_cells(runs, passes)
    place = cells.place(runs, passes)
    low = lower_bound(cells.c, cells.n, confidence=level)[place] ** k
    high = upper_bound(cells.c, cells.n, confidence=level)[place] ** k
    return np.where(low >= bar, ABOVE, np.where(high < bar, BELOW, UNDETERMINED))


def _model_share(runs: Counts, passes: Counts, bar: Floats, level: float) -> Estimate | Unavailable:
    every = count_cells(runs, passes)
    cells = every.having(1)
    if cells.n.size == 0:
        return Unavailable("the share above the bar needs a task with a trial; there is none")
    heights, tallies = np.unique(bar[runs > 0], return_counts=True)
    share = tallies / tallies.sum()
    a, b = fit_cells(cells)
    priors = prior_weights(cells)
    value = float(chance_above(a, b, heights) @ share)
    shares = sum(
        part * chance_above(priors.a, priors.b, height)
        for height, part in zip(heights, share, strict=True)
    )
    interval = priors.interval(np.asarray(shares), level)
    return Estimate(
        value=value,
        interval=Interval(min(interval.low, value), max(interval.high, value)),
        method="beta-binomial deconvolution (model-based)",
        confidence=level,
        scope=THIS_SUITE,
        tasks=int(cells.task_count),
        runs=int(cells.run_count),
        excluded_tasks=int(every.task_count - cells.task_count),
        notes=(MODEL_WARNING,),
    )


def _plug_in_share(runs: Counts, passes: Counts, k: int, bar: Floats) -> float | None:
    able = runs >= k
    if not able.any():
        return None
    return float((share_of_passing_subsets(runs[able], passes[able], k) >= bar[able]).mean())
