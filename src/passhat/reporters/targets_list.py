"""Every number that a gate may demand, a line each."""

from __future__ import annotations

from passhat.analysis.reports.report import Report
from passhat.analysis.reports.target_families import Value
from passhat.analysis.reports.targets import targets
from passhat.reporters.numbers import amount
from passhat.reporters.safe_text import safe_text
from passhat.reporters.terminal_style import Ink
from passhat.stats.estimate import Estimate, Unavailable


def render_targets(report: Report, ink: Ink | None = None) -> str:
    """Name, value and interval in the scope "this suite"."""
    ink = ink or Ink()
    found = {safe_text(path): number for path, number in targets(report).items()}
    width = min(44, max(map(len, found)))
    return ink.finish([f"{path:<{width}}  {_value(number)}" for path, number in found.items()])


def _value(number: Value) -> str:
    if isinstance(number, Unavailable):
        return f"- ({safe_text(number.reason)})"
    if isinstance(number, Estimate):
        bounds = number.interval
        between = f"  [{amount(bounds.low)}, {amount(bounds.high)}]" if bounds else ""
        return f"{amount(number.value)}{between}"
    return amount(number)
