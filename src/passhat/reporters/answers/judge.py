"""The judge that graded: how often people agree with it, and where it errs."""

from __future__ import annotations

from typing import Any

from passhat.analysis.gates.gate import percentage
from passhat.analysis.reports.judged import JudgeCheck
from passhat.messages import capitalised, plural
from passhat.reporters.answer import Answer, Block, DisplayOptions, Headline, Records, Remark, Table
from passhat.reporters.data import JsonShape
from passhat.reporters.formatting import end_cells, percent, short, span
from passhat.stats.estimate import Estimate, Number, Unavailable

_ROWS = {
    "agreement": "agrees with people",
    "false_passes": "passed, but people fail it",
    "false_fails": "failed, but people pass it",
}

_SAYS_NOTHING = (
    "It may do no better than chance (kappa 0): numbers corrected for it rest on the labels alone."
)


class JudgeAnswer(Answer[JudgeCheck]):
    """Can this judge be trusted?"""

    name = "judge"

    def title(self) -> str:
        return "The judge against people"

    def blocks(self, options: DisplayOptions) -> list[Block]:
        check = self.result
        rates = {words: getattr(check.errors, name) for name, words in _ROWS.items()}
        rows = [
            (words, *_cells(rate)) for words, rate in rates.items() if isinstance(rate, Estimate)
        ]
        kappa = check.errors.kappa
        ends = kappa.interval if isinstance(kappa, Estimate) else None
        if isinstance(kappa, Estimate) and ends is not None:
            rows.append(("kappa", f"{kappa.value:.2f}", f"[{ends.low:.2f}, {ends.high:.2f}]", ""))
        header = ("", "value", f"{percentage(check.confidence)} CI", "labels")
        blocks: list[Block] = [
            Headline(verdict(check)),
            Table(header=header, rows=tuple(rows), left=(0, 2)),
        ]
        worst = ", ".join(f"{short(task)} {wrong} of {read}" for task, wrong, read in check.tasks)
        texts = [
            *(
                f"{capitalised(words)}: {rate.reason}."
                for words, rate in rates.items()
                if isinstance(rate, Unavailable)
            ),
            _SAYS_NOTHING if ends is not None and 0 in ends else "",
            f"Tasks where it errs most: {worst}." if worst else "",
            *(f"{capitalised(sentence)}." for sentence in check.where),
            _people(check),
            *(f"{capitalised(note)}." for note in check.notes),
            f"{plural(check.unused, 'more label is', 'more labels are')} of trials that nobody "
            "chose at random, and not counted."
            if check.unused
            else "",
        ]
        return [*blocks, *(Remark(text) for text in texts if text)]

    def rows(self) -> Records:
        return [_row(name, getattr(self.result.errors, name)) for name in (*_ROWS, "kappa")]

    def data(self) -> Any:
        return JUDGE(self.result)


def verdict(check: JudgeCheck) -> str:
    """The answer in one sentence."""
    errors = check.errors
    read = f"people read {check.labels:,} of {plural(check.trials, 'trial')}"
    passes, fails = errors.false_passes, errors.false_fails
    if not isinstance(passes, Estimate) or not isinstance(fails, Estimate):
        return f"Too few labels to say how far the judge can be trusted: {read}."
    wrong = f"{percent(passes.value)} of what the judge passes is wrong"
    return f"{wrong}, and {percent(fails.value)} of what it fails: {read}."


def _cells(number: Estimate) -> tuple[str, str, str]:
    return percent(number.value, digits=1), span(number.interval) or "-", f"{number.runs or 0:,}"


def _people(check: JudgeCheck) -> str:
    kappa = check.people_agreement
    if not isinstance(kappa, Estimate):
        if len(check.people) < 2:
            return "One person labelled: how far people agree is not known."
        return f"How far people agree with one another is not known: {kappa.reason}."
    shared = plural(kappa.runs or 0, "trial")
    return f"People agree with one another with kappa {kappa.value:.2f} ({shared} read twice)."


def _row(name: str, number: Number) -> dict[str, object]:
    known = number if isinstance(number, Estimate) else None
    return {
        "number": name,
        "value": None if known is None else known.value,
        **end_cells("confidence", None if known is None else known.interval),
        "labels": None if known is None else known.runs,
    }


JUDGE = JsonShape(
    "judge",
    JudgeCheck,
    "How far a judge and people agree; `where` says where it errs, tested.",
    "schema verdict trials labels unused passed_by_judge errors people people_agreement tasks "
    "where notes",
    verdict=verdict,
)
