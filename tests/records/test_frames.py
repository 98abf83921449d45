"""Trials travel to data frames and back, and ask for no library that the frame does not bring."""

import subprocess
import sys

import pandas
import polars
import pyarrow
import pytest

import passhat
from passhat.analysis.gates.judge import judge
from passhat.errors import ArgumentError, ReadError
from passhat.ingest import read_trials
from passhat.records import Outcome, Trial, Trials
from passhat.records.trial import how_read

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


@pytest.mark.parametrize("library", [pandas.DataFrame, polars.DataFrame, pyarrow.table])
def test_trial_numbers_of_sixty_bits_stay_apart_in_every_frame(library):
    numbers = [2**60 + i for i in range(4)]
    frame = library({"task": ["t"] * 4, "passed": [True] * 4, "trial": numbers, "seed": numbers})
    trials = Trials.from_frame(frame)
    assert trials.trial.tolist() == trials.seed.tolist() == numbers
    assert trials.duplicates() == []


def test_any_arrow_stream_is_a_frame():
    class SharedDraws:
        def __init__(self, table):
            self.table = table

        def __arrow_c_stream__(self, requested_schema=None):
            return self.table.__arrow_c_stream__(requested_schema)

    stream = SharedDraws(Trials.from_records(TRIALS).to_arrow())
    assert list(Trials.from_frame(stream)) == TRIALS


@pytest.mark.parametrize("library", [pandas, polars])
def test_columns_can_be_renamed_and_foreign_ones_are_left_alone(library):
    frame = library.DataFrame({"case": ["t", "t"], "ok": [True, False], "note": ["a", "b"]})
    trials = Trials.from_frame(frame, task="case", passed="ok")
    assert trials.tally().passed.tolist() == [1]


def test_lazy_frames_are_collected_and_missing_values_are_missing():
    rows = {"task": ["t", "t"], "passed": [True, None], "error": [None, "late"]}
    frame = polars.LazyFrame({**rows, "cost": [None, 2.0]})
    assert Trials.from_frame(frame).outcome.tolist() == [1, 2]
    missing = pandas.DataFrame(rows | {"passed": pandas.array([True, pandas.NA], dtype="boolean")})
    assert Trials.from_frame(missing).outcome.tolist() == [1, 2]
    with pytest.raises(ArgumentError, match="or error what broke it, and row 1 does not, got None"):
        Trials.from_frame(missing.drop(columns="error"))


def test_rows_of_a_frame_that_occur_again_are_refused_as_those_of_a_file_are(tmp_path):
    frame = pandas.DataFrame({"task": ["t", "t"], "trial": [1, 2], "passed": [True, False]})
    twice = pandas.concat([frame, frame])
    twice.to_csv(tmp_path / "twice.csv", index=False)
    with pytest.raises(
        ReadError, match="trials occur more than once: twice / t / line 2, line 4, "
    ):
        read_trials(tmp_path / "twice.csv")
    with pytest.raises(ArgumentError, match="2 occur more often, got 'system / t / trial 1', "):
        Trials.from_frame(twice)
    for duplicates in ("keep", "last"):
        ours = Trials.from_frame(twice, duplicates=duplicates)
        theirs = read_trials(tmp_path / "twice.csv", duplicates=duplicates)
        assert ours.outcome.tolist() == theirs.outcome.tolist()
        assert ours.trial.tolist() == theirs.trial.tolist()


def test_what_is_no_frame_or_lacks_a_column_is_said():
    with pytest.raises(ArgumentError, match="frame must be a pandas, polars or Arrow table"):
        Trials.from_frame([1, 2])
    frame = pyarrow.table({"task": ["t"], "passed": [True]})
    with pytest.raises(ArgumentError, match="frame must have the column case"):
        Trials.from_frame(frame, task="case")
    with pytest.raises(ArgumentError, match=r"renamed must be among .* got 'colour'"):
        Trials.from_frame(frame, colour="task")


