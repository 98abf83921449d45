"""Run one function until a gate is settled: what `assert_reliable` and the pytest marker share."""

from __future__ import annotations

import inspect
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Unpack

from passhat.arguments import SEED, in_screen_words, whole_number
from passhat.dataclass import dataclass
from passhat.errors import ArgumentError

if TYPE_CHECKING:
    from passhat.analysis.gates.gate import GateTerms, Verdict, Verdicts
    from passhat.records import Ticket, Trial

SYSTEM = "python"
MOST_FAILURES = 3
"""Different failures, and trials of each, that a message shows."""

LONGEST_PAUSE = 5.0
"""Seconds that a test waits at most in case of an outage: a person is waiting for the verdict."""

LONGER = 3
"""The k that is shown for a suite whose demands name no pass^k above 1."""

_RECORDED = ("score", "cost", "tokens", "tokens_in", "tokens_out", "turns", "tool_calls", "tools")
_OUTCOME = "outcome"


@dataclass(slots=True)
class TrialRecorder:
    """One run of a test: its number and seed, and what the test says about it."""

    index: int
    seed: int
    recorded: dict[str, Any] = field(default_factory=dict)
    transcript: str | None = None
    started: str = field(default_factory=lambda: datetime.now(UTC).isoformat())

    def record(self, *, messages: object = None, **values: Any) -> None:
        """Keep what the run cost or scored: score, cost, tokens, tokens_in, turns, tool_calls.

        `messages` is the conversation, as chat models take it; a store keeps it for `passhat why`.
        """
        for name in values:
            if name not in _RECORDED:
                known = ", ".join((*_RECORDED, "messages"))
                raise ArgumentError("record", f"takes {known}", name)
        self.recorded.update(values)
        if messages is not None:
            from passhat.ingest.transcripts import transcript_of

            transcript = transcript_of(messages)
            self.transcript = transcript.to_json() if transcript else None


class ReliabilityCheck:
    """The runs of one task until its gate is settled, by the stopping rule that suites use.

    Ask `next_run`, run it, then hand its outcome to `finish`. Each run costs the same, however
    many there were before. Without `runs` the gate says how many there are at most: enough for a
    task that never fails to pass, and some more.
    """

    def __init__(
        self, task: str, gate: Mapping[str, Any], *, runs: int | None = None, system: str = SYSTEM
    ) -> None:
        from passhat.analysis.gates.gate import parse_gate
        from passhat.analysis.gates.sequential import default_trials
        from passhat.analysis.gates.stopping import StoppingRule
        from passhat.records import CommandSystem, Pairing, Task

        parsed = parse_gate({"evidence": "sequential", "max_runs": runs, **gate})
        self.runs = default_trials(parsed) if runs is None else whole_number("runs", runs)
        """The most runs there can be."""
        if parsed.max_runs is not None:
            self.runs = min(self.runs, parsed.max_runs)
        agent = CommandSystem(name=system, argv=(system,))
        pairing = Pairing(system=agent, task=Task(name=task), runs=self.runs, label=task)
        self._rule = StoppingRule([pairing], [parsed], until_settled=True, seed=SEED)
        self._ticket: Ticket | None = None
        self.trials: list[Trial] = []
        self.transcripts: list[str | None] = []

    @property
    def plan_sentence(self) -> str:
        """How many runs there are at most, and after how many a task that never fails passes."""
        from passhat.messages import plural

        words = plural(self.runs, "trial")
        soonest = self._rule.soonest_pass
        return words if soonest is None else f"{words}; {soonest}"

    def next_run(self) -> TrialRecorder | None:
        """The run that comes next; None when the gate is settled or the runs are used up.

        After many failures one after another it waits a little, in case of an outage.
        """
        if len(self.trials) >= self.runs:
            return None
        if pause := self._rule.pause_seconds:
            time.sleep(min(pause, LONGEST_PAUSE))
            self._rule.end_pause()
        tickets = self._rule.next(1)
        if not tickets:
            return None
        (self._ticket,) = tickets
        return TrialRecorder(index=len(self.trials), seed=len(self.trials))

    def finish(
        self, run: TrialRecorder, outcome: str, *, seconds: float, error: str | None = None
    ) -> None:
        """Record how the run ended: passed, failed or errored."""
        from passhat.records import Outcome, Trial

        assert self._ticket is not None, "a run was asked for"
        trial = Trial(
            system=self._ticket.system,
            task=self._ticket.task,
            trial=run.index,
            outcome=Outcome[outcome.upper()],
            seed=run.seed,
            seconds=seconds,
            error=error,
            started=run.started,
            **run.recorded,
        )
        self.trials.append(trial)
        self.transcripts.append(run.transcript)
        self._rule.observe(self._ticket, trial)

    def verdicts(self) -> Verdicts:
        """What the gate says of the runs so far."""
        return self._rule.verdicts()

    def plain_runs(self) -> list[dict[str, Any]]:
        """The runs so far in plain values, which travel between processes."""
        names = ("seconds", "error", "started", "seed", *_RECORDED)
        return [
            {
                _OUTCOME: trial.outcome.name.lower(),
                "trial": trial.trial,
                "transcript": transcript,
                **{name: getattr(trial, name) for name in names},
            }
            for trial, transcript in zip(self.trials, self.transcripts, strict=True)
        ]


