"""A value in one short line: bounded, on one line, and true."""

from dataclasses import dataclass, field

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from passhat.messages import LONGEST, LONGEST_TEXT, quoted, repr_fields, rounded, short_repr
from passhat.records import Outcome, Trial
from passhat.stats.estimate import Interval


@dataclass(frozen=True)
class Held:
    """Something of everything."""

    name: str
    share: float
    rows: np.ndarray
    bounds: Interval
    pair: tuple[int, int] = (1, 2)
    notes: tuple[str, ...] = ()
    parts: dict[str, int] = field(default_factory=dict)

    __repr__ = repr_fields


@given(st.text(), st.lists(st.text(), max_size=20))
def test_a_brief_line_is_bounded_and_keeps_the_way_on(head, told):
    line = short_repr(quoted(head), *map(quoted, told), see=".tasks")
    assert len(line) <= LONGEST
    assert line.isprintable()
    assert line.endswith("; see .tasks>")


@given(st.text(min_size=1))
def test_a_quoted_name_is_bounded_printable_and_whole_where_it_fits(name):
    shown = quoted(name)
    assert len(shown) <= LONGEST_TEXT
    assert shown.isprintable()
    assert shown == repr(name) or "…" in shown


@given(st.text(), st.text())
def test_fields_are_told_on_one_bounded_line_however_long_they_are(name, note):
    line = repr(Held(name, 0.5, np.arange(9), Interval(0.1, 0.9), notes=(note,) * 9))
    assert len(line) <= LONGEST
    assert line.isprintable()


def test_fields_that_are_as_they_come_are_left_out_and_tables_are_counted():
    held = Held("a", 1 / 3, np.arange(1200), Interval(0.12345, 1.0))
    assert repr(held) == "Held(name='a', share=0.333, rows=<1,200>, bounds=[0.123, 1])"
    fuller = Held("a", 0.0, np.arange(2), Interval(0.0, 1.0), pair=(3, 4), parts={"x": 1})
    assert repr(fuller).endswith("pair=(3, 4), parts=<1>)")


def test_a_trial_tells_what_it_has():
    trial = Trial(system="o3", task="refund", trial=0, outcome=Outcome.PASSED, seconds=1.25)
    assert repr(trial) == (
        "Trial(system='o3', task='refund', trial=0, outcome=PASSED, score=1, seconds=1.25)"
    )


def test_a_number_that_cannot_be_known_is_called_so():
    class Nothing:
        reason = "too few runs"

    assert rounded(Nothing()) == "unavailable"
