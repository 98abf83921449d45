"""A paragraph on methods, with citations, for a paper that quotes these numbers."""

from __future__ import annotations

from passhat.analysis.reports.provenance import Provenance
from passhat.analysis.reports.report import Report
from passhat.analysis.reports.system_report import SystemReport
from passhat.messages import plural
from passhat.reporters.numbers import percent
from passhat.stats.estimate import Estimate

_METRICS = (
    "pass@k is the unbiased estimator of Chen et al. (2021, arXiv:2107.03374); pass^k, also called "
    "reliability@k, is the chance that all k attempts at a task succeed (Yao et al., 2024, "
    "arXiv:2406.12045), estimated without bias from the same counts and averaged over tasks."
)


def report_methods(report: Report) -> str:
    """How the numbers of a report were made, in sentences that a reviewer can check."""
    system = report.systems[0]
    return " ".join(
        [
            _design(report),
            _METRICS,
            _intervals(system, report.provenance),
            _errors(report.provenance),
            _software(report.provenance),
        ]
    )


def _design(report: Report) -> str:
    system = report.systems[0]
    shape = system.design
    runs = (
        f"{shape.fewest_runs}" if shape.equal_runs else f"{shape.fewest_runs} to {shape.most_runs}"
    )
    who = plural(len(report.systems), "system")
    return f"We ran {who} {runs} times on each of {plural(shape.tasks, 'task')}."


def _intervals(system: SystemReport, origin: Provenance) -> str:
    level = percent(origin.options.confidence)
    metric = system.pass_hat(max(system.ks)) if system.ks else system.mean_score
    told = [
        f'"{number.scope}" ({number.method})'
        for number in (metric.this_suite, metric.tasks_like_these)
        if isinstance(number, Estimate)
    ]
    return (
        f"Brackets are {level} confidence intervals in two scopes: {' and '.join(told)}; the first "
        "treats the tasks as fixed, the second as a sample of more tasks of their kind."
        if told
        else f"Confidence intervals are at {level}."
    )


def _errors(origin: Provenance) -> str:
    counted = "counted as failures" if origin.options.errors == "fail" else "left out"
    return f"Trials that errored were {counted}."


def _software(origin: Provenance) -> str:
    return (
        f"Computed with passhat {origin.versions['passhat']} (seed {origin.options.seed}, "
        f"fingerprint of the trials {origin.input_sha256[:12]})."
    )
