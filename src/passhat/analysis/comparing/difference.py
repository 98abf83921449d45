"""One metric of two systems: the difference in both scopes, and what it says."""

from __future__ import annotations

from dataclasses import dataclass

from passhat.messages import repr_fields
from passhat.stats.estimate import THIS_SUITE, Estimate, Interval, Scope, Unavailable
from passhat.stats.paired import Answer, PairedDifference


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One metric of the first system minus the second, in both scopes, with a verdict in each.

    `first` and `second` are the two values over the shared tasks.
    """

    name: str
    first: float | None
    second: float | None
    this_suite: PairedDifference | Estimate | Unavailable
    tasks_like_these: PairedDifference | Unavailable

    __repr__ = repr_fields

    @property
    def value(self) -> float | None:
        for number in (self.this_suite, self.tasks_like_these):
            if not isinstance(number, Unavailable):
                return number.value
        return None

    def answer(self, scope: Scope, margin: float | None = None) -> Answer | None:
        """Whether the first is better, worse, equivalent, or undecided; None if unavailable."""
        number = self.this_suite if scope == THIS_SUITE else self.tasks_like_these
        if isinstance(number, Unavailable):
            return None
        if isinstance(number, PairedDifference):
            return number.answer
        return _read_off(number.interval, margin)


def _read_off(interval: Interval | None, margin: float | None) -> Answer:
    if interval is None:
        return "undecided"
    if margin is not None and -margin < interval.low and interval.high < margin:
        return "equivalent"
    if 0 in interval:
        return "undecided"
    return "better" if interval.low > 0 else "worse"
