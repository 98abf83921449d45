"""Two systems on the same tasks: whether one is better, where, and what would settle it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from itertools import groupby
from typing import Literal, TypeVar, Unpack

import numpy as np

from passhat.analysis.reports.dependence import (
    disturbance_sentence,
    has_partial_credit,
    runs_by_level,
)
from passhat.analysis.reports.evidence import (
    Evidence,
    Floats,
    Provenance,
    count_evidence,
    make_provenance,
)
from passhat.analysis.reports.judged import (
    CorrectedDifference,
    corrected_differences,
    label_evidence,
    leniency_between,
)
from passhat.analysis.reports.measure import run_sequences
from passhat.analysis.reports.metrics import SystemTrials, added_margins, trials_on
from passhat.arguments import COMPARED_KS, ReportOptions, ReportTerms, takes
from passhat.dataclass import Displayed, dataclass, result_dataclass
from passhat.errors import ArgumentError
from passhat.messages import (
    listed,
    metric_label,
    plural,
    points,
    quoted,
    rounded,
    short_repr,
    signed_points,
)
from passhat.records import ErrorPolicy, Tally, Trials, trial
from passhat.records.trials import check_trials_argument, one_tally
from passhat.stats.dependent_runs import (
    BetweenDayVariance,
    Margins,
    excess,
    larger_p,
    wider_margins,
)
from passhat.stats.estimate import (
    TASKS_LIKE_THESE,
    THIS_SUITE,
    Estimate,
    Interval,
    Number,
    Scope,
    Unavailable,
    error_level,
    hull,
    independent_difference,
)
from passhat.stats.multiple_testing import TaskAnswer, minimum_runs, score_task_tests, task_tests
from passhat.stats.paired import (
    Answer,
    PairedDifference,
    PairedTest,
    in_agreement,
    paired_difference,
    paired_t_test,
    pass_hat_differences,
    signed_rank_test,
)
from passhat.stats.passk import share_of_passing_subsets
from passhat.stats.sufficient_statistics import Mask, TaskSums
from passhat.stats.trend import TaskSeries, change_points, day_spread
from passhat.stats.variance import NoiseSources, noise_sources

_COUNTS_ONLY = Unavailable("seeds need the trials themselves; only their counts were read")

_WIDENED = Unavailable("the interval also includes the spread between rounds, seeds or days")


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(Displayed):
    """Two systems on their shared tasks; tasks of only one are named.

    `seeded` is the difference of the mean scores on these tasks with the variance between seeds
    added on both sides, where both carry enough seeds to know it. `noise` says how much of the
    width of its interval for similar tasks comes from runs and how much from tasks. `leniency`
    is how much more often a judge passes the first than the second where people grade alike.
    `sequences` has the trials of each task in order, of both, as P, F and E, if they were read.
    """

    first: str
    second: str
    differences: Mapping[str, Difference]
    seeded: Estimate | Unavailable
    noise: NoiseSources | Unavailable
    tasks: tuple[TaskDifference, ...]
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]
    runs_to_test: int
    margin: float | None
    provenance: Provenance
    notes: tuple[str, ...] = ()
    leniency: Number | None = None
    sequences: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def __repr__(self) -> str:
        name = metric_label(self.headline.name)
        name = "pass@1" if name == "mean score" and self.scores_are_passes else name
        lead = f"{name} {rounded(self.headline.this_suite)} on these tasks"
        answer = self.headline.answer(THIS_SUITE, self.margin) or "unavailable"
        size = f"{plural(len(self.tasks), 'shared task')}, {len(self.flipped):,} flipped"
        pair = f"Comparison {quoted(self.first)} - {quoted(self.second)}"
        return short_repr(pair, f"{lead} ({answer})", size, see=".headline, .differences, .tasks")

    @property
    def headline(self) -> Difference:
        """The difference that the verdict is about: the largest pass^k asked for, else the mean.

        Labels of people correct pass@1, not a mean of the scores that a judge gave.
        """
        asked = self.provenance.options.ks
        lead = self.differences[f"pass^{asked[-1]}" if asked else "mean_score"]
        rate = self.differences.get("pass^1", lead).corrected
        known = lead.corrected is None and rate is not None and rate.this_suite
        return self.differences["pass^1"] if known else lead

    @property
    def scores_are_passes(self) -> bool:
        """Whether the mean score is the pass rate again, as where every score is 0 or 1."""
        score, alone = self.mean_score, self.differences.get("pass^1")
        if alone is not None:
            return (alone.first, alone.second) == (score.first, score.second)
        return all(abs(task.difference - task.rate_difference) < 1e-9 for task in self.tasks)

    @property
    def mean_score(self) -> Difference:
        """The difference between the mean scores."""
        return self.differences["mean_score"]

    @property
    def named_tests(self) -> tuple[PairedTest | Unavailable, PairedTest | Unavailable]:
        """Student's paired t and Wilcoxon's signed-rank test of the mean scores of shared tasks."""
        differences = np.array([task.difference for task in self.tasks])
        ahead, behind = differences.clip(0), -differences.clip(None, 0)
        ranked = signed_rank_test(ahead, behind, rng=self.provenance.options.seed)
        return paired_t_test(ahead, behind), ranked

    @property
    def flipped(self) -> tuple[TaskDifference, ...]:
        """The tasks where most runs passed for one system and not for the other."""
        return tuple(task for task in self.tasks if task.flip)


@takes(ReportTerms)
def compare(
    first: Trials | Tally,
    second: Trials | Tally | None = None,
    *,
    margin: float | None = None,
    days: Days | None = None,
    **terms: Unpack[ReportTerms],
) -> Comparison:
    """Compare two systems task by task; `first` alone may hold both.

    `margin` is the difference below which the two count as equivalent. `days` is how far runs of
    the same system differ, where the two were not run at the same time.

    >>> from passhat.analysis.planning.simulate import simulate
    >>> comparison = compare(simulate(tasks=30, runs=10, rate={"new": 0.9, "old": 0.6}, seed=3))
    >>> comparison.headline.answer("this suite")
    'better'
    """
    options = ReportOptions.checked(**terms)
    given = _two_sides(first, second)
    tallies = one_tally("first", given[0]), one_tally("second", given[1])
    sides = tuple(count_evidence(tally, options) for tally in tallies)
    shared = _shared_tasks(tallies, sides)
    left, right = (side.only(shared) for side in sides)
    pair = _Pair(left=left, right=right, options=options, margin=margin)
    independent = pair.differences()
    tables = _shared_trials(given, shared)
    differences, notes = with_dependence(independent, tables, options, margin)
    if days is not None:
        differences = including_days(
            differences, (left, right), days, confidence=options.confidence, margin=margin
        )
        notes = (*notes, days.note)
    widened = differences != independent
    differences, leniency = pair.corrected(differences, independent, given, tallies)
    known = set(shared)
    return Comparison(
        first=tallies[0].system,
        second=tallies[1].system,
        differences=differences,
        seeded=(
            _COUNTS_ONLY
            if tables is None
            else independent_difference(*(_seeded_mean(table, options) for table in tables))
        ),
        noise=_WIDENED if widened else pair.noise(),
        tasks=task_differences(
            left, right, options, scores=task_scores(tables, shared, options.errors)
        ),
        only_first=tuple(name for name in sides[0].tasks if name not in known),
        only_second=tuple(name for name in sides[1].tasks if name not in known),
        runs_to_test=minimum_runs(len(shared), confidence=options.confidence),
        margin=margin,
        provenance=make_provenance(tallies, options),
        notes=(
            *trial.alike_names(tally.system for tally in tallies),
            *trial.counting_notes(source for tally in tallies for source in tally.sources),
            *trial.ended_early(source for tally in tallies for source in tally.sources),
            *_error_note(tallies, options),
            *_judge_note(tallies, differences),
            *notes,
        ),
        leniency=leniency,
        sequences={} if tables is None else _sequences(tables),
    )


def _two_sides(
    first: Trials | Tally, second: Trials | Tally | None
) -> tuple[Trials | Tally, Trials | Tally]:
    if second is not None:
        return first, second
    check_trials_argument("trials", first)
    if not isinstance(first, Trials) or len(first.systems) != 2:
        names = first.systems if isinstance(first, Trials) else (first.system,)
        raise ArgumentError("trials", "must hold exactly two agents (or rank them)", names)
    first_name, other = first.systems
    return first.where(system=first_name), first.where(system=other)


def _shared_tasks(tallies: Sequence[Tally], sides: Sequence[Evidence]) -> list[str]:
    """The tasks of both systems, in the order of the first."""
    for tally, side in zip(tallies, sides, strict=True):
        if not side.tasks:
            rule = f"must hold a trial of {tally.system} that did not error (errors='exclude')"
            raise ArgumentError("trials", rule, plural(int(tally.errored.sum()), "error"))
    there = set(sides[1].tasks)
    shared = [name for name in sides[0].tasks if name in there]
    if not shared:
        first_name, other = (tally.system for tally in tallies)
        have = (f"{tally.system} has {listed(tally.tasks, 5)}" for tally in tallies)
        why = trial.alike_names([first_name, other])
        message = f"{first_name} and {other} have no task in common ({'; '.join(have)})"
        raise ArgumentError(
            "trials",
            "must share a task between the two agents",
            0,
            sentence="; ".join([message, *why]),
        )
    return shared


def _shared_trials(
    given: tuple[Trials | Tally, Trials | Tally], shared: Sequence[str]
) -> tuple[Trials, Trials] | None:
    """The trials of both on the shared tasks; None if only counts were read."""
    first, second = given
    if not isinstance(first, Trials) or not isinstance(second, Trials):
        return None
    return trials_on(first, shared), trials_on(second, shared)


def _sequences(tables: tuple[Trials, Trials]) -> dict[str, tuple[str, str]]:
    """The trials of each shared task in order, of both."""
    first, second = (dict(zip(t.tasks, run_sequences(t) or (), strict=False)) for t in tables)
    return {task: (first[task], second[task]) for task in first if task in second}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Pair:
    """Two systems on their shared tasks, and how they are compared."""

    left: Evidence
    right: Evidence
    options: ReportOptions
    margin: float | None

    @property
    def family(self) -> tuple[str | None, ...] | None:
        """As the first side that has families names them."""
        return self.right.family if self.left.family is None else self.left.family

    @property
    def weight(self) -> Floats | None:
        return self.right.weight if self.left.weight is None else self.left.weight

    def differences(self) -> dict[str, Difference]:
        """Of the mean score and of each pass^k, in both scopes."""
        left, right = self.left, self.right
        typical = min(left.typical_runs, right.typical_runs)
        ks = self.options.ks or tuple(k for k in COMPARED_KS if k <= max(1, typical))
        means = self._of_sums("mean_score", left.scores, right.scores)
        suite = self._on_suite([k for k in ks if k > 1])
        differences = [means, *(self._pass_hat(k, suite.get(k)) for k in ks if k > 1)]
        if 1 in ks:
            # if every score is 0 or 1 the mean score is pass^1, and so is its difference
            plain = left.all_or_nothing and right.all_or_nothing
            rates = self._of_sums("pass^1", left.outcomes, right.outcomes) if not plain else means
            differences.insert(1, replace(rates, name="pass^1"))
        return {d.name: _nested(_agreeing(d), self.margin) for d in differences}

    def noise(self) -> NoiseSources | Unavailable:
        """Where the width of the mean score's interval comes from."""
        level = self.options.confidence
        scores = self.left.scores, self.right.scores
        return noise_sources(*scores, family=self.family, weight=self.weight, confidence=level)

    def corrected(
        self,
        differences: dict[str, Difference],
        independent: Mapping[str, Difference],
        given: tuple[Trials | Tally, Trials | Tally],
        tallies: Sequence[Tally],
    ) -> tuple[dict[str, Difference], Number | None]:
        """The differences with what labels make of them, and how the judge treats the two.

        What widened a difference (seeds, outages, days) widens the corrected one by as much.
        """
        sides = [
            label_evidence(
                table if isinstance(table, Trials) else None, tally, own, self.options.errors
            )
            for table, tally, own in zip(given, tallies, (self.left, self.right), strict=True)
        ]
        if sides[0] is None or sides[1] is None:
            return differences, None
        first, second = (
            replace(side, verdicts=replace(side.verdicts, weight=self.weight, family=self.family))
            for side in sides
            if side is not None
        )
        level = self.options.confidence
        ks = {name: 1 if name == "mean_score" else int(name[5:]) for name in differences}
        if not (self.left.all_or_nothing and self.right.all_or_nothing):
            del ks["mean_score"]
        by_k = corrected_differences(first, second, sorted(set(ks.values())), confidence=level)
        with_labels = {
            name: replace(d, corrected=_as_wide(by_k[ks[name]], independent[name], d))
            if name in ks
            else d
            for name, d in differences.items()
        }
        return with_labels, leniency_between(first, second, confidence=level)

    def _of_sums(self, name: str, left: TaskSums, right: TaskSums) -> Difference:
        every = np.ones(left.runs.size, dtype=bool)
        return Difference(
            name=name,
            first=self._mean(left.means, every),
            second=self._mean(right.means, every),
            this_suite=self._paired(left, right, THIS_SUITE, every),
            tasks_like_these=self._paired(left, right, TASKS_LIKE_THESE, every),
        )

    def _pass_hat(self, k: int, on_suite: Estimate | Unavailable | None) -> Difference:
        """Over the tasks with k runs on both sides; the others are counted in a note."""
        if on_suite is None:
            none = Unavailable(f"pass^{k} needs {k} trials of a task on both sides; none has them")
            return Difference(
                name=f"pass^{k}", first=None, second=None, this_suite=none, tasks_like_these=none
            )
        left, right = (side.values("pass^k", k) for side in (self.left, self.right))
        both = ~np.isnan(left) & ~np.isnan(right)
        alike = self._paired(left[both], right[both], TASKS_LIKE_THESE, both)
        short = np.flatnonzero(~both).tolist()
        if short and isinstance(alike, PairedDifference):
            tasks = plural(len(short), "task has", "tasks have")
            out = "is" if len(short) == 1 else "are"
            note = f"{tasks} fewer than {k} trials of one of the agents and {out} left out"
            alike = replace(alike, excluded=tuple(short), notes=(note, *alike.notes))
        return Difference(
            name=f"pass^{k}",
            first=self._mean(left, both),
            second=self._mean(right, both),
            this_suite=on_suite,
            tasks_like_these=alike,
        )

    def _mean(self, values: Floats, kept: Mask) -> float:
        weight = self.weight
        return float(np.average(values[kept], weights=None if weight is None else weight[kept]))

    def _paired(
        self, left: TaskSums | Floats, right: TaskSums | Floats, scope: Scope, kept: Mask
    ) -> PairedDifference | Unavailable:
        """The difference over the tasks that are kept, which both sides hold already."""
        family, weight = self.family, self.weight
        return paired_difference(
            left,
            right,
            scope=scope,
            confidence=self.options.confidence,
            margin=self.margin,
            family=None if family is None else np.array(family, dtype=object)[kept],
            weight=None if weight is None else weight[kept],
            rng=self.options.seed,
        )

    def _on_suite(self, ks: Sequence[int]) -> dict[int, Estimate | Unavailable]:
        """pass^k on these tasks, for each k that a task has the runs for on both sides."""
        fewest = np.minimum(self.left.runs, self.right.runs)
        level = self.options.confidence
        estimates: dict[int, Estimate | Unavailable] = {}
        # k that the same tasks have the runs for are answered together
        for tasks, alike in groupby(sorted(ks), key=lambda k: int((fewest >= k).sum())):
            some = tuple(alike)
            if tasks:
                both = fewest >= some[0]
                sides = [(side.runs[both], side.passes[both]) for side in (self.left, self.right)]
                weight = None if self.weight is None else self.weight[both]
                answers = pass_hat_differences(*sides, ks=some, confidence=level, weight=weight)
                estimates.update(zip(some, answers, strict=True))
        return estimates


