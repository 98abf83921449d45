"""Files of transcripts beside a dataset: what was written is read back, a few rows at a time."""

import pytest
from pyarrow import parquet

from passhat.errors import ReadError
from passhat.ingest import read_with_transcripts, write_trials
from passhat.ingest.remote import GROUP_ROWS, read_rows, scan_shard, write_shard
from passhat.records import Outcome, Trials
from passhat.records.transcript import KeptTranscript

ROWS = [
    KeptTranscript(
        key=(f"s{i % 2}", f"t{i // 900}", i), outcome=(None, *Outcome)[i % 4], text=f"said {i}"
    )
    for i in range(2 * GROUP_ROWS + 7)
]


@pytest.fixture
def shard(tmp_path):
    file = tmp_path / "part-00000.parquet"
    assert write_shard(ROWS, file) == len(ROWS)
    return file


def test_a_shard_gives_back_what_was_written(shard):
    assert list(scan_shard(shard, "shard", lambda _: True)) == ROWS


def test_only_wanted_trials_are_read(shard):
    wanted = [one for one in ROWS if one.key[1] == "t1" and one.outcome is Outcome.FAILED]
    assert list(scan_shard(shard, "shard", lambda one: one in [_bare(w) for w in wanted])) == wanted


def _bare(one):
    return KeptTranscript(key=one.key, outcome=one.outcome, text="")


def test_rows_are_found_by_their_number_in_any_order(shard):
    rows = [5, None, len(ROWS) - 1, GROUP_ROWS, 5]
    expected = [None if row is None else ROWS[row].text for row in rows]
    assert list(read_rows(shard, "shard", rows)) == expected


@pytest.mark.parametrize("row", [-1, len(ROWS)])
def test_a_row_that_is_not_there_is_refused(shard, row):
    with pytest.raises(ReadError, match="refers to row"):
        list(read_rows(shard, "shard", [row]))


def test_transcripts_are_compressed_together(tmp_path):
    text = "The same policy in every prompt. " * 30
    rows = [KeptTranscript(key=("s", "t", i), outcome=None, text=f"{text} {i}") for i in range(500)]
    write_shard(rows, tmp_path / "x.parquet")
    assert (tmp_path / "x.parquet").stat().st_size < sum(len(row.text) for row in rows) / 50


def test_nothing_said_makes_no_file(tmp_path):
    assert write_shard([], tmp_path / "x.parquet") == 0
    assert not (tmp_path / "x.parquet").exists()


def test_a_file_of_something_else_is_refused(tmp_path):
    write_trials(Trials.from_columns(task=["a"], passed=[True]), tmp_path / "x.parquet")
    with pytest.raises(ReadError, match="holds no transcripts"):
        list(read_rows(tmp_path / "x.parquet", "x.parquet", [0]))
    (tmp_path / "y.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(ReadError, match="not a valid Parquet file"):
        list(read_rows(tmp_path / "y.parquet", "y.parquet", [0]))


def test_trials_whose_transcripts_were_left_behind_are_read_without(tmp_path, shard):
    table = Trials.from_columns(task=["a", "b"], passed=[True, False]).to_arrow()
    table = table.append_column("transcript_row", [[0, 1]])
    (tmp_path / "alone").mkdir()
    parquet.write_table(table, tmp_path / "alone" / "part-00000.parquet")
    trials, said = read_with_transcripts(tmp_path / "alone")
    assert (len(trials), len(said)) == (2, 0)
