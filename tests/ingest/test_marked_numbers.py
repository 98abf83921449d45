"""Money and percentages are numbers where all of a column says one thing, and can be left out."""

import pytest

from passhat.errors import ArgumentError, ReadError
from passhat.ingest import ColumnMap, read_tallies, read_trials, tallies


def table(header, *cells, separator=","):
    rows = [separator.join(("t", cell)) for cell in cells]
    return "\n".join([separator.join(("task", header)), *rows]).encode()


def costs(*cells, **how):
    rows = [f"t,1,{cell}" for cell in cells]
    return read_trials("\n".join(["task,passed,cost", *rows]).encode(), **how)


@pytest.mark.parametrize(
    "written", ["$0.01", "$ 0.01", "0.01 $", "0.01€", "USD 0.01", "0.01 EUR", "$1e-2"]
)
def test_an_amount_of_money_is_a_number_with_a_note(written):
    trials = costs(written, "", "2")
    assert trials.features["cost"][[0, 2]].tolist() == [0.01, 2]
    assert trials.sources[0].notes[-1].startswith('"cost" was read without its ')


def test_amounts_with_decimal_commas_are_read_where_they_may_stand():
    data = b"task;passed;cost\nt;1;1,50 \xe2\x82\xac\nt;0;0,25 \xe2\x82\xac\n"
    assert read_trials(data).features["cost"].tolist() == [1.5, 0.25]


def test_several_currencies_are_refused():
    with pytest.raises(
        ReadError, match=r'"cost": holds several currencies \(\$ and €\); write all'
    ):
        costs("$1", "2€")


@pytest.mark.parametrize("odd", ['"1.234,56"', '"$1.234,56"', "a lot", "3 dollars"])
def test_an_amount_that_is_no_number_can_be_left_out_with_its_column(odd):
    with pytest.raises(ReadError, match=r"field cost: .*; or leave it out with `cost=''`"):
        costs(odd)
    trials = costs(odd, mapping=ColumnMap(cost=""))
    assert trials.features == {}
    assert trials.sources[0].notes == ()


def test_a_point_stays_a_point():
    assert costs("1.234").features["cost"].tolist() == [1.234]


def test_percentages_are_compared_as_they_stand():
    data = table("accuracy", "66%", "59.5%", "100%")
    trials = read_trials(data, mapping=ColumnMap(pass_if="accuracy>=60"))
    assert trials.outcome.tolist() == [1, 0, 1]
    assert 'percentages of "accuracy" were compared as they are: 66% is 66' in (
        trials.sources[0].notes
    )
    with pytest.raises(ReadError, match=r"write `pass_if='accuracy>=60'` for 60%, not 0.6"):
        read_trials(data, mapping=ColumnMap(pass_if="accuracy>=0.6"))
    with pytest.raises(ArgumentError, match=r"pass_if must write 60, without the mark: cells"):
        read_trials(data, mapping=ColumnMap(pass_if="accuracy>=60%"))


def test_a_percentage_of_a_score_is_a_share():
    alone = read_trials(table("score", "66%", "100%"))
    assert (alone.score.tolist(), alone.outcome.tolist()) == ([0.66, 1.0], [0, 1])
    assert alone.sources[0].notes[-1] == (
        'percentages of "score" were read as shares: 66% is a score of 0.66'
    )
    judged = read_trials(
        table("score", "66%", "100%", "50%"), mapping=ColumnMap(pass_if="score>=60")
    )
    assert (judged.score.tolist(), judged.outcome.tolist()) == ([0.66, 1.0, 0.5], [1, 1, 0])


@pytest.mark.parametrize("other", ["0.5", "66", "nearly all"])
def test_percentages_beside_other_numbers_are_refused(other):
    with pytest.raises(ReadError, match=rf'column "score": holds 66%, but also \'{other}\''):
        read_trials(table("score", "66%", other))


def test_a_column_that_is_not_wanted_is_left_out_whatever_its_name():
    data = b"model,task,run,passed,score,turns,tags,error\nm,t,1,1,0.5,many,x,slow\n"
    left_out = ("system", "trial", "score", "turns", "tags", "error")
    trials = read_trials(data, mapping=ColumnMap(**dict.fromkeys(left_out, "")))
    assert trials.to_columns() == {
        "system": ["input"], "task": ["t"], "trial": [0], "outcome": [1], "score": [1.0],
    }  # fmt: skip
    with pytest.raises(
        ArgumentError, match=r"ColumnMap\.task must be a text that is not empty, got ''"
    ):
        ColumnMap(task="")


def test_a_log_of_a_tool_is_read_without_what_is_not_wanted(samples):
    log = samples / "inspect" / "flaky_5x5_two_scorers_1error.eval"
    assert "seconds" in read_trials(log).features
    assert "seconds" not in read_trials(log, mapping=ColumnMap(seconds="")).features


def test_a_big_table_says_how_to_do_without_a_column(tmp_path, monkeypatch):
    monkeypatch.setattr(tallies, "BIG_BYTES", 1)
    path = tmp_path / "big.csv"
    path.write_text("task,passed,cost\na,1,$0.01\n")
    with pytest.raises(
        ReadError, match=r"without marks such as \$ or %; or leave it out with `cost"
    ):
        read_tallies(path)
    (tally,) = read_tallies(path, mapping=ColumnMap(cost=""))
    assert tally.features == {}
