"""A comparison whose intervals and answers include what moved runs together: seeds, outages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from passhat.analysis.comparing.differences import Difference
from passhat.analysis.reports.disturbances import disturbance_sentence
from passhat.analysis.reports.metrics import measure_metrics
from passhat.analysis.reports.provenance import ReportOptions
from passhat.analysis.reports.subject import Subject
from passhat.dataclass import dataclass
from passhat.records import Trials
from passhat.stats.dependent_runs import Arms, excess, longer_arms
from passhat.stats.estimate import Estimate, Interval, Unavailable
from passhat.stats.paired import Answer, PairedDifference
from passhat.stats.special import ndtr, ndtri

_Excess = Mapping[str, Arms]
"""By metric, how much the arms of an interval grow, as squares add up."""

_Found = TypeVar("_Found", bound=PairedDifference | Estimate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """Differences that include what moved runs together, and the sentences about it."""

    differences: dict[str, Difference]
    notes: tuple[str, ...] = ()


def including_what_moved(
    differences: dict[str, Difference],
    tables: tuple[Trials, Trials] | None,
    options: ReportOptions,
    margin: float | None,
) -> Moved:
    """The differences with what seeds and disturbances of both sides add to their intervals."""
    if tables is None:
        return Moved(differences=differences)
    sides = [Subject.of(one, errors=options.errors) for one in tables]
    notes = [
        f"{side.name}: {sentence.rstrip('.')}"
        for side in sides
        if (sentence := disturbance_sentence(side.disturbances))
    ]
    why = dict.fromkeys(one.note for side in sides for one in side.groupings)
    level, nothing = options.confidence, (0.0, 0.0)
    first, second = (_side_excess(side, list(differences), confidence=level) for side in sides)
    more = {
        name: _difference_arms(first.get(name, nothing), second.get(name, nothing))
        for name in differences
    }
    return Moved(
        differences={
            name: wider(found, more[name], more[name], "; ".join(why), margin)
            for name, found in differences.items()
        },
        notes=tuple(notes),
    )


def wider(
    found: Difference, on_suite: Arms, on_alike: Arms, note: str, margin: float | None
) -> Difference:
    """A difference with independent errors added to its intervals in both scopes."""
    suite, alike = found.this_suite, found.tasks_like_these
    if not isinstance(suite, Unavailable):
        suite = _with_added(suite, on_suite, note, margin)
    if not isinstance(alike, Unavailable):
        alike = _with_added(alike, on_alike, note, margin)
    return replace(found, this_suite=suite, tasks_like_these=alike)


def _side_excess(subject: Subject, names: Sequence[str], *, confidence: float) -> _Excess:
    """What seeds and disturbances add to each metric of one system."""
    if not subject.groupings:
        return {}
    ks = [int(name[5:]) for name in names if name != "mean_score"] or [1]
    plain = measure_metrics(subject.evidence, ks, confidence=confidence)
    wide = measure_metrics(subject.evidence, ks, confidence=confidence, groupings=subject.groupings)
    grown = {}
    for name in names:
        before, after = plain[name].this_suite, wide[name].this_suite
        if isinstance(before, Estimate) and isinstance(after, Estimate):
            grown[name] = excess(before, after)
    return grown


def _difference_arms(first: Arms, second: Arms) -> Arms:
    """What two independent sides add to their difference: the far arm of the second is its low."""
    return float(np.hypot(first[0], second[1])), float(np.hypot(first[1], second[0]))


def _with_added(found: _Found, more: Arms, note: str, margin: float | None) -> _Found:
    """A difference with independent errors added to its interval, and the answer that it leaves."""
    if more == (0.0, 0.0) or found.interval is None:
        return found
    interval = longer_arms(found.interval, found.value, more)
    notes = (*found.notes, note)
    if isinstance(found, Estimate):
        return replace(found, interval=interval, notes=notes)
    return replace(
        found,
        interval=interval,
        answer=_answer_left(found.answer, interval, margin),
        p_value=_larger_p(found, interval),
        notes=notes,
    )


def _answer_left(answer: Answer, interval: Interval, margin: float | None) -> Answer:
    if answer in ("better", "worse") and 0 in interval:
        return "undecided"
    if answer == "equivalent":
        within = margin is not None and -margin < interval.low and interval.high < margin
        return "equivalent" if within else "undecided"
    return answer


def _larger_p(found: PairedDifference, interval: Interval) -> float:
    """The p-value when the arm towards 0 is longer: as many fewer standard errors away."""
    old, new = (
        (found.value - i.low) if found.value > 0 else (i.high - found.value)
        for i in (found.interval, interval)
    )
    if not 0 < found.p_value < 1 or new <= old or old <= 0:
        return found.p_value
    distance = float(-ndtri(found.p_value / 2)) * old / new
    return float(2 * ndtr(-distance))
