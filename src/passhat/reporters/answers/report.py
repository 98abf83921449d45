"""A report: its sentences and tables, data, rows of numbers, figures, test cases and page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from passhat.analysis.reports.report import Report
from passhat.analysis.reports.system_report import SystemReport
from passhat.reporters.answer_kind import AnswerKind, DisplayOptions, Records
from passhat.reporters.answers.report_blocks import report_blocks
from passhat.reporters.answers.report_figures import report_figures
from passhat.reporters.numbers import interval_of
from passhat.reporters.wording import verdict_title

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


def _methods(report: Report) -> str:
    from passhat.reporters.methods import report_methods

    return report_methods(report)


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


def _system_rows(system: SystemReport) -> Iterator[dict[str, object]]:
    for name, metric in system.metrics.items():
        inner, outer = interval_of(metric.this_suite), interval_of(metric.tasks_like_these)
        yield {
            "system": system.name,
            "task": "",
            "number": name,
            "value": metric.value,
            "this_suite_low": inner and inner.low,
            "this_suite_high": inner and inner.high,
            "tasks_like_these_low": outer and outer.low,
            "tasks_like_these_high": outer and outer.high,
            "tasks": system.design.tasks,
            "runs": system.design.trials,
            "passed": int(system.tasks.passed.sum()),
            "label": "",
        }
    for row in system.tasks:
        bounds = row.rate.interval
        yield {
            "system": system.name,
            "task": row.name,
            "number": "pass^1",
            "value": row.rate.value,
            "this_suite_low": bounds and bounds.low,
            "this_suite_high": bounds and bounds.high,
            "tasks_like_these_low": None,
            "tasks_like_these_high": None,
            "tasks": 1,
            "runs": row.runs,
            "passed": row.passed,
            "label": row.label,
        }
