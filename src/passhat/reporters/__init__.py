"""Answers as text, Markdown, pages, data and pictures: start at `render(answer, format)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from passhat.lazy import lazy_exports

if TYPE_CHECKING:
    from passhat.reporters.grid import endings_for as endings_for
    from passhat.reporters.grid import formats_for as formats_for
    from passhat.reporters.grid import kind_of as kind_of
    from passhat.reporters.grid import render as render

__getattr__, __dir__, __all__ = lazy_exports(__name__)
