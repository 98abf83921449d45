"""Which exit code a run deserves."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from passhat.cli.exit_codes import ExitCode
from passhat.cli.fault_variants import variants

if TYPE_CHECKING:
    from passhat.records import Suite
    from passhat.reporters.run_answer import RunAnswer
    from passhat.runner import RunResult


def exit_code(suite: Suite, result: RunResult, answer: RunAnswer) -> ExitCode:
    """0 pass, 1 a demand failed, 3 not completed, 4 undecided.

    Gates and floors decide where there are any: single failures are what they allow for. Without
    a gate every expectation is a demand, so that one failed trial fails the run.
    """
    from passhat.records import Outcome

    outcomes = {trial.outcome for trial in result.trials}
    if outcomes == {Outcome.ERRORED}:
        return ExitCode.INCOMPLETE
    if not all(floor.passed for floor in answer.floors):
        return ExitCode.FAIL
    if answer.verdicts is not None:
        return _by_gates(suite, result, ExitCode(answer.verdicts.exit_code))
    tolerant = quarantined(suite) | floored(suite)
    broken = set(variants(suite).values())
    plain = [trial for trial in result.trials if trial.system not in broken]
    if any(t.outcome is Outcome.FAILED and t.task not in tolerant for t in plain):
        return ExitCode.FAIL
    if result.undone or any(t.outcome is Outcome.ERRORED for t in plain):
        return ExitCode.INCOMPLETE
    return ExitCode.PASS


def _by_gates(suite: Suite, result: RunResult, code: ExitCode) -> ExitCode:
    """What the gates say; but nothing passes of which a part was never run."""
    ran = {(trial.system, trial.task) for trial in result.trials}
    missing = any((p.system.name, p.task.name) not in ran for p in suite.pairings)
    incomplete = result.ending == "budget" and missing
    return ExitCode.INCOMPLETE if incomplete and code is ExitCode.PASS else code


def quarantined(suite: Suite) -> set[str]:
    """The tasks whose quarantine is in force."""
    today = datetime.now(tz=UTC).date()
    return {entry.task for entry in suite.quarantine if entry.in_force(today)}


def floored(suite: Suite) -> set[str]:
    """The tasks that are judged by their floor alone: they expect nothing else."""
    return {
        task.name
        for task in suite.tasks
        if task.tool_selection is not None and not task.expect and not task.steps
    }
