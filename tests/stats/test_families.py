from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passhat.errors import ArgumentError
from passhat.stats import population_bounds, suite_mean
from passhat.stats.estimate import Unavailable
from passhat.stats.paired import paired_difference
from passhat.stats.population_bounds import lower_quantile, lower_ratio_quantile, lower_ratio_tail
from passhat.stats.ranking import rank_systems
from passhat.stats.sufficient_statistics import TaskSums
from passhat.stats.suite_mean import score_estimate, suite_estimate, suite_estimates
from passhat.stats.variance import _leaving_one_out, family_components, family_shares

BOTH = ("this suite", "tasks like these")


@pytest.mark.parametrize("sizes", [[5] * 5, [1, 2, 3, 4, 9], [20] * 10, [1, 40, 3, 7, 2, 2]])
def test_the_family_bound_is_the_quantile_of_the_random_ratio(sizes):
    rng = np.random.default_rng(1)
    size = np.array(sizes, float)
    sums = size * rng.beta(0.6, 0.4, size.size)
    weights = rng.exponential(size=(200_000, size.size))
    unseen = rng.gamma(0.75, size=200_000) * (size**2).sum() / size.sum()
    drawn = (weights @ sums) / (weights @ size + unseen)
    found = float(lower_ratio_quantile(sums, size, 0.025))
    assert found == pytest.approx(np.quantile(drawn, 0.025), abs=0.006)
    assert float(lower_ratio_tail(sums, size, found)) == pytest.approx(0.025, rel=1e-6)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=20))
def test_families_of_one_task_are_tasks(values):
    ratio = lower_ratio_quantile(values, np.ones(len(values)), 0.025)
    assert float(ratio) == pytest.approx(
        float(lower_quantile(values, np.ones(len(values)), 0.025)), abs=1e-6
    )


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=24, max_size=24), st.integers(0, 23))
def test_a_failure_never_raises_the_bound_over_families(passes, place):
    family = np.repeat(np.arange(8), 3)
    more = [c + (i == place and c < 4) for i, c in enumerate(passes)]
    worse, better = (
        suite_estimate([4] * 24, c, scope="tasks like these", family=family).interval
        for c in (passes, more)
    )
    assert worse.low <= better.low + 1e-8
    assert worse.high <= better.high + 1e-8


def test_labels_that_are_all_different_change_nothing():
    n, c = [5] * 12, [5, 4, 3, 5, 0, 1, 2, 5, 5, 4, 4, 3]
    for scope in BOTH:
        plain = suite_estimate(n, c, scope=scope, k=2)
        assert suite_estimate(n, c, scope=scope, k=2, family=[f"t{i}" for i in range(12)]) == plain
        assert suite_estimate(n, c, scope=scope, k=2, weight=[3.0] * 12) == plain


def test_few_families_get_the_task_bound_and_say_so():
    n, c = [5] * 20, [5, 5, 5, 5, 1, 1, 0, 1, 4, 3, 4, 4, 2, 2, 2, 3, 5, 5, 4, 5]
    family = np.repeat(list("abcde"), 4)
    found = suite_estimate(n, c, scope="tasks like these", family=family)
    plain = suite_estimate(n, c, scope="tasks like these")
    assert found.interval.low == pytest.approx(plain.interval.low, abs=1e-6)
    assert found.families == 5
    assert found.family_interval.width > 1.5 * found.interval.width
    assert any("from these 5 families" in note for note in found.notes)


def test_many_families_widen_the_interval_and_asking_together_changes_nothing():
    rng = np.random.default_rng(3)
    family = np.repeat(np.arange(12), 6)
    c = rng.binomial(6, np.repeat(rng.beta(2, 1, 12), 6))
    n = np.full(72, 6)
    found = suite_estimate(n, c, scope="tasks like these", family=family, k=2)
    assert found.families == 12
    assert found.family_interval is None
    assert found.interval.width > suite_estimate(n, c, scope="tasks like these", k=2).interval.width
    together = suite_estimates(n, c, ks=(1, 2), family=family)[1][1]
    # Several values are summed together and their roots polished together: the last digit may
    # differ, on some processors.
    assert together.value == pytest.approx(found.value, rel=1e-13)
    assert together.interval.low == pytest.approx(found.interval.low, rel=1e-13)
    assert together.interval.high == pytest.approx(found.interval.high, rel=1e-13)
    assert replace(together, value=found.value, interval=found.interval) == found
    mirrored = suite_estimate(
        n, n - c, scope="tasks like these", family=family, k=2, metric="pass@k"
    )
    assert mirrored.interval.low == pytest.approx(1 - found.interval.high)


