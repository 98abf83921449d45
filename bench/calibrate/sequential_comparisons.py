"""Systems side by side until the answer is known, against designs of fixed size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import expit
from scipy.stats import norm

from bench.calibrate.cells import run_cells
from bench.calibrate.table import Table
from passhat.stats.arguments import Counts, Floats
from passhat.stats.sequential import BestOf, ComparisonGate, EquivalenceGate, ScoreGate
from passhat.stats.sequential.suite_gate import simulated_ends

SEED = 20_261_117
TASKS = 50
PLANNED = 0.1
TRUTHS = (0.0, 0.05, 0.1, 0.2)
MOST_PAIRS = 3000


def tables(*, quick: bool = False) -> list[Table]:
    repetitions = (10, 3, 2) if quick else (1000, 300, 100)
    return [_gates(repetitions[0]), _two_sided(repetitions[1]), _best(repetitions[2])]


def fixed_pairs(power: float, *, alpha: float, variance: float, gap: float = PLANNED) -> float:
    """Pairs of a fixed paired design with one-sided error `alpha`."""
    return float((norm.ppf(1 - alpha) + norm.ppf(power)) ** 2 * variance / gap**2)


def fixed_equivalence_pairs(power: float, *, alpha: float, variance: float) -> float:
    """Pairs of two one-sided tests of fixed size for systems that are equal (Schuirmann 1987)."""
    return fixed_pairs((1 + power) / 2, alpha=alpha, variance=variance)


def wald_bound(power: float, alpha: float) -> float:
    """Wald's (1947) least expected size at the planned difference, over the fixed one."""
    beta = 1 - power
    information = power * np.log(power / alpha) + beta * np.log(beta / (1 - alpha))
    return float(2 * information / (norm.ppf(1 - alpha) + norm.ppf(power)) ** 2)


def group_sequential(true: float, power: float, rng: np.random.Generator) -> float:
    """Expected size over the fixed one of five looks with O'Brien and Fleming's (1979) bounds."""
    looks = np.arange(1, 6) / 5
    bounds = 2.040 * np.sqrt(1 / looks)  # their constant for five looks at 0.05, two-sided
    drift = (norm.ppf(0.975) + norm.ppf(power)) * true / PLANNED
    inflation = 1.026  # of the fixed size: Jennison and Turnbull (2000), table 2.4
    steps = rng.normal(drift * np.sqrt(inflation) / 5, np.sqrt(1 / 5), (40_000, 5))
    stopped = np.abs(np.cumsum(steps, axis=1) / np.sqrt(looks)) >= bounds
    first = np.where(stopped.any(axis=1), stopped.argmax(axis=1), 4)
    return float(inflation * looks[first].mean())


def _gates(repetitions: int) -> Table:
    """`better_than` and `equivalent_to`, run by run."""
    given = [(kind, true, repetitions) for kind in ("better", "equivalent") for true in TRUTHS]
    found = dict(zip(given, run_cells("sequential", gate_cell, given), strict=True))
    rows = []
    for kind, title in (
        ("better", "better_than main"),
        ("equivalent", "equivalent_to main by 0.1"),
    ):
        for true in TRUTHS:
            one = found[kind, true, repetitions]
            rows.append(
                (
                    title,
                    f"{true:g}",
                    f"{one['PASS']:.3f} / {one['FAIL']:.3f}",
                    f"{one['pairs']:.0f}",
                    f"{one['over 90']:.2f}",
                    f"{one['over 95']:.2f}",
                    f"{one['over equal']:.2f}" if _is_planned(kind, true) else "-",
                )
            )
    wald = ", ".join(f"{wald_bound(p, 0.05):.2f} at {p:.0%}" for p in (0.8, 0.9, 0.95))
    return Table(
        title="Two systems pair by pair: the gates of a run",
        header=_GATE_HEADER,
        rows=rows,
        finding="alpha = beta = 0.05 one-sided, as the demands have it; 50 tasks, planned "
        "difference and margin 0.1. Mean pairs over those of the fixed paired design with that "
        "power (for equivalence: two one-sided tests of equal systems), and with the power that "
        "the gate itself has where it is planned to PASS. By Wald's bound no test "
        f"can need less at the planned difference than {wald} power. One Monte Carlo standard "
        "error of a mean is 2%.",
        repetitions=repetitions,
        seed=SEED,
    )


_GATE_HEADER = (
    *("demand", "true difference", "PASS / FAIL", "pairs"),
    *("over fixed, 90%", "95%", "equal power"),
)


