"""Numbers of judged trials as people would have graded them, from the labels there are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from passhat.analysis.reports.evidence import Evidence
from passhat.analysis.reports.parts import Corrected, Metric, SystemReport, headline_k
from passhat.arguments import CONFIDENCE
from passhat.dataclass import Displayed, dataclass, replace, result_dataclass
from passhat.messages import percent, plural, points, short, short_repr, signed_points
from passhat.records import ErrorPolicy, Outcome, Tally, Trials
from passhat.records.columns import AT_RANDOM, BY_TASK, BY_VERDICT
from passhat.records.labels import Label, labelled_rows
from passhat.stats import judged
from passhat.stats.estimate import (
    TASKS_LIKE_THESE,
    THIS_SUITE,
    Estimate,
    Number,
    Scope,
    Unavailable,
    at_least_as_wide,
)

LEAST_AGREEMENT = 0.8
"""Below this kappa people do not mean the same, and no number is corrected with their labels.

Krippendorff (2004, p. 241): from 0.8 on data are reliable. At his lowest conceivable limit, 0.667,
labels of one person leave a 95 % interval of a good agent a coverage of about a third, and what
most of three people say about 0.9 (bench/calibrate/judges.py)."""

FEWEST_SHARED = 20
"""Trials that two people must have labelled before their agreement decides anything."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelEvidence:
    """What people say of the trials of one system, beside the verdicts of all of them.

    `single` are labels of trials that were chosen one by one at random, `whole` those of tasks that
    were. `unused` counts labels of trials that somebody picked, and `people` who labelled.
    """

    verdicts: judged.Verdicts
    single: judged.Labels
    whole: judged.Labels
    unused: int
    people: tuple[str, ...]
    twice: tuple[tuple[bool, bool], ...]

    @property
    def used(self) -> int:
        return len(self.single) + len(self.whole)

    @property
    def of_tasks(self) -> judged.Labels:
        """Labels that show whole tasks: those of tasks drawn at random, or of all trials."""
        every = int(self.verdicts.passed.sum() + self.verdicts.failed.sum())
        return self.by_verdict if self.used == every else self.whole

    @property
    def by_verdict(self) -> judged.Labels:
        """All labels, each with the share of trials of its verdict that were labelled."""
        both = self.single, self.whole
        task, verdict, passed = (
            np.concatenate([getattr(side, name) for side in both])
            for name in ("task", "verdict", "passed")
        )
        graded = int(self.verdicts.failed.sum()), int(self.verdicts.passed.sum())
        return judged.Labels(
            task=task, verdict=verdict, passed=passed, chance=_chances(verdict, graded)
        )

    @property
    def disagreement(self) -> Unavailable | None:
        """Why labels correct nothing, if the people who gave them do not agree."""
        kappa = kappa_of(self.twice)
        if len(self.twice) < FEWEST_SHARED or kappa is None or kappa >= LEAST_AGREEMENT:
            return None
        shared = plural(len(self.twice), "trial")
        return Unavailable(
            f"people agree too little on the {shared} that two of them labelled (kappa "
            f"{kappa:.2f}): agree on what passes, and label these again"
        )

    @property
    def refusal(self) -> Unavailable | None:
        """Why these labels correct nothing, however many there are."""
        if (reason := self.disagreement) is not None:
            return reason
        if self.unused and not self.used:
            return Unavailable(
                f"{plural(self.unused, 'label does', 'labels do')} not say how the trial was "
                "chosen, and only trials chosen at random say something of the others"
            )
        return None

    def number(self, k: int, scope: Scope, confidence: float) -> Number:
        """pass^k as people would have graded it (pass@1 for k = 1)."""
        if (reason := self.refusal) is not None:
            return reason
        if k > 1:
            return judged.corrected_pass_hat(self.verdicts, self.of_tasks, k, confidence=confidence)
        number = judged.corrected_pass_rate(
            self.verdicts, self.single, scope=scope, confidence=confidence
        )
        if isinstance(number, Unavailable) and len(self.whole):
            by_task = judged.corrected_pass_hat(self.verdicts, self.whole, 1, confidence=confidence)
            return by_task or number
        return number


