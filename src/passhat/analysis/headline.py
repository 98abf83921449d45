"""At which k systems are judged, which of several can be, and who of them leads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from passhat.brief import brief_fields
from passhat.stats.estimate import Estimate, Scope

if TYPE_CHECKING:
    from passhat.analysis.report import Metric, SystemReport

_HEADLINE_K = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaders:
    """The systems that may truly be first at pass^k, the best first; `values` are their pass^k.

    One is told apart from all others that were `compared`; several cannot be told apart from one
    another. `left_out` counts the tasks that some of those compared have no pass^k of.
    """

    k: int
    names: tuple[str, ...]
    values: tuple[float, ...]
    compared: tuple[str, ...]
    tasks: int
    left_out: int
    scope: Scope
    method: str
    confidence: float

    __repr__ = brief_fields


def headline_k(system: SystemReport) -> int:
    """The k of the opening sentence: the largest up to five that every task has runs for.

    Over fewer tasks at a larger k, the number would be of another suite.
    """
    known = [k for k in system.ks if system.pass_hat(k).value is not None]
    whole = [k for k in known if k <= system.design.fewest_runs] or known
    modest = [k for k in whole if k <= _HEADLINE_K]
    if modest and whole is not known:
        return max(modest)
    return min(whole, default=min(system.ks, default=1))


def common_k(systems: Iterable[SystemReport]) -> int:
    """The largest headline k that most systems have runs for: one that has fewer is left blank."""
    found = list(systems)
    measured = [one for one in found if not all_errored(one)] or found
    leads = {headline_k(one) for one in measured}
    fit = [k for k in leads if 2 * sum(is_judged(one, k) for one in measured) > len(measured)]
    some = [k for k in leads if any(is_judged(one, k) for one in measured)]
    return max(fit) if fit else min(some or leads)


def is_judged(system: SystemReport, k: int) -> bool:
    """Whether pass^k is known, over as many of its tasks as its own headline is."""
    if all_errored(system) or f"pass^{k}" not in system.metrics:
        return False
    known = system.pass_hat(k).value is not None
    return known and (k <= headline_k(system) or not is_partial(system.pass_hat(k)))


def all_errored(system: SystemReport) -> bool:
    """Whether no trial came to an end: then nothing was seen of the agent, whatever is counted."""
    return 0 < system.design.trials == system.design.errors


def is_partial(metric: Metric) -> bool:
    """Whether a number leaves out tasks for want of runs."""
    number = metric.this_suite
    return isinstance(number, Estimate) and number.excluded_tasks > 0
