"""Explanations, and two runs beside each other, as text, Markdown, JSON and a page."""

from __future__ import annotations

from passhat.analysis.explaining.explain import Explanation
from passhat.analysis.explaining.side_by_side import SideBySide
from passhat.reporters.advice import RESULTS
from passhat.reporters.answer_page import blocks_page
from passhat.reporters.answers.explanation import explanation_blocks
from passhat.reporters.answers.explanation_data import explanation_object
from passhat.reporters.answers.side_by_side import side_by_side_blocks, side_by_side_object
from passhat.reporters.blocks import blocks_markdown, blocks_text
from passhat.reporters.ink import Ink
from passhat.reporters.json_report import to_json


def render_explanation(
    explanation: Explanation, ink: Ink | None = None, *, results: str | None = RESULTS
) -> str:
    """The explanation as text for a terminal."""
    return blocks_text(explanation_blocks(explanation, results=results), ink)


def render_explanation_markdown(explanation: Explanation, *, results: str | None = RESULTS) -> str:
    """The explanation as Markdown."""
    return blocks_markdown(explanation_blocks(explanation, results=results))


def render_explanation_json(explanation: Explanation) -> str:
    """Schema "passhat.explanation/1"."""
    return to_json(dict(explanation_object(explanation)))


def render_explanation_html(explanation: Explanation, *, results: str | None = RESULTS) -> str:
    """The explanation as a page."""
    blocks = explanation_blocks(explanation, results=results)
    return blocks_page("explanation", blocks, None, explanation.provenance)


def render_diff(found: SideBySide, ink: Ink | None = None) -> str:
    """Two runs as text for a terminal."""
    return blocks_text(side_by_side_blocks(found), ink)


def render_diff_markdown(found: SideBySide) -> str:
    """Two runs as Markdown."""
    return blocks_markdown(side_by_side_blocks(found))


def render_diff_json(found: SideBySide) -> str:
    """Schema "passhat.diff/1"."""
    return to_json(dict(side_by_side_object(found)))
