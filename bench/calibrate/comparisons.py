"""Error rates, coverage and power of the comparisons and change points, simulated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, product
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, stdtrit

from bench.calibrate.cells import run_tables
from bench.calibrate.comparison_peers import (
    percentile_bootstrap_rejects,
    welch_p_values,
)
from bench.calibrate.simulated_suites import beta_rates
from bench.calibrate.table import Table, monte_carlo_error
from passhat.stats.arguments import Floats
from passhat.stats.estimate import TASKS_LIKE_THESE, THIS_SUITE, Scope
from passhat.stats.exact_tests import sign_flip_tests
from passhat.stats.multiple_testing import holm, minimum_runs, task_tests
from passhat.stats.paired import UNSEEN_IN_TEST, PairedDifference, paired_difference
from passhat.stats.population_bounds import lower_tail
from passhat.stats.sufficient_statistics import TaskSums
from passhat.stats.trend import MeanSeries, PassSeries, TaskSeries, change_points

SEED = 20261115
MEAN = 0.7
ICCS = (0.0, 0.3, 0.7)
SCOPES: tuple[Scope, ...] = (TASKS_LIKE_THESE, THIS_SUITE)

# How system b relates to system a, task by task; the first two are nulls in both scopes.
Relation = Literal["same", "permuted", "weaker"]
NULLS: tuple[Relation, ...] = ("same", "permuted")
Rates = tuple[Floats, Floats]
Sides = tuple[TaskSums, TaskSums]


def tables(*, quick: bool = False) -> list[Table]:
    """Every table of this module; `quick` for a glance of some seconds."""
    makers = [
        (_type_one, 100, 1000),
        (_coverage, 100, 1000),
        (_bootstrap, 200, 2000),
        (_equivalence, 100, 1000),
        (_power, 60, 500),
        (_beside_t, 60, 1000),
        (_twelve_tasks, 1000, 100_000),
        (_family, 200, 4000),
        (_false_alarms, 30, 400),
        (_delays, 10, 100),
    ]
    return run_tables("comparisons", makers, quick=quick)


def rates(
    rng: np.random.Generator, tasks: int, icc: float, relation: Relation, mean: float = MEAN
) -> Rates:
    """True pass rates of both systems on a suite with this mean and intraclass correlation."""
    a = beta_rates(rng, tasks, icc=icc, mean=mean) if icc else np.full(tasks, mean)
    # The tasks come in no order, so a turn is a permutation: equal means, unlike tasks.
    return a, {"same": a, "permuted": np.roll(a, 1), "weaker": 0.85 * a}[relation]


def runs_of(rng: np.random.Generator, true: Rates, n: int) -> Sides:
    left, right = (TaskSums.of_passes(np.full(p.size, n), rng.binomial(n, p)) for p in true)
    return left, right


def compared(sides: Sides, scope: Scope, margin: float | None = None) -> PairedDifference:
    found = paired_difference(*sides, scope=scope, margin=margin)
    assert isinstance(found, PairedDifference)
    return found


def designs(quick: bool) -> Iterator[tuple[int, int]]:
    return product((6, 20) if quick else (6, 10, 20, 50, 200), (1, 5) if quick else (1, 2, 5, 20))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One setting in which two systems are equal, and how often they were called different."""

    scope: Scope
    tasks: int
    runs: int
    icc: float
    relation: Relation
    wrong: float = 0.0

    def repeated(self, repetitions: int, rng: np.random.Generator) -> Cell:
        wrong = 0
        for _ in range(repetitions):
            true = rates(rng, self.tasks, self.icc, self.relation)
            wrong += compared(runs_of(rng, true, self.runs), self.scope).answer != "undecided"
        return replace(self, wrong=wrong / repetitions)


def _type_one(repetitions: int, *, quick: bool) -> list[Table]:
    rng = np.random.default_rng(SEED)
    cells = [
        Cell(scope=scope, tasks=tasks, runs=n, icc=icc, relation=relation).repeated(
            repetitions, rng
        )
        for (tasks, n), scope, icc, relation in product(designs(quick), SCOPES, ICCS, NULLS)
    ]
    worst = sorted(cells, key=lambda cell: cell.wrong, reverse=True)[:6]
    return [_type_one_grid(cells, repetitions), _worst_again(worst, 6 * repetitions)]


