"""Which answer comes in which format: a table of answers, a table of formats, and `render`."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from passhat.arguments import refuse_unknown
from passhat.dataclass import dataclass
from passhat.errors import ArgumentError
from passhat.messages import one_of_rule

if TYPE_CHECKING:
    from passhat.dataclass import FrameLibrary
    from passhat.reporters.answer import AnswerKind
    from passhat.reporters.formatting import TerminalStyle


@dataclass(frozen=True, slots=True)
class Format:
    """Where a format is written, which part of an answer it needs, and its file endings."""

    function: str
    needs: str
    endings: tuple[str, ...]


FORMATS: Mapping[str, Format] = {
    "text": Format("text:render", "blocks", (".txt",)),
    "json": Format("data:render_json", "data", (".json",)),
    "markdown": Format("markup:render_markdown", "blocks", (".md", ".markdown")),
    "html": Format("html:render_html", "blocks", (".html", ".htm")),
    "fragment": Format("html:render_fragment", "blocks", (".fragment.html",)),
    "csv": Format("data:render_csv", "rows", (".csv",)),
    "ndjson": Format("data:render_ndjson", "rows", (".ndjson",)),
    "tex": Format("markup:render_tex", "blocks", (".tex",)),
    "junit": Format("ci:render_junit", "cases", (".xml",)),
    "ctrf": Format("ci:render_ctrf", "cases", (".ctrf.json",)),
    "sarif": Format("ci:render_sarif", "cases", (".sarif", ".sarif.json")),
    "tap": Format("ci:render_tap", "cases", (".tap",)),
    "code-quality": Format("ci:render_code_quality", "cases", (".codequality.json",)),
    "openmetrics": Format("ci:render_openmetrics", "cases", (".prom", ".om")),
    "badge": Format("images:render_badge", "cases", (".badge.svg",)),
    "badge-json": Format("images:render_badge_json", "cases", (".badge.json",)),
    "svg": Format("images:render_svg", "figures", (".svg",)),
    "png": Format("images:render_png", "figures", (".png",)),
    "pdf": Format("images:render_pdf", "figures", (".pdf",)),
}
"""A new format is one module under formats/ and one line here."""

ANSWERS: Mapping[str, tuple[str, str]] = {
    "report": ("Report", "blocks data rows figures cases"),
    "matrix": ("TaskMatrix", "blocks data rows figures"),
    "comparison": ("Comparison", "blocks data rows figures"),
    "ranking": ("RankReport", "blocks data rows figures"),
    "plan": ("Plan", "blocks data rows figures"),
    "gate plan": ("GatePlan", "blocks data rows figures"),
    "verdicts": ("Verdicts", "blocks data rows figures cases"),
    "profile": ("Profile", "blocks data rows figures"),
    "explanation": ("Explanation", "blocks data rows"),
    "diff": ("RunDiff", "blocks data rows"),
    "flaky": ("FlakyTasks", "blocks data rows"),
    "trend": ("SystemTrend", "blocks data rows figures"),
    "change": ("ChangeReview", "blocks rows cases"),
    "run": ("RunAnswer", "blocks data rows figures cases"),
    "run plan": ("RunPlan", "blocks data rows"),
    "demo": ("Demonstration", "blocks data rows figures"),
    "run list": ("RunList", "blocks data rows"),
    "transcript matches": ("TranscriptMatches", "blocks data rows"),
    "trials": ("Trials", "blocks rows"),
    "validation": ("SuiteCheck", "blocks data rows cases"),
}
"""The class of each answer (or what it is a sequence of) and the parts it has.

A new answer is one module under answers/ and one line here. The parts are listed here so that a
command knows its formats without loading the answer.
"""

_MODULES: Mapping[str, str] = {
    "matrix": "listings",
    "gate plan": "plan",
    "profile": "ranking",
    "flaky": "trend",
    "run plan": "listings",
    "run list": "listings",
    "transcript matches": "listings",
    "trials": "listings",
    "validation": "listings",
}
"""The modules of answers that stand together with others of their kind."""

ENDINGS: Mapping[str, str] = {
    ending: name for name, one in FORMATS.items() for ending in one.endings
}
"""The format that a file's ending asks for."""


def format_of_file(name: str) -> str | None:
    """The format that the name of a file asks for, by its longest known ending.

    >>> format_of_file("out.json"), format_of_file("out.ctrf.json"), format_of_file("out")
    ('json', 'ctrf', None)
    """
    known = [ending for ending in ENDINGS if name.lower().endswith(ending)]
    return ENDINGS[max(known, key=len)] if known else None


