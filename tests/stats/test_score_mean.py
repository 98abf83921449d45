import inspect
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from passhat.errors import ArgumentError
from passhat.stats.estimate import Unavailable
from passhat.stats.suite_mean import (
    SCORE_METHODS,
    SUITE_METHODS,
    score_estimate,
    suite_estimate,
)

AGENTREL = Path(__file__).parents[3] / "shared" / "samples" / "agentrel" / "synthetic_runs.json"
BOTH = ("this suite", "tasks like these")

passes = st.lists(
    st.integers(1, 20).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))),
    min_size=2,
    max_size=30,
)
score_tables = st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=6), min_size=2, max_size=15)


def sums(table):
    n = [len(row) for row in table]
    return n, [sum(row) for row in table], [sum(x * x for x in row) for row in table]


@settings(max_examples=60)
@given(passes, st.sampled_from(BOTH))
def test_scores_of_zero_and_one_give_the_interval_of_passes(pairs, scope):
    n, c = zip(*pairs, strict=True)
    ours, theirs = score_estimate(n, c, c, scope=scope), suite_estimate(n, c, scope=scope)
    assert ours.value == pytest.approx(theirs.value)
    if len(set(n)) == 1:
        expected = (theirs.interval.low, theirs.interval.high)
        assert (ours.interval.low, ours.interval.high) == pytest.approx(expected, abs=1e-5)


@settings(max_examples=60)
@given(score_tables, st.sampled_from(BOTH), st.sampled_from(SCORE_METHODS))
@example([[0.0], [2.2250738585072014e-308]], "this suite", "default")
def test_the_mean_of_task_means_lies_inside_whatever_the_method(table, scope, method):
    found = score_estimate(*sums(table), scope=scope, method=method, resamples=200)
    assert found.value == pytest.approx(np.mean([np.mean(row) for row in table]))
    assert 0 <= found.interval.low <= found.interval.high <= 1
    if method == "default":
        assert found.interval.low - 1e-12 <= found.value <= found.interval.high + 1e-12


def test_steadier_scores_give_a_narrower_interval_for_this_suite():
    rng = np.random.default_rng(1)
    wild = rng.integers(0, 2, (20, 8)).astype(float)
    steady = 0.5 + (wild - 0.5) / 10
    widths = [score_estimate(*sums(t.tolist())).interval.width for t in (wild, steady)]
    assert widths[1] < widths[0] / 5


def test_constant_scores_leave_little_more_than_the_runs_not_seen():
    """Not only these: were one score higher the noise would be too, and the bound not be better."""
    found = score_estimate([5] * 8, [2.5] * 8, [1.25] * 8)
    seen = 0.025 ** (1 / 40)
    assert 0.975 * 0.5 * seen < found.interval.low < 0.5 * seen
    assert found.interval.high == pytest.approx(1 - found.interval.low)


def test_one_run_a_task_is_taken_to_vary_as_much_as_scores_can():
    x = np.array([0.5, 1.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7])
    found = score_estimate(np.ones(8), x, x**2)
    assert found.interval.width > 0.5


def test_tasks_without_runs_are_counted_and_one_task_is_no_population():
    found = score_estimate([4, 0, 4], [3.0, 0.0, 2.0], [2.5, 0.0, 1.5])
    assert (found.tasks, found.runs, found.excluded_tasks) == (2, 8, 1)
    assert isinstance(score_estimate([0], [0.0], [0.0]), Unavailable)
    missing = score_estimate([4], [3.0], [2.5], scope="tasks like these")
    assert "for similar tasks needs at least 2 tasks" in missing.reason
    assert score_estimate([4], [3.0], [2.5]).interval.width < 1


def test_many_tasks_are_rounded_for_the_fit_and_the_interval_hardly_moves():
    rng = np.random.default_rng(2)
    x = rng.beta(2, 1, (4090, 5))
    few, many = x, np.vstack((x, x[:10]))
    for scope in BOTH:
        ends = [score_estimate(*sums(t.tolist()), scope=scope).interval for t in (few, many)]
        assert ends[0].width == pytest.approx(ends[1].width, rel=0.01)


