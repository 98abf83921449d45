"""Every answer in every format that can hold it: one table, one door."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from passhat.errors import ArgumentError
from passhat.messages import listed

ENDINGS: Mapping[str, str] = {
    ".txt": "text",
    ".json": "json",
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".htm": "html",
    ".xml": "junit",
    ".svg": "svg",
}
"""The format that a file's ending asks for; the first ending of a format is its usual one."""

_KINDS: Mapping[str, str] = {
    "Report": "report",
    "Comparison": "comparison",
    "RankReport": "ranking",
    "Plan": "plan",
    "GatePlan": "gate plan",
    "Verdicts": "verdicts",
    "Profile": "profile",
    "Explanation": "explanation",
    "SideBySide": "diff",
    "SystemTrend": "trend",
    "RunAnswer": "run",
    "Demonstration": "demo",
}
"""The kind of an answer by the name of its class, or by that of what it is a sequence of."""

_TABLE: Mapping[str, Mapping[str, str]] = {
    "report": {
        "text": "terminal:render_terminal",
        "json": "json_report:render_json",
        "markdown": "markdown:render_markdown",
        "html": "html_page:render_html",
    },
    "comparison": {
        "text": "comparison_blocks:render_comparison",
        "json": "json_answers:render_comparison_json",
        "markdown": "comparison_blocks:render_comparison_markdown",
        "html": "answer_page:render_comparison_html",
        "svg": "answer_page:render_comparison_svg",
    },
    "ranking": {
        "text": "rank_blocks:render_ranking",
        "json": "json_answers:render_ranking_json",
        "markdown": "rank_blocks:render_ranking_markdown",
        "html": "answer_page:render_ranking_html",
        "svg": "answer_page:render_ranking_svg",
    },
    "plan": {
        "text": "plan_blocks:render_plan",
        "json": "json_answers:render_plan_json",
        "markdown": "plan_blocks:render_plan_markdown",
    },
    "gate plan": {
        "text": "gate_plan_blocks:render_gate_plans",
        "json": "gate_plan_blocks:render_gate_plans_json",
        "markdown": "gate_plan_blocks:render_gate_plans_markdown",
        "svg": "gate_plan_blocks:render_gate_plans_svg",
    },
    "verdicts": {
        "text": "verdict_blocks:render_verdicts",
        "json": "verdict_json:render_verdicts_json",
        "markdown": "verdict_blocks:render_verdicts_markdown",
        "junit": "junit_xml:render_verdicts_junit",
    },
    "profile": {
        "text": "profile_blocks:render_profile",
        "json": "json_answers:render_profile_json",
        "markdown": "profile_blocks:render_profile_markdown",
    },
    "explanation": {
        "text": "explanation_formats:render_explanation",
        "json": "explanation_formats:render_explanation_json",
        "markdown": "explanation_formats:render_explanation_markdown",
        "html": "explanation_formats:render_explanation_html",
    },
    "diff": {
        "text": "explanation_formats:render_diff",
        "json": "explanation_formats:render_diff_json",
        "markdown": "explanation_formats:render_diff_markdown",
    },
    "trend": {
        "text": "trend:render_terminal",
        "json": "trend:render_json",
        "markdown": "trend:render_markdown",
        "svg": "trend:render_svg",
    },
    "run": {
        "text": "run_answer:render_run",
        "json": "run_json:render_run_json",
        "markdown": "run_answer:render_run_markdown",
        "html": "run_answer:render_run_html",
        "junit": "run_junit:render_run_junit",
    },
    "demo": {
        "text": "demo_blocks:render_demo",
        "json": "demo_blocks:render_demo_json",
        "markdown": "demo_blocks:render_demo_markdown",
    },
}


def render(answer: Any, format: str = "text", **options: Any) -> str | bytes:  # noqa: A002  # the word callers guess
    """An answer in a format; options that mean nothing there are passed over.

    `ink` says how wide and colourful text may be; `results` is what the commands it suggests
    should read; `all_tasks`, `explain`, `transcripts` and `first_trial` show more where they apply.
    """
    kind = kind_of(answer)
    if format not in formats_for(kind):
        raise ArgumentError(
            "format", f"of a {kind} must be one of {listed(list(formats_for(kind)))}", format
        )
    module, _, name = _TABLE[kind][format].partition(":")
    function = getattr(importlib.import_module(f"passhat.reporters.{module}"), name)
    known = inspect.signature(function).parameters
    found: str | bytes = function(answer, **{k: v for k, v in options.items() if k in known})
    return found


def formats_for(answer: Any) -> tuple[str, ...]:
    """The formats that can hold an answer, or any answer of a kind that is named.

    >>> formats_for("plan")
    ('text', 'json', 'markdown')
    """
    return tuple(_TABLE[kind_of(answer)])


def endings_for(answer: Any) -> tuple[str, ...]:
    """The endings of the files that an answer can be written to.

    >>> endings_for("plan")
    ('.txt', '.json', '.md', '.markdown')
    """
    formats = formats_for(answer)
    return tuple(ending for ending, name in ENDINGS.items() if name in formats)


def kind_of(answer: Any) -> str:
    """What an answer is called: "report", "comparison", "verdicts" and so on."""
    if isinstance(answer, str) and answer in _TABLE:
        return answer
    one = answer[0] if isinstance(answer, Sequence) and answer else answer
    for found in (type(answer), type(one)):
        for base in found.__mro__:
            if base.__name__ in _KINDS:
                return _KINDS[base.__name__]
    raise ArgumentError("answer", "must be something that passhat answered", answer)
