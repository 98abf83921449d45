"""Failed runs grouped by what went wrong, each group with its size, its tasks and one example."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from passhat.analysis.explaining.divergence import Divergence
from passhat.analysis.explaining.normal_calls import masked_text
from passhat.analysis.explaining.runs import ExplainedRun
from passhat.dataclass import short_dataclass
from passhat.records import Outcome
from passhat.records.transcript import Check, TranscriptKey
from passhat.records.trial import natural_key
from passhat.stats.estimate import Estimate
from passhat.stats.proportions import share_estimate

USUAL_STOPS = frozenset(
    {"", "done", "stop", "end_turn", "stop_sequence", "tool_calls", "tool_use", "exit", "user_stop"}
    | {"agent_stop", "completed"}
)
"""Reasons to stop that do not say what went wrong."""

_EXIT_TARGET = "exit_code"
"""What the runner names a check after when a program ended with a code that is not allowed."""

SHARED_STOP = 0.5
"""A reason to stop that this share of passing runs has does not explain a failure."""

ERROR, STOP, CHECK, OTHER = "error", "stop reason", "failed check", "other argument"
TOOL_ERROR, UNCOMPARED, SILENT = "tool error", "never passes", "no transcript"
EXIT = "exit code"

LOGGED = frozenset({ERROR, STOP, CHECK, EXIT})
"""What the log itself says about a run."""


@short_dataclass(frozen=True, slots=True, kw_only=True)
class Category:
    """Failed runs that went wrong in the same way.

    `kind` is the sort of thing that went wrong and `what` the thing: the check, the reason, the
    tool. `share` is among all failed runs, on these tasks. `arguments` are those that differ,
    if that is what went wrong, the most frequent first.
    """

    kind: str
    what: str
    arguments: tuple[str, ...]
    share: Estimate
    tasks: tuple[str, ...]
    example: TranscriptKey
    runs: tuple[TranscriptKey, ...]

    @property
    def count(self) -> int:
        return len(self.runs)


def failure_categories(
    runs: Sequence[ExplainedRun], found: Sequence[Divergence], *, confidence: float
) -> tuple[Category, ...]:
    """Every failed or errored run in one category, the largest category first.

    What the log itself says comes first: an error, the reason to stop (unless most passing runs
    stop with it too), the exit code of a program, the check that failed. Without any, it is the
    first difference from a passing run of the task.
    """
    by_run = {one.run.key: one for one in found}
    usual = USUAL_STOPS | _stops_of_passing_runs(runs)
    return _grouped(
        [(run, _kind_and_what(run, by_run.get(run.key), usual)) for run in runs if not run.passed],
        by_run,
        confidence,
    )


def divergence_categories(
    found: Sequence[Divergence], *, confidence: float
) -> tuple[Category, ...]:
    """The failing runs of tasks that also passed, by how they first differ from a passing run."""
    by_run = {one.run.key: one for one in found}
    return _grouped([(one.run, _first_difference(one)) for one in found], by_run, confidence)


def _stops_of_passing_runs(runs: Sequence[ExplainedRun]) -> frozenset[str]:
    """The reason with which most passing runs stop."""
    stops = Counter(run.stop_reason for run in runs if run.passed)
    return frozenset(
        reason for reason, count in stops.items() if count >= SHARED_STOP * stops.total()
    )


def _kind_and_what(
    run: ExplainedRun, divergence: Divergence | None, usual: frozenset[str]
) -> tuple[str, str]:
    if run.outcome is Outcome.ERRORED:
        text = run.error or ("" if run.transcript is None else run.transcript.error)
        return ERROR, masked_text(text) or "errored without a message"
    if run.stop_reason not in usual:
        return STOP, run.stop_reason
    broken = [check for check in run.checks if check.score is not None and check.score < 1]
    if run.exit_code and (not broken or broken[0].target == _EXIT_TARGET):
        return EXIT, _exit_words(run)
    if broken:
        return CHECK, _check_words(broken[0])
    if divergence is not None:
        return _first_difference(divergence)
    if run.transcript is None:
        return SILENT, "nothing to read"
    if run.calls and run.calls[-1].error is not None:
        return TOOL_ERROR, f"{run.calls[-1].tool}: {run.calls[-1].error}"
    return UNCOMPARED, "nothing to compare with"


def _exit_words(run: ExplainedRun) -> str:
    """The code, and the last line that the program wrote before it ended."""
    said = run.transcript.stderr.strip() if run.transcript is not None else ""
    last = masked_text(said.splitlines()[-1]) if said else ""
    return f"{run.exit_code}: {last}" if last else f"{run.exit_code}"


def _first_difference(one: Divergence) -> tuple[str, str]:
    if one.kind == "no difference":
        return one.kind, "read the answer"
    return one.kind, one.tool


def _check_words(check: Check) -> str:
    """A check by its name and what it found, without what differs from run to run."""
    name = " ".join(part for part in (check.target, check.matcher) if part) or "a check"
    message = masked_text(check.message)
    return f"{name}: {message}" if message else name


def _grouped(
    found: Sequence[tuple[ExplainedRun, tuple[str, str]]],
    by_run: Mapping[TranscriptKey, Divergence],
    confidence: float,
) -> tuple[Category, ...]:
    groups: dict[tuple[str, str], list[ExplainedRun]] = {}
    for run, key in found:
        groups.setdefault(key, []).append(run)
    categories = [
        Category(
            kind=kind,
            what=what,
            arguments=_arguments([by_run[run.key] for run in runs]) if kind == OTHER else (),
            share=share_estimate(len(runs), len(found), confidence=confidence),
            tasks=tuple(sorted({run.task for run in runs}, key=natural_key)),
            example=runs[0].key,
            runs=tuple(run.key for run in runs),
        )
        for (kind, what), runs in groups.items()
    ]
    return tuple(sorted(categories, key=lambda one: (-one.count, one.kind, one.what)))


def _arguments(found: Sequence[Divergence]) -> tuple[str, ...]:
    names = Counter(name for one in found for name in one.arguments)
    return tuple(name or "its argument" for name, _ in names.most_common())
