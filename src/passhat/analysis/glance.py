"""One number for a list: the pass^k a report opens with, from counts alone."""

from __future__ import annotations

from dataclasses import dataclass

from passhat.analysis.evidence import gather
from passhat.analysis.metrics import measure_metrics
from passhat.records import ErrorPolicy, Tally
from passhat.stats.estimate import Estimate, Unavailable
from passhat.stats.passk import pass_hat_k

LARGEST_K = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Glance:
    """pass^k of this suite, at the largest k up to five that every task has runs for."""

    k: int
    number: Estimate | Unavailable

    @property
    def name(self) -> str:
        return f"pass^{self.k}"


def glance(
    tally: Tally,
    *,
    k: int | None = None,
    confidence: float = 0.95,
    errors: ErrorPolicy = "fail",
) -> Glance:
    """The number of one system, fast enough for a page with hundreds of them.

    >>> from passhat import simulate
    >>> glance(simulate(tasks=10, runs=8, seed=1).tally()).name
    'pass^5'
    """
    evidence = gather(tally, errors)
    fewest = int(evidence.runs.min(initial=LARGEST_K))
    chosen = k or (fewest if evidence.tasks else 1)
    if not evidence.tasks:
        return Glance(k=chosen, number=Unavailable("no task has a run"))
    metrics = measure_metrics(evidence, (chosen,), confidence=confidence)
    return Glance(k=chosen, number=metrics[f"pass^{chosen}"].this_suite)


def mean_pass_hat(tally: Tally, k: int, *, errors: ErrorPolicy = "fail") -> float | None:
    """pass^k without its interval, over the tasks with k runs: what a line of many points needs.

    >>> from passhat import simulate
    >>> trials = simulate(tasks=10, runs=8, seed=1)
    >>> mean_pass_hat(trials.tally(), 5) == glance(trials.tally()).number.value
    True
    """
    evidence = gather(tally, errors)
    enough = evidence.runs >= k
    if not enough.any():
        return None
    return float(pass_hat_k(evidence.runs[enough], evidence.passes[enough], k).mean())
