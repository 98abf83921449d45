"""The law of failing runs with a property, summed over tasks, against counting every division."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.stats.stratified_exact import stratified_law

strata = st.lists(
    st.integers(1, 6).flatmap(
        lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(0, n))
    ),
    min_size=1,
    max_size=3,
)


def every_count(runs, having, failing):
    """The failing runs among the first `having`, for every choice of the failing ones."""
    return [sum(i < having for i in chosen) for chosen in combinations(range(runs), failing)]


@given(strata)
def test_the_law_is_what_counting_every_division_of_the_runs_gives(kinds):
    law = stratified_law(kinds)
    sums = [sum(counts) for counts in product(*(every_count(*kind) for kind in kinds))]
    assert min(sums) == law.fewest
    expected = np.bincount(np.array(sums) - law.fewest) / len(sums)
    assert law.chance == pytest.approx(expected)
    assert len(law.chance) == max(sums) - min(sums) + 1


@given(strata)
def test_p_is_the_smaller_tail_doubled_and_at_most_one(kinds):
    law = stratified_law(kinds)
    sums = np.array([sum(c) for c in product(*(every_count(*kind) for kind in kinds))])
    for seen in range(law.fewest, law.fewest + len(law.chance)):
        tails = np.mean(sums <= seen), np.mean(sums >= seen)
        assert law.p_of(seen) == pytest.approx(min(1.0, 2 * min(tails)))


@given(strata)
def test_p_keeps_its_level(kinds):
    law = stratified_law(kinds)
    for level in (0.01, 0.05, 0.2):
        assert law.chance[law.p <= level].sum() <= level + 1e-12


def test_fishers_tea_tasting():
    # Fisher (1935): 3 of 4 right with 8 cups has a one-sided p of 17 / 70.
    assert stratified_law([(8, 4, 4)]).p_of(3) == pytest.approx(2 * 17 / 70)


def test_a_task_in_which_all_runs_have_the_property_changes_nothing():
    alone, beside = stratified_law([(6, 3, 2)]), stratified_law([(6, 3, 2), (5, 5, 2)])
    assert beside.fewest == alone.fewest + 2
    assert beside.p == pytest.approx(alone.p)
