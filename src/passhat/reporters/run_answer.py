"""The answer of a run: its report, why trials did not pass, and what was demanded of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from passhat.analysis.gates.run_answer import RunAnswer
from passhat.messages import plural
from passhat.reporters.advice import Step
from passhat.reporters.blocks import (
    Block,
    Paragraph,
    Steps,
    blocks_markdown,
    blocks_text,
)
from passhat.reporters.ink import Ink
from passhat.reporters.safe_text import safe_text, wrap

# What draws verdicts, recoveries and pages is loaded where there are any: most runs are answered
# with a few lines on a terminal, and a run is over when they are there.
if TYPE_CHECKING:
    from passhat.analysis.gates.tool_selection import SelectionFloor
    from passhat.reporters.page_transcripts import PageTranscripts

MOST_FAILURES = 8
LONGEST_REASON = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """What a page shows of a gate or a floor."""

    word: str
    sentence: str


def render_run(answer: RunAnswer, ink: Ink | None = None) -> str:
    """The report, then what follows from it: what is last on a terminal is read first."""
    from passhat.reporters.terminal import render_terminal

    ink = ink or Ink()
    parts = [render_terminal(answer.report, ink, results=answer.results)]
    if after := _blocks(answer):
        parts.append(blocks_text(after, ink))
    if answer.verdicts:
        from passhat.reporters.verdict_blocks import render_verdicts

        parts.append(render_verdicts(answer.verdicts, ink))
    if answer.floors:
        parts.append(ink.finish(_floor_lines(answer.floors, ink)))
    return "\n".join(parts)


def render_run_markdown(answer: RunAnswer) -> str:
    """The verdicts, then the report: what a reviewer wants to know first."""
    from passhat.reporters.markdown import render_markdown
    from passhat.reporters.verdict_blocks import render_verdicts_markdown

    parts = [render_verdicts_markdown(answer.verdicts)] if answer.verdicts else []
    if answer.floors:
        lines = (f"- `{safe_text(floor.line).replace('`', ' ')}`" for floor in answer.floors)
        parts.append("\n".join(lines) + "\n")
    parts.append(render_markdown(answer.report, results=answer.results))
    if after := _blocks(answer):
        parts.append(blocks_markdown(after))
    return "\n".join(parts)


def render_run_html(answer: RunAnswer, *, transcripts: PageTranscripts | None = None) -> str:
    """The report as a page, with what was said as far as there is room."""
    from passhat.reporters.html_page import render_html

    if transcripts is None and answer.transcripts is not None:
        from passhat.reporters.page_transcripts import fit_transcripts

        transcripts = fit_transcripts(answer.report, answer.transcripts, trials=answer.trials)
    floors = [_Judged(word=floor.word, sentence=floor.line) for floor in answer.floors]
    return render_html(
        answer.report,
        verdicts=(*_judged(answer), *floors),
        transcripts=transcripts,
        results=answer.results,
    )


def _judged(answer: RunAnswer) -> list[_Judged]:
    if not answer.verdicts:
        return []
    from passhat.reporters.verdict_blocks import beside_word

    return [_Judged(word=one.word, sentence=beside_word(one)) for one in answer.verdicts]


def failure_lines(answer: RunAnswer, *, most: int) -> list[str]:
    """The most frequent reasons: the task, how many trials, and why; the system where several.

    How many more there are, and where, is said at the end.
    """
    failures = answer.failures
    several = len({one.system for one in failures}) > 1
    lines = [
        f"{f'{one.system}, ' if several else ''}{one.task}, {plural(one.trials, 'trial')}: "
        f"{'error: ' if one.errored else ''}{one.reason[:LONGEST_REASON]}"
        for one in failures[:most]
    ]
    kept = "" if answer.results is None else " (`passhat view` shows every trial)"
    if len(failures) > most:
        more = plural(len(failures) - most, "more reason")
        lines.append(f"{more}: --json lists them all{kept}")
    if answer.unread:
        more = plural(answer.unread, "further failed trial")
        lines.append(f"{more}: why was not looked for{kept}")
    return lines


def _blocks(answer: RunAnswer) -> list[Block]:
    blocks: list[Block] = []
    for recovery in answer.recoveries:
        from passhat.reporters.recovery_blocks import recovery_blocks

        blocks += recovery_blocks(recovery)
    if answer.failures:
        told = failure_lines(answer, most=MOST_FAILURES)
        blocks.append(Steps("Why trials did not pass", tuple(map(Step, told))))
    if answer.undone:
        blocks.append(Paragraph("Undone", f"{answer.undone}."))
    return blocks


def _floor_lines(floors: Sequence[SelectionFloor], ink: Ink) -> list[str]:
    lines: list[str] = []
    for floor in floors:
        # One line, whatever the width: other programs read it.
        lines.append(safe_text(floor.line))
        lines += [ink.style(f"  {line}", "dim") for line in wrap(floor.detail, ink.width - 2)]
    return lines
