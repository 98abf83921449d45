"""Numbers in names count as numbers, whatever else stands in the name."""

from hypothesis import given
from hypothesis import strategies as st

from passhat.records.trial import natural_key


@given(st.lists(st.integers(0, 10**6)), st.text(max_size=4), st.text(max_size=4))
def test_names_that_differ_in_a_number_are_sorted_by_it(numbers, before, after):
    before, after = (part.strip("0123456789") for part in (before, after))
    names = [f"{before}{n}{after}" for n in numbers]
    expected = [f"{before}{n}{after}" for n in sorted(numbers)]
    assert sorted(names, key=natural_key) == expected


@given(st.lists(st.text(st.sampled_from("a0-19_"), max_size=6), unique=True))
def test_any_names_have_one_order(names):
    found = sorted(names, key=natural_key)
    backwards = names[::-1]
    assert sorted(backwards, key=natural_key) == found
    assert sorted(found) == sorted(names)


def test_a_name_may_have_more_digits_than_a_number_can():
    long, longer = "9" * 5_000, "1" + "0" * 5_000
    assert sorted([longer, long, "8"], key=natural_key) == ["8", long, longer]