def _agreeing(difference: Difference) -> Difference:
    suite, alike = difference.this_suite, difference.tasks_like_these
    if isinstance(suite, PairedDifference):
        difference = replace(difference, this_suite=in_agreement(suite))
    if isinstance(alike, PairedDifference):
        difference = replace(difference, tasks_like_these=in_agreement(alike))
    return difference


def _nested(difference: Difference, margin: float | None) -> Difference:
    """Similar tasks leave open whatever the noise of the runs leaves open on these tasks."""
    suite, alike = difference.this_suite, difference.tasks_like_these
    if isinstance(suite, Unavailable) or suite.interval is None:
        return difference
    if not isinstance(alike, PairedDifference):
        return difference
    interval = hull(alike.interval, suite.interval)
    wider = replace(alike, interval=interval, p_value=_p_of(alike, interval))
    if isinstance(suite, PairedDifference):
        wider = replace(wider, p_value=max(wider.p_value, suite.p_value))
    if difference.answer(THIS_SUITE, margin) == "undecided" != alike.answer:
        note = "on these tasks themselves the trials leave it open"
        wider = replace(wider, answer="undecided", notes=(*alike.notes, note))
        if isinstance(suite, PairedDifference):
            wider = replace(wider, needed=suite.needed)
    return replace(difference, tasks_like_these=wider)


