"""How much the same agent moves from day to day, learned from a history of the same suite.

A day shifts the whole suite by some amount on the logit scale: a provider's load, a new build of
the same model. Its standard deviation sigma is weighed over a grid: a half-normal prior, times the
likelihood of the days that were seen.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from passhat.stats.arguments import Floats
from passhat.stats.special import ndtr, stdtr

# Day-to-day standard deviations of 0 to 0.6 logit; the prior keeps most weight below 0.3. With one
# day known, a comparison errs in about 5 % of cases for any sigma up to 0.3 (simulated).
_SIGMAS = np.arange(0, 0.6001, 0.05)
_PRIOR_SD = 0.25


@dataclass(frozen=True, slots=True, eq=False)
class DaySpread:
    """What is known of the standard deviation between days: a weight for each of a grid of them."""

    log_weights: Floats
    days: int = 0

    @classmethod
    def unknown(cls) -> DaySpread:
        """Before any history.

        >>> round(DaySpread.unknown().sigma, 2)
        0.18
        """
        return cls(-(_SIGMAS**2) / (2 * _PRIOR_SD**2))

    @property
    def weights(self) -> Floats:
        found = np.exp(self.log_weights - self.log_weights.max())
        return np.asarray(found / found.sum())

    @property
    def sigma(self) -> float:
        """The expected standard deviation, in logits."""
        return float(self.weights @ _SIGMAS)

    def after(self, values: Floats, noise: Floats, slope: float) -> DaySpread:
        """Having seen days with these means, each with its variance from runs.

        `slope` is how much the mean moves per logit. Restricted likelihood: the level itself is
        not known (Patterson and Thompson 1971).
        """
        if values.size < 2 or slope <= 0:
            return self
        variance = noise + (_SIGMAS[:, None] * slope) ** 2
        variance = np.maximum(variance, 1e-12)
        precision = 1 / variance
        level = (precision * values).sum(axis=1) / precision.sum(axis=1)
        squares = (precision * (values - level[:, None]) ** 2).sum(axis=1)
        logs = -0.5 * (np.log(variance).sum(axis=1) + np.log(precision.sum(axis=1)) + squares)
        return replace(self, log_weights=self.log_weights + logs, days=self.days + int(values.size))

    def p_value(
        self,
        difference: float,
        noise: float,
        slope: float,
        days: float,
        *,
        plain_p: float | None = None,
        freedom: float = np.inf,
    ) -> float:
        """The two-sided p of a difference that runs give the variance `noise`.

        `days` is 1 / new + 1 / old, over the days on each side. `plain_p` is the exact p without a
        spread between days, where it is known.
        """
        variance = np.maximum(noise + (_SIGMAS * slope) ** 2 * days, 1e-300)
        ratio = -abs(difference) / np.sqrt(variance)
        tails = 2 * (ndtr(ratio) if np.isinf(freedom) else stdtr(freedom, ratio))
        if plain_p is not None:
            tails[0] = plain_p
        return min(1.0, float(self.weights @ tails))

    def half_width(self, noise: float, slope: float, days: float, confidence: float) -> float:
        """Half the interval of such a difference, by bisection on its p-value."""
        low, high = 0.0, 1.0
        while self.p_value(high, noise, slope, days) > 1 - confidence and high < 1e6:
            high *= 2
        for _ in range(60):
            middle = (low + high) / 2
            if self.p_value(middle, noise, slope, days) > 1 - confidence:
                low = middle
            else:
                high = middle
        return high
