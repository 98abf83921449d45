"""Spreadsheets are read as the tables in their sheets."""

import sys
import zipfile
from datetime import datetime

import pytest

from passhat import read_trials
from passhat.errors import ReadError
from passhat.ingest import Limits

openpyxl = pytest.importorskip("openpyxl", reason="needs the extra sheets")

ROWS = [["task", "trial", "passed"], ["a", 1, True], ["a", 2, False], ["b", 1.0, 1], ["b", 2, 1]]


def save(path, **sheets):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def counted(trials):
    return dict(zip(trials.tasks, trials.tally().passed.tolist(), strict=True))


def test_a_sheet_is_read_as_its_table_saved_as_csv(tmp_path):
    csv = tmp_path / "book.csv"
    csv.write_text("task,trial,passed\na,1,true\na,2,false\nb,1,1\nb,2,1\n")
    book = read_trials(save(tmp_path / "book.xlsx", runs=ROWS))
    assert list(book) == list(read_trials(csv))
    assert dict(book.sources[0].read_as)["format"] == "sheet of a spreadsheet"


def test_a_title_and_empty_rows_are_no_runs_and_lines_are_rows_of_the_sheet(tmp_path):
    rows = [["Nightly"], [], *ROWS, [], ["c", 1, None]]
    with pytest.raises(ReadError, match=r'book.xlsx, line 9, column "passed": no outcome'):
        read_trials(save(tmp_path / "book.xlsx", runs=rows))
    assert counted(read_trials(save(tmp_path / "book.xlsx", runs=rows[:-1]))) == {"a": 1, "b": 2}


def test_several_sheets_are_read_as_the_files_of_a_folder(tmp_path):
    book = save(tmp_path / "book.xlsx", gpt=ROWS, claude=ROWS[:3], notes=[["x", "y"], ["1", "2"]])
    trials = read_trials(book)
    assert trials.systems == ("gpt", "claude")
    assert len(trials) == 6
    assert "notes" in trials.sources[0].notes[-1]


def test_the_only_sheet_of_results_is_named_as_its_file(tmp_path):
    book = save(tmp_path / "gpt.xlsx", notes=[["x", "y"], ["1", "2"]], runs=ROWS)
    assert read_trials(book).systems == ("gpt",)


def test_a_spreadsheet_is_one_of_the_results_in_a_folder(tmp_path, samples):
    save(tmp_path / "old.xlsx", runs=ROWS)
    (tmp_path / "new.csv").write_text("task,trial,passed\na,1,1\n")
    assert set(read_trials(tmp_path).systems) == {"old", "new"}
    when = read_trials(samples / "spreadsheet" / "results.xlsx")
    assert counted(when) == {"refund": 2, "search": 2}


def test_numbers_and_times_are_written_as_people_write_them(tmp_path):
    rows = [["task", "trial", "score", "started"], ["a", 1, 0.25, datetime(2026, 1, 2, 3)]]  # noqa: DTZ001 # as Excel has it
    trials = read_trials(save(tmp_path / "t.xlsx", runs=rows), pass_if="score>=0.2")
    assert trials.score.tolist() == [0.25]
    assert next(iter(trials)).started == "2026-01-02T03:00:00"


def test_without_the_library_the_extra_is_named_and_other_files_are_read(tmp_path, monkeypatch):
    book = save(tmp_path / "book.xlsx", runs=ROWS)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(ReadError, match=r"book.xlsx: .* pip install 'passhat\[sheets\]'"):
        read_trials(book)
    (tmp_path / "new.csv").write_text("task,trial,passed\na,1,1\n")
    assert read_trials(tmp_path).systems == ("new",)


def test_a_spreadsheet_that_is_none_or_too_big_is_refused_in_a_sentence(tmp_path):
    book = save(tmp_path / "book.xlsx", runs=[ROWS[0], *[["a", n, 1] for n in range(5_000)]])
    with pytest.raises(ReadError, match="above max_bytes"):
        read_trials(book, limits=Limits(max_bytes=20_000))
    (tmp_path / "bad.xlsx").write_bytes(book.read_bytes()[:2_000])
    with pytest.raises(ReadError, match=r"bad.xlsx: "):
        read_trials(tmp_path / "bad.xlsx")
    with zipfile.ZipFile(tmp_path / "odd.xlsx", "w") as odd:
        odd.writestr("xl/workbook.xml", "<workbook/>")
    with pytest.raises(ReadError, match=r"odd.xlsx: not a valid spreadsheet"):
        read_trials(tmp_path / "odd.xlsx")
    with pytest.raises(ReadError, match="no sheet of it holds a table"):
        read_trials(save(tmp_path / "none.xlsx", runs=[["just a title"]]))
