import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from passhat.errors import ArgumentError
from passhat.stats.proportions import (
    lower_bound,
    proportion_bounds,
    proportion_interval,
    upper_bound,
)

METHODS = ("wilson", "clopper-pearson", "jeffreys", "mid-p", "agresti-coull", "wald")
THEIR_NAMES = {
    "wilson": "wilson",
    "clopper-pearson": "beta",
    "agresti-coull": "agresti_coull",
    "wald": "normal",
}

counts = st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@pytest.mark.parametrize("method", sorted(THEIR_NAMES))
@given(counts, st.sampled_from([0.8, 0.95, 0.999]))
def test_it_agrees_with_statsmodels(method, pair, confidence):
    from statsmodels.stats.proportion import proportion_confint

    c, n = pair
    theirs = proportion_confint(c, n, alpha=1 - confidence, method=THEIR_NAMES[method])
    ours = proportion_interval(c, n, method=method, confidence=confidence)
    assert ours.low == pytest.approx(max(float(theirs[0]), 0.0), abs=1e-10)
    assert ours.high == pytest.approx(min(float(theirs[1]), 1.0), abs=1e-10)


@given(counts)
def test_wilson_and_clopper_pearson_agree_with_scipy(pair):
    c, n = pair
    for ours, theirs in (("wilson", "wilson"), ("clopper-pearson", "exact")):
        found = stats.binomtest(c, n).proportion_ci(0.95, method=theirs)
        interval = proportion_interval(c, n, method=ours)
        assert (interval.low, interval.high) == pytest.approx((found.low, found.high), abs=1e-10)


@given(counts.filter(lambda pair: 0 < pair[0] < pair[1]))
def test_jeffreys_is_a_beta_posterior_inside_and_open_at_the_ends(pair):
    c, n = pair
    interval = proportion_interval(c, n, method="jeffreys")
    expected = stats.beta.ppf([0.025, 0.975], c + 0.5, n - c + 0.5)
    assert (interval.low, interval.high) == pytest.approx(tuple(expected), abs=1e-10)
    assert proportion_interval(0, n, method="jeffreys").low == 0
    assert proportion_interval(n, n, method="jeffreys").high == 1


@given(counts)
def test_mid_p_ends_leave_the_tail_when_half_the_seen_outcome_counts(pair):
    c, n = pair
    interval = proportion_interval(c, n, method="mid-p")
    if c > 0:
        above = stats.binom.sf(c, n, interval.low) + stats.binom.pmf(c, n, interval.low) / 2
        assert above == pytest.approx(0.025, abs=1e-9)
    if c < n:
        below = stats.binom.cdf(c - 1, n, interval.high) + stats.binom.pmf(c, n, interval.high) / 2
        assert below == pytest.approx(0.025, abs=1e-9)


@pytest.mark.parametrize("method", METHODS)
@given(counts)
def test_the_share_lies_inside_and_failures_mirror_passes(method, pair):
    c, n = pair
    interval = proportion_interval(c, n, method=method)
    mirror = proportion_interval(n - c, n, method=method)
    assert 0 <= interval.low <= c / n <= interval.high <= 1
    assert mirror.low == pytest.approx(1 - interval.high, abs=1e-12)
    assert mirror.high == pytest.approx(1 - interval.low, abs=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_a_table_answers_as_its_rows_do(method):
    c, n = [0, 3, 9, 10, 0], [5, 7, 10, 10, 0]
    low, high = proportion_bounds(c, n, method=method, confidence=0.9)
    for i, (passes, runs) in enumerate(zip(c, n, strict=True)):
        one = proportion_interval(passes, runs, method=method, confidence=0.9)
        assert (one.low, one.high) == (low[i], high[i])


@pytest.mark.parametrize("method", METHODS)
def test_no_runs_say_nothing(method):
    interval = proportion_interval(0, 0, method=method)
    assert (interval.low, interval.high) == (0, 1)


def test_the_worked_example_of_the_sources():
    interval = proportion_interval(16, 20, method="wald")
    assert (round(interval.low, 2), round(interval.high, 2)) == (0.62, 0.98)
    assert (interval.low**3, interval.high**3) == pytest.approx((0.2438, 0.9277), abs=1e-3)


def test_one_sided_bounds_are_exact():
    assert float(lower_bound(29, 29)) >= 0.9 > float(lower_bound(28, 28))
    assert float(lower_bound(59, 59)) >= 0.95 > float(lower_bound(58, 58))
    assert float(lower_bound(299, 299)) >= 0.99 > float(lower_bound(298, 298))
    for c in range(11):
        low, high = float(lower_bound(c, 10)), float(upper_bound(c, 10))
        assert c == 0 or stats.binom.sf(c - 1, 10, low) == pytest.approx(0.05)
        assert c == 10 or stats.binom.cdf(c, 10, high) == pytest.approx(0.05)
    np.testing.assert_allclose(upper_bound([0, 3], [4, 4]), 1 - lower_bound([4, 1], [4, 4]))


def test_a_million_runs_are_no_trouble():
    for method in METHODS:
        interval = proportion_interval(999_990, 10**6, method=method)
        assert 0.99997 < interval.low < 0.99999 < interval.high < 1


def test_bad_input_is_refused_by_name():
    with pytest.raises(ArgumentError, match="c must not exceed n"):
        proportion_interval(5, 4)
    with pytest.raises(ArgumentError, match=r"method must be one of 'wilson', .*, got 'exact'"):
        proportion_interval(1, 4, method="exact")
    with pytest.raises(ArgumentError, match="confidence must lie strictly between 0 and 1, got 1"):
        proportion_interval(1, 4, confidence=1)
    with pytest.raises(ArgumentError, match="n must be a whole number >= 0"):
        proportion_interval(1, 4.5)