COLUMNS = {"task": ["t", "t"], "passed": [True, False]}
FRAMES = [pandas.DataFrame(COLUMNS), polars.DataFrame(COLUMNS), polars.LazyFrame(COLUMNS)]
FRAMES.append(pyarrow.table(COLUMNS))
TAKES_NO_FRAME = {
    "from_columns": Trials.from_columns,
    "from_records": Trials.from_records,
    "concat": lambda frame: Trials.concat([frame]),
    "read_trials": passhat.read_trials,
    "read_trials of several": lambda frame: passhat.read_trials([frame, frame]),
    "read_tallies": passhat.read_tallies,
    "write_trials": lambda frame: passhat.write_trials(frame, "never-written.csv"),
    "rank": passhat.rank,
    "profile": lambda frame: passhat.profile(frame, frame),
    "judge": lambda frame: judge(frame, ["pass^1 >= 0.5"]),
}


@pytest.mark.parametrize("frame", FRAMES, ids=["pandas", "polars", "lazy polars", "arrow"])
@pytest.mark.parametrize("take", TAKES_NO_FRAME.values(), ids=TAKES_NO_FRAME)
def test_whatever_takes_no_frame_says_on_one_line_how_one_gets_in(take, frame):
    with pytest.raises(ArgumentError, match=r"Trials\.from_frame\(frame, task='case'") as caught:
        take(frame)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(f"got a {type(frame).__name__}")


@pytest.mark.parametrize("frame", FRAMES, ids=["pandas", "polars", "lazy polars", "arrow"])
def test_each_question_takes_a_frame_as_it_takes_trials(frame):
    trials = Trials.from_frame(frame)
    assert str(passhat.report(frame)) == str(passhat.report(trials))
    assert str(passhat.gate(frame, "pass@1 >= 0.1")) == str(passhat.gate(trials, "pass@1 >= 0.1"))
    assert str(passhat.compare(frame, frame)) == str(passhat.compare(trials, trials))
    assert str(passhat.plan(frame)) == str(passhat.plan(trials))
    assert str(passhat.why(frame)) == str(passhat.why(trials))
    assert str(passhat.why(frame)).startswith("Cannot say why: these results hold no transcripts.")
    with pytest.raises(ArgumentError, match="suite must be the name of a suite whose runs are sto"):
        passhat.trend(frame)


def test_a_frame_without_task_or_outcome_is_told_which_columns_it_lacks_and_has():
    frame = pandas.DataFrame({"case": ["t"], "ok": [True]})
    with pytest.raises(ArgumentError, match=r"must have columns for task .* got 'case', 'ok'"):
        Trials.from_frame(frame)


def test_what_another_way_in_takes_is_sent_there():
    with pytest.raises(ArgumentError, match=r"\(Trials.from_columns takes this\)"):
        Trials.from_frame(COLUMNS)
    with pytest.raises(ArgumentError, match=r"\(Trials.from_records takes this\)"):
        Trials.from_frame([{"task": "t", "passed": True}])
    with pytest.raises(ArgumentError, match="records must be Trial objects or dicts, got 't'"):
        Trials.from_records(["t"])
    with pytest.raises(ArgumentError, match="tables must be a list of Trials, got Trial"):
        Trials.concat(Trials.from_records(TRIALS))
    with pytest.raises(ArgumentError, match="columns must be lists by name"):
        Trials.from_columns([("task", "t")])
    with pytest.raises(ArgumentError, match="source must be paths, patterns or bytes, got None"):
        passhat.read_trials(None)


