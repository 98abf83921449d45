"""Whether tasks without a label have one after the further runs that were promised to give it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from bench.calibrate.cells import run_tables
from bench.calibrate.simulated_suites import DIFFICULTIES, Difficulty
from bench.calibrate.table import Table
from passhat.stats.arguments import Counts
from passhat.stats.labels import UNDECIDED, label_tasks, runs_to_label

SEED = 20261115
TASKS = (1, 2, 5, 10, 20, 40)
RUNS = (2, 3, 5, 10)
ENDINGS = ("evenly", "by_chance", "as_they_are")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Kept:
    """Of the open tasks of one suite: the runs promised (0: none), and who had a label by then."""

    promised: Counts
    evenly: NDArray[np.bool_]
    by_chance: NDArray[np.bool_]
    as_they_are: NDArray[np.bool_]


def tables(*, quick: bool = False) -> list[Table]:
    """Every table of this module; `quick` for a glance of some seconds."""
    return run_tables("labels", [(_promises, 1 if quick else 24)], quick=quick, least=1)


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
        rows=tuple(rows),
        finding=(
            f"{len(every):,} suites of {TASKS[0]} to {TASKS[-1]} tasks with {RUNS[0]} to "
            f"{RUNS[-1]} runs each, of every difficulty above. After the runs promised a label had "
            f"{100 * even:.0f} % of the tasks that went on just as they did, {100 * chance:.0f} % "
            "of those that passed by chance at the rate they had shown, and "
            f"{100 * true:.0f} % of those that went on at their true rate: a task that looks clean "
            "after a few runs often is not. The tasks without a promise lie so near a border that "
            "10,000 runs more would not do."
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
