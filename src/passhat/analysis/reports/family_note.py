"""A note on the families of tasks: what they change, or what families nobody named would change.

The rule for the second: no family is given; the names of tasks up to their number, slash or colon,
or a single tag of each task, make at least 3 groups and leave at least 8 tasks beside one of each;
the means of groups differ by an F test and a permutation test at 0.05 %; and groups explain at
least a quarter of the variance between tasks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from passhat.analysis.reports.evidence import Evidence
from passhat.analysis.reports.parts import Metric
from passhat.messages import listed
from passhat.records import Trials
from passhat.records.trial import families_by_prefix
from passhat.stats.estimate import TASKS_LIKE_THESE, Estimate, Interval, Unavailable
from passhat.stats.population_bounds import FEWEST_FAMILIES
from passhat.stats.suite_mean import score_estimate
from passhat.stats.variance import families_differ, family_components

_FEWEST_GROUPS, _FEWEST_MORE_TASKS = 3, 8
_LEAST_SHARE = 0.25
_LEVEL = 0.0005
_LONGEST_NAME = 40

_Labels = Sequence[str | None]


def family_note(evidence: Evidence, trials: Trials | None, *, confidence: float) -> str | None:
    """What families that tags or names suggest would change; None unless the rule is met."""
    if evidence.family is not None or evidence.weight is not None:
        return None
    for source, labels in _candidates(evidence, trials):
        if _is_clear(evidence, labels):
            return _sentence(evidence, source, labels, confidence)
    return None


def given_families_note(mean: Metric) -> str | None:
    """Whose numbers they are: of families like these, or of tasks from these few families."""
    found = mean.tasks_like_these
    if not isinstance(found, Estimate) or found.families is None:
        return None
    if found.families >= FEWEST_FAMILIES:
        return f"numbers for tasks like these are for families like these {found.families}"
    start = f"tasks like these means tasks from these {found.families} families"
    if found.family_interval is None:
        return start
    return f"{start}; for other families the mean score is {_points(found.family_interval)}"


def _candidates(evidence: Evidence, trials: Trials | None) -> Iterator[tuple[str, _Labels]]:
    tags = None if trials is None else _single_tags(evidence, trials)
    if tags is not None:
        yield "tag", tags
    yield "start of their names", families_by_prefix(evidence.tasks)


def _single_tags(evidence: Evidence, trials: Trials) -> _Labels | None:
    """The tag of each task, where every task has one and the same in all trials."""
    if trials.tags is None or (trials.tags.codes < 0).any():
        return None
    pairs = np.unique(np.column_stack([trials.task.codes, trials.tags.codes]), axis=0)
    names = trials.tags.names
    if np.unique(pairs[:, 0]).size < len(pairs) or any("\0" in name for name in names):
        return None
    tag_of = {trials.task.names[task]: names[tag] for task, tag in pairs.tolist()}
    return [tag_of.get(name) for name in evidence.tasks]


def _is_clear(evidence: Evidence, labels: _Labels) -> bool:
    groups = len(set(labels) - {None}) + sum(label is None for label in labels)
    if groups < _FEWEST_GROUPS or len(labels) - groups < _FEWEST_MORE_TASKS:
        return False
    if not families_differ(evidence.score_total / evidence.runs, labels, level=_LEVEL):
        return False
    share = _explained(evidence, labels)
    return share is not None and share >= _LEAST_SHARE


def _explained(evidence: Evidence, labels: _Labels) -> float | None:
    sums = evidence.runs, evidence.score_total, evidence.score_squares
    split = family_components(*sums, family=labels)
    return None if isinstance(split, Unavailable) else split.family_share


def _sentence(evidence: Evidence, source: str, labels: _Labels, confidence: float) -> str:
    named = [label for label in dict.fromkeys(labels) if label is not None]
    share = _explained(evidence, labels) or 0.0
    start = (
        f"tasks differ by the {source} ({listed(named, 3, show=_cut)}), which explains about "
        f"{share:.0%} of the differences between them"
    ).replace("%", " %")
    now, then = (_population(evidence, family, confidence) for family in (None, labels))
    if now is None or then is None or now.interval is None:
        return f"{start}; `family` would count them as families"
    many = then.families is None or then.families >= FEWEST_FAMILIES
    wider = then.interval if many else then.family_interval
    change = f"{_points(wider)} instead of {_points(now.interval)}" if wider else "wider"
    whose = "tasks like these" if many else "other families like these"
    return f"{start}: as families (`family`) the mean score for {whose} is {change}"


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def _population(evidence: Evidence, family: _Labels | None, confidence: float) -> Estimate | None:
    found = score_estimate(
        evidence.runs,
        evidence.score_total,
        evidence.score_squares,
        scope=TASKS_LIKE_THESE,
        family=family,
        confidence=confidence,
    )
    return None if isinstance(found, Unavailable) else found


def _points(bounds: Interval) -> str:
    return f"[{100 * bounds.low:.1f}, {100 * bounds.high:.1f}]"
