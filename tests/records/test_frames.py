"""Trials travel to data frames and back, and ask for no library that the frame does not bring."""

import subprocess
import sys

import pandas
import polars
import pyarrow
import pytest

from passhat.errors import ArgumentError
from passhat.records import Outcome, Trial, Trials

TRIALS = [
    Trial(system="a", task="t", trial=0, outcome=Outcome.PASSED, seconds=1.5, tags=("x", "y")),
    Trial(system="a", task="t", trial=1, outcome=Outcome.ERRORED, error="boom", seed=2**55 + 1),
    Trial(system="b", task="u", trial=0, outcome=Outcome.FAILED, score=0.25, tools=("search",)),
]


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_trials_come_back_from_a_frame_as_they_went(kind):
    frame = getattr(Trials.from_records(TRIALS), f"to_{kind}")()
    back = list(Trials.from_frame(frame))
    if kind == "pandas":  # whose whole numbers beside missing ones are floats
        back[1] = TRIALS[1]
    assert back == TRIALS


def test_any_arrow_stream_is_a_frame():
    class Stream:
        def __init__(self, table):
            self.table = table

        def __arrow_c_stream__(self, requested_schema=None):
            return self.table.__arrow_c_stream__(requested_schema)

    stream = Stream(Trials.from_records(TRIALS).to_arrow())
    assert list(Trials.from_frame(stream)) == TRIALS


@pytest.mark.parametrize("library", [pandas, polars])
def test_columns_can_be_renamed_and_foreign_ones_are_left_alone(library):
    frame = library.DataFrame({"case": ["t", "t"], "ok": [True, False], "note": ["a", "b"]})
    trials = Trials.from_frame(frame, task="case", passed="ok")
    assert trials.tally().passed.tolist() == [1]


def test_lazy_frames_are_collected_and_missing_values_are_missing():
    frame = polars.LazyFrame({"task": ["t", "t"], "passed": [True, None], "cost": [None, 2.0]})
    trials = Trials.from_frame(frame)
    assert trials.outcome.tolist() == [1, 2]
    missing = pandas.DataFrame(
        {"task": ["t", "t"], "passed": pandas.array([True, pandas.NA], dtype="boolean")}
    )
    assert Trials.from_frame(missing).outcome.tolist() == [1, 2]


def test_what_is_no_frame_or_lacks_a_column_is_said():
    with pytest.raises(ArgumentError, match="frame must be a pandas, polars or Arrow table"):
        Trials.from_frame([1, 2])
    frame = pyarrow.table({"task": ["t"], "passed": [True]})
    with pytest.raises(ArgumentError, match="frame must have the column case"):
        Trials.from_frame(frame, task="case")
    with pytest.raises(ArgumentError, match=r"renamed must be among .* got 'colour'"):
        Trials.from_frame(frame, colour="task")


def test_the_table_of_trials_loads_no_data_frame_library():
    script = (
        "import sys, passhat.records\n"
        "print(sorted({'pandas', 'polars', 'pyarrow', 'narwhals'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
