"""How each input was read, as the lines that end an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from passhat.messages import plural
from passhat.records.source import how_read
from passhat.reporters.blocks import Paragraph

if TYPE_CHECKING:
    from passhat.analysis.reports.provenance import Provenance

MOST_LINES = 4
LABEL = "Read as"


def reading_lines(provenance: Provenance | None) -> list[str]:
    """One line for each input that was read from a file or a frame, with its name if several."""
    sources = [] if provenance is None else [one for one in provenance.sources if one.read_as]
    several = len(sources) > 1
    told = [how_read(source).removeprefix("read as: ") for source in sources]
    lines = [
        f"{source.name}: {line}" if several else line
        for source, line in zip(sources, told, strict=True)
    ]
    if len(lines) > MOST_LINES:
        rest = plural(len(lines) - MOST_LINES, "more input")
        return [*lines[:MOST_LINES], f"and {rest}: --format json says how each was read"]
    return lines


def reading_paragraphs(provenance: Provenance | None) -> list[Paragraph]:
    """The same as blocks, the label on the first."""
    lines = reading_lines(provenance)
    return [Paragraph(LABEL if i == 0 else "", f"{line}.") for i, line in enumerate(lines)]
