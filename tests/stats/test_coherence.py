"""One more failure never improves a bound, and one more pass never worsens one."""

from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passhat.stats.estimate import Estimate
from passhat.stats.paired import paired_difference
from passhat.stats.sufficient_statistics import TaskSums, count_cells
from passhat.stats.suite_bounds import suite_bounds
from passhat.stats.suite_mean import score_estimate, suite_estimate, suite_estimates

BOTH = ("this suite", "tasks like these")
# What a root is found to, and the window of a long sum.
ROUNDING = 1e-8


def ends(n, c, *, ks, confidence, metric):
    found = suite_estimates(n, c, ks=ks, metric=metric, confidence=confidence)
    return np.array([[one.interval.low, one.interval.high] for both in found for one in both])


LARGEST = pytest.mark.slow("enumerates the largest of the small designs")
CONFIDENCES = [
    0.95,
    *(
        pytest.param(other, marks=pytest.mark.slow("the same designs at another confidence"))
        for other in (0.8, 0.999)
    ),
]


@pytest.mark.parametrize("metric", ["pass^k", "pass@k"])
@pytest.mark.parametrize(
    ("runs", "ks"),
    [
        ((4, 4, 4), (1, 2, 3, 4)),
        ((7, 7), (1, 2, 3, 4, 5, 7)),
        ((1,) * 6, (1,)),
        ((2,) * 4, (1, 2)),
        ((3, 5), (1, 2, 3)),
        ((2, 6), (1, 2)),
    ],
)
@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_every_single_flip_of_a_small_design_moves_both_bounds_its_way(
    metric, runs, ks, confidence
):
    every = {}
    for passes in product(*(range(n + 1) for n in runs)):
        every[passes] = ends(runs, passes, ks=ks, confidence=confidence, metric=metric)
    for passes, (place, n) in product(every, enumerate(runs)):
        if passes[place] < n:
            more = (*passes[:place], passes[place] + 1, *passes[place + 1 :])
            assert (every[passes] <= every[more] + ROUNDING).all(), (passes, more)


def further(n, c, place, *, ks, metric, confidence=0.95):
    """The ends as they are, with a failure more of one task, and with a pass more."""
    runs = tuple(count + (at == place) for at, count in enumerate(n))
    passed = tuple(count + (at == place) for at, count in enumerate(c))
    tables = ((n, c), (runs, c), (runs, passed))
    return (ends(*table, ks=ks, confidence=confidence, metric=metric) for table in tables)


def moves_its_way(before, failed, passed, *, always, never, rounding=ROUNDING):
    """A failure raises no lower end and a pass lowers no upper one.

    Nor does a pass of a task that always passed lower a lower end, and the mirror of it.
    """
    assert (failed[..., 0] <= before[..., 0] + rounding).all()
    assert (before[..., 1] <= passed[..., 1] + rounding).all()
    if always:
        assert (before[..., 0] <= passed[..., 0] + rounding).all()
    if never:
        assert (failed[..., 1] <= before[..., 1] + rounding).all()


@pytest.mark.slow("every small table, where a property looks at some")
@pytest.mark.parametrize("metric", ["pass^k", "pass@k"])
def test_every_further_run_of_a_small_design_moves_both_intervals_its_way(metric):
    counts = [(n, c) for n in range(2, 6) for c in range(n + 1)]
    for (n, c), *others in product(counts, repeat=2):
        runs, passes = zip((n, c), *others, strict=True)
        tables = further(runs, passes, 0, ks=(1, 2), metric=metric)
        moves_its_way(*tables, always=c == n, never=c == 0)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 5),
    st.lists(st.tuples(st.integers(0, 11), st.floats(0, 1)), min_size=2, max_size=7),
    st.sampled_from(["pass^k", "pass@k"]),
    st.sampled_from([0.8, 0.9, 0.95]),
    st.data(),
)
def test_a_further_run_moves_the_interval_for_these_tasks_its_way(
    k, tasks, metric, confidence, data
):
    """Whatever the runs: equal or not, below 2k and above."""
    n = tuple(k + more if more < 9 else 16 * k + more - 10 for more, _ in tasks)
    c = tuple(round(share * runs) for runs, (_, share) in zip(n, tasks, strict=True))
    place = data.draw(st.integers(0, len(n) - 1))
    these = [
        table[::2] for table in further(n, c, place, ks=(k,), metric=metric, confidence=confidence)
    ]
    moves_its_way(*these, always=c[place] == n[place], never=c[place] == 0)


