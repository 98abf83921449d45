"""Coverage of every interval: suite means in both scopes, scores, one proportion, the model's."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations_with_replacement, product
from math import comb

import numpy as np
from scipy import special
from scipy.stats import binom

from bench.calibrate.cells import run_tables
from bench.calibrate.default_search import CANDIDATES
from bench.calibrate.simulated_suites import DIFFICULTIES, HARSH, Difficulty, tally_suites
from bench.calibrate.suite_coverage import NOMINAL, SCOPES, Covered, Design, cover, grid
from bench.calibrate.table import Table, monte_carlo_error
from passhat.stats.decay import extrapolate_pass_hat_k
from passhat.stats.estimate import TASKS_LIKE_THESE, THIS_SUITE, Estimate, Scope
from passhat.stats.mean_intervals import default_bounds
from passhat.stats.proportions import proportion_bounds
from passhat.stats.sufficient_statistics import count_cells
from passhat.stats.suite_bounds import suite_bounds
from passhat.stats.suite_mean import score_estimate
from passhat.stats.task_labels import UNDECIDED, label_tasks

SEED = 20261115
TASKS = (10, 20, 45, 100, 500)
RUNS = (3, 5, 10, 20)
POWERS = (1, 3, 5)
FLOOR = 0.90
# Carrying tasks, all tasks, rate of those that carry, runs and k.
SPARSE = (
    (1, 5, 0.3, 50, 7),
    (1, 3, 0.3, 35, 5),
    (1, 12, 0.3, 50, 5),
    (1, 2, 0.45, 50, 5),
    (1, 3, 0.5, 50, 5),
    (2, 10, 0.4, 20, 4),
    (3, 10, 0.3, 40, 5),
    (5, 5, 0.25, 35, 5),
)
# Good tasks, their rate and runs; poor tasks, their rate and runs; k.
LOPSIDED = (
    (8, 0.9, 4, 2, 0.3, 40, 2),
    (10, 0.95, 4, 5, 0.5, 40, 2),
    (10, 0.95, 10, 5, 0.6, 40, 5),
    (20, 0.97, 10, 5, 0.3, 100, 3),
    (20, 0.97, 10, 5, 0.3, 100, 1),
    (10, 0.95, 5, 10, 0.3, 20, 2),
    (10, 0.9, 4, 10, 0.3, 12, 2),
    (10, 0.9, 4, 30, 0.3, 40, 2),
    (5, 0.95, 4, 45, 0.4, 40, 2),
)
ALIKE_TASKS, ALIKE_POWERS, ALIKE_TAILS = (5, 10, 20, 50, 100), (1, 2, 3, 5), (0.05, 0.025)
MOST_ENUMERATED = 10_000
_WIDTH_COLUMNS = ("width, pass^k", "width, pass@k")


def tables(*, quick: bool = False) -> list[Table]:
    """Every table of this module; `quick` for a glance of some seconds."""
    makers = [
        (_grid, 200, 2000),
        (_search, 100, 1000),
        (_harsh, 100, 2000),
        (_unequal, 50, 2000),
        (_few_tasks, 50, 2000),
        (_sparse, 100, 2000),
        (_lopsided, 100, 2000),
        (_alike, 0, 0),
        (_few_alike, 0, 0),
        (_scores, 5, 400),
        (_one_proportion, 0, 0),
        (_model, 2, 100),
    ]
    return run_tables("coverage", makers, quick=quick)


def _grid(repetitions: int, *, quick: bool) -> list[Table]:
    """Every method over the grid of ordinary difficulties; bootstraps on fewer suites."""
    tasks, runs = ((10, 45), (5,)) if quick else (TASKS, RUNS)
    resampled = 0 if quick else min(100, repetitions // 10)
    rng = np.random.default_rng(SEED)
    designs = grid(DIFFICULTIES, tasks, runs)
    cells = list(
        cover(designs, powers=POWERS, repetitions=repetitions, rng=rng, resampled=resampled)
    )
    return [
        *(_by_method(cells, scope, repetitions, resampled) for scope in SCOPES),
        _by_difficulty(cells, repetitions),
        _lowest(cells, repetitions),
    ]


def summary(cells: Iterable[Covered]) -> tuple[float, float, int, float]:
    """Mean and worst coverage, cells below the floor, mean width."""
    found = list(cells)
    coverage = np.array([cell.coverage for cell in found])
    width = float(np.mean([cell.width for cell in found]))
    return float(coverage.mean()), float(coverage.min()), int((coverage < FLOOR).sum()), width


def _by_method(cells: list[Covered], scope: Scope, repetitions: int, resampled: int) -> Table:
    here = [cell for cell in cells if cell.scope == scope]
    methods = list(dict.fromkeys(cell.method for cell in here))
    own = summary(cell for cell in here if cell.method == "default")
    rows = []
    for method in methods:
        mean, worst, short, width = summary(c for c in here if c.method == method)
        rows.append((method, f"{mean:.3f}", f"{worst:.3f}", str(short), f"{width / own[3]:.2f}"))
    count = sum(cell.method == "default" for cell in here)
    finding = (
        f'Nominal 0.95, scope "{scope}", {count} cells: T in {_listed(TASKS)}, n in '
        f"{_listed(RUNS)}, k in {_listed(POWERS)}, {len(DIFFICULTIES)} difficulties, pass^k and "
        f"pass@k. The default covers {own[0]:.3f} on average and {own[1]:.3f} at worst. "
        f"Bootstraps: {resampled} repetitions a cell, so their worst is blurred by 0.03."
    )
    header = ("method", "mean", "worst", f"cells below {FLOOR}", "width / default's")
    return Table(f'Coverage for "{scope}"', header, rows, finding, repetitions, SEED)


def _by_difficulty(cells: list[Covered], repetitions: int) -> Table:
    own = [cell for cell in cells if cell.method == "default"]
    rows = []
    for difficulty in DIFFICULTIES:
        row = [difficulty.name]
        for scope in SCOPES:
            for metric in ("pass^k", "pass@k"):
                mean, worst, _, _ = summary(
                    c
                    for c in own
                    if c.scope == scope and c.metric == metric and c.design.difficulty is difficulty
                )
                row.append(f"{mean:.3f} / {worst:.3f}")
        rows.append(tuple(row))
    header = ("difficulty", *(f"{s}, {m}" for s in SCOPES for m in ("pass^k", "pass@k")))
    finding = "Mean / worst coverage of the defaults. pass^k includes k = 1: pass@1 is the same."
    return Table("The defaults, by difficulty", header, rows, finding, repetitions, SEED)


def _lowest(cells: list[Covered], repetitions: int) -> Table:
    own = [cell for cell in cells if cell.method == "default"]
    rows = []
    for scope in SCOPES:
        low = sorted((c for c in own if c.scope == scope), key=lambda c: c.coverage)[:8]
        rows += [(scope, str(c), f"{c.truth:.4f}", f"{c.coverage:.3f}") for c in low]
    error = monte_carlo_error(NOMINAL, repetitions)
    finding = f"The lowest cells of the defaults. One Monte Carlo standard error is {error:.3f}."
    return Table(
        "Where the defaults are tightest",
        ("scope", "cell", "truth", "coverage"),
        rows,
        finding,
        repetitions,
        SEED,
    )


def _search(repetitions: int, *, quick: bool) -> Table:
    """What was tried before the default for tasks like these was chosen."""
    tasks, runs = ((10, 45), (5,)) if quick else (TASKS, RUNS)
    rng = np.random.default_rng(SEED + 1)
    designs = grid(DIFFICULTIES, tasks, runs)
    found = list(
        cover(
            designs,
            powers=POWERS,
            repetitions=repetitions,
            rng=rng,
            formulas=CANDIDATES,
            scopes=(TASKS_LIKE_THESE,),
        )
    )
    plain = {m: _widths(found, next(iter(CANDIDATES)), m) for m in ("pass^k", "pass@k")}
    rows = []
    for name in CANDIDATES:
        mine = [cell for cell in found if cell.method == name]
        mean, worst, short, _ = summary(mine)
        below = sum(cell.coverage < 0.93 for cell in mine)
        ratios = [np.mean(_widths(found, name, m) / plain[m]) - 1 for m in plain]
        rows.append(
            (
                name,
                f"{mean:.3f}",
                f"{worst:.3f}",
                str(short),
                str(below),
                *(f"{r:+.1%}" for r in ratios),
            )
        )
    finding = (
        f'Scope "tasks like these", {len(found) // len(CANDIDATES)} cells. s2: sample variance of '
        "the per-task values; m2: their variance under the fitted beta prior. Guarded: the end "
        "near 0 or 1 no closer than half-way between Clopper-Pearson and Jeffreys. Widths are "
        f"against the first. {_verdict(found)}"
    )
    header = ("variance used", "mean", "worst", "cells < 0.90", "cells < 0.93", *_WIDTH_COLUMNS)
    return Table("The search for a default", header, rows, finding, repetitions, SEED)


def _verdict(found: list[Covered]) -> str:
    """Made from the figures, so that the page cannot claim anything else."""
    name = list(CANDIDATES)[-1]
    worst = min(cell.coverage for cell in found if cell.method == name)
    return f"The last is the default: its worst cell covers {worst:.3f}."


def _widths(cells: list[Covered], method: str, metric: str) -> np.ndarray:
    return np.array([c.width for c in cells if c.method == method and c.metric == metric])


def _harsh(repetitions: int, *, quick: bool) -> Table:
    rng = np.random.default_rng(SEED + 2)
    designs = grid(HARSH, (10, 20, 45) if quick else TASKS, (5,) if quick else (5, 20))
    found = list(cover(designs, powers=POWERS, repetitions=repetitions, rng=rng))
    rows = []
    for difficulty in HARSH:
        for scope in SCOPES:
            here = [c for c in found if c.design.difficulty is difficulty and c.scope == scope]
            row = [difficulty.name, scope]
            for method in ("default", "t"):
                mean, worst, _, _ = summary(c for c in here if c.method == method)
                row.append(f"{mean:.3f} / {worst:.3f}")
            own = [c for c in here if c.method == "default"]
            rows.append((*row, str(min(own, key=lambda c: c.coverage))))
    finding = (
        "Mean / worst coverage where the difficulty is nothing like a beta. A suite of ten tasks "
        "drawn from the third has none of the hard ones one time in five, and no interval of "
        'useful width can show that: "tasks like these" needs more tasks, not more runs.'
    )
    header = ("difficulty", "scope", "default", "t", "lowest cell of the default")
    return Table("Difficulties meant to break them", header, rows, finding, repetitions, SEED)


def _unequal(repetitions: int) -> Table:
    rng = np.random.default_rng(SEED + 3)
    designs = [
        Design(difficulty=d, runs=tuple(int(n) for n in np.resize(np.arange(3, 11), tasks)))
        for d in DIFFICULTIES
        for tasks in (16, 48, 200)
    ]
    found = list(cover(designs, powers=(1, 3), repetitions=repetitions, rng=rng))
    rows = []
    for scope in SCOPES:
        for tasks in (16, 48, 200):
            here = [
                c for c in found
                if c.scope == scope and c.design.tasks == tasks and c.method == "default"
            ]  # fmt: skip
            mean, worst, _, _ = summary(here)
            rows.append(
                (
                    scope,
                    str(tasks),
                    f"{mean:.3f}",
                    f"{worst:.3f}",
                    str(min(here, key=lambda c: c.coverage)),
                )
            )
    header = ("scope", "T", "mean", "worst", "lowest cell")
    finding = "The defaults with 3 to 10 runs, unequal from task to task; k = 1 and 3."
    return Table("Unequal numbers of runs", header, rows, finding, repetitions, SEED)


def _few_tasks(repetitions: int) -> Table:
    rng = np.random.default_rng(SEED + 4)
    rows = []
    for tasks in (2, 3, 4, 6):
        designs = grid(DIFFICULTIES, (tasks,), (5, 20))
        found = list(cover(designs, powers=POWERS, repetitions=repetitions, rng=rng))
        for scope in SCOPES:
            here = [c for c in found if c.scope == scope]
            row = [str(tasks), scope]
            for method in ("default", "t"):
                mean, worst, _, width = summary(c for c in here if c.method == method)
                row.append(f"{mean:.3f} / {worst:.3f} / {width:.2f}")
            rows.append(tuple(row))
    header = ("T", "scope", "default: mean / worst / width", "t: mean / worst / width")
    finding = "Below five tasks the interval for tasks like these is flagged as rough."
    return Table("Very few tasks", header, rows, finding, repetitions, SEED)


def _sparse(repetitions: int, *, quick: bool) -> Table:
    """One to three tasks carry pass^k, or what pass@k lacks to 1; the others hardly count."""
    rng = np.random.default_rng(SEED)
    named = [
        (f"{share} of {count} at {rate}", np.r_[(rate,) * share, np.zeros(count - share)], n, k)
        for share, count, rate, n, k in SPARSE
    ]
    named += [
        ("Beta(0.5, 3), 3 tasks", special.betaincinv(0.5, 3.0, (np.arange(3) + 0.5) / 3), 35, 5),
        ("0.3, 0.3, 0.95", np.array([0.3, 0.3, 0.95]), 50, 4),
        ("1 of 4 at 0.6, 3 at 0.05", np.array([0.6, 0.05, 0.05, 0.05]), 30, 5),
    ]
    found = [_sparse_cell(rates, n, k, repetitions, rng) for _, rates, n, k in named]
    rows = [
        (name, str(n), str(k), f"{truth:.5f}", *(f"{share:.3f}" for share in shares))
        for (name, _, n, k), (truth, *shares) in zip(named, found, strict=True)
    ]
    suites = [_drawn_sparse_suite(rng) for _ in range(20 if quick else 200)]
    found += [_sparse_cell(*suite, repetitions, rng) for suite in suites]
    _, covered, above, below = zip(*found, strict=True)
    worst = (f"{share:.3f}" for share in (min(covered), max(above), max(below)))
    rows.append((f"worst of these and {len(suites)} drawn at random", "", "", "", *worst))
    header = ("rates", "n", "k", "truth", "coverage", "interval above", "interval below")
    finding = (
        f"Nominal {NOMINAL}, pass^k of these tasks; pass@k of tasks at 1 minus these rates is the "
        "same. An interval reaches as far as the exact bound of each single task allows."
    )
    return Table("Suites that hang on a few tasks", header, rows, finding, repetitions, SEED)


def _lopsided(repetitions: int) -> Table:
    """Good tasks that ran far less often than poor ones, whose runs say little of them."""
    rng = np.random.default_rng(SEED + 6)
    rows = []
    for many, rate, runs, others, poor, more, k in LOPSIDED:
        rates, n = np.repeat((rate, poor), (many, others)), np.repeat((runs, more), (many, others))
        truth, *shares = _sparse_cell(rates, n, k, repetitions, rng)
        design = f"{many} at {rate} x {runs} runs, {others} at {poor} x {more}"
        rows.append((design, str(k), f"{truth:.3f}", *(f"{share:.3f}" for share in shares)))
    header = ("tasks", "k", "truth", "coverage", "interval above", "interval below")
    finding = (
        f"Nominal {NOMINAL}, pass^k of these tasks. Against a failure that nobody saw all passes "
        "count alike, and those of poor tasks that ran often say little of the good ones."
    )
    return Table(
        "Good tasks that ran less often than poor ones", header, rows, finding, repetitions, SEED
    )


def _alike(_repetitions: int) -> Table:
    """How often a lower end is beyond the truth that is worst for it, of tasks with one rate.

    Few failures are likeliest of equal tasks. At a mean at the end itself, so many failures or
    fewer have the chance of the binomial distribution of all trials together.
    """
    rows, suites, largest = [], 0, [0.0, 0.0]
    for k in ALIKE_POWERS:
        for runs in sorted({k, k + 1, 2 * k - 1, 2 * k, 2 * k + 2, 3 * k, 4 * k, 6 * k}):
            worst = [0.0, 0.0]
            for tasks in ALIKE_TASKS:
                for failures in range(1, min(8, tasks)):
                    counts = np.full(tasks, runs)
                    counts[:failures] -= 1
                    cells = count_cells(np.full(tasks, runs), counts)
                    suites += 1
                    for place, tail in enumerate(ALIKE_TAILS):
                        low = suite_bounds(cells, (k,), 1 - 2 * tail)[0][0]
                        rate = special.bdtr(failures, tasks * runs, 1 - low ** (1 / k))
                        worst[place] = max(worst[place], float(rate) if low > 0 else 0.0)
            largest = [max(pair) for pair in zip(largest, worst, strict=True)]
            rows.append((str(k), str(runs), *(f"{error:.3f}" for error in worst)))
    finding = (
        f"{suites} suites of 5 to 100 tasks of which one to seven failed once: how often a lower "
        "end is beyond the truth that is worst for it, in the worst of them, exactly. Largest: "
        f"{largest[0]:.3f} and {largest[1]:.3f}."
    )
    header = ("k", "trials of each task", "one-sided 0.05", "0.025")
    return Table("Tasks that are alike, with a few failures", header, rows, finding, 0, SEED)


def _few_alike(_repetitions: int) -> Table:
    """How often an end lies beyond the truth of few tasks with one rate, at the worst rate."""
    tail, rows, worst = ALIKE_TAILS[0], [], 0.0
    rates = np.linspace(0.01, 0.99, 197)
    designs = product((2, 3, 5, 7, 10), ((3, 2), (4, 2), (6, 2), (6, 3), (9, 3), (9, 5), (10, 5)))
    for tasks, (runs, k) in designs:
        if comb(tasks + runs, tasks) > MOST_ENUMERATED:
            continue
        # Every suite there may be, but for the order of its tasks.
        suites = np.array(list(combinations_with_replacement(range(runs + 1), tasks)))
        cells = tally_suites(np.full(tasks, float(runs)), suites)
        low, high = suite_bounds(cells, (k,), 1 - 2 * tail)
        tallies = (suites[..., None] == np.arange(runs + 1)).sum(axis=1)
        orders = np.exp(special.gammaln(tasks + 1) - special.gammaln(tallies + 1).sum(axis=1))
        log_chances = binom.logpmf(np.arange(runs + 1), runs, rates[:, None])
        chances = np.exp(log_chances @ tallies.T) * orders
        truths = rates[:, None] ** k
        errors = [
            (chances * beyond).sum(axis=1) for beyond in (low[:, 0] > truths, high[:, 0] < truths)
        ]
        worst = max(worst, *(error.max() for error in errors))
        cells_of_row = (f"{error.max():.3f} at {rates[error.argmax()]:.3g}" for error in errors)
        rows.append((str(tasks), str(k), str(runs), *cells_of_row))
    finding = (
        "Tasks with one rate: how often each end of a one-sided 0.05 lies beyond the truth, at the "
        f"rate where that is most often. Exact: all suites there may be. Largest: {worst:.3f}."
    )
    header = ("tasks", "k", "trials of each task", "lower end", "upper end")
    return Table("Few tasks that are alike", header, rows, finding, 0, SEED)


def _sparse_cell(
    rates: np.ndarray, n: int | np.ndarray, k: int, repetitions: int, rng: np.random.Generator
) -> tuple[float, float, float, float]:
    """The truth, the coverage, and how often the interval lies above and below the truth."""
    runs = np.broadcast_to(np.asarray(n), rates.shape)
    cells = tally_suites(runs.astype(float), rng.binomial(runs, rates, (repetitions, rates.size)))
    low, high = default_bounds(cells, k, THIS_SUITE, NOMINAL)
    truth = float((rates**k).mean())
    above, below = float((low > truth + 1e-12).mean()), float((high < truth - 1e-12).mean())
    return truth, 1 - above - below, above, below


def _drawn_sparse_suite(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, int]:
    """Rates, runs (unequal in three of ten) and k of a suite that hangs on one to three tasks."""
    tasks, k = int(rng.choice((2, 3, 5, 8, 12, 20))), int(rng.choice((1, 2, 3, 4, 5, 7)))
    rates = np.full(tasks, rng.choice((0.0, 0.0, 0.02, 0.05)))
    carrying = int(rng.integers(1, min(3, tasks) + 1))
    rates[:carrying] = rng.choice(np.arange(1, 9) / 10, carrying)
    most = max(int(rng.choice((2 * k, 3 * k, 4 * k + 1, 20, 35, 50))), 2 * k)
    least = 2 * k if rng.random() < 0.3 else most
    return rates, rng.integers(least, most + 1, tasks), k


def _scores(repetitions: int) -> Table:
    """Partial credit: a task's scores are beta around its mean."""
    rng = np.random.default_rng(SEED + 5)
    rows = []
    for tasks, runs, tightness in ((10, 5, 2.0), (30, 5, 2.0), (30, 10, 10.0), (100, 3, 0.5)):
        for scope in SCOPES:
            mean, width = _score_coverage(tasks, runs, tightness, scope, repetitions, rng)
            rows.append(
                (scope, str(tasks), str(runs), f"{tightness:g}", f"{mean:.3f}", f"{width:.3f}")
            )
    header = ("scope", "T", "n", "tightness", "coverage", "width")
    finding = (
        "score_estimate: task means from Beta(3, 1), scores from a beta around the mean whose "
        "a + b is the tightness (0: all or nothing)."
    )
    return Table("Partial credit", header, rows, finding, repetitions, SEED)