def render(
    answer: Any,
    format: str = "text",  # noqa: A002  # the word that callers guess
    **options: Any,
) -> str | bytes:
    """An answer in a format: text, Markdown, a page, data, or a picture.

    `ink` says how wide and colourful text may be, `verbose` asks for everything, `results` is what
    suggested commands read; `DisplayOptions` in answer_kind has them all. Answers and formats
    ignore the options that they have no use for.
    """
    from passhat.reporters.answer import DisplayOptions

    kind = kind_of(answer)
    if format not in (known := formats_for(kind)):
        rule = f"of a {kind} {one_of_rule(str(format), known, len(known))}"
        raise ArgumentError("format", rule, format)
    refuse_unknown("render", options, DisplayOptions.__annotations__)
    module, _, name = FORMATS[format].function.partition(":")
    function = getattr(importlib.import_module(f"passhat.reporters.formats.{module}"), name)
    found: str | bytes = function(*kind_and_answer(answer), DisplayOptions(**options))
    return found


def kind_and_answer(answer: Any) -> tuple[AnswerKind, Any]:
    """The kind of an answer, and the answer as the parts of that kind take it."""
    kind = answer_kind(kind_of(answer))
    alone = kind.several and not isinstance(answer, Sequence)
    return kind, [answer] if alone else answer


def formats_for(answer: Any) -> tuple[str, ...]:
    """The formats that can hold an answer, or any answer of a kind that is named.

    >>> formats_for("run list")
    ('text', 'json', 'markdown', 'html', 'fragment', 'csv', 'ndjson', 'tex')
    """
    parts = ANSWERS[kind_of(answer)][1].split()
    return tuple(name for name, one in FORMATS.items() if one.needs in parts)


def endings_for(answer: Any) -> tuple[str, ...]:
    """The endings of the files that an answer can be written to.

    >>> endings_for("trials")
    ('.txt', '.md', '.markdown', '.html', '.htm', '.fragment.html', '.csv', '.ndjson', '.tex')
    """
    formats = formats_for(answer)
    return tuple(ending for ending, name in ENDINGS.items() if name in formats)


def kind_of(answer: Any) -> str:
    """What an answer is called: "report", "comparison", "verdicts" and so on."""
    if isinstance(answer, str) and answer in ANSWERS:
        return answer
    one = answer[0] if isinstance(answer, Sequence) and answer else answer
    classes = {base.__name__ for found in (answer, one) for base in type(found).__mro__}
    for kind, (owner, _) in ANSWERS.items():
        if owner in classes:
            return kind
    raise ArgumentError("answer", "must be something that passhat answered", answer)


def answer_kind(kind: str) -> AnswerKind:
    """The parts of a kind of answer, from its module."""
    name = kind.replace(" ", "_")
    module = importlib.import_module(f"passhat.reporters.answers.{_MODULES.get(kind, name)}")
    own = f"{name.upper()}_KIND"
    return cast("AnswerKind", getattr(module, own if hasattr(module, own) else "KIND"))


def render_terminal(answer: Any, ink: TerminalStyle | None = None, **options: Any) -> str:
    """Any answer as text for a terminal, or for a file without colour."""
    return cast(str, render(answer, "text", ink=ink, **options))


def render_markdown(answer: Any, **options: Any) -> str:
    """Any answer as Markdown, for pull requests and notes."""
    return cast(str, render(answer, "markdown", **options))


def render_html(answer: Any, **options: Any) -> str:
    """Any answer as one self-contained page."""
    return cast(str, render(answer, "html", **options))


def render_json(answer: Any) -> str:
    """Any answer as JSON, numbers unrounded."""
    return cast(str, render(answer, "json"))


def to_frame(answer: Any, library: FrameLibrary | None = None) -> Any:
    """The rows of an answer as a pandas, polars or Arrow table: those of its CSV file, unrounded.

    >>> from passhat import judge, simulate
    >>> verdicts = judge(simulate(tasks=5, runs=9, rate=0.9, seed=1), ["pass^1 >= 0.1"])
    >>> to_frame(verdicts, "pandas")["verdict"].tolist()
    ['PASS']
    """
    from passhat.records.data_frames import frame_of_columns

    kind, answered = kind_and_answer(answer)
    if kind.rows is None:
        raise ArgumentError("answer", f"must have rows; a {kind.name} has none", answer)
    rows = kind.rows(answered)
    columns = {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}
    return frame_of_columns(columns, library)
