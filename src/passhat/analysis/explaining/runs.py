"""The runs that can be explained: outcome, calls and ending of each, grouped by system and task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from passhat.analysis.explaining.normal_calls import NormalCall, normal_calls
from passhat.dataclass import dataclass
from passhat.records import Outcome, Trials
from passhat.records.transcript import Check, Transcript, TranscriptKey, Transcripts

COSTS = ("tokens", "cost", "seconds", "tool_calls")
"""What a run took, as far as its log says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedRun:
    """One run: who tried what, how it ended, and the calls it made.

    `transcript` is None if the log keeps none: such a run counts, but cannot be compared.
    """

    system: str
    task: str
    trial: int
    outcome: Outcome
    error: str = ""
    calls: tuple[NormalCall, ...] = ()
    transcript: Transcript | None = None
    costs: Mapping[str, float] = field(default_factory=dict)

    @property
    def key(self) -> TranscriptKey:
        return self.system, self.task, self.trial

    @property
    def group(self) -> tuple[str, str]:
        """Runs are compared within one system and task."""
        return self.system, self.task

    @property
    def passed(self) -> bool:
        return self.outcome is Outcome.PASSED

    @property
    def failed(self) -> bool:
        return self.outcome is Outcome.FAILED

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools it called, in order."""
        return tuple(call.tool for call in self.calls)

    # A transcript without words is false, and may still say why the run ended.
    @property
    def expected_tool(self) -> str:
        return "" if self.transcript is None else self.transcript.expected_tool

    @property
    def stop_reason(self) -> str:
        return "" if self.transcript is None else self.transcript.stop_reason

    @property
    def exit_code(self) -> int | None:
        return None if self.transcript is None else self.transcript.exit_code

    @property
    def checks(self) -> tuple[Check, ...]:
        return () if self.transcript is None else self.transcript.checks


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ComparedRuns:
    """Runs of the tasks that both pass and fail, task after task.

    `stratum` numbers the system and task of each run, in blocks; `failed` is its outcome.
    """

    runs: tuple[ExplainedRun, ...]
    stratum: NDArray[np.int64]
    failed: NDArray[np.bool_]

    @property
    def strata(self) -> int:
        return int(self.stratum[-1]) + 1 if len(self.runs) else 0

    def blocks(self) -> Iterator[slice]:
        """The rows of each stratum."""
        bounds = np.searchsorted(self.stratum, np.arange(self.strata + 1)).tolist()
        yield from (slice(*pair) for pair in pairwise(bounds))


def explained_runs(trials: Trials, transcripts: Transcripts) -> tuple[ExplainedRun, ...]:
    """Every trial as a run, with the calls of its transcript if there is one."""
    costs = _costs(trials)
    columns = trials.system.texts(), trials.task.texts(), trials.trial.tolist()
    errors = trials.error.texts() if trials.error is not None else [None] * len(trials)
    outcomes = [Outcome(code) for code in trials.outcome.tolist()]
    found = []
    for row, (system, task, trial) in enumerate(zip(*columns, strict=True)):
        kept = transcripts.get((system or "", task or "", trial))
        transcript = Transcript.from_json(kept) if kept is not None else None
        found.append(
            ExplainedRun(
                system=system or "",
                task=task or "",
                trial=trial,
                outcome=outcomes[row],
                error=errors[row] or "",
                calls=normal_calls(transcript) if transcript else (),
                transcript=transcript,
                costs={name: float(c[row]) for name, c in costs.items() if c[row] == c[row]},
            )
        )
    return tuple(found)


def runs_by_task(runs: Iterable[ExplainedRun]) -> list[list[ExplainedRun]]:
    """The runs of each system and task, in the order in which these occur."""
    groups: dict[tuple[str, str], list[ExplainedRun]] = {}
    for run in runs:
        groups.setdefault(run.group, []).append(run)
    return list(groups.values())


def compared_runs(runs: Sequence[ExplainedRun]) -> ComparedRuns:
    """The runs with a transcript of tasks that both passed and failed; errored runs are neither."""
    judged = (r for r in runs if r.transcript is not None and r.outcome is not Outcome.ERRORED)
    groups = runs_by_task(judged)
    mixed = [group for group in groups if 0 < sum(r.failed for r in group) < len(group)]
    chosen = tuple(run for group in mixed for run in group)
    return ComparedRuns(
        runs=chosen,
        stratum=np.repeat(np.arange(len(mixed)), [len(group) for group in mixed]).astype(np.int64),
        failed=np.array([run.failed for run in chosen], dtype=bool),
    )


def _costs(trials: Trials) -> dict[str, NDArray[np.float64]]:
    features = dict(trials.features)
    sides = [features[name] for name in ("tokens_in", "tokens_out") if name in features]
    if sides and "tokens" not in features:
        features["tokens"] = np.sum(sides, axis=0)
    return {name: features[name] for name in COSTS if name in features}