def _score_coverage(
    tasks: int,
    runs: int,
    tightness: float,
    scope: Scope,
    repetitions: int,
    rng: np.random.Generator,
) -> tuple[float, float]:
    inside, width = [], []
    n = np.full(tasks, runs)
    for _ in range(repetitions):
        means = np.clip(rng.beta(3, 1, tasks), 1e-3, 1 - 1e-3)[:, None]
        scores = rng.beta(means * tightness, (1 - means) * tightness, (tasks, runs))
        found = score_estimate(n, scores.sum(axis=1), (scores**2).sum(axis=1), scope=scope)
        assert isinstance(found, Estimate)
        assert found.interval is not None
        truth = float(means.mean()) if scope == THIS_SUITE else 0.75
        inside.append(truth in found.interval)
        width.append(found.interval.width)
    return float(np.mean(inside)), float(np.mean(width))


def _one_proportion(_repetitions: int) -> Table:
    """Exact: sums over every outcome, no simulation."""
    rates = np.linspace(0.005, 0.995, 397)
    rows = []
    for method in ("wilson", "clopper-pearson", "mid-p", "jeffreys", "agresti-coull", "wald"):
        row = [method]
        for n in (5, 20, 100):
            coverage, width = _exact_coverage(method, n, rates)
            row.append(f"{coverage.mean():.3f} / {coverage.min():.3f} / {width.mean():.3f}")
        rows.append(tuple(row))
    header = ("method", *(f"n = {n}: mean / worst / width" for n in (5, 20, 100)))
    finding = "One task, exactly: over 397 pass rates from 0.005 to 0.995."
    return Table("One proportion", header, rows, finding, 0, SEED)