def _type_one_grid(cells: list[Cell], repetitions: int) -> Table:
    rows = []
    for key, group in groupby(cells, key=lambda cell: (cell.scope, cell.tasks, cell.runs)):
        wrong = [cell.wrong for cell in group]
        rows.append((*map(str, key), _share(np.mean(wrong)), _share(max(wrong))))
    return Table(
        title="Two systems: type I error",
        header=("scope", "tasks", "runs", "mean", "worst"),
        rows=rows,
        finding="Chance that `paired_difference` calls equal systems better or worse, nominally at "
        "most 0.05: mean and worst over ICC 0, 0.3, 0.7 and over two nulls (the same pass rates; "
        "the same rates on other tasks). "
        f"Monte Carlo error of a cell {monte_carlo_error(0.05, repetitions):.4f}.",
        repetitions=repetitions,
        seed=SEED,
    )


def _worst_again(worst: list[Cell], repetitions: int) -> Table:
    rng = np.random.default_rng(SEED + 9)
    rows = []
    for cell in worst:
        again = cell.repeated(repetitions, rng).wrong
        place = (cell.scope, str(cell.tasks), str(cell.runs), str(cell.icc), cell.relation)
        rows.append((*place, _share(cell.wrong), _share(again)))
    return Table(
        title="Two systems: the worst cells again",
        header=("scope", "tasks", "runs", "ICC", "null", "as found", "drawn afresh"),
        rows=rows,
        finding="The largest of many estimates is large by luck too: the six worst cells of the "
        "table above with fresh draws. "
        f"Monte Carlo error of a cell {monte_carlo_error(0.05, repetitions):.4f}.",
        repetitions=repetitions,
        seed=SEED + 9,
    )


def _coverage(repetitions: int, *, quick: bool) -> Table:
    rng = np.random.default_rng(SEED + 1)
    rows = []
    for (tasks, n), scope in product(designs(quick), SCOPES):
        cells, widths = [], []
        for icc in ICCS:
            held = []
            for _ in range(repetitions):
                true = rates(rng, tasks, icc, "weaker")
                truth = float(np.mean(true[0] - true[1])) if scope == THIS_SUITE else 0.15 * MEAN
                interval = compared(runs_of(rng, true, n), scope).interval
                held.append(interval.low - 1e-12 <= truth <= interval.high + 1e-12)
                widths.append(interval.width)
            cells.append(float(np.mean(held)))
        width = f"{np.mean(widths):.3f}"
        rows.append((scope, str(tasks), str(n), _share(np.mean(cells)), _share(min(cells)), width))
    return Table(
        title="Two systems: coverage of the difference",
        header=("scope", "tasks", "runs", "mean", "worst", "width"),
        rows=rows,
        finding="Coverage of the nominal 0.95 interval when b passes 0.85 times as often as a on "
        "every task; over ICC 0, 0.3, 0.7. "
        f"Monte Carlo error of a cell {monte_carlo_error(0.05, repetitions):.4f}.",
        repetitions=repetitions,
        seed=SEED + 1,
    )


def _bootstrap(repetitions: int) -> Table:
    rng = np.random.default_rng(SEED + 2)
    rows = []
    for tasks in (6, 10, 20, 50):
        ours, theirs = [], []
        for _ in range(repetitions):
            sides = runs_of(rng, rates(rng, tasks, 0.3, "same"), 5)
            ours.append(compared(sides, TASKS_LIKE_THESE).answer != "undecided")
            gaps = sides[0].means - sides[1].means
            theirs.append(percentile_bootstrap_rejects(gaps, rng))
        rows.append((str(tasks), _share(np.mean(ours)), _share(np.mean(theirs))))
    return Table(
        title="Two systems: against the paired bootstrap",
        header=("tasks", "passhat", "paired percentile bootstrap"),
        rows=rows,
        finding='Type I error in "tasks like these", 5 runs, ICC 0.3, nominally 0.05.',
        repetitions=repetitions,
        seed=SEED + 2,
    )