# Where a table, a sum by cumulants, a lattice by runs or a bound for few runs begins or ends.
TURNS = {
    "2k": lambda k: 2 * k,
    "3k": lambda k: 3 * k,
    "16k": lambda k: 16 * k,
    "32k": lambda k: 32 * k,
    "64k": lambda k: 64 * k,
    "tables": lambda _: 128,
    "long": lambda _: 200,
}


def added_at(turn, k, rng):
    """A suite of 1 to 70 tasks about that many runs, and the place of the one that runs again."""
    tasks = int(rng.choice([1, 7, 8, 15, 16, 20, 40, 70]))
    n = np.full(tasks, TURNS[turn](k))
    if rng.random() < 0.5:  # some are as short as they may be, or longer
        n = np.where(rng.random(tasks) < 0.3, rng.choice([3 * k, 128, 140]), n)
    rates = [
        rng.random(tasks),
        rng.beta(8, 1, tasks),
        rng.choice([0, 0.02, 0.5, 0.98, 1], tasks),
        np.where(rng.random(tasks) < 0.2, 0.95, 1.0),
        np.where(rng.random(tasks) < 0.3, 0.5, 0.0),
    ][rng.integers(5)]
    c = rng.binomial(n, rates)
    c[0] = rng.choice([0, c[0], n[0]])
    return n, c, int(rng.choice([0, rng.integers(tasks), np.argmin(n), np.argmin(c)]))


def keeps_its_way(turn, additions, seed):
    rng = np.random.default_rng(seed)
    for _ in range(additions):
        k = int(rng.integers(1, 6))
        n, c, place = added_at(turn, k, rng)
        more = np.arange(n.size) == place
        tables = [count_cells(*table) for table in ((n, c), (n + more, c), (n + more, c + more))]
        found = (np.stack(suite_bounds(cells, (k,), 0.95), axis=-1) for cells in tables)
        sure = {"always": c[place] == n[place], "never": c[place] == 0}
        # What is not smooth enough for cumulants is on a lattice, also among longer tasks.
        moves_its_way(*found, **sure, rounding=1e-7)


@pytest.mark.parametrize("turn", TURNS)
def test_a_further_run_moves_the_interval_its_way_where_the_computation_turns(turn):
    keeps_its_way(turn, 6, seed=1)


@pytest.mark.slow("seven hundred additions, where the fast test makes forty")
@pytest.mark.parametrize("turn", TURNS)
def test_no_further_run_of_many_moves_the_interval_the_wrong_way(turn):
    keeps_its_way(turn, 100, seed=2)


@pytest.mark.parametrize("metric", ["pass^k", "pass@k"])
def test_a_task_that_outgrows_the_tables_without_a_pass_opens_no_end(metric):
    """Sums of longer tasks are finer: an upper end of pass^2 rose by 0.00002 with that failure."""
    c = np.array([0, 108, 126, 125, 128, 127, 102, 121])
    c = c if metric == "pass^k" else 128 - c
    tables = further([128] * 8, c, 0, ks=(2,), metric=metric)
    moves_its_way(*tables, always=metric == "pass@k", never=metric == "pass^k")


@settings(max_examples=40, deadline=None)
@given(
    st.integers(2, 5),
    st.lists(st.tuples(st.integers(0, 12), st.floats(0, 1)), min_size=1, max_size=12),
    st.sampled_from(["pass^k", "pass@k"]),
)
def test_trials_missing_to_2k_are_worth_at_least_failures_and_at_most_passes(k, tasks, metric):
    """Where the trials of other tasks suffice; a suite of its own has another law."""
    n = np.array([2 * k, *(k + more for more, _ in tasks)])
    c = np.array([k, *(round(share * (k + more)) for more, share in tasks)])
    missing = np.maximum(2 * k - n, 0)
    found, failed, passed = (
        ends(runs, passes, ks=(k,), confidence=0.95, metric=metric)[0]
        for runs, passes in ((n, c), (n + missing, c), (n + missing, c + missing))
    )
    assert failed[0] <= found[0] + ROUNDING
    assert found[1] <= passed[1] + ROUNDING