def trial_of_plain(run: Mapping[str, Any], *, system: str, task: str) -> Trial:
    """A run of `plain_runs` as a Trial."""
    from passhat.records import Outcome, Trial

    values = {name: value for name, value in run.items() if name not in (_OUTCOME, "transcript")}
    values["tools"] = tuple(values["tools"])
    outcome = Outcome[run[_OUTCOME].upper()]
    return Trial(system=system, task=task, outcome=outcome, **values)


def group_by_suite(names: Sequence[str]) -> dict[str, list[str]]:
    """The classes and parametrized tests among pytest's test names that have several tests.

    >>> group_by_suite(["a.py::T::x", "a.py::T::y[1]", "a.py::T::y[2]", "a.py::z"])
    {'a.py::T': ['a.py::T::x', 'a.py::T::y[1]', 'a.py::T::y[2]'],
     'a.py::T::y': ['a.py::T::y[1]', 'a.py::T::y[2]']}
    """
    suites: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        file, _, inside = name.partition("::")
        base, bracket, _ = inside.partition("[")
        owner = base.rpartition("::")[0]
        for suite in ([owner] if owner else []) + ([base] if bracket else []):
            suites.setdefault(f"{file}::{suite}", []).append(name)
    return {suite: members for suite, members in suites.items() if len(members) > 1}


def suite_sentence(trials: Sequence[Trial], demands: Sequence[str]) -> str:
    """How reliable some tests are together: one try, and the longest pass^k that is demanded."""
    from passhat.messages import percent, plural, points
    from passhat.records import Outcome
    from passhat.stats.sequential.confidence_sequences import suite_sequence

    runs = Counter(trial.task for trial in trials)
    passes = Counter(trial.task for trial in trials if trial.outcome is Outcome.PASSED)
    demanded = [int(k) for text in demands for k in re.findall(r"pass\^(\d+)", text)]
    longest = max([k for k in demanded if k > 1], default=LONGER)
    phrases = [f"{plural(len(runs), 'test')}, {plural(len(trials), 'trial')}"]
    for k in sorted({1, min(longest, *runs.values())}):
        number = suite_sequence(list(runs.values()), [passes[task] for task in runs], k=k)
        assert number.interval is not None, "a confidence sequence has two ends"
        low, high = map(points, (number.interval.low, number.interval.high))
        words = "pass@1" if k == 1 else f"pass^{k}"
        phrases.append(f"{words} {percent(number.value)} [{low}, {high}]")
    return "; ".join(phrases)