def test_agentrels_mean_score_comes_out():
    if not AGENTREL.exists():
        pytest.skip("the agentrel sample is not in ../shared/samples")
    table = {}
    for run in json.loads(AGENTREL.read_text())["runs"]:
        table.setdefault(run["task_id"], []).append(run["score"])
    found = score_estimate(*sums(list(table.values())), scope="tasks like these")
    assert round(found.value, 4) == 0.6261
    assert 0.45 < found.interval.low < 0.52
    assert 0.72 < found.interval.high < 0.78


@pytest.mark.parametrize(
    ("n", "total", "squares", "message"),
    [
        ([3], [3.5], [3.0], r"total must lie between 0 and n \(scores are in \[0, 1\]\), got 3.5"),
        ([3], [-0.5], [0.1], "total must lie between 0 and n"),
        ([3], [1.5], [1.6], r"squares must lie between total\^2 / n and total .*, got 1.6"),
        ([3], [1.5], [0.1], r"squares must lie between total\^2 / n and total .*, got 0.1"),
        ([3], [float("nan")], [0.1], "total must be finite, got nan"),
        ([3, 3], [1.5], [1.0], "total must have one number per task"),
        ([3], ["x"], [1.0], "total must be numbers, one per task"),
        ([1.5], [1.0], [1.0], "n must be whole numbers >= 0, got 1.5"),
    ],
)
def test_bad_sums_are_refused_by_name(n, total, squares, message):
    with pytest.raises(ArgumentError, match=message):
        score_estimate(n, total, squares)


def test_an_unknown_method_is_refused_by_name():
    with pytest.raises(ArgumentError, match="method must be one of 'default'"):
        score_estimate([3], [1.5], [1.0], method="hierarchical-bootstrap")


@pytest.mark.parametrize("scope", BOTH)
@pytest.mark.parametrize("method", SUITE_METHODS)
def test_every_method_for_passes_moves_scores_too_or_is_refused_in_words(method, scope):
    n, c = [6, 6, 6, 6, 5], [6, 5, 2, 0, 3]
    of_passes = suite_estimate(n, c, scope=scope, method=method, resamples=500)
    if method not in SCORE_METHODS:
        with pytest.raises(ArgumentError, match=f"method must be one of .*got '{method}'"):
            score_estimate(n, c, c, scope=scope, method=method)
        return
    of_scores = score_estimate(n, c, c, scope=scope, method=method, resamples=500)
    assert of_scores.method == of_passes.method
    assert of_scores.notes == of_passes.notes
    assert of_scores.seed == of_passes.seed
    assert of_scores.value == pytest.approx(of_passes.value)
    if method != "default":
        plain = score_estimate(n, c, c, scope=scope)
        assert of_scores.interval != plain.interval
        assert of_passes.interval != suite_estimate(n, c, scope=scope).interval


def test_passes_and_scores_take_the_same_options():
    ours, theirs = (inspect.signature(f).parameters for f in (score_estimate, suite_estimate))
    options = {name for name, given in ours.items() if given.kind is given.KEYWORD_ONLY}
    assert options == {name for name in theirs if name not in ("n", "c", "metric", "k")}


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"method": "t", "weight": [1.0, 2.0, 1.0]}, "method must be 'default' with families"),
        ({"method": "bca", "family": ["a", "a", "b"]}, "method must be 'default' with families"),
        ({"confidence": 1.0}, "confidence must"),
        ({"scope": "everything"}, "scope must be one of"),
        ({"resamples": 0}, "resamples must"),
    ],
)
def test_an_option_refused_for_passes_is_refused_for_scores_in_the_same_words(option, message):
    with pytest.raises(ArgumentError, match=message) as of_passes:
        suite_estimate([3, 3, 3], [1, 2, 3], **option)
    with pytest.raises(ArgumentError, match=message) as of_scores:
        score_estimate([3, 3, 3], [1, 2, 3], [1, 2, 3], **option)
    assert str(of_scores.value) == str(of_passes.value)
