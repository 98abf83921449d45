"""The front page of the dashboard: how often an unchanged agent is red, how soon a fall is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench.calibrate.table import Table
from passhat.analysis.comparing.trends import FALSE_ALARM, HORIZON, CountedRun, judge_agents
from passhat.arguments import HEADLINE_K
from passhat.records import Tally
from passhat.stats.arguments import Counts, Floats
from passhat.stats.dependent_runs import BetweenDayVariance
from passhat.stats.trend import _OF_DAYS, TaskSeries, _first_alarm, alarm_threshold, task_fall

SEED = 20_261_117
DAYS = 30
SIZES = ((20, 6), (50, 10), (50, 5), (100, 5), (100, 10), (100, 20))
SPREADS, SPREAD = (0.0, 0.2), 0.1
"""Standard deviation between days, on the logit scale: of unchanged agents, of those that fall."""


@dataclass(frozen=True, slots=True)
class Fall:
    """What happens to a fifth of the tasks, drawn at random from those that passed above it."""

    words: str
    points: float


FALLS = (Fall("by 20 points each", 0.2), Fall("to nothing: 16 points overall", 1.0))


def tables(*, quick: bool = False) -> list[Table]:
    rng = np.random.default_rng(SEED)
    return [_calm(rng, 4 if quick else 100), _falls(rng, 4 if quick else 30)]


def _calm(rng: np.random.Generator, histories: int) -> Table:
    rows = []
    for tasks, trials in SIZES[:1] if histories < 10 else SIZES[:2]:
        for spread in SPREADS:
            red = sum(
                ever_red(simulate(rng, tasks, trials, DAYS, spread=spread), trials)
                for _ in range(histories)
            )
            rows.append((f"{tasks} x {trials}", f"{spread:g}", f"{red} of {histories}"))
    return Table(
        title="Overview: unchanged agents that were ever red",
        header=("tasks x trials a day", "sd between days, logit", f"red on any of {DAYS} days"),
        rows=rows,
        finding="The agent does not change; its rates are Beta(4, 1), and every day is judged as "
        "the front page judges it. At most 5% may ever be red in a hundred runs.",
        repetitions=histories,
        seed=SEED,
    )


def _falls(rng: np.random.Generator, histories: int) -> Table:
    rows = []
    for tasks, trials in SIZES[:1] if histories < 10 else SIZES:
        for fall in FALLS:
            told = _told_the_tasks(rng, tasks, trials, fall, 20 * histories)
            for before in (5, DAYS):
                found = np.zeros(2)
                for _ in range(histories):
                    passed = simulate(
                        rng, tasks, trials, before + 2, spread=SPREAD, fall=fall, day=before
                    )
                    (first,) = reddened(passed[:-1], trials, since=before)
                    found += first, first or any(reddened(passed, trials, since=before + 1))
                shares = (f"{share:.2f}" for share in (*(found / histories), told))
                rows.append((f"{tasks} x {trials}", fall.words, str(before), *shares))
    return Table(
        title="Overview: a fall in a fifth of the tasks",
        header=(
            "tasks x trials a day",
            "they fall",
            "days before",
            "red at once",
            "by day two",
            "by day two, told the tasks",
        ),
        rows=rows,
        finding="Days differ by 0.1 on the logit scale. The last column is a bound: the likelihood "
        "ratio of a test that is told which tasks fell, by how much, and every rate before, at the "
        "same chance of 5% in 100 runs. 20 points of one task are 4 points of the suite, and 20 "
        "tasks x 6 trials have a standard error of 3.6 points. A fall of 20 points in a fifth of "
        "the tasks is red by the second day, nine times in ten, from about 100 tasks x 10 trials a "
        "day on where 30 days are known.",
        repetitions=histories,
        seed=SEED,
    )


def _told_the_tasks(
    rng: np.random.Generator, tasks: int, trials: int, fall: Fall, histories: int
) -> float:
    """How often the best test that knows tasks, rates and fall sees it by the second day.

    It looks at the newest day and at the newest two, each with half the chance of an error.
    """
    seen = 0
    suites = 20
    for _ in range(suites):
        rates = rng.beta(4, 1, tasks)
        before = rng.choice(rates[rates >= min(fall.points, 0.5)], size=tasks // 5, replace=False)
        after = np.maximum(before - fall.points, 1e-9)
        odds = np.log(before / (1 - before)) - np.log(after / (1 - after))

        def evidence(rate: Floats, days: int, draws: int, odds: Floats = odds) -> Floats:
            logit = np.log(rate / (1 - rate)) + SPREAD * rng.standard_normal((draws, days, 1))
            return np.asarray(-(rng.binomial(trials, 1 / (1 + np.exp(-logit))) @ odds))

        calm = evidence(before, 2, 20_000)
        level = 1 - FALSE_ALARM / HORIZON / 2
        lines = [np.quantile(calm[:, 0], level), np.quantile(calm.sum(axis=1), level)]
        fallen = evidence(after, 2, histories // suites)
        seen += ((fallen > lines[0]).any(axis=1) | (fallen.sum(axis=1) > lines[1])).sum()
    return float(seen) / (histories // suites * suites)


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
    inner = np.clip(rates, 1e-9, 1 - 1e-9)
    moved = np.log(inner / (1 - inner)) + spread * rng.standard_normal((days, 1))
    return np.asarray(rng.binomial(trials, 1 / (1 + np.exp(-moved))))


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
    return any(task_fall(day, false_alarm=FALSE_ALARM / 2, horizon=HORIZON) for day in days)


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
