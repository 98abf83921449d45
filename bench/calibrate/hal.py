"""HAL's metrics: coverage of our intervals, and of HAL's value with 1.96 of its standard errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from bench.calibrate.cells import run_tables
from bench.calibrate.table import Table
from passhat.analysis.reports.factors import LevelTable, kept_by_others
from passhat.analysis.reports.measure import measure
from passhat.records import Trials
from passhat.stats.arguments import Floats
from passhat.stats.estimate import Estimate, Number
from passhat.stats.factors import outcome_consistency
from passhat.stats.probability_calibration import (
    Calibration,
    auroc,
    brier_by_task,
    calibration,
    discrimination,
)
from passhat.stats.usage import amount_likeness, mean_over_pairs, mix_likeness, path_likeness

SEED = 20_261_121
POPULATION = 400_000
"""Tasks over which the truths of HAL's metrics are added up."""


def tables(*, quick: bool = False) -> list[Table]:
    return run_tables("hal", [(_hal, 100, 120), (_laws, 60, 400)], quick=quick)


NAMES = (
    "consistency_outcome",
    "consistency_trajectory_distribution",
    "consistency_trajectory_sequence",
    "consistency_resource",
    "robustness_fault_injection",
    "predictability_calibration",
    "predictability_roc_auc",
    "predictability_brier_score",
    "safety_compliance",
    "safety_harm_severity",
)
"""Of the twelve; the other two robustness metrics are the same number of another factor."""


def _hal(repetitions: int, *, quick: bool = False) -> list[Table]:
    truth = _truths(np.random.default_rng(SEED))
    sizes = ((26, 3),) if quick else ((10, 3), (26, 3), (26, 5), (50, 5))
    columns = [_covered(size, repetitions, truth) for size in sizes]
    rows = [
        (name, f"{truth[name]:.3f}", *(column[place] for column in columns))
        for place, name in enumerate(NAMES)
    ]
    return [
        Table(
            title="HAL's metrics with intervals",
            header=("metric", "truth", *(f"{tasks} x {runs}" for tasks, runs in sizes)),
            rows=rows,
            finding="Coverage / mean width at a nominal 0.95 for similar tasks, by tasks x trials, "
            "and in brackets the mean of what HAL's own formula gives; the truth is that of ours. "
            "Where a metric is refused in some of the repetitions, those do not count.",
            repetitions=repetitions,
            seed=SEED,
        )
    ]


def _covered(size: tuple[int, int], repetitions: int, truth: dict[str, float]) -> list[str]:
    rng = np.random.default_rng([SEED, *size])
    hits: dict[str, list[tuple[bool, float]]] = {name: [] for name in NAMES}
    theirs: dict[str, list[float]] = {name: [] for name in NAMES}
    for _ in range(repetitions):
        found = measure(_walked(rng, *size)).system().hal
        for name in NAMES:
            number, by_hal = found[name].number, found[name].hal_value
            if isinstance(number, Estimate) and number.interval is not None:
                ends = number.interval
                hits[name].append((truth[name] in ends, ends.width))
            theirs[name] += [] if by_hal is None else [by_hal]
    return [
        f"{np.mean([hit for hit, _ in hits[name]]):.2f} / "
        f"{np.mean([width for _, width in hits[name]]):.2f} ({np.mean(theirs[name]):.3f})"
        for name in NAMES
    ]


WAYS = tuple("abcd"), tuple("abd"), tuple("axyd")
"""The path that is taken most, and two others."""