def label_evidence(
    trials: Trials | None, tally: Tally, evidence: Evidence, errors: ErrorPolicy
) -> LabelEvidence | None:
    """The labels of one system's trials; None if there are none."""
    if trials is None or trials.human_labels is None:
        return None
    labelled = labelled_rows(trials.human_labels)
    outcome = trials.outcome[labelled.row]
    place = {name: i for i, name in enumerate(evidence.tasks)}
    names = trials.task.names
    at = np.array([place.get(names[code], -1) for code in trials.task.codes[labelled.row]], np.intp)
    # An errored trial has no verdict that a label could be compared with.
    fit = (outcome != Outcome.ERRORED) & (at >= 0)
    chosen = np.array([way or "" for way in labelled.chosen], dtype=object)
    rows = evidence.rows
    errored = tally.errored[rows]

    def labels(mask: NDArray[np.bool_]) -> judged.Labels:
        kept = fit & mask
        return judged.Labels(
            task=at[kept], verdict=outcome[kept] == Outcome.PASSED, passed=labelled.passed[kept]
        )

    return LabelEvidence(
        verdicts=judged.Verdicts(
            passed=tally.passed[rows],
            failed=tally.failed[rows],
            errored=errored if errors == "fail" else np.zeros_like(errored),
            weight=evidence.weight,
            family=evidence.family,
        ),
        single=labels((chosen == AT_RANDOM) | (chosen == BY_VERDICT)),
        whole=labels(chosen == BY_TASK),
        unused=int(np.count_nonzero(chosen == "")),
        people=tuple(dict.fromkeys(label.by for own in labelled.labels for label in own)),
        twice=tuple(_pair(own) for own in labelled.labels if len(own) > 1),
    )


def with_corrections(
    metrics: Mapping[str, Metric], labels: LabelEvidence | None, *, confidence: float
) -> dict[str, Metric]:
    """The metrics, pass^k each with what labels make of it."""
    if labels is None:
        return dict(metrics)
    rate = {scope: labels.number(1, scope, confidence) for scope in (THIS_SUITE, TASKS_LIKE_THESE)}
    rate[TASKS_LIKE_THESE] = at_least_as_wide(rate[TASKS_LIKE_THESE], rate[THIS_SUITE])
    with_labels = {}
    for name, metric in metrics.items():
        if name in ("pass^1", "pass@1") or (name == "mean_score" and _is_pass_rate(metrics)):
            both = rate[THIS_SUITE], rate[TASKS_LIKE_THESE]
        elif name.startswith("pass^"):
            number = labels.number(int(name[5:]), TASKS_LIKE_THESE, confidence)
            both = number, number
        else:
            with_labels[name] = metric
            continue
        corrected = Corrected(
            this_suite=both[0], tasks_like_these=both[1], limits=None, labels=labels.used
        )
        here = rate[THIS_SUITE]
        if name.startswith("pass^") and not both[0] and isinstance(here, Estimate):
            corrected = replace(corrected, limits=judged.limits_of_pass_hat(here, int(name[5:])))
        with_labels[name] = replace(metric, corrected=corrected)
    return with_labels


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
        metrics[name] = Metric(
            name=metric.name,
            this_suite=none if own is None else own.this_suite,
            tasks_like_these=none if own is None else own.tasks_like_these,
            corrected=own,
        )
    return replace(system, metrics=metrics, notes=(*notes, *system.notes))


def _notes(system: SystemReport, rate: Metric, corrected: Corrected) -> list[str]:
    if isinstance(corrected.this_suite, Unavailable):
        return [f"labels of people do not correct these numbers yet: {corrected.this_suite.reason}"]
    notes = []
    if rate.value is not None:
        rest = "tasks, curves and whatever labels do not correct rest on its verdicts"
        notes.append(f"by the judge pass@1 is {percent(rate.value, digits=1)}; {rest}")
    streak = system.metrics[f"pass^{headline_k(system)}"]
    number = streak.corrected
    if number is not None and number.limits and isinstance(number.this_suite, Unavailable):
        low, high = map(percent, (number.limits.low, number.limits.high))
        way = f"for a number {number.this_suite.reason}"
        notes.append(f"{streak.name} lies between {low} and {high}, whatever the judge; {way}")
    return notes