def _equivalence(repetitions: int) -> Table:
    rng = np.random.default_rng(SEED + 3)
    margin = 0.15 * MEAN
    rows = []
    for scope, (tasks, n) in product(SCOPES, ((20, 5), (50, 10), (200, 10))):
        at_margin, at_zero = [], []
        for _ in range(repetitions):
            # ICC 0: every suite has the difference 0.15 x 0.7 exactly, in both scopes.
            off = runs_of(rng, rates(rng, tasks, 0.0, "weaker"), n)
            on = runs_of(rng, rates(rng, tasks, 0.0, "same"), n)
            at_margin.append(compared(off, scope, margin).answer == "equivalent")
            at_zero.append(compared(on, scope, margin).answer == "equivalent")
        rows.append(
            (scope, str(tasks), str(n), _share(np.mean(at_margin)), _share(np.mean(at_zero)))
        )
    return Table(
        title="Two systems: equivalence",
        header=("scope", "tasks", "runs", "wrong, at the margin", "right, at no difference"),
        rows=rows,
        finding=f'Chance of the answer "equivalent" with a margin of {margin:.3f}: nominally at '
        "most 0.05 when the difference equals the margin.",
        repetitions=repetitions,
        seed=SEED + 3,
    )


def _power(repetitions: int, *, quick: bool) -> Table:
    rng = np.random.default_rng(SEED + 4)
    rows = []
    grid = product((20,) if quick else (20, 50, 100), (5,) if quick else (1, 5, 10), (0.3, 0.7))
    for tasks, n, icc in grid:
        shares = []
        for scope in SCOPES:
            found = [
                compared(runs_of(rng, rates(rng, tasks, icc, "weaker"), n), scope).answer
                for _ in range(repetitions)
            ]
            shares.append(found.count("better") / repetitions)
        row = (str(tasks), str(n), f"{icc}", *(_share(s) for s in shares))
        rows.append(row)
    return Table(
        title="Two systems: power",
        header=("tasks", "runs", "ICC", *SCOPES),
        rows=rows,
        finding='Chance of the answer "better" when b passes 0.85 times as often as a (10.5 '
        "points on average).",
        repetitions=repetitions,
        seed=SEED + 4,
    )


def _shifted(logits: float) -> Callable[[np.random.Generator, int], Rates]:
    """Tasks that b passes at rates so many logits lower."""

    def draw(rng: np.random.Generator, tasks: int) -> Rates:
        x = rng.normal(1.2, 1.5, tasks)
        return expit(x), expit(x - logits)

    return draw


def _broken(share: float, *, made_up: bool = False) -> Callable[[np.random.Generator, int], Rates]:
    """A share of the tasks that b breaks; where that is `made_up`, it is better on the others."""
    lost = share * (0.97 - 0.1) / (1 - share) if made_up else 0.0

    def draw(rng: np.random.Generator, tasks: int) -> Rates:
        broken = rng.random(tasks) < share
        return np.where(broken, 0.97, 0.97 - lost), np.where(broken, 0.1, 0.97)

    return draw


def _alike(a: float, b: float) -> Callable[[np.random.Generator, int], Rates]:
    def draw(rng: np.random.Generator, tasks: int) -> Rates:
        both = rng.beta(a, b, tasks)
        return both, both

    return draw


_WORLDS: dict[str, tuple[Callable[[np.random.Generator, int], Rates], int, int, int]] = {
    "equal, Beta(0.3, 0.2)": (_alike(0.3, 0.2), 20, 8, 8),
    "equal, Beta(97, 3)": (_alike(97, 3), 45, 5, 5),
    "equal, Beta(3, 2), 4 against 16 runs": (_alike(3, 2), 12, 4, 16),
    "equal means, 5% broken": (_broken(0.05, made_up=True), 30, 8, 8),
    "equal means, 10% broken": (_broken(0.1, made_up=True), 60, 4, 4),
    "0.5 logits": (_shifted(0.5), 30, 8, 8),
    "0.5 logits, many tasks": (_shifted(0.5), 100, 4, 4),
    "0.8 logits, few tasks": (_shifted(0.8), 12, 8, 8),
    "10% broken": (_broken(0.1), 60, 4, 4),
    "equal means, 10% broken, few tasks": (_broken(0.1, made_up=True), 12, 8, 8),
    "equal means, 20% broken, few tasks": (_broken(0.2, made_up=True), 12, 8, 8),
}


