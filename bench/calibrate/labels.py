"""How many labels are right, and whether the runs promised to give one do so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from bench.calibrate.cells import run_tables
from bench.calibrate.simulated_suites import DIFFICULTIES, Difficulty
from bench.calibrate.table import Table
from passhat.stats.arguments import Counts, Floats
from passhat.stats.task_labels import (
    BROKEN,
    BROKEN_BELOW,
    FLAKY,
    SOLID,
    SOLID_ABOVE,
    UNDECIDED,
    label_tasks,
    runs_to_label,
)

SEED = 20261115
TASKS = (1, 2, 5, 10, 20, 40)
RUNS = (2, 3, 5, 10)
ENDINGS = ("evenly", "by_chance", "as_they_are")
DESIGNS = ((10, 5), (10, 20), (45, 3), (45, 8), (45, 20), (150, 8), (30, 60), (30, 100))


def _hopeless(share: float, a: float, b: float) -> Callable[[np.random.Generator, int], Floats]:
    """A share of tasks that never pass, the rest from a beta."""
    return lambda rng, size: np.where(rng.random(size) < share, 0.0, rng.beta(a, b, size))


def _two(share: float, low: float, high: float) -> Callable[[np.random.Generator, int], Floats]:
    return lambda rng, size: np.where(rng.random(size) < share, low, high)


_BORDER = "half at 0.08, half at 0.97"
WORLDS: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "Beta(1, 1)": _hopeless(0, 1, 1),
    "Beta(0.2, 0.2)": _hopeless(0, 0.2, 0.2),
    "Beta(2, 1)": _hopeless(0, 2, 1),
    "Beta(8, 1)": _hopeless(0, 8, 1),
    "Beta(19, 1)": _hopeless(0, 19, 1),
    "Beta(1, 9)": _hopeless(0, 1, 9),
    "10% never pass, Beta(30, 1)": _hopeless(0.1, 30, 1),
    "20% never pass, Beta(8, 1)": _hopeless(0.2, 8, 1),
    "30% at 0.02, 70% at 0.98": _two(0.3, 0.02, 0.98),
    "10% at 0.02, 90% at 0.94": _two(0.1, 0.02, 0.94),
    "70% at 1, 30% at 0.9": _two(0.3, 0.9, 1),
    "half at 1, half at 0.945": _two(0.5, 0.945, 1),
    "half at 0.2, half at 0.94": _two(0.5, 0.2, 0.94),
    "all at 0.97": _two(0, 0, 0.97),
    "all at 0.94": _two(0, 0, 0.94),
    "all at 0.9": _two(0, 0, 0.9),
    _BORDER: _two(0.5, 0.08, 0.97),
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Kept:
    """For the open tasks of a suite: the runs promised (0: none), and which had a label by then."""

    promised: Counts
    evenly: NDArray[np.bool_]
    by_chance: NDArray[np.bool_]
    as_they_are: NDArray[np.bool_]


def tables(*, quick: bool = False) -> list[Table]:
    """Every table of this module; `quick` for a glance of some seconds."""
    return run_tables("labels", [(_right, 4, 60), (_promises, 1, 24)], quick=quick, least=1)


def _right(repetitions: int) -> Table:
    """Of the labels that suites of known rates get: how many, and how many are right."""
    rng = np.random.default_rng(SEED)
    rows, worst = [], 0.0
    for name, draw in WORLDS.items():
        given, wrong, shares = np.zeros(3), np.zeros(3), []
        for tasks, runs in DESIGNS:
            found = [_given(draw(rng, tasks), runs, rng) for _ in range(repetitions)]
            given += np.sum([one[0] for one in found], axis=0)
            wrong += np.sum([one[1] for one in found], axis=0)
            shares.append(np.mean([w.sum() / max(1, g.sum()) for g, w in found]))
        drawn = repetitions * sum(tasks for tasks, _ in DESIGNS)
        cells = [
            f"{100 * g / drawn:.1f} ({1 - w / g:.3f})" if g else "0"
            for g, w in zip(given, wrong, strict=True)
        ]
        rows.append((name, *cells, f"{max(shares):.3f}"))
        worst = max(worst, *shares) if name != _BORDER else worst
    return Table(
        title="Labels that are right",
        header=("rates of tasks", "solid", "flaky", "broken", "wrong in a report, worst design"),
        rows=rows,
        finding=(
            "Labels a hundred tasks and, in brackets, the share of them that is right; then the "
            "mean share of the labels of a report that is wrong, in the worst of "
            f"{', '.join(f'{tasks} x {runs}' for tasks, runs in DESIGNS)} tasks x runs. At most "
            "0.1 of the labels of a report may be wrong; the worst here, apart from the last row, "
            f"is {worst:.3f}. Where half of the tasks lie just below the border of broken, each of "
            "them is called flaky with a chance of at most 0.1, and few other labels are given."
        ),
        repetitions=repetitions,
        seed=SEED,
    )


def _given(
    rates: Floats, runs: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The labels of one suite of each kind, and how many of them are wrong."""
    labels = label_tasks(np.full(rates.size, runs), rng.binomial(runs, rates)).labels
    true = np.where(rates >= SOLID_ABOVE, SOLID, np.where(rates <= BROKEN_BELOW, BROKEN, FLAKY))
    kinds = [labels == kind for kind in (SOLID, FLAKY, BROKEN)]
    return (
        np.array([kind.sum() for kind in kinds]),
        np.array([(kind & (labels != true)).sum() for kind in kinds]),
    )


