"""`passhat watch`: false alarms against the promise, and how soon a drop is found."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bench.calibrate.table import Table
from passhat.journeys.watching import FALSE_ALARMS, Watch
from passhat.records import Trials
from passhat.stats.arguments import Floats
from passhat.stats.sequential.detection import EDetector

SEED = 20_261_117
RATE = 0.88
PER_DAY = 2_000
FAMILIES = ("refund", "search", "mail", "order", "chat")
TASKS = [f"{family}-{i}" for family in FAMILIES for i in range(8)]
WORLDS = ("nothing", "cycles", "bursts", "both")
PROMISES = (1.0, FALSE_ALARMS)
EVERY = 2_000 / FALSE_ALARMS

Stream = tuple[Floats, NDArray[np.bool_], NDArray[np.int64]]
"""The time, the outcome and the task of each trial."""


def tables(*, quick: bool = False) -> list[Table]:
    rng = np.random.default_rng(SEED)
    return [_false_alarms(rng, 40_000 if quick else 1_000_000), _delays(rng, 20 if quick else 300)]


def _false_alarms(rng: np.random.Generator, trials: int) -> Table:
    rows, judged = [], 0
    for world in WORLDS:
        cells = []
        for promise in PROMISES:
            alarms = seen = 0
            while seen < trials:
                found, after = watched(stream(rng, world), promise)
                alarms, seen = alarms + found, seen + after
            judged += seen
            cells.append(f"{1000 * alarms / seen:.3f}")
        rows.append((world, *cells))
    return Table(
        title="Watch: false alarms in 1,000 trials",
        header=("what moves the trials", *(f"promised {promise:g}" for promise in PROMISES)),
        rows=rows,
        finding=f"At least {trials:,} trials in each cell ({judged:,} in all) of an agent that "
        f"never changes, after a reference of 7 days; {PER_DAY:,} a day, five families, "
        f"{100 * RATE:.0f}% pass. Cycles: 6 points up and down with the hour, 5 points less at "
        "weekends. Bursts: one trial in fifty is repeated up to 60 "
        "times within its minute, with the same outcome. Alarms of the agent and of its families "
        "are counted together.",
        repetitions=judged,
        seed=SEED,
    )


def watched(made: Stream, promise: float) -> tuple[int, int]:
    """The alarms on a stream, and the trials after its reference."""
    at, passed, task = made
    watch, alarms, learnt = Watch(false_alarms=promise), 0, 0
    for start in range(0, len(at), 5_000):
        part = slice(start, start + 5_000)
        table = Trials.from_columns(
            task=[TASKS[i] for i in task[part].tolist()],
            passed=passed[part].tolist(),
            started=[f"{moment:.1f}" for moment in at[part].tolist()],
        )
        for event in watch.observe(table):
            learnt = event.trials or 0 if event.kind == "watching" else learnt
            alarms += event.kind == "alarm"
    return alarms, len(at) - learnt


def stream(rng: np.random.Generator, world: str, trials: int = 40_000) -> Stream:
    """Trials of an agent that never changes."""
    at = 1.7e9 + np.cumsum(rng.exponential(86_400 / PER_DAY, trials))
    rate = np.full(trials, RATE)
    if world in ("cycles", "both"):
        weekend = (at // 86_400 + 3) % 7 >= 5
        rate = RATE + 0.06 * np.sin(2 * np.pi * at / 86_400) - 0.05 * weekend
    passed = rng.random(trials) < rate
    task = rng.integers(0, len(TASKS), trials)
    if world in ("bursts", "both"):
        repeats = np.where(rng.random(trials) < 0.02, rng.integers(2, 60, trials), 1)
        first = np.repeat(np.cumsum(repeats) - repeats, repeats)
        row = np.repeat(np.arange(trials), repeats)
        at = at[row] + 0.5 * (np.arange(len(row)) - first)
        order = np.argsort(at, kind="stable")
        at, passed, task = at[order], passed[row][order], task[row][order]
    return at, passed, task


def _delays(rng: np.random.Generator, repetitions: int) -> Table:
    """Trials from a drop to its alarm, with the usual rate known."""
    rows, usual = [], 0.9
    for rate in (0.8, 0.7, 0.5, 0.2):
        ours, cusum = [], []
        threshold = _threshold(rng, usual, rate)
        for _ in range(repetitions):
            values = np.concatenate([rng.random(200) < usual, rng.random(4_000) < rate])
            ours.append(_alarm(values.astype(float).tolist(), usual))
            cusum.append(_cusum(values, usual, rate, threshold))
        rows.append((
            f"{100 * usual:.0f}% to {100 * rate:.0f}%", f"{np.mean(ours):.0f}",
            f"{np.mean(cusum):.0f}", f"{np.mean(ours) / np.mean(cusum):.2f}",
        ))  # fmt: skip
    return Table(
        title="Watch: trials from a drop to its alarm",
        header=("drop", "watch", "CUSUM that knows the drop", "ratio"),
        rows=rows,
        finding=f"Mean delays at one false alarm in {EVERY:,.0f} trials of a stream, the usual "
        "rate known. The CUSUM is told the rate after the drop too, which makes it the optimum "
        "(Moustakides 1986); its threshold is simulated so that it has as many false alarms.",
        repetitions=repetitions,
        seed=SEED,
    )


def _alarm(values: list[float], usual: float) -> int:
    detector = EDetector(every=EVERY)
    for place, value in enumerate(values):
        if detector.update(value, floor=usual):
            if place >= 200:
                return place - 199
            detector.restart()
    return len(values) - 200


def _threshold(rng: np.random.Generator, usual: float, rate: float) -> float:
    """The threshold at which a CUSUM has one false alarm in EVERY trials, by simulation."""
    chains, length = 2_000, 4_000
    passed = rng.random((length, chains)) < usual
    steps = np.where(passed, math.log(rate / usual), math.log((1 - rate) / (1 - usual)))
    low, high = 1.0, math.log(EVERY)
    for _ in range(9):
        middle, total, alarms = (low + high) / 2, np.zeros(chains), 0
        for step in steps:
            total = np.maximum(total, 0.0) + step
            over = total >= middle
            alarms += int(over.sum())
            total[over] = 0.0
        low, high = (middle, high) if alarms * EVERY > chains * length else (low, middle)
    return (low + high) / 2


def _cusum(values: NDArray[np.bool_], usual: float, rate: float, threshold: float) -> int:
    steps = np.where(values, math.log(rate / usual), math.log((1 - rate) / (1 - usual)))
    total = 0.0
    for place, step in enumerate(steps.tolist()):
        total = max(0.0, total) + step
        if total >= threshold:
            if place >= 200:
                return place - 199
            total = 0.0
    return len(values) - 200