def _beside_t(repetitions: int) -> Table:
    """Tasks like these beside the paired t test, where that is valid and where it is not."""
    rng = np.random.default_rng(SEED + 8)
    rows = [
        (
            name,
            f"{tasks} x {' / '.join(map(str, dict.fromkeys(runs)))}",
            *map(_share, _calls_and_coverage(name, draw, tasks, runs, repetitions, rng)),
        )
        for name, (draw, tasks, *runs) in _WORLDS.items()
    ]
    return Table(
        title="Two systems: beside paired t, for tasks like these",
        header=("b beside a", "tasks x runs", "called", "covers", "t calls", "t covers"),
        rows=rows,
        finding="How often a difference is called at 95%, and how often the interval holds the "
        "true one. Where t is valid the calls are within 0.03 of its own from 20 tasks "
        "on. With 12 tasks t is not: if one side breaks a task in ten and is a little "
        "better on the others, 28% of such suites hold no broken task, and t calls 65% "
        "of those different, so it errs in 0.28 x 0.65 = 18% by these alone. Any test "
        "within 0.05 of its power there errs in at least 17%. passhat calls 0.07 less "
        "than t at 0.8 logits and errs in 3%; of 12 tasks of which one in five is "
        "broken neither method keeps 5%.",
        repetitions=repetitions,
        seed=SEED + 8,
    )


def _calls_and_coverage(
    name: str,
    draw: Callable[[np.random.Generator, int], Rates],
    tasks: int,
    runs: Sequence[int],
    repetitions: int,
    rng: np.random.Generator,
) -> list[float]:
    """How often a difference is called, and the true one covered; then the same by paired t."""
    many = draw(rng, 400_000)
    true = 0.0 if name.startswith("equal") else float((many[0] - many[1]).mean())
    seen = np.zeros((2, 2))
    for _ in range(repetitions):
        sides = tuple(
            TaskSums.of_passes(np.full(tasks, n), rng.binomial(n, side))
            for n, side in zip(runs, draw(rng, tasks), strict=True)
        )
        found = paired_difference(*sides, scope=TASKS_LIKE_THESE, rng=1)
        gaps = sides[0].means - sides[1].means
        reach = stdtrit(tasks - 1, 0.975) * gaps.std(ddof=1) / np.sqrt(tasks)
        seen[0] += found.answer in ("better", "worse"), true in found.interval
        seen[1] += abs(gaps.mean()) > reach, abs(gaps.mean() - true) <= reach
    return [float(share) for share in (seen / repetitions).ravel()]


_FEW_TASKS_WORLDS: dict[str, Callable[[np.random.Generator, int], Rates]] = {
    "equal, logits as below": _shifted(0.0),
    "0.5 logits": _shifted(0.5),
    "0.8 logits": _shifted(0.8),
    "equal, Beta(3, 2)": _alike(3, 2),
    "equal, Beta(0.3, 0.2)": _alike(0.3, 0.2),
    "equal, Beta(97, 3)": _alike(97, 3),
    "equal means, 10% broken": _broken(0.1, made_up=True),
    "equal means, 15% broken": _broken(0.15, made_up=True),
    "equal means, 20% broken": _broken(0.2, made_up=True),
}


def _twelve_tasks(repetitions: int) -> Table:
    """Where few tasks make the two methods differ most: is t valid, and what does it see more?"""
    seed, rows = 77, []
    rng = np.random.default_rng(seed)
    for runs in ((4, 4), (8, 8), (4, 16)):
        for name, draw in _FEW_TASKS_WORLDS.items():
            called, by_t = (
                np.concatenate(parts)
                for parts in zip(*_many_calls(draw, 12, runs, repetitions, rng), strict=True)
            )
            more = by_t.astype(float) - called
            error = more.std() / np.sqrt(more.size)
            each = " / ".join(map(str, dict.fromkeys(runs)))
            beyond = f"{more.mean():.3f} ({error:.4f})"
            rows.append((name, each, _share(called.mean()), _share(by_t.mean()), beyond))
    return Table(
        title="Two systems: 12 tasks beside paired t",
        header=("b beside a", "runs", "called", "t calls", "more (its error)"),
        rows=rows,
        finding="How often a difference is called at 95%, by both on the same suites, and how much "
        "more often by t. Where the two agents are equal task by task t errs in 0.05, but for "
        "agents that nearly always pass with 4 runs beside 16. Of differences in logits it sees "
        "0.02 more with 4 runs, and 0.04 to 0.06 more with 8 and with 4 beside 16: beyond the 0.05 "
        "that passhat aims at. Where one side breaks a few tasks and is better on the others, t "
        "errs in 0.08 to 0.19, and passhat in 0.03 to 0.08, beyond 5% from 15% broken on. One "
        "number trades the two, the part of a task that was not seen: with a fifth in place of a "
        "quarter t would see at most 0.035 more, and passhat err in 0.05 and 0.10 where 10% and "
        "15% are broken (8 runs).",
        repetitions=repetitions,
        seed=seed,
    )


