"""The answer of a run that is over: its report, why trials failed, and what was left undone."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from passhat.arguments import CONFIDENCE
from passhat.journeys.gating import floored, quarantined
from passhat.messages import plural
from passhat.records.suite import plain_pairings, variants
from passhat.records.trial import Outcome

if TYPE_CHECKING:
    from passhat.analysis.gates.gate import Verdicts
    from passhat.analysis.gates.run_answer import (
        Failure,
        Reasons,
        Recovery,
        RunAnswer,
        ToolCoverage,
    )
    from passhat.analysis.reports.report import Report
    from passhat.journeys.run_store import OpenRun
    from passhat.records import Suite, Trial, Trials
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

MOST_TRIALS = 1_000
"""Trials whose transcripts are read: enough to see what goes wrong, however long the run."""

_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}\b")
"""The address of an object in memory, which differs from trial to trial."""


def build_answer(
    suite: Suite,
    result: RunResult,
    opened: OpenRun,
    *,
    trials: Trials,
    verdicts: Verdicts | None,
    transcripts: bool,
    coverage_threshold: float | None = None,
    notes: Sequence[str] = (),
    judges: bool = True,
) -> RunAnswer:
    """The answer, with everything that decides whether the run passed.

    A shard is the part of a run that `judges` nothing.
    """
    from passhat.analysis.gates.run_answer import RunAnswer, suite_floors

    confidence = suite.confidence or CONFIDENCE
    report = _report(suite, trials)
    reasons = _trial_reasons(suite, result, opened)
    unread = _not_passed(result)[MOST_TRIALS:]
    doubts = (*_perhaps_paid(result), *_judge_notes(suite, result, opened))
    coverage = _coverage(result, coverage_threshold)
    covered = () if coverage is None else (coverage.sentence,)
    opened.store_notes(doubts)
    answer = RunAnswer(
        report=replace(report, notes=(*report.notes, *notes, *doubts, *covered)),
        trials=trials,
        verdicts=verdicts,
        recoveries=_recoveries(suite, trials, confidence),
        floors=(
            suite_floors(plain_pairings(suite), trials, confidence=confidence) if judges else ()
        ),
        failures=_gather_failures(result, reasons),
        reasons=reasons,
        unread=sum(trial.outcome is Outcome.FAILED for trial in unread),
        undone=undone_sentence(result, opened),
        transcripts=opened.transcripts(result.trials) if transcripts else None,
        quarantined=quarantined(suite),
        floored=floored(suite),
        exempt=frozenset(variants(suite).values() if judges else trials.systems),
        nothing_ran=all(trial.outcome is Outcome.ERRORED for trial in result.trials),
        results=opened.results,
        store=opened.store,
        run=None if opened.run is None else opened.run.key,
        signal=result.signal,
        coverage=coverage,
        cause=_cause(trials, result, opened),
        more_runs=opened.more_runs,
    )
    return replace(answer, incomplete=_incomplete(answer, suite, result))


def _recoveries(suite: Suite, trials: Trials, confidence: float) -> tuple[Recovery, ...]:
    """How each system that also ran under faults recovers from them."""
    if not (faulty := variants(suite)):
        return ()
    from passhat.analysis.gates.run_answer import measure_recovery

    return measure_recovery(trials, faulty, ks=suite.ks or None, confidence=confidence)


def _cause(trials: Trials, result: RunResult, opened: OpenRun) -> str | None:
    """The most prominent cause of failures, if runs of a task both passed and failed."""
    outcomes: dict[tuple[str, str], set[int]] = {}
    for trial in result.trials:
        outcomes.setdefault((trial.system, trial.task), set()).add(int(trial.outcome))
    mixed = any({0, 1} <= seen for seen in outcomes.values())
    if not mixed or len(result.trials) > MOST_EXPLAINED:
        return None
    from passhat.analysis.explaining.explain import explain

    causes = explain(trials, opened.transcripts(result.trials)).causes
    return causes[0].sentence if causes else None


def _coverage(result: RunResult, threshold: float | None) -> ToolCoverage | None:
    from passhat.analysis.gates.run_answer import ToolCoverage

    if not result.tools_offered:
        return None  # no servers, or none was started: what they offer is not known
    called = frozenset(tool for trial in result.trials for tool in trial.tools)
    return ToolCoverage(offered=result.tools_offered, called=called, threshold=threshold)


def undone_sentence(result: RunResult, opened: OpenRun) -> str | None:
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
    """The report, with a note on the tasks that the run did not get to before it ended early."""
    from passhat.analysis.reports.measure import measure

    ran = set(trials.tasks)
    report = measure(
        trials,
        ks=suite.ks or None,
        confidence=suite.confidence or CONFIDENCE,
        bars={task: bar for task, bar in suite.bars.items() if task in ran} or None,
        seed=suite.seed,
    )
    if missing := [task.name for task in suite.tasks if task.name not in ran]:
        note = f"not run, and not in these numbers: {', '.join(missing)}"
        report = replace(report, notes=(*report.notes, note))
    return report


def _perhaps_paid(result: RunResult) -> Iterator[str]:
    """Calls that may or may not have been paid for."""
    if result.asked_again:
        answers = f"; the answers of {result.found:,} of them were found at the provider"
        yield (
            f"perhaps paid twice: {result.asked_again}; an earlier start of this run died while "
            f"they were on the wire, and they were asked again{answers if result.found else ''}"
        )
    if result.given_up:
        yield (
            f"perhaps paid, and not in the cost: {result.given_up}; their answers were lost: the "
            "connection was cut, or a deadline or an early end came first"
        )


def _judge_notes(suite: Suite, result: RunResult, opened: OpenRun) -> Iterator[str]:
    """What is known of the judge's reliability; nothing for a suite without a judge."""
    every = (expectation for task in suite.tasks for expectation in task.expectations())
    rubrics = [expectation for expectation in every if expectation.matcher == "judge"]
    if not rubrics:
        return
    if all(int(rubric.options.get("repeats") or 1) < 2 for rubric in rubrics):
        yield (
            "the judge was asked once about each answer, so its agreement with itself is unknown: "
            "`judge: {repeats: 3}` measures it"
        )
        return
    judged = {
        task.name
        for task in suite.tasks
        if task.steps or any(expectation.matcher == "judge" for expectation in task.expect)
    }
    trials = tuple(trial for trial in result.trials if trial.task in judged)[:MOST_TRIALS]
    shares = [
        check["disagreement"]
        for text in opened.transcripts(trials).values()
        for check in json.loads(text).get("checks", ())
        if check.get("disagreement") is not None
    ]
    if shares:
        mean, split = sum(shares) / len(shares), sum(share > 0 for share in shares)
        yield (
            f"the judge disagreed with itself in {100 * mean:.0f} % of pairs of readings; its "
            f"readings of {split:,} of {plural(len(shares), 'answer')} were split"
        )


