"""Numbers of judged trials as people would have graded them, from the labels there are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from passhat.analysis.reports.evidence import Evidence
from passhat.analysis.reports.parts import Corrected, Metric, SystemReport, headline_k
from passhat.arguments import CONFIDENCE
from passhat.dataclass import Displayed, dataclass
from passhat.messages import plural, short, short_repr
from passhat.records import ErrorPolicy, Outcome, Tally, Trials
from passhat.records.columns import AT_RANDOM, BY_TASK, BY_VERDICT
from passhat.records.labels import Label, labelled_rows
from passhat.stats.estimate import (
    TASKS_LIKE_THESE,
    THIS_SUITE,
    Estimate,
    Number,
    Scope,
    Unavailable,
    at_least_as_wide,
)
from passhat.stats.judged import (
    FEWEST_LABELS,
    JudgeErrors,
    Labels,
    Verdicts,
    corrected_pass_hat,
    corrected_pass_rate,
    judge_errors,
    limits_of_pass_hat,
)

LEAST_AGREEMENT = 0.667
"""Below this kappa people do not mean the same, and no number is corrected with their labels.

Krippendorff (2004, p. 241): the lowest conceivable limit; from 0.8 on data are reliable."""

FEWEST_SHARED = 20
"""Trials that two people must have labelled before their agreement decides anything."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelEvidence:
    """What people say of the trials of one system, beside the verdicts of all of them.

    `single` are labels of trials that were chosen one by one at random, `whole` those of tasks that
    were. `unused` counts labels of trials that somebody picked, and `people` who labelled.
    """

    verdicts: Verdicts
    single: Labels
    whole: Labels
    unused: int
    people: tuple[str, ...]
    twice: tuple[tuple[bool, bool], ...]

    @property
    def used(self) -> int:
        return len(self.single) + len(self.whole)

    @property
    def disagreement(self) -> Unavailable | None:
        """Why labels correct nothing, if the people who gave them do not agree."""
        kappa = kappa_of(self.twice)
        if len(self.twice) < FEWEST_SHARED or kappa is None or kappa >= LEAST_AGREEMENT:
            return None
        shared = plural(len(self.twice), "trial")
        return Unavailable(
            f"people agree too little on the {shared} that two of them labelled (kappa "
            f"{kappa:.2f}): settle what passes, and label these again"
        )

    def number(self, k: int, scope: Scope, confidence: float) -> Number:
        """pass^k as people would have graded it (pass@1 for k = 1)."""
        if (reason := self.disagreement) is not None:
            return reason
        if self.unused and not self.used:
            return Unavailable(
                f"{plural(self.unused, 'label does', 'labels do')} not say how the trial was "
                "chosen, and only trials chosen at random say something of the others"
            )
        if k > 1:
            return corrected_pass_hat(self.verdicts, self.whole, k, confidence=confidence)
        found = corrected_pass_rate(self.verdicts, self.single, scope=scope, confidence=confidence)
        if isinstance(found, Unavailable) and len(self.whole):
            by_task = corrected_pass_hat(self.verdicts, self.whole, 1, confidence=confidence)
            return by_task or found
        return found


def label_evidence(
    trials: Trials | None, tally: Tally, evidence: Evidence, errors: ErrorPolicy
) -> LabelEvidence | None:
    """The labels of one system's trials; None if there are none."""
    if trials is None or trials.human_labels is None:
        return None
    found = labelled_rows(trials.human_labels)
    outcome = trials.outcome[found.row]
    place = {name: i for i, name in enumerate(evidence.tasks)}
    names = trials.task.names
    at = np.array([place.get(names[code], -1) for code in trials.task.codes[found.row]], np.intp)
    # An errored trial has no verdict that a label could be compared with.
    fit = (outcome != Outcome.ERRORED) & (at >= 0)
    chosen = np.array([way or "" for way in found.chosen], dtype=object)
    rows = evidence.rows
    errored = tally.errored[rows]

    def labels(mask: NDArray[np.bool_]) -> Labels:
        kept = fit & mask
        return Labels(
            task=at[kept], verdict=outcome[kept] == Outcome.PASSED, passed=found.passed[kept]
        )

    return LabelEvidence(
        verdicts=Verdicts(
            passed=tally.passed[rows],
            failed=tally.failed[rows],
            errored=errored if errors == "fail" else np.zeros_like(errored),
            weight=evidence.weight,
            family=evidence.family,
        ),
        single=labels((chosen == AT_RANDOM) | (chosen == BY_VERDICT)),
        whole=labels(chosen == BY_TASK),
        unused=int(np.count_nonzero(chosen == "")),
        people=tuple(dict.fromkeys(one.by for own in found.labels for one in own)),
        twice=tuple(_pair(own) for own in found.labels if len(own) > 1),
    )


