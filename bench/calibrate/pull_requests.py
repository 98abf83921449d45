"""Reviews of pull requests: how often an unchanged agent fails, how soon a drop is found."""

from __future__ import annotations

import numpy as np

from bench.calibrate.table import Table
from passhat.analysis.gates.gate import Verdicts
from passhat.analysis.gates.judge import judge
from passhat.journeys.gating import FALSE_ALARMS, review_demands
from passhat.records import Trials
from passhat.stats.arguments import Floats

SEED = 20_261_116
SIZES = ((20, 10), (50, 10), (50, 20), (100, 20))
DROPS = (0.05, 0.10)
CHECKS = 3
"""Reviews of changes that carry the drop: it should be found within so many."""


def tables(*, quick: bool = False) -> list[Table]:
    rng = np.random.default_rng(SEED)
    unchanged, dropped = (40, 10) if quick else (1_000, 200)
    return [_reviews(rng, unchanged, dropped), _spending(rng, 6 if quick else 100)]


def _reviews(rng: np.random.Generator, unchanged: int, dropped: int) -> Table:
    """Whole runs of both sides, judged as the comment on a pull request judges them."""
    rows, alarms, reviews = [], 0, 0
    for tasks, runs in SIZES:
        words = [_reviewed(rng, tasks, runs, 0.0).status for _ in range(unchanged)]
        alarms, reviews = alarms + words.count("FAIL"), reviews + unchanged
        found = [
            np.mean([_reviewed(rng, tasks, runs, drop).status == "FAIL" for _ in range(dropped)])
            for drop in DROPS
        ]
        rows.append((
            f"{tasks} x {runs}",
            f"{words.count('FAIL')} of {unchanged:,}",
            f"{words.count('PASS') / unchanged:.2f}",
            *(f"{once:.2f} / {1 - (1 - once) ** CHECKS:.2f}" for once in found),
        ))  # fmt: skip
    return Table(
        title="Pull requests: false alarms, and drops that are found",
        header=(
            "tasks x runs of each side", "unchanged: red", "unchanged: green",
            *(f"drop of {100 * drop:.0f} points: once / within {CHECKS}" for drop in DROPS),
        ),
        rows=rows,
        finding="A change reviewed against one run of its base branch, rates Beta(4, 1). Red is "
        f"promised to at most {1000 * FALSE_ALARMS:g} of 1,000 unchanged agents; {alarms} of "
        f"{reviews:,} were red here. What is neither red nor green is neutral. A drop is found "
        f"within {CHECKS} where one of {CHECKS} independent reviews is red.",
        repetitions=unchanged,
        seed=SEED,
    )  # fmt: skip


def _spending(rng: np.random.Generator, repetitions: int) -> Table:
    """The same demand on the suite with --until-settled: runs that the change pays for."""
    tasks, most = 100, 40
    demand = {**review_demands("main")[0], "evidence": "sequential"}
    rows = []
    for drop in (0.0, *DROPS):
        words, spent = [], []
        for _ in range(repetitions):
            new, old = _sides(rng, tasks, most, drop)
            verdict = judge(new, demand, baseline={"main": old})[0]
            words.append(verdict.status)
            spent.append(verdict.runs / 2)
        shares = [f"{words.count(word) / repetitions:.2f}" for word in ("PASS", "FAIL")]
        rows.append((f"{100 * drop:.0f} points", *shares, f"{np.mean(spent):,.0f}"))
    return Table(
        title="Pull requests: what a review spends with --until-settled",
        header=("drop", "PASS", "FAIL", "mean runs of the change"),
        rows=rows,
        finding=f"{tasks} tasks, at most {most} runs of each on either side; the fixed review "
        "above pays for 2,000 runs at 100 x 20, whatever the change.",
        repetitions=repetitions,
        seed=SEED,
    )


def _reviewed(rng: np.random.Generator, tasks: int, runs: int, drop: float) -> Verdicts:
    new, old = _sides(rng, tasks, runs, drop)
    return judge(new, review_demands("main"), baseline={"main": old})


def _sides(rng: np.random.Generator, tasks: int, runs: int, drop: float) -> tuple[Trials, Trials]:
    """A change whose tasks all lost `drop`, and its base branch."""
    rates = rng.beta(4, 1, tasks)
    return _trials(rng, np.clip(rates - drop, 0, 1), runs), _trials(rng, rates, runs)


def _trials(rng: np.random.Generator, rates: Floats, runs: int) -> Trials:
    passed = rng.random((rates.size, runs)) < rates[:, None]
    names = np.repeat([f"task {i}" for i in range(rates.size)], runs)
    return Trials.from_columns(task=names.tolist(), passed=passed.ravel().tolist())
