"""No trial is lost in silence: several files are joined, and what is given twice is said."""

import json
import os
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passhat.errors import ReadError
from passhat.ingest import ColumnMap, read_trials, read_with_transcripts

HEADER = b"task,trial,passed\n"
ENDINGS = st.lists(st.sampled_from(["yes", "no"]), min_size=1, max_size=4)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_bytes(HEADER + b"a,1,yes\na,2,no\n")
    return path


@settings(max_examples=30)
@given(st.lists(ENDINGS, min_size=1, max_size=4))
def test_numbered_parts_are_all_read_however_alike_they_are_called(parts):
    numbers = iter(range(1000))
    files = [
        HEADER + "".join(f"a,{next(numbers)},{word}\n" for word in part).encode() for part in parts
    ]
    trials = read_trials(files)
    assert trials.trial.tolist() == list(range(sum(map(len, parts))))
    assert trials.outcome.tolist() == [word == "yes" for part in parts for word in part]


def test_numbered_trials_of_two_files_that_collide_are_listed():
    first, second = HEADER + b"a,1,yes\na,2,no\n", HEADER + b"a,2,yes\n"
    with pytest.raises(ReadError, match=r"^input: 1 trial occurs .*: input / a / trial 2\. Pass"):
        read_trials([first, second])
    assert read_trials([first, second], duplicates="last").outcome.tolist() == [1, 1]
    kept = read_trials([first, second], duplicates="keep")
    assert (kept.trial.tolist(), kept.outcome.tolist()) == ([0, 1, 2], [1, 0, 1])


def test_a_numbered_file_that_is_given_twice_is_said_to_be(table):
    twice = r"2 trials occur more than once: runs / a / trial 1, runs / a / trial 2\."
    again = r" .*runs\.csv is given twice: leave one out\. Pass `duplicates='last'`"
    for same in (table, f"{table.parent}/*.csv"):
        with pytest.raises(ReadError, match=twice + again):
            read_trials([table, same])
        assert read_trials([table, same], duplicates="last").outcome.tolist() == [1, 0]
        assert read_trials([table, same], duplicates="keep").outcome.tolist() == [1, 0, 1, 0]


def test_a_numbered_file_by_another_name_is_said_to_hold_the_same_bytes(table):
    roundabout = os.path.join(table.parent, ".", table.name)  # noqa: PTH118 # Path would tidy it
    by_link = table.parent / "link"
    by_link.mkdir()
    (by_link / table.name).symlink_to(table)
    for other in (roundabout, by_link / table.name):
        with pytest.raises(ReadError, match=r"(holds the same bytes as|is given twice).*leave one"):
            read_trials([table, other])


