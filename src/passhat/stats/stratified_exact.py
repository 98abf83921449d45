"""Whether a property goes together with failing, exactly, each task compared with itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from passhat.stats.arguments import Floats
from passhat.stats.hypergeometric import log_probability

Stratum = tuple[int, int, int]
"""Runs, runs with the property, and failing runs."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StratifiedLaw:
    """How many failing runs have a property, if chance alone decides which runs fail.

    `p[i]` is the two-sided p of `fewest + i` failing runs with it: the smaller tail, doubled.
    """

    fewest: int
    chance: Floats
    p: Floats

    @property
    def smallest_p(self) -> float:
        """The smallest p that any division into passing and failing could give."""
        return float(self.p.min())

    def p_of(self, failing_with: int) -> float:
        """Two-sided p of this many failing runs with the property."""
        return float(self.p[failing_with - self.fewest])


def stratified_law(strata: Iterable[Stratum]) -> StratifiedLaw:
    """The law of the number of failing runs with a property, summed over strata.

    Given how many runs of a stratum fail and how many have the property, the number that do both
    is hypergeometric (Fisher 1935); the law of a sum of independent counts is the convolution of
    their laws. One stratum gives Fisher's exact test with a doubled tail.

    >>> round(stratified_law([(8, 4, 4)]).p_of(4), 6)
    0.028571
    """
    kinds = sorted(strata)
    fewest = sum(max(0, having + failing - runs) for runs, having, failing in kinds)
    # Where all or none have the property, or all or none fail, the count cannot vary.
    varying = tuple(s for s in kinds if 0 < s[1] < s[0] and 0 < s[2] < s[0])
    chance, p = _chances(varying)
    return StratifiedLaw(fewest=fewest, chance=chance, p=p)


# Features of one log share few divisions of their runs: most laws are asked for many times.
@lru_cache(maxsize=4096)
def _chances(strata: tuple[Stratum, ...]) -> tuple[Floats, Floats]:
    chance = np.ones(1)
    for stratum in strata:
        chance = np.convolve(chance, _hypergeometric(*stratum))
    up, down = np.cumsum(chance), np.cumsum(chance[::-1])[::-1]
    return chance, np.minimum(1.0, 2 * np.minimum(up, down))


@lru_cache(maxsize=4096)
def _hypergeometric(runs: int, having: int, failing: int) -> Floats:
    x = np.arange(max(0, having + failing - runs), min(having, failing) + 1)
    return np.exp(log_probability(x, having, runs - having, failing))
