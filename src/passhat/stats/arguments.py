"""The rules for arguments of the statistics, each checked in one place."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from passhat.arguments import whole_number
from passhat.errors import ArgumentError

DEFAULT_SEED = 0
# How far sums of scores may be off by rounding, for each run.
_SUMS_ROUNDING = 1e-9

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]
# A string: naming np.random here would load it, also for reports that draw nothing.
RandomSource: TypeAlias = "np.random.Generator | int | None"


def count_array(name: str, values: ArrayLike) -> Counts:
    """Whole numbers >= 0 of any shape, as int64."""
    array = np.asarray(values)
    if array.dtype.kind in "iu" and (array.size == 0 or array.min() >= 0):
        return array.astype(np.int64)
    if array.dtype.kind not in "iuf":
        raise ArgumentError(name, "must be whole numbers >= 0", values)
    bad = ~(np.isfinite(array) & (array >= 0) & (array == np.floor(array)))
    if bad.any():
        raise ArgumentError(name, "must be whole numbers >= 0", array[bad].flat[0].item())
    return array.astype(np.int64)


def refuse_trials(n: Any, instead: str) -> None:
    """Refuse a table of trials where counts are asked for, with the call that takes one."""
    if hasattr(n, "tally"):
        rule = f"must be how many trials each task has; of Trials, passhat.{instead}"
        raise ArgumentError("n", rule, n)


def trial_counts(n: ArrayLike, c: ArrayLike) -> tuple[Counts, Counts]:
    """Runs and passes per task, broadcast together, with 0 <= c <= n."""
    runs, passes = np.broadcast_arrays(count_array("n", n), count_array("c", c))
    over = passes > runs
    if over.any():
        pair = (int(runs[over].flat[0]), int(passes[over].flat[0]))
        raise ArgumentError("c", "must not exceed n (as (n, c))", pair)
    return runs, passes


def float_array(name: str, values: Any, rule: str = "must be numbers") -> Floats:
    """Numbers of any shape, nan and infinity among them, as float64."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(name, rule, values) from None


def score_array(name: str, values: ArrayLike) -> Floats:
    """Scores in [0, 1], as float64."""
    array = float_array(name, values, "must be numbers in [0, 1]")
    bad = ~((array >= 0) & (array <= 1))
    if bad.any():
        raise ArgumentError(name, "must be numbers in [0, 1]", array[bad].flat[0].item())
    return array


def score_sums(
    n: ArrayLike, total: ArrayLike, squares: ArrayLike, *, runs_name: str = "n"
) -> tuple[Counts, Floats, Floats]:
    """The runs of each task, the sum of their scores in [0, 1] and the sum of their squares."""
    runs = np.atleast_1d(count_array(runs_name, n))
    sums, powers = (
        _per_task(name, values, runs.shape, runs_name)
        for name, values in (("total", total), ("squares", squares))
    )
    slack = _SUMS_ROUNDING * np.maximum(runs, 1)
    # 0 <= x <= 1 gives 0 <= sum of squares <= sum <= runs, and Cauchy-Schwarz the rest.
    least = sums**2 / np.maximum(runs, 1)
    rules = (
        ("total", f"0 and {runs_name}", sums, 0.0, runs),
        ("squares", f"total^2 / {runs_name} and total", powers, least, sums),
    )
    for name, between, values, low, high in rules:
        bad = ~((values >= low - slack) & (values <= high + slack))
        if bad.any():
            rule = f"must lie between {between} (scores are in [0, 1])"
            raise ArgumentError(name, rule, float(values[bad][0]))
    return runs, sums, powers


def random_generator(rng: RandomSource) -> tuple[np.random.Generator, int | None]:
    """A generator, and the seed to record with the result.

    None means the fixed default seed: the same call gives the same bits.
    """
    if isinstance(rng, np.random.Generator):
        return rng, None
    seed = DEFAULT_SEED if rng is None else whole_number("rng", rng, least=0)
    return np.random.default_rng(seed), seed


def one_of(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """`value`, if it is one of the `allowed` words."""
    if value not in allowed:
        raise ArgumentError(name, f"must be one of {', '.join(map(repr, allowed))}", value)
    return str(value)


def _per_task(name: str, values: ArrayLike, shape: tuple[int, ...], runs_name: str) -> Floats:
    array = np.atleast_1d(float_array(name, values, "must be numbers, one per task"))
    if array.shape != shape or array.ndim != 1:
        rule = f"must have one number per task, as {runs_name} has {shape}"
        raise ArgumentError(name, rule, array.shape)
    if not np.isfinite(array).all():
        raise ArgumentError(name, "must be finite", float(array[~np.isfinite(array)][0]))
    return array
