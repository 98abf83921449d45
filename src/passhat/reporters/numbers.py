"""Numbers as people read them: never 100 % for less than all, never 0 % for more than none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from passhat.stats.estimate import Estimate, Interval, Unavailable

if TYPE_CHECKING:
    from passhat.analysis.comparing.comparison import Difference
    from passhat.analysis.reports.parts import Metric
    from passhat.stats.paired import PairedDifference

_UNGROUPED_FROM = 1e15  # larger numbers in groups of three digits are hard to read
_KEPT_DECIMALS = 9  # of a percentage; further ones depend on the order of a sum


def percent(share: float | None, *, digits: int = 0) -> str:
    """A share as a percentage that does not round to an end it has not reached.

    >>> percent(0.62), percent(0.9991), percent(1.0), percent(0.0004), percent(0.0), percent(None)
    ('62 %', '>99 %', '100 %', '<1 %', '0 %', '-')
    """
    return "-" if share is None else f"{points(share, digits=digits)} %"


def points(share: float | None, *, digits: int = 0) -> str:
    """`percent` without its sign, for columns that carry it in their heading.

    >>> points(0.99996, digits=1), points(-0.034, digits=1), points(None)
    ('>99.9', '-3.4', '-')
    >>> points(0.5874999999999998, digits=1) == points(0.5875, digits=1)
    True
    """
    if share is None:
        return "-"
    # A mean that is added up in two orders differs in its last bits, which are not shown.
    text = f"{round(100 * share, _KEPT_DECIMALS):.{digits}f}"
    rounded, step = float(text), 10.0**-digits
    if abs(rounded) == 100 and abs(share) < 1:
        return f">{100 - step:.{digits}f}" if share > 0 else f"<-{100 - step:.{digits}f}"
    if rounded == 0:
        return "0" if share == 0 else f"{'<' if share > 0 else '>-'}{step:.{digits}f}"
    return "100" if rounded == 100 else text


def percent_range(interval: Interval | None, *, digits: int = 0) -> str:
    """An interval in words.

    >>> percent_range(Interval(0.153, 0.268)), percent_range(Interval(0.749, 0.751))
    ('15 to 27 %', '75 %')
    """
    if interval is None:
        return "no interval"
    low, high = points(interval.low, digits=digits), points(interval.high, digits=digits)
    return f"{low} %" if low == high else f"{low} to {high} %"


def span(interval: Interval | None, *, digits: int = 1) -> str:
    """An interval in a column of percentages.

    >>> span(Interval(0.153, 1.0))
    '[15.3, 100]'
    """
    if interval is None:
        return ""
    return f"[{points(interval.low, digits=digits)}, {points(interval.high, digits=digits)}]"


def signed_span(interval: Interval | None, *, digits: int = 1) -> str:
    """An interval of a difference in a column of points.

    >>> signed_span(Interval(-0.004, 0.123))
    '[-0.4, +12.3]'
    """
    if interval is None:
        return ""
    ends = (signed_points(end, digits=digits) for end in (interval.low, interval.high))
    return f"[{', '.join(ends)}]"


def signed_points(share: float | None, *, digits: int = 0) -> str:
    """A difference of shares in points.

    >>> signed_points(-0.126), signed_points(0.0432, digits=1)
    ('-13', '+4.3')
    """
    return "-" if share is None else f"{round(100 * share, _KEPT_DECIMALS):+.{digits}f}"


def amount(value: float | None) -> str:
    """A quantity to three figures, thousands grouped.

    >>> amount(18400.2), amount(0.03456), amount(7.0), amount(0), amount(None)
    ('18,400', '0.0346', '7', '0', '-')
    >>> amount(3.21e20)
    '3.21e+20'
    """
    if not value:
        return "-" if value is None else "0"
    if abs(value) >= _UNGROUPED_FROM:
        return f"{value:.3g}"
    if abs(value) >= 100:
        return f"{float(f'{value:.3g}'):,.0f}"
    text = f"{value:.3g}"
    return f"{float(text):.10f}".rstrip("0").rstrip(".") if "e" in text else text


def value_of(number: Estimate | Unavailable) -> float | None:
    """The number, if there is one."""
    return number.value if isinstance(number, Estimate) else None


def interval_of(number: Estimate | PairedDifference | Unavailable) -> Interval | None:
    """Its interval, if there is one."""
    return None if isinstance(number, Unavailable) else number.interval


def both_intervals(found: Metric | Difference | None) -> tuple[Interval | None, Interval | None]:
    """The interval for this suite, and the one for tasks like these."""
    if found is None:
        return None, None
    return interval_of(found.this_suite), interval_of(found.tasks_like_these)


def decimals(interval: Interval | None) -> str:
    """The interval of a correlation behind its value, or nothing.

    >>> decimals(Interval(-0.123, 0.5))
    ' [-0.12, 0.50]'
    """
    return "" if interval is None else f" [{interval.low:.2f}, {interval.high:.2f}]"


def end_cells(name: str, interval: Interval | None) -> dict[str, float | None]:
    """Both ends of an interval as two cells of a row of numbers.

    >>> end_cells("rate", Interval(0.25, 0.5)), end_cells("", None)
    ({'rate_low': 0.25, 'rate_high': 0.5}, {'low': None, 'high': None})
    """
    start = f"{name}_" if name else ""
    return {f"{start}{end}": getattr(interval, end, None) for end in ("low", "high")}


def scope_cells(found: Metric | Difference) -> dict[str, float | None]:
    """The ends of the intervals of both scopes as four cells of a row of numbers."""
    here, there = both_intervals(found)
    return end_cells("this_suite", here) | end_cells("tasks_like_these", there)