def test_weights_weigh_the_value_and_say_how_many_equal_tasks_they_are_worth():
    n, c, weight = [4, 4, 4, 4], [4, 2, 0, 4], [1.0, 2.0, 3.0, 4.0]
    for scope in BOTH:
        found = suite_estimate(n, c, scope=scope, weight=weight)
        assert found.value == pytest.approx((4 + 4 + 16) / 40)
        assert found.value in found.interval
        assert any("as good as 3.3 equal ones" in note for note in found.notes)
        scored = score_estimate(n, c, c, scope=scope, weight=weight)
        assert scored.value == pytest.approx(found.value)
        assert scored.interval.low == pytest.approx(found.interval.low, abs=1e-6)


@pytest.mark.slow("simulates an error rate")
def test_equal_systems_on_families_are_rarely_called_different():
    """Without families one in five is; 300 draws of 12 families by 8 tasks."""
    rng = np.random.default_rng(5)
    family = np.repeat(np.arange(12), 8)
    runs = np.full(96, 4)
    wrong = {"with": 0, "without": 0}
    for _ in range(100):
        shift = np.repeat(rng.normal(0, 1.0, (2, 12)), 8, axis=1)
        rate = 1 / (1 + np.exp(-(0.5 + shift)))
        a, b = (TaskSums.of_passes(runs, rng.binomial(4, p)) for p in rate)
        for name, labels in (("with", family), ("without", None)):
            found = paired_difference(a, b, scope="tasks like these", family=labels)
            wrong[name] += found.answer in ("better", "worse")
    assert wrong["with"] <= 10
    assert wrong["without"] >= 15


def test_ranks_flip_signs_family_by_family():
    rng = np.random.default_rng(6)
    family = np.repeat(np.arange(10), 10)
    table = np.repeat(rng.normal(0.5, 0.15, (10, 3)), 10, axis=0).clip(0, 1)
    apart, together = (rank_systems(table, family=labels) for labels in (None, family))
    assert max(pair.p_value for pair in together.pairs) >= max(p.p_value for p in apart.pairs)
    wider = [pair.standard_error for pair in together.pairs]
    assert all(w > p.standard_error for w, p in zip(wider, apart.pairs, strict=True))
    assert together.means == pytest.approx(apart.means)


def test_the_variance_between_families_is_found():
    rng = np.random.default_rng(8)
    family = np.repeat(np.arange(60), 10)
    mean = np.clip(np.repeat(rng.normal(0.5, 0.15, 60), 10) + rng.normal(0, 0.1, 600), 0, 1)
    c = rng.binomial(20, mean)
    split = family_components(np.full(600, 20), c, family=family)
    assert split.between_families == pytest.approx(0.15**2, rel=0.5)
    assert split.between_tasks == pytest.approx(0.1**2, rel=0.3)
    assert split.family_share == pytest.approx(0.69, abs=0.1)
    assert isinstance(family_components([4, 4], [1, 2], family=["a", "b"]), Unavailable)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"family": ["a"]}, "family must have one label per task, 2"),
        ({"weight": [1.0, -1.0]}, "weight must be finite and above 0, got -1.0"),
        ({"weight": [1.0, float("inf")]}, "weight must be finite and above 0, got inf"),
        ({"weight": [1.0, 2.0], "method": "t"}, "method must be 'default' with families"),
    ],
)
def test_bad_families_and_weights_are_refused_by_name(options, message):
    with pytest.raises(ArgumentError, match=message):
        suite_estimate([5, 5], [4, 2], **options)


def nested_mean_squares(table):
    """Searle, Casella and McCulloch (1992): mean squares of families, tasks and runs, one by one.

    `table` has an axis for families, one for tasks inside them and one for runs.
    """
    families, tasks, runs = table.shape
    task_means, family_means = table.mean(axis=2), table.mean(axis=(1, 2))
    within = sum((x - task_means[f, t]) ** 2 for (f, t, _), x in np.ndenumerate(table))
    inner = sum((m - family_means[f]) ** 2 for (f, _), m in np.ndenumerate(task_means))
    outer = sum((m - table.mean()) ** 2 for m in family_means)
    return (
        tasks * runs * outer / (families - 1),
        runs * inner / (families * (tasks - 1)),
        within / (families * tasks * (runs - 1)),
    )


def test_the_shares_of_families_tasks_and_runs_are_those_of_the_nested_analysis_of_variance():
    rng = np.random.default_rng(3)
    rates = rng.beta(2, 2, 10)[:, None] * rng.beta(8, 2, (10, 4))
    table = (rng.random((10, 4, 5)) < rates[..., None]).astype(float)
    outer, inner, within = nested_mean_squares(table)
    parts = np.array([(outer - inner) / 20, (inner - within) / 5, within])
    found = family_shares(
        np.full(40, 5), table.sum(axis=2).ravel(), family=np.repeat(np.arange(10), 4)
    )
    told = [found.family.value, found.task.value, found.run.value]
    assert told == pytest.approx(np.maximum(parts, 0) / np.maximum(parts, 0).sum())
    assert sum(told) == pytest.approx(1)
    for share in (found.family, found.task, found.run):
        assert share.value in share.interval


