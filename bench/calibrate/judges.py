"""Coverage of numbers corrected for a judge's errors, beside that of its verdicts as they are."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from bench.calibrate.cells import run_cells
from bench.calibrate.simulated_suites import Difficulty
from bench.calibrate.table import Table
from passhat.stats.estimate import Estimate, Interval
from passhat.stats.judged import (
    Labels,
    Verdicts,
    corrected_pass_hat,
    corrected_pass_rate,
    limits_of_pass_hat,
)
from passhat.stats.proportions import proportion_interval
from passhat.stats.suite_mean import suite_estimate

SEED = 20261117
SIZES = [(tasks, runs, labels) for tasks in (20, 50) for runs in (5, 10) for labels in (60, 150)]
JUDGES = ((0.95, 0.95), (0.9, 0.85), (0.8, 0.7))
SPREADS = (0.0, 0.3)
"""How much the judge's errors go with the task, as an intraclass correlation."""
RATES = (
    Difficulty("Beta(2, 1)", beta=(2.0, 1.0)),
    Difficulty("70 % at 0.93, 30 % at 0.2", rates=(0.93, 0.2), shares=(0.7, 0.3)),
    Difficulty("Beta(12, 1)", beta=(12.0, 1.0)),
)
WHOLE = 5
"""Labels of each task where whole tasks are labelled."""

NAMES = (
    *("pass@1: by verdict", "pass@1: at random", "pass@1: similar tasks"),
    *("pass^3: whole tasks", "pass^5: whole tasks", "pass^3: limits", "pass^5: limits"),
    *("pass@1: labels alone", "pass@1: Rogan-Gladen", "pass@1: verdicts", "pass^3: verdicts"),
)

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
    found = [cover(*cell) for cell in cells] if quick else run_cells("judges", cover, cells)
    by_cell = dict(zip(cells, found, strict=True))
    rows: list[list[tuple[str, ...]]] = [[], []]
    for size in sizes:
        for judge in judges:
            own = [
                [by_cell[cell] for cell in cells if cell[:6] == (*size, *judge, spread)]
                for spread in SPREADS
            ]
            shown = [
                _worst_and_width([[one[name] for one in laws] for laws in own]) for name in NAMES
            ]
            start = (*map(str, size), f"{judge[0]:g} / {judge[1]:g}")
            rows[0].append((*start, *shown[:7]))
            rows[1].append((*start, *shown[7:]))
    stated = [value for row in rows[0] for value in row[4:] if value != "refused"]
    worst = min(float(value.split(" / ")[0]) for value in stated)
    common = (
        "Coverage / mean width at a nominal 0.95, over three laws of pass rates alike (Beta(2, 1), "
        "70 % at 0.93 and 30 % at 0.2, Beta(12, 1)); of judges whose errors are alike on all "
        "tasks, or go with the task (intraclass correlation 0.3), the one that is covered less."
    )
    corrected = Table(
        title="Numbers corrected for a judge's errors",
        header=("T", "n", "labels", "sensitivity / specificity", *NAMES[:7]),
        rows=rows[0],
        finding=f"{common} Single labels by verdict or at random, or {WHOLE} labels of each of "
        f"labels / {WHOLE} tasks. The worst cell covers {worst:.3f}.",
        repetitions=repetitions,
        seed=SEED,
    )
    others = Table(
        title="What a judge's errors do to numbers that are not corrected, or otherwise",
        header=("T", "n", "labels", "sensitivity / specificity", *NAMES[7:]),
        rows=rows[1],
        finding=f"{common} Labels alone: Wilson over labels at random. Rogan-Gladen: the same "
        "labels, by bootstrap, as judgy has it. Verdicts: passhat's interval for these tasks.",
        repetitions=repetitions,
        seed=SEED,
    )
    return [corrected, others]