def _is_planned(kind: str, true: float) -> bool:
    """Whether a gate is planned to PASS at this difference."""
    return true == (PLANNED if kind == "better" else 0.0)


def gate_cell(kind: str, true: float, repetitions: int) -> dict[str, float]:
    rng = np.random.default_rng([SEED, len(kind), round(1000 * true)])
    first, second = two_systems(true, repetitions, rng)
    terms = {"tasks": TASKS, "mu0": 0.0, "mu1": PLANNED, "max_runs": MOST_PAIRS}
    better = kind == "better"
    gate = ScoreGate(low=-1, high=1, **terms) if better else EquivalenceGate(**terms)

    def results(rng: np.random.Generator, alive: Counts, task: Counts) -> tuple[Floats, int]:
        one = rng.random(alive.size) < first[alive, task]
        other = rng.random(alive.size) < second[alive, task]
        return (1.0 + one - other) / 2, 1

    ends = simulated_ends(gate, results, repetitions, rng)
    size = fixed_pairs if better else fixed_equivalence_pairs
    over = {p: ends.draws / size(p, alpha=0.05, variance=1) for p in (0.9, 0.95)}
    variance = run_variance(first, second)
    power = min(max(ends.share(1), 0.5), 1 - 1 / (2 * repetitions))
    return {
        "over equal": float((ends.draws / variance).mean() / size(power, alpha=0.05, variance=1)),
        "PASS": ends.share(1),
        "FAIL": ends.share(0),
        "pairs": float(ends.draws.mean()),
        "over 90": float((over[0.9] / variance).mean()),
        "over 95": float((over[0.95] / variance).mean()),
    }


def _two_sided(repetitions: int) -> Table:
    """`ComparisonGate`: better, worse or equivalent, against designs of equal power."""
    found = run_cells("sequential", comparison_cell, [(true, repetitions) for true in TRUTHS])
    rng = np.random.default_rng(SEED)
    rows = []
    for true, one in zip(TRUTHS, found, strict=True):
        power = min(max(one["better"], 0.5), 1 - 1 / (2 * repetitions))
        equal = one["sizes"] / fixed_pairs(power, alpha=0.025, variance=1)
        if true == 0:
            right = min(one["equivalent"], 1 - 1 / (2 * repetitions))
            equal = one["sizes"] / fixed_equivalence_pairs(right, alpha=0.05, variance=1)
        rows.append(
            (
                f"{true:g}",
                f"{one['better']:.3f} / {one['worse']:.3f} / {one['equivalent']:.3f}",
                f"{one['sizes'] / fixed_pairs(0.9, alpha=0.025, variance=1):.2f}",
                f"{one['sizes'] / fixed_pairs(0.95, alpha=0.025, variance=1):.2f}",
                f"{equal:.2f}" if true in (0.0, PLANNED) else "-",
                f"{group_sequential(true, 0.9, rng):.2f}",
                f"{group_sequential(true, 0.95, rng):.2f}",
            )
        )
    wald = ", ".join(f"{wald_bound(p, 0.025):.2f} at {p:.0%}" for p in (0.8, 0.9, 0.95, 0.98))
    return Table(
        title="Two systems side by side until one is better, or they are equivalent",
        header=(
            "true difference",
            "better / worse / equivalent",
            "pairs over fixed, 90%",
            "95%",
            "over fixed of equal power",
            "O'Brien-Fleming, 5 looks, 90%",
            "95%",
        ),
        rows=rows,
        finding="ComparisonGate, alpha 0.05 two-sided, planned difference and margin 0.1, 50 "
        "tasks, looked at after every pair. Mean pairs over the fixed paired design that has this "
        "power at the planned difference; at 0.1 also over the one with the power that the gate "
        "has there, at 0 over two one-sided tests with its share of equivalent. Wald's bound at "
        f"the planned difference is {wald} power: 0.55 is out of reach at 90%. One Monte Carlo "
        f"standard error of a mean is {60 / np.sqrt(repetitions):.0f}%.",
        repetitions=repetitions,
        seed=SEED,
    )


