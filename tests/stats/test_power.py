"""Runs and tasks that an answer needs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import samplesize_confint_proportion

from passhat.errors import ArgumentError
from passhat.stats.estimate import Unavailable
from passhat.stats.proportions import proportion_interval
from passhat.stats.sample_size import (
    confidence_band,
    plan_suite,
    recommend_runs,
    smallest_count,
    zero_failure_runs,
)


def test_the_published_run_counts_come_out():
    assert recommend_runs(0.05) == 385
    assert round(confidence_band(100), 3) == 0.098
    assert [recommend_runs(0.05, p=p, method="wilson") for p in (0.5, 0.9, 0.95)] == [380, 139, 80]
    assert [zero_failure_runs(p) for p in (0.9, 0.95, 0.99)] == [29, 59, 299]


@given(st.floats(0.02, 0.8), st.sampled_from(["wald", "wilson"]))
def test_a_width_from_low_to_high_is_twice_a_half_width(width, method):
    assert recommend_runs(max_ci_width=width, method=method) == recommend_runs(
        width / 2, method=method
    )


@given(st.floats(0.02, 0.4), st.floats(0.05, 0.5))
def test_runs_of_scores_with_a_known_deviation_reach_the_width(half_width, sd):
    runs = recommend_runs(half_width, sd=sd)
    assert confidence_band(runs, sd=sd) <= half_width * (1 + 1e-9)
    if runs > 1:
        assert confidence_band(runs - 1, sd=sd) > half_width * (1 - 1e-9)


def test_a_pass_at_rate_p_has_the_deviation_of_a_coin():
    assert recommend_runs(0.05, sd=0.3) == recommend_runs(0.05, p=0.1)
    plain = plan_suite(tasks=20, runs=4, variance=0.09, icc=0.3, half_width=0.1)
    assert plan_suite(tasks=20, runs=4, sd=0.3, icc=0.3, max_ci_width=0.2) == plain


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({}, "half_width or max_ci_width must be given, one of the two and not both"),
        ({"half_width": 0.1, "max_ci_width": 0.2}, "one of the two and not both"),
        ({"max_ci_width": 1.5}, "max_ci_width must"),
        ({"max_ci_width": 1e-9}, "max_ci_width must be at least"),
        ({"half_width": 0.1, "sd": 0.6}, "sd of scores in .0, 1. must not exceed 0.5"),
        ({"half_width": 0.1, "sd": 0.0}, "sd must be above 0"),
        ({"half_width": 0.1, "sd": 0.2, "p": 0.5}, "sd must be given without p"),
        ({"half_width": 0.1, "sd": 0.2, "method": "wilson"}, 'sd needs method="wald"'),
    ],
)
def test_a_precision_that_is_not_clear_is_refused(options, rule):
    with pytest.raises(ArgumentError, match=rule):
        recommend_runs(**options)


def test_a_suite_is_given_a_variance_or_its_root():
    with pytest.raises(ArgumentError, match="sd must be given without variance"):
        plan_suite(tasks=5, runs=2, variance=0.1, sd=0.3, icc=0.2)


@given(st.floats(0.01, 0.45), st.floats(0.05, 0.95), st.sampled_from([0.8, 0.9, 0.95, 0.99]))
def test_walds_run_count_is_that_of_statsmodels(half_width, p, confidence):
    theirs = samplesize_confint_proportion(p, half_width, 1 - confidence)
    assert recommend_runs(half_width, p=p, confidence=confidence) == max(1, np.ceil(theirs - 1e-6))


@given(st.floats(0.04, 0.4), st.floats(0.0, 1.0), st.sampled_from(["wald", "wilson"]))
def test_the_recommended_runs_reach_the_width_and_one_fewer_do_not(half_width, p, method):
    runs = recommend_runs(half_width, p=p, method=method)
    assert confidence_band(runs, p=p, method=method) <= half_width * (1 + 1e-9)
    if runs > 1:
        assert confidence_band(runs - 1, p=p, method=method) > half_width * (1 - 1e-9)


@pytest.mark.parametrize(("n", "p"), [(1, 0.3), (7, 0.5), (40, 0.9), (25, 0.0), (25, 1.0)])
def test_the_wilson_band_is_the_mean_half_width_over_all_outcomes(n, p):
    widths = [proportion_interval(c, n, method="wilson").width / 2 for c in range(n + 1)]
    assert confidence_band(n, p=p, method="wilson") == pytest.approx(
        stats.binom(n, p).pmf(range(n + 1)) @ widths, rel=1e-9
    )


def test_huge_runs_cost_nothing_to_plan():
    assert confidence_band(10**6, method="wilson") == pytest.approx(
        confidence_band(10**6), rel=1e-5
    )
    assert recommend_runs(0.001, method="wilson") == pytest.approx(recommend_runs(0.001), rel=1e-4)


@given(st.floats(0.01, 0.999), st.floats(0.5, 0.999))
def test_zero_failure_runs_are_the_fewest_that_certify(p, confidence):
    runs = zero_failure_runs(p, confidence=confidence)
    assert p**runs <= (1 - confidence) * (1 + 1e-6)
    assert runs == 1 or p ** (runs - 1) > (1 - confidence) * (1 - 1e-6)


def test_a_plan_gives_both_widths_and_the_floor_no_run_passes():
    plan = plan_suite(tasks=50, runs=5, variance=0.25, icc=0.4)
    z = stats.norm.ppf(0.975)
    assert plan.tasks_like_these == pytest.approx(z * np.sqrt(0.25 * (0.4 + 0.6 / 5) / 50))
    assert plan.this_suite == pytest.approx(z * np.sqrt(0.25 * 0.6 / 250))
    assert plan.floor == pytest.approx(z * np.sqrt(0.25 * 0.4 / 50))
    assert plan.target is None
    assert plan.runs_this_suite is None


@given(
    st.integers(2, 400),
    st.integers(1, 40),
    st.floats(0.01, 0.25),
    st.floats(0, 1),
    st.floats(0.01, 0.4),
)
def test_planned_runs_and_tasks_are_the_fewest_that_reach_the_target(tasks, runs, v, rho, target):
    plan = plan_suite(tasks=tasks, runs=runs, variance=v, icc=rho, half_width=target)

    def reached(attribute, **changed):
        design = {"tasks": tasks, "runs": runs} | changed
        return getattr(plan_suite(**design, variance=v, icc=rho), attribute)

    slack = 1e-6
    needed = plan.runs_this_suite
    assert reached("this_suite", runs=needed) <= target + slack
    assert needed == 1 or reached("this_suite", runs=needed - 1) > target - slack
    more = plan.tasks_needed
    assert reached("tasks_like_these", tasks=more) <= target + slack
    assert more == 2 or reached("tasks_like_these", tasks=more - 1) > target - slack
    wanted = plan.runs_tasks_like_these
    if isinstance(wanted, Unavailable):
        assert plan.floor >= target
        assert "no number of trials" in wanted.reason
    else:
        assert reached("tasks_like_these", runs=wanted) <= target + slack
        assert wanted == 1 or reached("tasks_like_these", runs=wanted - 1) > target - slack


@given(st.floats(0.01, 0.99), st.floats(0.1, 100))
def test_the_best_runs_give_the_least_variance_for_a_budget(rho, ratio):
    best = plan_suite(tasks=10, runs=1, icc=rho, cost_ratio=ratio).best_runs

    def price(n):
        return (rho + (1 - rho) / n) * (ratio + n)

    assert all(price(best) <= price(n) * (1 + 1e-12) for n in range(1, 200))


def test_with_no_icc_a_task_is_worth_no_more_than_a_run():
    plan = plan_suite(tasks=10, runs=1, icc=0.0, cost_ratio=2, half_width=0.1)
    assert isinstance(plan.best_runs, Unavailable)
    assert plan.floor == 0


def test_the_planned_width_is_the_spread_of_simulated_means():
    rng = np.random.default_rng(2)
    rates = rng.beta(1.5, 1.5, (4000, 30))  # ICC 1 / 4, variance 1 / 4
    means = (rng.binomial(4, rates) / 4).mean(1)
    plan = plan_suite(tasks=30, runs=4, variance=0.25, icc=0.25)
    seen = stats.norm.ppf(0.975) * means.std()
    assert plan.tasks_like_these == pytest.approx(seen, rel=4 / np.sqrt(2 * 4000))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: recommend_runs(0), "half_width must lie strictly between 0 and 1"),
        (lambda: recommend_runs(0.5), "half_width must lie strictly between 0 and 0.5"),
        (lambda: recommend_runs(0.1, p=1.5), "p must lie in"),
        (lambda: recommend_runs(0.1, method="exact"), "method must be one of 'wald', 'wilson'"),
        (lambda: recommend_runs(1e-6, method="wilson"), "half_width must be reached within"),
        (lambda: confidence_band(0), "runs must be a whole number >= 1"),
        (lambda: zero_failure_runs(1), "p must lie strictly between 0 and 1"),
        (lambda: zero_failure_runs(0.9, confidence=1), "confidence must lie strictly"),
        (lambda: plan_suite(tasks=5, runs=1, variance=0.3, icc=0.1), "must not exceed 0.25"),
        (lambda: plan_suite(tasks=5, runs=1, variance=0, icc=0.1), "variance must be above 0"),
        (lambda: plan_suite(tasks=5, runs=1, icc=2), "icc must lie in"),
        (
            lambda: plan_suite(tasks=5, runs=1, icc=0.1, cost_ratio="x"),
            "cost_ratio must be a finite",
        ),
    ],
)
def test_plans_of_the_impossible_are_refused(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()


@given(st.integers(1, 500), st.integers(1, 500), st.integers(1, 3))
def test_the_smallest_count_is_found_exactly_and_never_beyond_the_most(needed, most, least):
    found = smallest_count(lambda count: count >= needed, least=least, most=max(most, least))
    assert found == (max(needed, least) if needed <= max(most, least) else None)
    near = smallest_count(lambda count: count >= needed, least=least, to_within=1 / 32)
    assert max(needed, least) <= near <= max(needed, least) * 33 / 32
