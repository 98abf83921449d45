"""Many tests at once: p-values adjusted so that the family's error rate is the stated one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from passhat.errors import ArgumentError
from passhat.stats.arguments import score_array

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from passhat.stats.arguments import Floats


def holm(p: ArrayLike) -> Floats:
    """P-values adjusted so that rejecting below alpha errs anywhere with probability alpha.

    Holm (1979). Valid under any dependence: the correction for gates.

    >>> holm([0.01, 0.04, 0.03]).round(6).tolist()
    [0.03, 0.06, 0.06]
    """
    values = _p_values(p)
    order = np.argsort(values, kind="stable")
    factors = np.arange(values.size, 0, -1)
    stepped = np.maximum.accumulate(values[order] * factors)
    return _restored(stepped, order)


def benjamini_hochberg(p: ArrayLike) -> Floats:
    """P-values adjusted so that, of what is rejected below alpha, a share alpha is false.

    Benjamini and Hochberg (1995): the correction for screening, where a false lead costs little.

    >>> benjamini_hochberg([0.01, 0.04, 0.03]).round(6).tolist()
    [0.03, 0.04, 0.04]
    """
    values = _p_values(p)
    order = np.argsort(values, kind="stable")[::-1]
    factors = values.size / np.arange(values.size, 0, -1)
    stepped = np.minimum.accumulate(values[order] * factors)
    return _restored(stepped, order)


def _p_values(p: ArrayLike) -> Floats:
    values = score_array("p", p)
    if values.ndim != 1:
        raise ArgumentError("p", "must be a flat list of p-values", f"{values.ndim} dimensions")
    return values


def _restored(stepped: Floats, order: np.ndarray) -> Floats:
    adjusted = np.empty_like(stepped)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted
