"""The answer of a run that is over: its report, why trials failed, and what was left undone."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from passhat.defaults import CONFIDENCE
from passhat.journeys.judge_agreement import judge_notes
from passhat.journeys.run_gates import floored, quarantined
from passhat.suite.fault_variants import plain_pairings, variants

if TYPE_CHECKING:
    from passhat.analysis.gates.run_answer import RunAnswer, ToolCoverage
    from passhat.analysis.gates.verdict import Verdicts
    from passhat.analysis.reports.report import Report
    from passhat.journeys.run_store import RunStore
    from passhat.records import Suite, Trials
    from passhat.runner import RunResult

RAISED_BY = {
    "max_cost": "--max-cost DOLLARS",
    "max_tokens": "--max-tokens N",
    "max_minutes": "--max-minutes N",
    "max_calls": "--max-calls N",
}
"""The option that lets a run continue after each budget has ended it."""


MOST_EXPLAINED = 500
"""Trials up to which a run looks for the cause of its failures: half a second of work."""


def conclude(
    suite: Suite,
    result: RunResult,
    opened: RunStore,
    *,
    trials: Trials,
    verdicts: Verdicts | None,
    transcripts: bool,
    coverage_threshold: float | None = None,
    notes: Sequence[str] = (),
) -> RunAnswer:
    """The answer, with everything that decides whether the run passed."""
    from passhat.analysis.comparing.recovery import measure_recovery
    from passhat.analysis.gates.run_answer import RunAnswer
    from passhat.analysis.gates.tool_selection import suite_floors
    from passhat.journeys.run_failures import count_unread, gather_failures, trial_reasons
    from passhat.records import Outcome

    confidence = suite.confidence or CONFIDENCE
    report = _report(suite, trials)
    reasons = trial_reasons(suite, result, opened)
    doubts = (*_perhaps_paid(result), *judge_notes(suite, result, opened))
    opened.keep_notes(doubts)
    answer = RunAnswer(
        report=replace(
            report,
            notes=(
                *report.notes,
                *notes,
                *doubts,
                *_covered(result, coverage_threshold),
            ),
        ),
        trials=trials,
        verdicts=verdicts,
        recoveries=measure_recovery(
            trials, variants(suite), ks=suite.ks or None, confidence=confidence
        ),
        floors=suite_floors(plain_pairings(suite), trials, confidence=confidence),
        failures=gather_failures(result, reasons),
        reasons=reasons,
        unread=count_unread(result),
        undone=undone_sentence(result, opened),
        transcripts=opened.transcripts(result.trials) if transcripts else None,
        quarantined=quarantined(suite),
        floored=floored(suite),
        exempt=frozenset(variants(suite).values()),
        nothing_ran=all(trial.outcome is Outcome.ERRORED for trial in result.trials),
        results=shlex.quote(opened.name) if opened.name else None,
        run=None if opened.run is None else opened.run.key,
        signal=result.signal,
        coverage=_coverage(result, coverage_threshold),
        cause=_cause(trials, result, opened),
        more_runs=opened.more_runs,
    )
    return replace(answer, incomplete=_incomplete(answer, suite, result))


def _cause(trials: Trials, result: RunResult, opened: RunStore) -> str | None:
    """The cause that stands out most, where runs of a task both passed and failed."""
    from passhat.analysis.explaining.explain import explain

    outcomes: dict[tuple[str, str], set[int]] = {}
    for trial in result.trials:
        outcomes.setdefault((trial.system, trial.task), set()).add(int(trial.outcome))
    mixed = any({0, 1} <= found for found in outcomes.values())
    if not mixed or len(result.trials) > MOST_EXPLAINED:
        return None
    causes = explain(trials, opened.transcripts(result.trials)).causes
    return causes[0].sentence if causes else None


def _covered(result: RunResult, threshold: float | None) -> Iterator[str]:
    if (coverage := _coverage(result, threshold)) is not None:
        yield coverage.sentence


def _coverage(result: RunResult, threshold: float | None) -> ToolCoverage | None:
    from passhat.analysis.gates.run_answer import ToolCoverage

    if not result.tools_offered:
        return None  # no servers, or none was started: nobody knows what they offer
    called = frozenset(tool for trial in result.trials for tool in trial.tools)
    return ToolCoverage(offered=result.tools_offered, called=called, threshold=threshold)


def undone_sentence(result: RunResult, opened: RunStore) -> str | None:
    """What an early end left out, and the command that resumes it."""
    if not result.undone:
        return None
    why = f"{result.limit} was reached" if result.limit else "interrupted"
    text = f"{why}: {result.undone:,} of {result.planned:,} trials were left undone"
    command = opened.resume_command
    if command is None:
        return text
    if result.limit in RAISED_BY:  # with the same limit it would stop again at once
        return f"{text}; resume with a higher limit: {command} {RAISED_BY[result.limit]}"
    return f"{text}; resume with: {command}"


def _incomplete(answer: RunAnswer, suite: Suite, result: RunResult) -> str | None:
    """Why a run with no failed demand has not passed: a part of it was never run."""
    if answer.verdicts is None:
        return "trials were left undone" if result.undone else None
    if answer.outcome == "failed" or not all(floor.passed for floor in answer.floors):
        return None
    ran = {(trial.system, trial.task) for trial in result.trials}
    missing = any((p.system.name, p.task.name) not in ran for p in suite.pairings)
    if result.ending == "budget" and missing:
        return f"{result.limit} was reached before every task was run"
    return None


def _report(suite: Suite, trials: Trials) -> Report:
    from passhat.analysis.reports.measure import measure

    report = measure(
        trials,
        ks=suite.ks or None,
        confidence=suite.confidence or CONFIDENCE,
        bars=_bars(suite, trials),
        seed=suite.seed,
    )
    return replace(report, notes=(*report.notes, *_not_run(suite, trials)))


def _not_run(suite: Suite, trials: Trials) -> list[str]:
    """Tasks that a run which ended early never came to: its numbers are not about them."""
    ran = set(trials.tasks)
    missing = [task.name for task in suite.tasks if task.name not in ran]
    return [f"not run, and not in these numbers: {', '.join(missing)}"] if missing else []


def _perhaps_paid(result: RunResult) -> Iterator[str]:
    """Calls of which nobody can say whether they were paid for."""
    if result.asked_again:
        found = ""
        if result.found:
            found = f"; the answers of {result.found:,} of them were found at the provider"
        yield (
            f"perhaps paid twice: {result.asked_again}; an earlier start of this run died while "
            f"they were on the wire, and they were asked again{found}"
        )
    if result.given_up:
        yield (
            f"perhaps paid, and not in the cost: {result.given_up}; their answers were lost: the "
            "connection was cut, or a deadline or an early end came first"
        )


def _bars(suite: Suite, trials: Trials) -> Mapping[str, float] | None:
    ran = set(trials.tasks)
    bars = {t.name: t.bar for t in suite.tasks if t.bar is not None and t.name in ran}
    return bars or None
