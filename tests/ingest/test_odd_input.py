"""Odd input gets a sentence that its owner understands, or a meaning that its owner meant."""

import json

import pytest

from passhat.errors import ArgumentError, ReadError
from passhat.ingest import ColumnMap, read_trials


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"[]", "is a list without objects; each trial must be one"),
        (b"[1, 2]", "is a list without objects; each trial must be one"),
        (b'[["a", "b"], ["c"]]', "is a list without objects; each trial must be one"),
        (b"<page><body/></page>", "is XML, but no report of JUnit, NUnit or .trx: its root"),
        (b"<!DOCTYPE html><html><body/></html>", "is a web page; give the JSON, CSV or XML"),
        (
            lines({"task": "a", "passed": 1}) + b'{"task": "b", "pas\n',
            r"line 2: not valid JSON: it ends in the middle, .* Leave the line out",
        ),
        (b"<Report id='1'/>", "<test-results> or <TestRun>, not <Report>$"),
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n",
            "is a pointer of Git LFS, not the file itself; .* `git lfs pull`",
        ),
        (b"Here is what I did for you:\n- nothing\n", "is text, not a table"),
        (
            lines({"Time": "2026-01-01T00:00:00Z", "Action": "start", "Package": "example.com/a"}),
            "is what `go test -json` prints; .* `gotestsum --junitfile`",
        ),
        (
            json.dumps({"stats": {}, "tests": [], "passes": [], "failures": []}).encode(),
            "is Mocha's JSON report",
        ),
        (lines({"task": "a", "passed": {"ok": 1}}), r"such as `passed='passed\.ok'`$"),
        (
            lines({"task": "a", "passed": 1, "seed": 10**30}),
            r"field seed: must be a whole number below 2\*\*63, or empty, got 10000",
        ),
        (
            lines({"task": "a", "passed": "perhaps"}, {"task": "a", "passed": None}),
            r"'perhaps' does not say .* The column holds 'perhaps', nothing;",
        ),
    ],
)
def test_a_fault_is_told_in_the_words_of_the_file(content, told):
    with pytest.raises(ReadError, match=rf"^input[:,].*{told}"):
        read_trials(content)


def test_a_name_that_is_nested_is_called_as_its_file_writes_it():
    trials = read_trials(lines({"task": ["a", {"b": 1}], "passed": 1}, {"task": 3, "passed": 1}))
    assert trials.tasks == ('["a",{"b":1}]', "3")


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        (["x", None, "", 1], ("1", "x")),
        ({"search": 3, "write": 1}, ("search", "write")),
        ("x, y|z", ("x", "y", "z")),
        (None, ()),
    ],
)
def test_words_are_those_that_a_list_a_text_or_an_object_names(cell, words):
    trials = read_trials(lines({"task": "a", "passed": 1, "tools": cell}))
    assert trials.words("tools") == words


@pytest.mark.parametrize("option", ["task", "pass_if", "name", "transcript"])
@pytest.mark.parametrize("value", ["", "  ", 3])
def test_an_option_that_is_empty_is_never_taken_for_one_that_is_absent(option, value):
    rule = r"^ColumnMap\.[a-z_]+ must be a text that is not empty, got"
    with pytest.raises(ArgumentError, match=rule):
        ColumnMap(**{option: value})


def test_an_empty_name_is_not_the_folder_one_is_in():
    with pytest.raises(ReadError, match="the name of a file is empty"):
        read_trials("")
    with pytest.raises(ArgumentError, match="source must name at least one file"):
        read_trials([])


def test_options_of_another_kind_are_named():
    with pytest.raises(ArgumentError, match=r"mapping must be ColumnMap\(\.\.\.\), got \{'task'"):
        read_trials(b"task,passed\na,1\n", mapping={"task": "x"})
    with pytest.raises(ArgumentError, match=r"limits must be Limits\(\.\.\.\), got 3"):
        read_trials(b"task,passed\na,1\n", limits=3)


@pytest.mark.parametrize("word", ["Total", "AVERAGE", "Grand total"])
def test_a_last_row_that_sums_up_the_others_is_no_trial(word):
    trials = read_trials(f"task,passed\na,1\nb,0\n{word},50%\n".encode())
    assert trials.tasks == ("a", "b")
    assert f'the last row, "{word}", sums up the others' in trials.sources[0].notes[0]


@pytest.mark.parametrize("end", ["TOTAL,,50%\n", "TOTAL,,50%\n,,\n,,\n", ",,\n", ", ,\n"])
def test_what_a_spreadsheet_has_below_its_rows_is_no_trial(end):
    text = f"model,task,passed\nm,a,1\nm,b,0\n{end}"
    trials = read_trials(text.encode())
    assert (trials.tasks, trials.systems, len(trials)) == (("a", "b"), ("m",), 2)
    assert bool(trials.sources[0].notes) is ("TOTAL" in end)


@pytest.mark.parametrize("row", ["m,,1", ",,1", "all of it,,1"])
def test_a_row_without_a_task_is_still_refused(row):
    with pytest.raises(ReadError, match="the task is missing"):
        read_trials(f"model,task,passed\nm,a,1\n{row}\n".encode())


@pytest.mark.parametrize("rows", ["total,1\na,0\n", "total,1\ntotal,0\n", "total,1\n"])
def test_a_task_called_total_is_a_task(rows):
    assert "total" in read_trials(f"task,passed\n{rows}".encode()).tasks


@pytest.mark.parametrize("header", ["Passed?", "Pass/Fail", "is_passed", "pass_fail"])
def test_headers_of_spreadsheets_are_verdicts(header):
    assert read_trials(f"Task Name,{header}\na,PASS\nb,FAIL\n".encode()).outcome.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("cell", "outcome"),
    [
        ("Passed ✅", 1),
        ("❌ failed", 0),
        ("✅ Pass", 1),
        ("✅ failed", None),
        ("not passed", None),
        ("0 failed", None),
        ("no failure", None),
    ],
)
def test_a_mark_beside_a_word_says_the_same_or_nothing(cell, outcome):
    table = f"task,passed\na,{cell}\nb,yes\n".encode()
    if outcome is not None:
        assert read_trials(table).outcome.tolist() == [outcome, 1]
        return
    with pytest.raises(ReadError, match="does not say whether the trial passed"):
        read_trials(table)


@pytest.mark.parametrize("odd", ["-", "n.a.", "error"])
def test_one_odd_cell_among_rates_does_not_make_its_rows_trials(odd, tmp_path):
    (file := tmp_path / "rates.csv").write_text(
        f"task,passed,pass_rate\na,1,0.5\nb,1,{odd}\nc,0,0.7\n"
    )
    with pytest.raises(ReadError, match="one row for all trials of a task"):
        read_trials(file)
