"""Sequential gates where minutes fail together, and where the agent gets worse on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from bench.calibrate.cells import run_cells
from bench.calibrate.table import Table, monte_carlo_error
from passhat.analysis.gates.gate import Verdict, parse_gate
from passhat.analysis.gates.rounds import Rounds
from passhat.analysis.gates.sequential import OutageFilter
from passhat.records import Outcome, Trial
from passhat.stats.sequential import SET_ASIDE, DrawTicket, OutageGuard, SuiteGate, TaskGate
from passhat.stats.sequential.draws import drawn_task, find_drift
from passhat.stats.sequential.suite_gate import suite_rates

SEED = 20_261_116
TASKS = 20
ROUNDS = 10
IN_ROUNDS = "pass^1 >= 0.8"
ICC = 0.3


@dataclass(frozen=True, slots=True)
class SimulationModel:
    """Minutes of `length` runs in which, with chance `share`, `failing` of the runs fail."""

    name: str
    share: float
    length: int
    failing: float = 1.0


WORLDS = (
    SimulationModel("no outage", 0.0, 8),
    SimulationModel("5% of minutes of 8 runs", 0.05, 8),
    SimulationModel("10% of minutes of 8 runs", 0.10, 8),
    SimulationModel("10% of spells of 30 runs", 0.10, 30),
    SimulationModel("10% of minutes of 8 runs, 80% of the runs in them", 0.10, 8, 0.8),
)


def tables(*, quick: bool = False) -> list[Table]:
    repetitions = (60, 10) if quick else (2000, 200)
    return [
        _rounds(10 if quick else 200),
        _drift_in_rounds(10 if quick else 200),
        _one_task(repetitions[0]),
        _suite(repetitions[1]),
        _drift(repetitions[0]),
    ]


def _rounds(repetitions: int) -> Table:
    given = [
        (world, guarded, rate, repetitions)
        for world in range(len(WORLDS))
        for guarded in (False, True)
        for rate in (0.8, 0.9)
    ]
    found = dict(zip(given, run_cells("outages", rounds_cell, given), strict=True))
    rows, error = [], monte_carlo_error(0.05, repetitions)
    for place, world in enumerate(WORLDS):
        for guarded in (False, True):
            low, high = (found[place, guarded, rate, repetitions] for rate in (0.8, 0.9))
            rows.append(
                (
                    world.name,
                    "guard" if guarded else "none",
                    f"{low['PASS']:.3f}",
                    f"{low['FAIL']:.3f}",
                    f"{high['PASS']:.3f}",
                    f"{high['FAIL']:.3f}",
                    f"{low['runs']:.0f} / {high['runs']:.0f}",
                    f"{low['outages']:.2f} / {high['outages']:.2f}",
                )
            )
    return Table(
        title=f"Rounds where minutes fail together: {TASKS} x {ROUNDS}, {IN_ROUNDS}",
        header=(
            "outages", "guard", "wrong PASS at 0.8", "wrong FAIL at 0.8", "PASS at 0.9",
            "wrong FAIL at 0.9", "trials at 0.8 / 0.9", "set aside a run",
        ),
        rows=rows,
        finding="The stream of `run --until-decided`, its guard and its waits, with a trial a "
        "second. Rates are those outside outages; both verdicts are wrong at 0.8. Where one trial "
        "in five of an outage still passes, rows are short and only some are set aside: that is "
        "not promised, and neither is a spell that outlasts the waits: it is taken for a broken "
        f"agent. One Monte Carlo standard error at 0.05 is {error:.4f}.",
        repetitions=repetitions,
        seed=SEED,
    )  # fmt: skip


def rounds_cell(place: int, guarded: bool, mean: float, repetitions: int) -> dict[str, float]:
    rng = np.random.default_rng([SEED, 300 + place, guarded, round(100 * mean)])
    world, ends = WORLDS[place], []
    for _ in range(repetitions):
        rates = suite_rates(mean, ICC, (1, TASKS), rng)[0]
        minutes = dict[int, bool]()

        def passes(task: int, second: float, rates=rates, minutes=minutes) -> bool:
            minute = int(second // world.length)
            down = minutes.setdefault(minute, bool(rng.random() < world.share))
            if down and rng.random() < world.failing:
                return False
            return bool(rng.random() < rates[task])

        verdict, stream = _run_in_rounds(passes, seed=int(rng.integers(2**31)), guarded=guarded)
        ends.append((verdict.status, stream.seen, len(stream.outages.outages)))
    return _shares(ends)


def _run_in_rounds(
    passes: Callable[[int, float], bool], *, seed: int, guarded: bool
) -> tuple[Verdict, Rounds]:
    """A stream of rounds until it has its verdict, a trial a second, with the waits it asks for."""
    names = [f"task {i:02}" for i in range(TASKS)]
    gate = parse_gate(IN_ROUNDS)
    stream = Rounds(("agent",), names, [gate], stated=dict.fromkeys(names, ROUNDS), seed=seed)
    if not guarded:
        stream.outages = _Unguarded([])
    second = 0.0
    while (draw := stream.next_run()) is not None:
        passed = passes(names.index(draw.task), second)
        stream.observe(
            draw.index,
            Trial(
                system="agent",
                task=draw.task,
                trial=draw.index,
                outcome=Outcome.PASSED if passed else Outcome.FAILED,
                score=float(passed),
                started=datetime.fromtimestamp(second, UTC).isoformat(),
                seconds=1.0,
            ),
        )
        second = max(second + 1, stream.outages.resume_at or 0.0)
        stream.outages.resume_at = None
    return stream.verdict(stream.watches[0]), stream


class _Unguarded(OutageFilter):
    """Every draw counts as it comes."""

    def take(self, _task: int, trials: Sequence[Trial | None]) -> None:
        self._seen.append(list(trials))
        self.counted.append(True)


def _drift_in_rounds(repetitions: int) -> Table:
    given = [(start, end, repetitions) for start, end in DRIFTS]
    found = run_cells("outages", drift_in_rounds_cell, given)
    rows = [
        (
            f"{start:g} to {end:g}" if start != end else f"steady, {start:g}",
            f"{one['PASS']:.2f}",
            f"{one['FAIL']:.2f}",
            f"{one['runs']:.0f}",
            f"{one['outages']:.3f}",
        )
        for (start, end, _), one in zip(given, found, strict=True)
    ]
    return Table(
        title=f"Rounds where the agent gets worse on the way: {TASKS} x {ROUNDS}, {IN_ROUNDS}",
        header=("the mean rate over the plan", "PASS", "FAIL", "trials", "drift reported"),
        rows=rows,
        finding="Every task moves alike from the first planned trial to the last. Rounds spread "
        "each task over the whole time, so that what is judged is the mean of the time that was "
        "watched; where its trials show a drift, the verdict says so: in at most 0.01 of steady "
        "runs.",
        repetitions=repetitions,
        seed=SEED,
    )


DRIFTS = ((0.8, 0.8), (0.9, 0.9), (0.95, 0.75), (0.97, 0.6), (0.97, 0.4))


def drift_in_rounds_cell(start: float, end: float, repetitions: int) -> dict[str, float]:
    rng = np.random.default_rng([SEED, 400, round(100 * start), round(100 * end)])
    ends, last = [], TASKS * ROUNDS
    for _ in range(repetitions):
        low, high = (suite_rates(mean, ICC, (1, TASKS), rng)[0] for mean in (start, end))
        ranks = np.sort(low), np.sort(high)

        def passes(task: int, second: float, ranks=ranks) -> bool:
            done = min(second / last, 1.0)
            return bool(rng.random() < (1 - done) * ranks[0][task] + done * ranks[1][task])

        verdict, stream = _run_in_rounds(passes, seed=int(rng.integers(2**31)), guarded=True)
        drifts = any("pass rate changed" in note.text for note in verdict.remarks)
        ends.append((verdict.status, stream.seen, int(drifts)))
    return _shares(ends)


def _one_task(repetitions: int) -> Table:
    return _table(
        "Sequential gates where minutes fail together: one task, 0.8 against 0.9",
        one_task_cell,
        (0.8, 0.9),
        repetitions,
        "Errors are of the rate outside outages. The guard sets a row of failures that is too long "
        "for chance aside and waits until the minute is over. An agent that never passes FAILs "
        "after 14 runs with the guard and 5 without.",
    )


def _suite(repetitions: int) -> Table:
    return _table(
        f"Sequential gates where minutes fail together: {TASKS} tasks, ICC 0.7, 0.80 against 0.85",
        suite_cell,
        (0.8, 0.85),
        repetitions,
        "The same for the mean of a suite. Where some runs of an outage still pass, rows are short "
        "and only some are set aside: that is not promised.",
    )


def _table(
    title: str,
    cell: Callable[..., object],
    rates: tuple[float, float],
    repetitions: int,
    finding: str,
) -> Table:
    given = [
        (world, guarded, rate, repetitions)
        for world in range(len(WORLDS))
        for guarded in (False, True)
        for rate in rates
    ]
    found = dict(zip(given, run_cells("outages", cell, given), strict=True))
    rows = []
    for place, world in enumerate(WORLDS):
        for guarded in (False, True):
            low, high = (found[place, guarded, rate, repetitions] for rate in rates)
            rows.append(
                (
                    world.name,
                    "guard" if guarded else "none",
                    f"{low['PASS']:.3f}",
                    f"{high['FAIL']:.3f}",
                    f"{low['runs']:.0f} / {high['runs']:.0f}",
                    f"{low['outages']:.2f} / {high['outages']:.2f}",
                )
            )
    error = monte_carlo_error(0.05, repetitions)
    return Table(
        title=title,
        header=(
            "outages",
            "guard",
            f"wrong PASS at {rates[0]}",
            f"wrong FAIL at {rates[1]}",
            "runs at the low / high end",
            "set aside a run",
        ),
        rows=rows,
        finding=f"{finding} One Monte Carlo standard error at 0.05 is {error:.4f}.",
        repetitions=repetitions,
        seed=SEED,
    )


def one_task_cell(place: int, guarded: bool, rate: float, repetitions: int) -> dict[str, float]:
    rng = np.random.default_rng([SEED, place, guarded, round(100 * rate)])
    gate = TaskGate(p0=0.8, p1=0.9)
    boundaries = gate.boundaries
    guard = OutageGuard(tasks=1, rate=0.8, least_failure=0.2) if guarded else None

    def one() -> tuple[str, int, int]:
        runs = passes = 0
        spent, outages = 0, 0
        for counts, x, spent, outages in _taken(
            WORLDS[place], guard, boundaries.max_runs, lambda _: (0, rng.random() < rate), rng
        ):
            if not counts:
                continue
            runs, passes = runs + 1, passes + x
            if passes >= boundaries.pass_at[runs - 1]:
                return "PASS", spent, outages
            if passes <= boundaries.fail_at[runs - 1]:
                return "FAIL", spent, outages
        return "UNDECIDED", spent, outages

    return _shares([one() for _ in range(repetitions)])


def suite_cell(place: int, guarded: bool, mean: float, repetitions: int) -> dict[str, float]:
    rng = np.random.default_rng([SEED, 100 + place, guarded, round(100 * mean)])
    guard = OutageGuard(tasks=TASKS, rate=0.8) if guarded else None

    def one() -> tuple[str, int, int]:
        rates = suite_rates(mean, 0.7, (1, TASKS), rng)[0]
        gate = SuiteGate(tasks=TASKS, mu0=0.8, mu1=0.85, seed=int(rng.integers(2**31)))
        state, spent, outages = gate.start(), 0, 0

        def attempt(index: int) -> tuple[int, bool]:
            task = drawn_task(gate.seed, index, TASKS)
            return task, bool(rng.random() < rates[task])

        taken = _taken(WORLDS[place], guard, gate.max_draws, attempt, rng)
        for index, (counts, x, spent, outages) in enumerate(taken):  # noqa: B007
            ticket = DrawTicket(index, drawn_task(gate.seed, index, TASKS), 0)
            state = gate.observe(state, ticket, float(x) if counts else SET_ASIDE)
            if state.verdict is not None:
                break
        return state.verdict or "UNDECIDED", spent, outages

    return _shares([one() for _ in range(repetitions)])


def _taken(
    world: SimulationModel,
    guard: OutageGuard | None,
    most: int,
    attempt: Callable[[int], tuple[int, bool]],
    rng: np.random.Generator,
) -> Iterator[tuple[bool, bool, int, int]]:
    """Runs in order as a gate takes them: whether each counts, its result, runs, outages so far."""
    state = None if guard is None else guard.start()
    clock, minute, down = 0, -1, False
    waiting: list[bool] = []
    for index in range(most):
        if clock // world.length != minute:
            minute, down = clock // world.length, rng.random() < world.share
        clock += 1
        task, passed = attempt(index)
        if down and rng.random() < world.failing:
            passed = False
        if guard is None or state is None:
            yield True, passed, index + 1, 0
            continue
        waiting.append(passed)
        before = state.stretches
        state, flags = guard.observe(state, task, passed)
        if state.stretches > before:
            clock = (clock // world.length + 1) * world.length  # wait until the minute is over
        if index + 1 == most:
            state, rest = guard.finish(state)
            flags += rest
        for counts in flags:
            yield counts, waiting.pop(0), index + 1, len(state.outages)


def _shares(ends: list[tuple[str, int, int]]) -> dict[str, float]:
    words = [word for word, _, _ in ends]
    return {
        **{word: words.count(word) / len(words) for word in ("PASS", "FAIL", "UNDECIDED")},
        "runs": float(np.mean([runs for _, runs, _ in ends])),
        "outages": float(np.mean([outages for _, _, outages in ends])),
    }


def _drift(repetitions: int) -> Table:
    given = [(0.8, 0.8, 1, repetitions), (0.9, 0.9, 1, repetitions)]
    given += [(0.97, end, span, repetitions) for end in (0.75, 0.5) for span in (50, 100, 200)]
    rows = [
        (
            f"{start:g} to {end:g} over {span} runs" if start != end else f"steady, {start:g}",
            f"{one['PASS']:.2f}", f"{one['FAIL']:.2f}", f"{one['runs']:.0f}",
            f"{one['outages']:.3f}",
        )
        for (start, end, span, _), one in zip(
            given, run_cells("outages", drift_cell, given), strict=True
        )
    ]  # fmt: skip
    return Table(
        title="Sequential gates where the agent gets worse on the way: one task, 0.8 against 0.9",
        header=("the rate", "PASS", "FAIL", "runs", "drift reported"),
        rows=rows,
        finding="A gate that PASSes early describes an agent that was still good; the end of the "
        "drift is not in its runs, and no test of those runs can see it. Where they show a drift, "
        "the verdict says so: in at most 0.01 of steady runs.",
        repetitions=repetitions,
        seed=SEED,
    )


def drift_cell(start: float, end: float, span: int, repetitions: int) -> dict[str, float]:
    rng = np.random.default_rng([SEED, 200, round(100 * end), span])
    boundaries = TaskGate(p0=0.8, p1=0.9).boundaries
    rates = np.concatenate([np.linspace(start, end, span), np.full(boundaries.max_runs, end)])
    ends = []
    for _ in range(repetitions):
        results = rng.random(boundaries.max_runs) < rates[: boundaries.max_runs]
        passes = np.cumsum(results)
        above = passes >= np.array(boundaries.pass_at)
        below = passes <= np.array(boundaries.fail_at)
        first = int(np.argmax(above | below))
        word = "PASS" if above[first] else "FAIL" if below[first] else "UNDECIDED"
        seen = find_drift([0] * (first + 1), results[: first + 1].tolist())
        ends.append((word, first + 1, int(seen is not None)))
    return _shares(ends)