def test_the_share_of_families_has_no_interval_where_they_are_few():
    found = family_shares([5] * 10, [5, 5, 4, 4, 2, 1, 0, 3, 5, 2], family=list("aabbccddee"))
    assert found.family.interval is None
    assert found.family.notes == ("no interval: 5 families are too few",)


def test_the_interval_of_the_share_of_families_holds_it_nine_times_in_ten():
    """A jackknife of ten to twenty families is rough: short of 95%, far from nothing."""
    rng = np.random.default_rng(8)
    held = 0
    for _ in range(60):
        shift = np.repeat(rng.normal(0, 0.15, 20), 5)
        rates = np.clip(0.5 + shift + rng.normal(0, 0.1, 100), 0, 1)
        found = family_shares(
            np.full(100, 6), rng.binomial(6, rates), family=np.repeat(np.arange(20), 5)
        )
        held += 0.15**2 / 0.25 in found.family.interval
    assert held >= 50


@pytest.mark.parametrize("seed", range(12))
def test_the_shares_without_a_family_are_those_of_the_other_families(seed):
    rng = np.random.default_rng(seed)
    families = int(rng.integers(8, 13))
    labels = np.concatenate((np.arange(families), rng.integers(0, families, 20)))
    runs = rng.integers(1, 6, labels.size)
    rates = rng.beta(2, 1, labels.size)
    if seed % 4 == 0:  # one family alone has failed, one task apart: little is left without it
        rates = 1.0 - (labels == 0)
    scores = [rng.random(n) < rate for n, rate in zip(runs, rates, strict=True)]
    if seed % 2:  # partial credit
        scores = [one * rng.random(one.size) for one in scores]
    total, squares = (np.array([(one**p).sum() for one in scores], float) for p in (1, 2))
    one_by_one = []
    for label in range(families):
        rest = labels != label
        sums = runs[rest], total[rest], squares[rest]
        found = family_components(*sums, family=labels[rest], below_zero=True)
        if not isinstance(found, Unavailable) and found.total > 0:
            one_by_one.append(found.shares)
    together = _leaving_one_out(runs, total, squares, labels)
    assert together == pytest.approx(np.array(one_by_one).reshape(-1, 3), abs=1e-12)


@pytest.mark.parametrize("rates", [(3, 1), (0.1, 0.1), (30, 0.3)])
def test_a_first_guess_from_joined_families_leads_to_the_same_bound(rates, monkeypatch):
    rng = np.random.default_rng(6)
    sizes = rng.lognormal(0, 1, 2_000)
    sums = sizes * rng.beta(*rates, (2, 2_000))
    guessed = lower_ratio_quantile(sums, sizes, 0.025)
    monkeypatch.setattr(population_bounds, "_MANY_FAMILIES", sizes.size + 1)
    assert guessed == pytest.approx(lower_ratio_quantile(sums, sizes, 0.025), rel=1e-11)


@pytest.mark.parametrize("credit", [1.0, 0.5])
def test_the_interval_of_weighted_tasks_joins_those_of_strata_of_equal_weight(credit):
    rng = np.random.default_rng(7)
    n = rng.integers(4, 7, 40)
    total = rng.binomial(n, 0.8) * credit
    sums = n, total, total * credit
    weight = rng.permutation(np.repeat([1.0, 2.0, 3.0, 5.0], 10))
    margins = []
    for one in np.unique(weight):
        found = score_estimate(*(part[weight == one] for part in sums))
        share = one * 10 / weight.sum()
        margins.append(
            share * (np.array([found.value]) - [found.interval.low, found.interval.high])
        )
    weighted = score_estimate(*sums, weight=weight)
    low, high = np.sqrt((np.array(margins) ** 2).sum(axis=0))
    assert weighted.interval.low == pytest.approx(weighted.value - low)
    assert weighted.interval.high == pytest.approx(weighted.value + high)


def test_tasks_of_distinct_weights_are_bounded_once_for_each_count(monkeypatch):
    asked = []
    bounds = suite_mean.suite_bounds
    monkeypatch.setattr(
        suite_mean, "suite_bounds", lambda *given: (asked.append(given), bounds(*given))[1]
    )
    passes = np.arange(300) % 6
    suite_estimate([5] * 300, passes, k=2, weight=1 + np.arange(300) / 300)
    assert len(asked) == 6
