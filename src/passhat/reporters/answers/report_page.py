"""What the page of a report shows beyond its sentences: figures, tables of tasks, transcripts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from passhat.analysis.reports.report import Report, SystemReport
from passhat.drawing import lines
from passhat.drawing.figure import WIDTH
from passhat.drawing.lines import Scale
from passhat.records.trial import run_number
from passhat.reporters import headline, wording
from passhat.reporters.answer_kind import DisplayOptions
from passhat.reporters.answers.explanation_blocks import category_words, why_section
from passhat.reporters.answers.report_blocks import origin, report_figures, system_blocks
from passhat.reporters.answers.several_page import (
    RunLink,
    RunLinks,
    at_each_k,
    effort_table,
    system_facts,
    tag_table,
    tasks_together,
)
from passhat.reporters.blocks import Block, Chip, Judged, Paragraph
from passhat.reporters.glossary import meaning
from passhat.reporters.next_steps import next_steps, results_of
from passhat.reporters.numbers import both_intervals, percent, percent_range
from passhat.reporters.page_layout import headline_parts
from passhat.reporters.page_transcripts import (
    LETTERS,
    PageTranscripts,
    fit_transcripts,
    outcomes_of,
)
from passhat.stats.estimate import TASKS_LIKE_THESE, THIS_SUITE, Estimate

if TYPE_CHECKING:
    from passhat.analysis.explaining.explain import Explanation


_RULES = ("Labels", "Verdict")
_EXPLAINED = ("luck", "ICC", "correlation with passing")


def page_of(
    report: Report,
    options: DisplayOptions,
    *,
    gates: Sequence[Judged] = (),
    after: Sequence[Block] = (),
) -> Mapping[str, Any]:
    """The values of the template; transcripts are shown run by run, rendered when asked for.

    If they may be too many for a page, `fit_transcripts` chooses among them.
    """
    said = options.transcripts
    if not isinstance(said, PageTranscripts):
        said = fit_transcripts(report, said or {}, trials=options.trials)
    many, why = len(report.systems) > 1, options.explanation
    shown = _by_task(said, report, options)
    return {
        "subject": "reliability report",
        "chip": headline.overview_chip(report) if many else headline.chip(report.systems[0]),
        "hero": None if many else hero_numbers(report.systems[0]),
        "facts": system_facts(report) if many else [],
        "at_k": at_each_k(report) if many else None,
        "change": options.change,
        "reasons": {} if why is None else reasons_by_task(why),
        "figures": report_figures(report) if many else {},
        "by_tag": tag_table(report) if many else None,
        "together": tasks_together(report, shown) if many else None,
        "report": report,
        "steps": {
            s.name: next_steps(
                s, results_of(report, s, options.results), options.more_runs, options.wording
            )
            for s in report.systems
        },
        "many": many,
        "answer": headline.opening(report),
        "gates": gates,
        "after": [*after, *([] if why is None else why_section(why))],
        "effort": effort_table(report) if many else None,
        "sentences": {s.name: page_sentences(s, among=many) for s in report.systems},
        "transcripts": shown,
        "blocks": said.blocks,
        "packed": len(said.places),
        "cut": said.cut_note,
        "left_out": said.left_out_note,
        "origin": origin(report),
    }


def hero_numbers(system: SystemReport) -> dict[str, Any] | None:
    """What the slider of k shows at each k: numbers and places for the gauge, and all words.

    Beyond the runs there are, the value is the model's, and no interval of this suite is shown.
    """
    chosen = wording.headline_k(system)
    known = [_at_k(system, k) for k in system.ks if system.pass_hat(k).value is not None]
    if not known:
        return None
    known += [
        _not_measured(p.k, p.estimate)
        for p in system.decay.beyond
        if p.k > known[-1]["k"] and isinstance(p.estimate, Estimate)
    ]
    for one in known:
        k = one["k"]
        one["name"] = "one try (reliability@1)" if k == 1 else f"{k} in a row (reliability@{k})"
        one |= _place_on_curve(system, k)
    start = next((i for i, one in enumerate(known) if one["k"] == chosen), 0)
    return {"ks": known, "start": start, "now": known[start]}


def _place_on_curve(system: SystemReport, k: int) -> dict[str, float]:
    """Where k is in the picture of the curve, so that the slider can mark it there."""
    shown = [p.k for p in system.decay.pass_hat if isinstance(p.estimate, Estimate)]
    if len(shown) < 2:
        return {}
    shown += [p.k for p in system.decay.beyond if p.k <= 2 * shown[-1]]
    scale = Scale(low=shown[0], high=max(shown), start=lines.LEFT, stop=WIDTH - lines.RIGHT)
    return {"x": round(scale(k), 1)} if shown[0] <= k <= max(shown) else {}


def _at_k(system: SystemReport, k: int) -> dict[str, Any]:
    metric = system.pass_hat(k)
    both = both_intervals(metric)
    scopes = (("suite", THIS_SUITE), ("like", TASKS_LIKE_THESE))
    return {
        "k": k,
        "value": metric.value,
        "shown": percent(metric.value, digits=1),
        **{name: one and [one.low, one.high] for (name, _), one in zip(scopes, both, strict=True)},
        "intervals": [
            (name, f"{scope} {percent_range(one, digits=1)}")
            for (name, scope), one in zip(scopes, both, strict=True)
            if one is not None
        ],
        "model": False,
        "answer": headline_parts(headline.verdict(system, k=k)),
        "chip": _shown_chip(headline.chip(system, k=k)),
    }


def _not_measured(k: int, estimate: Estimate) -> dict[str, Any]:
    answer = f"{k} in a row was not measured: a model of these runs puts it at about "
    return {
        "k": k,
        "value": estimate.value,
        "shown": f"≈ {percent(estimate.value, digits=1)}",
        "suite": None,
        "like": None,
        "intervals": [("", "extrapolated by a model, not measured")],
        "model": True,
        "answer": headline_parts(f"{answer}{percent(estimate.value)}."),
        "chip": _shown_chip(Chip("Not measured", "none")),
    }


def _shown_chip(chip: Chip) -> list[str]:
    return [chip.tone, f"{chip.sign} {chip.words}"]


def reasons_by_task(explanation: Explanation) -> dict[tuple[str, str], str]:
    """What went wrong in most failed runs of each task, in the words of the categories."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for category in explanation.categories:
        words = category_words(category).removesuffix(": nothing to compare with")
        for system, task, _ in category.runs:
            counts.setdefault((system, task), Counter())[words] += 1
    return {key: found.most_common(1)[0][0] for key, found in counts.items()}


