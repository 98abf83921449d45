import csv
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from passhat.errors import ArgumentError
from passhat.stats.estimate import Estimate, Unavailable
from passhat.stats.mean_intervals import default_bounds
from passhat.stats.passk import pass_hat_k, plug_in_pass_hat_k, pooled_pass_hat_k
from passhat.stats.sufficient_statistics import Cells
from passhat.stats.suite_mean import BIAS_WARNING, SUITE_METHODS, suite_estimate, suite_estimates

SAMPLES = Path(__file__).parents[3] / "shared" / "samples"
AIRLINE = SAMPLES / "tau_bench" / "gpt-4o-airline.outcomes.csv"
AGENTREL = SAMPLES / "agentrel" / "synthetic_runs.json"
BOTH = ("this suite", "tasks like these")

suites = st.lists(
    st.integers(5, 25).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))),
    min_size=2,
    max_size=30,
)


def columns(pairs):
    return tuple(np.array(column) for column in zip(*pairs, strict=True))


@given(suites, st.integers(1, 5), st.sampled_from(BOTH))
def test_the_value_is_the_mean_of_the_tasks_and_lies_inside(pairs, k, scope):
    n, c = columns(pairs)
    found = suite_estimate(n, c, k=k, scope=scope)
    assert found.value == pytest.approx(pass_hat_k(n, c, k).mean(), abs=1e-12)
    assert 0 <= found.interval.low <= found.value + 1e-12
    assert found.value - 1e-12 <= found.interval.high <= 1
    assert (found.tasks, found.runs, found.excluded_tasks) == (n.size, n.sum(), 0)
    assert found.scope == scope


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.999, 0.9999, 0.999999])
def test_three_tasks_have_an_interval_at_any_confidence(confidence):
    rng = np.random.default_rng(3)
    for _ in range(30):
        n = np.full(3, 3)
        for both in suite_estimates(n, rng.binomial(3, 0.5, 3), ks=(1, 2), confidence=confidence):
            for found in both:
                assert 0 <= found.interval.low <= found.interval.high <= 1


uneven = st.lists(
    st.integers(0, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))), max_size=12
)


@settings(deadline=None)
@given(
    uneven,
    st.lists(st.integers(1, 11), min_size=1, max_size=4, unique=True),
    st.sampled_from(["pass^k", "pass@k"]),
)
def test_numbers_asked_for_together_are_those_asked_for_alone(pairs, ks, metric):
    n, c = columns(pairs) if pairs else ([], [])
    for k, together in zip(ks, suite_estimates(n, c, ks=ks, metric=metric), strict=True):
        for scope, found in zip(BOTH, together, strict=True):
            alone = suite_estimate(n, c, k=k, metric=metric, scope=scope)
            if isinstance(alone, Unavailable):
                assert found == alone
                continue
            ends = (found.value, found.interval.low, found.interval.high)
            assert ends == pytest.approx((alone.value, alone.interval.low, alone.interval.high))
            said = (found.method, found.scope, found.tasks, found.excluded_tasks, found.notes)
            assert said == (
                alone.method, alone.scope, alone.tasks, alone.excluded_tasks, alone.notes,
            )  # fmt: skip


@given(suites, st.integers(1, 5), st.sampled_from(BOTH), st.randoms())
def test_the_order_of_tasks_does_not_matter(pairs, k, scope, random):
    shuffled = random.sample(pairs, len(pairs))
    one, other = (suite_estimate(*columns(p), k=k, scope=scope) for p in (pairs, shuffled))
    assert one == other


@given(suites, st.integers(1, 5), st.sampled_from(BOTH))
def test_pass_at_k_is_the_mirror_of_pass_hat_k_of_the_failures(pairs, k, scope):
    n, c = columns(pairs)
    found = suite_estimate(n, c, metric="pass@k", k=k, scope=scope)
    mirror = suite_estimate(n, n - c, metric="pass^k", k=k, scope=scope)
    assert found.value == pytest.approx(1 - mirror.value)
    assert found.interval.low == pytest.approx(1 - mirror.interval.high)
    assert found.interval.high == pytest.approx(1 - mirror.interval.low)


