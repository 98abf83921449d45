"""Run one function until a gate is settled: what `assert_reliable` and the pytest marker share."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from passhat.defaults import SEED
from passhat.errors import ArgumentError

if TYPE_CHECKING:
    from passhat.analysis.gates.verdict import Verdict, Verdicts
    from passhat.records import Ticket, Trial

RUNS = 50
SYSTEM = "python"
MOST_FAILURES = 3
"""Failures that a message shows."""

_RECORDED = ("score", "cost", "tokens", "tokens_in", "tokens_out", "turns", "tool_calls", "tools")


@dataclass(slots=True)
class TrialRecorder:
    """One run of a test: its number and seed, and what the test says about it."""

    index: int
    seed: int
    recorded: dict[str, Any] = field(default_factory=dict)

    def record(self, **values: Any) -> None:
        """Keep what the run cost or scored: score, cost, tokens, tokens_in, turns, tool_calls."""
        for name in values:
            if name not in _RECORDED:
                raise ArgumentError("record", f"takes {', '.join(_RECORDED)}", name)
        self.recorded.update(values)


class ReliabilityCheck:
    """The runs of one task until its gate is settled, by the stopping rule that suites use.

    Ask `next_run`, run it, then hand its outcome to `finish`. Each run costs the same, however
    many there were before.
    """

    def __init__(
        self, task: str, gate: Mapping[str, Any], *, runs: int = RUNS, system: str = SYSTEM
    ) -> None:
        from passhat.analysis.gates.demands import parse_gate
        from passhat.analysis.gates.stopping import Stopping
        from passhat.records import CommandSystem, Pairing, Task

        parsed = parse_gate({"evidence": "sequential", **gate})
        agent = CommandSystem(name=system, argv=(system,))
        pairing = Pairing(system=agent, task=Task(name=task), runs=runs, label=task)
        self._rule = Stopping([pairing], [parsed], until_settled=True, seed=SEED)
        self._runs = runs
        self._ticket: Ticket | None = None
        self.trials: list[Trial] = []

    def next_run(self) -> TrialRecorder | None:
        """The run that comes next; None when the gate is settled or the runs are used up."""
        tickets = self._rule.next(1) if len(self.trials) < self._runs else None
        if not tickets:
            return None
        (self._ticket,) = tickets
        return TrialRecorder(index=len(self.trials), seed=len(self.trials))

    def finish(
        self, run: TrialRecorder, outcome: str, *, seconds: float, error: str | None = None
    ) -> None:
        """Hand over what came of the run: passed, failed or errored."""
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
            **run.recorded,
        )
        self.trials.append(trial)
        self._rule.observe(self._ticket, trial)

    def verdicts(self) -> Verdicts:
        """What the gate says of the runs so far."""
        return self._rule.verdicts()


def assert_reliable(
    function: Callable[..., Any],
    require: str = "pass^3 >= 0.8",
    *,
    runs: int = RUNS,
    **terms: Any,
) -> Verdicts:
    """Call a function many times and raise AssertionError unless the gate passes.

    A call that raises, or returns False, has failed. The function may take a `trial`, which has the
    run's index and seed and records its score and cost; it may be async. `terms` are those of a
    gate's long form, such as `indifference=0.05`.

    >>> assert_reliable(lambda: True, "pass@1 >= 0.5").word
    'PASS'
    """
    name = getattr(function, "__qualname__", "function")
    check = ReliabilityCheck(name, {"require": require, **terms}, runs=runs)
    failures: list[str] = []
    while (run := check.next_run()) is not None:
        begun = time.perf_counter()
        failure = _failure(function, run)
        outcome = "passed" if failure is None else "failed"
        check.finish(run, outcome, seconds=time.perf_counter() - begun)
        if failure is not None:
            failures.append(f"run {run.index + 1}: {failure}")
    verdicts = check.verdicts()
    if not verdicts:
        sentence = verdict_sentence(verdicts[0], len(check.trials), "`runs`")
        raise AssertionError("\n".join([f"{name}: {sentence}", *failures[:MOST_FAILURES]]))
    return verdicts


def verdict_sentence(verdict: Verdict, runs: int, where: str) -> str:
    """A verdict in words; where it is open, what to raise: `where` is what says how many runs."""
    sentence = verdict.sentence.partition(": ")[2] or verdict.sentence
    for note in verdict.notes:
        sentence = sentence.replace(f" ({note})", "")
    if verdict.word != "UNDECIDED":
        return sentence
    enough = f", to as many as {runs + verdict.more_runs:,}" if verdict.more_runs else ""
    return f"{sentence} Raise {where}, now {runs:,}{enough}."


def _failure(function: Callable[..., Any], run: TrialRecorder) -> str | None:
    """How a call failed; None where it did not."""
    given = {"trial": run} if "trial" in inspect.signature(function).parameters else {}
    try:
        answer = function(**given)
        if inspect.isawaitable(answer):
            answer = asyncio.run(_awaited(answer))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "returned False" if answer is False else None


async def _awaited(answer: Any) -> Any:
    return await answer
