"""Parquet is read by whichever library is here, and all of them read the same."""

import sys
from decimal import Decimal

import pyarrow
import pytest
from pyarrow import parquet

from passhat.errors import MissingExtra, ReadError
from passhat.ingest import ColumnMap, Limits, read_trials, write_trials
from passhat.records import Outcome, Trial, Trials

LIBRARIES = ("pyarrow", "polars", "duckdb")
TRIALS = [
    Trial(system="a", task="t", trial=0, outcome=Outcome.PASSED, seconds=1.5, tags=("x", "y")),
    Trial(system="a", task="t", trial=1, outcome=Outcome.ERRORED, error="boom", seed=2**53 + 1),
    Trial(system="ß", task="ü/2", trial=0, outcome=Outcome.FAILED, score=0.25),
]


@pytest.fixture(params=LIBRARIES)
def only(request, monkeypatch):
    """One library is here, the others are not."""
    for name in LIBRARIES:
        if name != request.param:
            monkeypatch.setitem(sys.modules, name, None)
    return request.param


@pytest.fixture
def written(tmp_path):
    path = tmp_path / "results[1].parquet"
    write_trials(Trials.from_records(TRIALS), path)
    return path


def parquet_of(columns, path, **options):
    parquet.write_table(pyarrow.table(columns), path, **options)


def test_every_library_reads_the_same_trials(written, only):
    assert list(read_trials(written)) == TRIALS


def test_text_that_is_not_utf8_is_refused_by_every_library(only, tmp_path):
    path = tmp_path / "t.parquet"
    parquet_of({"task": ["refund"], "passed": [True]}, path, compression=None, use_dictionary=False)
    path.write_bytes(path.read_bytes().replace(b"refund", b"ref\xffnd"))
    with pytest.raises(ReadError, match=r"t\.parquet: not a valid Parquet file \(.*(utf|UTF)"):
        read_trials(path)


def test_decimal_numbers_are_numbers(only, tmp_path):
    path = tmp_path / "t.parquet"
    half = Decimal("0.5")
    parquet_of({"task": ["a", "b"], "score": [half, half * 2], "cost": [half, None]}, path)
    trials = read_trials(path)
    assert (trials.score.tolist(), trials.outcome.tolist()) == ([0.5, 1.0], [0, 1])
    judged = read_trials(path, mapping=ColumnMap(pass_if="score>=0.5"))
    assert judged.outcome.tolist() == [1, 1]
    assert trials.features["cost"].tolist()[0] == 0.5


def test_bytes_are_read_too_but_by_duckdb(written, only):
    content = written.read_bytes()
    if only == "duckdb":
        with pytest.raises(MissingExtra, match=r"reading Parquet that is no file needs an extra"):
            read_trials(content)
    else:
        assert list(read_trials(content)) == TRIALS


def test_what_can_be_written_can_be_read_back_with_the_same_libraries(only, tmp_path):
    path = tmp_path / "t.parquet"
    if only == "duckdb":
        with pytest.raises(MissingExtra, match=r"writing Parquet .*'passhat\[frames\]'"):
            write_trials(Trials.from_records(TRIALS), path)
        assert not path.exists()
        return
    write_trials(Trials.from_records(TRIALS), path)
    assert list(read_trials(path)) == TRIALS


def test_the_schema_is_in_the_file_whoever_writes_it(tmp_path, monkeypatch):
    for hidden in ("", "polars"):
        if hidden:
            monkeypatch.setitem(sys.modules, hidden, None)
        path = tmp_path / f"without-{hidden}.parquet"
        write_trials(Trials.from_records(TRIALS), path)
        assert parquet.read_metadata(path).metadata[b"schema"] == b"passhat.trials/1"


def test_a_torn_file_is_told_as_such_by_every_library(written, only):
    torn = written.with_name("torn.parquet")
    torn.write_bytes(written.read_bytes()[:-40] + b"PAR1")
    with pytest.raises(ReadError, match=r"torn\.parquet: not a valid Parquet file \([^\n]+\)$"):
        read_trials(torn)


def test_rows_beyond_the_limit_are_refused_by_every_library(only, tmp_path):
    path = tmp_path / "long.parquet"
    parquet_of({"task": ["t"] * 10_000, "passed": [True] * 10_000}, path)
    with pytest.raises(ReadError, match=r"holds 640,000 bytes or more, above max_bytes"):
        read_trials(path, limits=Limits(max_bytes=639_999))
    assert len(read_trials(path, limits=Limits(max_bytes=640_000))) == 10_000


@pytest.mark.parametrize(
    ("once", "kind"),
    [(True, pyarrow.string), (False, pyarrow.large_string)],
    ids=["written once", "well compressed"],
)
def test_text_that_expands_beyond_the_limit_is_refused_by_all(once, kind, only, tmp_path):
    path = tmp_path / "bomb.parquet"
    columns = {"task": ["t" * 10**6] * 100, "passed": [True] * 100, "note": [None] * 100}
    columns["task"] = pyarrow.array(columns["task"], type=kind())
    parquet_of(columns, path, use_dictionary=once, compression="zstd")
    assert path.stat().st_size < 10**5
    with pytest.raises(ReadError, match=r"expand to 100,\d+,\d+ or more, above max_ratio = 150"):
        read_trials(path)


def test_without_any_library_the_extra_is_named(written, monkeypatch):
    for name in LIBRARIES:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=r"reading Parquet .* pip install 'passhat\[frames\]'"):
        read_trials(written)