@settings(max_examples=50)
@given(suites, st.integers(1, 5), st.sampled_from(BOTH))
def test_more_confidence_is_wider(pairs, k, scope):
    narrow, wide = (
        suite_estimate(*columns(pairs), k=k, scope=scope, confidence=level).interval
        for level in (0.8, 0.99)
    )
    assert wide.low <= narrow.low + 1e-12
    assert wide.high >= narrow.high - 1e-12


@given(suites, st.sampled_from(BOTH))
def test_at_k_one_both_metrics_are_the_pass_rate(pairs, scope):
    n, c = columns(pairs)
    one, other = (suite_estimate(n, c, metric=m, scope=scope) for m in ("pass^k", "pass@k"))
    assert one.value == pytest.approx(other.value)
    assert one.value == pytest.approx((c / n).mean())
    assert one.interval.low == pytest.approx(other.interval.low, abs=1e-6)


def test_many_suites_at_once_answer_as_one_by_one():
    """The simulations that calibrate the interval run the code that users run."""
    rng = np.random.default_rng(4)
    tallies = rng.multinomial(25, np.full(9, 1 / 9), size=8).astype(float)
    cells = Cells(n=np.full(9, 8.0), c=np.arange(9.0), tasks=tallies)
    for scope in BOTH:
        low, high = default_bounds(cells, 3, scope, 0.95)
        for row, tally in enumerate(tallies.astype(int)):
            c = np.repeat(np.arange(9), tally)
            alone = suite_estimate(np.full(c.size, 8), c, k=3, scope=scope).interval
            assert (alone.low, alone.high) == pytest.approx((low[row], high[row]), abs=1e-4)


def test_this_suite_is_narrower_than_tasks_like_these_when_tasks_differ():
    n, c = np.full(30, 20), np.array([20, 19, 18, 0, 1, 2] * 5)
    fixed, population = (suite_estimate(n, c, k=3, scope=s).interval.width for s in BOTH)
    assert fixed < population / 3


def test_all_pass_leaves_the_exact_zero_failure_bound_for_this_suite():
    for k in (1, 4):
        found = suite_estimate([6] * 7, [6] * 7, k=k)
        assert found.value == 1
        assert found.interval.low == pytest.approx(0.025 ** (k / 42))
        assert found.interval.high == 1


def test_all_pass_leaves_three_quarters_of_an_unseen_task_for_tasks_like_these():
    found = suite_estimate([6] * 7, [6] * 7, k=4, scope="tasks like these")
    assert found.interval.low == pytest.approx(stats.beta.ppf(0.025, 7, 0.75), abs=0.003)
    assert found.interval.high == pytest.approx(1)


def test_all_fail_mirrors_all_pass_at_k_one():
    for scope in BOTH:
        passing = suite_estimate([6] * 7, [6] * 7, scope=scope).interval
        failing = suite_estimate([6] * 7, [0] * 7, scope=scope).interval
        assert failing.low == 0
        assert failing.high == pytest.approx(1 - passing.low)


def test_one_failure_in_256_runs_lowers_the_bound_that_none_had():
    for scope in BOTH:
        every, but_one = (
            suite_estimate([32] * 8, [32] * 7 + [last], scope=scope).interval for last in (32, 31)
        )
        assert but_one.low < every.low


def test_one_task_has_an_interval_for_this_suite_only():
    found = suite_estimate([20], [16], k=3)
    wilson = suite_estimate([20], [16])
    assert found.interval.low == pytest.approx(wilson.interval.low**3)
    assert found.value in found.interval
    missing = suite_estimate([20], [16], scope="tasks like these")
    assert isinstance(missing, Unavailable)
    assert "pass^1 for similar tasks needs at least 2 tasks" in missing.reason
    assert not missing


