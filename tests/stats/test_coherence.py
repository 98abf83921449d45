"""One more failure never improves a bound, and one more pass never worsens one."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passhat.stats.estimate import Estimate
from passhat.stats.paired import paired_difference
from passhat.stats.score_mean import score_estimate
from passhat.stats.suite_mean import suite_estimate, suite_estimates
from passhat.stats.task_sums import TaskSums

BOTH = ("this suite", "tasks like these")
# What a root is found to, and the window of a long sum.
ROUNDING = 1e-8


def ends(n, c, *, ks, confidence, metric):
    found = suite_estimates(n, c, ks=ks, metric=metric, confidence=confidence)
    return np.array([[one.interval.low, one.interval.high] for both in found for one in both])


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
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
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


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=12), st.data()
)
def test_a_failure_of_one_side_never_moves_the_difference_its_way(pairs, data):
    place = data.draw(st.integers(0, len(pairs) - 1))
    a, b = (np.array(side) for side in zip(*pairs, strict=True))
    if a[place] == 0:
        a[place] = 1
    worse = a.copy()
    worse[place] -= 1
    runs = np.full(a.size, 4)
    before, after = (
        paired_difference(
            TaskSums.of_passes(runs, side), TaskSums.of_passes(runs, b), scope="tasks like these"
        )
        for side in (a, worse)
    )
    assert after.interval.low <= before.interval.low + ROUNDING
    assert after.interval.high <= before.interval.high + ROUNDING
    assert (before.answer, after.answer) != ("undecided", "better")
    assert (before.answer, after.answer) != ("worse", "undecided")


def test_all_equal_values_are_no_special_case():
    """31 of 32 everywhere, and 31 of 32 on half of the tasks: the second is never worse off."""
    n = [32] * 8
    every, half = (
        suite_estimate(n, c, scope="tasks like these").interval
        for c in ([31] * 8, [31] * 4 + [32] * 4)
    )
    assert every.low <= half.low
    assert every.high <= half.high + ROUNDING