def cover(
    tasks: int,
    runs: int,
    labels: int,
    sensitivity: float,
    specificity: float,
    spread: float,
    law: int,
    repetitions: int,
) -> dict[str, tuple[float, float] | None]:
    """The coverage and the mean width of each method in one world; None where it refuses."""
    rng = np.random.default_rng([SEED, tasks, runs, labels, law, int(100 * sensitivity)])
    counted: dict[str, list[tuple[bool, float]]] = {name: [] for name in NAMES}
    for _ in range(repetitions):
        rates = RATES[law].draw((tasks,), rng)
        truth = rng.random((tasks, runs)) < rates[:, None]
        verdict = _judge(truth, sensitivity, specificity, spread, rng)
        aims = {
            "pass@1": float(rates.mean()),
            "pass^3": float((rates**3).mean()),
            "pass^5": float((rates**5).mean()),
        }
        for name, interval in _intervals(truth, verdict, labels, rng):
            similar = name == "pass@1: similar tasks"
            aim = RATES[law].mean_power(1) if similar else aims[name.partition(":")[0]]
            counted[name].append((aim in interval, interval.width))
    return {
        name: (float(np.mean([one[0] for one in found])), float(np.mean([one[1] for one in found])))
        if found
        else None
        for name, found in counted.items()
    }


def _intervals(
    truth: Booleans, verdict: Booleans, labels: int, rng: np.random.Generator
) -> Iterator[tuple[str, Interval]]:
    tasks, runs = truth.shape
    passed = verdict.sum(axis=1)
    verdicts = Verdicts(passed=passed, failed=runs - passed, errored=np.zeros(tasks, np.int64))
    n = np.full(tasks, runs)

    def labelled(chosen: NDArray[np.intp]) -> Labels:
        return Labels(
            task=chosen // runs, verdict=verdict.ravel()[chosen], passed=truth.ravel()[chosen]
        )

    some = [rng.permutation(np.flatnonzero(verdict.ravel() == value)) for value in (True, False)]
    first = min(some[0].size, max(labels // 2, labels - some[1].size))
    by_verdict = labelled(np.concatenate((some[0][:first], some[1][: labels - first])))
    at_random = labelled(rng.permutation(tasks * runs)[:labels])
    picked = rng.permutation(tasks)[: labels // WHOLE]
    columns = np.argsort(rng.random((picked.size, runs)), axis=1)[:, :WHOLE]
    whole = labelled((picked[:, None] * runs + columns).ravel())
    found = {
        "pass@1: by verdict": corrected_pass_rate(verdicts, by_verdict, scope="this suite"),
        "pass@1: at random": corrected_pass_rate(verdicts, at_random, scope="this suite"),
        "pass@1: similar tasks": corrected_pass_rate(
            verdicts, by_verdict, scope="tasks like these"
        ),
        "pass^3: whole tasks": corrected_pass_hat(verdicts, whole, 3),
        "pass^5: whole tasks": corrected_pass_hat(verdicts, whole, 5),
        "pass@1: verdicts": suite_estimate(n, passed),
        "pass^3: verdicts": suite_estimate(n, passed, k=3),
    }
    for name, number in found.items():
        if isinstance(number, Estimate) and number.interval is not None:
            yield name, number.interval
    rate = found["pass@1: by verdict"]
    for k in (3, 5):
        if isinstance(rate, Estimate) and (limits := limits_of_pass_hat(rate, k)) is not None:
            yield f"pass^{k}: limits", limits
    yield "pass@1: labels alone", proportion_interval(int(at_random.passed.sum()), len(at_random))
    yield "pass@1: Rogan-Gladen", _rogan_gladen(at_random, float(verdict.mean()), rng)


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


def _rogan_gladen(labels: Labels, judged: float, rng: np.random.Generator) -> Interval:
    """(judged + specificity - 1) / (sensitivity + specificity - 1), labels drawn again."""
    drawn = rng.integers(len(labels), size=(400, len(labels)))
    passed, verdict = labels.passed[drawn], labels.verdict[drawn]
    right = (passed & verdict).sum(axis=1) / np.maximum(passed.sum(axis=1), 1)
    wrong = (~passed & verdict).sum(axis=1) / np.maximum((~passed).sum(axis=1), 1)
    apart = right - wrong
    known = apart > 0.01
    rates = np.clip((judged - wrong[known]) / apart[known], 0.0, 1.0)
    low, high = np.quantile(rates, [0.025, 0.975]) if rates.size else (0.0, 1.0)
    return Interval(float(low), float(high))


def _worst_and_width(found: list[list[tuple[float, float] | None]]) -> str:
    """The coverage over all laws with the spread where it is worse, and the mean width."""
    known = [laws for each in found if (laws := [one for one in each if one is not None])]
    if not known:
        return "refused"
    covered = min(float(np.mean([one[0] for one in laws])) for laws in known)
    width = float(np.mean([one[1] for laws in known for one in laws]))
    return f"{covered:.3f} / {width:.2f}"
