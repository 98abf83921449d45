"""The figure of an answer as a file: SVG, and PNG or PDF made from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from passhat.errors import ArgumentError, InputError, MissingExtra
from passhat.messages import listed
from passhat.reporters.answer_kind import AnswerKind, DisplayOptions

if TYPE_CHECKING:
    from passhat.drawing.figure import Figure

PNG_SCALE = 3.0
"""Pixels for each point of the drawing: sharp on a slide and at 300 dots an inch in print."""


def render_svg(kind: AnswerKind, answer: Any, options: DisplayOptions) -> str:
    """The figure, complete in itself."""
    return _figure(kind, answer, options).svg(standalone=True) + "\n"


def render_png(kind: AnswerKind, answer: Any, options: DisplayOptions) -> bytes:
    """The figure in pixels."""
    found: bytes = _cairosvg().svg2png(
        bytestring=render_svg(kind, answer, options).encode(), scale=PNG_SCALE
    )
    return found


def render_pdf(kind: AnswerKind, answer: Any, options: DisplayOptions) -> bytes:
    """The figure as a page of its own size, its text selectable."""
    found: bytes = _cairosvg().svg2pdf(bytestring=render_svg(kind, answer, options).encode())
    return found


def _figure(kind: AnswerKind, answer: Any, options: DisplayOptions) -> Figure:
    """The figure that was asked for, or the first."""
    assert kind.figures is not None, "the table of formats says so"
    found = kind.figures(answer)
    if not found:
        raise InputError(f"there is nothing to draw: these results give a {kind.name} no figure")
    if options.figure is None:
        return next(iter(found.values()))
    if options.figure not in found:
        raise ArgumentError("figure", f"must be one of {listed(list(found))}", options.figure)
    return found[options.figure]


def _cairosvg() -> Any:
    try:
        import cairosvg  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except (ImportError, OSError) as error:  # OSError: the Cairo library itself is missing
        raise MissingExtra("a PNG or PDF", "figures") from error
    return cairosvg
