"""A report as one self-contained page: no request to anywhere, readable without JavaScript."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Protocol

from passhat.analysis.reports.report import Report
from passhat.analysis.reports.system_report import SystemReport
from passhat.analysis.reports.tasks import LABELS
from passhat.drawing.figure import DARK, LIGHT, STYLE
from passhat.records.transcript import TranscriptKey, Transcripts
from passhat.reporters import wording
from passhat.reporters.advice import RESULTS, results_of
from passhat.reporters.blocks import Bar, Table
from passhat.reporters.next_steps import next_steps
from passhat.reporters.numbers import amount, points, span
from passhat.reporters.page_rows import MOST_ROWS, page_rows
from passhat.reporters.page_transcripts import PageTranscripts, embedded, fit_transcripts
from passhat.reporters.safe_text import safe_text
from passhat.reporters.systems_table import most_reliable_first, systems_table

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

MOST_UNFOLDED = 20
"""Tasks of a second system and further ones that are shown without being asked for."""

_MARKS = str.maketrans("PFE", "●○×")

_SHORT_NAME, _LONGEST_PIECE = 16, 24
_SEAMS = re.compile(r"([ _/.:-]+)(?=[^ _/.:-])")


class Judged(Protocol):
    """What the page shows of a gate: PASS, FAIL or UNDECIDED, and one sentence."""

    @property
    def word(self) -> str: ...
    @property
    def sentence(self) -> str: ...


def render_html(
    report: Report,
    *,
    verdicts: Sequence[Judged] = (),
    transcripts: Transcripts | PageTranscripts | None = None,
    first_trial: int = 0,
    results: str | None = RESULTS,
) -> str:
    """The page of a report; `transcripts` are shown run by run, rendered when asked for.

    Where they may be too many for a page, `fit_transcripts` chooses among them; without it, the
    usual limits hold.
    `first_trial` is the number that stands for a first run: logs count from 0 or from 1. `results`
    is what the commands it advises are to read; None where nothing was kept.
    """
    if not isinstance(transcripts, PageTranscripts):
        transcripts = fit_transcripts(report, transcripts or {})
    script, style = page_script(), page_style()
    many = len(report.systems) > 1
    answer = wording.overview(report) if many else wording.verdict(report.systems[0])
    return (
        templates()
        .get_template("report.html")
        .render(
            report=report,
            results={s.name: results_of(report, s, results) for s in report.systems},
            many=many,
            title=f"passhat: {safe_text(report.systems[0].name) if not many else 'report'}",
            answer=answer,
            verdicts=verdicts,
            policy=content_policy(script, style),
            script=script,
            style=style,
            transcripts=_by_task(transcripts.texts, first_trial),
            stored=", ".join(map(embedded, transcripts.texts.values())),
            cut_at=transcripts.cut_at if transcripts.cut else None,
            left_out=transcripts.left_out_note,
        )
    )


@cache
def templates() -> Environment:
    """The templates, with the words and numbers of every other reporter."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("passhat.reporters", "html"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {
        "labels": LABELS,
        "most_rows": MOST_ROWS,
        "most_unfolded": MOST_UNFOLDED,
    }
    environment.filters |= {
        "amount": amount,
        "design": wording.design,
        "errors_note": wording.errors_note,
        "headline_k": wording.headline_k,
        "marks": lambda sequence: (sequence or "").translate(_MARKS),
        "meaning": _meaning,
        "metric_name": wording.metric_name,
        "most_reliable_first": most_reliable_first,
        "name": breakable_name,
        "next_steps": next_steps,
        "partial_note": wording.partial_note,
        "points": lambda value: points(value, digits=1),
        "safe_text": safe_text,
        "section_links": _section_links,
        "sentences": _sentences,
        "span": span,
        "systems_table": lambda systems: systems_table(
            {system.name: system for system in systems}, "in %", both_scopes=True
        ),
        "table_rows": page_rows,
        "text_columns": _text_columns,
        "told_metrics": wording.told_metrics,
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
    return STYLE + themes + asset("style.css") + f"@media print{{{printed}}}"


@cache
def page_script() -> str:
    """What makes tables sort and filter."""
    return asset("page.js")


def content_policy(script: str, style: str) -> str:
    """A policy that lets exactly this script and this style run, and nothing load."""
    return (
        f"default-src 'none'; script-src '{source_hash(script)}'; "
        f"style-src '{source_hash(style)}'; base-uri 'none'; form-action 'none'"
    )


def asset(name: str) -> str:
    """The text of a style or script that pages are made with."""
    return files("passhat.reporters").joinpath("html", name).read_text(encoding="utf-8")


def source_hash(text: str) -> str:
    """What a policy calls an inline script or style by."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _section_links(systems: Sequence[SystemReport]) -> list[str]:
    return [f"#system-{place}" for place in range(1, len(systems) + 1)]


def _text_columns(table: Table) -> list[int]:
    """The columns without bars: a page has pictures for those."""
    rows = table.rows
    return [i for i in range(len(table.header)) if not any(isinstance(r[i], Bar) for r in rows)]


def _meaning(metric: str) -> str:
    kind, _, k = metric.partition("^") if "^" in metric else metric.partition("@")
    if kind != "pass":
        return "the mean score over tasks, partial credit counted"
    if k == "1":
        return "one attempt at a task succeeds"
    return f"{k} attempts all succeed" if "^" in metric else f"at least one of {k} succeeds"


def _sentences(system: SystemReport) -> list[str]:
    maybe = (
        wording.luck(system.variance),
        wording.errors(system),
        wording.seeds(system.seeds),
        wording.beyond(system),
        wording.cost(system),
        wording.across_tasks(system),
        f"Tasks: {wording.labels(system)}.",
    )
    told = [text for text in maybe if text]
    told += [wording.bars(bar) for bar in system.bars]
    told += [f"Left out: {wording.exclusion(one)}" for one in system.excluded]
    return told + [safe_text(note) for note in system.notes]


def _by_task(
    keys: Iterable[TranscriptKey], first_trial: int
) -> dict[tuple[str, str], list[tuple[int, str]]]:
    found: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for index, (system, task, trial) in enumerate(keys):
        found.setdefault((system, task), []).append((index, f"run {trial - first_trial + 1}"))
    return found
