"""Quantiles of a mean that is multiplied by the law of runs without a failure."""

from __future__ import annotations

import numpy as np

from passhat.stats.arguments import Floats

_TINY = 1e-300


class ShrunkLaw:
    """The law of X U^(1/groups), with X at `places`, which rise along the last axis, U uniform.

    U^(1/groups) is how low a rate may lie after so many groups of runs without a failure. The
    chance of at most x is the mean of min(1, x / X)^groups. Between two places that is a constant
    plus a multiple of x^groups, so every quantile has a closed form.
    """

    def __init__(self, places: Floats, chances: Floats, groups: Floats) -> None:
        at_zero = places <= 0
        self._chance_of_zero = (chances * at_zero).sum(axis=-1)
        self._groups = groups
        self._size = np.where(groups > 0, groups, 1.0)[..., None]
        scaled = self._size * np.log(np.where(at_zero, 1.0, places))
        with np.errstate(divide="ignore"):
            each = np.log(np.where(at_zero, 0.0, chances)) - scaled
        # From each place on: ln of the sum of chance / X^groups; and the chance before it.
        self._from_here = np.logaddexp.accumulate(each[..., ::-1], axis=-1)[..., ::-1]
        self._before = np.cumsum(chances, axis=-1) - chances
        self._reached = self._before + np.exp(np.where(at_zero, -np.inf, scaled + self._from_here))

    def quantile(self, tail: Floats | float) -> Floats:
        """The x that lies above the law with the chance `tail`; 0 where nothing holds it up."""
        tail = np.broadcast_to(tail, self._groups.shape)[..., None]
        last = self._reached.shape[-1] - 1
        place = np.minimum((self._reached < tail).sum(axis=-1), last)[..., None]
        before, from_here = (
            np.take_along_axis(part, place, axis=-1) for part in (self._before, self._from_here)
        )
        with np.errstate(over="ignore"):
            power = (np.log(np.maximum(tail - before, _TINY)) - from_here) / self._size
            found = np.minimum(np.exp(power[..., 0]), 1.0)
        nothing = (self._groups <= 0) | (self._chance_of_zero >= tail[..., 0])
        return np.where(nothing, 0.0, found)
