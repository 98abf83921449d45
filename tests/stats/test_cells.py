import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.errors import ArgumentError
from passhat.stats.sufficient_statistics import count_cells

suites = st.lists(
    st.integers(0, 30).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))), min_size=1
)


@given(suites)
def test_cells_hold_every_task_once_and_give_it_back(pairs):
    n, c = map(np.array, zip(*pairs, strict=True))
    cells = count_cells(n, c)
    assert cells.task_count == len(pairs)
    assert cells.run_count == n.sum()
    place = cells.place(n, c)
    np.testing.assert_array_equal(cells.n[place], n)
    np.testing.assert_array_equal(cells.c[place], c)
    assert len({*zip(cells.n, cells.c, strict=True)}) == cells.n.size


def test_counting_and_sorting_find_the_same_cells():
    rng = np.random.default_rng(1)
    n = rng.integers(1, 9, 5000)
    c = rng.binomial(n, 0.6)
    counted = count_cells(n, c)
    for longest in (10**6, 10**10):
        few = count_cells(np.append(n, longest), np.append(c, 7))
        np.testing.assert_array_equal(counted.n, few.n[:-1])
        np.testing.assert_array_equal(counted.c, few.c[:-1])
        np.testing.assert_array_equal(counted.tasks, few.tasks[:-1])


def test_mirrored_cells_count_failures():
    cells = count_cells([5, 3], [4, 0]).mirrored()
    assert sorted(zip(cells.n, cells.c, strict=True)) == [(3, 3), (5, 1)]


def test_a_table_of_tasks_has_one_dimension():
    with pytest.raises(ArgumentError, match="n must have one entry per task"):
        count_cells([[1, 2], [3, 4]], 0)


@given(suites, st.integers(1, 5))
def test_sums_by_length_are_those_of_the_tasks_with_so_many_runs(pairs, size):
    cells = count_cells(*zip(*pairs, strict=True))
    expected = [sum(c for n, c in pairs if n == length) for length in cells.lengths]
    assert cells.by_length(cells.c).tolist() == expected
    summed = np.zeros(len(expected))
    for some, place in cells.blocks(size):
        summed[place : place + some.lengths.size] += some.by_length(some.c)
    assert summed.tolist() == expected


@given(suites)
def test_both_ways_are_the_suite_and_its_mirror_over_the_same_cells(pairs):
    cells = count_cells(*np.transpose(pairs))
    both = cells.both_ways()
    for row, one in zip(both.tasks, (cells, cells.mirrored()), strict=True):
        held = {(n, c): t for n, c, t in zip(both.n, both.c, row, strict=True) if t}
        assert held == {(n, c): t for n, c, t in zip(one.n, one.c, one.tasks, strict=True)}
    assert len({*zip(both.n, both.c, strict=True)}) == both.n.size
