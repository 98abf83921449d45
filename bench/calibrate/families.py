"""Coverage where tasks come in families, or a few of them are hard, and that of other methods."""

from __future__ import annotations

import numpy as np

from bench.calibrate.cells import run_tables
from bench.calibrate.simulated_suites import Difficulty
from bench.calibrate.table import Table
from passhat.stats.arguments import Counts, Floats
from passhat.stats.beta_binomial import prior_weights
from passhat.stats.estimate import Estimate, Interval
from passhat.stats.paired import PairedDifference, paired_difference
from passhat.stats.special import stdtrit
from passhat.stats.sufficient_statistics import TaskSums, count_cells
from passhat.stats.suite_mean import suite_estimate

SEED = 20261115
RUNS = 4
STRUCTURES = {
    "10 x 20": (20,) * 10,
    "30 x 5": (5,) * 30,
    "30 x 2": (2,) * 30,
    "36 unequal": tuple(1 + i % 12 for i in range(36)),
}
SPREADS = (0.0, 0.7, 1.5)
RARE = tuple(
    Difficulty(
        f"{share:.0%} of the tasks at 0.02, the rest at 0.98",
        rates=(0.98, 0.02),
        shares=(1 - share, share),
    )
    for share in (0.05, 0.1, 0.3)
)
POINT = (Difficulty("all at 0.97", rates=(0.97,), shares=(1.0,)),)


def tables(*, quick: bool = False) -> list[Table]:
    """Families, equal systems on families, and rare hard tasks."""
    makers = [(maker, 40, 300) for maker in (_families, _equal_systems, _rare)]
    return run_tables("families", makers, quick=quick)


def _families(repetitions: int) -> Table:
    rng = np.random.default_rng(SEED)
    rows = []
    for name, sizes in STRUCTURES.items():
        for spread in SPREADS:
            counted = _cover_families(sizes, spread, repetitions, rng)
            rows.append((name, f"{spread:g}", *(f"{c:.3f} / {w:.3f}" for c, w in counted)))
    worst = min(float(row[2].split(" / ")[0]) for row in rows)
    header = ("families x tasks", "sd, logit", "families", "tasks", "clustered t (Miller 2024)")
    finding = (
        "Coverage / mean width for tasks like these at a nominal 0.95; four runs a task, mean rate "
        "about 0.75; families differ by a normal effect on the logit scale, tasks in them by 0.5. "
        f"With families the worst cell covers {worst:.3f}; treating every task as its own draw, "
        "or a normal interval with clustered errors, covers less."
    )
    return Table(
        title="Families of tasks",
        header=header,
        rows=rows,
        finding=finding,
        repetitions=repetitions,
        seed=SEED,
    )


def _cover_families(
    sizes: tuple[int, ...], spread: float, repetitions: int, rng: np.random.Generator
) -> list[tuple[float, float]]:
    family = np.repeat(np.arange(len(sizes)), sizes)
    n = np.full(family.size, RUNS)
    truth = float(_logistic(1.2 + rng.normal(0, np.hypot(spread, 0.5), 400_000)).mean())
    inside, width = np.zeros(3), np.zeros(3)
    for _ in range(repetitions):
        c = _draw(family, spread, rng)
        found = (
            _interval(suite_estimate(n, c, scope="tasks like these", family=family)),
            _interval(suite_estimate(n, c, scope="tasks like these")),
            _clustered(c / RUNS, family),
        )
        inside += [truth in one for one in found]
        width += [one.width for one in found]
    ends = zip(inside / repetitions, width / repetitions, strict=True)
    return [(float(covered), float(wide)) for covered, wide in ends]