def _as_wide(
    corrected: CorrectedDifference, before: Difference, after: Difference
) -> CorrectedDifference:
    """The corrected difference, widened as the verdicts' own was."""
    ends = {}
    for name in ("this_suite", "tasks_like_these"):
        number, old, new = (getattr(side, name) for side in (corrected, before, after))
        if isinstance(number, Estimate) and number.interval and not isinstance(old, Unavailable):
            more = excess(old, new)
            number = replace(number, interval=wider_margins(number.interval, number.value, more))
        ends[name] = number
    return replace(corrected, **ends)


def as_people_compare(comparison: Comparison) -> Comparison:
    """The comparison with corrected differences in the place of the judge's, where there are any.

    What labels cannot correct has no number; notes say what the judge's own is, and whether the
    judge treats the two alike. Where gates ended a run early there is none either: its rate is one
    that stopped while it was lucky.
    """
    if ended := trial.ended_early(comparison.provenance.sources):
        none = Unavailable(ended[0])
        differences = {
            name: replace(
                old, first=None, second=None, this_suite=none, tasks_like_these=none, corrected=None
            )
            for name, old in comparison.differences.items()
        }
        notes = tuple(note for note in comparison.notes if note not in ended)
        return replace(comparison, differences=differences, seeded=none, noise=none, notes=notes)
    corrected = comparison.mean_score.corrected or next(
        (d.corrected for d in comparison.differences.values() if d.corrected), None
    )
    if corrected is None:
        return comparison
    if isinstance(corrected.this_suite, Unavailable):
        reason = corrected.this_suite.reason
        note = f"labels of people do not correct the difference yet: {reason}"
        return replace(comparison, notes=(note, *comparison.notes))
    differences = {}
    asked = comparison.headline.name
    for name, difference in comparison.differences.items():
        own = difference.corrected
        if own is not None and not own.this_suite and name != asked:
            continue
        none = Unavailable(f"labels correct pass@1 and pass^k, not {name}")
        differences[name] = replace(
            difference,
            first=None if own is None else own.first,
            second=None if own is None else own.second,
            this_suite=none if own is None else own.this_suite,
            tasks_like_these=none if own is None else own.tasks_like_these,
        )
    notes = (*_judges_own(comparison), *comparison.notes)
    return replace(comparison, differences=differences, notes=notes)


