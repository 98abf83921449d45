"""Answers as test cases: tasks with their rates, gates with their verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, fields, replace
from typing import TYPE_CHECKING, Any, Literal

from passhat.dataclass import dataclass
from passhat.messages import plural
from passhat.records import Outcome
from passhat.reporters.formatting import end_cells, interval_of, value_of
from passhat.stats.estimate import Estimate, Interval

if TYPE_CHECKING:
    from passhat.analysis.gates.gate import Verdict
    from passhat.analysis.gates.run_answer import RunAnswer
    from passhat.analysis.reports.parts import SystemReport, TaskRow
    from passhat.analysis.reports.report import Report
    from passhat.records import Trial, Trials

SUITE_FILE = "passhat.yml"
"""What a person would open to change a demand: where code hosts show what failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """What a test case shows beside its numbers; a case without one has passed."""

    kind: Literal["failure", "error", "skipped"]
    message: str
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedCase:
    """A test case: its name, its numbers, what it says, and the file and line that it is about."""

    name: str
    classname: str
    values: Mapping[str, object] = field(default_factory=dict)
    output: str = ""
    mark: Mark | None = None
    file: str = SUITE_FILE
    line: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TestSuite:
    """Test cases under one name; `values` are numbers of the whole, such as pass^3."""

    name: str
    cases: Sequence[ReportedCase]
    values: Mapping[str, object] = field(default_factory=dict)

    __test__ = False  # pytest: this is not a class of tests


def encodable_suites(suites: Sequence[TestSuite]) -> list[TestSuite]:
    r"""The same test suites, every text of which can be written as UTF-8.

    A name may hold half of a surrogate pair (a byte of a file name, or a cut message). JSON, XML
    and OpenMetrics cannot write it so that every reader takes it: it becomes a question mark.

    >>> suite = TestSuite(name="a", cases=[ReportedCase(name="x\ud800", classname="a")])
    >>> encodable_suites([suite])[0].cases[0].name
    'x?'
    """
    return [_encodable(suite) for suite in suites]