def _equal_systems(repetitions: int) -> Table:
    rng = np.random.default_rng(SEED + 1)
    rows = []
    for name, sizes in STRUCTURES.items():
        family = np.repeat(np.arange(len(sizes)), sizes)
        n = np.full(family.size, RUNS)
        wrong = np.zeros(2)
        for _ in range(repetitions):
            a, b = (TaskSums.of_passes(n, _draw(family, 0.7, rng)) for _ in range(2))
            for place, labels in enumerate((family, None)):
                found = paired_difference(a, b, scope="tasks like these", family=labels)
                assert isinstance(found, PairedDifference)
                wrong[place] += found.answer in ("better", "worse")
        rows.append((name, *(f"{share:.3f}" for share in wrong / repetitions)))
    finding = (
        "How often two systems that are equal on families like these are called different, where "
        "each family suits one or the other by chance (0.7 on the logit scale)."
    )
    return Table(
        title="Equal systems on families",
        header=("families x tasks", "with families", "without"),
        rows=rows,
        finding=finding,
        repetitions=repetitions,
        seed=SEED + 1,
    )


def _rare(repetitions: int, *, quick: bool) -> Table:
    rng = np.random.default_rng(SEED + 2)
    rows = []
    for difficulty in (*RARE, *POINT):
        for tasks in (5, 12, 45) if not quick else (12,):
            for runs in (4, 32):
                counted = _cover_rare(difficulty, tasks, runs, repetitions, rng)
                shown = (f"{c:.3f} / {w:.3f}" for c, w in counted)
                rows.append((difficulty.name, str(tasks), str(runs), *shown))
    worst = [min(float(row[column].split(" / ")[0]) for row in rows) for column in (3, 4)]
    finding = (
        "Coverage / mean width of pass^1 at a nominal 0.95. A suite of a few tasks often holds "
        "none of the rare hard ones, and more runs do not show them. Worst of the defaults: "
        f"{worst[0]:.3f} for tasks like these, {worst[1]:.3f} for this suite. The posterior is a "
        "hierarchical beta-binomial, as Bowyer, Aitchison and Ivanova (2025) use it."
    )
    header = (
        *("difficulty", "T", "n", "tasks like these", "this suite"),
        *("t over tasks (Miller 2024)", "hierarchical posterior"),
    )
    return Table(
        title="Rare hard tasks",
        header=header,
        rows=rows,
        finding=finding,
        repetitions=repetitions,
        seed=SEED + 2,
    )


def _cover_rare(
    difficulty: Difficulty, tasks: int, runs: int, repetitions: int, rng: np.random.Generator
) -> list[tuple[float, float]]:
    n = np.full(tasks, runs)
    truth = difficulty.mean_power(1)
    inside, width = np.zeros(4), np.zeros(4)
    for _ in range(repetitions):
        rates = difficulty.draw((tasks,), rng)
        c = rng.binomial(runs, rates)
        found = (
            _interval(suite_estimate(n, c, scope="tasks like these")),
            _interval(suite_estimate(n, c)),
            _clustered(c / runs, np.arange(tasks)),
            _posterior(n, c),
        )
        aims = (truth, float(rates.mean()), truth, truth)
        inside += [aim in one for aim, one in zip(aims, found, strict=True)]
        width += [one.width for one in found]
    ends = zip(inside / repetitions, width / repetitions, strict=True)
    return [(float(covered), float(wide)) for covered, wide in ends]


def _draw(family: Counts, spread: float, rng: np.random.Generator) -> Counts:
    shift = rng.normal(0, spread, int(family.max()) + 1)[family]
    rates = _logistic(1.2 + shift + rng.normal(0, 0.5, family.size))
    return rng.binomial(RUNS, rates)


def _logistic(values: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-values)))


def _clustered(values: Floats, family: Counts) -> Interval:
    """The mean plus and minus t clustered standard errors (Miller 2024, with t for z)."""
    mean, clusters = float(values.mean()), int(family.max()) + 1
    sums = np.bincount(family, values - mean)
    error = float(np.sqrt((sums**2).sum() * clusters / (clusters - 1))) / values.size
    reach = float(stdtrit(clusters - 1, 0.975)) * error
    return Interval(mean - reach, mean + reach)


def _posterior(n: Counts, c: Counts) -> Interval:
    priors = prior_weights(count_cells(n, c))
    return priors.interval(priors.a / (priors.a + priors.b), 0.95)


def _interval(found: object) -> Interval:
    assert isinstance(found, Estimate)
    assert found.interval is not None
    return found.interval
