"""A report: its sentences and tables, data, rows of numbers, figures, test cases and page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from passhat.analysis.reports.evidence import Provenance
from passhat.analysis.reports.report import Report, SystemReport
from passhat.messages import plural
from passhat.reporters.answer_kind import AnswerKind, DisplayOptions, Records
from passhat.reporters.answers.report_blocks import report_blocks, report_figures
from passhat.reporters.headline import verdict_title
from passhat.reporters.numbers import end_cells, percent, scope_cells
from passhat.stats.estimate import Estimate

if TYPE_CHECKING:
    from passhat.reporters.test_cases import TestSuite


def report_rows(report: Report) -> Records:
    """A row a number: first those of the whole suite, then the pass rate of every task."""
    return [row for system in report.systems for row in _system_rows(system)]


def _data(report: Report) -> Any:
    from passhat.reporters.answers.report_data import report_object

    return report_object(report)


def _cases(report: Report) -> Sequence[TestSuite]:
    from passhat.reporters.test_cases import task_suites

    return task_suites(report)


def _page(report: Report, options: DisplayOptions) -> Mapping[str, Any]:
    from passhat.reporters.answers.report_page import page_of

    return page_of(report, options)


def _system_rows(system: SystemReport) -> Iterator[dict[str, object]]:
    for name, metric in system.metrics.items():
        yield {
            "system": system.name,
            "task": "",
            "number": name,
            "value": metric.value,
            **scope_cells(metric),
            "tasks": system.design.tasks,
            "runs": system.design.trials,
            "passed": int(system.tasks.passed.sum()),
            "label": "",
        }
    for row in system.tasks:
        yield {
            "system": system.name,
            "task": row.name,
            "number": "pass^1",
            "value": row.rate.value,
            **end_cells("this_suite", row.rate.interval),
            **end_cells("tasks_like_these", None),
            "tasks": 1,
            "runs": row.runs,
            "passed": row.passed,
            "label": row.label,
        }


_METRICS = (
    "pass@k is the unbiased estimator of Chen et al. (2021, arXiv:2107.03374); pass^k, also called "
    "reliability@k, is the chance that all k attempts at a task succeed (Yao et al., 2024, "
    "arXiv:2406.12045), estimated without bias from the same counts and averaged over tasks."
)


def _methods(report: Report) -> str:
    """How the numbers of a report were made, in sentences that a reviewer can check."""
    system = report.systems[0]
    origin = report.provenance
    parts = _design(report), _METRICS, _intervals(system, origin), _errors(origin)
    return " ".join([*parts, _software(origin)])


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
    scopes = [
        f'"{number.scope}" ({number.method})'
        for number in (metric.this_suite, metric.tasks_like_these)
        if isinstance(number, Estimate)
    ]
    return (
        f"Brackets are {level} confidence intervals in two scopes: {' and '.join(scopes)}; the "
        "first treats the tasks as fixed, the second as a sample of more tasks of their kind."
        if scopes
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


KIND = AnswerKind(
    name="report",
    blocks=report_blocks,
    data=_data,
    rows=report_rows,
    figures=report_figures,
    cases=_cases,
    page=_page,
    methods=_methods,
    provenance=lambda report: report.provenance,
    title=verdict_title,
)
