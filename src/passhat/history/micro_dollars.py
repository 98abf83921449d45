"""Money as the store counts it: whole micro-dollars, so that sums are exact."""

from __future__ import annotations

import math

MICRO = 1_000_000


def micro(dollars: float | None) -> int:
    """Dollars in micro-dollars, rounded up: what is reserved must be enough.

    >>> micro(0.0000012), micro(0.25), micro(None)
    (2, 250000, 0)
    """
    # The product may be a hair above a whole number that it stands for.
    return 0 if dollars is None else math.ceil(round(dollars * MICRO, 3))
