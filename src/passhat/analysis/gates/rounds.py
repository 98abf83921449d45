"""Suites and pairs run in rounds, looked at a few times, and judged as `passhat gate` judges.

A round runs every task once, of both systems where two are compared. At each look the bound of a
whole run decides, at the level that `look_levels` gives it. A suite with hardly a failure passes
sooner by all of its runs together: a mean of p^k of at most t means a mean of p of at most
t^(1/k), and of all suites with that mean the one whose tasks are equal has few failures most often
(Hoeffding 1956; for all looks together checked exactly, equal tasks were the worst each time).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil

import numpy as np
from numpy.typing import NDArray

from passhat.analysis.gates import sequential
from passhat.analysis.gates.fixed_sample import (
    best_and_worst,
    counts_passes,
    judge_no_worse,
    judge_number,
    passes_if_all_pass,
    status_of,
    status_of_difference,
)
from passhat.analysis.gates.gate import (
    NO_ERRORS,
    EquivalentRequirement,
    Gate,
    NoWorseRequirement,
    Status,
    ThresholdRequirement,
    Verdict,
    percentage,
)
from passhat.analysis.reports.metrics import SystemTrials
from passhat.errors import ArgumentError
from passhat.messages import plural
from passhat.records import Outcome, Trial, Trials
from passhat.stats.arguments import Counts, Floats
from passhat.stats.estimate import Interval, Unavailable
from passhat.stats.passk import share_of_passing_subsets
from passhat.stats.proportions import Bounds
from passhat.stats.sequential import OutageGuard
from passhat.stats.sequential.designs import (
    POOLED,
    error_of_all_looks,
    first_runs,
    last_runs,
    look_levels,
    look_rounds,
    pass_list,
)
from passhat.stats.special import ndtri
from passhat.stats.sufficient_statistics import Cells
from passhat.stats.suite_bounds import BOTH, suite_bounds

_ANY_RATE = 0.5

# The share of a normal interval that is surely within the bounds, by the room up to 0 or 1 in its
# half-widths. Of 14,000 ends of random suites none was nearer; with 0, .13, .38, .6, .74 one was.
_ROOM, _SURE_SHARE = np.array([0.5, 1.0, 2.0, 4.0]), np.array([0.0, 0.1, 0.3, 0.5, 0.65])
_TINY = 1e-300


def decides_in_rounds(gate: Gate, tasks: int) -> bool:
    """Whether a gate is looked at after rounds: those on pairs, and on a suite at one threshold."""
    demand = gate.demand
    if isinstance(demand, NoWorseRequirement):
        return True
    if not isinstance(demand, ThresholdRequirement) or not demand.target.is_metric:
        return False
    return gate.indifference is None and (tasks > 1 or demand.target.is_mean_score)


def planned_rounds(gate: Gate, tasks: int, stated: Sequence[int]) -> tuple[int, ...]:
    """How often each task is to be run: as the gate's `max_runs` says, the suite, or the demand."""
    systems = sequential.systems_of(gate)
    if gate.max_runs is None and max(stated) > 1:
        return tuple(stated)
    if gate.max_runs is None:
        return (ceil(sequential.default_trials(gate, tasks) / tasks / systems),) * tasks
    return (max(1, gate.max_runs // (tasks * systems)),) * tasks


def can_pass(
    gate: Gate, runs: Mapping[str, int], *, until_decided: bool, planned: int | None = None
) -> bool:
    """Whether a suite whose every run passes gets a PASS by so many runs of each task.

    With `planned` these extend a plan of so many runs of each task, which was judged before.
    """
    tasks, each = len(runs), tuple(runs.values())
    if not until_decided:
        if planned is not None and max(each) > planned:
            level = look_levels((1.0, max(each) / planned), gate.alpha)[-1]
            gate = replace(gate, alpha=level)
    elif decides_in_rounds(gate, tasks):
        each = planned_rounds(gate, tasks, each)
        watch = RoundGate(gate, each, planned or max(each))
        if watch.pass_steps:
            return True
        gate = replace(gate, alpha=watch.level(watch.looks[-1])[0])
    elif tasks == 1:
        plan = replace(gate, max_runs=gate.max_runs or max(each), planned_runs=planned)
        return sequential.draw_gate(plan, tasks=1, seed=0).soonest is not None
    return passes_if_all_pass(gate, each)


class RoundGate:
    """One gate over the rounds of a stream: when it looks, at which levels, and what it said."""

    def __init__(self, gate: Gate, runs: Sequence[int], planned: int) -> None:
        self.gate = gate
        self.tasks = len(runs)
        self.rounds, self.planned = max(runs), planned
        demand = gate.demand
        zone = gate.indifference or 0.0
        if isinstance(demand, EquivalentRequirement) and zone > demand.margin:
            rule = f"must be at most the margin {demand.margin:g}: equal agents should PASS"
            raise ArgumentError("indifference", rule, gate.indifference)
        self.metric, self.k = (
            sequential.block_of(demand)
            if isinstance(demand, ThresholdRequirement)
            else ("pass^k", 1)
        )
        self.looks = self._looks()
        fractions = tuple(look / planned for look in self.looks)
        self._levels = {
            side: dict(zip(self.looks, look_levels(fractions, error), strict=True))
            for side, error in (("alpha", gate.alpha), ("beta", gate.beta))
        }
        # Weights, unequal runs and partial credit break the argument of the pooled route.
        pooled = (
            isinstance(demand, ThresholdRequirement)
            and demand.target.attempts is not None
            and len(set(runs)) == 1
        )
        self._most_failures = self._pooled(gate.alpha, "pass^k") if pooled else ()
        self._most_passes = self._pooled(gate.beta, "pass@k") if pooled else ()
        self.verdict: Verdict | None = None

    @property
    def is_open(self) -> bool:
        return self.verdict is None

    @property
    def errors(self) -> tuple[float, float]:
        """The chances of a wrong PASS and of a wrong FAIL, all looks together."""
        fraction = self.rounds / self.planned
        alpha, beta = (
            error_of_all_looks(error, fraction) for error in (self.gate.alpha, self.gate.beta)
        )
        return alpha, beta

    def level(self, look: int) -> tuple[float, float]:
        return self._levels["alpha"][look], self._levels["beta"][look]

    def pooled_status(self, runs: int, passes: int, failures: int) -> Status | None:
        """What all runs together say, whatever their tasks; a run set aside is neither."""
        if runs <= len(self._most_failures) and runs - passes <= self._most_failures[runs - 1]:
            return "PASS"
        if runs <= len(self._most_passes) and runs - failures <= self._most_passes[runs - 1]:
            return "FAIL"
        return None

    def may_still_pool(self, runs: int, passes: int, failures: int) -> bool:
        """Whether all runs together may yet decide, if every run to come passes, or fails."""
        return (
            max(self._most_failures[runs:], default=-1) >= runs - passes
            or max(self._most_passes[runs:], default=-1) >= runs - failures
        )

    @property
    def pass_steps(self) -> tuple[tuple[int, int], ...]:
        """Each number of failures, with the first run after which all runs together pass with it.

        No failure may end a round halfway; runs with failures are looked at when it is over.
        """
        return first_runs([
            most if run % self.tasks == 0 else min(most, 0)
            for run, most in enumerate(self._most_failures, start=1)
        ])  # fmt: skip

    @property
    def fail_steps(self) -> tuple[tuple[int, int], ...]:
        """Each number of failures, with the last run by which so many are a FAIL.

        The first is that of runs without a pass, which may end a round halfway as well.
        """
        soonest = self.soonest[1]
        if soonest is None:
            return ()
        most = [-1 if run % self.tasks else m for run, m in enumerate(self._most_passes, start=1)]
        return (soonest, soonest), *(step for step in last_runs(most) if step[0] < step[1])

    @property
    def soonest(self) -> tuple[int | None, int | None]:
        """How many runs PASS if none of them failed, and how many FAIL if none passed."""
        passing, failing = (
            next((run for run, most in enumerate(allowed, start=1) if most >= 0), None)
            for allowed in (self._most_failures, self._most_passes)
        )
        return passing, failing

    @property
    def soonest_pass(self) -> str | None:
        """After how many runs without a failure all of them together pass, in words."""
        soonest, _ = self.soonest
        words = "without a failure"
        return None if soonest is None else f"PASS after {plural(soonest, 'trial')} {words}"

    @property
    def boundaries(self) -> tuple[str, ...]:
        """The lists for all runs together, and the looks with the confidence of their bounds."""
        rounds = ", ".join(f"{look:,}" for look in self.looks)
        sides = {side: [f"{100 * (1 - v):.4g}" for v in at.values()]
                 for side, at in self._levels.items()}  # fmt: skip
        levels = ", ".join(sides["alpha"]) + "%"
        if sides["beta"] != sides["alpha"]:
            levels += f" for PASS, {', '.join(sides['beta'])}% for FAIL"
        look = f"Looks after round {rounds}, with bounds at {levels}"
        return *sequential.lists_in_words(self.pass_steps, self.fail_steps, in_rounds=True), look

    def bounds(
        self, passes: Counts, runs: int, level: float, ends: Sequence[bool] = BOTH
    ) -> Bounds:
        """The ends for each row of passes of tasks with equally many runs, each at this level.

        A single end is only right on which side of the threshold it lies.
        """
        # Which task has which passes makes no difference, and near 0 or 1 many suites are alike.
        alike, place = np.unique(np.sort(passes, axis=1), axis=0, return_inverse=True)
        suites = alike.shape[0]
        counted = alike if self.metric == "pass^k" else runs - alike
        flat = (counted + (runs + 1) * np.arange(suites)[:, None]).ravel()
        tasks = np.bincount(flat, minlength=suites * (runs + 1)).reshape(suites, runs + 1)
        seen = tasks.any(axis=0)
        cells = Cells(
            n=np.full(int(seen.sum()), float(runs)),
            c=np.flatnonzero(seen).astype(float),
            tasks=tasks[:, seen].astype(float),
        )
        straight, threshold, demand = self.metric == "pass^k", None, self.gate.demand
        if len(ends) == 1 and isinstance(demand, ThresholdRequirement):
            threshold = demand.threshold if straight else 1 - demand.threshold
        asked = [upper == straight for upper in ends]
        exact = suite_bounds(cells, (self.k,), 1 - 2 * level, asked, threshold, drawn=True)
        low, high = (end[place.ravel(), 0] for end in exact)
        return (low, high) if straight else (1 - high, 1 - low)

    def narrow_bounds(self, passes: Counts, runs: int, level: float) -> Bounds:
        """Ends that lie within those of `bounds`, at once: of a normal interval made narrower.

        An end near 0 or 1 is the short one of lopsided bounds, so less of it is sure.
        """
        counted = passes if self.metric == "pass^k" else runs - passes
        share = counted / runs
        value = share_of_passing_subsets(np.full(share.shape, runs), counted, self.k).mean(axis=1)
        spread = (self.k * share ** (self.k - 1)) ** 2 * share * (1 - share)
        reach = -float(ndtri(level)) * np.sqrt(spread.sum(axis=1) / runs) / share.shape[1]
        below, above = (
            reach * _SURE_SHARE[np.searchsorted(_ROOM, room / np.maximum(reach, _TINY), "right")]
            for room in (value, 1 - value)
        )
        if runs < 2 * self.k:  # by a smaller k few runs may show more than this interval does
            below = np.zeros(below.shape)
        low, high = value - below, value + above
        return (low, high) if self.metric == "pass^k" else (1 - high, 1 - low)

    def _looks(self) -> tuple[int, ...]:
        """Looks at the planned rounds, and as densely at those that extend them."""
        looks = look_rounds(self.planned, self.k)
        step = max(1, ceil(self.planned / len(looks)))
        beyond = range(self.planned + step, self.rounds, step)
        return (*looks, *beyond, *([self.rounds] if self.rounds > self.planned else []))

    def _pooled(self, error: float, metric: str) -> tuple[int, ...]:
        demand = self.gate.demand
        assert isinstance(demand, ThresholdRequirement)
        if self.metric != metric and self.k > 1:
            return ()
        share, root = sequential.least_share(demand), 1 / self.k
        threshold = share**root if metric == "pass^k" else (1 - share) ** root
        return pass_list(threshold, POOLED * error, self.planned * self.tasks).allowed


class Rounds:
    """Rounds over the tasks of a system, or of two, seen by every gate on them.

    The order of the tasks in each round follows from the seed and the round alone. A look at round
    r takes the runs of the rounds up to r, whichever ended first. Runs in an outage are set aside
    (see `OutageGuard`); by the pooled route they speak against either verdict. `planned` are the
    rounds of the first plan, where these extend it.
    """

    def __init__(
        self,
        systems: tuple[str, ...],
        tasks: Sequence[str],
        gates: Sequence[Gate],
        *,
        stated: Mapping[str, int],
        seed: int,
    ) -> None:
        self.systems, self.tasks, self.seed = systems, tuple(tasks), seed
        self._gates = tuple(gates)
        runs = [stated.get(task, 1) for task in self.tasks]
        self._runs = [planned_rounds(gate, len(self.tasks), runs) for gate in gates]
        self._first: int | None = None
        self.trials: dict[int, dict[int, Trial]] = {}
        guard = OutageGuard(tasks=len(self.tasks), rate=min(map(_expected_rate, gates)))
        self.outages = sequential.OutageFilter([guard] * len(systems))
        self._launched: dict[int, int] = {}
        self._issued = self._made = self._restored = self._seen = self._taken = 0
        self._passes, self._failures = [0], [0]
        self._plan()

    @property
    def name(self) -> str:
        """Tells this stream from others on a ticket's stamp."""
        parts = "\x1f".join(("rounds", *self.systems, "", *self.tasks, str(self.seed)))
        return hashlib.blake2b(parts.encode(), digest_size=4).hexdigest()

    @property
    def planned(self) -> int:
        """The rounds of the plan, for the stamps of its tickets."""
        return self._first or self.watches[0].rounds

    @property
    def is_open(self) -> bool:
        return any(watch.is_open for watch in self.watches)

    @property
    def max_runs(self) -> int:
        return len(self._slots) * len(self.systems)

    @property
    def seen(self) -> int:
        """How many of its runs have ended."""
        return self._seen

    @property
    def used(self) -> int:
        """How many of its runs are in a verdict."""
        ends = [self.verdict(watch).runs for watch in self.watches]
        return max(ends)

    @property
    def paired(self) -> bool:
        return len(self.systems) == sequential.PAIR

    def next_run(self) -> sequential.Draw | None:
        """The next run of the round; None to wait or stop."""
        under_way = self._made - self._seen
        if not self.is_open or not sequential.may_go_ahead(
            under_way, self._seen, self.outages.waiting
        ):
            return None
        if self.paired and self._issued and self._launched[self._issued - 1] < sequential.PAIR:
            return self._launch(self._issued - 1)
        return self._launch(self._issued) if self._issued < len(self._slots) else None

    def restore(self, draw: int, run: int, planned: int | None = None) -> None:
        """A run that was handed out before an interruption, and the rounds planned then."""
        first = self.planned if planned is None else planned
        if first != self.planned or draw >= len(self._slots):
            # Extended since: the suite may state fewer rounds than were run.
            least = draw // len(self.tasks) + 1
            self._first = first
            self._runs = [tuple(max(run, least) for run in runs) for runs in self._runs]
            self._plan()
        self._hand_out(draw, run)
        self._restored = self._made

    def _hand_out(self, draw: int, run: int) -> None:
        self._made += 1
        self._launched[draw] = max(self._launched.get(draw, 0), run + 1)
        self._issued = max(self._issued, draw + 1)

    def observe(self, draw: int, trial: Trial) -> None:
        """A run of the rounds has ended."""
        self._seen += 1
        size, known = len(self.systems), self.trials.setdefault(draw, {})
        # A baseline from another log may bear the same name: then its run comes second.
        namesakes = len(set(self.systems)) < size
        known[len(known) if namesakes else self.systems.index(trial.system)] = trial
        while len(known := self.trials.get(self.outages.seen, {})) == size:
            self.outages.take(
                self._slots[self.outages.seen][1], [known[place] for place in range(size)]
            )
        self._look()
        if self.is_open and self.outages.seen >= len(self._slots):
            self.finish()
        elif self._first is not None and self._seen == self._restored:
            self._look_ahead()

    def finish(self) -> None:
        """No more runs will come: failures that wait are decided as they are."""
        self.outages.finish()
        self._look()

    def verdict(self, watch: RoundGate) -> Verdict:
        """What a gate said, or says so far without a verdict."""
        if watch.verdict is not None:
            return watch.verdict
        level = watch.looks[-1]
        return self._worded(watch, self._judged(watch, self._taken, level), "UNDECIDED")

    def _plan(self) -> None:
        """The slots of all rounds in their order, and the looks of every gate."""
        beyond = max(max(runs) for runs in self._runs)
        planned = self._first or beyond
        runs = [max(each) for each in zip(*self._runs, strict=True)]
        if beyond < planned:
            runs = [ceil(run * planned / beyond) for run in runs]
        self.watches = [
            RoundGate(gate, own if max(own) >= planned else runs, self._first or max(own))
            for gate, own in zip(self._gates, self._runs, strict=True)
        ]
        last = max(runs)
        self._slots = [
            (r, task)
            for r in range(1, last + 1)
            for task in _order(self.seed, r, len(runs))
            if r * runs[task] // last > (r - 1) * runs[task] // last
        ]
        ends = np.searchsorted([r for r, _ in self._slots], np.arange(1, last + 1), side="right")
        self._ends = {int(end): r for r, end in enumerate(ends, start=1)}

    def _launch(self, draw: int) -> sequential.Draw:
        run = self._launched.get(draw, 0)
        self._hand_out(draw, run)
        task = self.tasks[self._slots[draw][1]]
        return sequential.Draw(index=draw, run=run, system=self.systems[run], task=task)

    def _look(self) -> None:
        """Take the runs that are decided one by one, and look where a gate does."""
        while self.is_open and self._taken < len(self.outages.counted):
            counts = self.outages.counted[self._taken]
            first = self.trials[self._taken][0]
            self._taken += 1
            passed = first.outcome is Outcome.PASSED
            self._passes.append(self._passes[-1] + (counts and passed))
            self._failures.append(self._failures[-1] + (counts and not passed))
            for watch in self.watches:
                if watch.is_open:
                    self._look_with(watch, self._ends.get(self._taken))

    def _look_with(self, watch: RoundGate, ended: int | None) -> None:
        passes, failures = self._passes[self._taken], self._failures[self._taken]
        status = None
        # Within a round only runs that all ended alike say something: its order is random.
        if not self.paired and (ended is not None or self._taken in (passes, failures)):
            status = watch.pooled_status(self._taken, passes, failures)
        if status is not None:
            look = next(look for look in watch.looks if look >= self._slots[self._taken - 1][0])
            watch.verdict = self._worded(watch, self._judged(watch, self._taken, look), status)
        elif ended in watch.looks:
            judged = self._judged(watch, self._taken, ended)
            if judged.status != "UNDECIDED" or ended == watch.looks[-1]:
                watch.verdict = self._worded(watch, judged, judged.status)
            elif (status := self._foregone(watch)) is not None:
                watch.verdict = self._worded(watch, judged, status, foregone=True)

    def _judged(self, watch: RoundGate, taken: int, look: int) -> Verdict:
        """The gate of a whole run on the first runs, at the levels of a look."""
        alpha, beta = watch.level(look)
        gate = replace(watch.gate, alpha=alpha, beta=beta, evidence=None)
        kept = self._kept(taken)
        sides = [
            Trials.from_records([self.trials[d][place] for d in kept], duplicates=None)
            for place in range(len(self.systems))
        ]
        if not all(len(side) for side in sides):
            return Verdict(
                gate=gate, system=self.systems[0], status="UNDECIDED", clauses=(),
                estimate=Unavailable("no trial has come in yet"), evidence="bound", method="none",
                alpha=alpha, beta=beta, runs=0, errors=NO_ERRORS,
            )  # fmt: skip
        subject = SystemTrials.of(sides[0].tally())
        if self.paired:
            return judge_no_worse(gate, subject, sides[1])
        return judge_number(gate, subject, {})

    def _look_ahead(self) -> None:
        """Before an extension begins: end it where no run still to come can change a verdict."""
        waiting = self.outages.waiting
        statuses = {w: self._foregone(w, waiting) for w in self.watches if w.is_open}
        if None in statuses.values():
            return
        self.outages.finish()
        self._look()
        for watch, status in statuses.items():
            if watch.is_open and status is not None:
                judged = self._judged(watch, self._taken, watch.looks[-1])
                watch.verdict = self._worded(watch, judged, status, foregone=True)

    def _foregone(self, watch: RoundGate, waiting: int = 0) -> Status | None:
        """The status of the last look where no run still to come can change it.

        More passes never lower a bound, so runs that all pass and runs that all fail are the
        extremes; failures that are `waiting` are at best left out as an outage. Differences of two
        systems are not looked ahead.
        """
        gate, system = watch.gate, self.systems[0]
        if self.paired or not counts_passes(gate):
            return None
        taken, passes = self._taken, self._passes[self._taken]
        failures = self._failures[taken]
        seen = taken + waiting
        subject = SystemTrials.of(
            Trials.from_records(
                [self.trials[draw][0] for draw in self._kept(taken)], duplicates=None
            ).tally()
        )
        # The last look of a plan has the widest level; those beyond it have not.
        later = [look for look in watch.looks if look >= self._slots[taken][0]]
        later = later[-1:] if watch.rounds == watch.planned else later
        status: Status | None = None
        for look in later:
            alpha, beta = watch.level(look)
            at_look = replace(gate, alpha=alpha, beta=beta, evidence=None)
            worst_plan = {(system, task): 0 for task in self.tasks}
            best_plan = dict(worst_plan)
            for draw, (r, task) in enumerate(self._slots):
                worst_plan[system, self.tasks[task]] += r <= look
                best_plan[system, self.tasks[task]] += r <= look and not taken <= draw < seen
            best, worst = best_and_worst(at_look, subject, worst_plan)
            if waiting:
                best, _ = best_and_worst(at_look, subject, best_plan)
            if best.status != worst.status:
                return None
            status = best.status
            if status != "UNDECIDED":
                return status  # the looks after this one are not needed
        if watch.may_still_pool(seen, passes, failures + waiting):
            return None
        return status

    def _kept(self, taken: int) -> list[int]:
        """The draws that a look counts: all but outages, and those where they are the last.

        Nothing after them says that such failures were an outage, and a PASS without them would
        come of the very runs that failed.
        """
        counted = self.outages.counted[:taken]
        last = max((d for d in range(taken) if counted[d]), default=-1)
        return [d for d in range(taken) if counted[d] or d > last]

    def _worded(
        self, watch: RoundGate, judged: Verdict, status: Status, *, foregone: bool = False
    ) -> Verdict:
        gate, size = watch.gate, len(self.systems)
        taken = self._taken
        runs, most = taken * size, watch.rounds * watch.tasks * size
        most = min(most, self.max_runs)
        alpha, beta = watch.errors
        # The bound of this look holds although results decided when to stop; a rate does not.
        shown = [] if judged.status != status else list(filter(None, [judged.seen]))
        if not shown or (not self.paired and counts_passes(gate)):
            shown.insert(0, self._counts(taken))
        kept = self._kept(taken)
        extra = (
            *sequential.outage_words(self.outages, taken, "trial", kept=kept),
            *sequential.drift_words([self.trials[draw][0] for draw in kept]),
        )
        error = alpha if status == "PASS" else beta
        end = ["neither verdict can be reached any more"] if foregone else []
        if status != "UNDECIDED":
            end = [f"a {status} is wrong with a chance of at most {percentage(error)}"]
        if watch.rounds > watch.planned:
            planned = watch.planned * watch.tasks * size
            end.append(
                f"wrong PASS at most {percentage(gate.alpha)} within the {planned:,} trials "
                f"planned, {percentage(alpha)} within these {most:,}"
            )
        return replace(
            judged,
            gate=gate,
            status=status,
            after=f"{runs:,} of {plural(most, 'trial')}",
            clauses=(*shown, *end),
            evidence="sequential",
            method=f"rounds, {plural(len(watch.looks), 'look')}; {judged.method}",
            alpha=alpha,
            beta=beta,
            runs=runs,
            max_runs=most,
            more_runs=None if foregone or status != "UNDECIDED" else max(most - runs, 0) or None,
            boundaries=watch.boundaries,
            seed=self.seed,
            remarks=(*judged.remarks, *sequential.notes_in_sentence(extra)),
            seen="; ".join(shown),
        )

    def _counts(self, taken: int) -> str:
        """How many of the first runs passed, of both systems where two are compared."""
        if not self.paired:
            kept = [self.trials[draw][0] for draw in self._kept(taken)]
            passed = sum(trial.outcome is Outcome.PASSED for trial in kept)
            return f"{passed:,} of {plural(taken, 'trial')} passed"
        own, other = (
            sum(
                counts and self.trials[draw][place].outcome is Outcome.PASSED
                for draw, counts in enumerate(self.outages.counted[:taken])
            )
            for place in range(sequential.PAIR)
        )
        return f"{own:,} of {plural(taken, 'trial')} passed, {other:,} of {self.systems[1]}"


# Many suites at once, for plans and calibration: the same looks, levels and bounds.


def simulated_rounds(
    watch: RoundGate, rates: Sequence[Floats], rng: np.random.Generator
) -> tuple[Counts, Counts]:
    """The verdict (1 PASS, 0 FAIL, -1 UNDECIDED) and the runs of each suite, a row of `rates`.

    With two arrays of rates, of two systems, the gate compares them; else it is on a pass^k or
    pass@k.
    """
    suites, tasks = rates[0].shape
    size = tasks * len(rates)
    passes = [np.zeros((suites, tasks), dtype=int) for _ in rates]
    verdict, ended = np.full(suites, -1), np.full(suites, watch.rounds * size)
    orders = rng.spawn(1)[0]  # apart, so that who is passed does not depend on it
    for number in range(1, watch.rounds + 1):
        results = [rng.random((suites, tasks)) < share for share in rates]
        if len(rates) == 1:
            within = np.where(
                verdict < 0, _decided_within(watch, passes[0], results[0], number, orders), -1
            )
            for word, soonest in zip((1, 0), watch.soonest, strict=True):
                ended[within == word] = soonest or 0
            verdict = np.maximum(verdict, within)
        still = np.flatnonzero(verdict < 0)
        for side, passed in zip(passes, results, strict=True):
            side += passed
        statuses = np.full(still.size, -1)
        if len(rates) == 1:
            for place, total in enumerate(passes[0][still].sum(axis=1).tolist()):
                status = watch.pooled_status(number * tasks, total, number * tasks - total)
                statuses[place] = -1 if status is None else int(status == "PASS")
        if number in watch.looks and (left := np.flatnonzero(statuses < 0)).size:
            counts = [side[still[left]] for side in passes]
            statuses[left] = _looked_at(watch, counts, number)
        verdict[still] = statuses
        ended[still] = np.where(statuses >= 0, number * size, ended[still])
        if not still.size:
            break
    return verdict, ended


def _decided_within(
    watch: RoundGate,
    before: Counts,
    passed: NDArray[np.bool_],
    number: int,
    rng: np.random.Generator,
) -> Counts:
    """The statuses within a round of suites whose runs so far all ended alike: its order is random.

    `before` are the passes of each task until then, `passed` says which runs of the round passed.
    """
    statuses, past = np.full(len(before), -1), (number - 1) * watch.tasks
    for word, soonest in zip((1, 0), watch.soonest, strict=True):
        if soonest is not None and past < soonest < past + watch.tasks:
            alike = np.flatnonzero(before.sum(axis=1) == past * word)
            first = rng.permuted(passed[alike] == word, axis=1)[:, : soonest - past]
            statuses[alike[first.all(axis=1)]] = word
    return statuses


def _looked_at(watch: RoundGate, passes: Sequence[Counts], number: int) -> Counts:
    """The statuses of a look. Bounds take long: none where much narrower ones are undecided.

    One system that may pass shows it by its lower end alone, one that may fail by its upper end.
    Of two systems the second one's bounds are found where the first one's leave it open.
    """
    levels = watch.level(number)
    ends = {
        level: [watch.narrow_bounds(counts, number, level) for counts in passes]
        for level in set(levels)
    }

    def statuses() -> Counts:
        limits = [_limits(ends[level], passes, number)[side] for side, level in enumerate(levels)]
        return _statuses_at(watch.gate, *limits)

    def make_exact(side: int, suites: Counts, uppers: Sequence[bool]) -> None:
        for level, narrow in ends.items() if suites.size else ():
            exact = watch.bounds(passes[side][suites], number, level, uppers)
            for upper in uppers:
                narrow[side][upper][suites] = exact[upper]

    verdicts, demand = statuses(), watch.gate.demand
    if isinstance(demand, ThresholdRequirement):
        make_exact(0, np.flatnonzero(verdicts == 1), (not demand.upward,))
        make_exact(0, np.flatnonzero(verdicts == 0), (demand.upward,))
        return statuses()
    for side in range(len(passes)):
        make_exact(side, np.flatnonzero(verdicts >= 0), BOTH)
        verdicts = statuses()
    return verdicts


def _statuses_at(gate: Gate, low: Floats, high: Floats) -> Counts:
    demand = gate.demand
    intervals = [Interval(*ends) for ends in zip(low.tolist(), high.tolist(), strict=True)]
    if isinstance(demand, NoWorseRequirement):
        statuses = [status_of_difference(gate, demand, interval) for interval in intervals]
    else:
        assert isinstance(demand, ThresholdRequirement)
        statuses = [status_of(demand, interval) for interval in intervals]
    return np.array([{"PASS": 1, "FAIL": 0, "UNDECIDED": -1}[status] for status in statuses])


def _limits(ends: Sequence[Bounds], passes: Sequence[Counts], number: int) -> Bounds:
    """The bounds of one system, or of the difference of two by those of each (MOVER)."""
    if len(ends) == 1:
        return ends[0]
    values = [counts.mean(axis=1) / number for counts in passes]
    change = values[0] - values[1]
    below = np.hypot(values[0] - ends[0][0], ends[1][1] - values[1])
    above = np.hypot(ends[0][1] - values[0], values[1] - ends[1][0])
    return change - below, change + above


def _expected_rate(gate: Gate) -> float:
    """The pass rate of a single run that the demand asks for; 0.5 where it asks for none."""
    demand = gate.demand
    if not isinstance(demand, ThresholdRequirement):
        return _ANY_RATE
    return sequential.rate_of_one_run(sequential.least_share(demand), sequential.block_of(demand))


def _order(seed: int, number: int, tasks: int) -> list[int]:
    """The tasks of a round in an order of its own, the same on every machine."""
    digest = hashlib.blake2b(f"passhat round {seed} {number}".encode(), digest_size=8).digest()
    rng = np.random.default_rng(int.from_bytes(digest, "big"))
    return [int(task) for task in rng.permutation(tasks)]
