"""Answers as text, Markdown, pages, data and pictures: start at `render(answer, format)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from passhat.lazy import lazy_exports

if TYPE_CHECKING:
    from passhat.reporters.rendering import endings_for as endings_for
    from passhat.reporters.rendering import formats_for as formats_for
    from passhat.reporters.rendering import kind_of as kind_of
    from passhat.reporters.rendering import render as render
    from passhat.reporters.rendering import save as save

__getattr__, __dir__, __all__ = lazy_exports(__name__)