@dataclass(frozen=True, slots=True)
class _World:
    """Of each task: how often it takes the first path, and passes on it and on the others.

    Then the share of passes that faults leave, what trials cost, how often they keep the limits.
    """

    first: Floats
    good: Floats
    other: Floats
    left: Floats
    spread: Floats
    kept: Floats

    @classmethod
    def drawn(cls, rng: np.random.Generator, tasks: int) -> _World:
        good = rng.beta(5, 1.5, tasks)
        return cls(
            first=rng.beta(4, 1, tasks),
            good=good,
            other=good * rng.beta(2, 2, tasks),
            left=rng.beta(8, 2, tasks),
            spread=0.6 * np.exp(0.4 * rng.normal(size=tasks)),
            kept=rng.beta(12, 1, tasks),
        )

    def trials(
        self, rng: np.random.Generator, runs: int
    ) -> tuple[NDArray[np.intp], NDArray[np.bool_], Floats, NDArray[np.intp], NDArray[np.bool_]]:
        """Path, outcome, stated confidence, severity of a violation, outcome under faults."""
        shape = (self.first.size, runs)
        side = rng.integers(1, 3, shape)
        way = np.where(rng.random(shape) < self.first[:, None], 0, side)
        chance = np.where(way == 0, self.good[:, None], self.other[:, None])
        passed = rng.random(shape) < chance
        logit = np.log(chance / (1 - chance)) + 0.4 + 0.8 * rng.normal(size=shape)
        broken = rng.random(shape) >= self.kept[:, None]
        severity = np.where(broken, rng.integers(1, 4, shape), 0)
        under = rng.random(shape) < chance * self.left[:, None]
        return way, passed, 1 / (1 + np.exp(-logit)), severity, under


SEVERITY = np.array([0.0, 0.25, 0.5, 1.0])
WORDS = ("constraint:kept", "constraint:low", "constraint:medium", "constraint:high")


def _truths(rng: np.random.Generator) -> dict[str, float]:
    """Of ours, over a population of tasks: exact given the tasks, or from one trial of each."""
    world = _World.drawn(rng, POPULATION)
    passes = np.stack((world.first * world.good, *[(1 - world.first) / 2 * world.other] * 2))
    whole = passes.sum(axis=0)
    both = (whole**2).sum()
    like = {
        name: np.array([[measure_of(one, other) for other in WAYS] for one in WAYS])
        for name, measure_of in (("distribution", mix_likeness), ("sequence", path_likeness))
    }
    paths = {
        f"consistency_trajectory_{name}": float(
            np.einsum("it,jt,ij->", passes, passes, one, optimize=True) / both
        )
        for name, one in like.items()
    }
    apart = np.abs(world.spread * rng.normal(size=POPULATION) * np.sqrt(2))
    _, passed, stated, severity, under = (one.ravel() for one in world.trials(rng, 1))
    bins = np.minimum((10 * stated).astype(np.intp), 9)
    gaps = np.abs(np.bincount(bins, stated - passed, minlength=10))
    ranked = auroc(stated, passed.astype(np.float64))
    assert ranked is not None, "some pass and some fail"
    return paths | {
        "consistency_outcome": 1 - 4 * float((whole * (1 - whole)).mean()),
        "consistency_resource": float(np.exp(-apart).mean()),
        "robustness_fault_injection": float(under.mean() / passed.mean()),
        "predictability_calibration": 1 - float(gaps.sum() / POPULATION),
        "predictability_roc_auc": ranked,
        "predictability_brier_score": 1 - float(((stated - passed) ** 2).mean()),
        "safety_compliance": float(world.kept.mean()),
        "safety_harm_severity": 1 - float(SEVERITY[severity].mean()),
    }


def _walked(rng: np.random.Generator, tasks: int, runs: int) -> Trials:
    world = _World.drawn(rng, tasks)
    way, passed, stated, severity, under = (one.ravel().tolist() for one in world.trials(rng, runs))
    names = [f"t{i}" for i in np.repeat(np.arange(tasks), runs).tolist()]
    cost = np.exp(np.repeat(world.spread, runs) * rng.normal(size=tasks * runs)).tolist()
    return Trials.from_columns(
        task=[*names, *(f"{name} [fault=all]" for name in names)],
        base=[*names, *names],
        at=[("fault=none",)] * len(names) + [("fault=all",)] * len(names),
        passed=[*passed, *under],
        tools=[WAYS[i] for i in (*way, *way)],
        cost=[*cost, *cost],
        stated_confidence=[*stated, *stated],
        tags=[(WORDS[i],) for i in (*severity, *severity)],
    )


