"""Coverage of numbers corrected for a judge's errors, beside that of its verdicts as they are."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import product
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from bench.calibrate.cells import run_cells
from bench.calibrate.peers import ask_peers
from bench.calibrate.simulated_suites import Difficulty
from bench.calibrate.table import Table
from passhat.analysis.comparing.trends import graded_changes
from passhat.analysis.reports.judged import LEAST_AGREEMENT, kappa_of
from passhat.stats.estimate import TASKS_LIKE_THESE, THIS_SUITE, Estimate, Interval, Number
from passhat.stats.judged import (
    Labels,
    Verdicts,
    corrected_difference,
    corrected_pass_hat,
    corrected_pass_hat_difference,
    corrected_pass_rate,
    leniency,
    limits_of_pass_hat,
)
from passhat.stats.paired import PairedDifference, paired_difference
from passhat.stats.passk import share_of_passing_subsets
from passhat.stats.population_bounds import lower_quantile
from passhat.stats.proportions import proportion_interval
from passhat.stats.sufficient_statistics import TaskSums
from passhat.stats.suite_mean import suite_estimate
from passhat.stats.trend import TaskSeries, change_points

SEED = 20261117
SIZES = [(tasks, runs, labels) for tasks in (20, 50) for runs in (5, 10) for labels in (60, 150)]
JUDGES = ((0.95, 0.95), (0.9, 0.85), (0.8, 0.7))
SPREADS = (0.0, 0.3)
"""How much the judge's errors go with the task, as an intraclass correlation."""
RATES = (
    Difficulty("Beta(2, 1)", beta=(2.0, 1.0)),
    Difficulty("70% at 0.93, 30% at 0.2", rates=(0.93, 0.2), shares=(0.7, 0.3)),
    Difficulty("Beta(12, 1)", beta=(12.0, 1.0)),
)
WHOLE = 5
"""Labels of each task where whole tasks are labelled."""

CORRECTED = (
    *("pass@1: by verdict", "pass@1: at random", "pass@1: whole tasks", "pass@1: similar tasks"),
    *("pass^3: whole tasks", "pass^5: whole tasks", "pass^3: limits", "pass^5: limits"),
)
OTHERS = (
    *("pass@1: labels alone", "pass@1: Rogan-Gladen", "pass@1: verdicts"),
    *("pass^3: labels alone", "pass^3: Rogan-Gladen", "pass^3: verdicts"),
    *("pass^5: labels alone", "pass^5: Rogan-Gladen"),
)
SURE, AGAIN = 0.96, 400
"""A cell that covers less than this may do so by chance: it is simulated again, so many times."""

Booleans = NDArray[np.bool_]


def tables(*, quick: bool = False) -> list[Table]:
    """One table of what passhat states, and one of what it does not."""
    share = float(os.environ.get("PASSHAT_SHARE", "1"))
    repetitions = 12 if quick else max(10, round(100 * share))
    sizes = [(50, 10, 60)] if quick else SIZES
    judges = JUDGES[1:2] if quick else JUDGES
    cells = [
        (*size, *judge, spread, place, repetitions)
        for size in sizes
        for judge in judges
        for spread in SPREADS
        for place in range(len(RATES))
    ]
    names = (*CORRECTED, *OTHERS)
    found = [cover(*cell) for cell in cells] if quick else run_cells("judges", cover, cells)
    every = {
        (*cell, law, name): one[name]
        for (*cell, law, _), one in zip(cells, found, strict=True)
        for name in names
    }
    again = [] if quick else _simulate_again(every, max(10, round(AGAIN * share)))
    rows = [
        [
            (
                *map(str, size),
                f"{judge[0]:g} / {judge[1]:g}",
                *(_worst_and_width(_by_spread(every, (*size, *judge), name)) for name in columns),
            )
            for size in sizes
            for judge in judges
        ]
        for columns in (CORRECTED, OTHERS)
    ]
    stated = [value for row in rows[0] for value in row[4:] if value != "refused"]
    worst = min(float(value.split(" / ")[0]) for value in stated)
    common = (
        "Coverage / mean width at a nominal 0.95, over three laws of pass rates alike (Beta(2, 1), "
        "70% at 0.93 and 30% at 0.2, Beta(12, 1)); of judges whose errors are alike on all "
        "tasks, or go with the task (intraclass correlation 0.3), the one that is covered less."
    )
    corrected = Table(
        title="Numbers corrected for a judge's errors",
        header=("T", "n", "labels", "sensitivity / specificity", *CORRECTED),
        rows=rows[0],
        finding=f"{common} Single labels by verdict or at random, or {WHOLE} labels of each of "
        f"labels / {WHOLE} tasks. The {len(again)} cells that covered less than {SURE} stand with "
        f"{AGAIN} other suites of each law. The worst cell covers {worst:.3f}.",
        repetitions=repetitions,
        seed=SEED,
    )
    others = Table(
        title="What a judge's errors do to numbers that are not corrected, or otherwise",
        header=("T", "n", "labels", "sensitivity / specificity", *OTHERS),
        rows=rows[1],
        finding=f"{common} Labels alone: for pass@1 Wilson over labels at random, for pass^k the "
        "bound for similar tasks over whole tasks. Rogan-Gladen: labels at random, by bootstrap; "
        "of pass^k the factorial moments, with tasks drawn again too. Verdicts: passhat's interval "
        "for these tasks.",
        repetitions=repetitions,
        seed=SEED,
    )
    differences = _differences(quick=quick, share=share)
    changes = _changes(quick=quick, share=share)
    people = _people(quick=quick, share=share)
    unequal = _unequal(quick=quick, share=share)
    return [corrected, others, _peers(quick=quick), unequal, differences, people, changes]