_AT_ONCE = 1000


def _many_calls(
    draw: Callable[[np.random.Generator, int], Rates],
    tasks: int,
    runs: Sequence[int],
    repetitions: int,
    rng: np.random.Generator,
) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
    """Whether passhat, and whether paired t, calls a difference, by the two tests that decide it.

    Both sides of many suites at once: `paired_difference` answers the same, which is checked.
    """
    for _ in range(max(1, repetitions // _AT_ONCE)):
        true = (side.reshape(-1, tasks) for side in draw(rng, _AT_ONCE * tasks))
        passes = [rng.binomial(n, side) for n, side in zip(runs, true, strict=True)]
        left, right = (counts / n for counts, n in zip(passes, runs, strict=True))
        gaps = left - right
        value, few = gaps.mean(axis=1), 0.5 / (tasks + 1)
        behind = np.where(value > 0, right.mean(axis=1), left.mean(axis=1)) * tasks / (tasks + 1)
        ahead = np.where(value > 0, 1, -1)[:, None] * gaps
        tail = lower_tail(ahead, np.ones(tasks), 0.0, unseen=-behind - few, share=UNSEEN_IN_TEST)
        table = np.column_stack((gaps.T, np.zeros(tasks)))
        columns = np.arange(_AT_ONCE), np.full(_AT_ONCE, _AT_ONCE)
        flipped = sign_flip_tests(table, columns, rng).p_values
        called = (2 * tail < 0.05) & (flipped < 0.05) & (value != 0)
        for place in range(5):
            sides = (
                TaskSums.of_passes(np.full(tasks, n), counts[place])
                for n, counts in zip(runs, passes, strict=True)
            )
            answer = paired_difference(*sides, scope=TASKS_LIKE_THESE, rng=1).answer
            assert (answer in ("better", "worse")) == called[place]
        reach = stdtrit(tasks - 1, 0.975) * gaps.std(axis=1, ddof=1) / np.sqrt(tasks)
        yield called, np.abs(value) > reach


def _family(repetitions: int) -> Table:
    rng = np.random.default_rng(SEED + 5)
    tasks, rows = 50, []
    for n in (2, 3, 5, 10):
        every = np.array(list(product(range(n + 1), repeat=2)))
        runs = np.full(len(every), n)
        exact = task_tests(runs, every[:, 0], runs, every[:, 1]).p_values.reshape(n + 1, n + 1)
        welch = welch_p_values(n)
        wrong = np.zeros(2)
        for _ in range(repetitions):
            p = rng.uniform(0, 1, tasks)
            a, b = rng.binomial(n, p), rng.binomial(n, p)
            wrong += [holm(law[a, b]).min() <= 0.05 for law in (exact, welch)]
        rows.append((str(n), _share(wrong[0] / repetitions), _share(wrong[1] / repetitions)))
    return Table(
        title="Task by task: family-wise error after Holm",
        header=("runs", "passhat (Boschloo)", "agentrel 0.1.0 (Welch)"),
        rows=rows,
        finding=f"Chance of any false difference on {tasks} tasks with the same pass rate, uniform "
        f"on [0, 1], for both systems; nominally at most 0.05. Below {minimum_runs(tasks)} runs a "
        "side no outcome can be significant here, and passhat says so instead of testing.",
        repetitions=repetitions,
        seed=SEED + 5,
    )


def _false_alarms(repetitions: int, *, quick: bool) -> Table:
    rng = np.random.default_rng(SEED + 7)
    points, rows = 100, []
    for n, p in (
        ((20, 0.9),) if quick else ((5, 0.9), (20, 0.5), (20, 0.9), (100, 0.5), (100, 0.98))
    ):
        alarms = [
            bool(change_points(PassSeries(np.full(points, n), rng.binomial(n, p, points))).points)
            for _ in range(repetitions)
        ]
        rows.append((f"{n} runs a point, p = {p}", _share(np.mean(alarms))))
    for name, low in (("means, equal errors", 0.03), ("means, errors 1 : 10", 0.003)):
        alarms = []
        for _ in range(5 * repetitions):
            error = rng.uniform(low, 0.03, points)
            series = MeanSeries(rng.normal(0.6, error), error)
            alarms.append(bool(change_points(series).points))
        rows.append((name, _share(np.mean(alarms))))
    rows += [_calm_tasks(rng, repetitions // 5, points, *design) for design in _histories(quick)]
    return Table(
        title="Change points: false alarms",
        header=("history", "chance of any alarm"),
        rows=rows,
        finding="Chance of any alarm in 100 points at which nothing changes, stated as 0.05. Exact "
        f"tests of few runs are rarer still. Repetitions of means: {5 * repetitions}, of tasks: "
        f"{repetitions // 5}. Left out: each point runs a sixth of the tasks, every tenth all "
        "of them. Added: half of the tasks are new half-way.",
        repetitions=repetitions,
        seed=SEED + 7,
    )


def _histories(quick: bool) -> list[tuple[str, tuple[float, float], int, int, int]]:
    sizes = ((20, 5, 3),) if quick else ((20, 5, 3), (50, 3, 1), (5, 10, 5))
    shapes = ((8.0, 1.0),) if quick else ((2.0, 1.0), (8.0, 1.0), (0.3, 0.3))
    return [
        (kind, shape, *size)
        for size in sizes
        for shape in shapes
        for kind in ("all run", "left out", "added")
    ]


def _calm_tasks(
    rng: np.random.Generator,
    repetitions: int,
    points: int,
    kind: str,
    shape: tuple[float, float],
    tasks: int,
    runs: int,
    k: int,
) -> tuple[str, str]:
    """A history of tasks whose rates stay; who is run changes."""
    alarms = []
    for _ in range(repetitions):
        n = np.full((points, tasks), runs)
        if kind == "left out":
            n[(np.arange(points) % 10 > 0)[:, None] & (rng.random(n.shape) > 1 / 6)] = 0
        if kind == "added":
            n[: points // 2, tasks // 2 :] = 0
        passes = rng.binomial(n, rng.beta(*shape, tasks))
        alarms += [
            bool(change_points(TaskSeries(n, passes, k, metric)).points)
            for metric in (("pass^k", "pass@k") if k > 1 else ("pass^k",))
        ]
    name = f"{tasks} tasks x {runs}, k = {k}, Beta({shape[0]:g}, {shape[1]:g}), {kind}"
    return name, _share(np.mean(alarms))


def _delays(repetitions: int) -> Table:
    rng = np.random.default_rng(SEED + 8)
    rows = []
    for n, drop in product((20, 50, 200), (0.1, 0.2)):
        rate = np.where(np.arange(60) < 30, 0.9, 0.9 - drop)
        delays, off = [], []
        for _ in range(repetitions):
            series = PassSeries(np.full(60, n), rng.binomial(n, rate))
            found = [p for p in change_points(series).points if p.alarm >= 30]
            delays.append(found[0].alarm - 29 if found else 31)
            off += [abs(found[0].position - 30)] if found else []
        caught = np.mean(np.array(delays) <= 30)
        row = (str(n), f"0.9 to {0.9 - drop:.1f}", f"{np.median(delays):.0f}", f"{caught:.2f}")
        rows.append((*row, f"{np.mean(off):.1f}" if off else "-"))
    return Table(
        title="Change points: how soon",
        header=("runs a point", "drop", "median points to the alarm", "within 30", "misplaced by"),
        rows=rows,
        finding="Points from the drop (after 30 calm ones) to the alarm, at a false-alarm rate of "
        "0.05 in 100 points.",
        repetitions=repetitions,
        seed=SEED + 8,
    )


def _share(value: float | np.floating) -> str:
    return f"{value:.3f}"
