import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.errors import ArgumentError
from passhat.stats.estimate import Estimate, Unavailable
from passhat.stats.usage import (
    OutcomeSums,
    association_with_passing,
    difference_of_ratios,
    ratio_of_totals,
)


def _sums(task, value, passed):
    """The sums of single trials, the slow way."""
    tasks = sorted(set(task))
    rows = list(zip(task, value, passed, strict=True))

    def per_task(pick):
        return np.array([sum(pick(v) for t, v, p in rows if t == name) for name in tasks])

    def split(wanted, power):
        return np.array(
            [sum(v**power for t, v, p in rows if t == name and p == wanted) for name in tasks]
        )

    return OutcomeSums(
        passed_count=split(True, 0).astype(int),
        failed_count=split(False, 0).astype(int),
        passed_total=split(True, 1).astype(float),
        failed_total=split(False, 1).astype(float),
        squares=per_task(lambda v: v * v).astype(float),
    )


def test_a_ratio_of_totals_is_the_sum_over_the_sum():
    assert ratio_of_totals([3.0, 5.0], [1, 3]).value == 2.0


@given(st.lists(st.tuples(st.floats(0.1, 100), st.integers(1, 50)), min_size=2, max_size=20))
def test_a_ratio_lies_inside_its_interval_which_is_positive(pairs):
    found = ratio_of_totals([top for top, _ in pairs], [bottom for _, bottom in pairs])
    assert isinstance(found, Estimate)
    if found.interval is not None:
        assert 0 < found.interval.low <= found.value <= found.interval.high


def test_the_interval_of_a_ratio_covers():
    rng = np.random.default_rng(5)
    true, hits, repeats = 4.0, 0, 400
    for _ in range(repeats):
        bottom = rng.integers(1, 20, 40)
        top = rng.gamma(2.0, true / 2.0 * bottom)
        found = ratio_of_totals(top, bottom)
        hits += true in found.interval
    assert abs(hits / repeats - 0.95) < 4 * np.sqrt(0.95 * 0.05 / repeats)


def test_one_task_gives_a_value_without_an_interval_and_says_so():
    found = ratio_of_totals([3.0], [2])
    assert found.interval is None
    assert found.notes == ("one task gives no interval over tasks",)


def test_nothing_to_divide_by_is_unavailable():
    assert isinstance(ratio_of_totals([1.0, 2.0], [0, 0]), Unavailable)


def test_columns_of_different_length_are_refused():
    with pytest.raises(ArgumentError, match="one entry per task"):
        ratio_of_totals([1.0], [1, 2])


def test_a_difference_of_ratios_uses_that_both_are_of_the_same_tasks():
    rng = np.random.default_rng(2)
    size = rng.gamma(2.0, 3.0, 50)
    both = difference_of_ratios(size + 1, np.ones(50), size, np.ones(50))
    assert both.value == pytest.approx(1.0)
    alone = ratio_of_totals(size, np.ones(50))
    assert both.interval is None or both.interval.width < alone.interval.width / 100


@given(st.randoms(use_true_random=False))
def test_association_is_the_correlation_after_task_means_are_removed(random):
    task = [random.choice("abcd") for _ in range(60)]
    value = [random.uniform(0, 10) for _ in task]
    passed = [random.random() < 0.5 for _ in task]
    found = association_with_passing(_sums(task, value, passed))
    if isinstance(found, Unavailable):
        return
    names = [
        t
        for t in set(task)
        if {p for u, p in zip(task, passed, strict=True) if u == t} == {True, False}
    ]
    kept = [i for i, t in enumerate(task) if t in names]
    x, y = np.array(value)[kept], np.array(passed, float)[kept]
    for name in names:
        rows = np.array([task[i] == name for i in kept])
        x[rows] -= x[rows].mean()
        y[rows] -= y[rows].mean()
    assert found.value == pytest.approx(np.corrcoef(x, y)[0, 1], abs=1e-9)


def test_hard_tasks_that_are_long_do_not_make_an_association():
    rng = np.random.default_rng(1)
    task = np.repeat(np.arange(30), 20)
    passed = rng.random(600) < np.linspace(0.95, 0.05, 30)[task]
    seconds = 10.0 * task + rng.random(600)
    found = association_with_passing(_sums(task.tolist(), seconds.tolist(), passed.tolist()))
    assert abs(found.value) < 0.15
    assert 0 in found.interval
    assert np.corrcoef(seconds, passed)[0, 1] < -0.5


def test_association_needs_three_tasks_that_went_both_ways():
    found = association_with_passing(_sums(["a", "a", "b", "b"], [1, 2, 3, 4], [1, 0, 1, 1]))
    assert found == Unavailable(
        "association with passing needs 3 tasks that both passed and failed, there is 1"
    )


@given(
    st.lists(st.tuples(st.floats(0, 1e200), st.integers(0, 5)), min_size=2, max_size=6),
    st.sampled_from([0.5, 0.95, 0.9999]),
)
def test_a_ratio_of_any_size_has_a_finite_interval_or_says_why_not(pairs, confidence):
    top, bottom = zip(*pairs, strict=True)
    found = ratio_of_totals(top, bottom, confidence=confidence)
    if isinstance(found, Unavailable):
        return
    if found.interval is None:
        assert found.notes
    else:
        assert np.isfinite([found.interval.low, found.interval.high]).all()
        assert found.value in found.interval
        assert not found.notes
