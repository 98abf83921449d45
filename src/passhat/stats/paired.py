"""The difference of two systems on the same tasks, with a verdict and what would settle it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from passhat.arguments import CONFIDENCE, probability
from passhat.dataclass import dataclass, short_dataclass
from passhat.messages import plural
from passhat.stats.arguments import (
    Counts,
    Floats,
    RandomSource,
    confidence_level,
    one_of,
    random_generator,
)
from passhat.stats.cells import count_cells
from passhat.stats.derived_intervals import independent_difference, to_zero
from passhat.stats.estimate import (
    FEW_TASKS,
    TASKS_LIKE_THESE,
    THIS_SUITE,
    Interval,
    Number,
    Scope,
    Unavailable,
)
from passhat.stats.mean_intervals import bounds_side_by_side
from passhat.stats.paired_exact import ExactP, divided_passes_test, sign_flip_test
from passhat.stats.paired_fit import Fit, Pair, aligned, family_sums, population_fit, suite_fit
from passhat.stats.population_mean import Families, TaskGroups, few_families_note, grouping
from passhat.stats.special import ndtri
from passhat.stats.suite_mean import estimates_within, suite_estimates
from passhat.stats.task_sums import TaskSums

Answer = Literal["better", "worse", "equivalent", "undecided"]

STATE_A_MARGIN = "no difference was seen: to show equivalence, state a margin"
# The usual 80 % of a planned trial (Cohen 1988).
SETTLING_POWER = 0.8
# A plan for more than this many times the present runs is no plan.
_HOPELESS = 1e9


@short_dataclass(frozen=True, slots=True, kw_only=True)
class PairedDifference:
    """Mean of a minus mean of b over the same tasks, and whether a is better or worse.

    `p_value` is the larger of the interval's own and the exact test's: both must agree before
    a side is called better.
    """

    value: float
    interval: Interval
    method: str
    confidence: float
    scope: Scope
    answer: Answer
    margin: float | None
    p_value: float
    interval_p: float
    exact_p: float | None
    exact_method: str | None
    standard_error: float
    unpaired_error: float | None
    needed: Needed | None
    tasks: int
    runs: tuple[int, int] | None
    excluded: tuple[int, ...] = ()
    families: int | None = None
    family_interval: Interval | None = None
    seed: int | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Needed:
    """What would settle an undecided comparison with `power`, if the difference stays as it is.

    `more_runs` counts further runs of both systems on the same tasks; `more_tasks` counts new
    tasks run like the present ones. None: no number of these would do, or it is not known.
    """

    more_runs: int | None
    more_tasks: int | None
    power: float = SETTLING_POWER


def paired_difference(
    a: TaskSums | ArrayLike,
    b: TaskSums | ArrayLike,
    *,
    scope: Scope,
    confidence: float = CONFIDENCE,
    margin: float | None = None,
    family: Families | None = None,
    weight: ArrayLike | None = None,
    rng: RandomSource = None,
) -> PairedDifference | Unavailable:
    """How much better system a is than system b on the tasks that both ran.

    `a` and `b` are aligned by task: TaskSums, or (in "tasks like these") one value a task such
    as its pass^k, with nan where a task has none. Tasks without a run on both sides are
    `excluded`, by position. `family` labels tasks that come from one source, and `weight` is the
    weight of each task; in "tasks like these" families are then what was sampled.

    >>> a = TaskSums.of_passes([5] * 8, [5, 5, 4, 5, 3, 5, 5, 4])
    >>> b = TaskSums.of_passes([5] * 8, [3, 4, 2, 4, 1, 4, 5, 1])
    >>> found = paired_difference(a, b, scope="tasks like these")
    >>> round(found.value, 3), found.answer, round(found.exact_p, 3)
    (0.3, 'better', 0.008)
    """
    one_of("scope", scope, (THIS_SUITE, TASKS_LIKE_THESE))
    confidence = confidence_level(confidence)
    margin = None if margin is None else probability("margin", margin, open_ends=True)
    pair = aligned(a, b, scope, _grouping(a, family, weight))
    reason = _why_not(pair, scope)
    if reason:
        return Unavailable(reason)
    return _judged(pair, scope=scope, confidence=confidence, margin=margin, rng=rng)


def pass_hat_differences(
    a: tuple[Counts, Counts],
    b: tuple[Counts, Counts],
    *,
    ks: Sequence[int],
    confidence: float = CONFIDENCE,
    weight: Floats | None = None,
) -> list[Number]:
    """pass^k of system a minus that of b on this suite, from the runs and passes of its tasks.

    Every task has at least k runs on both sides, for every k. Given the tasks, the runs of two
    systems are independent.
    """
    if weight is None:
        cells = count_cells(*a), count_cells(*b)
        bounds = bounds_side_by_side(*cells, ks, confidence)
        first, second = (
            estimates_within(
                side, ends, metric="pass^k", ks=ks, scope=THIS_SUITE, confidence=confidence
            )
            for side, ends in zip(cells, bounds, strict=True)
        )
        return [independent_difference(*both) for both in zip(first, second, strict=True)]
    sides = (
        suite_estimates(*side, ks=ks, scopes=(THIS_SUITE,), confidence=confidence, weight=weight)
        for side in (a, b)
    )
    return [independent_difference(*one, *other) for one, other in zip(*sides, strict=True)]


def in_agreement(found: PairedDifference) -> PairedDifference:
    """The same, with an interval that reaches 0 if the exact test finds no difference."""
    if 0 in found.interval or found.p_value <= 1 - found.confidence:
        return found
    return replace(found, interval=to_zero(found.interval))


def _needed(
    pair: Pair, fit: Fit, scope: Scope, alpha: float, margin: float | None
) -> Needed | None:
    """The runs or tasks still needed; None if the observed difference gives no target."""
    target = _target_error(fit, alpha, margin)
    if target <= 0 or fit.error == 0:
        return None
    growth = (fit.error / target) ** 2
    if growth > _HOPELESS:
        return None
    if scope == THIS_SUITE:
        return Needed(more_runs=_more_runs(pair, growth), more_tasks=None)
    # If all tasks agree, the sign-flip test has p = 2^-tasks: with too few, no run can help.
    lacking = int(np.ceil(-np.log2(alpha))) - fit.tasks
    tasks = max(1, lacking, int(np.ceil((growth - 1) * fit.tasks)))
    runs = None if lacking > 0 else _population_runs(pair, fit, target)
    return Needed(more_runs=runs, more_tasks=tasks)


def _grouping(
    a: TaskSums | ArrayLike, family: Families | None, weight: ArrayLike | None
) -> TaskGroups | None:
    tasks = a.runs.size if isinstance(a, TaskSums) else np.atleast_1d(np.asarray(a)).size
    return grouping(family, weight, tasks)


def _why_not(pair: Pair, scope: Scope) -> str | None:
    tasks = pair.differences.size
    if tasks == 0:
        return "no task was run by both systems"
    if tasks == 1 and scope == TASKS_LIKE_THESE:
        return 'one shared task says nothing about "tasks like these"; 2 are needed'
    return None


def _judged(
    pair: Pair, *, scope: Scope, confidence: float, margin: float | None, rng: RandomSource
) -> PairedDifference:
    generator, seed = random_generator(rng)
    few = pair.group is not None and pair.group.few_families
    sampled = scope == TASKS_LIKE_THESE
    fit = population_fit(pair, by_family=not few) if sampled else suite_fit(pair)
    exact = _exact_test(pair, scope, generator, by_family=not few)
    interval, interval_p = fit.interval(1 - confidence), fit.p_value()
    p = max(interval_p, exact.p_value) if exact else interval_p
    answer = _answer(fit, interval, p, 1 - confidence, margin)
    undecided = answer == "undecided"
    return PairedDifference(
        value=fit.value,
        interval=interval,
        method=fit.method,
        confidence=confidence,
        scope=scope,
        answer=answer,
        margin=margin,
        p_value=p,
        interval_p=interval_p,
        exact_p=exact.p_value if exact else None,
        exact_method=exact.method if exact else None,
        standard_error=fit.error,
        unpaired_error=_unpaired_error(pair) if scope == TASKS_LIKE_THESE else None,
        needed=_needed(pair, fit, scope, 1 - confidence, margin) if undecided else None,
        tasks=fit.tasks,
        runs=_run_counts(pair),
        excluded=pair.excluded,
        families=None if pair.group is None else pair.group.families,
        family_interval=population_fit(pair).interval(1 - confidence) if sampled and few else None,
        seed=seed if exact and exact.random else None,
        notes=_notes(pair, fit, interval, p, answer, margin),
    )


def _exact_test(
    pair: Pair, scope: Scope, rng: np.random.Generator, *, by_family: bool
) -> ExactP | None:
    if scope == TASKS_LIKE_THESE:
        return sign_flip_test(family_sums(pair, by_family=by_family)[0], rng)
    assert pair.sums is not None
    left, right = pair.sums
    if not (left.binary and right.binary):
        return None
    passes = (left.total.astype(np.int64), right.total.astype(np.int64))
    return divided_passes_test(left.runs, passes[0], right.runs, passes[1])


def _answer(fit: Fit, interval: Interval, p: float, alpha: float, margin: float | None) -> Answer:
    # Two one-sided tests at alpha (Schuirmann, 1987): the 1 - 2 alpha interval inside the margin.
    if margin is not None:
        inner = fit.interval(min(2 * alpha, 1.0))
        if -margin < inner.low and inner.high < margin:
            return "equivalent"
    if p > alpha or 0 in interval:
        return "undecided"
    return "better" if fit.value > 0 else "worse"


def _unpaired_error(pair: Pair) -> float:
    left, right = pair.means
    return float(np.sqrt((left.var(ddof=1) + right.var(ddof=1)) / left.size))


def _run_counts(pair: Pair) -> tuple[int, int] | None:
    if pair.sums is None:
        return None
    return int(pair.sums[0].runs.sum()), int(pair.sums[1].runs.sum())


def _notes(
    pair: Pair, fit: Fit, interval: Interval, p: float, answer: Answer, margin: float | None
) -> tuple[str, ...]:
    notes = []
    if pair.excluded:
        missing = plural(len(pair.excluded), "task has", "tasks have")
        is_out = "is" if len(pair.excluded) == 1 else "are"
        notes.append(f"{missing} no result from one of the systems and {is_out} left out")
    if fit.tasks < FEW_TASKS:
        notes.append(f"only {plural(fit.tasks, 'shared task')}")
    notes.extend(few_families_note(pair.group))
    if answer == "undecided" and 0 not in interval:
        notes.append(f"the interval alone leaves out 0, but the exact test does not (p = {p:.3g})")
    if answer == "equivalent" and 0 not in interval:
        notes.append("the difference is real, and smaller than the margin")
    if answer == "undecided" and fit.value == 0 and margin is None:
        notes.append(STATE_A_MARGIN)
    return tuple(notes)


def _target_error(fit: Fit, alpha: float, margin: float | None) -> float:
    """The standard error that would settle it: away from 0, or inside the margin if nearer."""
    power = float(ndtri(SETTLING_POWER))
    target = abs(fit.value) / (fit.quantile(1 - alpha / 2) + power)
    if margin is not None:
        inside = (margin - abs(fit.value)) / (fit.quantile(1 - alpha) + power)
        target = max(target, inside)
    return target


def _population_runs(pair: Pair, fit: Fit, target: float) -> int | None:
    """Further runs that reach the target error; they reduce only the noise within tasks."""
    if pair.sums is None or pair.single.any():
        return None
    noise = float(pair.run_noise.mean())
    between = max(0.0, fit.error**2 * fit.tasks - noise)
    room = target**2 * fit.tasks - between
    if room <= 0 or noise == 0:
        return None
    return _more_runs(pair, noise / room)


def _more_runs(pair: Pair, growth: float) -> int:
    assert pair.sums is not None
    return sum(
        int(np.maximum(np.ceil(side.runs * growth) - side.runs, 1).sum()) for side in pair.sums
    )
