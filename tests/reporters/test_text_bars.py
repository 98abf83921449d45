from hypothesis import given
from hypothesis import strategies as st

from passhat.reporters.formatting import ASCII, UNICODE, interval_bar, run_marks, stacked_bar
from passhat.stats.estimate import Interval

shares = st.floats(0, 1)


@given(shares, shares, shares, st.integers(2, 80))
def test_a_bar_is_as_wide_as_asked_and_shows_its_point_inside_its_interval(a, b, c, width):
    low, value, high = sorted((a, b, c))
    bar = interval_bar(value, Interval(low, high), None, width=width)
    assert len(bar) == width
    place = bar.index("●")
    lit = [i for i, mark in enumerate(bar) if mark in "●━"]
    assert lit == list(range(lit[0], lit[-1] + 1))
    assert lit[0] <= place <= lit[-1]


def test_the_ends_of_the_scale_are_the_ends_of_the_bar():
    assert interval_bar(0.0, None, None, width=5) == "●····"
    assert interval_bar(1.0, None, None, width=5) == "····●"
    assert interval_bar(0.0, None, None, width=5, low=-1, high=1) == "··●··"


@given(st.lists(st.integers(0, 50), min_size=1, max_size=4), st.integers(4, 60))
def test_stacked_pieces_fill_the_bar_and_show_whatever_is_there(counts, width):
    pieces = stacked_bar(counts, width=width)
    if sum(counts) == 0:
        assert pieces == [""] * len(counts)
        return
    assert sum(map(len, pieces)) == width
    for count, piece in zip(counts, pieces, strict=True):
        assert bool(piece) == bool(count)


def test_runs_are_marked_in_order_in_unicode_and_ascii():
    assert run_marks("PFE", pen=UNICODE) == "●○×"
    assert run_marks("PFE", pen=ASCII) == "+-!"
