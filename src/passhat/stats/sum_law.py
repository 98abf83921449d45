"""The law of a sum on equally spaced points, as a Fourier transform gives it."""

from __future__ import annotations

import numpy as np

from passhat.fast_dataclass import dataclass
from passhat.stats.arguments import Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SumLaw:
    """`chances` of the sum being at `positions`, which rise along the last axis."""

    positions: Floats
    chances: Floats


def turned(chances: Floats, *, start: Floats, period: float, unit: float) -> SumLaw:
    """The law whose points repeat after a period, cut open at `start`; `unit` counts as 1."""
    points = chances.shape[-1]
    step = period / points
    first = np.ceil(start[..., None] / step).astype(np.intp)
    places = first + np.arange(points)
    # The points are a power of two, so their remainder is a mask of bits.
    laid = np.take_along_axis(chances, places & (points - 1), axis=-1)
    total = laid.sum(axis=-1, keepdims=True)
    return SumLaw(positions=places * (step / unit), chances=laid / total)
