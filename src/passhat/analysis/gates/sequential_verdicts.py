"""The verdicts of gates that watched a run, with their decision logs."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from passhat.analysis.gates.gate import (
    NO_ERRORS,
    BestOfRequirement,
    DecisionLine,
    Gate,
    Status,
    TaskEvidence,
    Verdict,
    VerdictNote,
    percentage,
    settled,
    shown,
    tasks_meet,
)
from passhat.analysis.gates.sequential import (
    Draw,
    DrawGate,
    EveryTaskWatch,
    GateProgress,
    OutageFilter,
    SharedDraws,
    drift_words,
    may_go_ahead,
    notes_in_sentence,
    outage_words,
)
from passhat.analysis.reports.targets import parse_target
from passhat.errors import ArgumentError
from passhat.messages import listed, metric_label, plural
from passhat.records import Outcome, Trial
from passhat.stats.estimate import Estimate, Unavailable
from passhat.stats.sequential import (
    SET_ASIDE,
    BestOf,
    BestOfState,
    GateResult,
    OutageGuard,
    fixed_design,
)
from passhat.stats.sequential.draws import drawn_task

_LETTERS = {Outcome.PASSED: "P", Outcome.FAILED: "F", Outcome.ERRORED: "E"}
_NAMED = 5


def stream_verdict(stream: SharedDraws, watch: GateProgress) -> Verdict:
    """What one gate says after the draws of a stream so far."""
    gate, result = watch.gate, watch.gate.result(watch.state)
    draws = stream.evidence(gate)
    steps = _steps(stream, gate, draws)
    taken = draws[: len(steps)]
    used = [trial for draw, _ in taken for trial in draw]
    result = replace(result, runs=len(used))
    estimate = gate.estimate(result)
    unit = "trial" if gate.k == 1 else "set"
    outage = outage_words(stream.outages, len(steps), unit) if gate.is_guarded else ()
    outage = (*outage, *drift_words([draw[0] for draw, counts in taken if counts and draw]))
    alpha, beta = gate.errors
    verdict = Verdict(
        gate=gate.gate,
        system=stream.systems[0],
        status=result.verdict or "UNDECIDED",
        clauses=(),
        estimate=estimate,
        evidence="sequential",
        method=result.method,
        alpha=alpha,
        beta=beta,
        runs=len(used),
        fixed_runs=result.fixed_runs,
        max_runs=gate.max_runs,
        more_runs=None if result.verdict else max(gate.max_runs - len(used), 0),
        seed=stream.seed,
        errors=_errors(taken),
        remarks=(*_notes(stream), *notes_in_sentence(outage)),
        steps=steps,
        boundaries=gate.boundaries,
        seen=_seen(gate, estimate, [draw for draw, counts in taken if counts], stream.tasks),
    )
    return settled(verdict, draws=len(steps) if gate.max_runs > gate.max_draws else None)


def runs_needed(stream: SharedDraws) -> int:
    """How many runs of a stream its gates took as evidence: those of the gate that took most."""
    taken = []
    for watch in stream.watches:
        draws = stream.evidence(watch.gate)
        used = draws[: len(_steps(stream, watch.gate, draws))]
        taken.append(sum(len(runs) for runs, _ in used))
    return max(taken)


def every_task_verdict(watch: EveryTaskWatch) -> Verdict:
    """What a gate on every task says so far."""
    gate, result = watch.gate, watch.design.result(watch.state)
    each = watch.design.task_results(watch.state)
    failed = [t for t, state in zip(watch.tasks, each, strict=True) if state.verdict == "FAIL"]
    passed = sum(state.verdict == "PASS" for state in each)
    seen = tasks_meet(passed, len(each), met=True)
    if failed:
        seen = f"{tasks_meet(len(failed), len(each), met=False)}: {listed(failed, _NAMED)}"
    runs = sum(map(len, watch.outcomes))
    errored = sum(x is None for row in watch.outcomes for x in row)
    outage = outage_words(watch.outages, runs, "trial")
    alpha, beta = watch.errors
    verdict = Verdict(
        gate=gate,
        system=watch.system,
        status=result.verdict or "UNDECIDED",
        clauses=(),
        estimate=_lowest(result),
        evidence="sequential",
        method=result.method,
        alpha=alpha,
        beta=beta,
        runs=runs,
        fixed_runs=result.fixed_runs,
        max_runs=watch.max_runs,
        more_runs=None if result.verdict else max(watch.max_runs - runs, 0),
        errors=_error_words(errored),
        seen=seen,
        remarks=notes_in_sentence(outage),
        tasks=tuple(
            TaskEvidence(
                task=task,
                runs=sum(x is not SET_ASIDE for x in row),
                passed=sum(x is not SET_ASIDE and bool(x) for x in row),
                errored=sum(x is None for x in row),
                value=state.value,
                note=f"{state.verdict or 'open'}; log evidence {state.log_pass:+.2f} for, "
                f"{state.log_fail:+.2f} against",
            )
            for task, row, state in zip(watch.tasks, watch.outcomes, each, strict=True)
        ),
    )
    return settled(verdict)


def _lowest(result: GateResult) -> Estimate | Unavailable:
    if result.value is None:
        return Unavailable("no trial has come in yet")
    return Estimate(
        value=result.value,
        interval=None,
        method="lowest pass rate of a task",
        confidence=result.confidence,
        runs=result.runs,
        notes=("the verdict rests on the evidence of each task",),
    )


def _seen(
    gate: DrawGate,
    estimate: Estimate | Unavailable,
    draws: Sequence[Sequence[Trial]],
    tasks: Sequence[str],
) -> str:
    """What the draws that count came to; of trials that pass or fail their count.

    A rate would be one that stopped while it was lucky. Other numbers are said to be over draws:
    a report gives every task the same weight.
    """
    if isinstance(estimate, Unavailable):
        return estimate.reason
    demand, value = gate.demand, estimate.value
    if demand.target.attempts is not None:
        if gate.k == 1:
            passed = sum(trial.outcome is Outcome.PASSED for draw in draws for trial in draw)
            return f"{passed:,} of {plural(len(draws), 'trial')} passed"
        well = "all passed" if gate.metric == "pass^k" else "had a pass"
        sets = plural(len(draws), "set")
        return f"{round(value * len(draws)):,} of {sets} of {gate.k} {well}"
    drawn = plural(len(draws), "trial" if gate.k == 1 else "set")
    over = f" over {drawn} of tasks chosen at random" if len(tasks) > 1 else ""
    if demand.target.quantile is not None:  # a share of runs within the limit is watched
        limit = f"{demand.sign} {demand.threshold:g}"
        feature = demand.target.places["feature"]
        return f"{shown(value, share=True)} of trials have {feature} {limit}{over}"
    number = shown(value, demand.threshold, share=demand.target.is_share)
    return f"{metric_label(str(demand.target))} is {number}{over}"


def _notes(stream: SharedDraws) -> tuple[VerdictNote, ...]:
    tasks = len(stream.tasks)
    if tasks < 2:
        return ()
    drawn = f"each time one of {plural(tasks, 'task')} is chosen at random (seed {stream.seed})"
    return (VerdictNote(drawn),)


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
    words = f"{plural(aside, 'errored trial')} set aside"
    return f"{_error_words(counted)}; {words}" if counted else words


def _error_words(count: int) -> str:
    return f"{plural(count, 'errored trial')} counted against a PASS" if count else NO_ERRORS


def _steps(
    stream: SharedDraws, gate: DrawGate, draws: Sequence[tuple[Sequence[Trial], bool]]
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
    return letters if x is None or x in (0.0, 1.0) else f"{letters} {x:+.2f}"


# Several systems: who runs next, who is dropped, and which one is the best.

# A contest that is open after four times the fixed design ends UNDECIDED, as other gates do.
_CAP_OVER_FIXED = 4

_SCORE = parse_target("mean_score").read


class BestSystemGate:
    """Draws of tasks at random, each run by every system that is still in.

    What it decides follows from the seed and the results in the order of draws alone. A system that
    was dropped is run no more; runs of it that were under way are in the report only. It ends when
    the best is known, or when the system that the gate names is dropped.
    """

    def __init__(
        self, gate: Gate, systems: Sequence[str], tasks: Sequence[str], *, seed: int
    ) -> None:
        if not isinstance(gate.demand, BestOfRequirement):
            raise ArgumentError("gate", "must demand the best of several agents", gate.require)
        if len(systems) < 2:
            rule = "needs two agents or more to find the best of"
            raise ArgumentError(f"gate {gate.label!r}", rule, len(systems))
        self.gate = gate
        self.systems = tuple(systems)
        self.tasks = tuple(tasks)
        self.seed = seed
        self.margin = gate.demand.margin
        self.design = BestOf(
            systems=len(self.systems),
            tasks=len(self.tasks),
            difference=self.margin,
            alpha=gate.alpha,
            seed=seed,
        )
        self.state: BestOfState = self.design.start()
        self.outages = OutageFilter([OutageGuard(tasks=len(self.tasks)) for _ in self.systems])
        self.runs: dict[int, dict[int, Trial]] = {}
        self._launched: dict[int, set[int]] = {}
        self._issued = self._made = self._seen = 0

    @property
    def name(self) -> str:
        """Tells this contest from streams and other contests on a ticket's stamp."""
        parts = "\x1f".join(("best of", *self.systems, "", *self.tasks, str(self.seed)))
        return hashlib.blake2b(parts.encode(), digest_size=4).hexdigest()

    @property
    def max_draws(self) -> int:
        if self.gate.max_runs is not None:
            return max(1, self.gate.max_runs // len(self.systems))
        fixed = fixed_design(0.5, (1 + self.margin) / 2, self.gate.alpha, self.gate.alpha)
        return _CAP_OVER_FIXED * fixed.runs

    @property
    def max_runs(self) -> int:
        return self.max_draws * len(self.systems)

    @property
    def is_open(self) -> bool:
        return (
            self.state.best is None and self.state.draws < self.max_draws and not self._named_is_out
        )

    @property
    def best(self) -> str | None:
        return None if self.state.best is None else self.systems[self.state.best]

    def next_run(self) -> Draw | None:
        """The next run: of a draw that is not complete, or of a new one; None to wait or stop."""
        under_way = self._made - self._seen
        if not self.is_open or not may_go_ahead(under_way, self._seen, self.outages.waiting):
            return None
        for draw in range(self.outages.seen, self._issued):
            for place in self.state.left:
                if place not in self._launched.setdefault(draw, set()):
                    return self._launch(draw, place)
        if self._issued >= self.max_draws:
            return None
        return self._launch(self._issued, self.state.left[0])

    def restore(self, draw: int, run: int) -> None:
        """A run that was handed out before an interruption; `run` is the place of its system."""
        self._made += 1
        self._launched.setdefault(draw, set()).add(run)
        self._issued = max(self._issued, draw + 1)

    def observe(self, draw: int, trial: Trial) -> None:
        """A run of a draw has ended."""
        self._seen += 1
        self.runs.setdefault(draw, {})[self.systems.index(trial.system)] = trial
        while self.is_open and set(self.state.left) <= set(self.runs.get(self.outages.seen, ())):
            known = self.runs[self.outages.seen]
            out = self.state.dropped
            first = [None if j in out else known[j] for j in range(len(self.systems))]
            self.outages.take(self._task(self.outages.seen), first)
            self._take_draws()
        if self.is_open and self.outages.seen >= self.max_draws:
            self.finish()

    def finish(self) -> None:
        """No more draws will come: failures that wait are decided as they are."""
        self.outages.finish()
        self._take_draws()

    def verdict(self) -> Verdict:
        """What the gate says so far."""
        status = self._status()
        used = sum(len(self._own_draws(place)) for place in range(len(self.systems)))
        outage = outage_words(self.outages, self.state.draws, "step")
        seen, end = self._reason(status, used)
        return Verdict(
            gate=self.gate,
            system=self._speaks_of(),
            status=status,
            after=plural(used, "trial"),
            clauses=(seen, end),
            estimate=self._estimate(used),
            evidence="sequential",
            method="best of several, variance-adaptive bets on random tasks",
            alpha=self.gate.alpha,
            beta=None if self.gate.system is None else self.gate.alpha,
            runs=used,
            max_runs=self.max_runs,
            more_runs=max(self.max_runs - used, 0) if self.is_open else None,
            seed=self.seed,
            errors=self._errors(),
            remarks=(*map(VerdictNote, self._places()), *notes_in_sentence(outage)),
            seen=seen,
        )

    @property
    def _named_is_out(self) -> bool:
        named = self.gate.system
        return named is not None and self.systems.index(named) in self.state.dropped

    def _task(self, draw: int) -> int:
        return drawn_task(self.seed, draw, len(self.tasks))

    def _launch(self, draw: int, place: int) -> Draw:
        self.restore(draw, place)
        task = self.tasks[self._task(draw)]
        return Draw(index=draw, run=place, system=self.systems[place], task=task)

    def _take_draws(self) -> None:
        while self.is_open and self.state.draws < len(self.outages.counted):
            draw = self.state.draws
            if self.outages.counted[draw]:
                scores = {j: _SCORE(self.runs[draw][j]) or 0.0 for j in self.state.left}
                self.state = self.design.observe(self.state, scores)
            else:
                self.state = self.design.skip(self.state)

    def _status(self) -> Status:
        named = self.gate.system
        if self._named_is_out or (self.best is not None and named not in (None, self.best)):
            return "FAIL"
        return "UNDECIDED" if self.best is None else "PASS"

    def _speaks_of(self) -> str:
        """The system that the gate names, the best one, or the one that leads."""
        if self.gate.system is not None or self.best is not None:
            return self.gate.system or self.best or ""
        return self.systems[max(self.state.left, key=lambda j: self._mean(j) or 0.0)]

    def _mean(self, place: int) -> float | None:
        counted = [draw for draw in self._own_draws(place) if self.outages.counted[draw]]
        scores = [_SCORE(self.runs[draw][place]) or 0.0 for draw in counted]
        return sum(scores) / len(scores) if scores else None

    def _own_draws(self, place: int) -> range:
        """The draws of a system that were evidence: until it was dropped."""
        return range(self.state.dropped.get(place, self.state.draws))

    def _reason(self, status: Status, used: int) -> tuple[str, str]:
        """Who is the best, or still in, and how sure that is."""
        count, margin = len(self.systems), f"{100 * self.margin:g} points"
        if status == "UNDECIDED":
            left = ", ".join(self.systems[j] for j in self.state.left)
            end = f"up to {plural(max(self.max_runs - used, 0), 'more trial')} may decide it"
            end = end if self.is_open else "the most allowed"
            return f"still in are {left}", end
        sure = f"wrong with a chance of at most {percentage(self.gate.alpha)}"
        if self.best is None:
            return "it was dropped as worse than others", sure
        dropped = ", ".join(self.systems[j] for j in self.state.dropped)
        out = f"; dropped on the way: {dropped}" if dropped else ""
        best = f"{self.best} is the best of {count}, or at most {margin} below the best"
        return f"{best}{out}", sure

    def _places(self) -> tuple[str, ...]:
        """The mean score of each system over its own draws, and when it was dropped."""
        places = []
        for place, system in enumerate(self.systems):
            mean = self._mean(place)
            score = "no trial yet" if mean is None else f"mean score {shown(mean, share=True)}"
            gone = self.state.dropped.get(place)
            places.append(f"{system}: {score}" + (f", dropped at step {gone}" if gone else ""))
        return tuple(places)

    def _estimate(self, used: int) -> Estimate | Unavailable:
        value = self._mean(self.systems.index(self._speaks_of()))
        if value is None:
            return Unavailable("no trial has come in yet")
        return Estimate(
            value=value,
            interval=None,
            method="mean score over its draws",
            confidence=1 - self.gate.alpha,
            runs=used,
            seed=self.seed,
            notes=("the verdict rests on differences on the same choice of tasks",),
        )

    def _errors(self) -> str:
        count = sum(
            self.runs[draw][place].outcome is Outcome.ERRORED
            for place in range(len(self.systems))
            for draw in self._own_draws(place)
        )
        return f"{plural(count, 'errored trial')} scored 0" if count else NO_ERRORS
