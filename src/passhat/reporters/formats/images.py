"""Answers as pictures: a badge for a README, and figures as SVG, PNG or PDF."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Any

from passhat.drawing.figure import LIGHT
from passhat.errors import ArgumentError, InputError
from passhat.messages import listed
from passhat.reporters.answer import Answer, DisplayOptions, verdict_text
from passhat.reporters.formatting import percent, shorten, span
from passhat.reporters.test_cases import TestSuite
from passhat.stats.estimate import Interval

if TYPE_CHECKING:
    from passhat.drawing.figure import Figure

_GOOD, _FAIR, _POOR = LIGHT["a"], LIGHT["e"], LIGHT["b"]
_LETTER = 6.6  # pixels of an average letter of 11 px Verdana or DejaVu Sans
_WIDEST = 40


def render_badge(answer: Answer[Any], options: DisplayOptions) -> str:
    """The badge as a picture with plain colours."""
    label, message, colour = _parts(answer)
    left, right = (round(_LETTER * len(text)) + 12 for text in (label, message))
    verdict = verdict_text(options.verdict)
    title = escape(f"{label}: {message}" + f". {verdict}" * bool(verdict))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img">'
        f"<title>{title}</title>"
        f'<rect width="{left}" height="20" fill="#444c56"/>'
        f'<rect x="{left}" width="{right}" height="20" fill="{colour}"/>'
        '<g fill="#ffffff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
        f'<text x="6" y="14">{escape(label)}</text>'
        f'<text x="{left + 6}" y="14">{escape(message)}</text></g></svg>\n'
    )


def render_badge_json(answer: Answer[Any], options: DisplayOptions) -> str:
    """The badge as an endpoint of shields.io."""
    label, message, colour = _parts(answer)
    badge = {"schemaVersion": 1, "label": label, "message": message, "color": colour.lstrip("#")}
    return json.dumps(badge) + "\n"


def _parts(answer: Answer[Any]) -> tuple[str, str, str]:
    """The reliability of the first system, with what it may be; or the verdict of the gates."""
    suites = answer.test_suites()
    for suite in suites:
        if parts := _reliability(suite):
            return parts
    marks = [case.mark.kind for suite in suites for case in suite.cases if case.mark]
    if "failure" in marks:
        return "passhat", "failing", _POOR
    return ("passhat", "undecided", _FAIR) if marks else ("passhat", "passing", _GOOD)


def _reliability(suite: TestSuite) -> tuple[str, str, str] | None:
    """pass^k at the largest k that the suite states."""
    ks = [int(name[5:]) for name in suite.values if name.startswith("pass^") and name[5:].isdigit()]
    if not ks:
        return None
    name = f"pass^{max(ks)}"
    label, shown = shorten(f"{suite.name} {name}", _WIDEST), percent(_value(suite, name))
    if f"{name}_low" not in suite.values:  # a single run of every task has no interval
        return label, shown, _FAIR
    bounds = Interval(_value(suite, f"{name}_low"), _value(suite, f"{name}_high"))
    colour = _GOOD if bounds.low >= 0.8 else _POOR if bounds.high < 0.5 else _FAIR
    return label, f"{shown} {span(bounds, digits=0)}", colour


def _value(suite: TestSuite, name: str) -> float:
    return float(str(suite.values[name]))


def render_svg(answer: Answer[Any], options: DisplayOptions) -> str:
    """The figure, complete in itself."""
    return _figure(answer, options).to_bytes("svg").decode()


def render_png(answer: Answer[Any], options: DisplayOptions) -> bytes:
    """The figure in pixels."""
    return _figure(answer, options).to_bytes("png")


def render_pdf(answer: Answer[Any], options: DisplayOptions) -> bytes:
    """The figure as a page of its own size."""
    return _figure(answer, options).to_bytes("pdf")


def _figure(answer: Answer[Any], options: DisplayOptions) -> Figure:
    """The figure that was asked for, or the first."""
    figures = answer.figures()
    if not figures:
        raise InputError(f"there is nothing to draw: these results give a {answer.name} no figure")
    if options.figure is None:
        return next(iter(figures.values()))
    if reason := answer.not_drawn().get(options.figure):
        raise InputError(f"the figure {options.figure} is not drawn: {reason}")
    if options.figure not in figures:
        raise ArgumentError("figure", f"must be one of {listed(list(figures))}", options.figure)
    return figures[options.figure]
