"""Numbers as people read them: never 100 % for less than all, never 0 % for more than none."""

from __future__ import annotations

from passhat.stats.estimate import Estimate, Interval, Unavailable

_UNCOUNTED = 1e15  # from here on groups of three digits are not readable
_MEANT = 9  # digits of a percentage that are more than the order of a sum


def percent(share: float, *, digits: int = 0) -> str:
    """A share as a percentage that does not round to an end it has not reached.

    >>> percent(0.62), percent(0.9991), percent(1.0), percent(0.0004), percent(0.0)
    ('62 %', '>99 %', '100 %', '<1 %', '0 %')
    """
    return f"{points(share, digits=digits)} %"


def points(share: float, *, digits: int = 0) -> str:
    """`percent` without its sign, for columns that carry it in their heading.

    >>> points(0.99996, digits=1), points(-0.034, digits=1)
    ('>99.9', '-3.4')
    >>> points(0.5874999999999998, digits=1) == points(0.5875, digits=1)
    True
    """
    # One mean added up in two orders is one number: its last bits are not shown.
    text = f"{round(100 * share, _MEANT):.{digits}f}"
    rounded, step = float(text), 10.0**-digits
    if abs(rounded) == 100 and abs(share) < 1:
        return f">{100 - step:.{digits}f}" if share > 0 else f"<-{100 - step:.{digits}f}"
    if rounded == 0:
        return (
            "0" if share == 0 else (f"<{step:.{digits}f}" if share > 0 else f">-{step:.{digits}f}")
        )
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
    low, high = (round(100 * end, _MEANT) for end in (interval.low, interval.high))
    return f"[{low:+.{digits}f}, {high:+.{digits}f}]"


def amount(value: float) -> str:
    """A quantity to three figures, thousands grouped.

    >>> amount(18400.2), amount(0.03456), amount(7.0), amount(0)
    ('18,400', '0.0346', '7', '0')
    >>> amount(3.21e20)
    '3.21e+20'
    """
    if value == 0:
        return "0"
    if abs(value) >= _UNCOUNTED:
        return f"{value:.3g}"
    if abs(value) >= 100:
        return f"{float(f'{value:.3g}'):,.0f}"
    text = f"{value:.3g}"
    return f"{float(text):.10f}".rstrip("0").rstrip(".") if "e" in text else text


def value_of(number: Estimate | Unavailable) -> float | None:
    """The number, where there is one."""
    return number.value if isinstance(number, Estimate) else None


def interval_of(number: Estimate | Unavailable) -> Interval | None:
    """Its interval, where there is one."""
    return number.interval if isinstance(number, Estimate) else None


def signed_points(share: float) -> str:
    """A difference of shares in points.

    >>> signed_points(-0.126)
    '-13'
    """
    return f"{100 * share:+.0f}"
