"""Verdicts for people: the answer first, then how sure it is, and on demand every step."""

from __future__ import annotations

from collections.abc import Sequence

from passhat.analysis.gates.plots import evidence_figure
from passhat.analysis.gates.sentences import opening
from passhat.analysis.gates.verdict import Verdict, Verdicts
from passhat.drawing import Figure
from passhat.messages import plural
from passhat.reporters.blocks import (
    Block,
    Headline,
    Paragraph,
    Table,
    blocks_markdown,
    blocks_text,
    escape_markdown,
)
from passhat.reporters.ink import Ink
from passhat.reporters.safe_text import safe_text, wrap
from passhat.stats.estimate import Estimate

_COLORS = {"PASS": "green", "FAIL": "red", "UNDECIDED": "magenta"}
_INDENT = "  "
_FIRST, _LAST = 10, 20
"""Steps shown at each end of a long decision log; JSON has them all."""


def render_verdicts(verdicts: Verdicts, ink: Ink | None = None, *, explain: bool = False) -> str:
    """The verdicts as text for a terminal; with `explain`, the log and the picture of each."""
    ink = ink or Ink()
    lines: list[str] = []
    if len(verdicts) != 1:
        lines += [ink.style(safe_text(verdicts.sentence), "bold"), ""]
    for verdict in verdicts:
        lines += [*_verdict_lines(verdict, ink), ""]
        if explain:
            lines += [*_explanation(verdict, ink), ""]
    return ink.finish(lines[:-1])


def render_verdicts_markdown(verdicts: Verdicts) -> str:
    """The verdicts as Markdown: a table a reviewer reads in one glance."""
    rows = tuple(
        (
            verdict.demand,
            verdict.system,
            verdict.word,
            _number(verdict),
            f"{verdict.runs:,}",
            _errors(verdict),
        )
        for verdict in verdicts
    )
    header = ("demand", "agent", "verdict", "seen", "runs", "wrong PASS / wrong FAIL")
    blocks: list[Block] = [
        Headline(verdicts.sentence),
        Table(header=header, rows=rows, left=(0, 1, 2)),
    ]
    if len(verdicts) > 1:
        lines = "\n".join(f"- {escape_markdown(verdict.sentence)}" for verdict in verdicts)
        return f"{blocks_markdown(blocks)}\n{lines}\n"
    return blocks_markdown(blocks)


def beside_word(verdict: Verdict) -> str:
    """The sentence of a verdict where its word already stands before it."""
    start = opening(verdict.gate, verdict.system, verdict.word)
    if not verdict.sentence.startswith(start):
        return verdict.sentence
    rest = verdict.sentence.removeprefix(start)
    comma = "," if rest.startswith(" after ") else ""
    return f"{start.removesuffix(f': {verdict.word}')}{comma}{rest}"


def _verdict_lines(verdict: Verdict, ink: Ink) -> list[str]:
    tint = _COLORS[verdict.word]
    first, *rest = wrap(safe_text(beside_word(verdict)), ink.width - 11, indent="")
    lines = [f"{ink.style(f'{verdict.word:<9}', 'bold', tint)}  {first}"]
    lines += [f"{'':<11}{line}" for line in rest]
    for text in _details(verdict):
        wrapped = wrap(safe_text(text), ink.width - 11)
        lines += [ink.style(f"{'':<11}{line}", "dim") for line in wrapped]
    return lines


def _details(verdict: Verdict) -> list[str]:
    details = [f"{_errors(verdict)}; {verdict.errors}."]
    if verdict.runs_saved:
        way = "saved" if verdict.runs_saved > 0 else "more than"
        count = plural(abs(verdict.runs_saved), "run")
        details.append(f"{count} {way} against the fixed design with the same error rates.")
    details += [f"{note}." for note in verdict.notes if note not in verdict.sentence]
    if verdict.gate.severity == "warning" and verdict.word != "PASS":
        details.append("A warning only: it does not change the exit code.")
    return details


def _errors(verdict: Verdict) -> str:
    if verdict.alpha is None and verdict.beta is None:
        return "no error rate"
    wrong_pass = "not stated" if verdict.alpha is None else f"at most {100 * verdict.alpha:.4g} %"
    wrong_fail = "not stated" if verdict.beta is None else f"at most {100 * verdict.beta:.4g} %"
    return f"wrong PASS {wrong_pass}, wrong FAIL {wrong_fail}"


def _number(verdict: Verdict) -> str:
    found = verdict.estimate
    if not isinstance(found, Estimate):
        return found.reason
    if found.interval is None:
        return f"{found.value:.4g}"
    return f"{found.value:.4g} [{found.interval.low:.4g}, {found.interval.high:.4g}]"


def _explanation(verdict: Verdict, ink: Ink) -> list[str]:
    """Everything that anybody needs to come to the same verdict by hand."""
    blocks: list[Block] = [Paragraph("Method", f"{verdict.method}. {_promise(verdict)}")]
    if verdict.seed is not None:
        blocks.append(Paragraph("Seed", f"{verdict.seed}: it alone decides which task is drawn."))
    if verdict.steps:
        blocks.append(_steps_table(verdict))
    elif verdict.tasks:
        blocks.append(_tasks_table(verdict))
    lines = blocks_text(blocks, ink).rstrip("\n").split("\n")
    figure = evidence_figure(verdict)
    if isinstance(figure, Figure):
        lines += ["", *(_INDENT + safe_text(line) for line in figure.text.split("\n"))]
    return lines


def _promise(verdict: Verdict) -> str:
    if verdict.evidence == "point":
        return "A bare point: no error rate is promised."
    gate = verdict.gate
    if verdict.evidence == "bound":
        return (
            f"One-sided bounds: the end a PASS rests on is missed with chance {gate.alpha:g}, "
            f"the other with chance {gate.beta:g}."
        )
    return (
        "Evidence multiplies from 1; a verdict falls when its logarithm reaches "
        f"-ln {gate.alpha:g} (PASS) or -ln {gate.beta:g} (FAIL), or the design's own boundary."
    )


def _steps_table(verdict: Verdict) -> Table:
    steps = verdict.steps
    rows = [
        (
            f"{step.number}",
            step.task,
            step.outcome,
            f"{step.log_pass:+.3f}",
            f"{step.pass_boundary:.3f}",
            f"{step.log_fail:+.3f}",
            f"{step.fail_boundary:.3f}",
        )
        for step in steps
    ]
    if len(rows) > _FIRST + _LAST:
        left_out = len(rows) - _FIRST - _LAST
        gap = ("...", f"{left_out:,} more (--json has all)", "", "", "", "", "")
        rows = [*rows[:_FIRST], gap, *rows[-_LAST:]]
    header = ("draw", "task", "runs", "for PASS", "needs", "for FAIL", "needs")
    return Table(header=header, rows=tuple(rows), left=(1, 2))


def _tasks_table(verdict: Verdict) -> Table:
    rows: Sequence[tuple[str, ...]] = [
        (
            task.task,
            f"{task.runs:,}",
            f"{task.passed:,}",
            f"{task.errored:,}",
            "-" if task.value is None else f"{task.value:.4f}",
            task.note,
        )
        for task in verdict.tasks
    ]
    header = ("task", "runs", "passed", "errored", "value", "")
    return Table(header=header, rows=tuple(rows), left=(0, 5))
