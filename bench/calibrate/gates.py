"""Error rates and expected runs of the gates: exact for one task, simulated for suites."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bench.calibrate.cells import run_tables
from bench.calibrate.table import Table, allowed
from passhat.stats.arguments import Counts, Floats
from passhat.stats.proportions import proportion_bounds
from passhat.stats.sequential import (
    ScoreGate,
    SuiteGate,
    TaskGate,
    fixed_design,
    wald_lower_bounds,
)
from passhat.stats.sequential.designs import Boundaries, operating_characteristics
from passhat.stats.sequential.suite_gate import (
    Ends,
    blocks_at,
    passes_at,
    simulated_ends,
    suite_rates,
)

if TYPE_CHECKING:
    from passhat.stats.sequential.suite_gate import Results

SEED = 20261115
# Someone who peeks at a Wilson interval starts to look after a handful of runs.
FIRST_LOOK = 5


def tables(*, quick: bool = False) -> list[Table]:
    """Every table of this module; `quick` for a glance of some seconds."""
    makers = [
        (_one_task, 0, 0),
        (_one_threshold, 0, 0),
        (_suites, 60, 4000),
        (_blocks, 60, 2000),
        (_scores, 60, 2000),
        (_order_of_evidence, 200, 4000),
    ]
    return run_tables("gates", makers, quick=quick)


def peeking_boundaries(p0: float, p1: float, runs: int) -> Boundaries:
    """PASS once a 95% Wilson interval lies above p0, FAIL once below p1: invalid, and popular."""
    fail_at, pass_at = [], []
    for n in range(1, runs + 1):
        low, high = proportion_bounds(np.arange(n + 1), n)
        looks = n >= FIRST_LOOK
        pass_at.append(n + 1 - int((low > p0).sum()) if looks else n + 1)
        fail_at.append(int((high < p1).sum()) - 1 if looks else -1)
    return Boundaries(fail_at=tuple(fail_at), pass_at=tuple(pass_at))


def _one_task(_repetitions: int) -> Table:
    rates, fixed = (0.5, 0.8, 0.85, 0.9, 0.95), fixed_design(0.8, 0.9)
    designs = {
        "fixed, ended when arithmetic decides": TaskGate(p0=0.8, p1=0.9, design="fixed").boundaries,
        "sprt, Ville": TaskGate(p0=0.8, p1=0.9).boundaries,
        "truncated, exactly calibrated": TaskGate(p0=0.8, p1=0.9, design="truncated").boundaries,
        "peeking at a 95% interval (invalid)": peeking_boundaries(0.8, 0.9, fixed.runs),
    }
    errors = (f"{fixed.wrong_pass:.3f}", f"{fixed.wrong_fail:.3f}")
    rows: list[tuple[str, ...]] = [("fixed", *errors, "0.000", *(str(fixed.runs),) * 6)]
    for name, boundaries in designs.items():
        exact = operating_characteristics(boundaries, rates)
        rows.append(
            (
                name,
                f"{exact.pass_probability[1]:.3f}",
                f"{exact.fail_probability[3]:.3f}",
                f"{exact.undecided_probability[2]:.3f}",
                *(f"{runs:.0f}" for runs in exact.expected_runs),
                str(exact.max_runs),
            )
        )
    bounds = wald_lower_bounds(0.8, 0.9)
    return Table(
        title="A gate on one task: p0 = 0.8, p1 = 0.9, alpha = beta = 0.05 (exact)",
        header=(
            "design",
            "wrong PASS at 0.8",
            "wrong FAIL at 0.9",
            "UNDECIDED at 0.85",
            *(f"runs at {rate}" for rate in rates),
            "at most",
        ),
        rows=rows,
        finding=(
            f"No test with these errors expects fewer than {bounds[0]:.1f} runs at 0.8 and "
            f"{bounds[1]:.1f} at 0.9 (Wald). Peeking breaks both error rates."
        ),
        repetitions=0,
        seed=SEED,
    )


def _one_threshold(_repetitions: int) -> Table:
    rates, rows = (0.6, 0.8, 0.85, 0.9, 0.93, 0.95, 0.98), []
    exact = TaskGate.at_threshold(0.9).operating_characteristics(rates)
    rows = [
        (
            f"{rate}",
            f"{exact.pass_probability[i]:.3f}",
            f"{exact.fail_probability[i]:.3f}",
            f"{exact.undecided_probability[i]:.3f}",
            f"{exact.expected_runs[i]:.0f}",
        )
        for i, rate in enumerate(rates)
    ]
    return Table(
        title="A gate on one task with one threshold, 0.9, at most 1000 runs (exact)",
        header=("rate", "PASS", "FAIL", "UNDECIDED", "expected runs"),
        rows=rows,
        finding="Either error at the threshold is at most 0.05; far from it the gate decides soon.",
        repetitions=0,
        seed=SEED,
    )


def _suites(repetitions: int, *, quick: bool) -> Table:
    means = (0.75, 0.80, 0.825, 0.85, 0.90)
    rows = [*_designs_blind_to_tasks(means)]
    cells = [(20, 0.7)] if quick else [(t, icc) for t in (20, 100) for icc in (0.0, 0.3, 0.7)]
    worst = 0.0
    for tasks, icc in cells:
        gate = SuiteGate(tasks=tasks, mu0=0.80, mu1=0.85)
        ends = {}
        for mean in means:
            # The promise is about the boundaries, which get all repetitions.
            count = repetitions if mean in (0.80, 0.85) else max(repetitions // 4, 20)
            rates = _suite(mean, icc, (count, tasks))
            ends[mean] = _simulated(gate, passes_at(rates), count)
        wrong = (ends[0.80].share(1), ends[0.85].share(0))
        worst = max(worst, *wrong)
        rows.append(
            (
                f"this gate, {tasks} tasks, ICC {icc}",
                *(f"{share:.3f}" for share in wrong),
                *(f"{ends[mean].mean_draws():.0f}" for mean in means),
                *(_in_flight(ends[0.80], ends[0.85], n) for n in (8, 64)),
            )
        )
    return Table(
        title="A gate on a suite's mean: mu0 = 0.80, mu1 = 0.85, alpha = beta = 0.05",
        header=(
            "design",
            "wrong PASS at 0.80",
            "wrong FAIL at 0.85",
            *(f"runs at {mean}" for mean in means),
            "8 in flight",
            "64 in flight",
        ),
        rows=rows,
        finding=(
            f"Largest error of the gate {worst:.3f}; allowed with Monte Carlo error "
            f"{allowed(0.05, repetitions):.3f}. Evidence is taken in draw order, so runs in flight "
            "change no verdict: the last columns are what they cost at 0.80 / 0.85. Designs that "
            "ignore tasks see a stream of coin tosses, whatever the suite; their rows are exact."
        ),
        repetitions=repetitions,
        seed=SEED,
    )


def _in_flight(at_low: Ends, at_high: Ends, count: int) -> str:
    return " / ".join(f"{end.mean_draws(in_flight=count):.0f}" for end in (at_low, at_high))


def _designs_blind_to_tasks(means: tuple[float, ...]) -> list[tuple[str, ...]]:
    fixed = fixed_design(0.80, 0.85)
    designs = {
        "SPRT on random tasks": TaskGate(p0=0.80, p1=0.85).boundaries,
        "peeking at a 95% interval (invalid)": peeking_boundaries(0.80, 0.85, fixed.runs),
    }
    errors = f"{fixed.wrong_pass:.3f}", f"{fixed.wrong_fail:.3f}"
    rows: list[tuple[str, ...]] = [("fixed", *errors, *(str(fixed.runs),) * len(means), "", "")]
    for name, boundaries in designs.items():
        exact = operating_characteristics(boundaries, means)
        errors = f"{exact.pass_probability[1]:.3f}", f"{exact.fail_probability[3]:.3f}"
        rows.append((name, *errors, *(f"{n:.0f}" for n in exact.expected_runs), "", ""))
    return rows


def _blocks(repetitions: int) -> Table:
    rows = []
    gate = SuiteGate(tasks=20, mu0=0.60, mu1=0.70, k=3)
    for icc in (0.0, 0.3, 0.7):
        cells = []
        for mean, wrong in ((0.60, 1), (0.70, 0)):
            rates = _suite(mean, icc, (repetitions, gate.tasks))
            ends = _simulated(gate, blocks_at(rates, gate.k, gate.metric), repetitions)
            cells += [f"{ends.share(wrong):.3f}", f"{ends.runs.mean():.0f}"]
        rows.append((f"{icc}", *cells, str(gate.fixed_runs)))
    return Table(
        title="A gate on reliability@3 by blocks: 20 tasks, 0.60 against 0.70",
        header=("ICC", "wrong PASS", "runs at 0.60", "wrong FAIL", "runs at 0.70", "fixed runs"),
        rows=rows,
        finding=(
            "A draw is up to three runs of one task and ends at the first failure. Allowed with "
            f"Monte Carlo error: {allowed(0.05, repetitions):.3f}."
        ),
        repetitions=repetitions,
        seed=SEED,
    )


def _scores(repetitions: int) -> Table:
    rows, shape = [], (repetitions, 20)
    score_gate = ScoreGate(tasks=20, mu0=0.80, mu1=0.85)
    paired_gate = ScoreGate.no_worse_than(0.05, tasks=20)
    threshold = ScoreGate(tasks=20, mu0=0.80, mu1=0.80, max_runs=2000)
    suites = {mean: _suite(mean, 0.3, shape) for mean in (0.75, 0.80, 0.85)}
    old = _suite(0.60, 0.5, shape)
    worse = _suite(0.55, 0.5, shape)
    cases = {
        "passes and failures, 0.80 against 0.85": (
            (score_gate, passes_at(suites[0.80])),
            (score_gate, passes_at(suites[0.85])),
        ),
        "spread scores, 0.80 against 0.85": (
            (score_gate, _partial_credit(suites[0.80], 4)),
            (score_gate, _partial_credit(suites[0.85], 4)),
        ),
        "steady scores, 0.80 against 0.85": (
            (score_gate, _partial_credit(suites[0.80], 30)),
            (score_gate, _partial_credit(suites[0.85], 30)),
        ),
        "paired passes, no worse by 0.05": (
            (paired_gate, _differences(worse, old)),
            (paired_gate, _differences(old, old)),
        ),
        "one threshold, 0.80: at it, at it": (
            (threshold, _partial_credit(suites[0.80], 4)),
            (threshold, _partial_credit(suites[0.80], 4)),
        ),
        "one threshold, 0.80: at 0.75, at 0.85": (
            (threshold, _partial_credit(suites[0.75], 4)),
            (threshold, _partial_credit(suites[0.85], 4)),
        ),
    }
    for name, ((low_gate, low), (high_gate, high)) in cases.items():
        at_low = _simulated(low_gate, low, repetitions)
        at_high = _simulated(high_gate, high, repetitions)
        rows.append(
            (
                name,
                f"{at_low.share(1):.3f}",
                f"{at_high.share(0):.3f}",
                f"{at_low.mean_draws():.0f}",
                f"{at_high.mean_draws():.0f}",
            )
        )
    return Table(
        title="A gate on scores and paired differences, 20 tasks, alpha = beta = 0.05",
        header=("case", "wrong PASS", "wrong FAIL", "runs at the low end", "at the high end"),
        rows=rows,
        finding=(
            "The bets depend on the variance: steady scores settle it in a fraction of the runs. "
            f"Allowed with Monte Carlo error: {allowed(0.05, repetitions):.3f}."
        ),
        repetitions=repetitions,
        seed=SEED,
    )


def _partial_credit(rates: Floats, steadiness: float) -> Results:
    def results(rng: np.random.Generator, alive: Counts, task: Counts) -> tuple[Floats, int]:
        mean = rates[alive, task].clip(1e-6, 1 - 1e-6)
        return rng.beta(mean * steadiness, (1 - mean) * steadiness), 1

    return results


def _differences(new: Floats, old: Floats) -> Results:
    """Paired differences of passes, as the gate sees them: [-1, 1] mapped to [0, 1]."""

    def results(rng: np.random.Generator, alive: Counts, task: Counts) -> tuple[Floats, int]:
        gained = (rng.random(alive.size) < new[alive, task]).astype(float)
        lost = (rng.random(alive.size) < old[alive, task]).astype(float)
        return (gained - lost + 1) / 2, 1

    return results


def _order_of_evidence(repetitions: int) -> Table:
    """One task at p0, many runs in flight, failures slower than passes."""
    gate, rng, rows = TaskGate(p0=0.8, p1=0.9), np.random.default_rng(SEED + 7), []
    length = gate.boundaries.max_runs
    outcomes = (rng.random((repetitions, length)) < gate.p0).astype(np.int64)
    for in_flight in (1, 8, 64):
        finished = np.sort(
            outcomes[:, : length // in_flight * in_flight].reshape(repetitions, -1, in_flight)
        )[:, :, ::-1].reshape(repetitions, -1)
        rows.append(
            (
                str(in_flight),
                f"{_wrong_passes(gate, outcomes):.3f}",
                f"{_wrong_passes(gate, finished):.3f}",
            )
        )
    return Table(
        title="The order of evidence: wrong PASS at p0 = 0.8 when failures finish last",
        header=("in flight", "in the order started (passhat)", "in the order finished (invalid)"),
        rows=rows,
        finding=(
            "If runs counted in the order they finish, fast passes would decide the verdict. "
            f"Allowed with Monte Carlo error: {allowed(0.05, repetitions):.3f}."
        ),
        repetitions=repetitions,
        seed=SEED,
    )


def _wrong_passes(gate: TaskGate, outcomes: Counts) -> float:
    boundaries, passed = gate.boundaries, outcomes.cumsum(axis=1)
    up = passed >= np.array(boundaries.pass_at)[: passed.shape[1]]
    down = passed <= np.array(boundaries.fail_at)[: passed.shape[1]]
    first_up = np.where(up.any(axis=1), up.argmax(axis=1), passed.shape[1])
    first_down = np.where(down.any(axis=1), down.argmax(axis=1), passed.shape[1])
    return float((first_up < first_down).mean())


def _suite(mean: float, icc: float, shape: tuple[int, int]) -> Floats:
    return suite_rates(mean, icc, shape, np.random.default_rng(SEED + 1))


def _simulated(gate: SuiteGate | ScoreGate, results: Results, repetitions: int) -> Ends:
    return simulated_ends(gate, results, repetitions, np.random.default_rng(SEED + 2))
