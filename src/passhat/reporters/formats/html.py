"""Answers as one self-contained page: no request to anywhere, readable without JavaScript."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from passhat.analysis.reports.headline import common_k
from passhat.analysis.reports.system_report import SystemReport
from passhat.analysis.reports.tasks import LABELS
from passhat.drawing.figure import DARK, LIGHT, STYLE
from passhat.reporters import wording
from passhat.reporters.answer_kind import AnswerKind, DisplayOptions
from passhat.reporters.answers.systems_table import most_reliable_first, systems_table
from passhat.reporters.blocks import Block, Marks, Picture, Shares
from passhat.reporters.glossary import GLOSSARY
from passhat.reporters.next_steps import next_steps
from passhat.reporters.numbers import amount, percent_range, points, span
from passhat.reporters.page_transcripts import MOST_ROWS, page_rows
from passhat.reporters.reading_lines import reading_lines
from passhat.reporters.safe_text import safe_text
from passhat.stats.estimate import Interval

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

_CHIPS = {
    "Dependable": ("good", "✓"),
    "Not dependable": ("bad", "✕"),
    "Not settled yet": ("open", "~"),
    "No run finished": ("none", "?"),
}
"""The class and the sign of each verdict: never colour alone."""

_MARKS = str.maketrans("PFE", "●○×")
_MARK_CLASSES = {"P": "good", "F": "bad", "E": "none"}

_SHORT_NAME, _LONGEST_PIECE = 16, 24
_SEAMS = re.compile(r"([ _/.:-]+)(?=[^ _/.:-])")


def render(kind: AnswerKind, answer: Any, options: DisplayOptions) -> str:
    """The page of an answer; the verdict stands in its title."""
    values = {} if kind.page is None else kind.page(answer, options)
    script, style = page_script(), page_style()
    figures = {} if kind.page or kind.figures is None else kind.figures(answer)
    shared = {
        "kind": kind.name,
        "title": f"{safe_text(kind.title(answer))} · passhat",
        "blocks": [] if kind.page else _without_drawn(kind.blocks(answer, options)),
        "figures": figures,
        "provenance": kind.provenance(answer),
        "policy": content_policy(script, style),
        "script": script,
        "style": style,
    }
    template = kind.template if kind.page else "answer.html"
    return templates().get_template(template).render({**shared, **values})


def _without_drawn(blocks: Sequence[Block]) -> list[Block]:
    """The blocks that a page writes out; its figures are drawn above them."""
    return [block for block in blocks if not isinstance(block, Picture | Shares)]


@cache
def templates() -> Environment:
    """The templates, with the words and numbers of every other reporter."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("passhat.reporters.formats", "pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {
        "reading_lines": reading_lines,
        "labels": LABELS,
        "most_rows": MOST_ROWS,
        "glossary": GLOSSARY,
    }
    environment.filters |= {
        "amount": amount,
        "anchor": _anchor,
        "cell": _cell,
        "chip_class": lambda chip: _CHIPS[chip][0],
        "chip_sign": lambda chip: _CHIPS[chip][1],
        "design": wording.design,
        "errors_note": wording.errors_note,
        "headline_k": wording.headline_k,
        "k_intervals": _k_intervals,
        "k_name": _k_name,
        "marks": lambda sequence: (sequence or "").translate(_MARKS),
        "mark_class": lambda letter: _MARK_CLASSES[letter],
        "meaning": _meaning,
        "metric_name": wording.metric_name,
        "most_reliable_first": most_reliable_first,
        "common_k": common_k,
        "name": breakable_name,
        "next_steps": next_steps,
        "partial_note": wording.partial_note,
        "points": lambda value: points(value, digits=1),
        "safe_text": safe_text,
        "section_links": _section_links,
        "span": span,
        "systems_table": lambda systems, asked=None: systems_table(
            {system.name: system for system in systems}, "in %", asked=asked
        ),
        "table_rows": page_rows,
        "shown_metrics": wording.shown_metrics,
        "verdict": wording.verdict,
    }
    return environment


def breakable_name(name: str) -> Markup:
    """A name from data, escaped; a long one may be broken at its seams rather than in a word.

    >>> str(breakable_name("build_your_own__<x>"))
    'build_<wbr>your_<wbr>own__<wbr>&lt;x&gt;'
    >>> str(breakable_name("refund_twice"))
    'refund_twice'
    """
    from markupsafe import Markup, escape

    shown = safe_text(name)
    if len(shown) <= _SHORT_NAME:
        return escape(shown)
    pieces = _SEAMS.sub("\\1\0", shown).split("\0")
    parts = [
        piece[i : i + _LONGEST_PIECE]
        for piece in pieces
        for i in range(0, len(piece), _LONGEST_PIECE)
    ]
    return Markup("<wbr>").join(parts)


@cache
def page_style() -> str:
    """The style of every page: that of the pictures, then that of the text around them."""
    themes = "".join(
        f":root[data-theme={name}] .ph{{{colours}}}"
        for name, colours in (("light", LIGHT), ("dark", DARK))
    )
    # Paper is white, whatever the reader prefers on a screen.
    paper = "color-scheme:light;--ground:#fff;--raised:#f6f8fa"
    printed = f":root,:root[data-theme]{{{paper}}}.ph,:root[data-theme] .ph{{{LIGHT}}}"
    own = _asset("style.css") + _asset("cards.css")
    return STYLE + themes + own + f"@media print{{{printed}}}"


@cache
def page_script() -> str:
    """What makes tables sort and filter, and runs open by their address."""
    return _asset("page.js") + _asset("cards.js")


def content_policy(script: str, style: str) -> str:
    """A policy that lets exactly this script and this style run, and nothing load."""
    return (
        f"default-src 'none'; script-src '{source_hash(script)}'; "
        f"style-src '{source_hash(style)}'; base-uri 'none'; form-action 'none'"
    )


def _asset(name: str) -> str:
    return files("passhat.reporters.formats").joinpath("pages", name).read_text(encoding="utf-8")


def source_hash(text: str) -> str:
    """What a policy calls an inline script or style by."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _cell(cell: str | Marks) -> str:
    return cell.sequence.translate(_MARKS) if isinstance(cell, Marks) else safe_text(cell)


def _anchor(names: tuple[str, str]) -> str:
    """The id of a task's row: its name, and enough of the system's that no two are alike."""
    system, task = names
    mark = hashlib.sha256(system.encode(errors="replace")).hexdigest()[:4]
    return "t-" + "_".join(f"{safe_text(task)}-{mark}".split())


def _k_name(one: Mapping[str, Any]) -> str:
    k = one["k"]
    return "one try (pass^1)" if k == 1 else f"{k} in a row (reliability@{k})"


def _k_intervals(one: Mapping[str, Any]) -> str:
    scopes = (("this suite", one["suite"]), ("tasks like these", one["like"]))
    return "; ".join(
        f"{name} {percent_range(Interval(*ends), digits=1)}" for name, ends in scopes if ends
    )


def _section_links(systems: Sequence[SystemReport]) -> list[str]:
    return [f"#system-{place}" for place in range(1, len(systems) + 1)]


def _meaning(metric: str) -> str:
    kind, _, k = metric.partition("^") if "^" in metric else metric.partition("@")
    if kind != "pass":
        return "the mean score over tasks, partial credit counted"
    if k == "1":
        return "one attempt at a task succeeds"
    return f"{k} attempts all succeed" if "^" in metric else f"at least one of {k} succeeds"
