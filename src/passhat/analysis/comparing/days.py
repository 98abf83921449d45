"""How far an agent moves from day to day, and comparisons that include it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from passhat.analysis.comparing.differences import Difference
from passhat.analysis.comparing.moved_together import wider
from passhat.analysis.reports.evidence import Evidence
from passhat.dataclass import short_dataclass
from passhat.records import ErrorPolicy, Tally
from passhat.stats.dependent_runs import Arms, DaySpread
from passhat.stats.estimate import Estimate, Unavailable
from passhat.stats.paired import PairedDifference
from passhat.stats.passk import share_of_passing_subsets
from passhat.stats.trend import TaskSeries, change_points, day_spread

FEWEST_RUNS = 5
"""With fewer stored runs a comparison does not include the spread between days, and says so."""

MOST_RUNS = 50
"""Older runs of a suite say little about the agent as it is today."""


@short_dataclass(frozen=True, slots=True, kw_only=True)
class Days:
    """How far stored runs of the same suite differ."""

    spread: DaySpread
    runs: int

    @property
    def known(self) -> bool:
        return self.runs >= FEWEST_RUNS

    @property
    def note(self) -> str:
        """What a comparison says about it."""
        if not self.known:
            return (
                "the spread between days is not included: history has "
                f"{self.runs} of the {FEWEST_RUNS} runs that this takes"
            )
        return (
            f"includes the spread between days ({self.spread.sigma:.2f} logit, from "
            f"{self.runs} stored runs)"
        )


def days_of(moments: Sequence[Tally], errors: ErrorPolicy) -> Days:
    """From the counts of one system in runs of the same suite, oldest first.

    Stretches between changes are measured separately: a real change is no spread.
    """
    names = list(dict.fromkeys(name for tally in moments for name in tally.tasks))
    place = {name: i for i, name in enumerate(names)}
    runs = np.zeros((len(moments), len(names)), dtype=np.int64)
    passes = np.zeros_like(runs)
    for row, tally in enumerate(moments):
        columns = [place[name] for name in tally.tasks]
        runs[row, columns], passes[row, columns] = tally.runs(errors), tally.passed
    if len(moments) < FEWEST_RUNS:
        return Days(spread=DaySpread.unknown(), runs=len(moments))
    series = TaskSeries(runs, passes)
    return Days(spread=day_spread(series, change_points(series)), runs=len(moments))


def including_days(
    differences: dict[str, Difference],
    sides: tuple[Evidence, Evidence],
    days: Days,
    *,
    confidence: float,
    margin: float | None,
) -> dict[str, Difference]:
    """The differences, with the spread between days added to their intervals."""
    if not days.known:
        return differences
    wide = {}
    for name, found in differences.items():
        slope = _slope(name, sides)
        on_suite = _arms(found.this_suite, slope, days, confidence)
        on_alike = _arms(found.tasks_like_these, slope, days, confidence)
        wide[name] = wider(found, on_suite, on_alike, days.note, margin)
    return wide


def _arms(
    found: PairedDifference | Estimate | Unavailable, slope: float, days: Days, confidence: float
) -> Arms:
    """What one day against another adds, as squares add up."""
    if isinstance(found, Unavailable) or found.interval is None:
        return 0.0, 0.0
    return days.spread.arms(found.interval, slope, 2.0, confidence)


def _slope(name: str, sides: tuple[Evidence, Evidence]) -> float:
    """How much the metric moves per logit: of p^k it is k (p^k - p^(k+1)), over both sides."""
    k = 1 if name == "mean_score" else int(name[5:])
    runs, passes = sides[0].runs + sides[1].runs, sides[0].passes + sides[1].passes
    able = runs > k
    if not able.any():
        return 0.0
    n, c = runs[able], passes[able]
    fall = share_of_passing_subsets(n, c, k) - share_of_passing_subsets(n, c, k + 1)
    return float(k * fall.mean())
