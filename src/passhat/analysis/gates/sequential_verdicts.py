"""The verdicts of gates that watched a run, with their decision logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from passhat.analysis.gates.demands import NumberDemand
from passhat.analysis.gates.outages import drift_words, outage_words
from passhat.analysis.gates.sentences import settled_sentence, shown
from passhat.analysis.gates.sequential import DrawGate
from passhat.analysis.gates.streams import EveryTaskWatch, GateWatch, Stream
from passhat.analysis.gates.verdict import DecisionLine, TaskEvidence, Verdict
from passhat.messages import plural
from passhat.records import Outcome, Trial
from passhat.stats.estimate import Estimate, Unavailable
from passhat.stats.sequential import SET_ASIDE, GateResult

_LETTERS = {Outcome.PASSED: "P", Outcome.FAILED: "F", Outcome.ERRORED: "E"}
_NAMED = 5


def stream_verdict(stream: Stream, watch: GateWatch) -> Verdict:
    """What one gate says after the draws of a stream so far."""
    gate, result = watch.gate, watch.gate.result(watch.state)
    draws = stream.evidence(gate)
    steps = _steps(stream, gate, draws)
    taken = draws[: len(steps)]
    used = [trial for draw, _ in taken for trial in draw]
    counted = sum(counts for _, counts in taken)
    result = replace(result, runs=len(used))
    found = gate.estimate(result)
    system, word = stream.systems[0], result.verdict or "UNDECIDED"
    unit = "pair" if gate.paired else "run" if gate.k == 1 else "draw"
    outage = outage_words(stream.outages, len(steps), unit) if gate.is_guarded else ()
    outage = (*outage, *drift_words([draw[0] for draw, counts in taken if counts and draw]))
    sentence = settled_sentence(
        gate.gate,
        system,
        word,
        runs=len(used),
        most=gate.max_runs,
        fixed_runs=gate.fixed_runs(result),
        seen=_seen(gate, found) + _over(stream, counted, found),
        finished=result.verdict is not None,
        draws=len(steps) if gate.max_runs > gate.max_draws else None,
    )
    return Verdict(
        gate=gate.gate,
        system=system,
        word=word,
        sentence=" ".join((sentence, *outage)),
        estimate=found,
        evidence="sequential",
        method=result.method,
        alpha=gate.gate.alpha,
        beta=gate.gate.beta,
        runs=len(used),
        fixed_runs=gate.fixed_runs(result),
        max_runs=gate.max_runs,
        more_runs=None if result.verdict else max(gate.max_runs - len(used), 0),
        seed=stream.seed,
        errors=_errors(taken),
        notes=(*_notes(stream), *(words.rstrip(".") for words in outage)),
        steps=steps,
    )


def runs_needed(stream: Stream) -> int:
    """How many runs of a stream its gates took as evidence: those of the gate that took most."""
    return max(_runs_taken(stream, watch.gate) for watch in stream.watches)


def _runs_taken(stream: Stream, gate: DrawGate) -> int:
    draws = stream.evidence(gate)
    return sum(len(runs) for runs, _ in draws[: len(_steps(stream, gate, draws))])


def every_task_verdict(watch: EveryTaskWatch) -> Verdict:
    """What a gate on every task says so far."""
    gate, result = watch.gate, watch.design.result(watch.state)
    each = watch.design.task_results(watch.state)
    word = result.verdict or "UNDECIDED"
    failed = [t for t, one in zip(watch.tasks, each, strict=True) if one.verdict == "FAIL"]
    passed = sum(one.verdict == "PASS" for one in each)
    if failed:
        named = ", ".join(failed[:_NAMED])
        seen = f"{named} {'miss' if len(failed) > 1 else 'misses'} the bar"
    else:
        seen = f"{passed} of {plural(len(each), 'task')} clear the bar"
    runs = sum(map(len, watch.outcomes))
    errored = sum(x is None for row in watch.outcomes for x in row)
    outage = outage_words(watch.outages, runs, "run")
    sentence = settled_sentence(
        gate,
        watch.system,
        word,
        runs=runs,
        most=watch.max_runs,
        fixed_runs=result.fixed_runs,
        seen=seen,
        finished=result.verdict is not None,
    )
    return Verdict(
        gate=gate,
        system=watch.system,
        word=word,
        sentence=" ".join((sentence, *outage)),
        estimate=_lowest(result),
        evidence="sequential",
        method=result.method,
        alpha=gate.alpha,
        beta=gate.beta,
        runs=runs,
        fixed_runs=result.fixed_runs,
        max_runs=watch.max_runs,
        more_runs=None if result.verdict else max(watch.max_runs - runs, 0),
        errors=_error_words(errored),
        notes=tuple(words.rstrip(".") for words in outage),
        tasks=tuple(
            TaskEvidence(
                task=task,
                runs=sum(x is not SET_ASIDE for x in row),
                passed=sum(x is not SET_ASIDE and bool(x) for x in row),
                errored=sum(x is None for x in row),
                value=one.value,
                note=_every_task_note(one),
            )
            for task, row, one in zip(watch.tasks, watch.outcomes, each, strict=True)
        ),
    )


def _every_task_note(one: GateResult) -> str:
    evidence = f"log evidence {one.log_pass:+.2f} for, {one.log_fail:+.2f} against"
    return f"{one.verdict or 'open'}; {evidence}"


def _lowest(result: GateResult) -> Estimate | Unavailable:
    if result.value is None:
        return Unavailable("no run has come in yet")
    return Estimate(
        value=result.value,
        interval=None,
        method="lowest pass rate of a task",
        confidence=result.confidence,
        runs=result.runs,
        notes=("the verdict rests on the evidence of each task",),
    )


def _seen(gate: DrawGate, found: Estimate | Unavailable) -> str:
    if isinstance(found, Unavailable):
        return found.reason
    demand, value = gate.gate.demand, found.value
    if not isinstance(demand, NumberDemand):
        return f"the difference of mean scores is {100 * value:+.1f} points"
    if gate.counts_share:
        limit = f"{demand.sign} {demand.threshold:g}"
        feature = demand.target.places["feature"]
        return f"{shown(value, share=True)} of runs have {feature} {limit}"
    number = shown(value, demand.threshold, share=demand.target.is_share)
    return f"{demand.target} is {number}"


def _over(stream: Stream, draws: int, found: Estimate | Unavailable) -> str:
    """Says that the number is over draws: a report gives every task the same weight."""
    if len(stream.tasks) < 2 or isinstance(found, Unavailable):
        return ""
    return f" over {plural(draws, 'random draw')} of a task"


def _notes(stream: Stream) -> tuple[str, ...]:
    tasks = len(stream.tasks)
    if tasks < 2:
        return ()
    drawn = f"each draw takes one of {plural(tasks, 'task')} at random (seed {stream.seed})"
    return (f"{drawn}; the report counts every task once, so its number differs",)


def _errors(draws: Sequence[tuple[Sequence[Trial], bool]]) -> str:
    counted, aside = (
        sum(
            run.outcome is Outcome.ERRORED
            for runs, counts in draws
            if counts is kind
            for run in runs
        )
        for kind in (True, False)
    )
    if not aside:
        return _error_words(counted)
    words = f"{plural(aside, 'errored run')} set aside"
    return f"{_error_words(counted)}; {words}" if counted else words


def _error_words(count: int) -> str:
    return f"{plural(count, 'errored run')} counted against a PASS" if count else "no run errored"


def _steps(
    stream: Stream, gate: DrawGate, draws: Sequence[tuple[Sequence[Trial], bool]]
) -> tuple[DecisionLine, ...]:
    return tuple(
        DecisionLine(
            number=step.index + 1,
            task=stream.tasks[stream.task(step.index)],
            outcome=_outcome(gate, *draws[step.index]),
            log_pass=step.log_pass,
            log_fail=step.log_fail,
            pass_boundary=step.pass_boundary,
            fail_boundary=step.fail_boundary,
        )
        for step in gate.steps(draws)
    )


def _outcome(gate: DrawGate, runs: Sequence[Trial], counts: bool) -> str:
    letters = "".join(_LETTERS[run.outcome] for run in runs)
    if not counts:
        return f"{letters} set aside"
    x = gate.score(runs)
    return letters if x is None or (x in (0.0, 1.0) and not gate.paired) else f"{letters} {x:+.2f}"
