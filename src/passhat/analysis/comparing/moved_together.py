"""A comparison whose intervals and answers include what moved runs together: seeds, outages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from passhat.analysis.comparing.differences import Difference
from passhat.analysis.reports.disturbances import (
    Disturbance,
    disturbance_sentence,
    find_disturbances,
)
from passhat.analysis.reports.evidence import gather
from passhat.analysis.reports.grouped_metrics import RunGroups, groupings_of
from passhat.analysis.reports.metrics import measure_metrics
from passhat.analysis.reports.provenance import ReportOptions
from passhat.fast_dataclass import dataclass
from passhat.records import ErrorPolicy, Trials
from passhat.stats.estimate import Estimate, Interval, Unavailable
from passhat.stats.group_spread import Arms, excess, longer_arms
from passhat.stats.paired import Answer, PairedDifference
from passhat.stats.special import ndtr, ndtri

Excess = Mapping[str, Arms]
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
    names = list(differences)
    level, policy = options.confidence, options.errors
    sides = [side_excess(one, names, confidence=level, errors=policy) for one in tables]
    notes = [
        f"{table.systems[0]}: {sentence.rstrip('.')}"
        for table, (_, found, _) in zip(tables, sides, strict=True)
        if (sentence := disturbance_sentence(found))
    ]
    why = dict.fromkeys(one.note for _, _, groupings in sides for one in groupings)
    nothing: Arms = (0.0, 0.0)
    more = {
        name: difference_arms(*(grown.get(name, nothing) for grown, _, _ in sides))
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


def shared_part(trials: Trials, shared: Sequence[str]) -> Trials:
    """The trials of one system on the tasks that both ran."""
    codes = [trials.task.code(name) for name in shared]
    return trials.take(np.isin(trials.task.codes, codes))


def side_excess(
    trials: Trials, names: Sequence[str], *, confidence: float, errors: ErrorPolicy
) -> tuple[Excess, tuple[Disturbance, ...], tuple[RunGroups, ...]]:
    """What seeds and disturbances add to each metric of one system, and what was seen."""
    found = find_disturbances(trials, errors)
    groupings = groupings_of(trials, errors, disturbed=bool(found))
    if not groupings:
        return {}, found, ()
    evidence = gather(trials.tally(), errors)
    ks = [int(name[5:]) for name in names if name != "mean_score"] or [1]
    plain = measure_metrics(evidence, ks, confidence=confidence)
    wide = measure_metrics(evidence, ks, confidence=confidence, groupings=groupings)
    grown = {}
    for name in names:
        before, after = plain[name].this_suite, wide[name].this_suite
        if isinstance(before, Estimate) and isinstance(after, Estimate):
            grown[name] = excess(before, after)
    return grown, found, groupings


def difference_arms(first: Arms, second: Arms) -> Arms:
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
