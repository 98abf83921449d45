"""What is written reads back as the same trials."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passhat.errors import ArgumentError
from passhat.ingest import read_trials, write_trials
from passhat.records import Outcome, Source, Trial, Trials

NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8).filter(
    lambda text: text.strip() == text
)
AMOUNTS = st.none() | st.floats(0, 1e12, allow_nan=False)


@st.composite
def trials_of_any_kind(draw):
    outcome = draw(st.sampled_from(Outcome))
    broke = outcome is Outcome.ERRORED
    words = st.lists(NAMES, max_size=2).map(tuple)
    at = draw(st.dictionaries(NAMES.filter(lambda name: "=" not in name), NAMES, max_size=2))
    return Trial(
        system=draw(NAMES),
        task=draw(NAMES),
        trial=draw(st.integers(0, 5)),
        outcome=outcome,
        score=None if broke else draw(st.floats(0, 1)),
        seed=draw(st.none() | st.integers(0, 2**53)),
        tokens_in=draw(AMOUNTS),
        cost=draw(AMOUNTS),
        seconds=draw(AMOUNTS),
        tools=draw(words),
        tags=draw(words),
        level=draw(st.none() | st.just("task")),
        base=draw(NAMES) if at else None,
        at=tuple(f"{factor}={level}" for factor, level in at.items()),
        stated_confidence=draw(st.none() | st.floats(0, 1)),
        error=draw(st.none() | st.just("boom, bang")) if broke else None,
        started=draw(st.none() | st.just("2026-01-01T00:00:00Z")),
    )


UNIQUE_TRIALS = st.lists(
    trials_of_any_kind(),
    min_size=1,
    max_size=6,
    unique_by=lambda trial: (trial.system, trial.task, trial.trial),
)


@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".tsv", ".parquet"])
@given(trials=UNIQUE_TRIALS)
@settings(max_examples=40)
def test_trials_come_back_as_they_were_written(ending, trials, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / f"trials{ending}"
    write_trials(Trials.from_records(trials), path)
    assert list(read_trials(path)) == trials


@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".tsv", ".parquet"])
@pytest.mark.parametrize("ended", [None, "by gates", "early"])
def test_every_format_says_that_gates_ended_the_trials(ending, ended, tmp_path):
    source = Source(name="run", format="passhat history", sha256="", ended=ended)
    trials = Trials.from_columns(task=["t"], passed=[True], sources=(source,))
    path = tmp_path / f"trials{ending}"
    write_trials(trials, path)
    back = read_trials(path)
    assert list(back) == list(trials)
    assert [(s.ended, "left out" in dict(s.read_as)) for s in back.sources] == [(ended, False)]


def test_a_column_called_ended_that_says_something_else_is_left_out():
    (source,) = read_trials(b"task,passed,ended\na,1,2026-01-01\na,0,early\n").sources
    assert (source.ended, dict(source.read_as)["left out"]) == (None, "column ended")


def test_a_json_lines_file_names_its_schema_first(tmp_path):
    path = tmp_path / "t.jsonl"
    write_trials(Trials.from_columns(task=["a"], passed=[True]), path)
    assert path.read_text().splitlines() == [
        '{"schema":"passhat.trials/1"}',
        '{"system":"system","task":"a","trial":0,"outcome":"passed","score":1.0}',
    ]


def test_an_ending_that_names_no_format_is_refused(tmp_path):
    trials = Trials.from_columns(task=["a"], passed=[True])
    with pytest.raises(ArgumentError, match=r"path must end in .jsonl, .csv, .tsv, .parquet"):
        write_trials(trials, tmp_path / "t.xlsx")
