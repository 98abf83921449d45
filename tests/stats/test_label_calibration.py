"""Labels in short: nine in ten are right, and the runs promised to give one do so."""

from __future__ import annotations

import pytest
from bench.calibrate.labels import tables

pytestmark = pytest.mark.slow("simulates how often labels are right and promises kept")


@pytest.fixture(scope="module")
def found():
    return tables(quick=True)


@pytest.fixture(scope="module")
def everything(found):
    """The last row of the table, over all sizes, by column."""
    (table,) = (table for table in found if table.header[0] == "tasks")
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
    assert evenly > chance > 0.8  # 0.83 on record; the standard error of so few is 0.01
    assert chance > everything["at the true rate"] > 0.2


def test_nine_in_ten_of_the_labels_of_each_kind_are_right_over_all_worlds(found):
    """One table in short: single worlds are too few labels to tell."""
    (table,) = (table for table in found if table.title == "Labels that are right")
    for column in (1, 2, 3):
        cells = [row[column].rstrip(")").split(" (") for row in table.rows[:-1]]
        given = [(float(cell[0]), float(cell[1])) for cell in cells if len(cell) == 2]
        right = sum(count * share for count, share in given) / sum(count for count, _ in given)
        assert right >= 0.9, table.header[column]
