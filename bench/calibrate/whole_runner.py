"""Error rates of gates that end real runs: the whole runner, driven at full speed.

Nothing is simulated but the agent: tickets, workers, journal, interruptions and resumes are those
of `passhat run`. Failures take longer than passes, so that taking evidence as it comes in would
show.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.calibrate.cells import run_cells
from bench.calibrate.stopping import in_full, spread_rates, standard_error
from bench.calibrate.table import Table, allowed
from passhat.analysis.gates.fixed_sample import judge_number
from passhat.analysis.gates.gate import parse_gate
from passhat.analysis.gates.rounds import RoundGate
from passhat.analysis.gates.stopping import StoppingRule
from passhat.analysis.reports.metrics import SystemTrials
from passhat.records import Pairing, PythonSystem, Suite, Tally, Task
from passhat.runner import MemoryJournal, run_trials
from passhat.runner.schedule import Event, TrialFinished
from passhat.stats.sequential.designs import operating_characteristics
from passhat.stats.sequential.suite_gate import suite_rates

SEED = 20261116
CONCURRENCIES = (1, 8, 64)
SLOWNESS_OF_FAILURE = 20
ERROR_RATE = 0.1

ONE_TASK = {"require": "pass^1 >= 0.8", "indifference": 0.1}
SUITE = {"require": "pass^1 >= 0.8", "indifference": 0.05}
SUITE_TASKS, SUITE_ICC = 20, 0.7
# How far the truth is from the threshold, in standard errors of the estimate after all trials.
NEAR = 2.5
IN_ROUNDS = {"one task": (1, 100), "4 x 20": (4, 20), "20 x 10": (20, 10), "100 x 5": (100, 5)}
DEMAND, THRESHOLD, K = "pass^3 >= 0.8", 0.8, 3
# T x R, what is demanded of a against b, the rate of a minus that of b.
PAIRS = (
    ("4 x 20", "better_than b", 0.0),
    ("20 x 10", "better_than b", 0.0),
    ("100 x 5", "better_than b", 0.0),
    ("20 x 10", "better_than b", 0.1),
    ("20 x 10", "no_worse_than b by 0.05", -0.05),
    ("20 x 10", "no_worse_than b by 0.05", 0.0),
    ("20 x 10", "equivalent_to b by 0.1", 0.0),
)
BASELINE_RATE = 0.7
BOUND_CELLS = tuple((t, n, k) for t in (1, 5, 20, 50) for n in (5, 10, 20) for k in (1, 3))


Suites = Sequence[Sequence[float]]
"""The rate of every task, suite by suite."""


class Crash(Exception):
    """The process is taken to have died here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """How the runner is driven: trials at once, crashes, errors."""

    concurrency: int
    interrupted: bool = False
    errors: bool = False

    @property
    def name(self) -> str:
        more = [word for word in ("interrupted", "errors") if getattr(self, word)]
        return ", ".join([f"{self.concurrency} at once", *more])


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One run: its verdict, the runs that were evidence, and those that were paid for."""

    status: str
    evidence: int
    paid: int


async def agent(seed: int, values: dict[str, Any]) -> bool:
    """Passes and errs with the chances of its task; a failure is slow."""
    chance = random.Random(seed)
    errs, passes = chance.random() < values["errors"], chance.random() < values["rate"]
    for _ in range(0 if passes and not errs else SLOWNESS_OF_FAILURE):
        await asyncio.sleep(0)
    if errs:
        raise ConnectionError("the connection broke")
    return passes


def tables(*, quick: bool = False) -> list[Table]:
    """Every table of this module; `quick` for a glance."""
    settings = [Setting(concurrency=n) for n in CONCURRENCIES]
    settings += [Setting(concurrency=n, interrupted=True) for n in CONCURRENCIES]
    settings += [Setting(concurrency=n, interrupted=True, errors=True) for n in CONCURRENCIES]
    return [
        _in_rounds(8 if quick else 1000),
        _pairs_in_rounds(4 if quick else 400),
        _one_task(settings, 10 if quick else 100),
        _suite(settings, 4 if quick else 40),
        _bounds(20 if quick else 2000),
    ]


def drive(
    gate: dict[str, Any],
    rates: Sequence[float],
    setting: Setting,
    *,
    seed: int,
    baseline: Sequence[float] = (),
) -> Outcome:
    """One whole run until its gate is settled, crashed and resumed where the setting says so."""
    suite = _suite_of({"a": rates, "b": baseline}, setting, seed)
    journal, chance = MemoryJournal(), random.Random(seed)
    while True:
        rule = StoppingRule(suite.pairings, [gate], until_settled=True, seed=seed)
        crash = _crash_after(chance.randint(5, 60)) if setting.interrupted else None
        try:
            result = run_trials(
                suite,
                stopping_rule=rule,
                journal=journal,
                on_event=crash,
                concurrency=setting.concurrency,
                handle_signals=False,
            )
        except Crash:
            continue
        verdict = rule.verdicts()[0]
        return Outcome(status=verdict.status, evidence=verdict.runs, paid=len(result.trials))


def _suite_of(rates: Mapping[str, Sequence[float]], setting: Setting, seed: int) -> Suite:
    errors = ERROR_RATE if setting.errors else 0.0
    pairings = tuple(
        Pairing(
            system=PythonSystem(name=system, function=f"{agent.__module__}:{agent.__name__}"),
            # an errored run counts as a failure: the rate of runs that pass stays as it is
            task=Task(
                name=f"task {i:03}",
                prompt="Do it.",
                values={"rate": min(1.0, rate / (1 - errors)), "errors": errors},
            ),
            runs=1,
            label=f"task {i:03}",
        )
        for system, each in rates.items()
        for i, rate in enumerate(each)
    )
    return Suite(name="calibration", pairings=pairings, seed=seed * 100_003)


def _crash_after(trials: int) -> Callable[[Event], None]:
    left = trials

    def on_event(event: Event) -> None:
        nonlocal left
        if isinstance(event, TrialFinished):
            left -= 1
            if left == 0:
                raise Crash

    return on_event


def _in_rounds(repetitions: int) -> Table:
    """The rule that every run without an indifference zone follows, at and around a threshold."""
    truths = ("at the threshold", "-2.5 s.e.", "+2.5 s.e.", "never fails")
    few = {"at the threshold": repetitions, "never fails": max(2, repetitions // 20)}
    given = [
        (shape, truth, max(2, few.get(truth, repetitions // 4) // (2 if shape == "100 x 5" else 1)))
        for shape in IN_ROUNDS
        for truth in truths
    ]
    rows, largest = [], 0.0
    for (shape, truth, count), found in zip(
        given, run_cells("whole_runner", rounds_cell, given), strict=True
    ):
        tasks, rounds = IN_ROUNDS[shape]
        if truth == "at the threshold":
            largest = max(largest, found["PASS"], found["FAIL"])
        full = "" if found["in full"] is None else " / ".join(f"{x:.3f}" for x in found["in full"])
        rows.append((f"{shape}, {tasks * rounds}", truth, *_words(found), full, f"{count}"))
    return Table(
        title="Whole runs in rounds: pass^3 >= 0.8, at most N trials",
        header=("suite, N", "truth", *_WORDS_HEADER, "in full: PASS / FAIL", "repetitions"),
        rows=rows,
        finding=(
            "`run --until-decided` with eight trials at once, one run in five interrupted and "
            "resumed. Tasks differ (logit-normal, sd 2.5). At the threshold PASS and FAIL are "
            f"wrong, promised 0.05 each: the largest is {largest:.3f}, allowed with Monte Carlo "
            f"error {allowed(0.05, repetitions):.3f}. In full: all N trials judged at 5%, "
            f"{FULL_SUITES:,} suites. Trials under way at the verdict are paid for."
        ),
        repetitions=repetitions,
        seed=SEED,
    )


FULL_SUITES = 4_000


def rounds_cell(shape: str, truth: str, repetitions: int) -> dict[str, Any]:
    tasks, rounds = IN_ROUNDS[shape]
    at = spread_rates(tasks, "high" if tasks > 1 else "equal", K, THRESHOLD)
    steps = {"-2.5 s.e.": -NEAR, "+2.5 s.e.": NEAR}.get(truth, 0.0)
    aim = THRESHOLD + steps * standard_error(at, K, rounds)
    rates = spread_rates(tasks, "high" if tasks > 1 else "equal", K, min(aim, 0.995))
    if truth == "never fails":
        rates = np.ones(tasks)
    gate = {"require": DEMAND, "max_runs": tasks * rounds}
    ends = [
        drive(gate, rates.tolist(), Setting(concurrency=8, interrupted=i % 5 == 0), seed=i)
        for i in range(repetitions)
    ]
    watch = RoundGate(parse_gate(DEMAND), (rounds,) * tasks, rounds)
    many = np.tile(rates, (FULL_SUITES, 1))
    full = in_full(watch, many, THRESHOLD, np.random.default_rng(SEED))
    return _shares(ends) | {"in full": [float((full == word).mean()) for word in (1, 0)]}


def _pairs_in_rounds(repetitions: int) -> Table:
    given = [
        (shape, demand, difference, max(2, repetitions // (2 if shape == "100 x 5" else 1)))
        for shape, demand, difference in PAIRS
    ]
    rows = []
    for (shape, demand, difference, count), found in zip(
        given, run_cells("whole_runner", pairs_cell, given), strict=True
    ):
        tasks, rounds = IN_ROUNDS[shape]
        name = f"{shape}, {2 * tasks * rounds}"
        rows.append((name, f"{demand}, {difference:+.2f}", *_words(found), f"{count}"))
    return Table(
        title="Whole runs in rounds: two systems side by side",
        header=("suite, N", "demand, difference", *_WORDS_HEADER, "repetitions"),
        rows=rows,
        finding=(
            "The same for pairs; the second system passes 70% of the time. Equal systems are "
            "neither better nor worse, so there both verdicts of `better_than` are wrong; at "
            "-0.05 both of `no_worse_than by 0.05` are. Promised 0.05 each, allowed with Monte "
            f"Carlo error {allowed(0.05, repetitions):.3f} ({allowed(0.05, repetitions // 2):.3f} "
            "for 100 x 5)."
        ),
        repetitions=repetitions,
        seed=SEED,
    )


def pairs_cell(shape: str, demand: str, difference: float, repetitions: int) -> dict[str, Any]:
    tasks, rounds = IN_ROUNDS[shape]
    new, old = (
        spread_rates(tasks, "high", 1, mean).tolist()
        for mean in (BASELINE_RATE + difference, BASELINE_RATE)
    )
    gate = {"require": demand, "max_runs": 2 * tasks * rounds, "system": "a"}
    return _shares(
        [
            drive(gate, new, Setting(concurrency=8, interrupted=i % 5 == 0), seed=i, baseline=old)
            for i in range(repetitions)
        ]
    )


_WORDS_HEADER = ("PASS", "FAIL", "UNDECIDED", "trials judged / paid for")


def _words(found: Mapping[str, Any]) -> tuple[str, ...]:
    shares = (f"{found[word]:.3f}" for word in ("PASS", "FAIL", "UNDECIDED"))
    return *shares, f"{found['evidence']:.0f} / {found['paid']:.0f}"


def _shares(ends: Sequence[Outcome]) -> dict[str, float]:
    return {
        **{word: _share(ends, word) for word in ("PASS", "FAIL", "UNDECIDED")},
        "evidence": float(np.mean([end.evidence for end in ends])),
        "paid": float(np.mean([end.paid for end in ends])),
    }


def _one_task(settings: Sequence[Setting], repetitions: int) -> Table:
    suites = ([0.8],) * repetitions, ([0.9],) * repetitions
    rows, pooled = _rows(ONE_TASK, [(setting, *suites) for setting in settings])
    return Table(
        title="Whole runs: one task, 0.8 against 0.9, alpha = beta = 0.05",
        header=_HEADER,
        rows=(*rows, _peeking(0.8, 0.9)),
        finding=(
            "A fixed design takes 135 runs; Wald's bounds are 59.7 and 72.2. Runs under way when "
            "the verdict falls are paid for. Allowed with Monte Carlo error: "
            f"{allowed(0.05, repetitions):.3f} in a row, {allowed(0.05, pooled):.3f} in all."
        ),
        repetitions=repetitions,
        seed=SEED,
    )


def _suite(settings: Sequence[Setting], repetitions: int) -> Table:
    shape, rng = (repetitions, SUITE_TASKS), np.random.default_rng(SEED)
    cases = [
        (setting, *(_suites(mean, setting, shape, rng) for mean in (0.80, 0.85)))
        for setting in settings
    ]
    rows, pooled = _rows(SUITE, cases)
    return Table(
        title=f"Whole runs: {SUITE_TASKS} tasks, ICC {SUITE_ICC}, 0.80 against 0.85",
        header=_HEADER,
        rows=(*rows, _peeking(0.80, 0.85)),
        finding=(
            "A fixed design takes 625 runs. One run in ten that errors is luck on top, so those "
            "suites take longer. Allowed with Monte Carlo error: "
            f"{allowed(0.05, repetitions):.3f} in a row, {allowed(0.05, pooled):.3f} in all."
        ),
        repetitions=repetitions,
        seed=SEED,
    )


def _suites(
    mean: float, setting: Setting, shape: tuple[int, int], rng: np.random.Generator
) -> Suites:
    """Suites whose runs pass at this mean, errors counted as failures."""
    kept = 1 - ERROR_RATE if setting.errors else 1.0
    return (kept * suite_rates(mean / kept, SUITE_ICC, shape, rng)).tolist()


def _bounds(repetitions: int) -> Table:
    """Gates at exactly the truth: every verdict but UNDECIDED is wrong."""
    rng = np.random.default_rng(SEED + 1)
    rows, worst = [], 0.0
    for tasks, runs, k in BOUND_CELLS:
        wrong = _wrong_verdicts(tasks, runs, k, repetitions, rng)
        worst = max(worst, *wrong)
        rows.append((f"{tasks}", f"{runs}", f"{k}", *(f"{share:.3f}" for share in wrong)))
    return Table(
        title="Gates by a bound: a fixed number of runs, the truth exactly at the threshold",
        header=("tasks", "runs of each", "k of pass^k", "wrong PASS", "wrong FAIL"),
        rows=rows,
        finding=(
            f"alpha = beta = 0.05; rates drawn from Beta(4, 1), new for every repetition. Largest "
            f"error {worst:.3f}; allowed with Monte Carlo error {allowed(0.05, repetitions):.3f}. "
            "One task is exact (Clopper-Pearson)."
        ),
        repetitions=repetitions,
        seed=SEED + 1,
    )


def _wrong_verdicts(
    tasks: int, runs: int, k: int, repetitions: int, rng: np.random.Generator
) -> tuple[float, float]:
    words = []
    for _ in range(repetitions):
        rates = rng.beta(4, 1, tasks)
        passed = rng.binomial(runs, rates)
        tally = Tally(
            system="agent",
            tasks=tuple(f"task {i}" for i in range(tasks)),
            passed=passed,
            failed=runs - passed,
            errored=np.zeros(tasks, np.int64),
            score_total=passed.astype(float),
            score_squares=passed.astype(float),
        )
        gate = parse_gate(f"pass^{k} >= {float((rates**k).mean())}")
        words.append(judge_number(gate, SystemTrials.of(tally), {}).status)
    return words.count("PASS") / repetitions, words.count("FAIL") / repetitions


_HEADER = (
    "how it is run",
    "wrong PASS at the low end",
    "wrong FAIL at the high end",
    "evidence at the low / high end",
    "paid for at the low / high end",
)


def _rows(
    gate: dict[str, Any], cases: Sequence[tuple[Setting, Suites, Suites]]
) -> tuple[list[tuple[str, ...]], int]:
    """A row a setting, each with seeds of its own, and one for all; how many runs that is."""
    rows, all_low, all_high = [], list[Outcome](), list[Outcome]()
    for place, (setting, low, high) in enumerate(cases):
        first = place * len(low)
        at_low = [drive(gate, rates, setting, seed=first + i) for i, rates in enumerate(low)]
        at_high = [drive(gate, rates, setting, seed=first + i) for i, rates in enumerate(high)]
        rows.append((setting.name, *_cells(at_low, at_high)))
        all_low += at_low
        all_high += at_high
    return [*rows, ("all of these", *_cells(all_low, all_high))], len(all_low)


def _cells(at_low: Sequence[Outcome], at_high: Sequence[Outcome]) -> tuple[str, ...]:
    return (
        f"{_share(at_low, 'PASS'):.3f}",
        f"{_share(at_high, 'FAIL'):.3f}",
        " / ".join(f"{np.mean([o.evidence for o in side]):.0f}" for side in (at_low, at_high)),
        " / ".join(f"{np.mean([o.paid for o in side]):.0f}" for side in (at_low, at_high)),
    )


def _share(outcomes: Sequence[Outcome], status: str) -> float:
    return sum(outcome.status == status for outcome in outcomes) / len(outcomes)


def _peeking(low: float, high: float) -> tuple[str, ...]:
    """The popular way, for comparison: stop as soon as a 95% interval looks settled."""
    from bench.calibrate.gates import peeking_boundaries
    from passhat.stats.sequential import fixed_design

    boundaries = peeking_boundaries(low, high, fixed_design(low, high).runs)
    exact = operating_characteristics(boundaries, (low, high))
    runs = " / ".join(f"{count:.0f}" for count in exact.expected_runs)
    errors = f"{exact.pass_probability[0]:.3f}", f"{exact.fail_probability[1]:.3f}"
    return ("peeking at a 95% interval (invalid, exact)", *errors, runs, runs)