def _judges_own(comparison: Comparison) -> list[str]:
    """What the judge says of the two, and whether it treats them alike."""
    lead, notes = comparison.headline, []
    if (value := lead.value) is not None:
        name = "pass@1" if lead.name in ("mean_score", "pass^1") else lead.name
        size = signed_points(value, digits=1)
        notes.append(f"by the judge's verdicts the difference in {name} is {size} "
                     "points; single tasks are compared by its verdicts")  # fmt: skip
    leniency = comparison.leniency
    if isinstance(leniency, Estimate) and leniency.interval is not None:
        value, interval = leniency.value, leniency.interval
        low, high = map(signed_points, (interval.low, interval.high))
        more = f"{points(abs(value))} points {'less' if value < 0 else 'more'} often"
        pair = f"{comparison.first} {more} than {comparison.second}"
        alike = 0 in interval
        start = (
            "no sign that the judge favours one" if alike else "the judge does not treat them alike"
        )
        notes.append(f"{start}: it passes {pair} where people grade alike [{low}, {high}]")
    return notes


def _seeded_mean(trials: Trials, options: ReportOptions) -> Estimate | Unavailable:
    system = trials.systems[0]
    if trials.seed is None:
        return Unavailable(f"the trials of {system} carry no seed")
    if (runs := runs_by_level(trials, options.errors).get("seed")) is None:
        return Unavailable(f"no trial of {system} on the shared tasks carries a seed")
    seeded = runs.variance(scope=THIS_SUITE, confidence=options.confidence)
    return seeded if isinstance(seeded, Unavailable) else seeded.mean


