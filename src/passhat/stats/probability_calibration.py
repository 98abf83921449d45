"""Whether stated probabilities come true: the Brier score and the expected calibration error."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from passhat.arguments import CONFIDENCE, confidence_level, whole_number
from passhat.dataclass import result_dataclass
from passhat.errors import ArgumentError
from passhat.stats import special
from passhat.stats.arguments import Counts, Floats, RandomSource, random_generator, score_array
from passhat.stats.estimate import TASKS_LIKE_THESE, Estimate, Interval, Unavailable
from passhat.stats.population_bounds import ratio_estimate
from passhat.stats.proportions import proportion_bounds, wilson_bounds

# Draws of the noise in the bins: its 97.5 % quantile is then known to about 1 %.
_DRAWS = 10_000


@result_dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationBin:
    """The forecasts in [low, high) (the last bin holds 1): their mean and what happened."""

    low: float
    high: float
    count: int
    stated: float
    happened: float
    interval: Interval

    @property
    def gap(self) -> float:
        return self.happened - self.stated


@result_dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """How far stated probabilities lie from what happened.

    `ece_if_calibrated` is the error that a perfectly calibrated forecaster would show by chance
    alone with these forecasts: an `ece` near it is no evidence of miscalibration.
    """

    brier: Estimate
    ece: Estimate
    ece_if_calibrated: float
    base_rate: float
    bins: tuple[CalibrationBin, ...]


def calibration(
    probability: ArrayLike,
    outcome: ArrayLike,
    *,
    bins: int = 10,
    confidence: float = CONFIDENCE,
    rng: RandomSource = None,
) -> Calibration | Unavailable:
    """Score stated probabilities of passing against what happened, one entry per run.

    The Brier score's interval is Wilson's, with as many runs as give its variance. The ECE (over
    bins of equal width, without empty ones) is biased upward, since noise never cancels inside an
    absolute value. Its interval allows for that: downward by the quantile of the summed absolute
    noise, upward by that of its signed sum.

    >>> answer = calibration([0.9, 0.9, 0.9, 0.9, 0.2, 0.2], [1, 1, 1, 0, 0, 0])
    >>> round(answer.brier.value, 4), round(answer.ece.value, 4)
    (0.1533, 0.1667)
    """
    level = confidence_level(confidence)
    pieces = whole_number("bins", bins)
    stated, happened = _checked(probability, outcome)
    if stated.size < 2:
        return Unavailable(f"calibration needs at least 2 forecasts, there is {stated.size}")
    generator, seed = random_generator(rng)
    table = _bin_table(stated, happened, pieces, confidence=level)
    share = np.array([row.count for row in table]) / stated.size
    error = float(share @ np.abs([row.gap for row in table]))
    return Calibration(
        brier=_brier(stated, happened, pieces, confidence=level),
        ece=Estimate(
            value=error,
            interval=_ece_interval(error, table, generator, confidence=level),
            method=f"ECE over {len(table)} bins of equal width, noise bounds",
            confidence=level,
            runs=stated.size,
            seed=seed,
        ),
        ece_if_calibrated=_chance_error(stated, pieces),
        base_rate=float(happened.mean()),
        bins=table,
    )


def _checked(probability: ArrayLike, outcome: ArrayLike) -> tuple[Floats, Floats]:
    stated = score_array("probability", probability).ravel()
    happened = score_array("outcome", outcome).ravel()
    if stated.size != happened.size:
        sizes = (stated.size, happened.size)
        raise ArgumentError("probability and outcome", "must have one entry per trial", sizes)
    neither = ~np.isin(happened, (0.0, 1.0))
    if neither.any():
        raise ArgumentError("outcome", "must be 0 or 1", happened[neither][0].item())
    return stated, happened


def _bin_index(stated: Floats, bins: int) -> Counts:
    return np.minimum((stated * bins).astype(np.int64), bins - 1)


def _bin_table(
    stated: Floats, happened: Floats, bins: int, *, confidence: float
) -> tuple[CalibrationBin, ...]:
    index = _bin_index(stated, bins)
    counts = np.bincount(index, minlength=bins)
    passes = np.bincount(index, weights=happened, minlength=bins)
    sums = np.bincount(index, weights=stated, minlength=bins)
    low, high = proportion_bounds(passes, counts, confidence=confidence)
    return tuple(
        CalibrationBin(
            low=int(j) / bins,
            high=(int(j) + 1) / bins,
            count=int(counts[j]),
            stated=float(sums[j] / counts[j]),
            happened=float(passes[j] / counts[j]),
            interval=Interval(float(low[j]), float(high[j])),
        )
        for j in np.flatnonzero(counts)
    )


def _brier(stated: Floats, happened: Floats, bins: int, *, confidence: float) -> Estimate:
    losses = (stated - happened) ** 2
    value = float(losses.mean())
    level, spread = _expected_losses(stated, happened, bins)
    # If no failure was seen yet the losses vary too little: the smoothed rates say by how much.
    most, spread = max(value * (1 - value), level * (1 - level)), max(losses.var(ddof=1), spread)
    runs = np.asarray(losses.size * (most / spread if spread > 0 else 1.0))
    quantile = float(special.stdtrit(losses.size - 1, (1 + confidence) / 2))
    low, high = wilson_bounds(np.asarray(value), runs, quantile)
    return Estimate(
        value=value,
        interval=Interval(min(float(low), value), max(float(high), value)),
        method="mean squared error of the forecasts, Wilson with effective runs, t",
        confidence=confidence,
        runs=losses.size,
    )


def _expected_losses(stated: Floats, happened: Floats, bins: int) -> tuple[float, float]:
    """The mean of a loss, and its variance given the forecast, at each bin's smoothed rate."""
    index = _bin_index(stated, bins)
    counts = np.bincount(index, minlength=bins)
    rate = ((np.bincount(index, weights=happened, minlength=bins) + 0.5) / (counts + 1))[index]
    # The loss is (stated - 1)^2 with chance `rate` and stated^2 without: 1 - 2 stated apart.
    luck = rate * (1 - rate)
    level = (stated - rate) ** 2 + luck
    return float(level.mean()), float(((1 - 2 * stated) ** 2 * luck).mean())


