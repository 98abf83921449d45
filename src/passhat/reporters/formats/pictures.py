"""The figure of an answer as a file: SVG, and PNG or PDF made from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from passhat.errors import ArgumentError, InputError
from passhat.messages import listed
from passhat.reporters.answer_kind import AnswerKind, DisplayOptions

if TYPE_CHECKING:
    from passhat.drawing.figure import Figure


def render_svg(kind: AnswerKind, answer: Any, options: DisplayOptions) -> str:
    """The figure, complete in itself."""
    return _figure(kind, answer, options).to_bytes("svg").decode()


def render_png(kind: AnswerKind, answer: Any, options: DisplayOptions) -> bytes:
    """The figure in pixels."""
    return _figure(kind, answer, options).to_bytes("png")


def render_pdf(kind: AnswerKind, answer: Any, options: DisplayOptions) -> bytes:
    """The figure as a page of its own size."""
    return _figure(kind, answer, options).to_bytes("pdf")


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
