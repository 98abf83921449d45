"""Numbers in names count as numbers, whatever else stands in the name."""

import re
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from passhat.records.trial import families_by_prefix, natural_key


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


def test_the_start_of_a_name_is_what_stands_before_its_last_number_slash_or_colon():
    # as a pattern says it that reads names from the front, and so takes seconds for megabytes
    pattern = re.compile(r"^(.*?[^\d\s])[-_ #.]?\d+$|^(.+)[/:]")
    names = ["".join(letters) for many in range(6) for letters in product("a1-/ \n", repeat=many)]
    found = [pattern.match(name) for name in names]
    assert families_by_prefix(names) == [one and (one[1] or one[2]) for one in found]