@in_screen_words
def assert_reliable(
    function: Callable[..., Any],
    require: str = "pass^3 >= 0.8",
    *,
    runs: int | None = None,
    confidence: float | None = None,
    **terms: Unpack[GateTerms],
) -> Verdicts:
    """Call a function many times and raise AssertionError unless the gate passes.

    A call that raises, or returns False, has failed; one that returns True, or nothing, has
    passed; any other answer is refused. The function may take a `trial`, which has the
    run's index and seed and records its score and cost, or the `seed` alone; it may be async.
    There are at most `runs` calls, by default as many as the demand needs, and some more.
    `terms` are those of a gate's long form, such as `indifference=0.05`.

    >>> assert_reliable(lambda: True, "pass@1 >= 0.5").status
    'PASS'
    """
    if not callable(function):
        raise ArgumentError("function", "must be a function to call many times", function)
    name = getattr(function, "__qualname__", "function")
    wanted = _wanted(function)
    gate = {"require": require, "confidence": confidence, **terms}
    check = ReliabilityCheck(name, gate, runs=runs)
    failures: dict[str, list[int]] = {}
    while (run := check.next_run()) is not None:
        begun = time.perf_counter()
        offered = {"trial": run, "seed": run.seed}
        failure = _failure(function, {argument: offered[argument] for argument in wanted})
        outcome = "passed" if failure is None else "failed"
        check.finish(run, outcome, seconds=time.perf_counter() - begun)
        if failure is not None:
            failures.setdefault(failure, []).append(run.index + 1)
    verdicts = check.verdicts()
    if not verdicts:
        sentence = verdict_sentence(verdicts[0], len(check.trials), "`runs`")
        different = different_failures(failures, ": ")
        raise AssertionError("\n".join([f"{name}: {sentence}", *different]))
    return verdicts


def different_failures(failures: Mapping[str, Sequence[int]], between: str) -> list[str]:
    """The first few failures that differ, each with the numbers of the trials that ended so."""
    from passhat.messages import plural

    shown = []
    for text, trials in islice(failures.items(), MOST_FAILURES):
        first, rest = ", ".join(map(str, trials[:MOST_FAILURES])), len(trials) - MOST_FAILURES
        more = f" and {rest} more" if rest > 0 else ""
        shown.append(f"{'trials' if len(trials) > 1 else 'trial'} {first}{more}{between}{text}")
    if (rest := len(failures) - MOST_FAILURES) > 0:
        shown.append(f"and {plural(rest, 'other failure')}")
    return shown


def verdict_sentence(verdict: Verdict, runs: int, where: str, *, spent: str | None = None) -> str:
    """A verdict in words; if it is undecided, what to raise.

    `where` is what limits the number of runs; `spent` is the budget that ended them before that.
    """
    sentence = verdict.sentence.removeprefix(f"{verdict.system}: ")
    if runs > verdict.runs:  # the last of them, to see whether it is an outage or still open
        sentence += f" {runs:,} trials were run."
    if verdict.status != "UNDECIDED":
        return sentence
    if spent is not None:
        return f"{sentence} The budget of {spent} ended it after {runs:,} trials."
    from passhat.analysis.gates.sequential import default_trials

    planned = verdict.max_runs or runs
    enough = max(default_trials(verdict.gate), 2 * planned)
    return f"{sentence} Raise {where}, now {planned:,}, to {enough:,}."


def _wanted(function: Callable[..., Any]) -> list[str]:
    """Which of `trial` and `seed` a function takes; refuses a function that needs anything else."""
    taken = inspect.signature(function).parameters.values()
    for p in taken:
        variadic = p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        if p.name not in ("trial", "seed") and p.default is p.empty and not variadic:
            rule = (
                "may take `trial`, `seed` or nothing; pass the rest with "
                "lambda: agent(...) == expected"
            )
            raise ArgumentError("function", rule, f"parameter {p.name}")
    return [p.name for p in taken if p.name in ("trial", "seed")]


def _failure(function: Callable[..., Any], given: Mapping[str, Any]) -> str | None:
    """How a call failed; None if it did not."""
    try:
        answer = function(**given)
        if inspect.isawaitable(answer):
            from passhat.runner.run import run_coroutine

            answer = run_coroutine(_awaited(answer))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return failure_returned(answer)


def failure_returned(answer: object) -> str | None:
    """How a call failed by what it returned: by False; None if it did not, an error if unclear."""
    if type(answer).__name__ in ("bool", "bool_"):  # NumPy's too
        answer = bool(answer)
    if answer is None or answer is True:
        return None
    if answer is False:
        return "returned False"
    # An answer that nobody looked at is no pass.
    rule = "must return True or False, or nothing and raise where it fails: compare its answer"
    raise ArgumentError("function", rule, answer)


async def _awaited(answer: Any) -> Any:
    return await answer