def test_one_task_that_failed_once_in_k_runs_keeps_its_value_inside():
    found = suite_estimate([5], [4], k=5)
    assert found.value == 0
    assert found.value in found.interval


def test_one_run_a_task_is_the_ordinary_binomial_for_both_scopes():
    for scope in BOTH:
        found = suite_estimate([1] * 40, [1] * 30 + [0] * 10, scope=scope)
        assert found.value == 0.75
        assert 0.55 < found.interval.low < 0.62
        assert 0.84 < found.interval.high < 0.90


def test_tasks_with_too_few_runs_are_left_out_and_counted():
    found = suite_estimate([5, 5, 2, 0], [5, 3, 2, 0], k=3)
    assert (found.tasks, found.runs, found.excluded_tasks) == (2, 10, 2)
    assert found.value == pytest.approx((1 + 0.1) / 2)
    missing = suite_estimate([2, 1], [2, 1], k=3)
    assert missing == Unavailable("pass^3 needs 3 trials of a task; the most any has is 2")
    assert suite_estimate([], [], metric="pass@k", k=2).reason.startswith(
        "pass@2 needs at least one"
    )


def test_fewer_than_five_tasks_are_flagged():
    for tasks, flagged in ((2, True), (3, True), (4, True), (5, False)):
        found = suite_estimate([5] * tasks, [3] * tasks, scope="tasks like these")
        assert any("few to speak" in note for note in found.notes) is flagged
    assert suite_estimate([5, 5], [3, 4]).notes == ()


def test_a_million_runs_and_a_million_tasks_are_no_trouble():
    few = suite_estimate([10**6] * 6, [10**6, 999_999, 500_000, 3, 0, 10**6], k=5)
    assert few.interval.width < 0.01
    rng = np.random.default_rng(6)
    n = np.full(10**6, 20)
    c = rng.binomial(n, rng.beta(3, 1, n.size))
    for scope in BOTH:
        assert suite_estimate(n, c, k=5, scope=scope).interval.width < 0.004


@pytest.mark.parametrize("method", SUITE_METHODS)
@pytest.mark.parametrize("scope", BOTH)
def test_every_method_answers_the_same_value_and_says_its_name(method, scope):
    n, c = [10] * 12, [10, 9, 9, 7, 10, 3, 5, 8, 10, 10, 0, 6]
    found = suite_estimate(n, c, k=3, scope=scope, method=method)
    assert found.value == suite_estimate(n, c, k=3).value
    assert found.interval.width > 0.02
    assert (found.seed == 0) is (method in ("task-bootstrap", "bca", "hierarchical-bootstrap"))
    assert (BIAS_WARNING in found.notes) is (method == "hierarchical-bootstrap")


@pytest.mark.parametrize("method", ["task-bootstrap", "bca", "hierarchical-bootstrap"])
def test_the_same_seed_gives_the_same_bits(method):
    n, c = [10] * 12, [10, 9, 9, 7, 10, 3, 5, 8, 10, 10, 0, 6]
    one, same, other = (suite_estimate(n, c, k=3, method=method, rng=s) for s in (7, 7, 8))
    assert one == same
    assert one.seed == 7
    assert one.interval != other.interval


def test_the_published_figures_of_tau_bench_come_out():
    if not AIRLINE.exists():
        pytest.skip("the tau-bench sample is not in ../shared/samples")
    runs, passes = Counter(), Counter()
    with AIRLINE.open() as file:
        for row in csv.DictReader(file):
            runs[row["task"]] += 1
            passes[row["task"]] += int(row["passed"])
    n = np.array([runs[task] for task in runs])
    c = np.array([passes[task] for task in runs])
    values = [suite_estimate(n, c, k=k).value for k in (1, 2, 3, 4)]
    assert [round(v, 3) for v in values] == [0.42, 0.273, 0.22, 0.2]
    assert round(plug_in_pass_hat_k(n, c, 4).value, 3) == 0.239
    assert round(pooled_pass_hat_k(n, c, 4).value, 3) == 0.031


