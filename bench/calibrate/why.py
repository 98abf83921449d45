"""How often a cause of failing is named: where there is none, and where one was planted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.random import Generator

from bench.calibrate.cells import run_tables
from bench.calibrate.simulated_agents import (
    SHARED_CAUSES,
    SimulationModel,
    omitted,
    simulate_runs,
    wrong_amount,
)
from bench.calibrate.table import Table
from passhat.analysis.explaining.causes import TESTS, associations, features, find_causes
from passhat.analysis.explaining.run_diff import departures, divergences
from passhat.analysis.explaining.runs import ComparedRuns, compared_runs, explained_runs
from passhat.ingest import read_with_transcripts
from passhat.records import Outcome
from passhat.stats.multiple_testing import shuffled_in_strata

SEED = 20261115
ALPHA = 0.05
SHUFFLES = 999
AIRLINE = Path("..", "shared", "samples", "tau_bench", "gpt-4o-airline.json")
"""A published log beside the checkout; its rows are left out where it is absent."""

STRENGTHS = {"strong": (0.95, 0.05), "medium": (0.8, 0.2)}
"""The chance of failing with and without the planted cause."""

SIZES = ((1, 5), (1, 10), (1, 20), (5, 5), (5, 10), (20, 5), (20, 10))
RIGHT = 0.9
"""A name is right if the property divides at least this share of the runs as the cause does."""


def tables(*, quick: bool = False) -> list[Table]:
    """Every table of this module; `quick` for a glance of some seconds."""
    makers = [
        (_false_names, 10, 1600),
        (_shared_causes, 1, 17),
        (_wrong_values, 4, 100),
        (_one_task_of_many, 4, 100),
    ]
    return run_tables("why", makers, quick=quick, least=1)


def _false_names(repetitions: int) -> Table:
    rows = []
    for name, worlds in _causeless(repetitions).items():
        rng = np.random.default_rng(SEED)
        named = [bool(_named(compared, rng)) for compared in worlds]
        rows.append((name, str(len(named)), str(sum(named)), f"{np.mean(named):.3f}"))
    return Table(
        title="Why runs fail: naming a cause where there is none",
        header=("runs", "repetitions", "named anything", "share"),
        rows=rows,
        finding=(
            f"Outcomes are luck inside each task; at most {100 * ALPHA:.0f}% may be given a "
            "cause. The real calls are the 104 runs of tau-bench airline (gpt-4o) whose tasks "
            "both passed and failed, with outcomes shuffled inside the tasks."
        ),
        repetitions=repetitions,
        seed=SEED,
    )


def _causeless(repetitions: int) -> dict[str, Iterable[ComparedRuns]]:
    rng = np.random.default_rng(SEED)
    found: dict[str, Iterable[ComparedRuns]] = {
        f"made-up calls, {tasks} x {runs}": (
            simulate_runs(tasks, runs, rng).compared for _ in range(repetitions)
        )
        for tasks, runs in ((1, 20), (5, 10), (20, 5))
    }
    if AIRLINE.is_file():
        real = compared_runs(explained_runs(*read_with_transcripts(AIRLINE)))
        found["real calls, 26 tasks"] = (_shuffled(real, rng) for _ in range(repetitions))
    return found


def _shuffled(real: ComparedRuns, rng: Generator) -> ComparedRuns:
    """The same calls with outcomes that have nothing to do with them."""
    failed = shuffled_in_strata(real.failed, real.stratum, shuffles=1, rng=rng)[1]
    runs = tuple(
        replace(run, outcome=Outcome.FAILED if bad else Outcome.PASSED)
        for run, bad in zip(real.runs, failed.tolist(), strict=True)
    )
    return replace(real, runs=runs, failed=failed)


def _named(compared: ComparedRuns, rng: Generator) -> tuple[object, ...]:
    found = divergences(compared)
    return find_causes(compared, found, alpha=ALPHA, shuffles=SHUFFLES, rng=rng)


def _shared_causes(repetitions: int) -> Table:
    """One cause in every task, of six kinds in turn."""
    rng = np.random.default_rng(SEED)
    rows = []
    for tasks, runs in SIZES:
        cells = [f"{tasks} x {runs}"]
        for fails in STRENGTHS.values():
            worlds = [
                simulate_runs(tasks, runs, rng, plant=plant, fails=fails)
                for plant in SHARED_CAUSES
                for _ in range(repetitions)
            ]
            named, right = zip(*(_by_features(world, rng) for world in worlds), strict=True)
            cells.append(f"{np.mean(named):.2f} / {np.mean(right):.2f}")
        rows.append(tuple(cells))
    return Table(
        title="Why runs fail: a planted cause that all tasks share",
        header=("tasks x runs", *(f"{name}: named / right" for name in STRENGTHS)),
        rows=rows,
        finding=(
            "Six kinds of cause in turn: a call left out, a wrong value, a call too many, an error "
            "that is not handled, a call made twice, running out of turns. Half of the runs have "
            "it; a run fails with chance 0.95 with it and 0.05 without (strong), or 0.8 and 0.2 "
            f"(medium). Right: the first property named divides {100 * RIGHT:.0f}% of the runs as "
            "the cause does. Five runs of one task can never name a cause."
        ),
        repetitions=repetitions * len(SHARED_CAUSES),
        seed=SEED,
    )


def _by_features(world: SimulationModel, rng: Generator) -> tuple[bool, bool]:
    """Whether the test of properties names anything, and the planted cause."""
    compared = world.compared
    if not compared.runs:
        return False, False
    shuffled = _shuffles(compared, rng)
    groups = [range(rows.start, rows.stop) for rows in compared.blocks()]
    having = features(compared.runs, groups)
    found = associations(compared, having, shuffled, level=ALPHA / TESTS)
    if not found or found[0].p > ALPHA / TESTS:
        return False, False
    first = found[0]
    alike = first.having[first.varying] == world.planted[first.varying]
    return True, bool(alike.mean() >= RIGHT)


def _by_agreement(world: SimulationModel, rng: Generator) -> bool:
    """Whether the test of agreement names the tool of the planted cause."""
    found = departures(world.compared, _shuffles(world.compared, rng))
    return bool(found) and found[0].p <= ALPHA / TESTS and found[0].tool == "refund"


def _shuffles(compared: ComparedRuns, rng: Generator) -> np.ndarray:
    return shuffled_in_strata(compared.failed, compared.stratum, shuffles=SHUFFLES, rng=rng)


def _wrong_values(repetitions: int) -> Table:
    rng = np.random.default_rng(SEED)
    rows = []
    for tasks, runs in ((5, 10), (20, 5)):
        worlds = [
            simulate_runs(
                tasks, runs, rng, plant=wrong_amount, share=0.6, fails=STRENGTHS["strong"]
            )
            for _ in range(repetitions)
        ]
        agreed = np.mean([_by_agreement(world, rng) for world in worlds])
        featured = np.mean([_by_features(world, rng)[1] for world in worlds])
        rows.append((f"{tasks} x {runs}", f"{agreed:.2f}", f"{featured:.2f}"))
    return Table(
        title="Why runs fail: each task has its own right value, wrong in 60% of runs",
        header=("tasks x runs", "agreement names the tool", "a property is right"),
        rows=rows,
        finding=(
            "The amount of a refund is wrong in another way each time; no one value is shared by "
            "the failing runs. This is what the test of agreement is for."
        ),
        repetitions=repetitions,
        seed=SEED,
    )


def _one_task_of_many(repetitions: int) -> Table:
    rng = np.random.default_rng(SEED)
    rows = []
    for runs in (10, 20):
        worlds = [
            simulate_runs(10, runs, rng, plant=omitted, fails=STRENGTHS["strong"], planted_tasks=1)
            for _ in range(repetitions)
        ]
        named = np.mean([bool(_named(world.compared, rng)) for world in worlds])
        rows.append((f"10 x {runs}", f"{named:.2f}"))
    return Table(
        title="Why runs fail: a strong cause in one task of ten",
        header=("tasks x runs", "named"),
        rows=rows,
        finding="The other nine tasks fail by luck, one run in twenty.",
        repetitions=repetitions,
        seed=SEED,
    )