def with_corrections(
    metrics: Mapping[str, Metric], labels: LabelEvidence | None, *, confidence: float
) -> dict[str, Metric]:
    """The metrics, pass^k each with what labels make of it."""
    if labels is None:
        return dict(metrics)
    rate = {scope: labels.number(1, scope, confidence) for scope in (THIS_SUITE, TASKS_LIKE_THESE)}
    rate[TASKS_LIKE_THESE] = at_least_as_wide(rate[TASKS_LIKE_THESE], rate[THIS_SUITE])
    found = {}
    for name, metric in metrics.items():
        if name in ("pass^1", "pass@1") or (name == "mean_score" and _is_pass_rate(metrics)):
            both = rate[THIS_SUITE], rate[TASKS_LIKE_THESE]
        elif name.startswith("pass^"):
            number = labels.number(int(name[5:]), TASKS_LIKE_THESE, confidence)
            both = number, number
        else:
            found[name] = metric
            continue
        corrected = Corrected(
            this_suite=both[0], tasks_like_these=both[1], limits=None, labels=labels.used
        )
        here = rate[THIS_SUITE]
        if name.startswith("pass^") and not both[0] and isinstance(here, Estimate):
            corrected = replace(corrected, limits=limits_of_pass_hat(here, int(name[5:])))
        found[name] = replace(metric, corrected=corrected)
    return found


def as_people_grade(system: SystemReport) -> SystemReport:
    """The system with its corrected numbers in the place of the judge's, where there are any.

    What labels cannot correct has no number; notes say what the judge's own number is.
    """
    rate = system.metrics.get("pass^1")
    if rate is None or rate.corrected is None:
        return system
    notes = _notes(system, rate, rate.corrected)
    if not rate.corrected.this_suite:
        return replace(system, notes=(*notes, *system.notes))
    metrics = {}
    for name, metric in system.metrics.items():
        own = metric.corrected
        none = Unavailable(f"labels correct pass@1 and pass^k, not {name}")
        metrics[name] = replace(
            metric,
            this_suite=none if own is None else own.this_suite,
            tasks_like_these=none if own is None else own.tasks_like_these,
        )
    return replace(system, metrics=metrics, notes=(*notes, *system.notes))


def _notes(system: SystemReport, rate: Metric, corrected: Corrected) -> list[str]:
    if isinstance(corrected.this_suite, Unavailable):
        return [f"labels of people do not correct these numbers yet: {corrected.this_suite.reason}"]
    notes = [] if rate.value is None else [f"by the judge pass@1 is {100 * rate.value:.1f}%"]
    streak = system.metrics[f"pass^{headline_k(system)}"]
    found = streak.corrected
    if found is not None and found.limits and isinstance(found.this_suite, Unavailable):
        low, high = (f"{100 * end:.0f}%" for end in (found.limits.low, found.limits.high))
        way = f"for a number {found.this_suite.reason}"
        notes.append(f"{streak.name} lies between {low} and {high}, whatever the judge; {way}")
    return notes


# The judge itself: how often it is wrong, and where.

_PERMUTATIONS = 2_000
_NOTABLE = 0.05
_MOST_TASKS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCheck(Displayed):
    """What labels of people show of the judge that graded some trials.

    `where` says where it errs, one sentence each; `people` how far people agree with one another.
    """

    trials: int
    labels: int
    unused: int
    errors: JudgeErrors
    passed_by_judge: float
    people: tuple[str, ...]
    people_agreement: Number
    tasks: tuple[tuple[str, int, int], ...]
    where: tuple[str, ...]

    def __repr__(self) -> str:
        return short_repr("JudgeCheck", plural(self.labels, "label"), see=".errors, .where")


