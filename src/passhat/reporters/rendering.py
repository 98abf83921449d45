"""Which answer comes in which format: a table of answers, a table of formats, and `render`."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from passhat.arguments import refuse_unknown
from passhat.dataclass import dataclass
from passhat.errors import ArgumentError
from passhat.messages import one_of_rule

if TYPE_CHECKING:
    from passhat.dataclass import FrameLibrary
    from passhat.reporters.answer import Answer
    from passhat.reporters.formatting import TerminalStyle


@dataclass(frozen=True, slots=True)
class Format:
    """Where a format is written, which part of an answer it needs, and its file endings."""

    function: str
    needs: str
    endings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AnswerKind:
    """The class of a result (or what it is a sequence of), the answer to it, and its parts.

    Classes are named, not imported, and the parts listed: a command knows its formats without
    loading any answer.
    """

    result: str
    answer: str
    parts: str


FORMATS: Mapping[str, Format] = {
    "text": Format("text:render", "blocks", (".txt",)),
    "json": Format("markup:render_json", "data", (".json",)),
    "markdown": Format("markup:render_markdown", "blocks", (".md", ".markdown")),
    "html": Format("html:render_html", "blocks", (".html", ".htm")),
    "fragment": Format("html:render_fragment", "blocks", (".fragment.html",)),
    "csv": Format("markup:render_csv", "rows", (".csv",)),
    "ndjson": Format("markup:render_ndjson", "rows", (".ndjson",)),
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

ANSWERS: Mapping[str, AnswerKind] = {
    "report": AnswerKind("Report", "report:ReportAnswer", "blocks data rows figures cases"),
    "matrix": AnswerKind("TaskMatrix", "listings:MatrixAnswer", "blocks data rows figures"),
    "comparison": AnswerKind(
        "Comparison", "comparison:ComparisonAnswer", "blocks data rows figures"
    ),
    "ranking": AnswerKind("RankReport", "ranking:RankingAnswer", "blocks data rows figures"),
    "frontier": AnswerKind("Frontier", "ranking:FrontierAnswer", "blocks data rows figures"),
    "plan": AnswerKind("Plan", "plan:PlanAnswer", "blocks data rows figures"),
    "gate plan": AnswerKind("GatePlan", "plan:GatePlanAnswer", "blocks data rows figures"),
    "label plan": AnswerKind("LabelPlan", "plan:LabelPlanAnswer", "blocks data rows"),
    "verdicts": AnswerKind("Verdicts", "verdicts:VerdictsAnswer", "blocks data rows figures cases"),
    "profile": AnswerKind("Profile", "ranking:ProfileAnswer", "blocks data rows figures"),
    "explanation": AnswerKind("Explanation", "explanation:ExplanationAnswer", "blocks data rows"),
    "diff": AnswerKind("RunDiff", "diff:DiffAnswer", "blocks data rows"),
    "flaky": AnswerKind("FlakyTasks", "trend:FlakyAnswer", "blocks data rows"),
    "trend": AnswerKind("SystemTrend", "trend:TrendAnswer", "blocks data rows figures"),
    "change": AnswerKind("ChangeReview", "comparison:ChangeAnswer", "blocks rows cases"),
    "run": AnswerKind("RunAnswer", "run:FinishedRunAnswer", "blocks data rows figures cases"),
    "run plan": AnswerKind("RunPlan", "listings:RunPlanAnswer", "blocks data rows"),
    "demo": AnswerKind("Demonstration", "demo:DemoAnswer", "blocks data rows figures"),
    "run list": AnswerKind("RunList", "listings:RunListAnswer", "blocks data rows"),
    "run log": AnswerKind("RunLog", "listings:RunLogAnswer", "blocks data rows"),
    "artefacts": AnswerKind("ArtefactList", "listings:ArtefactsAnswer", "blocks data rows"),
    "transcript matches": AnswerKind(
        "TranscriptMatches", "listings:SearchAnswer", "blocks data rows"
    ),
    "judge": AnswerKind("JudgeCheck", "judge:JudgeAnswer", "blocks data rows"),
    "trials": AnswerKind("Trials", "listings:TrialsAnswer", "blocks rows"),
    "tryout": AnswerKind("GraderTryout", "listings:TryoutAnswer", "blocks data rows"),
    "validation": AnswerKind("SuiteCheck", "listings:ValidationAnswer", "blocks data rows cases"),
}
"""A new answer is one class under answers/ and one line here."""

ENDINGS: Mapping[str, str] = {
    ending: name for name, form in FORMATS.items() for ending in form.endings
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
    suggested commands read; `DisplayOptions` has them all. Answers and formats
    ignore the options that they have no use for.
    """
    from passhat.reporters.answer import DisplayOptions

    kind = kind_of(answer)
    if format not in (known := formats_for(kind)):
        rule = f"of a {kind} {one_of_rule(str(format), known, len(known))}"
        raise ArgumentError("format", rule, format)
    refuse_unknown("render", options, DisplayOptions.__annotations__)
    write = _load("formats", FORMATS[format].function)
    written: str | bytes = write(answer_of(answer), DisplayOptions(**options))
    return written


def save(answer: Any, path: str | Path, **options: Any) -> None:
    """Write an answer to a file, in the format that its ending asks for."""
    format = format_of_file(str(path))  # noqa: A001  # as `render` calls it
    if format is None:
        endings = ", ".join(endings_for(answer))
        raise ArgumentError("path", f"must end in one of {endings}", str(path))
    written = render(answer, format, **options)
    Path(path).write_bytes(written.encode() if isinstance(written, str) else written)


def answer_of(result: Any) -> Answer[Any]:
    """What renders a result; of several where its kind takes several."""
    answer: type[Answer[Any]] = _load("answers", ANSWERS[kind_of(result)].answer)
    return answer([result] if answer.several and not isinstance(result, Sequence) else result)


def _load(package: str, name: str) -> Any:
    """A function or class of reporters, by its module and name."""
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(f"passhat.reporters.{package}.{module}"), attribute)


def formats_for(answer: Any) -> tuple[str, ...]:
    """The formats that can hold an answer, or any answer of a kind that is named.

    >>> formats_for("run list")
    ('text', 'json', 'markdown', 'html', 'fragment', 'csv', 'ndjson', 'tex')
    """
    parts = ANSWERS[kind_of(answer)].parts.split()
    return tuple(name for name, form in FORMATS.items() if form.needs in parts)


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
    first = answer[0] if isinstance(answer, Sequence) and answer else answer
    classes = {base.__name__ for value in (answer, first) for base in type(value).__mro__}
    for name, kind in ANSWERS.items():
        if kind.result in classes:
            return name
    raise ArgumentError("answer", "must be something that passhat answered", answer)


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

    >>> from passhat import simulate
    >>> from passhat.analysis.gates.judge import judge
    >>> verdicts = judge(simulate(tasks=5, runs=9, rate=0.9, seed=1), ["pass^1 >= 0.1"])
    >>> to_frame(verdicts, "pandas")["verdict"].tolist()
    ['PASS']
    """
    from passhat.records.data_frames import frame_of_columns

    rows = answer_of(answer).rows()
    columns = {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}
    return frame_of_columns(columns, library)
