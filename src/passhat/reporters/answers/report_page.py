"""What the page of a report shows beyond its sentences: figures, tables of tasks, transcripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from passhat.analysis.reports.report import Report
from passhat.analysis.reports.system_report import SystemReport
from passhat.reporters import wording
from passhat.reporters.answer_kind import Options
from passhat.reporters.answers.explanation_blocks import why_section
from passhat.reporters.answers.report_blocks import origin, system_blocks
from passhat.reporters.blocks import Block, Judged, Paragraph
from passhat.reporters.next_steps import results_of
from passhat.reporters.page_transcripts import PageTranscripts, embedded, fit_transcripts


def page_of(
    report: Report, options: Options, *, gates: Sequence[Judged] = (), after: Sequence[Block] = ()
) -> Mapping[str, Any]:
    """The values of the template; transcripts are shown run by run, rendered when asked for.

    Where they may be too many for a page, `fit_transcripts` chooses among them.
    """
    said = options.transcripts
    if not isinstance(said, PageTranscripts):
        said = fit_transcripts(report, said or {}, trials=options.trials)
    many, why = len(report.systems) > 1, options.explanation
    return {
        "report": report,
        "results": {s.name: results_of(report, s, options.results) for s in report.systems},
        "many": many,
        "answer": wording.overview(report) if many else wording.verdict(report.systems[0]),
        "gates": gates,
        "after": [*after, *([] if why is None else why_section(why))],
        "sentences": {s.name: page_sentences(s) for s in report.systems},
        "transcripts": _by_task(said, options.first_trial),
        "stored": ", ".join(map(embedded, said.texts.values())),
        "cut_at": said.cut_at if said.cut else None,
        "left_out": said.left_out_note,
        "origin": origin(report),
    }


def page_sentences(system: SystemReport) -> list[Paragraph]:
    """The sentences of a report on one system that its page does not show as figures or tables."""
    blocks = system_blocks(system, Options(results=None, verbose=True))
    return [block for block in blocks if isinstance(block, Paragraph) and block.label]


def _by_task(
    said: PageTranscripts, first_trial: int
) -> dict[tuple[str, str], list[tuple[int, str, bool]]]:
    """Of each task: where its transcripts are stored, their titles, and which came as turns."""
    found: dict[tuple[str, str], list[tuple[int, str, bool]]] = {}
    for index, key in enumerate(said.texts):
        system, task, trial = key
        title = f"run {trial - first_trial + 1}"
        found.setdefault((system, task), []).append((index, title, key in said.turns))
    return found