# Each metric by itself under several laws of tasks, HAL's value and error beside ours.

Draw = tuple[Number, float, float]
"""Our number, HAL's value, and HAL's standard error."""
RESAMPLES = 100
"""How often HAL's trials are drawn again for its standard error."""


@dataclass(frozen=True, slots=True)
class _Law:
    """Tasks of one kind: the truth of our number, that of HAL's, and one set of trials of it."""

    name: str
    truth: float
    hal_truth: float
    draw: Callable[[np.random.Generator, int, int], Draw]
    sizes: tuple[tuple[int, int], ...]


def _laws(repetitions: int, *, quick: bool = False) -> list[Table]:
    rows = []
    for place, law in enumerate(_every_law(np.random.default_rng([SEED, 1]))):
        for tasks, runs in law.sizes[:1] if quick else law.sizes:
            rng = np.random.default_rng([SEED, 2, place, tasks, runs])
            hits, theirs, by_hal, refused = [], [], [], 0
            for _ in range(repetitions):
                number, value, error = law.draw(rng, tasks, runs)
                if not isinstance(number, Estimate) or number.interval is None:
                    refused += 1
                    continue
                hits.append((law.truth in number.interval, number.interval.width))
                by_hal.append(value)
                theirs.append(abs(value - law.hal_truth) <= 1.96 * error)
            covered, width = (np.mean([hit[i] for hit in hits]) for i in (0, 1))
            shown = (
                *(f"{law.truth:.3f}", f"{covered:.2f} / {width:.2f}"),
                *(f"{law.hal_truth:.3f}", f"{np.mean(by_hal):.3f}", f"{np.mean(theirs):.2f}"),
            )
            left_out = f"{refused / repetitions:.2f}" if refused else ""
            rows.append((law.name, f"{tasks} x {runs}", *shown, left_out))
    least = min(rows, key=lambda row: row[3])
    header = ("truth", "ours", "truth of HAL's", "HAL's mean value", "HAL's coverage", "refused")
    return [
        Table(
            title="HAL's metrics, law by law",
            header=("metric and law", "tasks x trials", *header),
            rows=rows,
            finding="Ours: coverage / mean width at a nominal 0.95 for similar tasks. HAL's "
            "coverage is that of its value with 1.96 of its standard errors: over tasks, or for "
            "the ratio, the AUROC and the ECE over trials drawn again as if they were independent. "
            "Repetitions in which ours is refused do not count, and their share is the last "
            "column. Losses (Brier, ECE) are shown as such. Ours covers least in "
            f"{least[0]}, {least[1]}: {least[3].split()[0]}.",
            repetitions=repetitions,
            seed=SEED,
        )
    ]


def _every_law(rng: np.random.Generator) -> list[_Law]:
    usual = ((10, 3), (26, 3), (26, 5), (50, 10))
    return [
        *(_outcomes(a, b, usual) for a, b in ((2.0, 1.0), (12.0, 1.0), (0.4, 0.3))),
        _resources(rng, 0.6, ((26, 3), (26, 5), (26, 20))),
        _resources(rng, 1.2, ((26, 5),)),
        _paths(rng, ((10, 3), (26, 3), (26, 5), (50, 5))),
        *(
            _ratio(rng, mean, less, sizes)
            for mean, less, sizes in (
                (1.0, 0.0, ((26, 5),)),
                (4.0, 0.0, ((26, 5),)),
                (1.0, 0.5, ((26, 5), (10, 5))),
                (4.0, 1.0, ((26, 5),)),
                (2.0, 0.5, ((50, 3),)),
            )
        ),
        *(
            _stated(rng, metric, mean, sizes)
            for metric, mean, sizes in (
                ("AUROC", 0.5, ((26, 5), (50, 5), (165, 5))),
                ("AUROC", 1.0, ((10, 5),)),
                ("AUROC", 2.0, ((26, 5),)),
                ("Brier", 0.5, ((26, 5), (50, 5))),
                ("Brier", 2.5, ((26, 5),)),
                ("ECE", 0.5, ((26, 5), (50, 5))),
                ("ECE", 2.5, ((26, 5),)),
            )
        ),
    ]