def _error_note(tallies: Sequence[Tally], options: ReportOptions) -> tuple[str, ...]:
    counted = "counted as failures" if options.errors == "fail" else "left out"
    return tuple(
        f"{plural(int(tally.errored.sum()), 'trial')} of {tally.system} errored, {counted}"
        for tally in tallies
        if tally.errored.any()
    )


def _judge_note(tallies: Sequence[Tally], differences: Mapping[str, Difference]) -> tuple[str, ...]:
    """That a judge graded, where no labels of people say anything of it."""
    labelled = any(difference.corrected is not None for difference in differences.values())
    judged = trial.graded_by_judge(source for tally in tallies for source in tally.sources)
    return (trial.GRADED_BY_JUDGE,) if judged and not labelled else ()


# The difference in one metric, and task by task: which differ, which flipped.

Flip = Literal["gained", "lost"]

Scores = tuple[list[Floats], list[Floats]]
"""The scores of every run of each shared task, of both systems."""


@result_dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One metric of the first system minus the second, in both scopes, with a verdict in each.

    `first` and `second` are the two values over the shared tasks. `corrected` is what labels of
    people make of it, where a judge graded and both have labels.
    """

    name: str
    first: float | None
    second: float | None
    this_suite: PairedDifference | Estimate | Unavailable
    tasks_like_these: PairedDifference | Estimate | Unavailable
    corrected: CorrectedDifference | None = None

    @property
    def value(self) -> float | None:
        for number in (self.this_suite, self.tasks_like_these):
            if not isinstance(number, Unavailable):
                return number.value
        return None

    def answer(self, scope: Scope, margin: float | None = None) -> Answer | None:
        """Whether the first is better, worse, equivalent, or undecided; None if unavailable."""
        number = self.this_suite if scope == THIS_SUITE else self.tasks_like_these
        if isinstance(number, Unavailable):
            return None
        if isinstance(number, PairedDifference):
            return number.answer
        if number.interval is None:
            return "undecided"
        if margin is not None and -margin < number.interval.low and number.interval.high < margin:
            return "equivalent"
        if 0 in number.interval:
            return "undecided"
        return "better" if number.interval.low > 0 else "worse"


@result_dataclass(frozen=True, slots=True, kw_only=True)
class TaskDifference:
    """One task: passes and runs of both, the difference, and the tests.

    `p_holm` never calls a wrong difference on any task; `p_screening` (Benjamini-Hochberg) lets a
    known share of its finds be wrong. A task flipped when most runs passed for one and not for
    the other.
    """

    name: str
    first: tuple[int, int]
    second: tuple[int, int]
    difference: float
    interval: Interval
    p_value: float
    p_holm: float
    p_screening: float
    answer: TaskAnswer
    flip: Flip | None

    @property
    def rate_difference(self) -> float:
        """The difference of the pass rates; `difference` is that of scores with partial credit."""
        return self.first[0] / self.first[1] - self.second[0] / self.second[1]


def task_scores(
    tables: tuple[Trials, Trials] | None, names: Sequence[str], errors: ErrorPolicy
) -> Scores | None:
    """The scores of the shared tasks if they say more than passes do; else None."""
    if tables is None or not any(has_partial_credit(table) for table in tables):
        return None
    first, second = (_scores_by_task(table, names, errors) for table in tables)
    return first, second


def task_differences(
    left: Evidence, right: Evidence, options: ReportOptions, *, scores: Scores | None = None
) -> tuple[TaskDifference, ...]:
    """An exact test of every task, corrected for testing many in both ways.

    Both sides have the same tasks, in the same order.

    If runs earn partial credit, their scores are tested: a task that never passes can still
    have got worse.
    """
    level = options.confidence
    tests = task_tests(left.runs, left.passes, right.runs, right.passes, confidence=level)
    if scores is not None:
        tests = score_task_tests(*scores, confidence=level, rng=options.seed)
    mostly = [2 * side.passes > side.runs for side in (left, right)]
    flips: dict[tuple[bool, bool], Flip] = {(True, False): "gained", (False, True): "lost"}
    return tuple(
        TaskDifference(
            name=name,
            first=(int(left.passes[i]), int(left.runs[i])),
            second=(int(right.passes[i]), int(right.runs[i])),
            difference=float(tests.value[i]),
            interval=Interval(float(tests.low[i]), float(tests.high[i])),
            p_value=float(tests.p_values[i]),
            p_holm=float(tests.adjusted[i]),
            p_screening=float(tests.screening[i]),
            answer=tests.answers[i],
            flip=flips.get((bool(mostly[0][i]), bool(mostly[1][i]))),
        )
        for i, name in enumerate(left.tasks)
    )


def _scores_by_task(trials: Trials, names: Sequence[str], errors: ErrorPolicy) -> list[Floats]:
    score = np.nan_to_num(trials.score)  # an error that counts scores nothing
    kept = trials.outcome != 2 if errors == "exclude" else np.ones(len(trials), dtype=bool)
    codes = np.where(kept, trials.task.codes, -1)
    return [score[codes == trials.task.code(name)] for name in names]


# How far an agent moves from day to day, and comparisons that include it.

FEWEST_RUNS = 5
"""With fewer stored runs a comparison does not include the spread between days, and says so."""

MOST_RUNS = 50
"""Older runs of a suite say little about the agent as it is today."""


@result_dataclass(frozen=True, slots=True, kw_only=True)
class Days:
    """How far stored runs of the same suite differ; `dates` is of how many days they are."""

    spread: BetweenDayVariance
    runs: int
    dates: int | None = None

    @property
    def known(self) -> bool:
        return self.runs >= FEWEST_RUNS

    @property
    def note(self) -> str:
        """What a comparison says about it."""
        if not self.known:
            return (
                "the spread between days is not included: history has "
                f"{self.runs} of the {FEWEST_RUNS} runs that this takes"
            )
        between, of = ("runs", ", all of one day") if self.dates == 1 else ("days", "")
        return (
            f"includes the spread between {between} ({self.spread.sigma:.2f} logit, from "
            f"{self.runs} stored runs{of})"
        )


def days_of(moments: Sequence[Tally], errors: ErrorPolicy) -> Days:
    """From the counts of one system in runs of the same suite, oldest first.

    Stretches between changes are measured separately: a real change is no spread.
    """
    names = list(dict.fromkeys(name for tally in moments for name in tally.tasks))
    place = {name: i for i, name in enumerate(names)}
    runs = np.zeros((len(moments), len(names)), dtype=np.int64)
    passes = np.zeros_like(runs)
    for row, tally in enumerate(moments):
        columns = [place[name] for name in tally.tasks]
        runs[row, columns], passes[row, columns] = tally.runs(errors), tally.passed
    if len(moments) < FEWEST_RUNS:
        return Days(spread=BetweenDayVariance.unknown(), runs=len(moments))
    series = TaskSeries(runs, passes)
    return Days(spread=day_spread(series, change_points(series)), runs=len(moments))


def including_days(
    differences: dict[str, Difference],
    sides: tuple[Evidence, Evidence],
    days: Days,
    *,
    confidence: float,
    margin: float | None,
) -> dict[str, Difference]:
    """The differences, with the spread between days added to their intervals."""
    if not days.known:
        return differences
    wide = {}
    for name, difference in differences.items():
        slope = _slope(name, sides)
        on_suite = _day_margins(difference.this_suite, slope, days, confidence)
        on_alike = _day_margins(difference.tasks_like_these, slope, days, confidence)
        wide[name] = wider(difference, on_suite, on_alike, days.note, margin)
    return wide


def _day_margins(
    number: PairedDifference | Estimate | Unavailable, slope: float, days: Days, confidence: float
) -> Margins:
    """What one day against another adds, as squares add up."""
    if isinstance(number, Unavailable) or number.interval is None:
        return 0.0, 0.0
    return days.spread.margins(number.interval, slope, 2.0, confidence)


def _slope(name: str, sides: tuple[Evidence, Evidence]) -> float:
    """How much the metric moves per logit: of p^k it is k (p^k - p^(k+1)), over both sides."""
    k = 1 if name == "mean_score" else int(name[5:])
    runs, passes = sides[0].runs + sides[1].runs, sides[0].passes + sides[1].passes
    able = runs > k
    if not able.any():
        return 0.0
    n, c = runs[able], passes[able]
    fall = share_of_passing_subsets(n, c, k) - share_of_passing_subsets(n, c, k + 1)
    return float(k * fall.mean())


# A comparison that includes what moved runs together: seeds, outages.

_Found = TypeVar("_Found", bound=PairedDifference | Estimate)


def with_dependence(
    differences: dict[str, Difference],
    tables: tuple[Trials, Trials] | None,
    options: ReportOptions,
    margin: float | None,
) -> tuple[dict[str, Difference], tuple[str, ...]]:
    """The differences with what seeds and disturbances of both sides add; and notes on these."""
    if tables is None:
        return differences, ()
    sides = [SystemTrials.of(table, options) for table in tables]
    notes = tuple(
        f"{side.name}: {sentence.rstrip('.')}"
        for side in sides
        if (sentence := disturbance_sentence(side.disturbances))
    )
    why = "; ".join(dict.fromkeys(grouping.note for side in sides for grouping in side.groupings))
    first, second = (
        added_margins(side, list(differences), confidence=options.confidence) for side in sides
    )
    dependent = {}
    for name, difference in differences.items():
        a, b = first.get(name, (0.0, 0.0)), second.get(name, (0.0, 0.0))
        # The far margin of the second side is its low one.
        more = float(np.hypot(a[0], b[1])), float(np.hypot(a[1], b[0]))
        dependent[name] = wider(difference, more, more, why, margin)
    return dependent, notes


def wider(
    difference: Difference, on_suite: Margins, on_alike: Margins, note: str, margin: float | None
) -> Difference:
    """A difference with independent errors added to its intervals in both scopes."""
    suite, alike = difference.this_suite, difference.tasks_like_these
    if not isinstance(suite, Unavailable):
        suite = _with_added(suite, on_suite, note, margin)
    if not isinstance(alike, Unavailable):
        alike = _with_added(alike, on_alike, note, margin)
    return replace(difference, this_suite=suite, tasks_like_these=alike)


def _with_added(number: _Found, more: Margins, note: str, margin: float | None) -> _Found:
    """A difference with independent errors added to its interval, and the answer that it leaves."""
    if more == (0.0, 0.0) or number.interval is None:
        return number
    interval = wider_margins(number.interval, number.value, more)
    notes = (*number.notes, note)
    if isinstance(number, Estimate):
        return replace(number, interval=interval, notes=notes)
    return replace(
        number,
        interval=interval,
        answer=_answer_left(number.answer, interval, margin),
        p_value=_p_of(number, interval),
        notes=notes,
    )


def _answer_left(answer: Answer, interval: Interval, margin: float | None) -> Answer:
    if answer in ("better", "worse") and 0 in interval:
        return "undecided"
    if answer == "equivalent":
        within = margin is not None and -margin < interval.low and interval.high < margin
        return "equivalent" if within else "undecided"
    return answer


def _p_of(number: PairedDifference, interval: Interval) -> float:
    """The p-value of a difference whose interval became this one."""
    level = error_level(number.confidence)
    return larger_p(number.p_value, number.value, number.interval, interval, level=level)
