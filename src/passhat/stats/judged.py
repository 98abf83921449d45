"""Pass rates of trials that an imperfect judge graded, corrected with the labels of people.

Every trial has the judge's verdict, and a random sample of them has a label too: what a person
says. Nothing here models the judge. pass@1 is the share that people pass among the trials that the
judge passed, and among those that it failed, each weighted by how many there are. That is
prediction-powered inference (Angelopoulos et al. 2023) with one rectifier for each verdict, or
post-stratification. It never divides by the judge's accuracy, as Rogan and Gladen (1978) do.

pass^k for k > 1 is not determined by labels of single trials: where the judge's errors go with the
task (a rubric that it always misreads), its spread is taken for the agent's. It takes k labels of
the same task. bench/calibrate/judges.py has the coverage of all this, and of what was not taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from passhat.arguments import CONFIDENCE, confidence_level
from passhat.dataclass import dataclass, result_dataclass
from passhat.messages import plural
from passhat.stats import special
from passhat.stats.arguments import Counts, Floats, random_generator
from passhat.stats.estimate import (
    TASKS_LIKE_THESE,
    Estimate,
    Interval,
    Number,
    Scope,
    Unavailable,
    independent_difference,
)
from passhat.stats.numerics import find_root
from passhat.stats.passk import share_of_passing_subsets
from passhat.stats.population_bounds import (
    UNSEEN,
    Families,
    TaskGroups,
    few_families_note,
    grouping,
    lower_quantile,
    lower_ratio_quantile,
)

FEWEST_LABELS = 10
"""Labels under each verdict below which no corrected number is stated."""

FEWEST_LABELLED_TASKS = 12
"""Tasks with k labels below which no corrected pass^k is stated."""

VERDICTS_HELP_FROM = 20
"""Labelled tasks from which on the verdicts make a corrected pass^k narrower.

With fewer they widen it by up to 14 %. That the choice depends on the design alone, never on the
labels, keeps the bound coherent: a tuned weight (PPI++) would not be."""

# The weight of the verdicts in a corrected pass^k.
_HALF = 0.5
# Quantiles of each verdict's rate, and points that stand for all pairs of them: four times as many
# move no end of an interval by 0.002.
_QUANTILES, _POINTS = 256, 512
# Of the mean of the trials, and of the runs that could have been: points of a difference.
_MEANS, _RUNS = 128, 64
# What each side of a draw has a row for, and which of these are its labels.
_ROWS, _LABEL_ROWS = 8, slice(4, 6)
# Draws of tasks: a quantile at 2.5 % is within a hundredth of the interval's width.
_DRAWS, _FEWEST_DRAWS = 4096, 1024
# Draws times tasks held at once: bounds the memory.
_BLOCK = 1 << 21
# With more numbers than this to draw there are fewer draws.
_MOST_DRAWN = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Verdicts:
    """What the judge said of each task's trials, and how much the task weighs.

    `errored` trials have no verdict: they are known to have failed, and need no label.
    """

    passed: Counts
    failed: Counts
    errored: Counts
    weight: Floats | None = None
    family: Families | None = None

    @property
    def runs(self) -> Counts:
        return self.passed + self.failed + self.errored

    @property
    def share(self) -> Floats:
        """The weight of each task's every trial; those of all trials add up to 1."""
        own = np.ones(self.runs.size) if self.weight is None else self.weight
        shares: Floats = own / own.sum() / self.runs
        return shares


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Labels:
    """Trials that people labelled: task, verdict, what people say, and the chance of being chosen.

    Trials must have been chosen at random, with chances that depend at most on their verdict and
    their task. `chance` need only be known up to a factor for each verdict; None: alike for all.
    """

    task: NDArray[np.intp]
    verdict: NDArray[np.bool_]
    passed: NDArray[np.bool_]
    chance: Floats | None = None

    def __len__(self) -> int:
        return int(self.task.size)


