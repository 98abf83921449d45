"""The answer of a run: its trials and report, why trials did not pass, and whether it passed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from passhat.analysis.reports.evidence import Evidence, count_evidence
from passhat.arguments import CONFIDENCE
from passhat.dataclass import Displayed, dataclass, formerly, result_dataclass
from passhat.messages import halves_away, percent, plural, points, short_repr
from passhat.records import Outcome, Pairing, ToolSelection, Trials
from passhat.records.tally import Categorical
from passhat.records.trial import USED
from passhat.stats.estimate import Estimate, Interval, Number, ratio_of
from passhat.stats.proportions import lower_bound, proportion_interval, share_estimate
from passhat.stats.suite_mean import suite_estimate

if TYPE_CHECKING:
    from passhat.analysis.comparing.comparison import Comparison
    from passhat.analysis.comparing.trends import RunVerdict
    from passhat.analysis.explaining.explain import Explanation
    from passhat.analysis.gates.gate import Status, Verdict, Verdicts
    from passhat.analysis.reports.parts import TaskRow
    from passhat.analysis.reports.report import Report
    from passhat.records import Transcripts


RunOutcome = Literal["passed", "failed", "undecided", "incomplete"]

Reasons = Mapping[tuple[str, str, int], tuple[str, ...]]
"""Why trials did not pass, each by its system, its task and its number."""

_BY_EXIT_CODE: dict[int, RunOutcome] = {0: "passed", 1: "failed", 4: "undecided"}


EVERY_TRIAL = "; without a gate every trial must pass."
"""The rule that failed a run without gates."""


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
    'FAIL: 1 of the 2 tools of the servers was called (50%), 80% are demanded; never: b'
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
            text = f"{of_all} {verb} called ({percent(self.share)})"
        if self.threshold is not None:
            word = "PASS" if self.passed else "FAIL"
            text = f"{word}: {text}, {100 * self.threshold:g}% are demanded"
        never = sorted(self.offered - self.called)
        return f"{text}; never: {', '.join(never)}" if never else text


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeBill:
    """What the judge (or the simulated users) took for so many trials, beside the agents.

    Budgets count it, the figures of trials do not. None is what nobody knows.

    >>> JudgeBill(trials=5, calls=15, cost=0.0121, tokens=5257).sentence
    'the judge took $0.0121 and 5,257 tokens in 15 calls'
    """

    trials: int
    calls: int
    cost: float | None
    tokens: int | None

    @property
    def sentence(self) -> str:
        return self.took("the judge")

    def took(self, who: str) -> str:
        """The bill in words."""
        cost = "a cost that nobody knows" if self.cost is None else f"${self.cost:,.4f}"
        used = "" if self.tokens is None else f" and {self.tokens:,} tokens"
        return f"{who} took {cost}{used} in {plural(self.calls, 'call')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MoreRuns:
    """How a stored run gets more runs of its tasks, each done once for every seed of the suite.

    >>> MoreRuns(command="passhat run --resume latest", seeds=3).up_to(20)
    'passhat run --resume latest --trials 7'
    """

    command: str
    seeds: int = 1

    def up_to(self, runs: int) -> str:
        """The command that brings every task to so many runs."""
        return f"{self.command} --trials {math.ceil(runs / self.seeds)}"


@result_dataclass(frozen=True, slots=True, kw_only=True)
class WorseTask:
    """A task that one agent passes less often than another: passes and trials of both."""

    task: str
    passed: tuple[int, int]
    before: tuple[int, int]
    significant: bool


@result_dataclass(frozen=True, slots=True, kw_only=True)
class Lift:
    """An agent against the one that a gate compares it with: what it gains, takes and uses.

    `difference` is what the verdict rests on; its ends hold however early the run was stopped.
    `first_trials` counts the trials of both that it is of, where more were run than decided it.
    `passed` counts trials of both, `means` has what a trial of each took, and `used` in how many
    trials the agent made use of each file that it alone was given: None where nobody can see it.
    `worse` are the tasks on which it passed less often, the most certain first. `reused` names the
    earlier run whose trials stand in for the baseline.
    """

    system: str
    baseline: str
    difference: Number
    passed: tuple[tuple[int, int], tuple[int, int]]
    means: Mapping[str, tuple[float, float]]
    used: Mapping[str, int | None]
    tasks: int
    worse: tuple[WorseTask, ...]
    reused: str | None = None
    first_trials: int | None = None

    @property
    def more_of(self) -> Mapping[str, float]:
        """How much more of each thing a trial takes than one of the other agent: 0.5 is +50%."""
        return {name: own / other - 1 for name, (own, other) in self.means.items() if other}


def lift_of(
    verdict: Verdict, agent: Trials, baseline: Trials, *, added: Sequence[str] = ()
) -> Lift:
    """What a verdict on a difference leaves open: at what price, on which tasks, with its files?

    `added` names the files that the agent alone was given.
    """
    from passhat.analysis.comparing.comparison import compare

    tasks = compare(agent, baseline).tasks
    marked = {name: int(agent.has_word("tags", f"{USED}{name}").sum()) for name in added}
    seen = "tool_calls" in agent.features and bool(np.nansum(agent.features["tool_calls"]))
    means = {
        name: both
        for name in ("cost", "tokens", "seconds")
        if not any(map(math.isnan, both := (_mean(agent, name), _mean(baseline, name))))
    }
    if len(means) > 1:
        means.pop("seconds", None)  # they depend on the machine; tokens do not
    early = verdict.evidence == "sequential" and verdict.runs < len(agent) + len(baseline)
    return Lift(
        first_trials=verdict.runs if early else None,
        system=agent.systems[0],
        baseline=baseline.systems[0],
        difference=verdict.estimate,
        passed=(_passes(agent), _passes(baseline)),
        means=means,
        used={name: count if count or seen else None for name, count in marked.items()},
        tasks=len(tasks),
        worse=tuple(
            WorseTask(
                task=lift.name,
                passed=lift.first,
                before=lift.second,
                significant=lift.answer == "worse",
            )
            for lift in sorted(tasks, key=lambda task: (task.p_value, task.difference))
            if lift.difference < 0
        ),
    )


def _passes(trials: Trials) -> tuple[int, int]:
    return int(np.count_nonzero(trials.outcome == Outcome.PASSED)), len(trials)


def _mean(trials: Trials, name: str) -> float:
    """What a trial took; not a number if no trial says it."""
    features = trials.features
    parts = [features[name]] if name in features else []
    if name == "tokens" and not parts:
        parts = [features[part] for part in ("tokens_in", "tokens_out") if part in features]
    total = np.sum(parts, axis=0)
    return float(np.nanmean(total)) if parts and not np.isnan(total).all() else math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAnswer(Displayed):
    """Everything that a run says when it is over.

    `run` is its key in `store`, `results` how a shell command names its results.
    `undone` says what an early end left out, `signal` which signal ended it. `unread` counts failed
    trials whose reasons are not among `failures`: of a long run, the last. `reasons` has them by
    trial.

    Without a gate every trial must pass, except that tasks in `quarantined` (with the reason) are
    not judged, tasks in `floored` only by their floor, and systems in `exempt` not at all; tasks
    under conditions are no part of the report's. `nothing_ran` says that every trial errored, and
    then nothing is judged; `incomplete` why a run with no failed demand has still not passed.
    `warnings` are those notes of the report that the first screen shows too.
    `by_run` asks for a test case a run where formats have test cases. `coverage` says which of the
    servers' tools were called, `cause` what goes together with failing beyond luck, in one
    sentence. `judge` is the bill of the judge, and `more_runs` adds to the stored run. `lifts` has
    each agent against the one that a gate compares it with. `late` counts trials of a run that its
    gates ended which are in none of their verdicts; None where that is not known.
    """

    report: Report
    trials: Trials | None = field(default=None, repr=False)
    verdicts: Verdicts | None = None
    floors: tuple[SelectionFloor, ...] = ()
    recoveries: tuple[Recovery, ...] = ()
    lifts: tuple[Lift, ...] = ()
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
    warnings: tuple[str, ...] = ()
    results: str | None = None
    store: str | None = None
    run: str | None = None
    signal: int | None = None
    by_run: bool = False
    coverage: ToolCoverage | None = None
    cause: str | None = None
    judge: JudgeBill | None = None
    more_runs: MoreRuns | None = None
    late: int | None = None

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
        return f"{word}: {of_all} {how}{EVERY_TRIAL}"

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


# How well agents recover from faults: the same tasks with and without them.

STRUCK, AFTER = "fault:", "after-fault:"
"""How trials are tagged: by the faults that struck them, and by what the agent did next."""

WITHOUT, UNDER = "fault=none", "fault=all"
"""The conditions of trials without faults, and with them."""

_KS = (1, 2, 3, 5, 10)


@result_dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryAt:
    """pass^k under faults against pass^k without; `score` is their ratio, 1 for full recovery."""

    k: int
    without: Number
    under: Number
    score: Number


@result_dataclass(frozen=True, slots=True, kw_only=True)
class FaultKindReport:
    """How often the trials struck by one kind of fault passed; `score` is against no faults."""

    kind: str
    trials: int
    rate: Number
    score: Number


@result_dataclass(frozen=True, slots=True, kw_only=True)
class ReactionReport:
    """What agents did after a fault, in how many trials, and how often these passed."""

    reaction: str
    trials: int
    share: Estimate
    rate: Estimate


@result_dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """One system with and without faults, on the tasks that were run both ways."""

    system: str
    tasks: int
    struck: int
    trials: int
    levels: tuple[RecoveryAt, ...]
    kinds: tuple[FaultKindReport, ...]
    reactions: tuple[ReactionReport, ...]


def measure_recovery(
    trials: Trials, *, ks: Sequence[int] | None = None, confidence: float = CONFIDENCE
) -> tuple[Recovery, ...]:
    """How each system recovers from faults, where its tasks were run with and without them.

    Only the runs are random here: the tasks are the same both ways. Errored trials count as
    failures: whether the agent survives a crash is the question.

    >>> table = Trials.from_columns(
    ...     task=["a"] * 8, at=[["fault=none"]] * 4 + [["fault=all"]] * 4, passed=[1] * 6 + [0] * 2
    ... )
    >>> (recovery,) = measure_recovery(table, ks=[1])
    >>> recovery.levels[0].score.value
    0.5
    """
    if not {WITHOUT, UNDER} <= set(trials.words("at")):
        return ()
    recoveries = (
        _recovery(trials.where(system=name), ks=ks, confidence=confidence)
        for name in trials.systems
    )
    return tuple(recovery for recovery in recoveries if recovery is not None)


def _recovery(trials: Trials, *, ks: Sequence[int] | None, confidence: float) -> Recovery | None:
    rows = [trials.has_word("at", word) for word in (WITHOUT, UNDER)]
    if trials.at is None or not all(side.any() for side in rows):
        return None
    # With each other user and wording a task is one of its own, on both sides.
    kept = ([w for w in words if w not in (WITHOUT, UNDER)] for words in trials.conditions())
    at = Categorical.of([*("\0".join(words) or None for words in kept), None])
    at = Categorical(at.names, at.codes[trials.at.codes])
    cells = replace(trials, task=trials.bases(), base=None, at=at).crossed()
    without, under = (cells.take(side) for side in rows)
    plain, broken = _shared(without, under)
    if not ks:
        fewest = min((int(s.runs.min()) for s in (plain, broken) if s.tasks), default=0)
        ks = [k for k in _KS if k <= fewest] or [1]
    levels = []
    for k in ks:
        clean_rate, faulty_rate = (_pass_hat(side, k, confidence) for side in (plain, broken))
        score = ratio_of(faulty_rate, clean_rate)
        levels.append(RecoveryAt(k=k, without=clean_rate, under=faulty_rate, score=score))
    struck = int(_any_word(under, STRUCK).sum())
    words = under.words("tags")
    return Recovery(
        system=trials.systems[0],
        tasks=len(plain.tasks),
        struck=struck,
        trials=len(under),
        levels=tuple(levels),
        kinds=tuple(
            _kind(without, under, word, confidence) for word in words if word.startswith(STRUCK)
        ),
        reactions=tuple(
            _reaction(under, word, struck, confidence) for word in words if word.startswith(AFTER)
        ),
    )


def _shared(trials: Trials, other: Trials) -> tuple[Evidence, Evidence]:
    """Both sides on the tasks that both ran; an error counts as a failure."""
    first, second = count_evidence(trials.tally()), count_evidence(other.tally())
    there = set(second.tasks)
    names = [name for name in first.tasks if name in there]
    return first.only(names), second.only(names)


def _pass_hat(side: Evidence, k: int, confidence: float) -> Number:
    return suite_estimate(side.runs, side.passes, k=k, confidence=confidence)


def _kind(without: Trials, under: Trials, word: str, confidence: float) -> FaultKindReport:
    rows = under.where(tag=word)
    plain, broken = (_pass_hat(side, 1, confidence) for side in _shared(without, rows))
    return FaultKindReport(
        kind=word.removeprefix(STRUCK), trials=len(rows), rate=broken, score=ratio_of(broken, plain)
    )


def _reaction(under: Trials, word: str, struck: int, confidence: float) -> ReactionReport:
    rows = under.where(tag=word)
    passed = int(np.count_nonzero(rows.outcome == Outcome.PASSED))
    return ReactionReport(
        reaction=word.removeprefix(AFTER),
        trials=len(rows),
        share=share_estimate(len(rows), max(struck, len(rows)), confidence=confidence),
        rate=share_estimate(passed, len(rows), confidence=confidence),
    )


def _any_word(trials: Trials, prefix: str) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    has_any = np.zeros(len(trials), dtype=bool)
    for word in trials.words("tags"):
        if word.startswith(prefix):
            has_any |= trials.has_word("tags", word)
    return has_any


@result_dataclass(frozen=True, slots=True, kw_only=True)
class SelectionFloor:
    """Whether an agent's runs keep to the floor of its task.

    `line` has the form that users of agent suites know; `detail` adds what it leaves out.
    """

    label: str
    demand: ToolSelection
    selected: int
    runs: int
    errored: int
    max_tokens: int | None
    interval: Interval
    bound: float
    confidence: float

    @property
    def passed(self) -> bool:
        """One run over the tokens breaks the floor even if every run chose well."""
        return self.runs > 0 and not self._over_tokens and not self._too_few

    @property
    def _over_tokens(self) -> bool:
        limit = self.demand.max_total_tokens
        return limit is not None and self.max_tokens is not None and self.max_tokens > limit

    @property
    def _too_few(self) -> bool:
        rate = self.bound if self.demand.bound else self.rate
        return rate < self.demand.min_selection_rate

    @property
    def rate(self) -> float:
        return self.selected / self.runs if self.runs else 0.0

    @property
    def status(self) -> str:
        return "PASS" if self.passed else "FAIL"

    @property
    def line(self) -> str:
        """One line of the form that tools before it print, and why the floor fails.

        `pass^k` is here what those tools call so: the share of runs that called the tool.
        """
        share = f"{halves_away(100 * self.rate):.0f}%"
        tokens = "unknown" if self.max_tokens is None else str(self.max_tokens)
        text = (
            f"tool-selection floor [{self.status}] {self.label}: selection "
            f"{self.selected}/{self.runs} ({share}), pass^k {share}, max tokens {tokens}"
        )
        return f"{text}; {self.why_failed}" if self.why_failed else text

    @property
    def why_failed(self) -> str:
        """What breaks the floor: too few calls, too many tokens, or both; empty if it holds."""
        demand, reasons = self.demand, []
        if not self.runs:
            reasons.append("there is no trial")
        elif self._too_few:
            rate, what = (self.bound, "at least") if demand.bound else (self.rate, "in")
            reasons.append(
                f"{demand.expected_tool} was called {what} {percent(rate)} of the trials, and "
                f"{100 * demand.min_selection_rate:g}% are demanded"
            )
        if self._over_tokens:
            allowed = demand.max_total_tokens
            reasons.append(f"a trial took {self.max_tokens} tokens, and {allowed} are allowed")
        return "; ".join(reasons)

    @property
    def detail(self) -> str:
        """What the line cannot say: how sure the rate is, and what it calls `pass^k`."""
        low, high = map(points, (self.interval.low, self.interval.high))
        text = (
            f"{self.demand.expected_tool} was called in {self.selected} of {self.runs} trials: "
            f"{low} to {high}% at {100 * self.confidence:.4g}% confidence, "
            f"at least {percent(self.bound)} one-sided"
        )
        if self.errored:
            text += f"; {self.errored} errored, which count as not called unless it was"
        what = "this share of trials, not the chance that k of them all pass"
        return f"{text}. `pass^k` above is {what}."


def selection_floor(
    trials: Trials, demand: ToolSelection, *, label: str, confidence: float = CONFIDENCE
) -> SelectionFloor:
    """The floor of one task of one system: a run selects the tool when any of its calls names it.

    >>> table = Trials.from_columns(
    ...     task=["weather"] * 10,
    ...     passed=[True] * 10,
    ...     tools=[("get_weather",)] * 9 + [()],
    ...     tokens=[1840.0] * 10,
    ... )
    >>> demand = ToolSelection(expected_tool="get_weather", min_selection_rate=0.8)
    >>> selection_floor(table, demand, label="weather").line
    'tool-selection floor [PASS] weather: selection 9/10 (90%), pass^k 90%, max tokens 1840'
    """
    runs = len(trials)
    selected = int(np.count_nonzero(trials.has_word("tools", demand.expected_tool)))
    return SelectionFloor(
        label=label,
        demand=demand,
        selected=selected,
        runs=runs,
        errored=int(trials.tally().errored.sum()) if runs else 0,
        max_tokens=_most_tokens(trials),
        interval=proportion_interval(
            selected, runs, method="clopper-pearson", confidence=confidence
        ),
        bound=float(lower_bound(selected, runs, confidence=confidence)),
        confidence=confidence,
    )


def suite_floors(
    pairings: Sequence[Pairing], trials: Trials, *, confidence: float = CONFIDENCE
) -> tuple[SelectionFloor, ...]:
    """The floors of every pairing whose task has one and that was run."""
    floors = []
    for pairing in pairings:
        demand = pairing.task.tool_selection
        system, task = pairing.system.name, pairing.task.name
        if demand is None or system not in trials.systems or task not in trials.tasks:
            continue
        rows = trials.where(system=system, task=task)
        if len(rows):
            floors.append(selection_floor(rows, demand, label=pairing.label, confidence=confidence))
    return tuple(floors)


def _most_tokens(trials: Trials) -> int | None:
    """The most tokens, in and out together, that any run took."""
    features = trials.features
    sides = [features[name] for name in ("tokens_in", "tokens_out") if name in features]
    totals = [np.nansum(sides, axis=0)] if sides else []
    if "tokens" in features:
        totals.append(np.nan_to_num(features["tokens"]))
    if not totals or not len(trials):
        return None
    return int(np.max(totals))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeReview:
    """What the reviewers of a change should know.

    `comparisons` hold each system, by its name, against itself in the baseline; `explanation` is
    there where the transcripts of the runs were kept. An `informational` review never fails the
    change. `edits` are files that decide about the verdict and that the change itself edits.
    `run_verdict` is what is said of the stored run against those before it.
    """

    report: Report
    verdicts: Verdicts | None = None
    comparisons: Mapping[str, Comparison] = field(default_factory=dict)
    baseline: str | None = None
    explanation: Explanation | None = None
    informational: bool = False
    edits: tuple[str, ...] = ()
    run_verdict: RunVerdict | None = None
    word = formerly("status")

    def __repr__(self) -> str:
        shown: list[str] = [self.status or "no gates"]
        shown += [f"against {self.baseline}"] if self.baseline else []
        return short_repr("ChangeReview", *shown, see=".report, .verdicts, .comparisons")

    @property
    def judged(self) -> tuple[Verdict, ...]:
        """The verdicts of all gates; none if nothing was demanded."""
        return () if self.verdicts is None else self.verdicts.each

    @property
    def status(self) -> Status | None:
        """The overall verdict; None if nothing was demanded."""
        return None if self.verdicts is None else self.verdicts.status

    @property
    def exit_code(self) -> int:
        return 0 if self.informational or self.verdicts is None else self.verdicts.exit_code
