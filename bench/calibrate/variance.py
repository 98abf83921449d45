"""Coverage of the ICC interval, the decay band and the seeded mean, and the power of plans."""

from __future__ import annotations

from itertools import product

import numpy as np
from scipy import special

from bench.calibrate.cells import run_tables
from bench.calibrate.table import Table
from passhat.stats.arguments import Floats
from passhat.stats.decay import DecayCurve, cascade, decay_curve
from passhat.stats.dependent_runs import SeedVariance, seed_variance
from passhat.stats.estimate import TASKS_LIKE_THESE, THIS_SUITE, Estimate, Interval, Scope
from passhat.stats.probability_calibration import Calibration, calibration
from passhat.stats.proportions import wilson_bounds
from passhat.stats.sample_size import difference_power
from passhat.stats.variance import WIDENED_F, icc

SEED = 20261115
NOMINAL = 0.95

# Difficulty: even, skewed, nearly solved, all or nothing, alike.
SHAPES = ((1.0, 1.0), (3.0, 1.0), (8.0, 1.0), (0.3, 0.3), (4.0, 4.0))


def tables(*, quick: bool = False) -> list[Table]:
    """Every table of this module; `quick` for a glance of some seconds."""
    makers = [
        (_icc_coverage, 100, 1000),
        (_decay_coverage, 20, 300),
        (_seed_coverage, 100, 1000),
        (_chain_coverage, 200, 4000),
        (_planned_power, 500, 10_000),
        (_calibration_coverage, 50, 1000),
    ]
    return run_tables("variance", makers, quick=quick)


def _icc_coverage(repetitions: int) -> Table:
    rng = np.random.default_rng(SEED)
    rows, covered = [], {method: [] for method in (WIDENED_F, "F")}
    for tasks, runs, shape in product((10, 20, 50, 200), (2, 5, 10), SHAPES):
        share = 1 / (1 + sum(shape))
        passes = rng.binomial(runs, rng.beta(*shape, (repetitions, tasks)))
        cells, widths = [], []
        for method in (WIDENED_F, "F"):
            answers = [icc([runs] * tasks, c, method=method) for c in passes]
            found = _intervals(answers)
            covered[method].append(_share(share, found))
            cells.append(_percent(covered[method][-1]))
            widths.append(f"{np.mean([bounds.width for bounds in found]):.3f}")
        rows.append((str(tasks), str(runs), _beta(shape), f"{share:.3f}", *cells, *widths))
    wide, plain = covered[WIDENED_F], covered["F"]
    return Table(
        title="ICC(1): coverage of its interval on pass/fail runs",
        header=("tasks", "runs", "difficulty", "ICC", "default", "F", "width", "width of F"),
        rows=rows,
        finding=(
            f"Default (F, widened by a jackknife over tasks): mean {np.mean(wide):.3f}, worst "
            f"{min(wide):.3f}. F alone: mean {np.mean(plain):.3f}, worst {min(plain):.3f}. Suites "
            "in which no task or no run varied have no interval and are not counted."
        ),
        repetitions=repetitions,
        seed=SEED,
    )


def _decay_coverage(repetitions: int) -> Table:
    rng = np.random.default_rng(SEED + 1)
    rows, shares = [], []
    designs = product(((20, 5), (50, 10), (200, 8)), SHAPES[:4], (5,))
    for (tasks, runs), shape, longest in designs:
        for scope in (TASKS_LIKE_THESE, THIS_SUITE):
            joint, points, width = _curves_held(
                rng, repetitions, tasks, runs, shape, longest, scope
            )
            shares.append(joint)
            rows.append(
                (
                    scope,
                    str(tasks),
                    str(runs),
                    _beta(shape),
                    _percent(joint),
                    _percent(points),
                    width,
                )
            )
    return Table(
        title="Decay curve pass^1 .. pass^5: the band holds the whole curve",
        header=("scope", "tasks", "runs", "difficulty", "joint", "worst point", "mean width"),
        rows=rows,
        finding=f"Joint coverage: mean {np.mean(shares):.3f}, worst {min(shares):.3f}.",
        repetitions=repetitions,
        seed=SEED + 1,
    )


