"""Runs that are not independent: what is seen, what intervals and gates still promise."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit, ndtr

from bench.calibrate.cells import run_tables
from bench.calibrate.table import Table
from passhat.analysis.reports.evidence import count_evidence
from passhat.analysis.reports.metrics import groupings_of, measure_metrics
from passhat.records import Trials
from passhat.stats.dependent_runs import _SIGMAS, BetweenDayVariance, find_bursts, round_tests
from passhat.stats.exact_tests import boschloo_greater, pass_tests
from passhat.stats.multiple_testing import (
    benjamini_hochberg,
    discrete_benjamini_hochberg,
    discrete_holm,
    holm,
)
from passhat.stats.trend import _OF_DAYS, TaskSeries, alarm_threshold, change_points

SEED = 20_261_115

Rates = np.ndarray


def tables(*, quick: bool = False) -> list[Table]:
    """Every table of this module; `quick` for a glance of some seconds."""
    makers = [
        (alarms, 20, 400),
        (coverage, 8, 160),
        (tasks, 4, 80),
        (days, 150, 3000),
        (few_tasks, 5, 100),
    ]
    return run_tables("dependence", makers, quick=quick, least=1)


def alarms(repetitions: int) -> Table:
    """How often rounds, drift or bursts are said to be out of order, calm and not."""
    rng = np.random.default_rng(SEED)
    worlds = {
        "calm, Beta(3, 1)": lambda p, n: np.tile(p[:, None], n),
        "calm, all at 0.97": lambda p, n: np.full((p.size, n), 0.97),
        "calm, all at 0.5": lambda p, n: np.full((p.size, n), 0.5),
        "one round of all fails": _one_round_fails,
        "rounds move, sd 0.3 logit": lambda p, n: _moved(p, rng.normal(0, 0.3, n)),
        "drift of 1 logit": lambda p, n: _moved(p, np.linspace(0.5, -0.5, n)),
    }
    rows = []
    for name, world in worlds.items():
        for size, runs in ((8, 4), (45, 4), (45, 8), (150, 8)):
            seen = [_seen(rng, world(rng.beta(3, 1, size), runs)) for _ in range(repetitions)]
            shares = np.mean(seen, axis=0)
            rows.append((name, f"{size} x {runs}", *(f"{share:.3f}" for share in shares)))
    calm = max(float(row[-1]) for row in rows if row[0].startswith("calm"))
    header = ("runs", "tasks x runs", "rounds", "drift", "burst", "any")
    finding = (
        "How often Cochran's Q over rounds (level 0.4%), a line over them (0.3%) and "
        "bursts of failures in start order (0.3%) say that runs were not independent. Stated: 1% "
        f"over all three where they are; worst here {calm:.3f}."
    )
    return Table(
        "Runs that are not independent: what is seen", header, rows, finding, repetitions, SEED
    )


def coverage(repetitions: int) -> Table:
    """Coverage of the mean over tasks where whole rounds move, with and without including it."""
    rng = np.random.default_rng(SEED)
    rows = []
    for name, size, runs, spread, outage in (
        ("calm", 45, 8, 0.0, 0.0),
        ("rounds move, sd 0.3 logit", 45, 8, 0.3, 0.0),
        ("rounds move, sd 0.3 logit", 150, 8, 0.3, 0.0),
        ("10% of rounds fail", 45, 8, 0.0, 0.1),
    ):
        held = np.array(
            [_covered(rng, size, runs, spread, outage) for _ in range(repetitions)]
        ).mean(axis=0)
        rows.append((name, f"{size} x {runs}", *(f"{share:.3f}" for share in held)))
    header = ("runs", "tasks x runs", "this suite", "included", "tasks like these", "included")
    finding = (
        "Coverage of the long-run pass rate at 95%, as if runs were independent, and as "
        "printed: where a disturbance was seen, with the spread between rounds. An outage that no "
        "round shows cannot be found: no interval includes what is not in the data."
    )
    return Table("Intervals where rounds move together", header, rows, finding, repetitions, SEED)


def tasks(repetitions: int) -> Table:
    """Which tasks changed: the share found, and how often what is found is wrong."""
    rng = np.random.default_rng(SEED)
    rows = []
    for name, size, runs, changed, old, new in (
        ("20% fall from 0.95 to 0.5", 45, 8, 9, 0.95, 0.5),
        ("20% fall from 0.95 to 0.5", 150, 8, 30, 0.95, 0.5),
        ("20% fall from 0.95 to 0.5", 150, 12, 30, 0.95, 0.5),
        ("one falls from 0.97 to 0.1", 45, 5, 1, 0.97, 0.1),
        ("one falls from 0.97 to 0.1", 150, 8, 1, 0.97, 0.1),
        ("none changes", 150, 8, 0, 0.7, 0.7),
    ):
        found = [_found(rng, size, runs, changed, old, new) for _ in range(repetitions)]
        means = np.mean(found, axis=0)
        cells = [f"{_share(power)} ({error:.3f})" for power, error in means]
        rows.append((name, f"{size} x {runs}", *cells))
    header = ("tasks", "tasks x runs", "Holm", "discrete Holm", "BH", "discrete BH")
    finding = (
        "Share of the changed tasks that is found and, in brackets, the chance of any "
        "false one (Holm) or the share of finds that is false (BH), at 0.05. Plain: Boschloo's "
        "test of each task; discrete: Fisher's, with the laws that its p-values have."
    )
    return Table("Which task changed", header, rows, finding, repetitions, SEED)


def days(repetitions: int) -> Table:
    """Change points where the agent moves from day to day, and where it drops.

    The rule of `change_points`, for many histories at once: the normal law is taken in place of the
    exact test, which it agrees with on 180 runs a point.
    """
    rng = np.random.default_rng(SEED + 2)
    line = _OF_DAYS * alarm_threshold(0.05, 100)
    rows = []
    for spread in (0.0, 0.1, 0.2, 0.3):
        parts = [min(_AT_ONCE, repetitions - i) for i in range(0, repetitions, _AT_ONCE)]
        calm, fallen = (
            np.concatenate(
                [_first_alarms(_day_means(rng, part, points, spread, drop), line) for part in parts]
            )
            for points, drop in ((100, None), (45, 30))
        )
        delays = fallen[fallen >= 30] - 29
        rows.append(
            (
                f"{spread:g}",
                f"{np.mean(calm < 100):.3f}",
                f"{np.median(delays):g}",
                f"{np.mean(delays <= 3):.2f}",
            )
        )
    header = ("sd between days, logit", "any alarm", "median delay", "found within 3")
    finding = (
        "45 tasks, 4 runs each at every point. Any alarm over 100 calm points (stated: 5%), and "
        "how many points after a drop of one logit at point 30 it is found, without the histories "
        "that had an alarm before. The p-values of the pass rate are from a normal law."
    )
    return Table("Trends where days differ", header, rows, finding, repetitions, SEED + 2)


_AT_ONCE = 500
"""Histories held in memory together."""

_DayMeans = tuple[Rates, Rates]
"""The pass rate of each point of each history, and the mean p (1 - p) of each history."""


def _day_means(
    rng: np.random.Generator, histories: int, points: int, spread: float, drop: int | None = None
) -> _DayMeans:
    base = logit(np.clip(rng.beta(3, 1, (histories, 1, 45)), 0.02, 0.98))
    day = rng.normal(0, spread, (histories, points, 1))
    if drop is not None:
        day[:, drop:] -= 1
    passes = rng.binomial(4, expit(base + day))
    rate = passes[:, :drop].mean(axis=1) / 4
    return passes.mean(axis=2) / 4, (rate * (1 - rate)).mean(axis=1)


def _first_alarms(given: _DayMeans, line: float) -> Rates:
    """The first point of each history at which an alarm is raised; 1,000 where none is."""
    means, slope = given
    noise = slope / (4 * 45)
    variance = noise[:, None] + (_SIGMAS * slope[:, None]) ** 2
    centred = means - means[:, :1]
    sums, squares = (
        np.concatenate((np.zeros((len(means), 1)), np.cumsum(x, axis=1)), axis=1)
        for x in (centred, centred**2)
    )
    first = np.full(len(means), 1000)
    for newest in range(1, means.shape[1]):
        for width in (1 << i for i in range(newest.bit_length())):
            old = newest + 1 - width
            gap = (sums[:, newest + 1] - sums[:, old]) / width
            gap -= sums[:, old] / old
            days = 1 / width + 1 / old
            near = (2 * ndtr(-np.abs(gap) / np.sqrt(noise * days)) <= line) & (first > newest)
            at = np.flatnonzero(near)
            weights = _day_weights(sums[at, old], squares[at, old], old, variance[at])
            tails = 2 * ndtr(-np.abs(gap[at])[:, None] / np.sqrt(variance[at] * days))
            first[at[(weights * tails).sum(axis=1) <= line]] = newest
    return first


def _day_weights(sums: Rates, squares: Rates, old: int, variance: Rates) -> Rates:
    """`BetweenDayVariance.after` the first `old` points, for many histories."""
    logs = np.broadcast_to(BetweenDayVariance.unknown().log_weights, variance.shape)
    if old > 1:
        apart = (squares - sums**2 / old)[:, None] / variance
        logs = logs - 0.5 * (old * np.log(variance) + np.log(old / variance) + apart)
    found = np.exp(logs - logs.max(axis=1, keepdims=True, initial=-np.inf))
    return found / found.sum(axis=1, keepdims=True)


def few_tasks(repetitions: int) -> Table:
    """Change points of pass^5 on three tasks: false ones, falls found, and their intervals."""
    rng = np.random.default_rng(SEED + 1)
    rows = []
    for spread in (0.0, 0.1, 0.2, 0.3):
        false, at_once, placed, held, named = 0, 0, 0, 0, 0
        for _ in range(repetitions):
            calm = _few(rng, logit(np.full(20, 0.84)), spread)
            false += bool(change_points(calm).points)
            rates = np.where(np.arange(7) < 3, 0.84, 0.28)
            found = change_points(_few(rng, logit(rates), spread)).points
            at_once += any(one.alarm == 3 for one in found)
            if found:
                named += 1
                placed += found[0].position == 3 and len(found) == 1
                held += 0.28**5 - 0.84**5 in found[0].interval
        shares = (false, at_once, placed, held)
        of = (repetitions, repetitions, max(1, named), max(1, named))
        rows.append((f"{spread:g}", *(f"{x / y:.3f}" for x, y in zip(shares, of, strict=True))))
    header = (
        *("sd between days, logit", "any alarm in 20 calm points", "fall found at once"),
        *("alone and in its place", "interval holds the fall"),
    )
    finding = (
        "pass^5 of 3 tasks, 20 runs of each at every point. Calm at 0.84 (stated: 5% over 100 "
        "points); a fall from 0.84 to 0.28 at the fourth of seven points: how often the first one "
        "after it shows it, how often it is the only change named and in its place, and how often "
        "its 95% interval holds the true size (-41.6 points)."
    )
    return Table("Trends of few tasks", header, rows, finding, repetitions, SEED + 1)


def _few(rng: np.random.Generator, base: Rates, spread: float) -> TaskSeries:
    """Three tasks of one rate, which every point moves together."""
    rates = expit(base + rng.normal(0, spread, base.size))
    passes = rng.binomial(20, rates[:, None], size=(base.size, 3))
    return TaskSeries(np.full((base.size, 3), 20), passes, k=5)


def _share(power: float) -> str:
    return "-" if np.isnan(power) else f"{power:.3f}"


def _moved(p: Rates, shift: Rates) -> Rates:
    return expit(logit(np.clip(p, 0.01, 0.99))[:, None] + shift)


def _one_round_fails(p: Rates, n: int) -> Rates:
    rates = np.tile(p[:, None], n)
    rates[:, n // 2] = 0.0
    return rates


def _seen(rng: np.random.Generator, rates: Rates) -> tuple[bool, bool, bool, bool]:
    table = (rng.random(rates.shape) < rates).astype(float)
    found = round_tests(table)
    task = np.tile(np.arange(rates.shape[0]), rates.shape[1])
    burst = bool(find_bursts(task, table.T.ravel()))
    spread, drift = found.spread_p < 0.004, found.drift_p < 0.003
    return spread, drift, burst, spread or drift or burst


def _covered(
    rng: np.random.Generator, size: int, runs: int, spread: float, outage: float
) -> tuple[bool, bool, bool, bool]:
    p = rng.beta(3, 1, size)
    rates = _moved(p, rng.normal(0, spread, runs))
    rates[:, rng.random(runs) < outage] = 0.0
    table = rng.random(rates.shape) < rates
    nodes = rng.normal(0, spread, 400)
    here = float(_moved(p, nodes).mean()) * (1 - outage)
    there = float(_moved(rng.beta(3, 1, 4000), nodes).mean()) * (1 - outage)
    rows, columns = np.indices(table.shape)
    trials = Trials.from_columns(
        task=[str(i) for i in rows.ravel()], trial=columns.ravel(), passed=table.ravel()
    )
    evidence = count_evidence(trials.tally())
    differ = round_tests(table.astype(float)).differ
    together = groupings_of(trials, "fail", disturbed=bool(differ))
    plain = measure_metrics(evidence, (1,), confidence=0.95)["pass^1"]
    wide = measure_metrics(evidence, (1,), confidence=0.95, groupings=together)["pass^1"]
    return (
        here in plain.this_suite.interval,
        here in wide.this_suite.interval,
        there in plain.tasks_like_these.interval,
        there in wide.tasks_like_these.interval,
    )


def _found(
    rng: np.random.Generator, size: int, runs: int, changed: int, old: float, new: float
) -> list[tuple[float, float]]:
    rates = np.full(size, old)
    after = rates.copy()
    after[:changed] = new
    a, b, n = rng.binomial(runs, after), rng.binomial(runs, rates), np.full(size, runs)
    plain = np.minimum(
        1, 2 * np.minimum(boschloo_greater(n, a, n, b), boschloo_greater(n, b, n, a))
    )
    p, laws = pass_tests(n, a, n, b)
    adjusted = holm(plain), discrete_holm(p, laws), benjamini_hochberg(plain)
    scores = []
    for j, values in enumerate((*adjusted, discrete_benjamini_hochberg(p, laws))):
        hit = values <= 0.05
        power = float(hit[:changed].mean()) if changed else float("nan")
        false = int(hit[changed:].sum())
        error = float(false > 0) if j < 2 else false / max(1, int(hit.sum()))
        scores.append((power, error))
    return scores