def check_judge(trials: Trials, *, confidence: float = CONFIDENCE) -> JudgeCheck | Unavailable:
    """How far the verdicts of these trials and the labels of people agree."""
    found = labelled_rows(trials.human_labels)
    graded = trials.outcome != Outcome.ERRORED
    chosen = np.array([way is not None for way in found.chosen], dtype=bool)
    kept = graded[found.row] & chosen
    unused = int(np.count_nonzero(graded[found.row] & ~chosen))
    if not kept.any():
        start = f"{plural(unused, 'label does', 'labels do')} not say how the trial was chosen"
        return Unavailable(start if unused else "no trial has a label of a person")
    row = found.row[kept]
    verdict, passed = trials.outcome[row] == Outcome.PASSED, found.passed[kept]
    passing = trials.outcome[graded] == Outcome.PASSED
    labels = Labels(task=trials.task.codes[row].astype(np.intp), verdict=verdict, passed=passed)
    twice = [_pair(own) for own in found.labels if len(own) > 1]
    wrong = np.bincount(labels.task, verdict != passed, minlength=len(trials.tasks)).astype(int)
    read = np.bincount(labels.task, minlength=len(trials.tasks))
    worst = [int(i) for i in np.lexsort((-read, -wrong)) if wrong[i] > 1][:_MOST_TASKS]
    return JudgeCheck(
        trials=int(np.count_nonzero(graded)),
        labels=int(np.count_nonzero(kept)),
        unused=unused,
        errors=judge_errors(labels, float(passing.mean()), confidence=confidence),
        passed_by_judge=float(passing.mean()),
        people=tuple(dict.fromkeys(one.by for own in found.labels for one in own)),
        people_agreement=_people_agreement(twice, confidence),
        tasks=tuple((trials.tasks[i], int(wrong[i]), int(read[i])) for i in worst),
        where=tuple(_where(trials, row, verdict, passed)),
    )


def _people_agreement(pairs: Sequence[tuple[bool, bool]], confidence: float) -> Number:
    kappa = kappa_of(pairs)
    if kappa is None:
        return Unavailable(
            f"{plural(len(pairs), 'trial has', 'trials have')} the labels of two people"
            + (", all alike" if pairs else "")
        )
    return Estimate(
        value=kappa, interval=None, method="Cohen's kappa", confidence=confidence, runs=len(pairs)
    )


def _where(
    trials: Trials,
    row: NDArray[np.intp],
    verdict: NDArray[np.bool_],
    passed: NDArray[np.bool_],
) -> Iterator[str]:
    """Where the judge is more lenient than elsewhere, each tested by permutation at 5 %."""
    lenient = verdict.astype(float) - passed
    for name, words in (("tokens_out", "long answers"), ("tokens", "long trials")):
        if name in trials.features and not np.isnan(size := trials.features[name][row]).all():
            known = ~np.isnan(size)
            middle = np.median(size[known])
            # Where most are as long as the longest, these are the long ones.
            top = size[known].max() == middle
            long = size[known] >= middle if top else size[known] > middle
            yield from _leniency(lenient[known], long, words)
            break
    if len(trials.systems) > 1:
        for code, system in enumerate(trials.systems):
            yield from _leniency(lenient, trials.system.codes[row] == code, f"{short(system)}")


def _leniency(lenient: NDArray[np.float64], group: NDArray[np.bool_], words: str) -> Iterator[str]:
    count = int(np.count_nonzero(group))
    if min(count, group.size - count) < FEWEST_LABELS:
        return
    seen = lenient[group].mean() - lenient[~group].mean()
    rng = np.random.default_rng(0)
    orders = np.argsort(rng.random((_PERMUTATIONS, group.size)), axis=1)
    drawn = lenient[orders]
    others = drawn[:, :count].mean(axis=1) - drawn[:, count:].mean(axis=1)
    p = (1 + np.count_nonzero(np.abs(others) >= abs(seen) - 1e-12)) / (1 + _PERMUTATIONS)
    if p <= _NOTABLE:
        what = "passes too often" if seen > 0 else "fails too often"
        yield f"it {what} {words}: by {100 * abs(seen):.0f} points more than others (p = {p:.2g})"


def kappa_of(pairs: Sequence[tuple[bool, bool]]) -> float | None:
    """Cohen's kappa of two verdicts on each trial; None where it has no meaning.

    >>> kappa_of([(True, True), (False, False), (True, False), (True, True)])
    0.5
    """
    if not pairs:
        return None
    first, second = np.array(pairs, dtype=float).T
    a, b = first.mean(), second.mean()
    by_chance = a * b + (1 - a) * (1 - b)
    if by_chance >= 1:
        return None
    return float(((first == second).mean() - by_chance) / (1 - by_chance))


def _is_pass_rate(metrics: Mapping[str, Metric]) -> bool:
    """Whether the mean score is the pass rate, because there is no partial credit."""
    one = metrics.get("pass^1")
    return one is not None and one.value == metrics["mean_score"].value


def _pair(labels: Sequence[Label]) -> tuple[bool, bool]:
    return labels[0].passed, labels[1].passed
