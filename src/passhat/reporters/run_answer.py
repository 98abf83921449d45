"""The answer of a run: its report, why trials did not pass, and what was demanded of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from passhat.messages import plural

# What draws verdicts, recoveries and pages is loaded where there are any: most runs are answered
# with a few lines on a terminal, and a run is over when they are there.
if TYPE_CHECKING:
    from passhat.analysis.comparing.recovery import Recovery
    from passhat.analysis.gates.tool_selection import SelectionFloor
    from passhat.analysis.gates.verdict import Verdicts
    from passhat.analysis.reports.report import Report
    from passhat.reporters.page_transcripts import PageTranscripts

MOST_FAILURES = 8
LONGEST_REASON = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A reason why a system's trials of a task did not pass: an expectation, or an error."""

    system: str
    task: str
    reason: str
    trials: int
    errored: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAnswer:
    """Everything that a run says when it is over. `undone` is what an early end left out.

    `unread` counts failed trials whose reasons are not among `failures`: of a long run, the last.

    What decides where there is no gate: the tasks in `quarantined` (with the reason) are not
    judged, those in `floored` by their floor alone, the systems in `exempt` (under faults) not at
    all. `nothing_ran` says that every trial errored, `incomplete` why a run that no demand failed
    has not passed either. `results` is where the trials are kept, for the commands it advises.
    """

    report: Report
    verdicts: Verdicts | None = None
    floors: tuple[SelectionFloor, ...] = ()
    recoveries: tuple[Recovery, ...] = ()
    failures: tuple[Failure, ...] = ()
    unread: int = 0
    undone: str | None = None
    transcripts: PageTranscripts | None = None
    quarantined: Mapping[str, str] = field(default_factory=dict)
    floored: frozenset[str] = frozenset()
    exempt: frozenset[str] = frozenset()
    nothing_ran: bool = False
    incomplete: str | None = None
    results: str | None = None


def failure_lines(answer: RunAnswer, *, most: int) -> list[str]:
    """The most frequent reasons: the task, how many trials, and why; the system where several.

    How many more there are, and where, is said at the end.
    """
    failures = answer.failures
    several = len({one.system for one in failures}) > 1
    lines = [
        f"{f'{one.system}, ' if several else ''}{one.task}, {plural(one.trials, 'trial')}: "
        f"{'error: ' if one.errored else ''}{one.reason[:LONGEST_REASON]}"
        for one in failures[:most]
    ]
    kept = "" if answer.results is None else " (`passhat view` shows every trial)"
    if len(failures) > most:
        more = plural(len(failures) - most, "more reason")
        lines.append(f"{more}: --json lists them all{kept}")
    if answer.unread:
        more = plural(answer.unread, "further failed trial")
        lines.append(f"{more}: why was not looked for{kept}")
    return lines
