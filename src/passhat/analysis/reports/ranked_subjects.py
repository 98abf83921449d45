"""Several systems ranked by one metric over the tasks that all of them ran."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from passhat.analysis.reports.evidence import Floats, value_table
from passhat.analysis.reports.parts import Metric
from passhat.analysis.reports.subject import Subject
from passhat.dataclass import dataclass
from passhat.stats.estimate import Estimate, Number, Unavailable, independent_difference

if TYPE_CHECKING:
    from passhat.stats.ranking import Ranking


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RankedSubjects:
    """Systems, their values on every task that any of them ran, and how they rank.

    `values` has a row for each task and a column for each system, nan if it has too few runs.
    `ranking` goes by the places of the systems, over the tasks that all of them have a value for.
    """

    subjects: Sequence[Subject]
    metric: str
    k: int
    tasks: Sequence[str]
    values: Floats
    ranking: Ranking | Unavailable

    @property
    def shared(self) -> list[str]:
        """The tasks that every system has a value for."""
        known = ~np.isnan(self.values).any(axis=1)
        return [self.tasks[i] for i in np.flatnonzero(known).tolist()]

    def metric_of(self, place: int, *, confidence: float, this_suite_only: bool = False) -> Metric:
        """The metric of one system over the shared tasks, as a report of them has it."""
        found = self.subjects[place].metrics_on(
            self.shared, (self.k,), confidence=confidence, this_suite_only=this_suite_only
        )
        return found[self.metric]

    def ahead_here(self, ranking: Ranking) -> int | None:
        """Of several systems that may be first, the one that is ahead of the others on these tasks.

        Given the tasks, the runs of two systems are independent, and their intervals for this suite
        include what moved runs together. The level is the one at which all pairs hold at once.
        """
        best, *others = ranking.first
        level = 1 - ranking.pair_level
        if not others:
            return None
        top = self._on_suite(best, level)
        return best if all(_is_behind(self._on_suite(one, level), top) for one in others) else None

    def first_on_one_task(self, means: Sequence[float], *, confidence: float) -> list[int]:
        """The systems that may be first on the one task that all share, the best first.

        All differences from the best hold at once (Bonferroni).
        """
        level = 1 - (1 - confidence) / (len(means) - 1)
        order = sorted(range(len(means)), key=lambda i: -means[i])
        found = [self._on_suite(i, level) for i in order]
        return [i for i, one in zip(order, found, strict=True) if not _is_behind(one, found[0])]

    def _on_suite(self, place: int, level: float) -> Number:
        return self.metric_of(place, confidence=level, this_suite_only=True).this_suite


def rank_subjects(
    subjects: Sequence[Subject], metric: str, k: int, *, confidence: float, seed: int
) -> RankedSubjects:
    """Rank systems by mean_score, or by pass^k or pass@k at this k."""
    sides = [one.evidence for one in subjects]
    form = metric if metric == "mean_score" else f"{metric[:5]}k"
    tasks, values = value_table(
        [side.tasks for side in sides], [side.values(form, k) for side in sides]
    )
    # Families and weights are those of the first system that names any.
    families = (side.families_of(tasks) for side in sides)
    weights = (side.weights_of(tasks) for side in sides)
    from passhat.stats.ranking import rank_systems

    ranking = rank_systems(
        values,
        confidence=confidence,
        family=next((one for one in families if one is not None), None),
        weight=next((one for one in weights if one is not None), None),
        rng=seed,
    )
    return RankedSubjects(
        subjects=subjects, metric=metric, k=k, tasks=tasks, values=values, ranking=ranking
    )


def _is_behind(one: Number, top: Number) -> bool:
    """Whether two independent intervals show that one number is below the other."""
    lead = independent_difference(top, one)
    return isinstance(lead, Estimate) and lead.interval is not None and lead.interval.low > 0