def test_the_table_of_trials_loads_no_data_frame_library():
    script = (
        "import sys, passhat.records\n"
        "print(sorted({'pandas', 'polars', 'pyarrow', 'narwhals'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


FRAME = {
    "agent": ["x", "x", "x"],
    "sample_id": ["a", "a", "b"],
    "epoch": [1, 2, 1],
    "status": ["pass", "fail", "PASS"],
    "duration_ms": [1500, 2500, 500],
    "notes": ["", "", ""],
}


@pytest.mark.parametrize("make", [pandas.DataFrame, polars.DataFrame, pyarrow.table])
def test_frames_records_and_files_know_the_same_names_and_words(make, tmp_path):
    path = tmp_path / "x.csv"
    pandas.DataFrame(FRAME).to_csv(path, index=False)
    keys = [name for name in FRAME if name != "notes"]
    rows = [{key: FRAME[key][row] for key in keys} for row in range(3)]
    tables = (Trials.from_frame(make(FRAME)), Trials.from_records(rows), read_trials(path))
    first, *others = (table.to_columns() for table in tables)
    assert all(other == first for other in others)
    assert first["seconds"] == [1.5, 2.5, 0.5]


def test_a_frame_says_which_column_it_was_read_by():
    told = how_read(Trials.from_frame(pandas.DataFrame(FRAME)).sources[0])
    assert told.startswith('read as: data frame, agent = column "agent", task = column "sample_id"')


def test_the_id_of_a_record_is_its_task_where_nothing_better_is():
    rows = [{"id": "a", "run_id": n, "passed": n > 0} for n in range(3)]
    trials = Trials.from_records(rows)
    assert (trials.tasks, trials.tally().passed.tolist()) == (("a",), [2])
    with pytest.raises(ArgumentError, match="got 'id'"):  # an id beside a task says something else
        Trials.from_records([{**row, "task": "b"} for row in rows])


def test_what_passes_can_be_said_of_frames_and_records():
    rows = [{"task": "a", "value": value} for value in (0.2, 0.9)]
    for table in (
        Trials.from_frame(pandas.DataFrame(rows), pass_if="value>=0.5"),
        Trials.from_records(rows, pass_if="value>=0.5"),
    ):
        assert table.outcome.tolist() == [0, 1]


def test_letters_are_grades_everywhere(tmp_path):
    letters = {"task": ["a", "b", "c", "d"], "score": ["C", "I", "P", "N"]}
    path = tmp_path / "x.csv"
    pandas.DataFrame(letters).to_csv(path, index=False)
    for table in (Trials.from_frame(pandas.DataFrame(letters)), read_trials(path)):
        assert table.score.tolist() == [1, 0, 0.5, 0]
        assert table.outcome.tolist() == [1, 0, 0, 0]


def test_a_frame_whose_columns_disagree_is_refused():
    frame = pandas.DataFrame({"task": ["a"], "passed": [True], "outcome": ["fail"]})
    with pytest.raises(ArgumentError, match=r"outcome and passed disagree in row 0"):
        Trials.from_frame(frame)
    assert Trials.from_frame(frame, passed="passed").outcome.tolist() == [1]


def test_a_frame_can_be_measured_as_it_is():
    report = passhat.report(pandas.DataFrame(FRAME))
    assert [system.name for system in report.systems] == ["x"]


def test_families_and_weights_are_kept_and_joined():
    one = Trials.from_columns(task=["a"], passed=[True], family=["f"], weight=[0.5])
    two = Trials.from_columns(task=["b"], passed=[True])
    joined = Trials.concat([one, two]).to_columns()
    assert (joined["family"], joined["weight"]) == (["f", None], [0.5, None])
    with pytest.raises(ArgumentError, match=r"weight must be above 0"):
        Trials.from_columns(task=["a"], passed=[True], weight=[0])


def test_a_frame_of_scores_alone_says_that_only_1_passes():
    frame = pandas.DataFrame({"task": ["a", "a"], "judge": [0.9, 0.8]})
    (source,) = Trials.from_frame(frame, score="judge").sources
    assert 'only a "judge" of 1 passes. Say what passes with `pass_if`' in source.notes[0]
    (source,) = Trials.from_frame(frame, score="judge", pass_if="judge>=0.85").sources
    assert source.notes == ()
