"""From values to places on an axis, and the ticks a person expects there."""

from __future__ import annotations

import math
from typing import Literal

from passhat.dataclass import dataclass

Kind = Literal["number", "whole", "percent", "log"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Maps [low, high] to [start, stop].

    >>> Scale(low=0, high=1, start=10, stop=110)(0.5)
    60.0
    """

    low: float
    high: float
    start: float
    stop: float
    kind: Kind = "number"

    def __call__(self, value: float) -> float:
        low, high, at = self._place(self.low), self._place(self.high), self._place(value)
        share = (at - low) / (high - low) if high > low else 0.5
        return self.start + min(max(share, 0.0), 1.0) * (self.stop - self.start)

    def ticks(self, most: int = 6) -> list[float]:
        """Round values inside the range, at most about `most` of them."""
        if self.high <= self.low:
            return [self.low]
        if self.kind == "log":
            first, last = math.floor(math.log10(self.low)), math.floor(math.log10(self.high))
            decades = [10.0**d for d in range(first, last + 1) if self.low <= 10.0**d <= self.high]
            if len(decades) > 2:
                return decades
            # Within two decades, powers of ten are too few.
            finer = [m * 10.0**d for d in range(first, last + 1) for m in (1, 2, 5)]
            if len(kept := [at for at in finer if self.low <= at <= self.high]) > 1:
                return kept
        step = _round_step((self.high - self.low) / max(most - 1, 1))
        if self.kind == "whole":
            step = max(1.0, 5.0 if step == 2.5 else step)  # there is no half of a rank
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        ticks = [i * step for i in range(first, last + 1)]
        # Ranks begin at 1, whatever the step.
        return [1.0, *ticks] if self.kind == "whole" and self.low <= 1 < ticks[0] else ticks

    def show(self, value: float) -> str:
        """A tick's text."""
        if self.kind == "percent":
            return f"{value * 100:.3g} %"
        if abs(value) >= 1e6:
            return f"{value / 1e6:.6g} M"
        return f"{0.0 if abs(value) < 1e-12 else value:,.6g}"

    def show_end(self, value: float) -> str:
        """The text of an end of the axis, which need not be round."""
        if self.kind == "percent" or abs(value) < 100:
            return self.show(float(f"{value:.3g}"))
        return f"{value:,.0f}"

    def _place(self, value: float) -> float:
        return math.log10(max(value, 1e-300)) if self.kind == "log" else value


def spread(values: list[float], *, pad: float = 0.05) -> tuple[float, float]:
    """The range of values with some air around it; never empty."""
    finite = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    low, high = min(finite), max(finite)
    air = (high - low) * pad or abs(high) * pad or 0.5
    return low - air, high + air


def _round_step(step: float) -> float:
    power = 10.0 ** math.floor(math.log10(step))
    return next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= step * 0.999)
