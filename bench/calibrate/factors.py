"""What a factor moves: coverage of its numbers, error and power of its tests, what levels buy."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from bench.calibrate.cells import run_cells, run_tables
from bench.calibrate.table import Table
from passhat.analysis.reports.factors import (
    LevelTable,
    failed_by_all,
    levels_like_these,
    worst_level,
)
from passhat.stats.estimate import TASKS_LIKE_THESE, THIS_SUITE, Estimate, Number
from passhat.stats.factors import LevelComponents, factor_effect, level_test, pass_hat_of_levels
from passhat.stats.suite_mean import suite_estimate

SEED = 20261118
SIZES = ((12, 2, 5), (30, 2, 5), (30, 4, 5), (30, 5, 3))
WORLDS = ((0.0, 0.0), (0.4, 0.6), (0.9, 1.0))
"""How far levels differ, in logits: as a whole, and from task to task."""
LAWS = ("logit-normal", "Beta(2, 1)")
POPULATION = 4000
"""Tasks over which the truth of a population is added up."""
DRAWS = 199

NAMES = (
    *("luck", "moved", "share", "worst level", "2 in a row, one level", "2 in a row, others"),
    *(
        "cells, these tasks",
        "pooled, these tasks",
        "cells, similar tasks",
        "no base, similar tasks",
    ),
)

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]


def tables(*, quick: bool = False) -> list[Table]:
    """What a factor moves, and what its tests and plans promise."""
    makers = [
        *((_power, 60, 150), (_bought, 300, 2000), (_sampled, 40, 150), (_suspects, 100, 300)),
        *((_easy, 30, 150), (_once, 20, 100)),
    ]
    return [*_moved(quick=quick), *run_tables("factors", makers, quick=quick)]


def _moved(*, quick: bool) -> list[Table]:
    """What a factor moves, and pass^3 of levels kept apart and pooled."""
    share = float(os.environ.get("PASSHAT_SHARE", "1"))
    repetitions = 30 if quick else max(20, round(100 * share))
    sizes = ((12, 2, 5), (30, 4, 5)) if quick else SIZES
    worlds = (WORLDS[0], WORLDS[-1]) if quick else WORLDS
    cells = [
        (*size, *world, law, repetitions)
        for size in sizes
        for world in worlds
        for law in range(len(LAWS))
    ]
    found = [cover(*cell) for cell in cells] if quick else run_cells("factors", cover, cells)
    by_cell = dict(zip(cells, found, strict=True))
    moved, pooled = [], []
    for size in sizes:
        for world in worlds:
            own = [by_cell[cell] for cell in cells if cell[:5] == (*size, *world)]
            start = (f"{size[0]}", f"{size[1]} x {size[2]}", f"{world[0]:g}, {world[1]:g}")
            shown = [_worst_and_width([one[name] for one in own]) for name in NAMES]
            rejected = f"{np.mean([one['rejected'][0] for one in own]):.2f}"
            moved.append((*start, *shown[:6], rejected))
            pooled.append((*start, *shown[6:]))
    header = ("tasks", "levels x trials", "levels differ by")
    return [
        Table(
            title="What a factor moves",
            header=(*header, *NAMES[:6], "p <= 0.05"),
            rows=moved,
            finding="Coverage / mean width at a nominal 0.95 for similar tasks and these levels "
            "(the worst level: these tasks), the lower of two laws of pass rates (logit-normal "
            "with mean 1.2 and sd 1.5, Beta(2, 1)); levels differ by so many logits (sd) as a "
            "whole, and from task to task. Where they do not, p <= 0.05 is the test's error.",
            repetitions=repetitions,
            seed=SEED,
        ),
        Table(
            title="Levels are tasks of their own",
            header=(*header, *NAMES[6:]),
            rows=pooled,
            finding="Coverage / mean width of pass^3 with one level in all three trials. Levels "
            "that are pooled into one task give another number; cells without their base task are "
            "taken for more tasks than were drawn.",
            repetitions=repetitions,
            seed=SEED,
        ),
    ]


def cover(
    tasks: int, levels: int, runs: int, whole: float, apart: float, law: int, repetitions: int
) -> dict[str, tuple[float, float]]:
    """How often each interval holds the truth, and how wide it is on average."""
    rng = np.random.default_rng([SEED, tasks, levels, runs, int(10 * whole), law])
    hits: dict[str, list[tuple[bool, float]]] = {name: [] for name in NAMES}
    rejected = 0
    for _ in range(repetitions):
        shift = whole * rng.normal(size=(1, levels))
        drawn, every = (_rates(rng, size, shift, apart, law) for size in (tasks, POPULATION))
        n = np.full((tasks, levels), runs)
        c = rng.binomial(n, drawn)
        test = level_test(n, c, draws=DRAWS, rng=rng)
        rejected += bool(test) and test.p_value <= 0.05
        for name, (number, truth) in _numbers(n, c, drawn, every).items():
            if isinstance(number, Estimate) and number.interval is not None:
                ends = number.interval
                inside = ends.low - 1e-3 <= truth <= ends.high + 1e-3
                hits[name].append((inside, ends.width))
    found = {
        name: (float(np.mean([hit for hit, _ in own])), float(np.mean([wide for _, wide in own])))
        for name, own in hits.items()
    }
    return found | {"rejected": (rejected / repetitions, 0.0)}


def _rates(
    rng: np.random.Generator, tasks: int, shift: Floats, apart: float, law: int, mean: float = 1.2
) -> Floats:
    if law == 0:
        logit = rng.normal(mean, 1.5, size=(tasks, 1))
    else:
        rate = rng.beta(2.0, 1.0, size=(tasks, 1))
        logit = np.log(rate / (1 - rate))
    rates: Floats = 1 / (
        1 + np.exp(-(logit + shift + apart * rng.normal(size=(tasks, shift.size))))
    )
    return rates


def _numbers(n: Counts, c: Counts, drawn: Floats, every: Floats) -> dict[str, tuple[Number, float]]:
    """Each number, and its truth."""
    levels = n.shape[1]
    total = every.sum(axis=1)
    pairs = (total**2 - (every**2).sum(axis=1)) / (levels * (levels - 1))
    same = float((2 * every * (1 - every)).mean())
    other = float((2 * (total / levels - pairs)).mean())
    effect = factor_effect(n, c)
    unit = np.arange(len(n))
    table = _table(n, c)
    base = np.repeat(unit, levels)
    runs, passes = n.ravel(), c.ravel()
    pooled = suite_estimate(n.sum(axis=1), c.sum(axis=1), k=3, scope=THIS_SUITE)
    here, there = float((drawn**3).mean()), float((every**3).mean())
    numbers: dict[str, tuple[Number, float]] = {
        "worst level": (worst_level(table, 0.95)[1], float(drawn.mean(axis=0).min())),
        "2 in a row, one level": (
            pass_hat_of_levels(n, c, 2, other=False),
            float((every**2).mean()),
        ),
        "2 in a row, others": (pass_hat_of_levels(n, c, 2, other=True), float(pairs.mean())),
        "cells, these tasks": (suite_estimate(runs, passes, k=3), here),
        "pooled, these tasks": (pooled, here),
        "cells, similar tasks": (
            suite_estimate(runs, passes, k=3, scope=TASKS_LIKE_THESE, family=base),
            there,
        ),
        "no base, similar tasks": (
            suite_estimate(runs, passes, k=3, scope=TASKS_LIKE_THESE),
            there,
        ),
    }
    if effect:
        gap = max(0.0, other - same)
        numbers |= {
            "luck": (effect.luck, same),
            "moved": (effect.moved, gap),
            "share": (effect.share, gap / other),
        }
    return numbers


def _worst_and_width(found: list[tuple[float, float]]) -> str:
    return f"{min(hit for hit, _ in found):.2f} / {np.mean([wide for _, wide in found]):.2f}"


def _table(n: Counts, c: Counts) -> LevelTable:
    tasks, levels = n.shape
    names = (tuple(map(str, range(size))) for size in (levels, tasks))
    return LevelTable(
        levels=next(names), names=next(names), unit=np.arange(tasks), runs=n, passes=c
    )


def _easy(repetitions: int, *, quick: bool = False) -> Table:
    """What a factor moves where most trials pass, and where nearly all do."""
    rows = []
    designs = ((30, 2, 5), (30, 4, 5), (30, 5, 2), (12, 2, 5))
    for place, (tasks, levels, runs) in enumerate(designs[:1] if quick else designs):
        for world in (WORLDS[0], WORLDS[-1]):
            cells = []
            for mean in (1.2, 3.5):
                rng = np.random.default_rng([SEED, 5, place, int(10 * world[0]), int(10 * mean)])
                hits: dict[str, list[tuple[bool, float]]] = {"moved": [], "share": []}
                for _ in range(repetitions):
                    shift = world[0] * rng.normal(size=(1, levels))
                    drawn, every = (
                        _rates(rng, size, shift, world[1], 0, mean) for size in (tasks, POPULATION)
                    )
                    n = np.full((tasks, levels), runs)
                    effect = factor_effect(n, rng.binomial(n, drawn))
                    total = every.sum(axis=1)
                    pairs = (total**2 - (every**2).sum(axis=1)) / (levels * (levels - 1))
                    other = float((2 * (total / levels - pairs)).mean())
                    gap = max(0.0, other - float((2 * every * (1 - every)).mean()))
                    for name, truth in (("moved", gap), ("share", gap / other)):
                        number = getattr(effect, name, None)
                        if isinstance(number, Estimate) and number.interval is not None:
                            ends = number.interval
                            inside = ends.low - 1e-3 <= truth <= ends.high + 1e-3
                            hits[name].append((inside, ends.width))
                cells += [
                    f"{np.mean([h for h, _ in own]):.2f} / {np.mean([w for _, w in own]):.3f}"
                    for own in hits.values()
                ]
            rows.append((f"{tasks}", f"{levels} x {runs}", f"{world[0]:g}, {world[1]:g}", *cells))
    easy = ("moved, 71% pass", "share, 71% pass", "moved, 93% pass", "share, 93% pass")
    return Table(
        title="What a factor moves where nearly all trials pass",
        header=("tasks", "levels x trials", "levels differ by", *easy),
        rows=rows,
        finding="Coverage / mean width at a nominal 0.95 for similar tasks and these levels; "
        "tasks: logit-normal, sd 1.5, mean 1.2 or 3.5.",
        repetitions=repetitions,
        seed=SEED,
    )


def _once(repetitions: int, *, quick: bool = False) -> Table:
    """pass^1 with levels kept apart, pooled, and taken for tasks that were drawn."""
    rows = []
    for levels in (2,) if quick else (2, 3, 4):
        for world in (WORLDS[0], WORLDS[-1]):
            rng = np.random.default_rng([SEED, 6, levels, int(10 * world[0])])
            hits: dict[str, list[tuple[bool, float]]] = {}
            for _ in range(repetitions):
                shift = world[0] * rng.normal(size=(1, levels))
                drawn, every = (_rates(rng, size, shift, world[1], 0) for size in (30, POPULATION))
                n = np.full(drawn.shape, 5)
                c = rng.binomial(n, drawn)
                unit, similar = np.repeat(np.arange(30), levels), TASKS_LIKE_THESE
                cells = n.ravel(), c.ravel()
                pooled = n.sum(axis=1), c.sum(axis=1)
                here, there = float(drawn.mean()), float(every.mean())
                for name, (counts, more, truth) in {
                    "cells, these tasks": (cells, {}, here),
                    "pooled, these tasks": (pooled, {}, here),
                    "cells, similar tasks": (cells, {"scope": similar, "family": unit}, there),
                    "no base, similar tasks": (cells, {"scope": similar}, there),
                    "pooled, similar tasks": (pooled, {"scope": similar}, there),
                }.items():
                    ends = suite_estimate(*counts, k=1, **more).interval
                    hits.setdefault(name, []).append((truth in ends, ends.width))
            found = [
                f"{np.mean([h for h, _ in own]):.2f} / {np.mean([w for _, w in own]):.2f}"
                for own in hits.values()
            ]
            rows.append((f"{levels}", f"{world[0]:g}, {world[1]:g}", *found))
    return Table(
        title="Levels are tasks of their own: pass@1",
        header=("levels", "levels differ by", *hits),
        rows=rows,
        finding="Coverage / mean width at a nominal 0.95 on 30 tasks x 5 trials at each level. Of "
        "one trial levels that are pooled give the same number.",
        repetitions=repetitions,
        seed=SEED,
    )


# The test of levels: what it finds in worlds that differ, and what a plan foresees of it.

DESIGNS = ((30, 4, 5), (30, 10, 2), (100, 4, 3))
KINDS = ("nothing", "one 1 logit worse", "task by task, sd 1", "one breaks 10%", "others 0.5 worse")


def _power(repetitions: int, *, quick: bool = False) -> Table:
    rows = []
    for place, (tasks, levels, runs) in enumerate(DESIGNS[:1] if quick else DESIGNS):
        cells, foreseen = [], 0.0
        for kind, name in enumerate(KINDS):
            rng = np.random.default_rng([SEED, 1, place, kind])
            found, powers = 0, []
            for _ in range(repetitions):
                drawn = _worse(rng, tasks, levels, name)
                n = np.full((tasks, levels), runs)
                test = level_test(n, rng.binomial(n, drawn), draws=DRAWS, rng=rng)
                found += bool(test) and test.p_value <= 0.05
                if kind == 1:
                    gap = float(drawn[:, 1:].mean() - drawn[:, 0].mean())
                    luck = float((drawn * (1 - drawn)).mean())
                    spread = LevelComponents(luck=luck, crossed=0.0, level=0.0)
                    powers.append(spread.power(gap, tasks=tasks, levels=levels, runs=runs))
            foreseen = float(np.mean(powers)) if powers else foreseen
            cells.append(f"{found / repetitions:.2f}")
        rows.append((f"{tasks}", f"{levels} x {runs}", *cells, f"{foreseen:.2f}"))
    return Table(
        title="Whether levels matter: error and power",
        header=("tasks", "levels x trials", *KINDS, "foreseen for one 1 logit worse"),
        rows=rows,
        finding="Share of suites with p <= 0.05 (tasks: logit-normal, mean 1.2, sd 1.5). The same "
        "trials at more levels find a bad level less often. The last column is what `plan` says.",
        repetitions=repetitions,
        seed=SEED,
    )


def _worse(rng: np.random.Generator, tasks: int, levels: int, kind: str) -> Floats:
    logit = np.repeat(rng.normal(1.2, 1.5, size=(tasks, 1)), levels, axis=1)
    if kind == KINDS[1]:
        logit[:, 0] -= 1
    elif kind == KINDS[2]:
        logit += rng.normal(size=logit.shape)
    elif kind == KINDS[3]:
        logit[: round(tasks / 10), 0] = -5
    elif kind == KINDS[4]:
        logit[:, 1:] -= 0.5
    rates: Floats = 1 / (1 + np.exp(-logit))
    return rates


def _bought(repetitions: int, *, quick: bool = False) -> Table:
    """20 trials of each of 30 tasks at 1 to 20 levels: the error of the mean over such levels."""
    tasks, total = 30, 20
    rows = []
    for place, (whole, apart) in enumerate(((0.9, 1.0), (0.4, 0.6), (0.0, 0.6))):
        rng = np.random.default_rng([SEED, 2, place])
        logit = rng.normal(1.2, 1.5, size=(tasks, 1))

        def rates(
            shape: tuple[int, int],
            rng: np.random.Generator = rng,
            logit: Floats = logit,
            spread: tuple[float, float] = (whole, apart),
        ) -> Floats:
            sets, levels = shape
            shift = spread[0] * rng.normal(size=(sets, 1, levels))
            shift = shift + spread[1] * rng.normal(size=(sets, tasks, levels))
            found: Floats = 1 / (1 + np.exp(-(logit + shift)))
            return found

        every = rates((1, 20_000))[0]
        level = float(np.cov(every.mean(axis=0)))
        within = float(every.var(axis=1).mean())
        # The mean over tasks moves by what a level does to all, and by a share of what it does
        # to each of them.
        both = max(0.0, (level - within / tasks) / (1 - 1 / tasks))
        parts = LevelComponents(
            luck=float((every * (1 - every)).mean()), crossed=within - both, level=both
        )
        cells = []
        for levels in (1, 2, 4, 10, 20):
            runs = total // levels
            drawn = rates((repetitions, levels))
            means = rng.binomial(runs, drawn).mean(axis=(1, 2)) / runs
            by_formula = parts.error(tasks=tasks, levels=levels, runs=runs)
            cells.append(f"{means.std():.3f} ({by_formula:.3f})")
        rows.append((f"{whole:g}, {apart:g}", *cells))
    return Table(
        title="What 20 trials of a task buy: levels or trials",
        header=("levels differ by", "1 x 20", "2 x 10", "4 x 5", "10 x 2", "20 x 1"),
        rows=rows,
        finding="Standard deviation of the mean of 30 tasks when levels are drawn anew, and in "
        "brackets what `plan` says of them (Cochran 1977).",
        repetitions=repetitions,
        seed=SEED,
    )


def _sampled(repetitions: int, *, quick: bool = False) -> Table:
    """Levels that stand for others, and the worst of many."""
    rows, tasks, runs = [], 30, 5
    for levels in (5,) if quick else (3, 5, 10):
        for world in (WORLDS[0], WORLDS[-1]):
            rng = np.random.default_rng([SEED, 3, levels, int(10 * world[0])])
            hits: dict[str, list[tuple[bool, float]]] = {}
            for _ in range(repetitions):
                logit = rng.normal(1.2, 1.5, size=(tasks, 1))
                count = 2000
                shift = world[0] * rng.normal(size=(1, levels + count))
                shift = shift + world[1] * rng.normal(size=(tasks, levels + count))
                every = 1 / (1 + np.exp(-(logit + shift)))
                drawn, others = every[:, :levels], every[:, levels:]
                n = np.full((tasks, levels), runs)
                table = _table(n, rng.binomial(n, drawn))
                asked: dict[str, tuple[Number, float]] = {
                    "worst level": (worst_level(table, 0.95)[1], float(drawn.mean(axis=0).min())),
                }
                for k in (1, 3) if levels >= 5 else ():
                    like = levels_like_these(table, k, 0.95)
                    asked[f"pass^{k}, levels like these"] = like, float((others**k).mean())
                for name, (number, truth) in asked.items():
                    if isinstance(number, Estimate) and number.interval is not None:
                        ends = number.interval
                        inside = ends.low - 1e-3 <= truth <= ends.high + 1e-3
                        hits.setdefault(name, []).append((inside, ends.width))
            names = ("worst level", "pass^1, levels like these", "pass^3, levels like these")
            cells = [
                f"{np.mean([h for h, _ in own]):.2f} / {np.mean([w for _, w in own]):.2f}"
                if (own := hits.get(name))
                else "refused"
                for name in names
            ]
            rows.append((f"{levels}", f"{world[0]:g}, {world[1]:g}", *cells))
    return Table(
        title="The worst level, and levels like these",
        header=(
            "levels",
            "levels differ by",
            "worst level",
            "pass^1, levels like these",
            "pass^3, levels like these",
        ),
        rows=rows,
        finding="Coverage / mean width at a nominal 0.95 on 30 tasks x 5 trials at each level. "
        "Fewer than five levels do not stand for others.",
        repetitions=repetitions,
        seed=SEED,
    )


# Wordings that every agent fails: how often one is flagged that is no worse, and how often found.

CASTS = ((2, 3), (2, 5), (3, 5), (5, 5), (3, 10))
"""Agents, and trials of each task in each wording."""
BROKEN_RATES = (0.0, 0.1, 0.3)


def _suspects(repetitions: int, *, quick: bool = False) -> Table:
    """20 tasks in three wordings each; the first wording of the first two tasks is another task."""
    rows, tasks, wordings = [], 20, 3
    for place, (agents, runs) in enumerate(CASTS[1:2] if quick else CASTS):
        cells = []
        # Nothing is wrong; the first agent alone is hurt; all agents are, by so much.
        worlds: list[tuple[float | None, bool]] = [(None, True), (0.0, False)]
        for rate, everyone in [*worlds, *((one, True) for one in BROKEN_RATES)]:
            rng = np.random.default_rng([SEED, 4, place, len(cells)])
            false = found = 0
            for _ in range(repetitions):
                ease = rng.normal(1.2, 1.5, size=(tasks, 1, 1))
                plain = 1 / (1 + np.exp(-ease - 0.5 * rng.normal(size=(tasks, 1, agents))))
                worded = np.repeat(plain, wordings, axis=1)
                if rate is not None:
                    worded[:2, 0, slice(None) if everyone else slice(1)] = rate
                n = np.full((tasks, wordings, agents), runs)
                c = rng.binomial(n, worded)
                d = np.repeat(rng.binomial(runs, plain), wordings, axis=1)
                cells_of = np.stack((n, c, n, d), axis=-1).reshape(-1, agents, 4)
                flagged = np.array(failed_by_all(list(cells_of))).reshape(tasks, wordings)
                bad = np.zeros((tasks, wordings), dtype=bool)
                bad[:2, 0] = rate is not None and everyone
                false += bool((flagged & ~bad).any())
                found += int(flagged[bad].sum())
            shown = false if rate is None or not everyone else found / 2
            cells.append(f"{shown / repetitions:.3f}")
        rows.append((f"{agents} x {runs}", *cells))
    return Table(
        title="Suspect wordings",
        header=(
            "agents x trials",
            "flagged, none is worse",
            "flagged, one agent alone fails two",
            *(f"found, all pass it {100 * rate:g}%" for rate in BROKEN_RATES),
        ),
        rows=rows,
        finding="60 wordings of 20 tasks (logit-normal, mean 1.2, sd 1.5, and 0.5 between agents). "
        "First two columns: share of suites in which any wording is flagged wrongly, promised at "
        "most 0.05. Others: share found of the wordings that no agent can pass, or few; a task "
        "that some agent mostly fails as it is cannot be found. Two agents with three trials "
        "show too little to flag any of 60.",
        repetitions=repetitions,
        seed=SEED,
    )