def test_agentrels_worked_example_comes_out():
    if not AGENTREL.exists():
        pytest.skip("the agentrel sample is not in ../shared/samples")
    runs, passes = Counter(), Counter()
    for run in json.loads(AGENTREL.read_text())["runs"]:
        runs[run["task_id"]] += 1
        passes[run["task_id"]] += run["score"] >= 1.0
    n, c = (np.array([counter[task] for task in runs]) for counter in (runs, passes))
    points = [suite_estimate(n, c, k=k).value for k in (1, 2, 5)]
    assert [round(v, 4) for v in points] == [0.4688, 0.3194, 0.1947]
    assert round(suite_estimate(n, c, k=5, metric="pass@k").value, 4) == 0.8090
    theirs = suite_estimate(
        n, c, k=5, scope="tasks like these", method="hierarchical-bootstrap", resamples=40_000
    )
    # Their ends come from 2,000 resamples: about 0.006 of Monte Carlo error each.
    assert (theirs.interval.low, theirs.interval.high) == pytest.approx((0.0506, 0.4137), abs=0.02)


def test_resampled_runs_centre_on_the_wrong_value():
    """Sixteen tasks at 4 of 5: pass^5 is 0 and the biased interval does not even hold it."""
    found = suite_estimate(
        [5] * 16, [4] * 16, k=5, method="hierarchical-bootstrap", scope="tasks like these"
    )
    assert found.value == 0
    assert (found.interval.low, found.interval.high) == pytest.approx((0.125, 0.5625), abs=0.07)
    assert isinstance(found, Estimate)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": "pass#k"}, r"metric must be one of 'pass\^k', 'pass@k', got 'pass#k'"),
        ({"scope": "everything"}, "scope must be one of 'this suite', 'tasks like these'"),
        ({"method": "magic"}, "method must be one of 'default', .*, got 'magic'"),
        ({"k": 0}, "k must be a whole number >= 1, got 0"),
        ({"confidence": 1.5}, "confidence must lie strictly between 0 and 1, got 1.5"),
        ({"resamples": 0}, "resamples must be a whole number >= 1, got 0"),
        ({"method": "bca", "rng": -1}, "rng must be a whole number >= 0, got -1"),
    ],
)
def test_bad_options_are_refused_by_name(options, message):
    with pytest.raises(ArgumentError, match=message):
        suite_estimate([5, 5], [4, 2], **options)


def test_bad_counts_are_refused_by_name():
    with pytest.raises(ArgumentError, match="c must not exceed n"):
        suite_estimate([5, 5], [4, 6])
    with pytest.raises(ArgumentError, match="takes at most 500 tasks; use 'task-bootstrap'"):
        suite_estimate([5] * 501, [4] * 501, method="exact-bootstrap")


def test_an_answer_is_the_same_to_the_last_bit_whatever_was_asked_before():
    rng = np.random.default_rng(3)
    for _ in range(15):
        n = rng.integers(6, 30, int(rng.integers(2, 60)))
        c = rng.binomial(n, rng.beta(2, 1, n.size))
        first = suite_estimates(n, c, ks=(1, 2, 3, 4, 5))
        suite_estimates(n, c, ks=(2,))
        assert suite_estimates(n, c, ks=(1, 2, 3, 4, 5)) == first


def test_numbers_too_small_to_be_squared_still_have_an_interval():
    found = suite_estimate([9993] + [10_000] * 4, [4996] + [5000] * 4, k=600)
    assert 0 < found.value < 1e-180
    assert found.interval.low <= found.value <= found.interval.high < 1e-3


def test_a_bound_moves_gradually_with_its_confidence_where_tasks_have_fewer_than_2k_runs():
    def low(confidence):
        terms = {"metric": "pass@k", "k": 10, "confidence": confidence}
        return suite_estimate([12] * 5, [1, 0, 0, 0, 1], **terms).interval.low

    lows = [low(confidence) for confidence in np.linspace(0.6, 0.91, 32)]
    assert (np.abs(np.diff(lows)) < 0.01).all()
