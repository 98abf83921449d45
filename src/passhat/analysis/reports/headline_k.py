"""The k at which systems are judged: of one, of several, and pass^k at it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from passhat.analysis.reports.evidence import gather
from passhat.analysis.reports.metrics import measure_metrics
from passhat.arguments import CONFIDENCE, HEADLINE_K
from passhat.dataclass import dataclass
from passhat.records import ErrorPolicy, Tally
from passhat.stats.estimate import Estimate, Unavailable
from passhat.stats.passk import pass_hat_k

if TYPE_CHECKING:
    from passhat.analysis.reports.grouped_metrics import RunGroups
    from passhat.analysis.reports.parts import Metric
    from passhat.analysis.reports.system_report import SystemReport


def headline_k(system: SystemReport) -> int:
    """The k of the opening sentence: the largest up to five that every task has runs for.

    Over fewer tasks at a larger k, the number would be of another suite.
    """
    known = [k for k in system.ks if system.pass_hat(k).value is not None]
    whole = [k for k in known if k <= system.design.fewest_runs] or known
    modest = [k for k in whole if k <= HEADLINE_K]
    if modest and whole is not known:
        return max(modest)
    return min(whole, default=min(system.ks, default=1))


def common_k(systems: Iterable[SystemReport]) -> int:
    """The largest headline k that most systems have runs for; one with fewer is left blank."""
    found = list(systems)
    measured = [one for one in found if not all_errored(one)] or found
    leads = {headline_k(one) for one in measured}
    fit = [k for k in leads if 2 * sum(is_judged(one, k) for one in measured) > len(measured)]
    some = [k for k in leads if any(is_judged(one, k) for one in measured)]
    return max(fit) if fit else min(some or leads)


def is_judged(system: SystemReport, k: int) -> bool:
    """Whether pass^k is known over as many tasks as the system's own headline."""
    if all_errored(system) or f"pass^{k}" not in system.metrics:
        return False
    known = system.pass_hat(k).value is not None
    return known and (k <= headline_k(system) or not is_partial(system.pass_hat(k)))


def all_errored(system: SystemReport) -> bool:
    """Whether every trial errored: then nothing was measured, however errors are counted."""
    return 0 < system.design.trials == system.design.errors


def is_partial(metric: Metric) -> bool:
    """Whether a number leaves out tasks that have too few runs."""
    number = metric.this_suite
    return isinstance(number, Estimate) and number.excluded_tasks > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadlineNumber:
    """pass^k of this suite, at the largest k up to five that every task has runs for."""

    k: int
    number: Estimate | Unavailable

    @property
    def name(self) -> str:
        return f"pass^{self.k}"


def headline_number(
    tally: Tally,
    *,
    k: int | None = None,
    confidence: float = CONFIDENCE,
    errors: ErrorPolicy = "fail",
    groupings: Sequence[RunGroups] = (),
) -> HeadlineNumber:
    """The number of one system, fast enough for a page with hundreds of them.

    `groupings` are what a report finds that moved its runs together: both show one interval then.

    >>> from passhat import simulate
    >>> headline_number(simulate(tasks=10, runs=8, seed=1).tally()).name
    'pass^5'
    """
    evidence = gather(tally, errors)
    fewest = int(evidence.runs.min(initial=HEADLINE_K))
    chosen = k or (fewest if evidence.tasks else 1)
    if not evidence.tasks:
        return HeadlineNumber(k=chosen, number=Unavailable("no task has a run"))
    metrics = measure_metrics(
        evidence, (chosen,), confidence=confidence, groupings=groupings, this_suite_only=True
    )
    return HeadlineNumber(k=chosen, number=metrics[f"pass^{chosen}"].this_suite)


def mean_pass_hat(tally: Tally, k: int, *, errors: ErrorPolicy = "fail") -> float | None:
    """pass^k without its interval, over the tasks with k runs: what a line of many points needs.

    >>> from passhat import simulate
    >>> trials = simulate(tasks=10, runs=8, seed=1)
    >>> mean_pass_hat(trials.tally(), 5) == headline_number(trials.tally()).number.value
    True
    """
    evidence = gather(tally, errors)
    enough = evidence.runs >= k
    if not enough.any():
        return None
    return float(pass_hat_k(evidence.runs[enough], evidence.passes[enough], k).mean())