World = tuple[int, int, int, float, float]
"""Tasks, trials of each, labels; the judge's sensitivity and specificity."""
Found = dict[tuple[Any, ...], tuple[float, float] | None]
"""Coverage and mean width by world, spread, law and name; None where it is refused."""


def _by_spread(every: Found, world: World, name: str) -> list[list[tuple[float, float] | None]]:
    return [[every[*world, spread, law, name] for law in range(len(RATES))] for spread in SPREADS]


def _simulate_again(every: Found, repetitions: int) -> list[tuple[World, str]]:
    """Replace what covers too little to be sure by other suites, and say what that is."""
    unsure = [
        (world, name)
        for world in dict.fromkeys(key[:5] for key in every)
        for name in CORRECTED
        if (laws := _known(_by_spread(every, world, name))) and _coverage(laws) < SURE
    ]
    cells = [
        (*world, spread, law, repetitions, (name,), 1)
        for world, name in unsure
        for spread in SPREADS
        for law in range(len(RATES))
    ]
    for cell, one in zip(cells, run_cells("judges", cover, cells), strict=True):
        every[*cell[:7], cell[8][0]] = one[cell[8][0]]
    return unsure


def cover(
    tasks: int,
    runs: int,
    labels: int,
    sensitivity: float,
    specificity: float,
    spread: float,
    law: int,
    repetitions: int,
    names: Sequence[str] = (*CORRECTED, *OTHERS),
    part: int = 0,
) -> dict[str, tuple[float, float] | None]:
    """The coverage and the mean width of each method in one world; None where it refuses."""
    seeds = [SEED, tasks, runs, labels, law, int(100 * sensitivity)]
    rng = np.random.default_rng([*seeds, part] if part else seeds)
    counted: dict[str, list[tuple[bool, float]]] = {name: [] for name in names}
    for _ in range(repetitions):
        rates = RATES[law].draw((tasks,), rng)
        truth = rng.random((tasks, runs)) < rates[:, None]
        verdict = _judge(truth, sensitivity, specificity, spread, rng)
        aims = {
            "pass@1": float(rates.mean()),
            "pass^3": float((rates**3).mean()),
            "pass^5": float((rates**5).mean()),
        }
        for name, interval in _intervals(truth, verdict, labels, rng, names):
            similar = name == "pass@1: similar tasks"
            aim = RATES[law].mean_power(1) if similar else aims[name.partition(":")[0]]
            counted[name].append((aim in interval, interval.width))
    return {name: _mean_of(found) for name, found in counted.items()}


