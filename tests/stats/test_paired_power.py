"""Planning a comparison of two systems."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.power import TTestPower

from passhat.errors import ArgumentError
from passhat.stats import assurance
from passhat.stats.estimate import Unavailable
from passhat.stats.sample_size import (
    detectable_difference,
    difference_power,
    runs_for_difference,
    tasks_for_difference,
)

DESIGN = {"variance": 0.25, "icc": 0.4, "task_correlation": 0.8}


def spread(runs, *, variance, icc, task_correlation):
    """The standard deviation of a task's difference of means."""
    return np.sqrt(2 * variance * (icc * (1 - task_correlation) + (1 - icc) / runs))


@given(
    st.floats(0.02, 0.5),
    st.integers(2, 300),
    st.integers(1, 20),
    st.sampled_from([0.9, 0.95, 0.99]),
)
def test_power_is_that_of_statsmodels_paired_t_test(difference, tasks, runs, confidence):
    ours = difference_power(difference, tasks=tasks, runs=runs, confidence=confidence, **DESIGN)
    effect = difference / spread(runs, **DESIGN)
    theirs = TTestPower().power(effect, tasks, 1 - confidence, alternative="two-sided")
    if np.isfinite(theirs):
        assert ours == pytest.approx(theirs, abs=1e-8)


@given(st.integers(2, 300), st.integers(1, 20), st.floats(0.2, 0.99))
def test_the_detectable_difference_has_exactly_the_power_asked_for(tasks, runs, power):
    found = detectable_difference(tasks=tasks, runs=runs, power=power, **DESIGN)
    if found.value <= 1:
        reached = difference_power(found.value, tasks=tasks, runs=runs, **DESIGN)
        assert reached == pytest.approx(power, abs=1e-6)
    assert found.standard_error == pytest.approx(spread(runs, **DESIGN) / np.sqrt(tasks))


@given(st.floats(0.05, 0.5), st.integers(1, 20), st.floats(0.3, 0.95))
def test_the_planned_tasks_are_the_fewest_with_the_power(difference, runs, power):
    tasks = tasks_for_difference(difference, runs=runs, power=power, **DESIGN)
    assert difference_power(difference, tasks=tasks, runs=runs, **DESIGN) >= power
    assert tasks == 2 or difference_power(difference, tasks=tasks - 1, runs=runs, **DESIGN) < power


@given(st.floats(0.05, 0.5), st.integers(5, 300))
def test_the_planned_runs_are_the_fewest_with_the_power_or_there_are_none(difference, tasks):
    runs = runs_for_difference(difference, tasks=tasks, **DESIGN)
    if isinstance(runs, Unavailable):
        assert difference_power(difference, tasks=tasks, runs=10**6, **DESIGN) < 0.8
        assert "more tasks would" in runs.reason
    else:
        assert difference_power(difference, tasks=tasks, runs=runs, **DESIGN) >= 0.8
        assert runs == 1 or difference_power(difference, tasks=tasks, runs=runs - 1, **DESIGN) < 0.8


def test_the_planned_power_is_the_share_of_simulated_comparisons_that_see_the_difference():
    rng = np.random.default_rng(12)
    repeats, tasks, runs = 1500, 60, 5
    # Both systems find the same tasks hard, so only luck blurs the difference of 0.1.
    base = rng.uniform(0.15, 0.75, (repeats, tasks))
    one = rng.binomial(runs, base) / runs
    two = rng.binomial(runs, base + 0.1) / runs
    rejected = stats.ttest_rel(two, one, axis=1).pvalue < 0.05
    luck = np.mean(base * (1 - base) + (base + 0.1) * (0.9 - base)) / 2
    planned = difference_power(
        0.1, tasks=tasks, runs=runs, variance=luck, icc=0.0, task_correlation=1.0
    )
    error = np.sqrt(planned * (1 - planned) / repeats)
    assert rejected.mean() == pytest.approx(planned, abs=3 * error + 0.01)


def test_a_negative_difference_needs_as_much_as_a_positive_one():
    assert difference_power(-0.1, tasks=50, runs=3, icc=0.3) == difference_power(
        0.1, tasks=50, runs=3, icc=0.3
    )


def test_without_any_noise_every_difference_is_seen():
    assert difference_power(0.01, tasks=5, runs=1, icc=1.0, task_correlation=1.0) == 1


def test_a_far_tail_does_not_become_nan():
    for tasks in (3, 5, 11, 100, 1001):
        for difference in np.linspace(0.01, 1, 60):
            power = difference_power(
                difference, tasks=tasks, runs=50, variance=0.01, icc=0.1, task_correlation=0.9
            )
            assert 0 <= power <= 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: difference_power(0, tasks=5, runs=1, icc=0.1), "difference must lie in"),
        (lambda: difference_power(1.5, tasks=5, runs=1, icc=0.1), "difference must lie in"),
        (lambda: difference_power(0.1, tasks=1, runs=1, icc=0.1), "tasks must be a whole number"),
        (
            lambda: detectable_difference(tasks=5, runs=1, icc=0.1, power=1),
            "power must lie strictly",
        ),
        (
            lambda: detectable_difference(tasks=5, runs=1, icc=0.1, power=0.05),
            "must exceed the test",
        ),
        (
            lambda: detectable_difference(tasks=5, runs=1, icc=0.1, task_correlation=-0.5),
            "task_correlation must lie in",
        ),
        (lambda: tasks_for_difference(1e-5, runs=1, icc=0.5), "difference must be seen with"),
    ],
)
def test_comparisons_that_cannot_be_planned_are_refused(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()


@pytest.mark.parametrize(("runs", "tasks"), [(1, 30), (4, 60), (9, 20)])
def test_drawn_comparisons_are_judged_alike_task_by_task_and_by_their_differences(runs, tasks):
    """Tasks that differ by as many passes are one value of the interval: the same verdicts."""
    suites = assurance.prior_suites(0.8, 0.4, tasks, suites=200)
    rng = np.random.default_rng(runs)
    first = rng.binomial(runs, suites.rates) / runs
    second = rng.binomial(runs, suites.rates * 0.85) / runs
    by_difference = assurance._called_better(first, second, suites, 0.05, steps=runs)
    one_by_one = assurance._called_better(first, second, suites, 0.05, steps=None)
    assert (by_difference == one_by_one).all()
    assert 0 < by_difference.sum() < len(by_difference)
