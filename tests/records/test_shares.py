"""Shares of groups become weights: a weighted mean is the mean of groups by their shares."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import passhat
from passhat.errors import ArgumentError
from passhat.records import Trials
from passhat.records.trials import parse_shares, task_weights, weight_by_traffic

GROUPS = ("easy", "hard", "rare")


@st.composite
def grouped_trials(draw):
    groups = draw(st.lists(st.sampled_from(GROUPS), min_size=1, max_size=12))
    runs = draw(st.integers(1, 3))
    passed = draw(st.lists(st.booleans(), min_size=len(groups) * runs, max_size=len(groups) * runs))
    return Trials.from_columns(
        task=[f"t{i}" for i in range(len(groups)) for _ in range(runs)],
        passed=passed,
        tags=[["all", group] for group in groups for _ in range(runs)],
    )


@given(grouped_trials(), st.lists(st.floats(0.01, 100), min_size=3, max_size=3))
def test_the_weighted_mean_is_the_mean_of_the_groups_by_their_shares(trials, given_shares):
    there = [name for name in GROUPS if name in trials.words("tags")]
    shares = dict(zip(there, given_shares, strict=False))
    weighed = weight_by_traffic(trials, shares)
    means = [float(trials.where(tag=name).score.mean()) for name in there]
    expected = np.average(means, weights=list(shares.values()))
    assert passhat.report(weighed).system().pass_hat(1).value == pytest.approx(expected)


def test_tasks_of_a_group_divide_its_share_by_their_own_weights():
    groups = {"a": ["x"], "b": ["x"], "c": ["y"]}
    assert task_weights(groups, {"x": 0.9, "y": 0.1}, {"a": 2.0}) == pytest.approx(
        {"a": 0.6, "b": 0.3, "c": 0.1}
    )


@pytest.mark.parametrize(
    ("groups", "shares", "message"),
    [
        ({"a": ["x"], "b": []}, {"x": 1}, "b has no tag, level or family"),
        ({"a": ["x"], "b": ["y"]}, {"x": 1}, r"b is in none \(it has y\)"),
        ({"a": ["x", "y"]}, {"x": 1, "y": 1}, "a is in x and y"),
        ({"a": ["x"]}, {"x": 1, "z": 1}, "which are x"),
        ({"a": ["x"]}, {"x": 0}, "must be above 0 and finite for x"),
        ({"a": ["x"]}, {"x": float("nan")}, "must be above 0 and finite for x"),
    ],
)
def test_shares_that_do_not_fit_are_refused(groups, shares, message):
    with pytest.raises(ArgumentError, match=message):
        task_weights(groups, shares, {})


@pytest.mark.parametrize("text", ["easy", "=3", "easy=much"])
def test_shares_are_written_as_group_and_number(text):
    with pytest.raises(ArgumentError, match="GROUP=SHARE"):
        parse_shares([text])


def test_a_group_is_named_once():
    with pytest.raises(ArgumentError, match="must name each group only once"):
        parse_shares(["easy=1", "easy=2"])


def test_levels_and_families_are_groups_too():
    trials = Trials.from_columns(
        task=["a", "b"], passed=[1, 0], family=["django", None], level=[None, "system"]
    )
    weighed = weight_by_traffic(trials, {"django": 3, "system": 1})
    assert passhat.report(weighed).system().pass_hat(1).value == pytest.approx(0.75)
