"""The answer of a run: its trials and report, why trials did not pass, and whether it passed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Literal

from passhat.dataclass import Displayed, dataclass
from passhat.messages import plural, short_repr

# Types alone: most runs are answered with a few lines on a terminal and load none of these.
if TYPE_CHECKING:
    from passhat.analysis.comparing.recovery import Recovery
    from passhat.analysis.gates.tool_selection import SelectionFloor
    from passhat.analysis.gates.verdict import Verdict, Verdicts
    from passhat.analysis.reports.report import Report
    from passhat.analysis.reports.tasks import TaskRow
    from passhat.records import Transcripts, Trials

RunOutcome = Literal["passed", "failed", "undecided", "incomplete"]

Reasons = Mapping[tuple[str, str, int], tuple[str, ...]]
"""Why trials did not pass, each by its system, its task and its number."""

_BY_EXIT_CODE: dict[int, RunOutcome] = {0: "passed", 1: "failed", 4: "undecided"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A reason why a system's trials of a task did not pass: an expectation, or an error."""

    system: str
    task: str
    reason: str
    trials: int
    errored: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCoverage:
    """Which of the tools that the servers of a suite offer were called in a run.

    >>> ToolCoverage(offered=frozenset({"a", "b"}), called=frozenset({"a"}), threshold=0.8).sentence
    'FAIL: 1 of the 2 tools of the servers was called (50 %), 80 % are demanded; never: b'
    >>> ToolCoverage(offered=frozenset({"a", "b"}), called=frozenset({"a", "b"})).sentence
    'all 2 tools of the servers were called'
    """

    offered: frozenset[str]
    called: frozenset[str]
    threshold: float | None = None

    @property
    def share(self) -> float:
        return len(self.called & self.offered) / len(self.offered)

    @property
    def passed(self) -> bool:
        return self.threshold is None or self.share >= self.threshold

    @property
    def sentence(self) -> str:
        """The share in words, and the tools that nobody called."""
        called, offered = len(self.called & self.offered), len(self.offered)
        if called == offered > 1:
            text = f"all {offered} tools of the servers were called"
        else:
            of_all = f"{called} of the {offered} tools of the servers"
            verb = "was" if called == 1 else "were"
            text = f"{of_all} {verb} called ({100 * self.share:.0f} %)"
        if self.threshold is not None:
            word = "PASS" if self.passed else "FAIL"
            text = f"{word}: {text}, {100 * self.threshold:g} % are demanded"
        never = sorted(self.offered - self.called)
        return f"{text}; never: {', '.join(never)}" if never else text


@dataclass(frozen=True, slots=True, kw_only=True)
class MoreRuns:
    """How a stored run gets more runs of its tasks, each done once for every seed of the suite.

    >>> MoreRuns(command="passhat resume latest", seeds=3).up_to(20)
    'passhat resume latest --runs 7'
    """

    command: str
    seeds: int = 1

    def up_to(self, runs: int) -> str:
        """The command that brings every task to so many runs."""
        return f"{self.command} --runs {math.ceil(runs / self.seeds)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAnswer(Displayed):
    """Everything that a run says when it is over.

    `run` is its key in `store`, `results` how a shell command names its results.
    `undone` says what an early end left out, `signal` which signal ended it. `unread` counts failed
    trials whose reasons are not among `failures`: of a long run, the last. `reasons` has them by
    trial.

    Without a gate every trial must pass, except that tasks in `quarantined` (with the reason) are
    not judged, tasks in `floored` only by their floor, and systems in `exempt` (under faults) not
    at all. `nothing_ran` says that every trial errored; `incomplete` why a run with no failed
    demand has still not passed. `by_run` asks for a test case a run where formats have test cases.
    `coverage` says which of the servers' tools were called, `cause` what goes together with failing
    beyond luck, in one sentence. `more_runs` adds to the stored run.
    """

    report: Report
    trials: Trials | None = field(default=None, repr=False)
    verdicts: Verdicts | None = None
    floors: tuple[SelectionFloor, ...] = ()
    recoveries: tuple[Recovery, ...] = ()
    failures: tuple[Failure, ...] = ()
    reasons: Reasons = field(default_factory=dict, repr=False)
    unread: int = 0
    undone: str | None = None
    transcripts: Transcripts | None = field(default=None, repr=False)
    quarantined: Mapping[str, str] = field(default_factory=dict)
    floored: frozenset[str] = frozenset()
    exempt: frozenset[str] = frozenset()
    nothing_ran: bool = False
    incomplete: str | None = None
    results: str | None = None
    store: str | None = None
    run: str | None = None
    signal: int | None = None
    by_run: bool = False
    coverage: ToolCoverage | None = None
    cause: str | None = None
    more_runs: MoreRuns | None = None

    def __repr__(self) -> str:
        trials = [] if self.trials is None else [plural(len(self.trials), "trial")]
        return short_repr("RunAnswer", self.outcome, *trials, see=".report, .verdicts, .trials")

    @property
    def judged(self) -> tuple[Verdict, ...]:
        """The verdicts of all gates; none if there is no gate."""
        return () if self.verdicts is None else self.verdicts.each

    @property
    def passed(self) -> bool:
        """Whether the run meets everything that was demanded of it."""
        return self.outcome == "passed"

    @property
    def outcome(self) -> RunOutcome:
        """How the run ended.

        Gates and floors decide if there are any: they say how many failures are allowed.
        Without a gate every expectation is a demand, so one failed trial fails the run.
        """
        if self.nothing_ran:
            return "incomplete"
        if not all(floor.passed for floor in self.floors):
            return "failed"
        if self.coverage is not None and not self.coverage.passed:
            return "failed"
        code = None if self.verdicts is None else self.verdicts.exit_code
        outcome = self._by_trials() if code is None else _BY_EXIT_CODE[code]
        return "incomplete" if self.incomplete and outcome != "failed" else outcome

    @property
    def why_not_passed(self) -> str | None:
        """Why the run has not passed, if neither a verdict nor a floor says it."""
        if self.nothing_ran:
            return "not completed: every trial errored, there is nothing to judge"
        if self.coverage is not None and not self.coverage.passed:
            return self.coverage.sentence
        if self.verdicts is not None or not all(floor.passed for floor in self.floors):
            return None
        rows, outcome = list(self._demanded()), self.outcome
        if outcome == "failed":
            rows = [row for row in rows if row.name not in self.floored]
            count, how = sum(row.runs - row.passed - row.errored for row in rows), "failed"
        else:
            count, how = sum(row.errored for row in rows), "errored"
        if not count or outcome == "passed":
            return None  # trials left undone are named together with the command that resumes
        word = "FAIL" if outcome == "failed" else "not completed"
        of_all = f"{count:,} of {plural(sum(row.runs for row in rows), 'trial')}"
        return f"{word}: {of_all} {how}. With no gate, every trial must pass."

    def _by_trials(self) -> RunOutcome:
        rows = list(self._demanded())
        if any(r.runs > r.passed + r.errored for r in rows if r.name not in self.floored):
            return "failed"
        return "incomplete" if any(row.errored for row in rows) else "passed"

    def _demanded(self) -> Iterator[TaskRow]:
        """The tasks whose single trials count, if there is no gate."""
        for system in self.report.systems:
            if system.name not in self.exempt:
                yield from (row for row in system.tasks if row.name not in self.quarantined)