def _intervals(
    truth: Booleans,
    verdict: Booleans,
    labels: int,
    rng: np.random.Generator,
    names: Sequence[str],
) -> Iterator[tuple[str, Interval]]:
    tasks, runs = truth.shape
    passed = verdict.sum(axis=1)
    verdicts = Verdicts(passed=passed, failed=runs - passed, errored=np.zeros(tasks, np.int64))
    n = np.full(tasks, runs)

    def labelled(chosen: NDArray[np.intp]) -> Labels:
        return Labels(
            task=chosen // runs, verdict=verdict.ravel()[chosen], passed=truth.ravel()[chosen]
        )

    by_verdict = labelled(_by_verdict(verdict, labels, rng))
    at_random = labelled(rng.permutation(tasks * runs)[:labels])
    picked = rng.permutation(tasks)[: labels // WHOLE]
    columns = np.argsort(rng.random((picked.size, runs)), axis=1)[:, :WHOLE]
    whole = labelled((picked[:, None] * runs + columns).ravel())
    drawn = rng.integers(len(at_random), size=(400, len(at_random)))

    @cache
    def rate_by_verdict() -> Number:
        return corrected_pass_rate(verdicts, by_verdict, scope="this suite")

    def limits(k: int) -> Interval | None:
        rate = rate_by_verdict()
        return limits_of_pass_hat(rate, k) if isinstance(rate, Estimate) else None

    methods: dict[str, Callable[[], Number | Interval | None]] = {
        "pass@1: by verdict": rate_by_verdict,
        "pass@1: at random": lambda: corrected_pass_rate(verdicts, at_random, scope="this suite"),
        "pass@1: similar tasks": lambda: corrected_pass_rate(
            verdicts, by_verdict, scope="tasks like these"
        ),
        "pass@1: whole tasks": lambda: corrected_pass_hat(verdicts, whole, 1),
        "pass@1: labels alone": lambda: proportion_interval(
            int(at_random.passed.sum()), len(at_random)
        ),
        "pass@1: verdicts": lambda: suite_estimate(n, passed),
        "pass^3: verdicts": lambda: suite_estimate(n, passed, k=3),
    }
    for k in (1, 3, 5):
        name = "pass@1" if k == 1 else f"pass^{k}"
        methods[f"{name}: Rogan-Gladen"] = lambda k=k: _rogan_gladen(at_random, drawn, n, passed, k)
        if k > 1:
            methods[f"{name}: whole tasks"] = lambda k=k: corrected_pass_hat(verdicts, whole, k)
            methods[f"{name}: labels alone"] = lambda k=k: _labels_alone(whole, k)
            methods[f"{name}: limits"] = lambda k=k: limits(k)
    for name in names:
        found = methods[name]()
        interval = found.interval if isinstance(found, Estimate) else found
        if isinstance(interval, Interval):
            yield name, interval


def _judge(
    truth: Booleans,
    sensitivity: float,
    specificity: float,
    spread: float,
    rng: np.random.Generator,
) -> Booleans:
    tasks = len(truth)
    passes, slips = np.full(tasks, sensitivity), np.full(tasks, 1 - specificity)
    if spread:
        size = 1 / spread - 1
        passes, slips = (rng.beta(size * rates, size * (1 - rates)) for rates in (passes, slips))
    chance = np.where(truth, passes[:, None], slips[:, None])
    return np.asarray(rng.random(truth.shape) < chance)


# Tasks that weigh more than others, and have more trials.

UNEQUAL = tuple((tasks, labels) for tasks in (20, 50) for labels in (60, 150))
WEIGHT, EASY = 4.0, 0.75
"""A task that passes more often than this weighs so much, the others 1."""


def _unequal(*, quick: bool, share: float) -> Table:
    repetitions = 4 if quick else max(10, round(60 * share))
    cells = [
        (*size, spread, law, repetitions)
        for size in (UNEQUAL[2:3] if quick else UNEQUAL)
        for spread in SPREADS
        for law in range(len(RATES))
    ]
    study = "judges: unequal"
    found = (
        [cover_unequal(*cell) for cell in cells]
        if quick
        else run_cells(study, cover_unequal, cells)
    )
    every = {cell[:4]: one for cell, one in zip(cells, found, strict=True)}
    names = ("by verdict", "at random", "similar tasks")
    rows = []
    for size in dict.fromkeys(cell[:2] for cell in cells):
        laws = range(len(RATES))
        own = [[every[*size, spread, law] for law in laws] for spread in SPREADS]
        shown = (_worst_and_width([[one[name] for one in each] for each in own]) for name in names)
        rows.append((*map(str, size), *shown))
    return Table(
        title="Corrected numbers where tasks weigh more than others and have more trials",
        header=("T", "labels", *(f"pass@1: {name}" for name in names)),
        rows=rows,
        finding="Coverage / mean width at a nominal 0.95, laws and spreads as above; sensitivity "
        f"0.9, specificity 0.85. Tasks have 2 to 18 trials; one that passes more than {EASY:.0%} "
        f"of the time weighs {WEIGHT:g} times as much as another. Every trial of a verdict is "
        "labelled with the same chance.",
        repetitions=repetitions,
        seed=SEED,
    )


def cover_unequal(
    tasks: int, labels: int, spread: float, law: int, repetitions: int
) -> dict[str, tuple[float, float] | None]:
    """The coverage and the mean width of pass@1 where tasks have weights and unequal trials."""
    rng = np.random.default_rng([SEED, tasks, labels, law, round(10 * spread)])
    many = RATES[law].draw((1_000_000,), np.random.default_rng(SEED))
    similar = float(np.average(many, weights=np.where(many > EASY, WEIGHT, 1.0)))
    counted: dict[str, list[tuple[bool, float]]] = {
        name: [] for name in ("by verdict", "at random", "similar tasks")
    }
    for _ in range(repetitions):
        rates = RATES[law].draw((tasks,), rng)
        weight = np.where(rates > EASY, WEIGHT, 1.0)
        runs = rng.integers(2, 19, tasks)
        task = np.repeat(np.arange(tasks), runs)
        there = np.arange(18) < runs[:, None]
        truth = rng.random((tasks, 18)) < rates[:, None]
        verdict = _judge(truth, 0.9, 0.85, spread, rng)[there]
        said = truth[there]
        passed = np.bincount(task, verdict, minlength=tasks).astype(np.int64)
        none = np.zeros(tasks, np.int64)
        verdicts = Verdicts(passed=passed, failed=runs - passed, errored=none, weight=weight)
        by_verdict = _by_verdict(verdict, labels, rng)
        at_random = rng.permutation(task.size)[:labels]
        here = float(np.average(rates, weights=weight))
        for name, rows, scope, aim in (
            ("by verdict", by_verdict, THIS_SUITE, here),
            ("at random", at_random, THIS_SUITE, here),
            ("similar tasks", by_verdict, TASKS_LIKE_THESE, similar),
        ):
            read = Labels(task=task[rows], verdict=verdict[rows], passed=said[rows])
            number = corrected_pass_rate(verdicts, read, scope=scope)
            if isinstance(number, Estimate) and number.interval is not None:
                counted[name].append((aim in number.interval, number.interval.width))
    return {name: _mean_of(found) for name, found in counted.items()}


# Other tools that correct a pass rate, on the same data.


def _peers(*, quick: bool) -> Table:
    repetitions = 2 if quick else 60
    names = ("passhat", "truescore", "judgy")
    rows, versions = [], "truescore and judgy were not installed"
    for labels, judge in product((60,) if quick else (60, 150), JUDGES):
        found: dict[str, list[list[tuple[float, float] | None]]] = {name: [] for name in names}
        refused = 0
        for spread in SPREADS:
            suites, aims = _judged_suites(labels, judge, spread, repetitions)
            ends: dict[str, Any] = {"passhat": [_own_ends(one) for one in suites]}
            for answer in ask_peers([{"judged": suites}]):
                ends |= answer
                versions = answer["versions"]
            refused += ends.get("judgy", []).count(None)
            for name in names:
                both = zip(ends.get(name, ()), aims, strict=False)
                held = [(one[0] <= aim <= one[1], one[1] - one[0]) for one, aim in both if one]
                found[name].append([_mean_of(held)])
        shown = (_worst_and_width(found[name]) for name in names)
        rows.append((str(labels), f"{judge[0]:g} / {judge[1]:g}", *shown, str(refused)))
    return Table(
        title="Other tools that correct pass@1, on the same labels at random",
        header=("labels", "sensitivity / specificity", *names, "refused by judgy"),
        rows=rows,
        finding="Coverage / mean width at a nominal 0.95; 50 tasks x 10 trials, laws and spreads "
        f"as above. {versions}: truescore's `ppi_estimate`, and judgy with 400 bootstrap samples, "
        "which refuses where the labels are all of one kind or the judge is no better than chance.",
        repetitions=repetitions,
        seed=SEED,
    )


def _judged_suites(
    labels: int, judge: tuple[float, float], spread: float, repetitions: int
) -> tuple[list[dict[str, list[int]]], list[float]]:
    """Verdicts task by task, which of them are labelled and what people say; and the true rate."""
    suites, aims = [], []
    for law, rates_of in enumerate(RATES):
        rng = np.random.default_rng([SEED, labels, law, int(100 * judge[0]), round(10 * spread)])
        for _ in range(repetitions):
            rates = rates_of.draw((50,), rng)
            truth = rng.random((50, 10)) < rates[:, None]
            verdict = _judge(truth, *judge, spread, rng).ravel()
            rows = rng.permutation(verdict.size)[:labels]
            said = truth.ravel()[rows]
            columns = {"verdict": verdict.astype(int), "row": rows, "passed": said.astype(int)}
            suites.append({name: column.tolist() for name, column in columns.items()})
            aims.append(float(rates.mean()))
    return suites, aims


def _own_ends(suite: dict[str, list[int]]) -> tuple[float, float] | None:
    verdict, row, said = (np.array(suite[name]) for name in ("verdict", "row", "passed"))
    passed = verdict.reshape(50, 10).sum(axis=1)
    verdicts = Verdicts(passed=passed, failed=10 - passed, errored=np.zeros(50, np.int64))
    labels = Labels(task=row // 10, verdict=verdict[row] > 0, passed=said > 0)
    found = corrected_pass_rate(verdicts, labels, scope="this suite")
    if not isinstance(found, Estimate) or found.interval is None:
        return None
    return found.interval.low, found.interval.high


# Two agents under one judge.

DIFFERENCE_SIZES = ((20, 10, 60), (50, 5, 60), (50, 10, 60), (50, 10, 150))
TREATMENT = {"alike": (0.85, 0.85), "lenient with the first": (0.65, 0.9)}
"""The judge's specificity with each of the two agents; its sensitivity is 0.9."""
GAPS = (0.0, 0.15)
"""How far the first agent is ahead on every task, up to the edge."""

DIFFERENCES = (
    *("these tasks", "similar tasks", "pass^3: labelled tasks", "verdicts, these tasks"),
    "said to favour one",
)


def _differences(*, quick: bool, share: float) -> Table:
    repetitions = 12 if quick else max(10, round(100 * share))
    cells = [
        (*size, name, spread, gap, repetitions)
        for size in ([(50, 10, 60)] if quick else DIFFERENCE_SIZES)
        for name in TREATMENT
        for spread in SPREADS
        for gap in GAPS
    ]
    study = "judges: differences"
    found = (
        [cover_differences(*cell) for cell in cells]
        if quick
        else run_cells(study, cover_differences, cells)
    )
    rows = []
    for (tasks, runs, labels, name, spread, gap, _), one in zip(cells, found, strict=True):
        shown = [
            "refused" if one[column] is None else f"{one[column][0]:.3f} / {one[column][1]:.2f}"
            for column in DIFFERENCES[:-1]
        ]
        start = (*map(str, (tasks, runs, labels)), name, f"{spread:g}", f"{gap:g}")
        rows.append((*start, *shown, f"{one[DIFFERENCES[-1]][0]:.3f}"))
    return Table(
        title="Differences of two agents, corrected for a judge's errors",
        header=("T", "n", "labels of each", "the judge is", "ICC", "ahead by", *DIFFERENCES),
        rows=rows,
        finding="Coverage / mean width at a nominal 0.95. Tasks are Beta(2, 1), sensitivity 0.9. "
        "Labels by verdict, or of whole tasks for pass^3, the same tasks of both. The last column "
        "is how often the judge is said to favour one of the two: wrong where it is alike to both.",
        repetitions=repetitions,
        seed=SEED,
    )


def cover_differences(
    tasks: int, runs: int, labels: int, treatment: str, spread: float, gap: float, repetitions: int
) -> dict[str, tuple[float, float] | None]:
    """The coverage and the mean width of each difference in one world; None where it refuses."""
    place = list(TREATMENT).index(treatment)
    rng = np.random.default_rng([SEED, tasks, runs, labels, place, int(100 * (spread + gap))])
    counted: dict[str, list[tuple[bool, float]]] = {name: [] for name in DIFFERENCES}
    many = np.clip(RATES[0].draw((1_000_000,), np.random.default_rng(SEED)) + gap, 0, 1)
    similar = float(many.mean()) - RATES[0].mean_power(1)
    for _ in range(repetitions):
        base = RATES[0].draw((tasks,), rng)
        both = (np.clip(base + gap, 0.0, 1.0), base)
        truths = [rng.random((tasks, runs)) < rates[:, None] for rates in both]
        picked = rng.permutation(tasks)[: labels // WHOLE]
        aims = dict.fromkeys(DIFFERENCES, float(both[0].mean() - both[1].mean()))
        aims["similar tasks"] = similar
        aims["pass^3: labelled tasks"] = float((both[0] ** 3).mean() - (both[1] ** 3).mean())
        for name, interval in _difference_intervals(
            truths, _two_judged(truths, TREATMENT[treatment], spread, rng), labels, picked, rng
        ):
            inside = 0.0 not in interval if name == DIFFERENCES[-1] else aims[name] in interval
            counted[name].append((inside, interval.width))
    return {name: _mean_of(found) for name, found in counted.items()}


def _two_judged(
    truths: list[Booleans],
    specificity: tuple[float, float],
    spread: float,
    rng: np.random.Generator,
) -> list[Booleans]:
    """The verdicts on both; where errors go with the task, they do so for both agents alike."""
    tasks = len(truths[0])
    if not spread:
        return [
            _judge(truth, 0.9, own, 0.0, rng)
            for truth, own in zip(truths, specificity, strict=True)
        ]
    size, levels = 1 / spread - 1, rng.random((2, tasks))
    found = []
    for truth, own in zip(truths, specificity, strict=True):
        passes, slips = (
            beta.ppf(level, size * rate, size * (1 - rate))
            for level, rate in zip(levels, (0.9, 1 - own), strict=True)
        )
        chance = np.where(truth, passes[:, None], slips[:, None])
        found.append(np.asarray(rng.random(truth.shape) < chance))
    return found


def _difference_intervals(
    truths: list[Booleans],
    verdicts: list[Booleans],
    labels: int,
    picked: NDArray[np.intp],
    rng: np.random.Generator,
) -> Iterator[tuple[str, Interval]]:
    tasks, runs = truths[0].shape
    graded, whole, read = [], [], []
    for truth, verdict in zip(truths, verdicts, strict=True):
        passed = verdict.sum(axis=1)
        own = Verdicts(passed=passed, failed=runs - passed, errored=np.zeros(tasks, np.int64))
        rows = _by_verdict(verdict, labels, rng)
        flat, said = verdict.ravel(), truth.ravel()
        read.append((rows // runs, flat[rows], said[rows], _chances(flat, rows)))
        graded.append((own, Labels(task=rows // runs, verdict=flat[rows], passed=said[rows])))
        columns = np.argsort(rng.random((picked.size, runs)), axis=1)[:, :WHOLE]
        rows = (picked[:, None] * runs + columns).ravel()
        whole.append((own, Labels(task=rows // runs, verdict=flat[rows], passed=said[rows])))
    sums = [TaskSums.of_passes(np.full(tasks, runs), verdict.sum(axis=1)) for verdict in verdicts]
    task, judged, said, chance = (np.concatenate(column) for column in zip(*read, strict=True))
    group = np.arange(task.size) < read[0][0].size
    found = {
        "these tasks": corrected_difference(*graded, scope="this suite"),
        "similar tasks": corrected_difference(*graded, scope="tasks like these"),
        "pass^3: labelled tasks": corrected_pass_hat_difference(whole[0], whole[1], 3),
        "verdicts, these tasks": paired_difference(*sums, scope="this suite"),
        "said to favour one": leniency(
            Labels(task=task, verdict=judged, passed=said, chance=chance), group
        ),
    }
    for name, number in found.items():
        if isinstance(number, Estimate | PairedDifference) and number.interval is not None:
            yield name, number.interval


def _by_verdict(verdict: Booleans, labels: int, rng: np.random.Generator) -> NDArray[np.intp]:
    some = [rng.permutation(np.flatnonzero(verdict.ravel() == value)) for value in (True, False)]
    first = min(some[0].size, max(labels // 2, labels - some[1].size))
    return np.concatenate((some[0][:first], some[1][: labels - first]))


def _chances(verdict: Booleans, rows: NDArray[np.intp]) -> NDArray[np.float64]:
    """Of each labelled trial, the share of trials with its verdict that were labelled."""
    shares = [(verdict[rows] == v).sum() / max(1, (verdict == v).sum()) for v in (False, True)]
    return np.asarray(shares)[verdict[rows].astype(int)]


# People who err too: how far they agree, and what that leaves of a corrected number.

SLIPS = (0.0, 0.02, 0.05, 0.08, 0.12, 0.16)
"""How often a person's label is not what most people would say."""


def _people(*, quick: bool, share: float) -> Table:
    repetitions = 10 if quick else max(10, round(100 * share))
    cells = [(150, slips, repetitions) for slips in (SLIPS[::3] if quick else SLIPS)]
    found = (
        [cover_people(*cell) for cell in cells]
        if quick
        else run_cells("judges: people", cover_people, cells)
    )
    rows = [
        (f"{slips:g}", f"{kappa:.2f}", f"{refused:.2f}", f"{one:.3f}", f"{most:.3f}")
        for (_, slips, _), (kappa, refused, one, most) in zip(cells, found, strict=True)
    ]
    return Table(
        title="What is left of a corrected number where people err",
        header=("labels wrong", "kappa of two people", "refused", "one person", "three of each"),
        rows=rows,
        finding="Coverage of the corrected pass@1 at a nominal 0.95: 50 tasks (Beta(12, 1)) x 10 "
        "trials, sensitivity 0.9, specificity 0.85, 150 labels by verdict, of which each person "
        "gets some wrong at random; with one person's labels, and with most of three people's. "
        f"Refused: how often kappa over 30 trials that two people read is below {LEAST_AGREEMENT}.",
        repetitions=repetitions,
        seed=SEED,
    )


def cover_people(labels: int, slips: float, repetitions: int) -> tuple[float, float, float, float]:
    """The mean kappa, how often labels are refused, and both coverages, in one world."""
    rng = np.random.default_rng([SEED, labels, round(1000 * slips)])
    kappas, covered = [], []
    for _ in range(repetitions):
        rates = RATES[2].draw((50,), rng)
        truth = rng.random((50, 10)) < rates[:, None]
        verdict = _judge(truth, 0.9, 0.85, 0.0, rng)
        rows = _by_verdict(verdict, labels, rng)
        people = truth.ravel()[rows] ^ (rng.random((3, labels)) < slips)
        shared = rng.permutation(labels)[:30]
        pairs = [(bool(a), bool(b)) for a, b in people[:2, shared].T]
        kappas.append(kappa if (kappa := kappa_of(pairs)) is not None else 1.0)
        passed = verdict.sum(axis=1)
        verdicts = Verdicts(passed=passed, failed=10 - passed, errored=np.zeros(50, np.int64))
        hits = []
        for said in (people[0], people.sum(axis=0) > 1):
            given = Labels(task=rows // 10, verdict=verdict.ravel()[rows], passed=said)
            number = corrected_pass_rate(verdicts, given, scope="this suite")
            hits.append(isinstance(number, Estimate) and float(rates.mean()) in number.interval)
        covered.append(hits)
    below = float(np.mean(np.array(kappas) < LEAST_AGREEMENT))
    one, most = np.mean(covered, axis=0)
    return float(np.mean(kappas)), below, float(one), float(most)


# Histories of labelled runs: does the agent change, or its judge?

HISTORIES = (
    ("nothing changes", 0, 5, (0.9, 0.85), 0.0),
    ("nothing changes", 2, 10, (0.9, 0.85), 0.0),
    ("the judge becomes stricter", 0, 10, (0.75, 0.9), 0.0),
    ("the agent falls by 25 points", 0, 10, (0.9, 0.85), 0.25),
)
"""What happens in the middle, the rates of tasks, trials of each, the judge after it, the fall."""

POINTS = 10
"""Runs in a history, and the runs that the false alarm rate of 5 % is stated for."""


def _changes(*, quick: bool, share: float) -> Table:
    repetitions = 5 if quick else max(10, round(60 * share))
    cells = [(*one[1:], repetitions) for one in (HISTORIES[2:3] if quick else HISTORIES)]
    found = (
        [alarms(*cell) for cell in cells] if quick else run_cells("judges: changes", alarms, cells)
    )
    named = HISTORIES[2:3] if quick else HISTORIES
    rows = [
        (what, RATES[law].name, f"20 x {runs}", f"{labels:.3f}", f"{verdicts:.3f}")
        for (what, law, runs, *_), (labels, verdicts) in zip(named, found, strict=True)
    ]
    return Table(
        title="Changes as people grade, and by the judge's verdicts",
        header=("in the middle", "rates of tasks", "tasks x trials", "as people grade", "verdicts"),
        rows=rows,
        finding=f"The share of histories of {POINTS} runs with 60 labels each in which a change is "
        "said, at a false alarm rate of 0.05. The judge begins with sensitivity 0.9 and "
        "specificity 0.85; one that becomes stricter has 0.75 and 0.9.",
        repetitions=repetitions,
        seed=SEED,
    )


def alarms(
    law: int, runs: int, judge: tuple[float, float], fall: float, repetitions: int
) -> tuple[float, float]:
    """How often a change is said in one world: as people grade, and by the verdicts."""
    rng = np.random.default_rng([SEED, law, runs, round(100 * judge[0]), round(100 * fall)])
    said = []
    for _ in range(repetitions):
        rates = RATES[law].draw((20,), rng)
        passes, corrected = [], []
        for point in range(POINTS):
            later = point >= POINTS // 2
            now = np.clip(rates - fall * later, 0, 1)
            truth = rng.random((20, runs)) < now[:, None]
            verdict = _judge(truth, *(judge if later else (0.9, 0.85)), 0.0, rng)
            passed, rows = verdict.sum(axis=1), _by_verdict(verdict, 60, rng)
            number = corrected_pass_rate(
                Verdicts(passed=passed, failed=runs - passed, errored=np.zeros(20, np.int64)),
                Labels(
                    task=rows // runs, verdict=verdict.ravel()[rows], passed=truth.ravel()[rows]
                ),
                scope="this suite",
            )
            passes.append(passed)
            corrected.append({"pass^1": number} if isinstance(number, Estimate) else {})
        graded = graded_changes(corrected, 1, false_alarm=0.05, horizon=POINTS, confidence=0.95)
        series = TaskSeries(np.full((POINTS, 20), runs), np.array(passes))
        by_verdict = change_points(series, false_alarm=0.05, horizon=POINTS).points
        said.append((graded is not None and bool(graded.changes.points), bool(by_verdict)))
    by_people, verdicts = np.mean(said, axis=0)
    return float(by_people), float(verdicts)


def _rogan_gladen(
    labels: Labels,
    drawn: NDArray[np.intp],
    runs: NDArray[np.int64],
    passes: NDArray[np.int64],
    k: int,
) -> Interval:
    """((V - e) / (s - e))^k by its factorial moments over tasks, labels and tasks drawn again.

    s and e are how much the judge passes of what people pass and of what they fail, V its verdicts.
    For k = 1 tasks are not drawn again: as judgy has it.
    """
    passed, verdict = labels.passed[drawn], labels.verdict[drawn]
    right = (passed & verdict).sum(axis=1) / np.maximum(passed.sum(axis=1), 1)
    wrong = (~passed & verdict).sum(axis=1) / np.maximum((~passed).sum(axis=1), 1)
    shares = np.stack([share_of_passing_subsets(runs, passes, j) for j in range(1, k + 1)])
    tasks = np.full((len(drawn), runs.size), 1 / runs.size)
    if k > 1:
        tasks = np.random.default_rng(SEED).dirichlet(np.ones(runs.size), len(drawn))
    moments = np.column_stack((np.ones(len(drawn)), tasks @ shares.T))
    known = right - wrong > 0.01
    powers = sum(comb(k, j) * (-wrong[known]) ** (k - j) * moments[known, j] for j in range(k + 1))
    rates = np.clip(powers / (right - wrong)[known] ** k, 0.0, 1.0)
    low, high = np.quantile(rates, [0.025, 0.975]) if rates.size else (0.0, 1.0)
    return Interval(float(low), float(high))


def _labels_alone(whole: Labels, k: int) -> Interval:
    """The bound for similar tasks over labelled tasks, as if there were no verdicts."""
    _, task = np.unique(whole.task, return_inverse=True)
    read, right = np.bincount(task), np.bincount(task, whole.passed).astype(np.int64)
    values, ones = share_of_passing_subsets(read, right, k), np.ones(read.size)
    low = float(lower_quantile(values, ones, 0.025, unseen=0.0))
    return Interval(low, -float(lower_quantile(-values, ones, 0.025, unseen=-1.0)))


def _mean_of(held: Sequence[tuple[bool, float]]) -> tuple[float, float] | None:
    """The coverage and the mean width of intervals; None where there are none."""
    if not held:
        return None
    return float(np.mean([one[0] for one in held])), float(np.mean([one[1] for one in held]))


def _known(
    by_spread: list[list[tuple[float, float] | None]],
) -> list[list[tuple[float, float]]]:
    """What was not refused, by spread."""
    return [laws for each in by_spread if (laws := [one for one in each if one is not None])]


def _coverage(known: list[list[tuple[float, float]]]) -> float:
    """Over all laws, with the spread where it is worse."""
    return min(float(np.mean([one[0] for one in laws])) for laws in known)


def _worst_and_width(by_spread: list[list[tuple[float, float] | None]]) -> str:
    known = _known(by_spread)
    if not known:
        return "refused"
    width = float(np.mean([one[1] for laws in known for one in laws]))
    return f"{_coverage(known):.3f} / {width:.2f}"