def _trial_reasons(suite: Suite, result: RunResult, opened: OpenRun) -> Reasons:
    """Why each trial did not pass, for the first `MOST_TRIALS` of them."""
    stopped = _not_passed(result)
    failed = [trial for trial in stopped[:MOST_TRIALS] if trial.outcome is Outcome.FAILED]
    transcripts = opened.transcripts(failed)
    tools = {t.name: t.tool_selection.expected_tool for t in suite.tasks if t.tool_selection}
    return {
        key: tuple(dict.fromkeys(_reasons(trial, transcripts.get(key), tools.get(trial.task))))
        for trial in stopped
        for key in [(trial.system, trial.task, trial.trial)]
    }


def _gather_failures(result: RunResult, reasons: Reasons) -> tuple[Failure, ...]:
    """Every reason with the trials it stopped, the most frequent first."""
    from passhat.analysis.gates.run_answer import Failure

    counts: Counter[tuple[str, str, str, bool]] = Counter()
    for trial in result.trials:
        errored = trial.outcome is Outcome.ERRORED
        of_trial = reasons.get((trial.system, trial.task, trial.trial), ())
        for reason in dict.fromkeys(_ADDRESS.sub("0x…", reason) for reason in of_trial):
            counts[trial.system, trial.task, reason, errored] += 1
    return tuple(
        Failure(system=system, task=task, reason=reason, trials=number, errored=errored)
        for (system, task, reason, errored), number in counts.most_common()
    )


def _not_passed(result: RunResult) -> list[Trial]:
    return [trial for trial in result.trials if trial.outcome is not Outcome.PASSED]


def _reasons(trial: Trial, transcript: str | None, tool: str | None) -> Iterator[str]:
    if trial.error is not None:
        yield trial.error
        return
    if transcript is None:
        return
    stored: dict[str, Any] = json.loads(transcript)
    failed = [check for check in stored.get("checks", ()) if check["score"] < 1]
    if cut := [check for check in failed if check["target"] == "stop_reason"]:
        yield cut[0]["message"]  # what was expected of an answer that never came says nothing
        return
    if failed and stored.get("exit_code"):
        yield _ending(stored)  # a crash explains what was not said
    for check in failed:
        yield check["message"]
    if failed:
        return
    if tool is not None and tool not in trial.tools:
        yield f"{tool} was not called; called: {', '.join(trial.tools) or 'nothing'}"
    else:
        yield _ending(stored)


def _ending(stored: dict[str, Any]) -> str:
    """How an attempt ended that met every expectation but did not pass."""
    if stored.get("exit_code"):
        from passhat.runner.processes import exit_sentence

        return exit_sentence(stored["exit_code"], stored.get("stderr", ""))
    reason = stored.get("stop_reason")
    return f"stopped by its {reason}" if reason in ("timeout", "budget") else "did not pass"