# Two agents under one judge.


@result_dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedDifference:
    """A difference as people would have graded both agents, from so many labels of each."""

    first: float | None
    second: float | None
    this_suite: Number
    tasks_like_these: Number
    labels: tuple[int, int]

    def within(self, scope: Scope) -> Number:
        return self.this_suite if scope == THIS_SUITE else self.tasks_like_these


def corrected_differences(
    first: LabelEvidence, second: LabelEvidence, ks: Sequence[int], *, confidence: float
) -> dict[int, CorrectedDifference]:
    """pass^k of the first minus that of the second for each k; both have the same tasks."""
    sides = first, second
    refused = next((side.refusal for side in sides if side.refusal is not None), None)
    differences = {}
    for k in ks:
        both = [_corrected_difference(first, second, k, scope, confidence)
                for scope in (THIS_SUITE, TASKS_LIKE_THESE)]  # fmt: skip
        here, others = (number if refused is None else refused for number in both)
        values = [side.number(k, THIS_SUITE, confidence) for side in sides]
        differences[k] = CorrectedDifference(
            first=values[0].value if isinstance(values[0], Estimate) else None,
            second=values[1].value if isinstance(values[1], Estimate) else None,
            this_suite=here,
            tasks_like_these=at_least_as_wide(others, here),
            labels=(first.used, second.used),
        )
    return differences


def _corrected_difference(
    first: LabelEvidence, second: LabelEvidence, k: int, scope: Scope, confidence: float
) -> Number:
    ours, other = ((side.verdicts, side.of_tasks) for side in (first, second))
    if k > 1:
        return judged.corrected_pass_hat_difference(ours, other, k, confidence=confidence)
    single = [(side.verdicts, side.single) for side in (first, second)]
    number = judged.corrected_difference(*single, scope=scope, confidence=confidence)
    if isinstance(number, Unavailable) and len(first.whole) and len(second.whole):
        return judged.corrected_pass_hat_difference(ours, other, 1, confidence=confidence) or number
    return number


def leniency_between(first: LabelEvidence, second: LabelEvidence, *, confidence: float) -> Number:
    """How much more often the judge passes the first than the second where people see no more."""
    sides = [side.by_verdict for side in (first, second)]
    names = ("task", "verdict", "passed", "chance")
    columns = {name: np.concatenate([getattr(side, name) for side in sides]) for name in names}
    group = np.arange(sum(map(len, sides))) < len(sides[0])
    return judged.leniency(judged.Labels(**columns), group, confidence=confidence)


# The judge itself: how often it is wrong, and where.

_MOST_TASKS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCheck(Displayed):
    """What labels of people show of the judge that graded some trials.

    `where` says where it errs, one sentence each; `people` how far people agree with one another.
    `notes` are what the run says of its judge: how far it agrees with itself, and what it took.
    """

    trials: int
    labels: int
    unused: int
    errors: judged.JudgeErrors
    passed_by_judge: float
    people: tuple[str, ...]
    people_agreement: Number
    tasks: tuple[tuple[str, int, int], ...]
    where: tuple[str, ...]
    confidence: float
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return short_repr("JudgeCheck", plural(self.labels, "label"), see=".errors, .where")