def corrected_pass_rate(
    verdicts: Verdicts, labels: Labels, *, scope: Scope, confidence: float = CONFIDENCE
) -> Number:
    """pass@1 as people would have graded it, from labels of single trials.

    For "this suite", the rates of both verdicts are drawn from beta distributions as of Clopper and
    Pearson, with 3/4 of a label that was not seen; what was labelled is known; and the runs would
    differ if they were made again, at most as coin flips do. For "tasks like these" tasks are drawn
    again with all their trials and labels, by random weights (Gaffke 2005). Both are coherent: a
    label turned from fail to pass raises every draw, so it never lowers an end.

    >>> verdicts = Verdicts(passed=np.array([8] * 25), failed=np.array([2] * 25),
    ...                     errored=np.zeros(25, np.int64))
    >>> labels = Labels(task=np.arange(50) % 25, verdict=np.arange(50) < 25,
    ...                 passed=(np.arange(50) < 22) | (np.arange(50) >= 47))
    >>> rate = corrected_pass_rate(verdicts, labels, scope="this suite")
    >>> round(rate.value, 3), round(rate.interval.low, 2), round(rate.interval.high, 2)
    (0.728, 0.58, 0.82)
    """
    level = confidence_level(confidence)
    if (refusal := labels_missing(verdicts, labels)) is not None:
        return refusal
    strata = Strata.of(verdicts, labels)
    tail, alike = (1 - level) / 2, scope == TASKS_LIKE_THESE
    low, missing = (
        s.low_of_similar(tail) if alike else s.low(tail) for s in (strata, strata.mirrored())
    )
    families = grouping(verdicts.family, verdicts.weight, verdicts.runs.size)
    return Estimate(
        value=strata.value,
        interval=Interval(min(low, strata.value), max(1 - missing, strata.value)),
        method=f"labels by verdict, {'tasks drawn again' if alike else 'two betas'}",
        confidence=level,
        scope=scope,
        tasks=int(verdicts.runs.size),
        runs=int(verdicts.runs.sum()),
        notes=few_families_note(families) if alike else (),
    )