def test_a_failed_trial_that_gives_the_last_task_2k_trials_does_not_raise_the_lower_end():
    """It was 0.64 before the third task failed its fourth trial, and 0.79 after."""
    before, after = (
        suite_estimate([6, 8, runs], [4, 7, 3], k=2, metric="pass@k", confidence=0.9).interval.low
        for runs in (3, 4)
    )
    assert after <= before


designs = st.lists(
    st.integers(2, 24).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))),
    min_size=2,
    max_size=40,
)


@settings(max_examples=60, deadline=None)
@given(
    designs, st.data(), st.sampled_from([0.8, 0.95, 0.99]), st.sampled_from(["pass^k", "pass@k"])
)
def test_a_pass_in_place_of_a_failure_moves_both_bounds_up(pairs, data, confidence, metric):
    n, c = (np.array(column) for column in zip(*pairs, strict=True))
    place = data.draw(st.integers(0, len(pairs) - 1))
    k = data.draw(st.integers(1, int(n.min())))
    if c[place] == n[place]:
        c[place] -= 1
    more = c.copy()
    more[place] += 1
    fewer, more = (ends(n, one, ks=(k,), confidence=confidence, metric=metric) for one in (c, more))
    # Long sums are given at points that depend on their spread: 1e-5 of the unit.
    assert (fewer <= more + 1e-5).all()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=20), st.data())
def test_a_higher_score_moves_the_bounds_for_tasks_like_these_up(scores, data):
    place = data.draw(st.integers(0, len(scores) - 1))
    higher = list(scores)
    higher[place] = data.draw(st.floats(scores[place], 1))
    one, other = (
        score_estimate([1] * len(x), x, [v * v for v in x], scope="tasks like these")
        for x in (scores, higher)
    )
    assert isinstance(one, Estimate)
    assert one.interval.low <= other.interval.low + ROUNDING
    assert one.interval.high <= other.interval.high + ROUNDING


def score_ends(table, *, scope, confidence, **more):
    sums = ([len(row) for row in table], [sum(row) for row in table])
    squares = [sum(x * x for x in row) for row in table]
    found = score_estimate(*sums, squares, scope=scope, confidence=confidence, **more)
    return np.array([found.interval.low, found.interval.high])


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize(
    ("runs", "levels"),
    [
        ((3, 3), (0, 0.5, 1)),
        ((4,), (0, 0.1, 0.9, 1)),
        pytest.param((1, 1, 1, 2), (0, 0.5, 1), marks=LARGEST),
    ],
)
def test_every_higher_score_of_a_small_design_moves_both_bounds_up(runs, levels, confidence):
    rows = [list(combinations_with_replacement(levels, n)) for n in runs]
    every = {
        table: score_ends(table, scope="this suite", confidence=confidence)
        for table in product(*rows)
    }
    for table, found in every.items():
        for place, row in enumerate(table):
            for run, score in enumerate(row):
                higher = levels[levels.index(score) + 1 :][:1]
                raised = tuple(sorted((*row[:run], *row[run + 1 :], *higher)))
                if higher:
                    more = (*table[:place], raised, *table[place + 1 :])
                    assert (found <= every[more] + ROUNDING).all(), (table, more)


score_tables = st.lists(
    st.lists(st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.5, 1.0])), min_size=1, max_size=8),
    min_size=2,
    max_size=12,
)


@settings(max_examples=100, deadline=None)
@given(
    score_tables,
    st.data(),
    st.sampled_from(BOTH),
    st.sampled_from([0.8, 0.95, 0.99]),
    st.booleans(),
)
def test_a_higher_score_moves_the_bounds_of_partial_credit_up(
    table, data, scope, confidence, weighted
):
    place = data.draw(st.integers(0, len(table) - 1))
    run = data.draw(st.integers(0, len(table[place]) - 1))
    higher = [list(row) for row in table]
    higher[place][run] = data.draw(st.floats(table[place][run], 1))
    weight = {"weight": [1 + i % 2 for i in range(len(table))]} if weighted else {}
    before, after = (
        score_ends(one, scope=scope, confidence=confidence, **weight) for one in (table, higher)
    )
    assert (before <= after + 1e-7).all()