def _exact_coverage(method: str, n: int, rates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    c = np.arange(n + 1)
    low, high = proportion_bounds(c, n, method=method)
    chance = special.comb(n, c) * rates[:, None] ** c * (1 - rates[:, None]) ** (n - c)
    inside = (low <= rates[:, None]) & (rates[:, None] <= high)
    return (chance * inside).sum(axis=1), chance @ (high - low)


def _model(repetitions: int) -> Table:
    """Where a model is trusted: extrapolated pass^k, and labels."""
    rng = np.random.default_rng(SEED + 6)
    rows = [
        _model_row(difficulty, tasks, repetitions, rng)
        for difficulty in (DIFFICULTIES[0], DIFFICULTIES[1], DIFFICULTIES[3], HARSH[0])
        for tasks in (20, 100)
    ]
    header = (
        "difficulty",
        "T",
        "pass^20 extrapolated from n = 5: coverage",
        "labels given (n = 10)",
        "of these right",
    )
    finding = (
        "The credible interval of extrapolate_pass_hat_k, and label_tasks at certainty 0.9. The "
        "last difficulty is no beta: extrapolation may fail there, as its note warns."
    )
    return Table("Model-based answers", header, rows, finding, repetitions, SEED)


def _model_row(
    difficulty: Difficulty, tasks: int, repetitions: int, rng: np.random.Generator
) -> tuple[str, ...]:
    inside, given, right = 0, 0, 0
    truth = difficulty.mean_power(20)
    for _ in range(repetitions):
        p = difficulty.draw((tasks,), rng)
        found = extrapolate_pass_hat_k(np.full(tasks, 5), rng.binomial(5, p), 20)
        assert isinstance(found, Estimate)
        assert found.interval is not None
        inside += truth in found.interval
        labels = label_tasks(np.full(tasks, 10), rng.binomial(10, p)).labels
        real = np.where(p < 0.1, "broken", np.where(p > 0.95, "solid", "flaky"))
        given += int((labels != UNDECIDED).sum())
        right += int((labels == real).sum())
    share = f"{given / (tasks * repetitions):.2f}"
    return (
        difficulty.name,
        str(tasks),
        f"{inside / repetitions:.3f}",
        share,
        f"{right / max(given, 1):.3f}",
    )


def _listed(numbers: tuple[int, ...]) -> str:
    return ", ".join(map(str, numbers))
