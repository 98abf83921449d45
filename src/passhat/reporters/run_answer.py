"""The answer of a run: its report, why trials did not pass, and what was demanded of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypedDict

from passhat.analysis.recovery import Recovery
from passhat.analysis.report import Report
from passhat.analysis.tool_selection import SelectionFloor
from passhat.analysis.verdict import Verdicts, Word
from passhat.errors import plural
from passhat.reporters.blocks import (
    Block,
    Paragraph,
    Steps,
    blocks_markdown,
    blocks_text,
)
from passhat.reporters.html_page import TranscriptKey, render_html
from passhat.reporters.ink import Ink
from passhat.reporters.json_report import (
    IntervalObject,
    ReportObject,
    interval_object,
    plain,
    report_object,
    to_json,
)
from passhat.reporters.markdown import render_markdown
from passhat.reporters.recovery_blocks import recovery_blocks
from passhat.reporters.safe_text import safe_text, wrap
from passhat.reporters.terminal import render_terminal
from passhat.reporters.verdict_blocks import render_verdicts, render_verdicts_markdown
from passhat.reporters.verdict_json import VerdictObject, verdict_object

SCHEMA: Literal["passhat.run/1"] = "passhat.run/1"
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
    """Everything that a run says when it is over. `undone` is what an early end left out.

    What decides where there is no gate: the tasks in `quarantined` (with the reason) are not
    judged, those in `floored` by their floor alone, the systems in `exempt` (under faults) not at
    all. `nothing_ran` says that every trial errored, `incomplete` why a run that no demand failed
    has not passed either.
    """

    report: Report
    verdicts: Verdicts | None = None
    floors: tuple[SelectionFloor, ...] = ()
    recoveries: tuple[Recovery, ...] = ()
    failures: tuple[Failure, ...] = ()
    undone: str | None = None
    transcripts: Mapping[TranscriptKey, str] | None = None
    quarantined: Mapping[str, str] = field(default_factory=dict)
    floored: frozenset[str] = frozenset()
    exempt: frozenset[str] = frozenset()
    nothing_ran: bool = False
    incomplete: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """A floor as the page shows gates."""

    word: str
    sentence: str


class FloorObject(TypedDict):
    """Whether an agent's runs keep to the floor under tool selection."""

    verdict: str
    task: str
    tool: str
    selected: int
    runs: int
    rate: float
    interval: IntervalObject | None
    bound: float
    max_tokens: int | None
    line: str


class RunObject(TypedDict):
    """What a run says when it is over: report, verdicts, why trials did not pass."""

    schema: Literal["passhat.run/1"]
    verdict: Word | None
    verdicts: list[VerdictObject]
    floors: list[FloorObject]
    failures: list[Failure]
    recovery: list[Recovery]
    undone: str | None
    report: ReportObject


def render_run(answer: RunAnswer, ink: Ink | None = None) -> str:
    """The report, then what follows from it: what is last on a terminal is read first."""
    ink = ink or Ink()
    parts = [render_terminal(answer.report, ink)]
    if after := _blocks(answer):
        parts.append(blocks_text(after, ink))
    if answer.verdicts:
        parts.append(render_verdicts(answer.verdicts, ink))
    if answer.floors:
        parts.append(ink.finish(_floor_lines(answer.floors, ink)))
    return "\n".join(parts)


def render_run_json(answer: RunAnswer) -> str:
    """The report and the verdicts as JSON: schema "passhat.run/1"."""
    found: RunObject = {
        "schema": SCHEMA,
        "verdict": None if answer.verdicts is None else answer.verdicts.word,
        "verdicts": [verdict_object(verdict) for verdict in answer.verdicts or ()],
        "floors": [_floor_object(floor) for floor in answer.floors],
        "failures": plain(answer.failures),
        "recovery": plain(answer.recoveries),
        "undone": answer.undone,
        "report": report_object(answer.report),
    }
    return to_json(found)


def render_run_markdown(answer: RunAnswer) -> str:
    """The verdicts, then the report: what a reviewer wants to know first."""
    parts = [render_verdicts_markdown(answer.verdicts)] if answer.verdicts else []
    if answer.floors:
        lines = (f"- `{safe_text(floor.line).replace('`', ' ')}`" for floor in answer.floors)
        parts.append("\n".join(lines) + "\n")
    parts.append(render_markdown(answer.report))
    if after := _blocks(answer):
        parts.append(blocks_markdown(after))
    return "\n".join(parts)


def render_run_html(answer: RunAnswer) -> str:
    """The report as a page."""
    floors = [_Judged(word=floor.word, sentence=floor.line) for floor in answer.floors]
    return render_html(
        answer.report,
        verdicts=(*(answer.verdicts or ()), *floors),
        transcripts=answer.transcripts,
    )


def _blocks(answer: RunAnswer) -> list[Block]:
    blocks: list[Block] = [
        block for recovery in answer.recoveries for block in recovery_blocks(recovery)
    ]
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


def _floor_lines(floors: Sequence[SelectionFloor], ink: Ink) -> list[str]:
    lines: list[str] = []
    for floor in floors:
        # One line, whatever the width: other programs read it.
        lines.append(safe_text(floor.line))
        lines += [ink.style(f"  {line}", "dim") for line in wrap(floor.detail, ink.width - 2)]
    return lines


def _floor_object(floor: SelectionFloor) -> FloorObject:
    return {
        "verdict": floor.word,
        "task": floor.label,
        "tool": floor.demand.expected_tool,
        "selected": floor.selected,
        "runs": floor.runs,
        "rate": floor.rate,
        "interval": interval_object(floor.interval),
        "bound": floor.bound,
        "max_tokens": floor.max_tokens,
        "line": floor.line,
    }
