import numpy as np
import pytest

from passhat.errors import ArgumentError
from passhat.stats.arguments import ascending, whole_number


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