def _curves_held(
    rng: np.random.Generator,
    repetitions: int,
    tasks: int,
    runs: int,
    shape: tuple[float, float],
    longest: int,
    scope: Scope,
) -> tuple[float, float, str]:
    k = np.arange(1, longest + 1)
    population = np.exp(special.betaln(shape[0] + k, shape[1]) - special.betaln(*shape))
    held, widths = [], []
    for _ in range(repetitions):
        rates = rng.beta(*shape, tasks)
        truth = population if scope == TASKS_LIKE_THESE else (rates[:, None] ** k).mean(axis=0)
        passes = rng.binomial(runs, rates)
        curve = decay_curve([runs] * tasks, passes, k=longest, scope=scope)
        assert isinstance(curve, DecayCurve)
        band = [bounds for bounds in curve.band if bounds is not None]
        held.append([value in bounds for value, bounds in zip(truth, band, strict=True)])
        widths.append(np.mean([bounds.width for bounds in band]))
    inside = np.array(held)
    return (
        float(inside.all(axis=1).mean()),
        float(inside.mean(axis=0).min()),
        f"{np.mean(widths):.3f}",
    )


def _seed_coverage(repetitions: int) -> Table:
    rng = np.random.default_rng(SEED + 2)
    rows = []
    for tasks, seeds, spread in product((50, 100, 200), (5, 10), (0.0, 0.4)):
        many = 1_000_000
        truth = special.expit(
            1 + 1.5 * rng.normal(size=many) + spread * rng.normal(size=many)
        ).mean()
        allowed, ordinary = [], []
        for _ in range(repetitions):
            effect = 1.5 * rng.normal(size=tasks) + spread * rng.normal(size=(seeds, 1))
            scores = (rng.random((seeds, tasks)) < special.expit(1 + effect)).astype(float)
            seed, task = np.indices(scores.shape)
            answer = seed_variance(seed, task, scores)
            assert isinstance(answer, SeedVariance)
            assert answer.mean.interval is not None
            allowed.append(truth in answer.mean.interval)
            ordinary.append(truth in _ordinary(scores.mean(axis=0)))
        rows.append(
            (
                str(tasks),
                str(seeds),
                str(spread),
                _percent(np.mean(allowed)),
                _percent(np.mean(ordinary)),
            )
        )
    return Table(
        title="Suite mean under a suite-wide effect of the seed",
        header=(
            "tasks",
            "seeds",
            "sd of the effect (logit)",
            "task and seed variance",
            "task only",
        ),
        rows=rows,
        finding=(
            "An interval that knows only tasks misses the mean over seeds far too often; the one "
            "with both variances holds it, at some width where there is no effect."
        ),
        repetitions=repetitions,
        seed=SEED + 2,
    )


def _chain_coverage(repetitions: int) -> Table:
    rng = np.random.default_rng(SEED + 3)
    chains = (
        ((0.95,) * 5, (20,) * 5),
        ((0.98,) * 10, (20,) * 10),
        ((0.9,) * 3, (50,) * 3),
        ((0.7,) * 4, (10,) * 4),
        ((0.999,) * 20, (30,) * 20),
        ((0.99, 0.5), (10, 1000)),
        ((0.9, 0.95, 0.99), (10, 30, 100)),
    )
    rows, shares = [], []
    for rates, runs in chains:
        passes = rng.binomial(runs, rates, (repetitions, len(runs)))
        found = [cascade(list(zip(c.tolist(), runs, strict=True))).reliability for c in passes]
        truth = float(np.prod(rates))
        shares.append(_share(truth, _intervals(found)))
        rows.append(
            (str(len(rates)), _brief(rates), _brief(runs), f"{truth:.3f}", _percent(shares[-1]))
        )
    return Table(
        title="Chains of steps: coverage of the product's interval",
        header=("steps", "rates", "runs", "reliability", "coverage"),
        rows=rows,
        finding=f"Mean {np.mean(shares):.3f}, worst {min(shares):.3f}.",
        repetitions=repetitions,
        seed=SEED + 3,
    )


