"""The front page of the dashboard: how often an unchanged agent is red, how soon a fall is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.calibrate.cells import run_cells
from bench.calibrate.table import Table
from passhat.analysis.comparing.trends import (
    FALSE_ALARM,
    HORIZON,
    MONTH,
    TASKS_FALSE_ALARM,
    CountedRun,
    judge_agents,
)
from passhat.arguments import HEADLINE_K
from passhat.records import Tally
from passhat.stats.arguments import Counts, Floats
from passhat.stats.dependent_runs import BetweenDayVariance
from passhat.stats.trend import (
    _OF_DAYS,
    TaskSeries,
    _first_alarm,
    alarm_threshold,
    noticeable_fall,
    task_fall,
)

SEED = 20_261_117
DAYS = MONTH
SIZES = ((12, 5), (20, 6), (50, 5), (50, 10), (100, 10))
WATCHED = 3
"""Days after a fall that are looked at."""
SPREADS, SPREAD = (0.0, 0.2), 0.1
"""Standard deviation between days, on the logit scale: of unchanged agents, of those that fall."""


@dataclass(frozen=True, slots=True)
class Fall:
    """What happens to a fifth of the tasks, drawn at random from those that passed above it."""

    words: str
    points: float


FALLS = (Fall("by 20 points each", 0.2), Fall("to nothing: 16 points overall", 1.0))


def tables(*, quick: bool = False) -> list[Table]:
    sizes = SIZES[:1] if quick else SIZES
    calm = [
        (tasks, trials, spread, 2 if quick else 100 if tasks < 50 else 50)
        for tasks, trials in sizes
        for spread in SPREADS
    ]
    falls = [
        (*size, fall.points, before, 2 if quick else 40)
        for fall, own in zip(FALLS, (sizes, sizes[:2]), strict=True)
        for size in own
        for before in (5, DAYS)
    ]
    noticed = [(*size, before, 2 if quick else 40) for size in sizes for before in (5, DAYS)]
    if quick:
        reds, seen = [_calm(*one) for one in calm], [_falls(*one) for one in falls]
        said = [_noticed(*one) for one in noticed]
    else:
        reds, seen = run_cells("overview", _calm, calm), run_cells("overview", _falls, falls)
        said = run_cells("overview", _noticed, noticed)
    return [_calm_table(calm, reds), _falls_table(falls, seen), _noticed_table(noticed, said)]


def _calm(tasks: int, trials: int, spread: float, histories: int) -> tuple[int, int]:
    """How many unchanged agents were ever red, of how many: thrice as many if it were over 5%."""
    rng = np.random.default_rng([SEED, tasks, trials, round(100 * spread)])

    def red(count: int) -> int:
        drawn = (simulate(rng, tasks, trials, DAYS, spread=spread) for _ in range(count))
        return sum(ever_red(passed, trials) for passed in drawn)

    first = red(histories)
    if first <= 0.05 * histories:
        return first, histories
    return first + red(2 * histories), 3 * histories


def _falls(tasks: int, trials: int, points: float, before: int, histories: int) -> list[float]:
    """How often a fall is red by each day, and by day two with the best test that can be made."""
    rng = np.random.default_rng([SEED, tasks, trials, round(100 * points), before])
    fall, red = Fall("", points), np.zeros(WATCHED)
    for _ in range(histories):
        passed = simulate(
            rng, tasks, trials, before + WATCHED, spread=SPREAD, fall=fall, day=before
        )
        red += np.logical_or.accumulate(reddened(passed, trials, since=before))
    return [*(red / histories).tolist(), _told_the_rates(rng, tasks, trials, fall, 50 * histories)]


def _noticed(tasks: int, trials: int, before: int, histories: int) -> list[float]:
    """The fall that is said to be likely seen in two days, smallest and largest, and how often."""
    rng = np.random.default_rng([SEED, tasks, trials, before])
    said, red = [], 0
    for _ in range(histories):
        rates = np.tile(rng.beta(4, 1, tasks), (before + 2, 1))
        calm = _passes(rng, rates[:before], trials)
        fall = noticeable_fall(TaskSeries(np.full_like(calm, trials), calm))
        assert fall is not None
        points = 1.0 if fall.rate is None else fall.rate
        able = np.flatnonzero(rates[0] >= min(points, 0.9))
        fell = rng.choice(able, size=min(fall.tasks, able.size), replace=False)
        rates[before:, fell] = np.maximum(rates[before:, fell] - points, 0)
        said.append(points)
        after = _passes(rng, rates[before:], trials)
        red += any(reddened(np.vstack((calm, after)), trials, since=before))
    return [min(said), max(said), red / histories]


def _noticed_table(cells: Sequence[tuple[Any, ...]], said: Sequence[Sequence[float]]) -> Table:
    return Table(
        title="Overview: the fall that it says it would likely see",
        header=("tasks x trials a day", "days before", "points said", "red by day two"),
        rows=[
            (f"{tasks} x {trials}", str(before), f"{100 * low:.0f} to {100 * high:.0f}",
             f"{seen:.2f}")
            for (tasks, trials, before, _), (low, high, seen) in zip(cells, said, strict=True)
        ],
        finding="In each history a fifth of the tasks falls by as much as the front page said the "
        "day before; 0.8 is meant by likely. Falls are said in steps of ten points, rounded up.",
        repetitions=cells[0][-1],
        seed=SEED,
    )  # fmt: skip


def _calm_table(cells: Sequence[tuple[Any, ...]], reds: Sequence[tuple[int, int]]) -> Table:
    red, histories = (sum(counts) for counts in zip(*reds, strict=True))
    return Table(
        title="Overview: unchanged agents that were ever red",
        header=("tasks x trials a day", "sd between days, logit", f"red on any of {DAYS} days"),
        rows=[
            (f"{tasks} x {trials}", f"{spread:g}", f"{own} of {drawn}")
            for (tasks, trials, spread, _), (own, drawn) in zip(cells, reds, strict=True)
        ],
        finding="The agent does not change; its rates are Beta(4, 1), and every day is judged as "
        f"the front page judges it. At most 5% may be red on any of {DAYS} days: {red} of "
        f"{histories} were here. Where more than 5% of the first histories were, twice as many "
        "were drawn besides.",
        repetitions=histories,
        seed=SEED,
    )


def _falls_table(cells: Sequence[tuple[Any, ...]], seen: Sequence[Sequence[float]]) -> Table:
    words = {fall.points: fall.words for fall in FALLS}
    return Table(
        title="Overview: a fall in a fifth of the tasks",
        header=(
            "tasks x trials a day",
            "they fall",
            "days before",
            "red on day one",
            "by day two",
            "by day three",
            "by day two, told every rate",
        ),
        rows=[
            (f"{tasks} x {trials}", words[points], str(before), *(f"{x:.2f}" for x in shares))
            for (tasks, trials, points, before, _), shares in zip(cells, seen, strict=True)
        ],
        finding="Days differ by 0.1 on the logit scale. The last column is a bound for any number "
        "of days before: the likelihood ratio of a test that knows the rate of every task, that a "
        "fifth of them fall and by how much, but not which, at the same chance of an error. 20 "
        "points of a fifth of the tasks are 4 points of the suite; the pass rate of 20 tasks x 6 "
        "trials has a standard error of 3.6 points.",
        repetitions=cells[0][-1],
        seed=SEED,
    )


def _told_the_rates(
    rng: np.random.Generator, tasks: int, trials: int, fall: Fall, histories: int
) -> float:
    """How often the best test that knows all rates and the fall sees it by the second day.

    Each task fell with a chance of a fifth. It looks at the newest day and at the newest two, each
    with half the chance of an error.
    """
    seen = 0
    suites = 10
    each = histories // suites
    for _ in range(suites):
        rates = rng.beta(4, 1, tasks)
        able = rates >= min(fall.points, 0.5)
        lower = np.where(able, np.maximum(rates - fall.points, 1e-9), rates)
        gain, loss = np.log(lower / rates), np.log((1 - lower) / (1 - rates))

        def evidence(
            passed: Counts, trials: int, gain: Floats = gain, loss: Floats = loss
        ) -> Floats:
            ratio = passed * gain + (trials - passed) * loss
            return np.asarray(np.logaddexp(np.log(0.8), np.log(0.2) + ratio).sum(axis=-1))

        calm = _passes(rng, np.tile(rates, (20_000, 2, 1)), trials)
        after = np.tile(rates, (each, 2, 1))
        for history in after:
            fallen = rng.choice(np.flatnonzero(able), size=tasks // 5, replace=False)
            history[:, fallen] = lower[fallen]
        fell = _passes(rng, after, trials)
        level = 1 - TASKS_FALSE_ALARM / MONTH / 2
        line = np.quantile(evidence(calm[:, 0], trials), level)
        of_two = np.quantile(evidence(calm.sum(axis=1), 2 * trials), level)
        seen += (
            (evidence(fell, trials) > line).any(axis=1)
            | (evidence(fell.sum(axis=1), 2 * trials) > of_two)
        ).sum()
    return float(seen) / (each * suites)


def _passes(rng: np.random.Generator, rates: Floats, trials: int, spread: float = SPREAD) -> Counts:
    """Passes of each history, day and task; `spread` is how far days differ, in logits."""
    inner = np.clip(rates, 1e-9, 1 - 1e-9)
    moved = np.log(inner / (1 - inner)) + spread * rng.standard_normal((*rates.shape[:-1], 1))
    return np.asarray(rng.binomial(trials, 1 / (1 + np.exp(-moved))))


def simulate(
    rng: np.random.Generator,
    tasks: int,
    trials: int,
    days: int,
    *,
    spread: float = 0.0,
    fall: Fall | None = None,
    day: int = 0,
) -> Counts:
    """Passes of each task (columns) on each day (rows); a fall begins on `day`."""
    rates = np.tile(rng.beta(4, 1, tasks), (days, 1))
    if fall is not None:
        lower = np.maximum(rates[0] - fall.points, 0.0)
        able = np.flatnonzero(rates[0] >= min(fall.points, 0.5))
        fallen = rng.choice(able, size=tasks // 5, replace=False)
        rates[day:, fallen] = lower[fallen]
    return _passes(rng, rates, trials, spread)


def reddened(passed: Counts, trials: int, *, since: int = 0) -> list[bool]:
    """Whether the front page is red, day by day, from the day `since` on."""
    history = [_run(place, row, trials) for place, row in enumerate(passed)]
    return [judge_agents(history[: day + 1])[0].fell for day in range(since, len(history))]


def ever_red(passed: Counts, trials: int) -> bool:
    """Whether the front page is red on any day.

    An alarm of the mean depends on no later day. Where the whole history has none, no day had one,
    and the tests of single tasks are left.
    """
    series = TaskSeries(np.full_like(passed, trials), passed, k=HEADLINE_K)
    line = alarm_threshold(FALSE_ALARM, HORIZON) * _OF_DAYS
    if _first_alarm(series, 0, 0, line, BetweenDayVariance.unknown()) is not None:
        return any(reddened(passed, trials))
    days = (TaskSeries(series.n[:day], series.c[:day]) for day in range(2, len(series) + 1))
    return any(task_fall(day, false_alarm=TASKS_FALSE_ALARM, horizon=MONTH) for day in days)


def _run(place: int, passed: Floats | Counts, trials: int) -> CountedRun:
    nothing, scores = np.zeros(passed.size, dtype=np.int64), passed.astype(np.float64)
    tally = Tally(
        system="agent",
        tasks=tuple(f"task-{i}" for i in range(passed.size)),
        passed=passed,
        failed=trials - passed,
        errored=nothing,
        score_total=scores,
        score_squares=scores,
        features={},
        sources=(),
    )
    day = f"2026-{1 + place // 28:02}-{1 + place % 28:02}"
    return CountedRun(key=f"{place:08x}", label=f"{place}", started=day, tallies=[tally])