def comparison_cell(true: float, repetitions: int) -> dict[str, float]:
    """Shares of findings, and mean pairs in units of the variance of a pair of runs."""
    rng = np.random.default_rng([SEED, 7, round(1000 * true)])
    first, second = two_systems(true, repetitions, rng)
    sizes, findings = [], []
    for seed in range(repetitions):
        gate = ComparisonGate(tasks=TASKS, difference=PLANNED, margin=PLANNED, seed=seed)
        state = gate.start()
        while state.finding is None and state.pairs < MOST_PAIRS:
            task = gate.task(state.pairs)
            passed = rng.random(2) < (first[seed, task], second[seed, task])
            state = gate.observe(state, float(passed[0]) - float(passed[1]))
        sizes.append(state.pairs)
        findings.append(state.finding)
    words = ("better", "worse", "equivalent")
    shares = {word: findings.count(word) / repetitions for word in words}
    return {**shares, "sizes": float((np.array(sizes) / run_variance(first, second)).mean())}


def _best(repetitions: int) -> Table:
    worlds = {
        "the best leads by 0.1": (0.1, 0.0, 0.0, 0.0),
        "the best leads by 0.2": (0.2, 0.0, 0.0, 0.0),
        "one hopeless, the others equal": (0.1, 0.1, 0.1, -0.2),
        "all equal": (0.0, 0.0, 0.0, 0.0),
        "all behind one by little more than the difference": (0.0, -0.11, -0.11, -0.11),
    }
    given = [(leads, repetitions) for leads in worlds.values()]
    rows = []
    for name, one in zip(worlds, run_cells("sequential", best_cell, given), strict=True):
        rows.append((name, *(f"{one[key]:{form}}" for key, form in _BEST_COLUMNS)))
    return Table(
        title="The best of four systems",
        header=(
            *("systems", "a best one called best", "another called best", "the best dropped"),
            *("runs", "over fixed"),
        ),
        rows=rows,
        finding="BestOf, difference 0.1, alpha 0.05, 50 tasks. A best one is one that no other "
        "beats by the difference; another may be called best 1 time in 20, by dropping the best "
        "and by the call together. Runs of all systems together, over those of a fixed design that "
        "runs all four until the best of them is chosen with 95% (Bechhofer 1954).",
        repetitions=repetitions,
        seed=SEED,
    )


_BEST_COLUMNS = (
    *(("right", ".3f"), ("wrong", ".3f"), ("dropped", ".3f")),
    *(("runs", ".0f"), ("over", ".2f")),
)


def best_cell(leads: Sequence[float], repetitions: int) -> dict[str, float]:
    rng = np.random.default_rng([SEED, 9, *(round(100 * (1 + lead)) for lead in leads)])
    right = wrong = dropped = 0
    runs, over = [], []
    best = [j for j, lead in enumerate(leads) if lead == max(leads)]
    close = [j for j, lead in enumerate(leads) if lead > max(leads) - PLANNED + 1e-9]
    for seed in range(repetitions):
        base = rng.normal(0.5, 1.3, TASKS)
        rates = np.array([shifted(base, lead) for lead in leads])
        gate = BestOf(systems=len(leads), tasks=TASKS, difference=PLANNED, seed=seed)
        state = gate.start()
        while state.best is None and state.draws < MOST_PAIRS:
            task = gate.task(state.draws)
            passed = rng.random(len(leads)) < rates[:, task]
            state = gate.observe(state, {j: float(passed[j]) for j in state.left})
        right += state.best in close
        wrong += state.best is not None and state.best not in close
        dropped += all(j in state.dropped for j in best)
        runs.append(state.runs)
        # Bechhofer's constant for four systems and a chance of 0.95 is 2.9162
        each = 2.9162**2 * float((rates * (1 - rates)).mean()) / PLANNED**2
        over.append(state.runs / (len(leads) * each))
    return {
        "right": right / repetitions,
        "wrong": wrong / repetitions,
        "dropped": dropped / repetitions,
        "runs": float(np.mean(runs)),
        "over": float(np.mean(over)),
    }


def two_systems(true: float, repetitions: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Rates of two systems, suite by suite, whose means differ by `true` exactly."""
    base = rng.normal(0.5, 1.3, (repetitions, TASKS))
    return np.array([shifted(row, true) for row in base]), expit(base)


def shifted(base: Floats, lead: float) -> Floats:
    """Rates moved together on the logit scale to a mean that is `lead` higher."""
    shifts = np.linspace(-4, 4, 161)
    gaps = np.array([(expit(base + s) - expit(base)).mean() for s in shifts])
    return np.asarray(expit(base + float(np.interp(lead, gaps, shifts))))


def run_variance(first: Floats, second: Floats) -> Floats:
    """The variance of a pair's difference within tasks, of each repetition."""
    return np.asarray((first * (1 - first) + second * (1 - second)).mean(axis=1))