def page_sentences(system: SystemReport, *, among: bool = False) -> list[Paragraph]:
    """The sentences of a report on one system that its page does not show as figures or tables.

    `among` several systems, rules and the meaning of terms are not repeated for each.
    """
    blocks = system_blocks(system, DisplayOptions(results=None, verbose=True))
    found = [block for block in blocks if isinstance(block, Paragraph) and block.label]
    if not among:
        return found
    kept = [_without_meanings(one) for one in found if one.label not in _RULES]
    return [one for one in kept if one.text]


def _without_meanings(one: Paragraph) -> Paragraph:
    """A sentence without the meaning of its terms, which the page has in its list of words."""
    text = one.text
    for term in _EXPLAINED:
        text = text.replace(meaning(term), "")
    return replace(one, text=" ".join(text.split()))


def _by_task(said: PageTranscripts, report: Report, options: DisplayOptions) -> RunLinks:
    """The transcripts of each task: the number and the mark of a run, and where its words are."""
    outcomes = outcomes_of(report, list(said.texts), options.trials) if said.texts else {}
    found: dict[tuple[str, str], list[RunLink]] = {}
    for key, page in said.texts.items():
        system, task, trial = key
        block, place = said.places.get(key, (0, 0))
        link = RunLink(
            title=run_number(trial, options.first_trial),
            mark=LETTERS.get(outcomes.get(key), ""),
            place="" if key in said.written else f"{block}.{place}",
            page=page if key in said.written else "",
        )
        found.setdefault((system, task), []).append(link)
    return found