def test_an_unnumbered_file_that_is_given_twice_is_said_to_be(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_bytes(b"task,passed\na,yes\na,no\n")
    with pytest.raises(ReadError, match=r"runs\.csv: is given twice, trial for trial; leave one"):
        read_trials([path, path])
    assert len(read_trials([path, path], duplicates="last")) == 2
    assert len(read_trials([path, path], duplicates="keep")) == 4


def test_words_stay_with_the_trial_that_is_kept():
    rows = b"task,trial,passed,output\na,1,yes,%s\n"
    trials, said = read_with_transcripts([rows % b"one", rows % b"two"], duplicates="last")
    assert (len(trials), list(said.values())) == (1, ['{"answer": "two"}'])
    trials, said = read_with_transcripts([rows % b"one", rows % b"two"], duplicates="keep")
    assert list(said.values()) == ['{"answer": "one"}', '{"answer": "two"}']


def test_run_ids_of_sixty_bits_are_so_many_trials():
    ids = [2**60 + i for i in range(4)]
    rows = "".join(f'{{"task": "a", "passed": 1, "run_id": {number}}}\n' for number in ids)
    assert read_trials(rows.encode()).trial.tolist() == ids
    cells = "task,run_id,passed\n" + "".join(f"a,{2**53 + i},1\n" for i in range(4))
    assert read_trials(cells.encode()).trial.tolist() == [2**53 + i for i in range(4)]


def test_run_ids_beyond_sixty_four_bits_are_numbered_as_they_come():
    for ids in ([2**63, 2**63 + 1, 2**64], [2**200, 1, 2]):
        rows = "".join(f'{{"task": "a", "passed": 1, "run_id": {number}}}\n' for number in ids)
        assert read_trials(rows.encode()).trial.tolist() == [0, 1, 2]


def test_names_of_trials_are_numbers_only_where_nothing_but_the_number_tells_them_apart():
    def numbers(*names):
        rows = "".join(f"a,{name},1\n" for name in names)
        return read_trials(f"task,trial,passed\n{rows}".encode()).trial.tolist()

    assert numbers("run-3", "run-12") == [3, 12]
    assert numbers("dev-1", "test-1", "test-2") == [0, 1, 2]
    assert numbers("7", "run-7") == [0, 1]


RUNS = st.lists(
    st.tuples(st.sampled_from("abc"), st.booleans(), st.floats(0.01, 900).map(lambda x: x + 0.005)),
    min_size=1,
    max_size=6,
    unique=True,
)


@settings(max_examples=30)
@given(runs=RUNS, listed=st.data())
def test_a_summary_beside_the_runs_counts_no_run_again(runs, listed):
    rows = [{"task": t, "agent": "m", "passed": ok, "wall_seconds": s} for t, ok, s in runs]
    again = listed.draw(st.lists(st.sampled_from(rows), unique_by=str))
    singles = [json.dumps(row).encode() for row in rows]
    alone = read_trials(singles, duplicates="keep") if len(rows) > 1 else read_trials(singles)
    both = read_trials([*singles, json.dumps(again).encode()] if len(again) > 1 else singles)
    assert both.tally().passed.tolist() == alone.tally().passed.tolist()
    assert both.tally().failed.tolist() == alone.tally().failed.tolist()
    notes = [note for source in both.sources for note in source.notes]
    assert any("equal in every field, and counted once" in one for one in notes) == (len(again) > 1)


def test_runs_that_ended_alike_stay_two_runs_where_no_time_tells_them_apart(tmp_path):
    for run in (1, 2):
        (tmp_path / f"run-{run}.json").write_text('[{"task": "a", "passed": true, "tokens": 512}]')
    assert len(read_trials(tmp_path)) == 2


def test_a_copy_of_a_file_is_refused_whatever_its_name(tmp_path):
    table = b"task,trial,passed\na,1,1\na,2,0\nb,1,1\nb,2,1\n"
    for name in ("gpt.csv", "claude.csv"):
        (tmp_path / name).write_bytes(table)
    with pytest.raises(ReadError, match=r"gpt.csv: says the same as .*claude.csv"):
        read_trials(tmp_path)
    assert read_trials(tmp_path, duplicates="keep").systems == ("claude", "gpt")


@pytest.mark.parametrize("column", ["mode", "tier", "suite_version", "temperature"])
def test_trials_of_one_number_are_told_by_the_column_in_which_they_differ(column):
    rows = [
        {"model": "m", "task": task, "trial": trial, "passed": arm == "x", "cost": n, column: arm}
        for n, (task, trial, arm) in enumerate(product("ab", (1, 2, 3), ("x", "y")))
    ]
    content = json.dumps(rows).encode()
    with pytest.raises(ReadError, match=rf"differ in {column} \(x, y\): `system='model,{column}'`"):
        read_trials(content)
    told = read_trials(content, mapping=ColumnMap(system=f"model,{column}"))
    assert told.systems == ("m/x", "m/y")
    assert told.tally("m/x").passed.tolist() == [3, 3]


def test_what_was_measured_of_a_trial_is_never_offered_to_tell_trials_apart():
    rows = [
        {
            "task": task,
            "trial": trial,
            "passed": True,
            "panic": (3 * n % 7) / 10,
            "calls": n % 5 > 3,
        }
        for n, (task, trial, _) in enumerate(product("abcd", (1, 2, 3), ("first", "again")))
    ]
    with pytest.raises(ReadError, match=r"12 trials occur more than once: [^.]*\. Pass `dup"):
        read_trials(json.dumps(rows).encode())


@pytest.mark.parametrize("duplicates", ["keep", "last"])
def test_trials_that_are_pooled_say_in_what_they_differ(duplicates):
    rows = [
        ("a", 1, "oracle", 1),
        ("a", 1, "blind", 0),
        ("b", 1, "oracle", 1),
        ("b", 1, "blind", 0),
    ]
    table = "task,trial,mode,passed\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)
    (source,) = read_trials(table.encode(), duplicates=duplicates).sources
    assert any("They differ in mode (oracle, blind)" in note for note in source.notes)