def check_judge(trials: Trials, *, confidence: float = CONFIDENCE) -> JudgeCheck | Unavailable:
    """How far the verdicts of these trials and the labels of people agree."""
    labelled = labelled_rows(trials.human_labels)
    graded = trials.outcome != Outcome.ERRORED
    chosen = np.array([way is not None for way in labelled.chosen], dtype=bool)
    kept = graded[labelled.row] & chosen
    unused = int(np.count_nonzero(graded[labelled.row] & ~chosen))
    if not kept.any():
        start = f"{plural(unused, 'label does', 'labels do')} not say how the trial was chosen"
        return Unavailable(start if unused else "no trial has a label of a person")
    row = labelled.row[kept]
    verdict, passed = trials.outcome[row] == Outcome.PASSED, labelled.passed[kept]
    passing = trials.outcome[graded] == Outcome.PASSED
    counts = int(np.count_nonzero(~passing)), int(np.count_nonzero(passing))
    labels = judged.Labels(
        task=trials.task.codes[row].astype(np.intp),
        verdict=verdict,
        passed=passed,
        chance=_chances(verdict, counts),
    )
    twice = [_pair(own) for own in labelled.labels if len(own) > 1]
    wrong = np.bincount(labels.task, verdict != passed, minlength=len(trials.tasks)).astype(int)
    read = np.bincount(labels.task, minlength=len(trials.tasks))
    worst = [int(i) for i in np.lexsort((-read, -wrong)) if wrong[i] > 1][:_MOST_TASKS]
    return JudgeCheck(
        trials=int(np.count_nonzero(graded)),
        labels=int(np.count_nonzero(kept)),
        unused=unused,
        errors=judged.judge_errors(
            labels, passed=counts[1], failed=counts[0], confidence=confidence
        ),
        passed_by_judge=float(passing.mean()),
        people=tuple(dict.fromkeys(label.by for own in labelled.labels for label in own)),
        people_agreement=_people_agreement(twice, confidence),
        tasks=tuple((trials.tasks[i], int(wrong[i]), int(read[i])) for i in worst),
        where=tuple(_where(trials, row, labels)),
        confidence=confidence,
        notes=tuple(
            dict.fromkeys(
                note
                for source in trials.sources
                for note in source.notes
                if note.startswith(("the judge ", "the judges "))
            )
        ),
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


def _where(trials: Trials, row: NDArray[np.intp], labels: judged.Labels) -> Iterator[str]:
    """Where the judge is more lenient than elsewhere with what people grade alike."""
    for name, words, others in (
        ("tokens_out", "long answers", "shorter ones"),
        ("tokens", "long trials", "shorter ones"),
    ):
        if name in trials.features and not np.isnan(size := trials.features[name][row]).all():
            middle = np.nanmedian(size)
            # Where most are as long as the longest, these are the long ones.
            long = size >= middle if np.nanmax(size) == middle else size > middle
            yield from _more_lenient(labels, long, words, others)
            break
    if len(trials.systems) > 1:
        for code, system in enumerate(trials.systems):
            own = trials.system.codes[row] == code
            yield from _more_lenient(labels, own, short(system), "other agents")


def _more_lenient(
    labels: judged.Labels, group: NDArray[np.bool_], words: str, others: str
) -> Iterator[str]:
    lenience = judged.leniency(labels, group)
    if (
        isinstance(lenience, Estimate)
        and lenience.interval is not None
        and 0 not in lenience.interval
    ):
        more = "more" if lenience.value > 0 else "less"
        low, high = map(signed_points, (lenience.interval.low, lenience.interval.high))
        yield (
            f"it passes {words} {points(abs(lenience.value))} points {more} often than {others} "
            f"that people grade alike [{low}, {high}]"
        )


def _chances(verdict: NDArray[np.bool_], graded: tuple[int, int]) -> NDArray[np.float64]:
    """Of each labelled trial, the share of the trials of its verdict that were labelled.

    `graded` counts the trials that the judge failed, and those that it passed.
    """
    passed = int(np.count_nonzero(verdict))
    shares = np.array([verdict.size - passed, passed]) / np.maximum(graded, 1)
    chances: NDArray[np.float64] = np.minimum(shares, 1.0)[verdict.astype(int)]
    return chances


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
    pass_rate = metrics.get("pass^1")
    return pass_rate is not None and pass_rate.value == metrics["mean_score"].value


def _pair(labels: Sequence[Label]) -> tuple[bool, bool]:
    return labels[0].passed, labels[1].passed