def _ece_interval(
    error: float, table: tuple[CalibrationBin, ...], rng: np.random.Generator, *, confidence: float
) -> Interval:
    """Bounds from |g + e| <= |g| + |e| below and |g + e| >= |g| + sign(g) e above."""
    count = np.array([row.count for row in table], dtype=np.float64)
    share = count / count.sum()
    # Half a pass and half a failure keep the noise of an all-pass bin above zero.
    rate = (np.array([row.happened for row in table]) * count + 0.5) / (count + 1)
    noise = share * np.sqrt(rate * (1 - rate) / count)
    tail = (1 - confidence) / 2
    draws = np.abs(rng.standard_normal((_DRAWS, len(table)))) @ noise
    below = float(np.quantile(draws, 1 - tail))
    above = float(special.ndtri(1 - tail) * np.sqrt((noise**2).sum()))
    return Interval(max(0.0, error - below), min(1.0, error + above))


def _chance_error(stated: Floats, bins: int) -> float:
    """The mean ECE when every stated probability is true: E|N(0, s)| = s sqrt(2 / pi) per bin."""
    index = _bin_index(stated, bins)
    variance = np.bincount(index, weights=stated * (1 - stated), minlength=bins)
    return float(np.sqrt(variance * 2 / np.pi).sum() / stated.size)


# Tasks as units: trials of one task share its difficulty, and are no independent evidence.

FEWEST_ON_A_SIDE = 5
"""Tasks with a pass, and tasks with a failure, from which on discrimination has an interval."""


def auroc(probability: ArrayLike, outcome: ArrayLike) -> float | None:
    """The share of pairs of a pass and a failure in which the pass was stated with more confidence.

    Ties count half; None without both.

    >>> auroc([0.9, 0.4, 0.4, 0.1], [1, 1, 0, 0])
    0.875
    """
    stated, happened = _checked(probability, outcome)
    above, below = stated[happened == 1], stated[happened == 0]
    return float(_share_below(above, below).mean()) if above.size and below.size else None


