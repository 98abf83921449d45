from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from passhat.stats.estimate import Estimate, Interval, Unavailable
from passhat.stats.nesting import no_narrower

intervals = st.tuples(st.floats(0, 1), st.floats(0, 1)).map(lambda ends: Interval(*sorted(ends)))
numbers = st.builds(
    Estimate,
    value=st.floats(0, 1),
    interval=intervals,
    method=st.just("m"),
    confidence=st.just(0.95),
)


@given(numbers, numbers)
def test_the_wider_question_holds_its_own_interval_and_that_of_the_narrower_and_no_more(a, b):
    found = no_narrower(a, b)
    ends = {a.interval.low, a.interval.high, b.interval.low, b.interval.high}
    assert (found.interval.low, found.interval.high) == (min(ends), max(ends))
    assert replace(found, interval=a.interval) == a
    assert no_narrower(found, b) == found


@given(numbers)
def test_without_an_interval_to_hold_nothing_changes(number):
    none = Unavailable("no run")
    bare = replace(number, interval=None)
    assert no_narrower(number, none) is number
    assert no_narrower(number, bare) is number
    assert no_narrower(bare, number) is bare
    assert no_narrower(none, number) is none
