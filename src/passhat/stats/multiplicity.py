"""Many tests at once: p-values adjusted so that the family's error rate is the stated one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from passhat.errors import ArgumentError
from passhat.stats.arguments import score_array

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from passhat.stats.arguments import Floats
    from passhat.stats.null_laws import NullLaws


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


def discrete_holm(p: ArrayLike, laws: NullLaws) -> Floats:
    """Like `holm`, where it is known which p-values each test can take.

    A test that cannot reach a p-value costs nothing at it: Westfall and Wolfinger (1997), stepped
    down. Valid under any dependence.

    >>> import numpy as np
    >>> from passhat.stats.null_laws import NullLaws
    >>> laws = NullLaws(kind=np.array([0, 1]), attainable=(np.array([0.02, 1.0]), np.array([1.0])))
    >>> discrete_holm([0.02, 1.0], laws).tolist()
    [0.02, 1.0]
    """
    values = _p_values(p)
    order = np.argsort(values, kind="stable")
    ordered, kinds = values[order], laws.kind[order]
    reached = np.zeros(values.size)
    for kind in np.unique(kinds).tolist():
        left = np.cumsum((kinds == kind)[::-1])[::-1]  # not yet rejected, this one included
        reached += left * laws.chance(kind, ordered)
    return _restored(np.maximum.accumulate(reached), order)


def discrete_benjamini_hochberg(p: ArrayLike, laws: NullLaws) -> Floats:
    """Like `benjamini_hochberg`, where it is known which p-values each test can take.

    Heyse (2011) puts the sum of the tests' laws in the place of their number. Doehler, Durand and
    Roquain (2018) prove the bound for laws divided by 1 - F, which at small p is nearly the same
    and finds less; what the plain sum gives here is simulated (at most 0.04 at 0.05).

    >>> import numpy as np
    >>> from passhat.stats.null_laws import NullLaws
    >>> laws = NullLaws(kind=np.array([0, 1]), attainable=(np.array([0.02, 1.0]), np.array([1.0])))
    >>> discrete_benjamini_hochberg([0.02, 1.0], laws).tolist()
    [0.02, 1.0]
    """
    values = _p_values(p)
    order = np.argsort(values, kind="stable")[::-1]
    ordered, reached = values[order], np.zeros(values.size)
    for kind, size in zip(*np.unique(laws.kind, return_counts=True), strict=True):
        reached += size * laws.chance(kind, ordered)
    shares = reached / np.arange(values.size, 0, -1)
    return np.maximum(_restored(np.minimum.accumulate(shares), order), values)


def _p_values(p: ArrayLike) -> Floats:
    values = score_array("p", p)
    if values.ndim != 1:
        raise ArgumentError("p", "must be a flat list of p-values", f"{values.ndim} dimensions")
    return values


def _restored(stepped: Floats, order: np.ndarray) -> Floats:
    adjusted = np.empty_like(stepped)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted
