"""TaskSums: three numbers a task, and the rules they obey."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.errors import ArgumentError
from passhat.stats.sufficient_statistics import TaskSums

scores = st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=6), min_size=1, max_size=6)


@given(rows=scores)
def test_means_and_variances_are_those_of_the_scores(rows):
    sums = TaskSums.of_scores(rows)
    np.testing.assert_allclose(sums.means, [np.mean(row) for row in rows], atol=1e-12)
    spreads = [np.var(row, ddof=1) if len(row) > 1 else 0.0 for row in rows]
    np.testing.assert_allclose(sums.variances, spreads, atol=1e-12)


def test_passes_are_scores_of_0_and_1():
    counted = TaskSums.of_passes([3, 2], [2, 0])
    scored = TaskSums.of_scores([[1, 1, 0], [0, 0]])
    assert counted.binary
    assert scored.binary
    for field in ("runs", "total", "squares"):
        np.testing.assert_array_equal(getattr(counted, field), getattr(scored, field))


def test_partial_credit_is_not_binary_even_when_it_adds_up_to_a_whole():
    assert not TaskSums.of_scores([[0.5, 0.5]]).binary


@pytest.mark.parametrize(
    ("runs", "total", "squares", "rule"),
    [
        ([2], [3.0], [3.0], "total must lie between 0 and runs"),
        ([2], [1.0], [1.5], r"squares must lie between total\^2 / runs and total"),
        ([2], [1.0], [0.1], r"squares must lie between total\^2 / runs and total"),
        ([2], [-1.0], [1.0], "total must lie between 0 and runs"),
    ],
)
def test_sums_that_no_scores_have_are_refused(runs, total, squares, rule):
    with pytest.raises(ArgumentError, match=rule + r" \(scores are in \[0, 1\]\)"):
        TaskSums(runs=np.array(runs), total=np.array(total), squares=np.array(squares))


def test_lists_are_taken_as_arrays():
    given = TaskSums(runs=[2, 0], total=[1.5, 0], squares=[1.25, 0])
    kept = given.taken(np.array([True, False]))
    assert kept.means.tolist() == [0.75]
    assert not kept.binary


def test_sums_of_different_lengths_are_refused():
    with pytest.raises(ArgumentError, match="total must have one number per task"):
        TaskSums(runs=np.array([1, 2]), total=np.array([1.0]), squares=np.array([1.0]))


def test_a_table_of_passes_is_refused():
    with pytest.raises(ArgumentError, match="one entry per task"):
        TaskSums.of_passes([[3, 3]], [[1, 2]])
