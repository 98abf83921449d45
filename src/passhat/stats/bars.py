"""How many tasks clear a bar on pass^k: certified counts, and the share that a model expects."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from passhat.arguments import CONFIDENCE, whole_number
from passhat.dataclass import short_dataclass
from passhat.errors import ArgumentError
from passhat.stats.arguments import Counts, Floats, confidence_level, score_array
from passhat.stats.betabinomial import chance_above, fit_cells
from passhat.stats.cells import count_cells, task_counts
from passhat.stats.difficulty_model import prior_weights
from passhat.stats.estimate import THIS_SUITE, Estimate, Interval, Unavailable
from passhat.stats.extrapolation import MODEL_WARNING
from passhat.stats.passk import share_of_passing_subsets
from passhat.stats.proportions import lower_bound, upper_bound

ABOVE, BELOW, UNDETERMINED = "above", "below", "undetermined"


@short_dataclass(frozen=True, slots=True, kw_only=True, eq=False)
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
    bar = _bar_per_task(bars, runs)
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


def _bar_per_task(bars: ArrayLike, runs: Counts) -> Floats:
    bar = score_array("bars", bars)
    if bar.ndim > 1 or (bar.ndim == 1 and bar.shape != runs.shape):
        raise ArgumentError(
            "bars", f"must be one bar, or one for each of {runs.size} tasks", bar.shape
        )
    return np.broadcast_to(bar, runs.shape)


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
        return Unavailable("the share above the bar needs a task with a run; there is none")
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
