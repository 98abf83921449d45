"""Which exit code a run deserves."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from passhat.cli.exit_codes import ExitCode
from passhat.messages import plural
from passhat.suite.fault_variants import variants

if TYPE_CHECKING:
    from collections.abc import Iterator

    from passhat.analysis.reports.tasks import TaskRow
    from passhat.records import Suite
    from passhat.reporters.run_answer import RunAnswer
    from passhat.runner import RunResult


def settled(answer: RunAnswer, suite: Suite, result: RunResult) -> RunAnswer:
    """The answer with what decides about its exit code, here and in every form it is written."""
    from passhat.records import Outcome

    errored = all(trial.outcome is Outcome.ERRORED for trial in result.trials)
    return replace(
        answer,
        quarantined=quarantined(suite),
        floored=_floored(suite),
        exempt=frozenset(variants(suite).values()),
        nothing_ran=errored,
        incomplete=_incomplete(answer, suite, result),
    )


def exit_code(answer: RunAnswer) -> ExitCode:
    """0 pass, 1 a demand failed, 3 not completed, 4 undecided.

    Gates and floors decide where there are any: single failures are what they allow for. Without
    a gate every expectation is a demand, so that one failed trial fails the run.
    """
    if answer.nothing_ran:
        return ExitCode.INCOMPLETE
    if not all(floor.passed for floor in answer.floors):
        return ExitCode.FAIL
    demanded = list(_demanded(answer))
    if answer.verdicts is not None:
        code = ExitCode(answer.verdicts.exit_code)
    elif any(r.runs > r.passed + r.errored for r in demanded if r.name not in answer.floored):
        code = ExitCode.FAIL
    else:
        code = ExitCode.INCOMPLETE if any(row.errored for row in demanded) else ExitCode.PASS
    return ExitCode.INCOMPLETE if answer.incomplete and code is ExitCode.PASS else code


def why_not_passed(answer: RunAnswer) -> str | None:
    """Why a run does not exit with 0, where neither a verdict nor a floor says it."""
    if answer.nothing_ran:
        return "not completed: every trial errored, there is nothing to judge"
    if answer.verdicts is not None or not all(floor.passed for floor in answer.floors):
        return None
    code = exit_code(answer)
    rows = list(_demanded(answer))
    if code is ExitCode.FAIL:
        rows = [row for row in rows if row.name not in answer.floored]
        count, how = sum(row.runs - row.passed - row.errored for row in rows), "failed"
    else:
        count, how = sum(row.errored for row in rows), "errored"
    if not count or code is ExitCode.PASS:
        return None  # what was left undone is said with what goes on with it
    word = "FAIL" if code is ExitCode.FAIL else "not completed"
    of_all = f"{count:,} of {plural(sum(row.runs for row in rows), 'trial')}"
    return f"{word}: {of_all} {how}; where nothing else is demanded, none may"


def _demanded(answer: RunAnswer) -> Iterator[TaskRow]:
    """The tasks whose single trials count, where there is no gate."""
    for system in answer.report.systems:
        if system.name not in answer.exempt:
            yield from (row for row in system.tasks if row.name not in answer.quarantined)


def _incomplete(answer: RunAnswer, suite: Suite, result: RunResult) -> str | None:
    """Why a run that no demand failed has not passed: a part of it was never run."""
    if answer.verdicts is None:
        return "trials were left undone" if result.undone else None
    if answer.verdicts.exit_code or not all(floor.passed for floor in answer.floors):
        return None
    ran = {(trial.system, trial.task) for trial in result.trials}
    missing = any((p.system.name, p.task.name) not in ran for p in suite.pairings)
    if result.ending == "budget" and missing:
        return f"{result.limit} was reached before every task was run"
    return None


def quarantined(suite: Suite) -> dict[str, str]:
    """The tasks whose quarantine is in force, and what is to be said of them."""
    today = datetime.now(tz=UTC).date()
    return {
        entry.task: f"in quarantine until {entry.until}"
        + (f": {entry.reason}" * bool(entry.reason))
        for entry in suite.quarantine
        if entry.in_force(today)
    }


def _floored(suite: Suite) -> frozenset[str]:
    """The tasks that are judged by their floor alone: they expect nothing else."""
    return frozenset(
        task.name
        for task in suite.tasks
        if task.tool_selection is not None and not task.expect and not task.steps
    )
