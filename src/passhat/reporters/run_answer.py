"""The answer of a run: its report, why trials did not pass, and what was demanded of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from passhat.analysis.report import Report
from passhat.reporters.blocks import Block, Paragraph, Steps, blocks_lines, blocks_markdown
from passhat.reporters.html_page import TranscriptKey, render_html
from passhat.reporters.ink import Ink
from passhat.reporters.json_report import render_json
from passhat.reporters.markdown import render_markdown
from passhat.reporters.numbers import plural
from passhat.reporters.terminal import render_terminal

MOST_FAILURES = 8
LONGEST_REASON = 200


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
    failures: tuple[Failure, ...] = ()
    undone: str | None = None
    transcripts: Mapping[TranscriptKey, str] | None = None


def render_run(answer: RunAnswer, ink: Ink | None = None) -> str:
    """The report, then what follows from it: what is last on a terminal is read first."""
    ink = ink or Ink()
    after = _blocks(answer)
    text = render_terminal(answer.report, ink)
    return text + (ink.finish(["", *blocks_lines(after, ink)]) if after else "")


def render_run_json(answer: RunAnswer) -> str:
    """The report as JSON."""
    return render_json(answer.report)


def render_run_markdown(answer: RunAnswer) -> str:
    """The report as Markdown."""
    after = _blocks(answer)
    return render_markdown(answer.report) + ("\n" + blocks_markdown(after) if after else "")


def render_run_html(answer: RunAnswer) -> str:
    """The report as a page."""
    return render_html(answer.report, transcripts=answer.transcripts)


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
