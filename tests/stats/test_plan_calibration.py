"""The runs that a plan promises in short: about as many as the width takes."""

from __future__ import annotations

from bench.calibrate.plans import HALF_WIDTH, tables


def test_promised_runs_come_to_the_width_that_they_were_promised_for():
    (table,) = tables(quick=True)
    for row in table.rows:
        told = dict(zip(table.header, row, strict=True))
        assert int(told["suites"]) > 10
        assert float(told["reached"]) > 0.3
        assert abs(float(told["median width"]) - HALF_WIDTH) < 0.01
        assert float(told["90 % below"]) < 1.5 * HALF_WIDTH
