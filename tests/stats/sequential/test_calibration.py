from math import sqrt

import pytest
from bench.calibrate.gates import tables

pytestmark = pytest.mark.slow("simulates the error rates of gates")

REPETITIONS = 60


@pytest.fixture(scope="module")
def quick_tables():
    return {table.title.split(":")[0]: table for table in tables(quick=True)}


def most(rate, repetitions):
    """The largest share that a true rate explains, within four Monte Carlo errors."""
    return rate + 4 * sqrt(rate * (1 - rate) / repetitions)


def rows_of(table):
    return [dict(zip(table.header, row, strict=True)) for row in table.rows]


def test_the_exact_table_shows_the_promise_kept_and_peeking_breaking_it(quick_tables):
    for row in rows_of(quick_tables["A gate on one task"]):
        errors = float(row["wrong PASS at 0.8"]), float(row["wrong FAIL at 0.9"])
        if "invalid" in row["design"]:
            assert errors == (0.094, 0.212)
        else:
            assert max(errors) <= 0.05


def test_suite_gates_keep_their_errors_and_need_a_fraction_of_the_fixed_runs(quick_tables):
    table = quick_tables["A gate on a suite's mean"]
    assert table.repetitions == REPETITIONS
    gates = [row for row in rows_of(table) if row["design"].startswith("this gate")]
    assert gates
    for row in gates:
        assert float(row["wrong PASS at 0.80"]) <= most(0.05, REPETITIONS)
        assert float(row["wrong FAIL at 0.85"]) <= most(0.05, REPETITIONS)
        # 162 at ICC 0.7 in the full table; one repetition has a standard deviation near 100
        assert float(row["runs at 0.8"]) <= 162 + 4 * 100 / sqrt(REPETITIONS)
    peeking = next(row for row in rows_of(table) if "invalid" in row["design"])
    assert float(peeking["wrong PASS at 0.80"]) > 0.1


def test_block_and_score_gates_keep_their_errors(quick_tables):
    for title in (
        "A gate on reliability@3 by blocks",
        "A gate on scores and paired differences, 20 tasks, alpha = beta = 0.05",
    ):
        for row in rows_of(quick_tables[title]):
            assert float(row["wrong PASS"]) <= most(0.05, REPETITIONS)
            assert float(row["wrong FAIL"]) <= most(0.05, REPETITIONS)


def test_evidence_in_the_order_of_finishing_would_break_the_promise(quick_tables):
    rows = rows_of(quick_tables["The order of evidence"])
    for row in rows:
        assert float(row["in the order started (passhat)"]) <= most(0.05, 200)
    assert float(rows[-1]["in the order finished (invalid)"]) > 0.9
