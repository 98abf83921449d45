"""Comparisons and rankings as one self-contained page, or as their picture alone."""

from __future__ import annotations

from collections.abc import Sequence

from passhat.analysis.comparing.comparison import Comparison
from passhat.analysis.comparing.plots import plot_differences, plot_ranks
from passhat.analysis.comparing.rank import RankReport
from passhat.analysis.reports.provenance import Provenance
from passhat.drawing import Figure
from passhat.reporters.advice import RESULTS
from passhat.reporters.blocks import Block
from passhat.reporters.comparison_blocks import comparison_blocks
from passhat.reporters.html_page import content_policy, page_script, page_style, templates
from passhat.reporters.rank_blocks import rank_blocks


def render_comparison_html(comparison: Comparison) -> str:
    """Two systems: the verdict, the dumbbells, the numbers."""
    blocks = comparison_blocks(comparison)
    return blocks_page("comparison", blocks, plot_differences(comparison), comparison.provenance)


def render_comparison_svg(comparison: Comparison) -> str:
    """The dumbbells."""
    return plot_differences(comparison).svg(standalone=True)


def render_ranking_html(report: RankReport, *, results: str | None = RESULTS) -> str:
    """Several systems: who leads, the rank intervals, the numbers."""
    blocks = rank_blocks(report, results=results)
    return blocks_page("ranking", blocks, plot_ranks(report), report.provenance)


def render_ranking_svg(report: RankReport) -> str:
    """The rank intervals."""
    return plot_ranks(report).svg(standalone=True)


def blocks_page(
    kind: str, blocks: Sequence[Block], figure: Figure | None, provenance: Provenance
) -> str:
    """Any answer in blocks as a page, under its picture where it has one."""
    script, style = page_script(), page_style()
    return (
        templates()
        .get_template("answer.html")
        .render(
            kind=kind,
            title=f"passhat: {kind}",
            answer=blocks,
            figure=figure,
            provenance=provenance,
            policy=content_policy(script, style),
            script=script,
            style=style,
        )
    )
