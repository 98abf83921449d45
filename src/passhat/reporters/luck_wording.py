"""The sentences on luck: how much of the variation between runs another run would redraw."""

from __future__ import annotations

from passhat.analysis.reports.parts import VarianceSplit
from passhat.reporters.numbers import interval_of, percent, percent_range
from passhat.stats.estimate import Estimate, Interval, Unavailable

_MUCH_LUCK, _LITTLE_LUCK = 0.5, 0.2
"""Shares of luck from which on a sentence says what it means."""

_ALL_ALIKE = "every task ended all its runs the same way"


def luck(variance: VarianceSplit | Unavailable) -> str:
    """What the variance split means, with how far that is known."""
    if isinstance(variance, Unavailable):
        return f"{variance.reason[:1].upper()}{variance.reason[1:]}."
    bounds = interval_of(variance.luck)
    if bounds is None:
        return f"No luck was seen: {_ALL_ALIKE}. How much there is stays open (0 to 100 %)."
    if bounds.low < _LITTLE_LUCK and bounds.high >= _MUCH_LUCK:
        between = f"between {percent(bounds.low)} and {percent(bounds.high)}"
        return f"Too few tasks or runs to tell luck from skill: {between} of the variation is luck."
    share = variance.luck_share
    meaning = f"{_luck_meaning(bounds)} ({percent_range(bounds)})"
    return f"{percent(share)} of the variation between runs is luck: {meaning}."


def luck_and_icc(variance: VarianceSplit | Unavailable) -> str:
    """The same, with the correlation that statisticians look for, where it has an interval."""
    icc = variance.icc if isinstance(variance, VarianceSplit) else None
    if not isinstance(icc, Estimate) or icc.interval is None:
        return luck(variance)
    bounds = icc.interval
    return f"{luck(variance)} ICC {icc.value:.2f} [{bounds.low:.2f}, {bounds.high:.2f}]."


def _luck_meaning(bounds: Interval) -> str:
    """What the share means, where its whole interval lies on one side of the lines."""
    if bounds.low >= _MUCH_LUCK:
        return "which runs pass is mostly chance, not the task"
    if bounds.high < _LITTLE_LUCK:
        return "a task mostly ends the same way every time"
    return "a single run can mislead"
