"""The widths and the power that a plan promises, in short."""

from __future__ import annotations

import pytest
from bench.calibrate.plans import tables

pytestmark = pytest.mark.slow("simulates how often the promises of plans are kept")


@pytest.fixture(scope="module")
def found():
    return tables(quick=True)


def test_promised_runs_come_to_the_width_that_they_were_promised_for(found):
    for row in found[0].rows:
        told = dict(zip(found[0].header, row, strict=True))
        assert int(told["suites"]) >= 4
        assert float(told["reached"]) >= 0.5
        assert float(told["within 1.25"]) >= 0.75  # of a few suites; 0.95 of many
        assert float(told["like these, within 1.25"]) >= 0.75


def test_a_difference_is_seen_with_about_the_power_that_was_planned(found):
    for row in found[1].rows:
        assert abs(float(row[2]) - 0.8) <= 0.16, row  # three standard errors of 60 comparisons