def corrected_pass_hat(
    verdicts: Verdicts, labels: Labels, k: int, *, confidence: float = CONFIDENCE
) -> Number:
    """pass^k as people would have graded it, from tasks drawn at random with k labels or more each.

    The share of k-tuples of a task that pass is seen in its labels, whatever the judge's errors
    depend on. From twenty labelled tasks on, half of what its verdicts differ from those of all
    tasks is taken off. The bound is the report's own for similar tasks; it holds for these tasks.

    >>> verdicts = Verdicts(passed=np.array([8] * 40), failed=np.array([2] * 40),
    ...                     errored=np.zeros(40, np.int64))
    >>> labels = Labels(task=np.repeat(np.arange(12), 5), verdict=np.ones(60, bool),
    ...                 passed=np.arange(60) % 20 > 0)
    >>> pass_hat = corrected_pass_hat(verdicts, labels, 3)
    >>> round(pass_hat.value, 2), round(pass_hat.interval.low, 2), round(pass_hat.interval.high, 2)
    (0.85, 0.61, 0.97)
    """
    level = confidence_level(confidence)
    whole = _WholeTasks.of(verdicts, labels, k)
    if isinstance(whole, Unavailable):
        return whole
    count = int(np.count_nonzero(whole.seen))
    weight = _HALF if count >= VERDICTS_HELP_FROM else 0.0
    values = whole.corrected(weight)[whole.seen]
    size = whole.size[whole.seen]
    family = verdicts.family
    families = None if family is None else np.asarray(family, object)[whole.seen]
    group = grouping(families, size, count)
    worst, best = -weight * (1 - whole.mean), 1 + weight * whole.mean
    low, high = _population_ends(values, group, (1 - level) / 2, worst, best)
    value = float(np.average(values, weights=size))
    low, value, high = (whole.able * float(np.clip(end, 0.0, 1.0)) for end in (low, value, high))
    return Estimate(
        value=value,
        interval=Interval(min(low, value), max(high, value)),
        method="whole labelled tasks, Dirichlet",
        confidence=level,
        scope=TASKS_LIKE_THESE,
        tasks=int(verdicts.runs.size),
        runs=int(verdicts.runs.sum()),
        notes=few_families_note(group),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _WholeTasks:
    """Tasks of which k trials or more were labelled (`seen`), and their share of passing k-tuples.

    `able` is the weight of the tasks that can have a pass^k above 0: one with fewer than k trials
    that did not error has a pass^k of 0 without any label. `judged` is pass^k of every task by its
    verdicts, and `mean` that of the tasks that are able.
    """

    seen: NDArray[np.bool_]
    size: Floats
    able: float
    values: Floats
    judged: Floats
    mean: float

    @classmethod
    def of(cls, verdicts: Verdicts, labels: Labels, k: int) -> _WholeTasks | Unavailable:
        tasks, runs = verdicts.runs.size, verdicts.runs
        if short := int(np.count_nonzero(runs < k)):
            return Unavailable(f"pass^{k} needs {k} trials of every task; {short:,} have fewer")
        read = np.bincount(labels.task, minlength=tasks)
        right = np.bincount(labels.task, labels.passed, minlength=tasks)
        graded = verdicts.passed + verdicts.failed
        can = graded >= k
        seen = can & (read >= k)
        count = int(np.count_nonzero(seen))
        needed = min(FEWEST_LABELLED_TASKS, int(np.count_nonzero(can)))
        if count < needed:
            return Unavailable(f"label {k} trials of each of {plural(needed - count, 'more task')}")
        size = np.ones(tasks) if verdicts.weight is None else verdicts.weight
        able = float(size[can].sum() / size.sum())
        if not able:
            return Unavailable(f"no task has {k} trials that did not error")
        among = share_of_passing_subsets(runs, graded, k)
        judged = share_of_passing_subsets(runs, verdicts.passed, k)
        values = np.zeros(tasks)
        values[seen] = among[seen] * share_of_passing_subsets(read[seen], right[seen], k)
        mean = float(size[can] @ judged[can] / size[can].sum())
        return cls(seen=seen, size=size, able=able, values=values, judged=judged, mean=mean)

    def corrected(self, weight: float) -> Floats:
        """The values, less so much of what their verdicts differ from those of all tasks."""
        corrected: Floats = self.values - weight * (self.judged - self.mean)
        return corrected


def limits_of_pass_hat(rate: Estimate, k: int) -> Interval | None:
    """Where pass^k lies whatever tasks and judge are like: at most pass@1, at least its k-th power.

    The second is Jensen's inequality.

    >>> rate = Estimate(value=0.9, interval=Interval(0.8, 0.95), method="", confidence=0.95)
    >>> limits_of_pass_hat(rate, 2)
    Interval(low=0.6400000000000001, high=0.95)
    """
    return rate.interval and Interval(rate.interval.low**k, rate.interval.high)


def _population_ends(
    values: Floats, group: TaskGroups | None, tail: float, worst: float, best: float
) -> tuple[float, float]:
    """The ends for the mean of values of tasks, of which what was not seen is at its worst."""
    if group is None:
        ones = np.ones(values.size)
        low = lower_quantile(values, ones, tail, unseen=worst)
        return float(low), -float(lower_quantile(-values, ones, tail, unseen=-best))
    group = group if group.many_families else group.alone()
    sums = np.bincount(group.family, values * group.weight)
    sizes = np.bincount(group.family, group.weight)
    low = lower_ratio_quantile(sums, sizes, tail, unseen=worst)
    return float(low), -float(lower_ratio_quantile(-sums, sizes, tail, unseen=-best))


def labels_missing(verdicts: Verdicts, labels: Labels) -> Unavailable | None:
    """What to label before a pass rate can be corrected; None if there is enough."""
    short = []
    for word, trials, read in (
        ("passed", int(verdicts.passed.sum()), int(np.count_nonzero(labels.verdict))),
        ("failed", int(verdicts.failed.sum()), int(np.count_nonzero(~labels.verdict))),
    ):
        if (needed := min(FEWEST_LABELS, trials) - read) > 0:
            short.append(f"{plural(needed, 'more trial')} that the judge {word}")
    return Unavailable(f"label {' and '.join(short)}") if short else None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Strata:
    """The trials of each task by verdict, as draws need them; weights of all trials add up to 1.

    `size` is the weight of each task and `known` that of its trials that are known to pass. The
    next have a row for trials that the judge passed and one for those that it failed: `open` is the
    weight of trials without a label, `labels` how many labels there are and `passes` how many of
    them pass, in labels of equal weight (Kish 1965). `runs` is how many equal trials the suite
    amounts to, and `group` the family of each task, or the task itself.
    """

    size: Floats
    known: Floats
    open: Floats
    labels: Floats
    passes: Floats
    runs: float
    group: NDArray[np.intp]

    @classmethod
    def of(cls, verdicts: Verdicts, read: Labels) -> Strata:
        tasks, share = verdicts.runs.size, verdicts.share
        own = share[read.task]
        drawn = own if read.chance is None else own / read.chance
        left, labels, passes = np.zeros((3, 2, tasks))
        for row, (side, trials) in enumerate(
            ((read.verdict, verdicts.passed), (~read.verdict, verdicts.failed))
        ):
            at, weight = read.task[side], drawn[side]
            labelled = np.bincount(at, minlength=tasks)
            left[row] = share * np.maximum(trials - labelled, 0)
            if weight.size:
                weight = weight * (weight.sum() / (weight @ weight))
                labels[row] = np.bincount(at, weight, minlength=tasks)
                passes[row] = np.bincount(at, weight * read.passed[side], minlength=tasks)
        families = grouping(verdicts.family, verdicts.weight, tasks)
        many = families is not None and families.many_families
        return cls(
            size=share * verdicts.runs,
            known=np.bincount(read.task, own * read.passed, minlength=tasks).astype(np.float64),
            open=left,
            labels=labels,
            passes=passes,
            runs=float(1 / (verdicts.runs @ share**2)),
            group=families.family if many and families is not None else np.arange(tasks),
        )

    @property
    def value(self) -> float:
        """pass@1 as people would have graded it."""
        rates = self.passes.sum(axis=1) / np.maximum(self.labels.sum(axis=1), 1e-300)
        return float(np.clip(self.known.sum() + self.open.sum(axis=1) @ rates, 0.0, 1.0))

    def mirrored(self) -> Strata:
        """The same of failures: what is neither open nor known to pass is known to fail."""
        known = np.maximum(self.size - self.known - self.open.sum(axis=0), 0.0)
        return replace(self, known=known, passes=self.labels - self.passes)

    def low(self, tail: float) -> float:
        """The lower end for these tasks: the runs would differ if they were made again."""
        mean = np.clip(self.graded_by_people(), 0.0, 1.0)
        if not mean.any():
            return 0.0
        # The noise of runs is at most that of coin flips: tasks that differ have less.
        passes, failures = np.maximum(self.runs * mean, 1e-300), self.runs * (1 - mean) + UNSEEN
        # The end lies between those of the lowest and the highest point, each by itself.
        ends = np.asarray(special.betaincinv(passes[[0, -1]], failures[[0, -1]], tail), np.float64)
        return float(
            find_root(
                lambda x: tail - special.betainc(passes, failures, x[..., None]).mean(axis=-1),
                ends[:1],
                ends[1:],
            )[0]
        )

    def graded_by_people(self) -> Floats:
        """A pessimistic distribution of the mean of these very trials, had people graded them all.

        Equally likely points, in order. The rate of each verdict is taken at evenly spread
        quantiles, every one of the first with every one of the second.
        """
        rates = []
        for passes, labels in zip(self.passes.sum(axis=1), self.labels.sum(axis=1), strict=True):
            at = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
            least = max(labels - passes, 0.0) + UNSEEN
            rates.append(special.betaincinv(passes, least, at) if passes > 0 else np.zeros(at.size))
        left = self.open.sum(axis=1)
        mean = np.add.outer(left[0] * rates[0], left[1] * rates[1]).ravel()
        mean.sort()
        points: Floats = self.known.sum() + mean.reshape(_POINTS, -1).mean(axis=1)
        return points

    def low_of_similar(self, tail: float) -> float:
        """The lower end for similar tasks."""
        return float(np.quantile(draws_of_tasks(self)[0], tail))

    def quantiles_of_runs(self) -> Floats:
        """`graded_by_people` had the runs been made again, as equally likely points in order."""
        mean = np.clip(self.graded_by_people(), 0.0, 1.0).reshape(_MEANS, -1).mean(axis=1)
        at = (np.arange(_RUNS) + 0.5) / _RUNS
        passes = np.maximum(self.runs * mean, 1e-300)[:, None]
        points = special.betaincinv(passes, self.runs * (1 - mean)[:, None] + UNSEEN, at).ravel()
        points.sort()
        quantiles: Floats = points.reshape(_POINTS, -1).mean(axis=1)
        return quantiles


def draws_of_tasks(*sides: Strata) -> list[Floats]:
    """Draws of the means over other tasks (or families), each with its trials and labels.

    Several sides have the same tasks, and every draw has the same tasks of all of them.
    """
    sums = np.concatenate(
        [
            np.stack([side.size, side.known, *side.open, *side.labels, *side.passes])
            for side in sides
        ]
    )
    group = sides[0].group
    groups = int(group.max(initial=-1)) + 1
    sums = np.stack([np.bincount(group, row, minlength=groups) for row in sums])
    counted, sums = _joined(sums)
    # One that was not seen is as large as the group of a task drawn at random, and fails.
    largest = float(sums[0] @ (sums[0] / counted) / sums[0].sum())
    rng, _ = random_generator(None)
    count = max(_FEWEST_DRAWS, min(_DRAWS, _MOST_DRAWN // counted.size))
    means: list[list[Floats]] = [[] for _ in sides]
    for start in range(0, count, block := max(1, _BLOCK // counted.size)):
        rows = min(block, count - start)
        weights = rng.gamma(counted, size=(rows, counted.size))
        unseen = rng.gamma(UNSEEN, size=(1 + 2 * len(sides), rows))
        drawn = (weights @ (sums / counted).T).T.reshape(len(sides), -1, rows)
        for place, side in enumerate(drawn):
            size, known, open_1, open_0, read_1, read_0, pass_1, pass_0 = side
            right = known + open_1 * (pass_1 / (read_1 + unseen[1 + 2 * place]))
            right += open_0 * (pass_0 / (read_0 + unseen[2 + 2 * place]))
            means[place].append(right / (size + largest * unseen[0]))
    return [np.concatenate(blocks) for blocks in means]


def _joined(sums: Floats) -> tuple[Floats, Floats]:
    """Groups without a label that are alike, joined: how many each stands for, and their sums.

    Whether a group has a label depends on the design, never on what it says: so do the draws.
    """
    labelled = sums.reshape(-1, _ROWS, sums.shape[1])[:, _LABEL_ROWS].any(axis=(0, 1))
    bare, place, count = np.unique(
        sums[:, ~labelled].round(15), axis=1, return_inverse=True, return_counts=True
    )
    del place
    counted = np.concatenate((np.ones(np.count_nonzero(labelled)), count.astype(np.float64)))
    return counted, np.concatenate((sums[:, labelled], bare * count), axis=1)


# The difference of two agents under one judge, which may like the style of one of them.

Graded = tuple[Verdicts, Labels]
"""One agent: its verdicts on the tasks that both ran, in the same order, and its labels."""


def corrected_difference(
    first: Graded, second: Graded, *, scope: Scope, confidence: float = CONFIDENCE
) -> Number:
    """pass@1 of the first agent minus that of the second, as people would have graded both.

    For "this suite" the two are independent: every pessimistic point of the first against every
    optimistic point of the second. For "tasks like these" every draw has the same tasks of both.
    A label turned from fail to pass raises every point of its own side, so the difference is as
    coherent as the two rates are.

    >>> verdicts = Verdicts(passed=np.array([8] * 25), failed=np.array([2] * 25),
    ...                     errored=np.zeros(25, np.int64))
    >>> task, judged = np.arange(50) % 25, np.arange(50) < 25
    >>> good, bad = (Labels(task=task, verdict=judged, passed=judged & (task < right))
    ...              for right in (25, 5))
    >>> ahead = corrected_difference((verdicts, good), (verdicts, bad), scope="this suite")
    >>> round(ahead.value, 2), round(ahead.interval.low, 2), round(ahead.interval.high, 2)
    (0.64, 0.45, 0.76)
    """
    level = confidence_level(confidence)
    for graded in (first, second):
        if (refusal := labels_missing(*graded)) is not None:
            return refusal
    sides = [Strata.of(*graded) for graded in (first, second)]
    tail, alike = (1 - level) / 2, scope == TASKS_LIKE_THESE
    lower = _low_of_difference_of_similar if alike else _low_of_difference
    low, high = lower(sides[0], sides[1], tail), -lower(sides[1], sides[0], tail)
    value = sides[0].value - sides[1].value
    verdicts = first[0]
    families = grouping(verdicts.family, verdicts.weight, verdicts.runs.size)
    return Estimate(
        value=value,
        interval=Interval(min(low, value), max(high, value)),
        method=f"labels of both by verdict, {'tasks drawn again' if alike else 'two betas each'}",
        confidence=level,
        scope=scope,
        tasks=int(verdicts.runs.size),
        runs=int(verdicts.runs.sum() + second[0].runs.sum()),
        notes=few_families_note(families) if alike else (),
    )


def _low_of_difference(better: Strata, worse: Strata, tail: float) -> float:
    optimistic = 1 - worse.mirrored().quantiles_of_runs()
    points = np.subtract.outer(better.quantiles_of_runs(), optimistic)
    return float(np.quantile(points, tail))


def _low_of_difference_of_similar(better: Strata, worse: Strata, tail: float) -> float:
    low, failing = draws_of_tasks(better, worse.mirrored())
    return float(np.quantile(low - (1 - failing), tail))


def corrected_pass_hat_difference(
    first: Graded, second: Graded, k: int, *, confidence: float = CONFIDENCE
) -> Number:
    """pass^k of the first agent minus that of the second, as people would have graded both.

    Over tasks of which both have k labels, where there are enough of them: task by task, by the
    report's own bound for differences. Otherwise as the difference of two independent numbers,
    which is on the wide side if some tasks are the same.
    """
    level = confidence_level(confidence)
    sides = [_WholeTasks.of(*graded, k) for graded in (first, second)]
    for side in sides:
        if isinstance(side, Unavailable):
            return side
    own, other = (side for side in sides if isinstance(side, _WholeTasks))
    both = own.seen & other.seen
    count = int(np.count_nonzero(both))
    if count < FEWEST_LABELLED_TASKS or min(own.able, other.able) < 1:
        return independent_difference(
            *(corrected_pass_hat(*graded, k, confidence=level) for graded in (first, second))
        )
    weight = _HALF if count >= VERDICTS_HELP_FROM else 0.0
    values = (own.corrected(weight) - other.corrected(weight))[both]
    family = first[0].family
    families = None if family is None else np.asarray(family, object)[both]
    group = grouping(families, own.size[both], count)
    shift = weight * (own.mean - other.mean)
    reach = 1 + weight
    low, high = _population_ends(values, group, (1 - level) / 2, shift - reach, shift + reach)
    value = float(np.average(values, weights=own.size[both]))
    low, value, high = (float(np.clip(end, -1.0, 1.0)) for end in (low, value, high))
    return Estimate(
        value=value,
        interval=Interval(min(low, value), max(high, value)),
        method="tasks labelled of both, Dirichlet",
        confidence=level,
        scope=TASKS_LIKE_THESE,
        tasks=int(first[0].runs.size),
        runs=int(first[0].runs.sum() + second[0].runs.sum()),
        notes=few_families_note(group),
    )


# How often a judge is wrong.


@result_dataclass(frozen=True, slots=True, kw_only=True)
class JudgeErrors:
    """How often a judge and people agree, and how often it passes or fails what people do not.

    `false_passes` is the share of the trials it passed that people fail, `false_fails` that of the
    trials it failed that people pass; `kappa` is Cohen's, with the shares of all trials.
    """

    agreement: Number
    kappa: Number
    false_passes: Number
    false_fails: Number


def judge_errors(
    labels: Labels, *, passed: int, failed: int, confidence: float = CONFIDENCE
) -> JudgeErrors:
    """The errors of a judge from labels of trials chosen at random, alike in the same task.

    `labels.task` are clusters: labels of one task are drawn again together, with a share of a label
    that was not seen at its worst. `passed` and `failed` count all trials by its verdict.

    >>> rows = np.arange(40)
    >>> labels = Labels(task=rows, verdict=rows < 20, passed=(rows < 18) | (rows == 39))
    >>> errors = judge_errors(labels, passed=80, failed=20)
    >>> round(errors.false_passes.value, 2), round(errors.false_fails.value, 2)
    (0.1, 0.05)
    >>> round(errors.agreement.value, 2), round(errors.kappa.value, 2)
    (0.91, 0.75)
    """
    level = confidence_level(confidence)
    tail = (1 - level) / 2
    _, cluster = np.unique(labels.task, return_inverse=True)
    wrong = labels.verdict != labels.passed
    rng, _ = random_generator(None)
    weights = rng.exponential(size=(_DRAWS, int(cluster.max(initial=-1)) + 1))[:, cluster]
    lows, highs, values = [], [], []
    for side in (labels.verdict, ~labels.verdict):
        unseen = rng.gamma(UNSEEN, size=_DRAWS)
        total, errors = (weights[:, kept].sum(axis=1) for kept in (side, side & wrong))
        count = max(1, int(np.count_nonzero(side)))
        lows.append(errors / (total + unseen))
        highs.append((errors + unseen) / (total + unseen))
        values.append(np.array([np.count_nonzero(side & wrong) / count]))
    shares = np.array([passed, failed]) / max(passed + failed, 1)
    numbers = {}
    for name, of in {"agreement": _agreement, "kappa": _kappa}.items():
        low = float(np.quantile(of(shares, highs), tail))
        high = float(np.quantile(of(shares, lows), 1 - tail))
        numbers[name] = (float(of(shares, values)[0]), low, high)
    for name, row in {"false_passes": 0, "false_fails": 1}.items():
        low = float(np.quantile(lows[row], tail))
        high = float(np.quantile(highs[row], 1 - tail))
        numbers[name] = (float(values[row][0]), low, high)
    every = len(labels), passed + failed
    read = {
        "agreement": every,
        "kappa": every,
        "false_passes": (int(np.count_nonzero(labels.verdict)), passed),
        "false_fails": (int(np.count_nonzero(~labels.verdict)), failed),
    }
    rates: dict[str, Number] = {}
    for name, (value, low, high) in numbers.items():
        count, trials = read[name]
        if count < max(1, min(FEWEST_LABELS, trials)):
            reason = f"{plural(count, 'label')} of such trials; it takes {FEWEST_LABELS}"
            rates[name] = Unavailable(reason)
            continue
        rates[name] = Estimate(
            value=value,
            interval=Interval(min(low, value), max(high, value)),
            method="labels, tasks drawn again",
            confidence=level,
            runs=count,
        )
    return JudgeErrors(**rates)


def _agreement(shares: Floats, wrong: Sequence[Floats]) -> Floats:
    right: Floats = shares[0] * (1 - wrong[0]) + shares[1] * (1 - wrong[1])
    return right


def _kappa(shares: Floats, wrong: Sequence[Floats]) -> Floats:
    people = shares[0] * (1 - wrong[0]) + shares[1] * wrong[1]
    by_chance = shares[0] * people + shares[1] * (1 - people)
    kappa: Floats = (_agreement(shares, wrong) - by_chance) / np.maximum(1 - by_chance, 1e-12)
    return kappa


def leniency(labels: Labels, group: NDArray[np.bool_], *, confidence: float = CONFIDENCE) -> Number:
    """How much more often the judge passes the trials of a group than others of the same worth.

    Trials that people pass are compared with such trials, and those they fail with such, at the
    shares that all of them have: a judge that errs as often with both is not taken for one that
    likes the better agent, or the worse. `labels.chance` is that of each trial to be labelled.
    Labels of one task are drawn again together, with a share of a label not seen at its worst.

    >>> rows = np.arange(80)
    >>> group, passed = rows % 2 == 0, rows % 4 < 2
    >>> labels = Labels(task=rows, verdict=passed | (group & (rows % 8 == 2)), passed=passed)
    >>> more = leniency(labels, group)
    >>> round(more.value, 2), round(more.interval.low, 2), round(more.interval.high, 2)
    (0.25, 0.08, 0.39)
    """
    level = confidence_level(confidence)
    for side in (group, ~group):
        if (read := int(np.count_nonzero(side))) < FEWEST_LABELS:
            return Unavailable(f"{plural(read, 'label')} of one side; it takes {FEWEST_LABELS}")
    own = np.ones(len(labels)) if labels.chance is None else 1 / labels.chance
    _, cluster = np.unique(labels.task, return_inverse=True)
    rng, _ = random_generator(None)
    drawn = rng.exponential(size=(_DRAWS, int(cluster.max()) + 1))[:, cluster] * own
    low, high, value, counted = np.zeros(_DRAWS), np.zeros(_DRAWS), 0.0, 0.0
    for people in (True, False):
        worth = labels.passed == people
        share = float(own[worth].sum() / own.sum())
        bounds, rates = [], []
        for side in (group, ~group):
            kept = side & worth
            unseen = rng.gamma(UNSEEN, size=_DRAWS) * own[side].mean()
            total, passed = (drawn[:, rows].sum(axis=1) for rows in (kept, kept & labels.verdict))
            bounds.append((passed / (total + unseen), (passed + unseen) / (total + unseen)))
            if kept.any():
                rates.append(float(np.average(labels.verdict[kept], weights=own[kept])))
        low += share * (bounds[0][0] - bounds[1][1])
        high += share * (bounds[0][1] - bounds[1][0])
        if len(rates) == 2:
            value, counted = value + share * (rates[0] - rates[1]), counted + share
    value = value / counted if counted else 0.0
    tail = (1 - level) / 2
    return Estimate(
        value=value,
        interval=Interval(
            min(float(np.quantile(low, tail)), value),
            max(float(np.quantile(high, 1 - tail)), value),
        ),
        method="labels of the same worth, tasks drawn again",
        confidence=level,
        runs=len(labels),
    )
