from hypothesis import given
from hypothesis import strategies as st

from passhat.reporters.formatting import amount, percent, points

shares = st.floats(0, 1, allow_nan=False)


@given(shares, st.integers(0, 2))
def test_only_all_is_100_percent_and_only_none_is_0_percent(share, digits):
    text = percent(share, digits=digits)
    assert (text == "100%") == (share == 1)
    assert (text == "0%") == (share == 0)


@given(shares, st.integers(0, 2))
def test_a_shown_share_is_within_its_rounding(share, digits):
    text = points(share, digits=digits)
    number = float(text.lstrip("<>"))
    assert abs(number - 100 * share) <= 10.0**-digits


@given(st.floats(1e-9, 1e12))
def test_an_amount_has_three_figures(value):
    shown = amount(value)
    assert "e" not in shown
    assert abs(float(shown.replace(",", "")) - value) <= max(0.005 * value, 0.5 * (value >= 100))


def test_amounts_read_like_amounts():
    shown = [amount(x) for x in (0, 3, 0.5, 1234567, 0.000123, 99.96)]
    assert shown == ["0", "3", "0.5", "1,230,000", "0.000123", "100"]
