"""A run as JUnit XML: it shows a failure when the run exits with 1, and an error when with 3."""

from __future__ import annotations

from collections.abc import Iterator

from passhat.analysis.gates.run_answer import Failure, RunAnswer
from passhat.analysis.gates.tool_selection import SelectionFloor
from passhat.analysis.reports.tasks import TaskRow
from passhat.messages import plural
from passhat.reporters.junit_xml import Case, Mark, render_junit

UNJUDGED = "every trial errored: there is nothing to judge"


def render_run_junit(answer: RunAnswer) -> str:
    """Tasks, gates and floors as test cases; without gates every expectation is a demand."""
    return render_junit(
        answer.report,
        tuple(answer.verdicts or ()),
        marks=dict(_marks(answer)),
        others=(*_floors(answer), *_completion(answer)),
        unjudged=UNJUDGED if answer.nothing_ran else None,
    )


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
    if answer.verdicts is not None and not answer.nothing_ran:
        return None  # the gates say how much may go wrong
    why = _why(answer.failures, system, row.name)
    if failed and row.name not in answer.floored:
        message = f"{failed} of {plural(row.runs, 'run')} failed"
        return Mark(kind="failure", message=message, detail=why)
    if row.errored:
        message = f"{row.errored} of {plural(row.runs, 'run')} errored"
        return Mark(kind="error", message=message, detail=why)
    return None


def _why(failures: tuple[Failure, ...], system: str, task: str) -> str:
    mine = [one for one in failures if (one.system, one.task) == (system, task)]
    return "\n".join(f"{plural(one.trials, 'trial')}: {one.reason}" for one in mine)


def _floors(answer: RunAnswer) -> Iterator[Case]:
    for floor in answer.floors:
        mark = None if floor.passed else _below(answer, floor)
        yield Case(suite="tool-selection floors", name=floor.label, said=floor.line, mark=mark)


def _below(answer: RunAnswer, floor: SelectionFloor) -> Mark:
    if answer.nothing_ran:
        return Mark(kind="error", message=UNJUDGED, detail=floor.line)
    return Mark(kind="failure", message=floor.line, detail=floor.detail)


def _completion(answer: RunAnswer) -> Iterator[Case]:
    """Nothing passes of which a part was never run."""
    if answer.incomplete is not None:
        mark = Mark(kind="error", message=answer.incomplete, detail=answer.undone or "")
        yield Case(suite="run", name="completed", said="", mark=mark)