def _planned_power(repetitions: int) -> Table:
    rng = np.random.default_rng(SEED + 4)
    rows = []
    for tasks, runs, spread, shift in product((20, 100), (2, 5), (0.0, 0.1), (0.0, 0.05, 0.1)):
        planned = _power_of_design(tasks, runs, spread, shift)
        base = rng.uniform(0.25, 0.65, (repetitions, tasks))
        other = np.clip(base + shift + spread * rng.choice((-1, 1), base.shape), 0, 1)
        gaps = (rng.binomial(runs, other) - rng.binomial(runs, base)) / runs
        t = gaps.mean(axis=1) / (gaps.std(axis=1, ddof=1) / np.sqrt(tasks))
        seen = np.mean(np.abs(t) > special.stdtrit(tasks - 1, 0.975))
        rows.append(
            (str(tasks), str(runs), str(spread), str(shift), _percent(planned), _percent(seen))
        )
    return Table(
        title="Planned power of a paired comparison, against simulation",
        header=("tasks", "runs", "sd of true differences", "difference", "planned", "simulated"),
        rows=rows,
        finding="Planned is what the plan promises; without a difference, the nominal error.",
        repetitions=repetitions,
        seed=SEED + 4,
    )


def _power_of_design(tasks: int, runs: int, spread: float, shift: float) -> float:
    """The plan for rates uniform on [0.25, 0.65] and differences of shift +- spread."""
    if shift == 0:
        return 1 - NOMINAL
    base = np.linspace(0.25, 0.65, 2001)
    others = np.stack((base + shift - spread, base + shift + spread))
    luck = (np.mean(base * (1 - base)) + np.mean(others * (1 - others))) / 2
    # Var(true difference) = 2 V rho (1 - r): with r = 0 that fixes rho for this V.
    skill = spread**2 / 2
    variance = luck + skill
    return difference_power(
        shift, tasks=tasks, runs=runs, variance=min(0.25, variance), icc=skill / variance
    )


def _calibration_coverage(repetitions: int) -> Table:
    rng = np.random.default_rng(SEED + 5)
    rows = []
    marks = np.linspace(0.05, 0.75, 8)
    for runs, bias in product((80, 400, 2000), (0.0, 0.05, 0.2)):
        truth = marks + bias
        score = float(np.mean((marks - truth) ** 2 + truth * (1 - truth)))
        answers = []
        for _ in range(repetitions):
            stated = rng.choice(marks, runs)
            answers.append(calibration(stated, rng.random(runs) < stated + bias))
        found = [answer for answer in answers if isinstance(answer, Calibration)]
        brier = _share(score, _intervals([answer.brier for answer in found]))
        error = _share(bias, _intervals([answer.ece for answer in found]))
        width = np.mean([bounds.width for bounds in _intervals([answer.ece for answer in found])])
        rows.append((str(runs), str(bias), _percent(brier), _percent(error), f"{width:.3f}"))
    return Table(
        title="Stated probabilities: coverage of the Brier score and the ECE",
        header=("runs", "true ECE", "Brier", "ECE", "width of ECE"),
        rows=rows,
        finding="The ECE is biased upward, so its interval reaches further down than up.",
        repetitions=repetitions,
        seed=SEED + 5,
    )


def _intervals(answers: list[object]) -> list[Interval]:
    kept = (answer.interval for answer in answers if isinstance(answer, Estimate))
    return [bounds for bounds in kept if bounds is not None]


def _share(truth: float, found: list[Interval]) -> float:
    # A bound that meets the truth exactly may differ from it by rounding.
    return float(np.mean([b.low - 1e-12 <= truth <= b.high + 1e-12 for b in found]))


def _ordinary(task_means: Floats) -> Interval:
    mean, variance = task_means.mean(), task_means.var(ddof=1) / task_means.size
    quantile = float(special.stdtrit(task_means.size - 1, (1 + NOMINAL) / 2))
    low, high = wilson_bounds(mean, mean * (1 - mean) / variance, quantile)
    return Interval(float(low), float(high))


def _percent(share: float) -> str:
    return f"{share:.3f}"


def _beta(shape: tuple[float, float]) -> str:
    return f"Beta({shape[0]:g}, {shape[1]:g})"


def _brief(values: tuple[float, ...]) -> str:
    return f"{values[0]:g} each" if len(set(values)) == 1 else ", ".join(f"{v:g}" for v in values)
