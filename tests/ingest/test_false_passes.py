"""Tables of which a gate could pass wrongly: rows that are copies, and bars of another scale."""

from pathlib import Path

import pytest

import passhat
from passhat.errors import ReadError
from passhat.ingest import read_trials
from passhat.ingest.tallies import read_tallies
from passhat.records.columns import ColumnMap
from passhat.records.trial import counting_notes

TASKS = [f"q{i}" for i in range(4)]


def table(header: str, rows: list[str]) -> bytes:
    return "\n".join([header, *rows, ""]).encode()


def numbered(rounds: int = 3) -> list[str]:
    return [f"{task},{trial},yes" for trial in range(1, rounds + 1) for task in TASKS]


def timed(rounds: int = 3) -> list[str]:
    return [f"{task},yes,{1.37 + 0.11 * i}" for i, task in enumerate(TASKS * rounds)]


@pytest.mark.parametrize(
    "column",
    ["Trial #", "Run #", "Attempt #", "Attempt No.", "Try", "Try #", "try_no", "Rep.", "RunIdx"],
)
def test_a_column_that_numbers_trials_is_known_however_people_write_it(column):
    with pytest.raises(ReadError, match="12 trials occur more than once"):
        read_trials(table(f"task,{column},passed", numbered() * 2))


@pytest.mark.parametrize("times", [2, 3])
def test_a_table_pasted_below_itself_is_refused_without_numbers_of_trials(times):
    data = table("task,passed,seconds", timed() * times)
    with pytest.raises(ReadError, match="in every column: was it pasted twice"):
        read_trials(data)
    assert len(read_trials(data, duplicates="last")) == 12
    assert len(read_trials(data, duplicates="keep")) == 12 * times


def test_copied_rows_are_told_with_every_answer_and_left_out_if_asked():
    data = table("task,passed,seconds", [*timed(), *timed()[:2]])
    told = counting_notes(read_trials(data).sources)
    assert told[0].startswith("in input, 2 rows are equal to an earlier one in every column")
    left = read_trials(data, duplicates="last")
    assert len(left) == 12
    assert "and left out" in counting_notes(left.sources)[0]
    assert not counting_notes(read_trials(data, duplicates="keep").sources)


def test_rows_that_no_time_tells_apart_are_no_copies():
    days = [f"{task},yes,2026-11-18,12.1" for task in [f"q{i}" for i in range(9)]] * 4
    rounded = [f"q0,{'yes' if i % 7 else 'no'},{1 + i % 9 / 10}" for i in range(400)]
    for header, rows in (("task,passed,date,price", days), ("task,passed,seconds", rounded)):
        assert not counting_notes(read_trials(table(header, rows)).sources)


def test_asking_for_the_last_copy_without_numbers_of_trials_is_answered():
    trials = read_trials(table("task,passed", ["a,yes", "a,yes"]), duplicates="last")
    assert len(trials) == 2
    assert "no column numbers the trials" in counting_notes(trials.sources)[0]


SCORES = [f"{task},{score}" for task in TASKS for score in (75, 12, 99)]


def test_a_bar_of_a_share_is_refused_for_scores_of_a_hundred(tmp_path: Path):
    data = table("task,Score", SCORES)
    with pytest.raises(ReadError, match="'Score>=80'` for 80% of 100, or `pass_if='Score>=1'`"):
        read_trials(data, mapping=ColumnMap(pass_if="Score>=0.8"))
    frame = {"task": ["a", "a"], "Score": [75, 12]}
    with pytest.raises(ValueError, match="'Score>=80'"):
        passhat.Trials.from_records(
            [dict(zip(frame, row, strict=True)) for row in zip(*frame.values(), strict=True)],
            pass_if="Score>=0.8",
        )
    meant = read_trials(data, mapping=ColumnMap(pass_if="Score>=80"))
    assert meant.outcome.tolist() == [0, 0, 1] * 4
    assert not counting_notes(meant.sources)


@pytest.mark.parametrize(
    ("pass_if", "scores", "noted"),
    [
        ("Score>=1", (75, 12, 99), "is 100% of 100"),
        ("Score>=0.8", (0, 1, 2), "'Score>=4' is 80% of 5"),
        ("Score>=0.8", (0.5, 40.5, 99), "'Score>=80' is 80% of 100"),
        ("Score>=0.8", (0.5, 0.9, 1), None),
        ("Score<=0.8", (0, 40, 99), None),
        ("turns>=1", (0, 4, 9), None),
    ],
)
def test_a_bar_that_may_be_of_another_scale_is_told_with_every_answer(pass_if, scores, noted):
    column = pass_if[:5]
    data = table(f"task,{column}", [f"a,{score}" for score in scores])
    told = counting_notes(read_trials(data, mapping=ColumnMap(pass_if=pass_if)).sources)
    assert [noted in note for note in told] == ([True] if noted else [])


def test_a_big_table_is_held_to_the_same_scale(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("passhat.ingest.tallies.BIG_BYTES", 1)
    (path := tmp_path / "big.csv").write_bytes(table("task,Score", SCORES))
    with pytest.raises(ReadError, match="'Score>=80'"):
        read_tallies(path, mapping=ColumnMap(pass_if="Score>=0.8"))
    (counted,) = read_tallies(path, mapping=ColumnMap(pass_if="Score>=1"))
    assert "is 100% of 100" in counting_notes(counted.sources)[0]


def test_a_proposed_bar_is_on_the_scale_of_its_column():
    with pytest.raises(ReadError, match=r"`pass_if='Score \(0-100\)>=80'`"):
        read_trials(table("task,Score (0-100)", SCORES))
    percent = read_trials(table("task,trial,score", ["a,1,75%", "a,2,100%"]))
    assert any("'score>=80'" in note for note in percent.sources[0].notes)
    read_trials(table("task,trial,score", ["a,1,75%"]), mapping=ColumnMap(pass_if="score>=80"))


def test_empty_rows_of_a_sheet_are_no_trials_wherever_they_stand():
    rows = ["a,1,yes", ",,", "b,1,no", ",,", ",,", "Total,,50%"]
    trials = read_trials(table("task,trial,passed", rows))
    assert trials.tasks == ("a", "b")
    assert "sums up the others" in trials.sources[0].notes[0]
