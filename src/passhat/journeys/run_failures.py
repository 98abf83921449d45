"""Why trials did not pass: expectations that failed and errors, counted by system and task."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from passhat.analysis.gates.run_answer import Failure, Reasons
    from passhat.journeys.run_store import RunStore
    from passhat.records import Suite, Trial
    from passhat.runner import RunResult

ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}\b")
"""The address of an object in memory, which differs from trial to trial."""

MOST_TRIALS = 1_000
"""Trials whose transcripts are read: enough to see what goes wrong, however long the run."""


def trial_reasons(suite: Suite, result: RunResult, store: RunStore) -> Reasons:
    """Why each trial did not pass, for the first `MOST_TRIALS` of them."""
    from passhat.records import Outcome

    stopped = [trial for trial in result.trials if trial.outcome is not Outcome.PASSED]
    said = store.transcripts(tuple(t for t in stopped[:MOST_TRIALS] if t.outcome is Outcome.FAILED))
    tools = {t.name: t.tool_selection.expected_tool for t in suite.tasks if t.tool_selection}
    return {
        key: tuple(dict.fromkeys(_reasons(trial, said.get(key), tools.get(trial.task))))
        for trial in stopped
        for key in [(trial.system, trial.task, trial.trial)]
    }


def gather_failures(result: RunResult, reasons: Reasons) -> tuple[Failure, ...]:
    """Every reason with the trials it stopped, the most frequent first."""
    from passhat.analysis.gates.run_answer import Failure
    from passhat.records import Outcome

    counts: Counter[tuple[str, str, str, bool]] = Counter()
    for trial in result.trials:
        errored = trial.outcome is Outcome.ERRORED
        of_trial = reasons.get((trial.system, trial.task, trial.trial), ())
        for reason in dict.fromkeys(ADDRESS.sub("0x…", reason) for reason in of_trial):
            counts[trial.system, trial.task, reason, errored] += 1
    return tuple(
        Failure(system=system, task=task, reason=reason, trials=number, errored=errored)
        for (system, task, reason, errored), number in counts.most_common()
    )


def count_unread(result: RunResult) -> int:
    """How many failed trials there are beyond those whose transcripts are read."""
    from passhat.records import Outcome

    stopped = [trial for trial in result.trials if trial.outcome is not Outcome.PASSED]
    return sum(trial.outcome is Outcome.FAILED for trial in stopped[MOST_TRIALS:])


def _reasons(trial: Trial, transcript: str | None, tool: str | None) -> Iterator[str]:
    if trial.error is not None:
        yield trial.error
        return
    if transcript is None:
        return
    kept: dict[str, Any] = json.loads(transcript)
    failed = [check for check in kept.get("checks", ()) if check["score"] < 1]
    if cut := [check for check in failed if check["target"] == "stop_reason"]:
        yield cut[0]["message"]  # what was expected of an answer that never came says nothing
        return
    if failed and kept.get("exit_code"):
        yield _ending(kept)  # a crash explains what was not said
    for check in failed:
        yield check["message"]
    if failed:
        return
    if tool is not None and tool not in trial.tools:
        yield f"{tool} was not called; called: {', '.join(trial.tools) or 'nothing'}"
    else:
        yield _ending(kept)


def _ending(kept: dict[str, Any]) -> str:
    """How an attempt ended that no expectation speaks about."""
    if kept.get("exit_code"):
        from passhat.runner.agents.command import exit_sentence

        return exit_sentence(kept["exit_code"], kept.get("stderr", ""))
    reason = kept.get("stop_reason")
    return f"stopped by its {reason}" if reason in ("timeout", "budget") else "did not pass"
