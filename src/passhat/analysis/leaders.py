"""Which of several systems is ahead, said only of systems that ran the same tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from passhat.analysis.report import SystemReport
from passhat.stats.estimate import Estimate, Unavailable
from passhat.stats.independent import independent_difference
from passhat.stats.suite_mean import suite_estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaders:
    """The system with the highest pass^k, and those that cannot be told apart from it."""

    best: SystemReport
    tied: tuple[SystemReport, ...]


def find_leaders(systems: Sequence[SystemReport], k: int) -> Leaders | Unavailable:
    """Who is ahead at pass^k on this suite.

    Given the tasks, the runs of two systems are independent. The confidence is that of all the
    differences from the best at once (Bonferroni).
    """
    if len({frozenset(one.tasks.names) for one in systems}) != 1:
        return Unavailable("the systems did not run the same tasks")
    ranked = sorted(systems, key=lambda one: -(one.pass_hat(k).value or 0.0))
    best, others = ranked[0], ranked[1:]
    # The level of the tables, shared out over the differences that are looked at.
    level = 1 - (1 - best.tasks.confidence) / max(1, len(others))
    top = _at(best, k, level)
    tied = tuple(one for one in others if not _behind(_at(one, k, level), top))
    return Leaders(best=best, tied=tied)


def _at(system: SystemReport, k: int, confidence: float) -> Estimate | Unavailable:
    table = system.tasks
    return suite_estimate(table.runs, table.passed, k=k, confidence=confidence)


def _behind(one: Estimate | Unavailable, top: Estimate | Unavailable) -> bool:
    if isinstance(one, Unavailable) or isinstance(top, Unavailable):
        return False
    lead = independent_difference(top, one)
    return isinstance(lead, Estimate) and lead.interval is not None and lead.interval.low > 0