def difference(runs, a, b, scope, **more):
    sides = (TaskSums.of_passes(n, c) for n, c in zip(runs, (a, b), strict=True))
    return paired_difference(*sides, scope=scope, **more)


def moves_down(before, after):
    """Whether a failure of the first side moved nothing in its favour."""
    assert after.interval.low <= before.interval.low + ROUNDING
    assert after.interval.high <= before.interval.high + ROUNDING
    assert (before.answer, after.answer) != ("undecided", "better")
    assert (before.answer, after.answer) != ("worse", "undecided")


@pytest.mark.slow("every small table, where a property looks at some")
@pytest.mark.parametrize("scope", BOTH)
@pytest.mark.parametrize("confidence", [0.6, 0.95])
@pytest.mark.parametrize(
    "runs",
    [
        ((2, 2), (2, 2)),
        ((1, 1, 1), (1, 1, 1)),
        pytest.param(((2, 3), (3, 1)), marks=LARGEST),
    ],
)
def test_every_single_flip_of_a_small_comparison_moves_its_way(runs, confidence, scope):
    every = {}
    for passes in product(*(range(n + 1) for side in runs for n in side)):
        sides = passes[: len(runs[0])], passes[len(runs[0]) :]
        every[passes] = difference(runs, *sides, scope, confidence=confidence)
    for passes, found in every.items():
        for place in range(len(runs[0])):
            if passes[place]:
                worse = (*passes[:place], passes[place] - 1, *passes[place + 1 :])
                moves_down(found, every[worse])


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=12),
    st.data(),
    st.sampled_from(BOTH),
    st.sampled_from([{}, {"margin": 0.2}, {"weight": 2}, {"family": 3}]),
)
def test_a_failure_of_one_side_never_moves_the_difference_its_way(pairs, data, scope, terms):
    place = data.draw(st.integers(0, len(pairs) - 1))
    a, b = (np.array(side) for side in zip(*pairs, strict=True))
    if a[place] == 0:
        a[place] = 1
    worse = a.copy()
    worse[place] -= 1
    tasks = np.arange(a.size)
    more = {
        "weight": 1 + tasks % terms["weight"] if "weight" in terms else None,
        "family": tasks // terms["family"] if "family" in terms else None,
        "margin": terms.get("margin"),
    }
    runs = (np.full(a.size, 4), np.full(a.size, 4))
    before, after = (difference(runs, side, b, scope, **more) for side in (a, worse))
    moves_down(before, after)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(1, 6), st.integers(0, 6), st.integers(1, 6), st.integers(0, 6)),
        min_size=2,
        max_size=8,
    ),
    st.data(),
    st.sampled_from(BOTH),
)
def test_one_more_failed_run_of_a_side_never_moves_the_difference_its_way(tasks, data, scope):
    n, c, m, d = (np.array(column) for column in zip(*tasks, strict=True))
    c, d = np.minimum(c, n), np.minimum(d, m)
    more = n.copy()
    more[data.draw(st.integers(0, n.size - 1))] += 1
    before, after = (difference((runs, m), c, d, scope) for runs in (n, more))
    assert after.interval.high <= before.interval.high + ROUNDING
    assert (before.answer, after.answer) != ("undecided", "better")
    assert (before.answer, after.answer) != ("worse", "undecided")
    # On these tasks the lower end follows that of the side itself.
    own = [suite_estimate(runs, c, scope="this suite").interval.low for runs in (n, more)]
    if scope == "tasks like these" or own[1] <= own[0]:
        assert after.interval.low <= before.interval.low + ROUNDING


def test_all_equal_values_are_no_special_case():
    """31 of 32 everywhere, and 31 of 32 on half of the tasks: the second is never worse off."""
    n = [32] * 8
    every, half = (
        suite_estimate(n, c, scope="tasks like these").interval
        for c in ([31] * 8, [31] * 4 + [32] * 4)
    )
    assert every.low <= half.low
    assert every.high <= half.high + ROUNDING
