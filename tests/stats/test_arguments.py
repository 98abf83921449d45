import numpy as np
import pytest

from passhat.arguments import ascending, whole_number
from passhat.errors import ArgumentError
from passhat.stats import (
    MeanSeries,
    confidence_sequence,
    paired_difference,
    rank_systems,
    round_tests,
    suite_estimate,
)
from passhat.stats.usage import quantile_estimate, ratio_of_totals


def test_whole_numbers_keep_all_their_digits_and_end_where_a_count_does():
    assert whole_number("seed", 2**53 + 1) == 2**53 + 1
    assert whole_number("seed", np.int64(2**62 + 1)) == 2**62 + 1
    assert whole_number("k", 3.0) == 3
    for value, told in (
        (10**400, r">= 1 and < 2\*\*63"),
        (2**63, r">= 1 and < 2\*\*63"),
        (2.5, ">= 1, got 2.5"),
    ):
        with pytest.raises(ArgumentError, match=f"k must be a whole number {told}"):
            whole_number("k", value)
    with pytest.raises(ArgumentError, match="too many digits"):
        whole_number("k", 10**5000)


@pytest.mark.parametrize("ks", ["1,2", 2.5, None, [0], ["1"]])
def test_what_is_no_list_of_k_is_refused(ks):
    with pytest.raises(ArgumentError, match="ks must be"):
        ascending("ks", ks)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda words: rank_systems(words), "values"),
        (lambda words: round_tests(words), "scores"),
        (lambda words: MeanSeries(words, [0.1]), "value"),
        (lambda words: paired_difference(words, words, scope="tasks like these"), "a"),
        (lambda words: ratio_of_totals(words, [1.0]), "numerator"),
        (lambda words: quantile_estimate(words, 0.5), "values"),
    ],
)
def test_words_in_the_place_of_numbers_are_refused_by_name(call, argument):
    with pytest.raises(ArgumentError, match=f"^{argument} must be numbers, got .*high"):
        call(["high"])


@pytest.mark.parametrize(
    ("runs", "total", "rule"),
    [("x", 1, "runs must be a whole number"), (3, None, "total must be a finite number")],
)
def test_a_confidence_sequence_names_what_is_no_number(runs, total, rule):
    with pytest.raises(ArgumentError, match=rule):
        confidence_sequence(runs, total)


def test_no_task_with_no_family_is_no_task():
    found = suite_estimate([], [], family=[], weight=[])
    assert found.reason == "pass^1 needs at least one task; there is none"


def test_numbers_that_cannot_be_divided_are_shown():
    with pytest.raises(ArgumentError, match=r"denominator must be finite.*got \(2.0, -1.0\)"):
        ratio_of_totals([1.0, 2.0], [1, -1])
