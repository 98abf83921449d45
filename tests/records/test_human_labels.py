"""Labels of people: a column beside the verdicts, which every file keeps."""

import pytest

from passhat import read_trials, write_trials
from passhat.errors import ArgumentError, ReadError
from passhat.records import Trials
from passhat.records.columns import ColumnMap
from passhat.records.labels import Label, labelled_rows, read_labels, write_labels

FULL = Label(passed=False, by="ann", at="2026-01-01", note="=1+1", chosen="task", chance=0.25)


def table():
    trials = Trials.from_columns(task=["a", "a", "b"], passed=[1, 0, 1])
    return trials.with_labels({("system", "a", 1): [FULL, Label(passed=True, by="ben")]})


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_labels_are_written_and_read_again_with_all_they_say(tmp_path, ending):
    file = tmp_path / f"trials.{ending}"
    write_trials(table(), file)
    assert read_trials(file).labels() == table().labels()


def test_labels_stay_with_their_trials_through_take_where_and_concat():
    other = Trials.from_columns(system=["x"], task=["c"], passed=[1])
    both = Trials.concat([other, table()])
    assert both.labels() == table().labels()
    assert both.where(task="a").labels() == table().labels()
    assert both.where(system="x").labels() == {}


def test_a_column_of_a_table_is_read_with_who_said_it_and_how_trials_were_chosen():
    text = b"task,passed,human,who,way\na,1,pass,ann,verdict\na,0,,,\nb,0,fail,ben,\n"
    mapping = ColumnMap(human_labels="human", label_by="who", label_chosen="way")
    labels = list(read_trials(text, mapping=mapping).labels().values())
    assert labels == [
        (Label(passed=True, by="ann", chosen="verdict"),),
        (Label(passed=False, by="ben"),),
    ]


def test_one_way_may_be_named_for_all_labels_of_a_table():
    text = b"task,passed,human\na,1,1\na,0,0\n"
    mapping = ColumnMap(human_labels="human", label_chosen="random")
    found = read_trials(text, mapping=mapping).labels().values()
    assert {one.chosen for (one,) in found} == {"random"}


@pytest.mark.parametrize("cell", ["maybe", "[1]", '[{"said": true}]', '[{"passed": "yes"}]'])
def test_a_cell_that_is_no_label_is_refused_with_its_line(cell):
    text = f"task;passed;human\na;1;1\na;0;{cell}\n".encode()
    with pytest.raises(ReadError, match=r"line 3, field human"):
        read_trials(text, mapping=ColumnMap(human_labels="human"))


def test_a_column_called_label_is_not_taken_for_what_people_say():
    trials = read_trials(b"task,passed,label,labels\na,1,cat,x\nb,0,dog,y\n")
    assert trials.human_labels is None


@pytest.mark.parametrize("wrong", [{"chosen": "by hand"}, {"chance": 0.0}, {"chance": 2.0}])
def test_a_label_says_how_its_trial_was_chosen_or_nothing(wrong):
    with pytest.raises(ArgumentError, match="of a label"):
        Label(passed=True, **wrong)


def test_the_text_of_labels_gives_the_labels_again():
    assert read_labels(write_labels([FULL])) == (FULL,)


def test_the_last_label_of_a_person_counts_and_most_people_decide():
    changed = [Label(passed=False, by="ann"), Label(passed=True, by="ann")]
    outvoted = [Label(passed=word, by=by) for word, by in ((True, "a"), (True, "b"), (False, "c"))]
    trials = Trials.from_columns(task=["a", "b"], passed=[0, 0], human_labels=[changed, outvoted])
    assert labelled_rows(trials.human_labels).passed.tolist() == [True, True]
