"""Decimal commas are read where nothing else can be meant, and never without a word."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.errors import ArgumentError, ReadError
from passhat.ingest import ColumnMap, read_trials
from passhat.ingest.rows import with_points

COLUMNS = ColumnMap(task="Frage", score="Bewertung", cost="Kosten")
HEADER = "Frage{0}Bewertung{0}Kosten"


def table(separator, *rows):
    lines = [HEADER.format(separator), *(separator.join(row) for row in rows)]
    return "\n".join(lines).encode()


@pytest.mark.parametrize("separator", [";", "\t"])
def test_commas_are_read_as_points_where_the_separator_leaves_them_free(separator):
    rows = ("a", "0,9", "12,5"), ("a", "1", ""), ("b", ",25", "3")
    trials = read_trials(table(separator, *rows), mapping=COLUMNS)
    assert trials.score.tolist() == [0.9, 1.0, 0.25]
    assert trials.to_columns()["cost"] == [12.5, None, 3.0]
    told = "decimal commas were read as points in Bewertung, Kosten (0,9 is 0.9)"
    assert told in trials.sources[0].notes


@pytest.mark.parametrize("separator", [";", "\t"])
def test_a_comparison_reads_them_too(separator):
    rows = ("a", "0,9", "1"), ("a", "0,75", "1")
    mapping = ColumnMap(task="Frage", pass_if="Bewertung>=0.8")
    trials = read_trials(table(separator, *rows), mapping=mapping)
    assert trials.outcome.tolist() == [1, 0]
    assert trials.sources[0].notes[-1].endswith("in Bewertung (0,9 is 0.9)")


@given(st.lists(st.decimals(0, 1, places=2), min_size=1, max_size=8))
def test_a_table_with_commas_reads_as_the_same_table_with_points(scores):
    rows = [("a", str(score), "1") for score in scores]
    points = read_trials(table(";", *rows), mapping=COLUMNS)
    written = [(task, score.replace(".", ","), cost) for task, score, cost in rows]
    commas = read_trials(table(";", *written), mapping=COLUMNS)
    assert list(commas) == list(points)


def test_names_keep_their_commas():
    rows = ("1,5", "0,9", "1"), ("2,5", "0,1", "1")
    assert read_trials(table(";", *rows), mapping=COLUMNS).tasks == ("1,5", "2,5")


@pytest.mark.parametrize("cells", [["0,9", "0.8"], ["0,9", "high"], ["0.9", "1"], ["", "7"], []])
def test_only_a_column_written_so_throughout_is_read_so(cells):
    assert with_points(cells) is None


@given(st.lists(st.integers(1000, 999_999), min_size=1))
def test_thousands_are_never_taken_for_decimals(numbers):
    assert with_points([f"{number:,}" for number in numbers]) is None


@pytest.mark.parametrize("mapping", [COLUMNS, ColumnMap(task="Frage", pass_if="Bewertung>=0.8")])
@pytest.mark.parametrize(("separator", "first"), [(",", '"0,9"'), (";", "0,9")])
def test_a_comma_that_cannot_be_read_is_named_with_the_way_out(separator, first, mapping):
    rows = ("a", first, "1"), ("a", "0.5", "1")
    told = r"line 2, column \"Bewertung\": '0,9' has a decimal comma; write 0\.9 with a point"
    with pytest.raises(ReadError, match=told):
        read_trials(table(separator, *rows), mapping=mapping)


def test_what_may_be_thousands_is_not_guessed():
    rows = ("a", "1", "1,234"), ("a", "0", "2")
    with pytest.raises(ReadError, match=r"field cost: '1,234' may be 1\.234 or 1234; write"):
        read_trials(table(";", *rows), mapping=COLUMNS)


@pytest.mark.parametrize("mapping", [COLUMNS, ColumnMap(task="Frage", pass_if="Bewertung>=0.8")])
def test_an_empty_cell_gets_the_same_advice_from_a_score_and_a_comparison(mapping):
    rows = ("a", "0.9", "1"), ("a", "", "1")
    told = r'line 3, column "Bewertung": no outcome; `missing=.error.` counts such rows as errors'
    with pytest.raises(ReadError, match=told):
        read_trials(table(";", *rows), mapping=mapping)


@pytest.mark.parametrize("mapping", [ColumnMap(), ColumnMap(pass_if="score>=0.8")])
def test_the_advice_on_empty_cells_works(mapping):
    followed = b"task,score,error\na,0.9,\na,,timeout\n"
    assert read_trials(followed, mapping=mapping).outcome.tolist()[1] == 2
    said = replace(mapping, missing="error")
    assert read_trials(b"task,score\na,0.9\na,\n", mapping=said).outcome.tolist()[1] == 2


def test_a_comparison_with_a_comma_is_told_to_use_a_point():
    with pytest.raises(ArgumentError, match=r"pass_if must write 0\.8 with a point, got"):
        read_trials(b"task,score\na,1\n", mapping=ColumnMap(pass_if="score>=0,8"))