def _error_over_tasks(values: Floats) -> float:
    return float(values.std(ddof=1) / np.sqrt(values.size))


def _outcomes(a: float, b: float, sizes: tuple[tuple[int, int], ...]) -> _Law:
    truth = 1 - 4 * (a / (a + b) - a * (a + 1) / ((a + b) * (a + b + 1)))

    def draw(rng: np.random.Generator, tasks: int, runs: int) -> Draw:
        passes = rng.binomial(runs, rng.beta(a, b, tasks))
        squares = (2 * passes / runs - 1) ** 2
        number = outcome_consistency(np.full(tasks, runs), passes)
        return number, float(squares.mean()), _error_over_tasks(squares)

    return _Law(f"outcome, Beta({a:g}, {b:g})", truth, truth, draw, sizes)


def _resources(rng: np.random.Generator, spread: float, sizes: tuple[tuple[int, int], ...]) -> _Law:
    def spreads(rng: np.random.Generator, tasks: int) -> Floats:
        drawn: Floats = spread * np.exp(0.4 * rng.normal(size=tasks))
        return drawn

    every = spreads(rng, POPULATION)
    apart = np.abs(np.sqrt(2) * every * rng.normal(size=POPULATION))
    variation = np.sqrt(np.exp(every**2) - 1)

    def draw(rng: np.random.Generator, tasks: int, runs: int) -> Draw:
        amounts = np.exp(spreads(rng, tasks)[:, None] * rng.normal(size=(tasks, runs)))
        by_hal = np.exp(-amounts.std(axis=1, ddof=1) / amounts.mean(axis=1))
        number = mean_over_pairs([amount_likeness(row) for row in amounts], np.ones(tasks))
        return number, float(by_hal.mean()), _error_over_tasks(by_hal)

    return _Law(
        f"resource, log-normal {spread:g}",
        float(np.exp(-apart).mean()),
        float(np.exp(-variation).mean()),
        draw,
        sizes,
    )


def _paths(rng: np.random.Generator, sizes: tuple[tuple[int, int], ...]) -> _Law:
    """A first path and two others; how alike two of them are goes with the task."""

    def tasks_of(rng: np.random.Generator, tasks: int) -> tuple[Floats, Floats, Floats, Floats]:
        first, good = rng.beta(4, 1, tasks), rng.beta(5, 1.5, tasks)
        return first, good, good * rng.beta(2, 2, tasks), rng.beta(5, 3, tasks)

    first, good, other, alike = tasks_of(rng, POPULATION)
    whole = first * good + (1 - first) * other
    main = first * good / whole
    likeness = main**2 + (1 - main) ** 2 * (1 + alike) / 2 + 2 * main * (1 - main) * alike
    truth = float((whole**2 * likeness).sum() / (whole**2).sum())

    def draw(rng: np.random.Generator, tasks: int, runs: int) -> Draw:
        first, good, other, alike = tasks_of(rng, tasks)
        side = rng.integers(1, 3, (tasks, runs))
        way = np.where(rng.random((tasks, runs)) < first[:, None], 0, side)
        chance = np.where(way == 0, good[:, None], other[:, None])
        passed = rng.random((tasks, runs)) < chance
        pairs = [
            [1.0 if one == two else like for one, two in combinations(ways[ended].tolist(), 2)]
            for ways, ended, like in zip(way, passed, alike.tolist(), strict=True)
        ]
        means = np.array([np.mean(own) for own in pairs if own])
        number = mean_over_pairs(list(map(sum, pairs)), list(map(len, pairs)))
        return number, float(means.mean()), _error_over_tasks(means)

    return _Law("sequence of passing trials", truth, truth, draw, sizes)


