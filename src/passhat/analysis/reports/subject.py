"""The trials of one system, with everything about them that an interval depends on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from passhat.analysis.reports.bars import Bars
from passhat.analysis.reports.disturbances import Disturbance, find_disturbances
from passhat.analysis.reports.evidence import Evidence, gather
from passhat.analysis.reports.grouped_metrics import RunGroups, groupings_of
from passhat.analysis.reports.metrics import measure_metrics
from passhat.analysis.reports.parts import Metric
from passhat.dataclass import Later, dataclass
from passhat.records import ErrorPolicy, Tally, Trials

Together = tuple[tuple[Disturbance, ...], tuple[RunGroups, ...]]
"""What moved the runs of one system together: disturbances, and the groups of runs."""

NOTHING: Later[Together] = Later(lambda: ((), ()))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Subject:
    """One system: its counts, its trials if they were read one by one, and the error policy.

    What moved its runs `together` is looked for on first use, which takes many permutations.
    """

    tally: Tally
    trials: Trials | None
    errors: ErrorPolicy = "fail"
    bars: Bars = None
    together: Later[Together] = NOTHING

    @classmethod
    def of(
        cls, given: Trials | Tally, *, errors: ErrorPolicy = "fail", bars: Bars = None
    ) -> Subject:
        """The trials of one system with what moved them together; counts do not show that."""
        if isinstance(given, Tally):
            return cls(tally=given, trials=None, errors=errors, bars=bars)
        together = Later(partial(_found_together, given, errors))
        return cls(tally=given.tally(), trials=given, errors=errors, bars=bars, together=together)

    @property
    def name(self) -> str:
        return self.tally.system

    @property
    def disturbances(self) -> tuple[Disturbance, ...]:
        return self.together.look()[0]

    @property
    def groupings(self) -> tuple[RunGroups, ...]:
        return self.together.look()[1]

    @property
    def evidence(self) -> Evidence:
        return gather(self.tally, self.errors)

    @property
    def runs(self) -> int:
        return int(self.tally.runs(self.errors).sum())

    def metrics_on(
        self,
        tasks: Sequence[str],
        ks: Sequence[int],
        *,
        confidence: float,
        this_suite_only: bool = False,
    ) -> dict[str, Metric]:
        """The metrics over these tasks alone, with the intervals that a report of them prints."""
        evidence, subject, wanted = self.evidence, self, set(tasks)
        kept = [name for name in evidence.tasks if name in wanted]
        if len(kept) < len(evidence.tasks):
            evidence = evidence.only(kept)
            if self.trials is not None:
                subject = Subject.of(trials_on(self.trials, kept), errors=self.errors)
        return measure_metrics(
            evidence,
            ks,
            confidence=confidence,
            groupings=subject.groupings,
            this_suite_only=this_suite_only,
        )


def groupings_by_system(
    trials: Trials, errors: ErrorPolicy = "fail"
) -> dict[str, tuple[RunGroups, ...]]:
    """For each system, what a report of these trials finds that moved its runs together."""
    if len(trials.systems) == 1:
        return {trials.systems[0]: _found_together(trials, errors)[1]}
    return {name: _found_together(trials.where(system=name), errors)[1] for name in trials.systems}


def trials_on(trials: Trials, tasks: Sequence[str]) -> Trials:
    """The trials of these tasks."""
    return trials.take(np.isin(trials.task.codes, [trials.task.code(name) for name in tasks]))


def _found_together(trials: Trials, errors: ErrorPolicy) -> Together:
    found = find_disturbances(trials, errors)
    return found, groupings_of(trials, errors, disturbed=bool(found))