def discrimination(
    probability: ArrayLike, outcome: ArrayLike, task: ArrayLike, *, confidence: float = CONFIDENCE
) -> Estimate | Unavailable:
    """The chance that a pass was stated with more confidence than a failure (AUROC, ties half).

    The variance is that of structural components summed by task (Obuchowski 1997), the interval on
    the logit scale with t on the smaller number of tasks that passed or failed, less one.

    >>> stated, ended = [0.9, 0.8, 0.7, 0.4, 0.6, 0.3] * 3, [1, 1, 1, 0, 0, 0] * 3
    >>> estimate = discrimination(stated, ended, list(range(6)) * 3)
    >>> estimate.reason
    'discrimination needs 5 tasks that passed and 5 that failed, there are 3 and 3'
    """
    level = confidence_level(confidence)
    stated, happened = _checked(probability, outcome)
    _, unit = np.unique(np.asarray(task), return_inverse=True)
    passed = happened == 1
    sides = np.unique(unit[passed]).size, np.unique(unit[~passed]).size
    if min(sides) < FEWEST_ON_A_SIDE:
        needed = f"{FEWEST_ON_A_SIDE} tasks that passed and {FEWEST_ON_A_SIDE} that failed"
        return Unavailable(f"discrimination needs {needed}, there are {sides[0]} and {sides[1]}")
    above, below = stated[passed], stated[~passed]
    ahead = _share_below(above, below)
    behind = 1 - _share_below(below, above)
    value = float(ahead.mean())
    units = int(unit.max()) + 1
    parts = [
        np.bincount(unit[rows], share, minlength=units)
        - value * np.bincount(unit[rows], minlength=units)
        for rows, share in ((passed, ahead), (~passed, behind))
    ]
    sizes = above.size, below.size
    variance = sum(
        side / (side - 1) * float(part @ part) / size**2
        for part, side, size in zip(parts, sides, sizes, strict=True)
    )
    variance += 2 * units / (units - 1) * float(parts[0] @ parts[1]) / (sizes[0] * sizes[1])
    interval = None
    if 0 < value < 1 and variance > 0:
        width = float(special.stdtrit(min(sides) - 1, (1 + level) / 2)) * np.sqrt(variance)
        logit, half = np.log(value / (1 - value)), width / (value * (1 - value))
        interval = Interval(*(float(1 / (1 + np.exp(-(logit + s * half)))) for s in (-1, 1)))
    return Estimate(
        value=value,
        interval=interval,
        method="AUROC, components by task, logit-t",
        confidence=level,
        scope=TASKS_LIKE_THESE,
        tasks=units,
        runs=stated.size,
        notes=() if interval else ("every pass was stated above every failure, or none",),
    )


def _share_below(values: Floats, others: Floats) -> Floats:
    """For each value the share of the others that are smaller, ties half."""
    ordered = np.sort(others)
    first, last = (np.searchsorted(ordered, values, side=side) for side in ("left", "right"))
    share: Floats = (first + last) / (2 * ordered.size)
    return share


def brier_by_task(
    probability: ArrayLike, outcome: ArrayLike, task: ArrayLike, *, confidence: float = CONFIDENCE
) -> Estimate | Unavailable:
    """The Brier score with tasks as units: a Dirichlet bound on their losses, for similar tasks.

    >>> round(brier_by_task([0.9, 0.3, 0.6], [1, 0, 1], [0, 0, 1]).value, 4)
    0.0867
    """
    level = confidence_level(confidence)
    stated, happened = _checked(probability, outcome)
    _, unit = np.unique(np.asarray(task), return_inverse=True)
    sizes = np.bincount(unit).astype(np.float64)
    if sizes.size < 2:
        return Unavailable("the Brier score of similar tasks needs two tasks")
    losses = np.bincount(unit, (stated - happened) ** 2)
    method = "Dirichlet over tasks"
    return ratio_estimate(losses, sizes, confidence=level, method=method, runs=stated.size)