def _ratio(
    rng: np.random.Generator, mean: float, less: float, sizes: tuple[tuple[int, int], ...]
) -> _Law:
    """Tasks under a condition that takes some logits off each, or nothing at all."""

    def rates(rng: np.random.Generator, tasks: int) -> Floats:
        plain = rng.normal(mean, 1.5, tasks)
        under = plain - less + 0.5 * rng.normal(size=tasks) if less else plain
        both: Floats = 1 / (1 + np.exp(-np.stack((plain, under), axis=1)))
        return both

    plain, under = rates(rng, POPULATION).mean(axis=0).tolist()

    def draw(rng: np.random.Generator, tasks: int, runs: int) -> Draw:
        counts = np.full((tasks, 2), runs)
        passes = rng.binomial(counts, rates(rng, tasks))
        names = tuple(map(str, range(tasks)))
        table = LevelTable(
            levels=("none", "all"),
            names=names,
            unit=np.arange(tasks),
            runs=counts,
            passes=passes,
        )
        trials = tasks * runs
        total = passes.sum(axis=0) / trials
        again = rng.binomial(trials, total, size=(RESAMPLES, 2))
        cut = np.minimum(again[:, 1] / np.maximum(again[:, 0], 1), 1.0)
        value = float(min(total[1] / total[0], 1.0))
        return kept_by_others(table, 0.95), value, float(cut.std()) + 1e-12

    change = f"{-less:g} logits" if less else "nothing changed"
    passing = f"{100 * plain:.0f}% pass"
    return _Law(f"ratio, {passing}, {change}", under / plain, under / plain, draw, sizes)


def _stated(
    rng: np.random.Generator, metric: str, mean: float, sizes: tuple[tuple[int, int], ...]
) -> _Law:
    """Trials whose stated confidence goes with the task, and hardly with the trial."""

    def trials(rng: np.random.Generator, tasks: int, runs: int) -> tuple[Floats, Floats]:
        ease = rng.normal(mean, 2.0, (tasks, 1))
        sure = 0.6 * ease + rng.normal(1.0, 1.0, (tasks, 1)) + 0.3 * rng.normal(size=(tasks, runs))
        passed = rng.random((tasks, runs)) < 1 / (1 + np.exp(-ease))
        return np.round(1 / (1 + np.exp(-sure)), 2).ravel(), passed.ravel().astype(np.float64)

    by_hal = {"AUROC": auroc, "Brier": _squared_loss, "ECE": _gap_of_bins}[metric]
    truth = by_hal(*trials(rng, POPULATION, 1))
    assert truth is not None, "some pass and some fail"

    def draw(rng: np.random.Generator, tasks: int, runs: int) -> Draw:
        stated, passed = trials(rng, tasks, runs)
        task = np.repeat(np.arange(tasks), runs)
        number: Number
        if metric == "ECE":
            scored = calibration(stated, passed, rng=rng)
            number = scored.ece if isinstance(scored, Calibration) else scored
        else:
            number = {"AUROC": discrimination, "Brier": brier_by_task}[metric](stated, passed, task)
        again = rng.integers(0, stated.size, (RESAMPLES, stated.size))
        values = [
            value for rows in again if (value := by_hal(stated[rows], passed[rows])) is not None
        ]
        return number, by_hal(stated, passed) or 0.0, float(np.std(values))

    easy = f"{100 * float(trials(rng, POPULATION, 1)[1].mean()):.0f}% pass"
    return _Law(f"{metric}, {easy}", truth, truth, draw, sizes)


def _squared_loss(stated: Floats, passed: Floats) -> float:
    return float(((stated - passed) ** 2).mean())


def _gap_of_bins(stated: Floats, passed: Floats) -> float:
    bins = np.minimum((10 * stated).astype(np.intp), 9)
    return float(np.abs(np.bincount(bins, stated - passed, minlength=10)).sum() / stated.size)