def _encodable(value: Any) -> Any:
    """The same value, every text in it encodable."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {name: _encodable(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_encodable(part) for part in value]
    if isinstance(value, TestSuite | ReportedCase | Mark):
        names = [field.name for field in fields(value)]
        return replace(value, **{name: _encodable(getattr(value, name)) for name in names})
    return value


def task_suites(
    report: Report, marks: Mapping[tuple[str, str], Mark] | None = None
) -> list[TestSuite]:
    """A case a task, which carries its rate and interval; it fails where `marks` says so."""
    return [
        TestSuite(
            name=system.name,
            cases=[
                _task_case(system, row, (marks or {}).get((system.name, row.name)))
                for row in system.tasks
            ],
            values=dict(_streaks(system)),
        )
        for system in report.systems
    ]


def gate_suite(verdicts: Sequence[Verdict]) -> TestSuite:
    """A case a gate."""
    return TestSuite(name="gates", cases=[_gate_case(verdict) for verdict in verdicts])


def run_suites(answer: RunAnswer) -> list[TestSuite]:
    """Tasks, gates and floors; without gates every expectation is a demand.

    It shows a failure when the run exits with 1, and an error when with 3.
    """
    if answer.by_run and answer.trials is not None:
        suites = _run_rows(answer, answer.trials)
    else:
        suites = task_suites(answer.report, dict(_marks(answer)))
    if answer.verdicts is not None:
        suites.append(gate_suite(answer.verdicts))
    if answer.floors:
        suites.append(TestSuite(name="tool-selection floors", cases=list(_floors(answer))))
    if answer.incomplete is not None:
        mark = Mark(kind="error", message=answer.incomplete, detail=answer.undone or "")
        case = ReportedCase(name="completed", classname="passhat.run", mark=mark)
        suites.append(TestSuite(name="run", cases=[case]))
    return suites


def _run_rows(answer: RunAnswer, trials: Trials) -> list[TestSuite]:
    """A case a run, named as `--task` takes it: `refund #3`."""
    cases: dict[str, list[ReportedCase]] = {system.name: [] for system in answer.report.systems}
    for trial in trials:
        cases.setdefault(trial.system, []).append(_run_case(answer, trial))
    return [TestSuite(name=name, cases=own) for name, own in cases.items() if own]


def _run_case(answer: RunAnswer, trial: Trial) -> ReportedCase:
    names = ("score", "seed", "tokens_in", "tokens_out", "cost", "seconds", "turns")
    values = {name: getattr(trial, name) for name in names}
    return ReportedCase(
        name=f"{trial.task} #{trial.trial + 1}",
        classname=f"passhat.{trial.system}",
        values={name: value for name, value in values.items() if value is not None},
        mark=_run_mark(answer, trial),
    )


def _run_mark(answer: RunAnswer, trial: Trial) -> Mark | None:
    """What one run shows. It is a failure only if every single run must pass."""
    if trial.outcome is Outcome.PASSED:
        return None
    why = trial.error or "; ".join(run_reasons(answer, trial)) or "failed"
    exempt = trial.system in answer.exempt or trial.task in answer.floored
    exempt |= trial.base not in (None, trial.task)
    if answer.verdicts is not None or exempt or trial.task in answer.quarantined:
        return Mark(kind="skipped", message=f"not judged by itself: {why}")
    kind: Literal["failure", "error"] = "error" if trial.error is not None else "failure"
    return Mark(kind=kind, message=why)


def run_reasons(answer: RunAnswer, trial: Trial) -> tuple[str, ...]:
    """Why one run did not pass; nothing if that was not looked for."""
    return answer.reasons.get(trial.key, ())


def _streaks(system: SystemReport) -> Iterator[tuple[str, str]]:
    """pass^k of this suite for each k, with the ends of its interval."""
    for k in system.ks:
        number = system.pass_hat(k).this_suite
        if isinstance(number, Estimate):
            yield f"pass^{k}", _short(number.value)
            if number.interval is not None:
                yield from _ends(f"pass^{k}", number.interval).items()


def _task_case(system: SystemReport, row: TaskRow, mark: Mark | None) -> ReportedCase:
    values = {
        "runs": row.runs,
        "passed": row.passed,
        "errored": row.errored,
        "rate": _short(row.rate.value),
        **_ends("rate", row.rate.interval),
        "confidence": f"{row.rate.confidence:g}",
        "label": row.label,
    }
    return ReportedCase(name=row.name, classname=f"passhat.{system.name}", values=values, mark=mark)


def _gate_case(verdict: Verdict) -> ReportedCase:
    values = {
        "verdict": verdict.status,
        "value": _short(value_of(verdict.estimate)),
        **_ends("", interval_of(verdict.estimate)),
        "evidence": verdict.evidence,
        "alpha": _short(verdict.alpha),
        "beta": _short(verdict.beta),
        "runs": verdict.runs,
    }
    return ReportedCase(
        name=verdict.gate.label,
        classname=f"passhat.gates.{verdict.system}",
        values=values,
        output=verdict.sentence,
        mark=_gate_mark(verdict),
    )


def _ends(name: str, interval: Interval | None) -> dict[str, str]:
    return {key: _short(end) for key, end in end_cells(name, interval).items()}


def _short(value: float | None) -> str:
    """A number in six digits, which is how test reports and Python's `:g` write it."""
    return "" if value is None else f"{value:g}"


def _gate_mark(verdict: Verdict) -> Mark | None:
    if verdict.exit_code == 1:
        detail = "\n".join([verdict.sentence, *verdict.notes])
        return Mark(kind="failure", message=verdict.sentence, detail=detail)
    if verdict.exit_code == 4:
        return Mark(kind="skipped", message=verdict.sentence)
    return None


def _marks(answer: RunAnswer) -> Iterator[tuple[tuple[str, str], Mark]]:
    for system in answer.report.systems:
        for row in system.tasks:
            mark = None if system.name in answer.exempt else _mark(answer, system.name, row)
            if mark is not None:
                yield (system.name, row.name), mark


def _mark(answer: RunAnswer, system: str, row: TaskRow) -> Mark | None:
    """A failed run outweighs an errored one; what is tolerated is skipped where it went wrong."""
    failed = row.runs - row.passed - row.errored
    if row.passed == row.runs:
        return None
    if not answer.nothing_ran and row.name in answer.quarantined:
        return Mark(kind="skipped", message=answer.quarantined[row.name])
    if answer.verdicts is not None:
        return None  # the gates say how much may go wrong
    why = "\n".join(
        f"{plural(failure.trials, 'trial')}: {failure.reason}"
        for failure in answer.failures
        if (failure.system, failure.task) == (system, row.name)
    )
    if failed and row.name not in answer.floored:
        message = f"{failed} of {plural(row.runs, 'trial')} failed"
        return Mark(kind="failure", message=message, detail=why)
    if row.errored:
        message = f"{row.errored} of {plural(row.runs, 'trial')} errored"
        return Mark(kind="error", message=message, detail=why)
    return None


def _floors(answer: RunAnswer) -> Iterator[ReportedCase]:
    for floor in answer.floors:
        mark = None
        if not floor.passed:
            mark = Mark(kind="failure", message=floor.line, detail=floor.detail)
        yield ReportedCase(
            name=floor.label,
            classname="passhat.tool-selection floors",
            output=floor.line,
            mark=mark,
        )
