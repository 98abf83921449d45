"""What is read off the beta model of difficulty: priors left possible, bars, labels, far k."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special, stats

from passhat.errors import ArgumentError
from passhat.stats.beta_binomial import prior_weights
from passhat.stats.decay import MODEL_WARNING, extrapolate_pass_hat_k
from passhat.stats.estimate import Unavailable
from passhat.stats.sufficient_statistics import count_cells
from passhat.stats.suite_mean import suite_estimate
from passhat.stats.task_labels import UNDECIDED, bars_cleared, label_tasks

suites = st.lists(
    st.integers(1, 20).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))),
    min_size=1,
    max_size=30,
)


def quantiles(n, passes, shares):
    """Counts at even quantiles of a known mixture: a suite without sampling noise."""
    return np.searchsorted(np.cumsum(shares), (np.arange(passes) + 0.5) / passes), np.full(
        passes, n
    )


def test_prior_weights_agree_with_integrating_the_posterior():
    n, c = np.array([8, 8, 8, 8]), np.array([8, 6, 7, 2])
    priors = prior_weights(count_cells(n, c))

    def density(logit, log):
        s, mean = np.exp(log), special.expit(logit)
        a, b = s * mean, s * (1 - mean)
        likelihood = (special.betaln(a + c, b + n - c) - special.betaln(a, b)).sum()
        return np.exp(likelihood) * mean * (1 - mean) * s**2 / (1 + s) ** 3

    box = ((-8, 8), (-7, 11))
    options = {"epsabs": 0, "epsrel": 1e-4}
    total = integrate.nquad(density, box, opts=options)[0]
    mean = integrate.nquad(lambda x, y: special.expit(x) * density(x, y), box, opts=options)[0]
    ours = priors.weight @ (priors.a / (priors.a + priors.b))
    assert ours == pytest.approx(mean / total, abs=2e-3)


@pytest.mark.parametrize("tasks", [1, 10, 1000, 10**6])
def test_the_grid_zooms_to_where_the_weight_is(tasks):
    rng = np.random.default_rng(1)
    c = rng.binomial(5, rng.beta(8, 1, tasks))
    priors = prior_weights(count_cells(np.full(tasks, 5), c))
    assert 80 < priors.weight.size < 600
    assert priors.weight.sum() == pytest.approx(1)
    assert priors.weight.max() < 0.2


def test_thresholding_estimates_is_biased_and_the_model_is_not():
    """Beta(8, 1), n = 5, k = 3, bar 0.8: plug-in 0.616, truth 0.448, model 0.441."""
    chance = stats.betabinom.pmf(np.arange(6), 5, 8, 1)
    c, n = quantiles(5, 100_000, chance)
    cleared = bars_cleared(n, c, k=3, bars=0.8)
    truth = stats.beta.sf(0.8 ** (1 / 3), 8, 1)
    assert cleared.plug_in_share == pytest.approx(0.616, abs=1e-3)
    assert truth == pytest.approx(0.448, abs=1e-3)
    assert cleared.model_share.value == pytest.approx(truth, abs=5e-3)
    assert truth in cleared.model_share.interval
    assert MODEL_WARNING in cleared.model_share.notes


def test_bars_are_certified_by_exact_one_sided_bounds():
    cleared = bars_cleared([60, 60, 5, 0], [60, 20, 5, 0], k=3, bars=0.8)
    assert cleared.verdicts.tolist() == ["above", "below", "undetermined", "undetermined"]
    assert (cleared.above, cleared.below, cleared.undetermined) == (1, 1, 2)
    runs = next(n for n in range(1, 100) if bars_cleared([n], [n], k=1, bars=0.9).above)
    assert runs == 29


def test_each_task_may_have_its_own_bar():
    cleared = bars_cleared([60, 60], [60, 60], k=2, bars=[0.5, 0.99])
    assert cleared.verdicts.tolist() == ["above", "undetermined"]


@settings(max_examples=25)
@given(suites, st.integers(1, 4), st.floats(0, 1))
def test_every_task_gets_one_verdict(pairs, k, bar):
    n, c = zip(*pairs, strict=True)
    cleared = bars_cleared(n, c, k=k, bars=bar)
    assert cleared.above + cleared.below + cleared.undetermined == len(pairs)
    assert 0 <= cleared.model_share.value <= 1


def test_certified_verdicts_are_wrong_at_most_as_often_as_promised():
    rng = np.random.default_rng(2)
    p = np.full(20_000, 0.9 ** (1 / 3))
    cleared = bars_cleared(np.full(p.size, 40), rng.binomial(40, p), k=3, bars=0.9 + 1e-9)
    assert cleared.above / p.size <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / p.size)


def test_pass_hat_32_is_reached_from_five_runs():
    """K = 32 from n = 5 under Beta(8, 1): 8 / 40 = 0.2."""
    c, n = quantiles(5, 20_000, stats.betabinom.pmf(np.arange(6), 5, 8, 1))
    found = extrapolate_pass_hat_k(n, c, 32)
    assert found.value == pytest.approx(0.2, abs=0.006)
    assert 0.2 in found.interval
    assert "model-based" in found.method
    assert found.notes == (MODEL_WARNING,)


def test_extrapolation_within_the_runs_agrees_with_the_unbiased_mean():
    rng = np.random.default_rng(3)
    n = np.full(3000, 10)
    c = rng.binomial(n, rng.beta(3, 1, n.size))
    model, unbiased = extrapolate_pass_hat_k(n, c, 5), suite_estimate(n, c, k=5)
    assert model.value == pytest.approx(unbiased.value, abs=0.01)


@settings(max_examples=25)
@given(suites)
def test_more_attempts_never_raise_the_extrapolated_value(pairs):
    n, c = zip(*pairs, strict=True)
    values = [extrapolate_pass_hat_k(n, c, k).value for k in (1, 2, 8, 64)]
    assert values == sorted(values, reverse=True)


def test_no_run_at_all_extrapolates_nothing():
    missing = extrapolate_pass_hat_k([0, 0], [0, 0], 5)
    assert missing == Unavailable("extrapolating pass^5 needs a task with a trial; there is none")
    assert isinstance(bars_cleared([0], [0], k=1, bars=0.5).model_share, Unavailable)


def test_labels_say_what_many_runs_show_and_nothing_after_few():
    found = label_tasks([90, 60, 60, 2, 0], [90, 30, 0, 2, 0])
    assert found.labels.tolist() == ["solid", "flaky", "broken", UNDECIDED, UNDECIDED]
    assert found.count("solid") == 1


@settings(max_examples=25)
@given(suites)
def test_the_chances_of_a_task_add_up_and_rise_with_its_passes(pairs):
    n, c = (np.array(column) for column in zip(*pairs, strict=True))
    found = label_tasks(n, c)
    np.testing.assert_allclose(found.solid + found.flaky + found.broken, 1)
    longest = n == n.max()
    order = np.argsort(c[longest])
    assert (np.diff(found.solid[longest][order]) >= -1e-9).all()


@pytest.mark.parametrize(("n", "c"), [([3], [3]), ([5] * 3, [5] * 3), ([1] * 20, [1, 0] * 10)])
def test_a_handful_of_runs_labels_nothing_solid(n, c):
    assert label_tasks(n, c).count("solid") == 0


def test_a_suite_that_always_passes_is_solid():
    assert label_tasks([5] * 100, [5] * 100).count("solid") == 100


def test_given_labels_are_right_as_often_as_they_claim():
    rng = np.random.default_rng(4)
    p = rng.beta(3, 1, 20_000)
    labels = label_tasks(np.full(p.size, 10), rng.binomial(10, p)).labels
    real = np.where(p < 0.1, "broken", np.where(p > 0.95, "solid", "flaky"))
    given_label = labels != UNDECIDED
    assert given_label.mean() > 0.3
    assert (labels == real)[given_label].mean() > 0.9


def test_bad_input_is_refused_by_name():
    with pytest.raises(ArgumentError, match=r"bars must be numbers in \[0, 1\], got 1.2"):
        bars_cleared([5], [5], k=1, bars=1.2)
    with pytest.raises(ArgumentError, match="bars must be one bar, or one for each of 1 tasks"):
        bars_cleared([5], [5], k=1, bars=[0.5, 0.6])
    with pytest.raises(ArgumentError, match="k must be a whole number >= 1"):
        extrapolate_pass_hat_k([5], [5], 0)
    with pytest.raises(ArgumentError, match=r"broken_below must be less than solid_above = 0\.1"):
        label_tasks([5], [5], broken_below=0.5, solid_above=0.1)
    with pytest.raises(ArgumentError, match=r"broken_below must be less than solid_above = 0\.5"):
        label_tasks([5], [5], broken_below=0.5, solid_above=0.5)


def test_a_task_that_never_ran_has_no_label_however_sure_its_suite_is():
    found = label_tasks([60] * 200 + [0], [60] * 200 + [0])
    assert found.solid[-1] > 0.9
    assert found.labels[-1] == UNDECIDED


def test_an_extrapolated_value_lies_in_its_interval_which_widens_with_confidence():
    n, c = [5, 5, 5, 5, 0], [5, 5, 4, 2, 0]
    found = [extrapolate_pass_hat_k(n, c, 8, confidence=level) for level in (0.01, 0.5, 0.8, 0.99)]
    widths = [one.interval.width for one in found]
    assert widths == sorted(set(widths))
    assert all(one.value in one.interval for one in found)
    assert {(one.tasks, one.excluded_tasks) for one in found} == {(4, 1)}
