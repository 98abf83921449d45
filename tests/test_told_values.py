"""What was handed in, as messages tell it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.errors import ArgumentError
from passhat.messages import LONGEST_VALUE, short_value

ANYTHING = st.one_of(st.text(), st.floats(), st.lists(st.integers()), st.lists(st.text()))


@given(ANYTHING)
def test_a_value_is_told_on_one_line_of_bounded_length(value):
    told = short_value(value)
    assert 0 < len(told) <= LONGEST_VALUE
    assert "\n" not in told


@pytest.mark.parametrize("value", [0, 0.5, True, None, "a", (3, 4), {"a": 1}])
def test_a_short_value_is_told_as_python_writes_it(value):
    assert short_value(value) == repr(value)


def test_names_are_told_as_names_and_many_of_them_are_counted():
    assert short_value(["a", "b"]) == short_value(("a", "b")) == "'a', 'b'"
    assert short_value([str(i) for i in range(40)]).endswith("'11' and 28 more")


@pytest.mark.parametrize(("value", "told"), [(np.eye(3), "a ndarray"), (object(), "an object")])
def test_what_has_no_short_form_is_told_by_its_type(value, told):
    with pytest.raises(ArgumentError, match=f"k must be whole, got {told}$"):
        raise ArgumentError("k", "must be whole", value)
