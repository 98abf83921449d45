"""The promised runs to a label in short: kept where the pass rates stay as they are."""

from __future__ import annotations

import pytest
from bench.calibrate.labels import tables


@pytest.fixture(scope="module")
def everything():
    """The last row of the table, over all sizes, by column."""
    (table,) = tables(quick=True)
    assert table.rows[-1][0] == "all"
    return dict(zip(table.header[1:], map(float, table.rows[-1][1:]), strict=True))


def test_a_task_that_goes_on_as_it_did_has_its_label_when_that_was_promised(everything):
    assert everything["open tasks"] > 1_000
    assert everything["with a promise"] > 0.9
    assert everything["as evenly as assumed"] >= 0.93


def test_luck_and_a_rate_that_only_looked_clean_break_some_promises(everything):
    evenly, chance = (
        everything["as evenly as assumed"],
        everything["by chance at the observed rate"],
    )
    assert evenly > chance > 0.85
    assert chance > everything["at the true rate"] > 0.2
