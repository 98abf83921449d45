"""Two systems on the same tasks: whether one is better, where, and what would settle it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from passhat.analysis.comparing.days import Days, including_days
from passhat.analysis.comparing.differences import (
    Difference,
    TaskDifference,
    task_differences,
    task_scores,
)
from passhat.analysis.comparing.moved_together import including_what_moved
from passhat.analysis.reports.evidence import Evidence, Floats, gather
from passhat.analysis.reports.provenance import Provenance, ReportOptions, stamp
from passhat.analysis.reports.seed_grid import seeded_runs
from passhat.analysis.reports.subject import trials_on
from passhat.defaults import COMPARED_KS, CONFIDENCE
from passhat.display import Displayed
from passhat.errors import ArgumentError
from passhat.fast_dataclass import dataclass
from passhat.messages import listed, plural, quoted, rounded, short_repr
from passhat.records import ErrorPolicy, Tally, Trials
from passhat.records.subject import check_subject, one_tally
from passhat.stats.derived_intervals import hull, independent_difference
from passhat.stats.estimate import TASKS_LIKE_THESE, THIS_SUITE, Estimate, Scope, Unavailable
from passhat.stats.paired import (
    PairedDifference,
    in_agreement,
    paired_difference,
    pass_hat_differences,
)
from passhat.stats.per_task import minimum_runs
from passhat.stats.task_sums import Mask, TaskSums
from passhat.stats.width_sources import NoiseSources, noise_sources

_COUNTS_ONLY = Unavailable("seeds need the trials themselves; only their counts were read")

_Groups = tuple[tuple[str | None, ...] | None, Floats | None]
"""The families and the weights of tasks, where they have any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(Displayed):
    """Two systems on their shared tasks; tasks of only one are named.

    `seeded` is the difference of the mean scores on this suite with the variance between seeds
    added on both sides, where both carry enough seeds to know it. `noise` says how much of the
    width of its interval for tasks like these comes from runs and how much from tasks.
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

    def __repr__(self) -> str:
        lead = f"{self.headline.name} {rounded(self.headline.this_suite)} on this suite"
        answer = self.headline.answer(THIS_SUITE, self.margin) or "unavailable"
        size = f"{plural(len(self.tasks), 'shared task')}, {len(self.flipped):,} flipped"
        pair = f"Comparison {quoted(self.first)} - {quoted(self.second)}"
        return short_repr(pair, f"{lead} ({answer})", size, see=".headline, .differences, .tasks")

    @property
    def headline(self) -> Difference:
        """The difference that the verdict is about: the largest pass^k asked for, else the mean."""
        asked = self.provenance.options.ks
        return self.differences[f"pass^{asked[-1]}" if asked else "mean_score"]

    @property
    def mean_score(self) -> Difference:
        return self.differences["mean_score"]

    @property
    def flipped(self) -> tuple[TaskDifference, ...]:
        return tuple(task for task in self.tasks if task.flip)


def compare(
    first: Trials | Tally,
    second: Trials | Tally | None = None,
    *,
    ks: Sequence[int] | None = None,
    margin: float | None = None,
    confidence: float = CONFIDENCE,
    errors: ErrorPolicy = "fail",
    seed: int = 0,
    days: Days | None = None,
) -> Comparison:
    """Compare two systems task by task; `first` alone may hold both.

    `margin` is the difference below which the two count as equivalent. `days` is how far runs of
    the same system differ, where the two were not run at the same time.

    >>> from passhat.analysis.planning.simulate import simulate
    >>> found = compare(simulate(tasks=30, runs=10, rate={"new": 0.9, "old": 0.6}, seed=3))
    >>> found.headline.answer("this suite")
    'better'
    """
    options = ReportOptions.checked(ks=ks, confidence=confidence, errors=errors, seed=seed)
    given = _two_sides(first, second)
    tallies = one_tally("first", given[0]), one_tally("second", given[1])
    sides = tuple(gather(tally, options.errors) for tally in tallies)
    shared = _shared_tasks(tallies, sides)
    left, right = (side.only(shared) for side in sides)
    differences = _differences(left, right, options, margin)
    tables = _shared_trials(given, shared)
    moved = including_what_moved(differences, tables, options, margin)
    if days is not None:
        wider = including_days(
            moved.differences, (left, right), days, confidence=options.confidence, margin=margin
        )
        moved = replace(moved, differences=wider, notes=(*moved.notes, days.note))
    known = set(shared)
    return Comparison(
        first=tallies[0].system,
        second=tallies[1].system,
        differences=moved.differences,
        seeded=_COUNTS_ONLY if tables is None else _seeded_difference(tables, options),
        noise=_noise(left, right, options, widened=moved.differences != differences),
        tasks=task_differences(
            left, right, options, scores=task_scores(tables, shared, options.errors)
        ),
        only_first=tuple(name for name in sides[0].tasks if name not in known),
        only_second=tuple(name for name in sides[1].tasks if name not in known),
        runs_to_test=minimum_runs(len(shared), confidence=options.confidence),
        margin=margin,
        provenance=stamp(tallies, options),
        notes=(*_error_note(tallies, options), *moved.notes),
    )


def _two_sides(
    first: Trials | Tally, second: Trials | Tally | None
) -> tuple[Trials | Tally, Trials | Tally]:
    if second is not None:
        return first, second
    check_subject("trials", first)
    if not isinstance(first, Trials) or len(first.systems) != 2:
        names = first.systems if isinstance(first, Trials) else (first.system,)
        raise ArgumentError("trials", "must hold exactly two systems (or rank them)", names)
    one, other = first.systems
    return first.where(system=one), first.where(system=other)


def _shared_tasks(tallies: Sequence[Tally], sides: Sequence[Evidence]) -> list[str]:
    """The tasks of both systems, in the order of the first."""
    for tally, side in zip(tallies, sides, strict=True):
        if not side.tasks:
            rule = f"must hold a trial of {tally.system} that did not error (errors='exclude')"
            raise ArgumentError("trials", rule, plural(int(tally.errored.sum()), "error"))
    there = set(sides[1].tasks)
    shared = [name for name in sides[0].tasks if name in there]
    if not shared:
        have = (f"{tally.system} has {listed(tally.tasks, 5)}" for tally in tallies)
        rule = f"must share a task between the two systems ({'; '.join(have)})"
        raise ArgumentError("trials", rule, 0)
    return shared


def _shared_trials(
    given: tuple[Trials | Tally, Trials | Tally], shared: Sequence[str]
) -> tuple[Trials, Trials] | None:
    """The trials of both on the shared tasks; None where only counts were read."""
    first, second = given
    if not isinstance(first, Trials) or not isinstance(second, Trials):
        return None
    return trials_on(first, shared), trials_on(second, shared)


def _differences(
    left: Evidence, right: Evidence, options: ReportOptions, margin: float | None
) -> dict[str, Difference]:
    typical = min(left.typical_runs, right.typical_runs)
    ks = options.ks or tuple(k for k in COMPARED_KS if k <= max(1, typical))
    means = _of_sums("mean_score", left.scores, right.scores, options, margin, _groups(left, right))
    # where every score is 0 or 1 the mean score is pass^1, and so is its difference
    graded = not (left.all_or_nothing and right.all_or_nothing)
    suite = _suite_differences(left, right, [k for k in ks if k > 1], options.confidence)
    found = [
        means,
        *(
            _pass_hat(left, right, k, suite.get(k), options, margin)
            if k > 1 or graded
            else replace(means, name="pass^1")
            for k in ks
        ),
    ]
    return {difference.name: _nested(_agreeing(difference), margin) for difference in found}


def _agreeing(found: Difference) -> Difference:
    suite, alike = found.this_suite, found.tasks_like_these
    if isinstance(suite, PairedDifference):
        found = replace(found, this_suite=in_agreement(suite))
    if isinstance(alike, PairedDifference):
        found = replace(found, tasks_like_these=in_agreement(alike))
    return found


def _nested(found: Difference, margin: float | None) -> Difference:
    """Tasks like these leave open whatever the noise of the runs leaves open on these tasks."""
    suite, alike = found.this_suite, found.tasks_like_these
    if isinstance(suite, Unavailable) or isinstance(alike, Unavailable) or suite.interval is None:
        return found
    wider = replace(alike, interval=hull(alike.interval, suite.interval))
    if isinstance(suite, PairedDifference):
        wider = replace(wider, p_value=max(alike.p_value, suite.p_value))
    if found.answer(THIS_SUITE, margin) == "undecided" != alike.answer:
        note = "on these tasks themselves the runs leave it open"
        wider = replace(wider, answer="undecided", notes=(*alike.notes, note))
        if isinstance(suite, PairedDifference):
            wider = replace(wider, needed=suite.needed)
    return replace(found, tasks_like_these=wider)


def _groups(left: Evidence, right: Evidence) -> _Groups:
    """Families and weights of the shared tasks, as the first side that has them names them."""
    return (
        right.family if left.family is None else left.family,
        right.weight if left.weight is None else left.weight,
    )


def _of_sums(
    name: str,
    left: TaskSums,
    right: TaskSums,
    options: ReportOptions,
    margin: float | None,
    groups: _Groups,
) -> Difference:
    def within(scope: Scope) -> PairedDifference | Unavailable:
        return paired_difference(
            left,
            right,
            scope=scope,
            confidence=options.confidence,
            margin=margin,
            family=groups[0],
            weight=groups[1],
            rng=options.seed,
        )

    return Difference(
        name=name,
        first=float(np.average(left.means, weights=groups[1])),
        second=float(np.average(right.means, weights=groups[1])),
        this_suite=within(THIS_SUITE),
        tasks_like_these=within(TASKS_LIKE_THESE),
    )


def _pass_hat(
    left: Evidence,
    right: Evidence,
    k: int,
    on_suite: Estimate | Unavailable | None,
    options: ReportOptions,
    margin: float | None,
) -> Difference:
    if k == 1:
        sides = left.outcomes, right.outcomes
        return _of_sums("pass^1", *sides, options, margin, _groups(left, right))
    values = left.values("pass^k", k), right.values("pass^k", k)
    both = ~np.isnan(values[0]) & ~np.isnan(values[1])
    if on_suite is None:
        none = Unavailable(f"pass^{k} needs {k} runs of a task on both sides; none has them")
        return Difference(
            name=f"pass^{k}", first=None, second=None, this_suite=none, tasks_like_these=none
        )
    return Difference(
        name=f"pass^{k}",
        first=_mean(values[0], both, _groups(left, right)[1]),
        second=_mean(values[1], both, _groups(left, right)[1]),
        this_suite=on_suite,
        tasks_like_these=_alike_difference(values, both, k, options, margin, _groups(left, right)),
    )


def _mean(values: Floats, kept: Mask, weight: Floats | None) -> float:
    return float(np.average(values[kept], weights=None if weight is None else weight[kept]))


def _alike_difference(
    values: tuple[Floats, Floats],
    both: Mask,
    k: int,
    options: ReportOptions,
    margin: float | None,
    groups: _Groups,
) -> PairedDifference | Unavailable:
    """Over the tasks with k runs on both sides; the others are counted in a note."""
    family, weight = groups
    found = paired_difference(
        values[0][both],
        values[1][both],
        scope=TASKS_LIKE_THESE,
        confidence=options.confidence,
        margin=margin,
        family=None if family is None else np.array(family, dtype=object)[both],
        weight=None if weight is None else weight[both],
        rng=options.seed,
    )
    short = np.flatnonzero(~both).tolist()
    if isinstance(found, Unavailable) or not short:
        return found
    have, are = ("task has", "is") if len(short) == 1 else ("tasks have", "are")
    note = f"{len(short):,} {have} fewer than {k} runs of one of the systems and {are} left out"
    return replace(found, excluded=tuple(short), notes=(note, *found.notes))


def _suite_differences(
    left: Evidence, right: Evidence, ks: Sequence[int], confidence: float
) -> dict[int, Estimate | Unavailable]:
    """pass^k on these tasks, for each k that a task has the runs for on both sides."""
    weight = _groups(left, right)[1]
    fewest = np.minimum(left.runs, right.runs)
    found: dict[int, Estimate | Unavailable] = {}
    # k that the same tasks have the runs for are answered together
    for tasks, alike in groupby(sorted(ks), key=lambda k: int((fewest >= k).sum())):
        some = tuple(alike)
        if tasks:
            both = fewest >= some[0]
            sides = [(side.runs[both], side.passes[both]) for side in (left, right)]
            kept = None if weight is None else weight[both]
            answers = pass_hat_differences(*sides, ks=some, confidence=confidence, weight=kept)
            found.update(zip(some, answers, strict=True))
    return found


def _noise(
    left: Evidence, right: Evidence, options: ReportOptions, *, widened: bool
) -> NoiseSources | Unavailable:
    """Where the width of the mean score's interval comes from, unless rounds or days add to it."""
    if widened:
        return Unavailable("the interval also includes the spread between rounds, seeds or days")
    family, weight = _groups(left, right)
    return noise_sources(
        left.scores, right.scores, family=family, weight=weight, confidence=options.confidence
    )


def _seeded_difference(
    tables: tuple[Trials, Trials], options: ReportOptions
) -> Estimate | Unavailable:
    return independent_difference(*(_seeded_mean(one, options) for one in tables))


def _seeded_mean(trials: Trials, options: ReportOptions) -> Estimate | Unavailable:
    system = trials.systems[0]
    if trials.seed is None:
        return Unavailable(f"the trials of {system} carry no seed")
    if (runs := seeded_runs(trials, options.errors)) is None:
        return Unavailable(f"no trial of {system} on the shared tasks carries a seed")
    found = runs.variance(scope=THIS_SUITE, confidence=options.confidence)
    return found if isinstance(found, Unavailable) else found.mean


def _error_note(tallies: Sequence[Tally], options: ReportOptions) -> tuple[str, ...]:
    counted = "counted as failures" if options.errors == "fail" else "left out"
    return tuple(
        f"{plural(int(tally.errored.sum()), 'trial')} of {tally.system} errored, {counted}"
        for tally in tallies
        if tally.errored.any()
    )