def _promises(repetitions: int) -> Table:
    rng = np.random.default_rng(SEED)
    every: list[Kept] = []
    rows = []
    for tasks in TASKS:
        found = [
            _follow(difficulty, tasks, runs, rng)
            for runs, difficulty, _ in product(RUNS, DIFFICULTIES, range(repetitions))
        ]
        every += found
        rows.append((str(tasks), *_row(found)))
    rows.append(("all", *_row(every)))
    even, chance, true = (_share(every, name) for name in ENDINGS)
    return Table(
        title="Tasks without a label: the further runs that are promised to give one",
        header=(
            *("tasks", "open tasks", "with a promise", "median runs"),
            *("as evenly as assumed", "by chance at the observed rate", "at the true rate"),
        ),
        rows=rows,
        finding=(
            f"{len(every):,} suites of {TASKS[0]} to {TASKS[-1]} tasks with {RUNS[0]} to "
            f"{RUNS[-1]} runs each, of every difficulty above. After the promised runs, a label "
            f"was given to {100 * even:.0f}% of the tasks that continued just as before, to "
            f"{100 * chance:.0f}% of those that passed by chance at the rate they had shown, and "
            f"to {100 * true:.0f}% of those that continued at their true rate: a task that looks "
            "clean after a few runs often is not. The tasks without a promise lie so near a border "
            "that 10,000 further runs would not be enough."
        ),
        repetitions=repetitions,
        seed=SEED,
    )


def _follow(difficulty: Difficulty, tasks: int, runs: int, rng: np.random.Generator) -> Kept:
    """One suite, and the same suite after every open task had the runs that it was promised."""
    rates = difficulty.draw((tasks,), rng)
    n = np.full(tasks, runs)
    c = rng.binomial(n, rates)
    labels = label_tasks(n, c).labels
    more = runs_to_label(n, c, labels)
    open_ = labels == UNDECIDED

    def labelled(passes: Counts) -> NDArray[np.bool_]:
        return label_tasks(n + more, c + passes).labels[open_] != UNDECIDED

    return Kept(
        promised=more[open_],
        evenly=labelled(np.rint(more * c / n).astype(np.int64)),
        by_chance=labelled(rng.binomial(more, c / n)),
        as_they_are=labelled(rng.binomial(more, rates)),
    )


def _row(found: list[Kept]) -> tuple[str, ...]:
    promised = np.concatenate([suite.promised for suite in found])
    return (
        str(promised.size),
        f"{np.mean(promised > 0):.3f}",
        f"{np.median(promised[promised > 0]):.0f}",
        *(f"{_share(found, name):.3f}" for name in ENDINGS),
    )


def _share(found: list[Kept], name: str) -> float:
    """Of the tasks with a promise, those that had a label by then."""
    promised = np.concatenate([suite.promised for suite in found]) > 0
    return float(np.concatenate([getattr(suite, name) for suite in found])[promised].mean())
