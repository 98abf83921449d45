"""The answer of a run: its report, why trials did not pass, and what was demanded of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from passhat.analysis.report import Report
from passhat.analysis.verdict import Verdict, Verdicts
from passhat.reporters.blocks import (
    Block,
    Paragraph,
    Steps,
    blocks_lines,
    blocks_markdown,
    escape_markdown,
)
from passhat.reporters.html_page import TranscriptKey, render_html
from passhat.reporters.ink import Ink
from passhat.reporters.json_report import number_object, report_object, to_json
from passhat.reporters.markdown import render_markdown
from passhat.reporters.numbers import plural
from passhat.reporters.safe_text import safe_text, wrap
from passhat.reporters.terminal import render_terminal

SCHEMA = "passhat.run/1"
MOST_FAILURES = 8
LONGEST_REASON = 200

_COLORS = {"PASS": "green", "FAIL": "red", "UNDECIDED": "magenta"}


class Floor(Protocol):
    """What is shown of a floor under tool selection."""

    @property
    def passed(self) -> bool: ...
    @property
    def line(self) -> str: ...
    @property
    def detail(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A reason why trials of a task did not pass: an expectation that failed, or an error."""

    task: str
    reason: str
    trials: int
    errored: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAnswer:
    """Everything that a run says when it is over. `undone` is what an early end left out."""

    report: Report
    verdicts: Verdicts | None = None
    floors: tuple[Floor, ...] = ()
    failures: tuple[Failure, ...] = ()
    undone: str | None = None
    transcripts: Mapping[TranscriptKey, str] | None = None


def render_run(answer: RunAnswer, ink: Ink | None = None) -> str:
    """The report, then what follows from it: what is last on a terminal is read first."""
    ink = ink or Ink()
    text = render_terminal(answer.report, ink)
    lines = blocks_lines(_blocks(answer), ink)
    for part in (_gate_lines(answer, ink), _floor_lines(answer, ink)):
        lines += ["", *part] if part and lines else part
    return text + (ink.finish(["", *lines]) if lines else "")


def render_run_json(answer: RunAnswer) -> str:
    """The report and the verdicts as JSON: schema "passhat.run/1"."""
    return to_json(
        {
            "schema": SCHEMA,
            "verdict": None if answer.verdicts is None else answer.verdicts.word,
            "verdicts": [_verdict_object(verdict) for verdict in answer.verdicts or ()],
            "floors": [_floor_object(floor) for floor in answer.floors],
            "failures": [
                {
                    "task": one.task,
                    "reason": one.reason,
                    "trials": one.trials,
                    "errored": one.errored,
                }
                for one in answer.failures
            ],
            "undone": answer.undone,
            "report": report_object(answer.report),
        }
    )


def render_run_markdown(answer: RunAnswer) -> str:
    """The verdicts, then the report: what a reviewer wants to know first."""
    lines = [
        f"- **{verdict.word}** {escape_markdown(verdict.sentence)}"
        for verdict in answer.verdicts or ()
    ]
    lines += [f"- `{safe_text(floor.line).replace('`', ' ')}`" for floor in answer.floors]
    parts = ["\n".join(lines) + "\n"] if lines else []
    parts.append(render_markdown(answer.report))
    if after := _blocks(answer):
        parts.append(blocks_markdown(after))
    return "\n".join(parts)


def render_run_html(answer: RunAnswer) -> str:
    """The report as a page."""
    return render_html(
        answer.report, verdicts=tuple(answer.verdicts or ()), transcripts=answer.transcripts
    )


def _blocks(answer: RunAnswer) -> list[Block]:
    blocks: list[Block] = []
    if answer.failures:
        blocks.append(_failure_list(answer.failures))
    if answer.undone:
        blocks.append(Paragraph("Undone", f"{answer.undone}."))
    return blocks


def _failure_list(failures: Sequence[Failure]) -> Steps:
    texts = tuple(
        f"{one.task}, {plural(one.trials, 'trial')}: "
        f"{'error: ' if one.errored else ''}{one.reason[:LONGEST_REASON]}"
        for one in failures[:MOST_FAILURES]
    )
    return Steps("Why trials did not pass", texts)


def _gate_lines(answer: RunAnswer, ink: Ink) -> list[str]:
    if not answer.verdicts:
        return []
    lines = [ink.style("Gates", "bold")]
    for verdict in answer.verdicts:
        word = verdict.word
        colored = ink.style(word, "bold", _COLORS[word])
        told = wrap(verdict.sentence, ink.width - 2, indent="  ")
        at = next((i for i, line in enumerate(told) if word in line), None)
        if at is not None:
            told[at] = told[at].replace(word, colored, 1)
        lines += [f"  {line}" for line in told]
    return lines


def _floor_lines(answer: RunAnswer, ink: Ink) -> list[str]:
    lines: list[str] = []
    for floor in answer.floors:
        # One line, whatever the width: other programs read it.
        lines.append(safe_text(floor.line))
        lines += [ink.style(f"  {line}", "dim") for line in wrap(floor.detail, ink.width - 2)]
    return lines


def _verdict_object(verdict: Verdict) -> dict[str, Any]:
    return {
        "verdict": verdict.word,
        "demand": verdict.demand,
        "name": verdict.gate.name,
        "system": verdict.system,
        "severity": verdict.gate.severity,
        "sentence": verdict.sentence,
        "estimate": number_object(verdict.estimate),
        "evidence": verdict.evidence,
        "method": verdict.method,
        "alpha": verdict.alpha,
        "beta": verdict.beta,
        "runs": verdict.runs,
        "fixed_runs": verdict.fixed_runs,
        "runs_saved": verdict.runs_saved,
        "max_runs": verdict.max_runs,
        "more_runs": verdict.more_runs,
        "seed": verdict.seed,
        "errors": verdict.errors,
        "notes": list(verdict.notes),
    }


def _floor_object(floor: Floor) -> dict[str, Any]:
    return {"passed": floor.passed, "line": floor.line, "detail": floor.detail}
