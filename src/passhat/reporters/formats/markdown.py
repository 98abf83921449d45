"""Blocks as Markdown, for pull requests and notes; everything from data is escaped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from passhat.reporters import blocks as part
from passhat.reporters.answer_kind import AnswerKind, DisplayOptions
from passhat.reporters.safe_text import safe_text

# GitHub and GitLab look for references in the rendered text, so a backslash does not prevent them:
# people (who would be notified), issues, merge requests, epics (which would link back), addresses.
# A space without width does. A line that begins with / is a command to GitLab.
_REFERENCE = re.compile(
    r"(?<![A-Za-z0-9])@(?=[\w\\])|[#!](?=\d)|&amp;(?=\d)|:(?=//)|\bwww(?=\.)", re.IGNORECASE
)
_NO_SPACE = "&#8203;"


def render(kind: AnswerKind, answer: Any, options: DisplayOptions) -> str:
    """The answer as Markdown."""
    return blocks_markdown(kind.all_blocks(answer, options))


def blocks_markdown(blocks: Sequence[part.Block]) -> str:
    """Blocks as one text; what is drawn, a page or a picture shows."""
    texts = [text for block in blocks if (text := _block(block))]
    return "\n\n".join(texts) + "\n"


def escape_markdown(text: str) -> str:
    r"""Safe text in which Markdown, HTML and the references of forges mean nothing.

    >>> escape_markdown("a|b <b>*x*</b>")
    'a\\|b &lt;b&gt;\\*x\\*&lt;/b&gt;'
    >>> escape_markdown("refund #3 for @ann, pass@5")
    'refund \\#&#8203;3 for @&#8203;ann, pass@5'
    """
    shown = safe_text(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for mark in "\\`*_[]|~#!":
        shown = shown.replace(mark, "\\" + mark)
    shown = _REFERENCE.sub(rf"\g<0>{_NO_SPACE}", shown)
    return f"&#47;{shown[1:]}" if shown.startswith("/") else shown


def code_span(text: str) -> str:
    """Safe text as code, in which nothing needs escaping: the fence is longer than what it holds.

    >>> code_span("passhat gate 'my`log.csv'")
    "`` passhat gate 'my`log.csv' ``"
    """
    shown = safe_text(text)
    longest = max((len(run) for run in re.findall("`+", shown)), default=0)
    fence, room = "`" * (longest + 1), " " * bool(longest)
    return f"{fence}{room}{shown}{room}{fence}"


def _block(block: part.Block) -> str:
    match block:
        case part.Headline():
            return f"**{escape_markdown(block.text)}**"
        case part.Section():
            note = f"\n\n{escape_markdown(block.note)}" if block.note else ""
            return f"## {escape_markdown(block.title)}{note}"
        case part.Paragraph():
            label = f"**{block.label}.** " if block.label else ""
            return label + escape_markdown(block.text)
        case part.Line():
            detail = f": {escape_markdown(block.detail)}" if block.detail else ""
            return f"- {code_span(block.text)}{detail}"
        case part.Judged():
            said = f"- **{block.word}** {escape_markdown(block.sentence)}"
            return "\n".join([said, *(f"  {escape_markdown(text)}" for text in block.details)])
        case part.Steps():
            items = (f"{i}. {_step(step)}" for i, step in enumerate(block.steps, 1))
            return "\n".join([f"**{block.title}**", "", *items])
        case part.Table():
            return _table(block)
        case part.Shares() | part.Picture():
            return ""


def _step(step: part.NextStep) -> str:
    text = escape_markdown(step.text)
    return f"{text}: {code_span(step.command)}" if step.command else text


def _table(table: part.Table) -> str:
    kept = table.written_columns

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cells) + " |"

    rows = []
    for row in table.rows:
        cells = [row.text] if isinstance(row, part.HeadingRow) else [str(row[i]) for i in kept]
        cells += [""] * (len(kept) - len(cells))
        rows.append(line([escape_markdown(cell) for cell in cells]))
    rule = line([":--" if i in table.left else "--:" for i in kept])
    return "\n".join([line([escape_markdown(table.header[i]) for i in kept]), rule, *rows])
