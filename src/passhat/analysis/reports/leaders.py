"""Which of several systems is ahead, on the tasks that all of them ran."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from passhat.analysis.reports.headline_k import is_judged
from passhat.analysis.reports.parts import Leaders
from passhat.analysis.reports.subject import Subject
from passhat.analysis.reports.system_report import SystemReport
from passhat.stats.estimate import TASKS_LIKE_THESE, THIS_SUITE, Unavailable

if TYPE_CHECKING:
    from passhat.analysis.reports.ranked_subjects import RankedSubjects


def find_leaders(
    systems: Sequence[SystemReport],
    subjects: Sequence[Subject],
    k: int,
    *,
    confidence: float,
    seed: int,
) -> Leaders | Unavailable:
    """Who may be first at pass^k, and who is tied; the answer is that of `rank`.

    `subjects` are the trials of each system.

    >>> from passhat.analysis.planning.simulate import simulate
    >>> from passhat.analysis.reports.measure import measure
    >>> measure(simulate(tasks=30, runs=8, rate=[0.9, 0.5, 0.88], seed=1)).leaders.names
    ('agent-1', 'agent-3')
    """
    pairs = zip(systems, subjects, strict=True)
    judged = [(one, subject) for one, subject in pairs if is_judged(one, k)]
    if len(judged) < 2:
        return Unavailable(f"being ahead takes two systems with a pass^{k}")
    from passhat.analysis.reports.ranked_subjects import rank_subjects

    ranked = rank_subjects(
        [subject for _, subject in judged], f"pass^{k}", k, confidence=confidence, seed=seed
    )
    if not ranked.shared:
        return Unavailable(f"the systems share no task{f' with {k} runs' if k > 1 else ''}")
    return _leaders([one for one, _ in judged], ranked, confidence)


def _leaders(judged: Sequence[SystemReport], ranked: RankedSubjects, confidence: float) -> Leaders:
    ranking, tasks = ranked.ranking, len(ranked.shared)
    ties: Sequence[Sequence[int]]
    left_out = int((~np.isnan(ranked.values)).any(axis=1).sum()) - tasks
    if isinstance(ranking, Unavailable):  # a single task cannot show how others would differ
        means = ranked.values[~np.isnan(ranked.values).any(axis=1)][0].tolist()
        first, ahead = ranked.first_on_one_task(means, confidence=confidence), None
        ties, scope, method = [first], THIS_SUITE, "intervals of one task, Bonferroni"
    else:
        first, ahead = ranking.first, ranked.ahead_here(ranking)
        ties, scope, method = ranking.tie_bands, TASKS_LIKE_THESE, ranking.method
        means = ranking.means
    names = [one.name for one in judged]
    return Leaders(
        k=ranked.k,
        names=tuple(names[i] for i in first),
        values=tuple(_value(judged[i], ranked.k, means[i], whole=not left_out) for i in first),
        compared=tuple(names),
        ties=tuple(tuple(names[i] for i in group) for group in ties if len(group) > 1),
        tasks=tasks,
        left_out=left_out,
        scope=scope,
        method=method,
        confidence=confidence,
        here=None if ahead is None else names[ahead],
    )


def _value(system: SystemReport, k: int, mean: float, *, whole: bool) -> float:
    """Over all tasks the report's own, to the last bit: a mean in another order differs there."""
    own = system.pass_hat(k).value
    return own if whole and own is not None else float(mean)
