"""One door: files, folders, patterns, bytes and standard input; duplicates; several files."""

import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from passhat.errors import ArgumentError, ReadError
from passhat.ingest import READERS, ColumnMap, Limits, read_trials
from passhat.ingest.document import Document, zstd
from passhat.ingest.readers import readers_of

TABLE = b"system,task,trial,passed\na,t,0,1\na,t,1,0\n"


@pytest.mark.parametrize(
    ("ending", "pack"),
    [("", bytes), (".gz", gzip.compress), (".zst", zstd.compress), (".anything", gzip.compress)],
)
def test_compressed_files_are_known_by_their_content(tmp_path, ending, pack):
    path = tmp_path / f"table.csv{ending}"
    path.write_bytes(pack(TABLE))
    assert read_trials(path).tally().passed.tolist() == [1]


def test_a_dash_is_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(TABLE)))
    trials = read_trials("-")
    assert (len(trials), trials.sources[0].name) == (2, "stdin")


def test_a_folder_a_pattern_and_a_list_read_the_same_files(tmp_path):
    for number in range(3):
        rows = TABLE.replace(b"a,", b"agent%d," % number)
        (tmp_path / f"run[{number}].csv").write_bytes(rows)
    (tmp_path / "notes.json").write_text('{"hello": 1}')
    (tmp_path / "tsconfig.json").write_text("{ // not JSON\n}")
    (tmp_path / "README.md").write_text("no result")
    paths = sorted(tmp_path.glob("*.csv"))
    tables = [read_trials(given) for given in (tmp_path, f"{tmp_path}/*.csv", paths)]
    assert {table.systems for table in tables} == {("agent0", "agent1", "agent2")}
    assert [len(table.sources) for table in tables] == [1, 1, 3]
    unknown, broken = tables[0].sources[0].notes
    assert unknown == "1 file that passhat cannot read, left out: notes.json"
    assert broken.startswith("left out: tsconfig.json: line 1: not valid JSON")
    assert [table.sources[0].name for table in tables] == [
        f"{tmp_path} (3 files)",
        f"{tmp_path}/*.csv (3 files)",
        str(paths[0]),
    ]


def test_a_file_left_out_of_a_folder_is_told_what_it_is_told_alone(tmp_path):
    (tmp_path / "runs.csv").write_bytes(TABLE)
    for i in range(5):
        (tmp_path / f"results_{i}.json").write_text(
            '{"results": {}, "configs": {}, "versions": {}, "n-shot": {}}'
        )
    (tmp_path / "cut.json").write_text('{"results": [{"a": 1}, {"a')
    (source,) = read_trials(tmp_path).sources
    with pytest.raises(ReadError, match="holds the means of an lm-evaluation-harness run") as alone:
        read_trials(tmp_path / "results_0.json")
    reason = str(alone.value).partition(": ")[2]
    names = "results_0.json, results_1.json, results_2.json and 2 more"
    assert f"left out: {names}: {reason}" in source.notes
    assert any("cut.json: not valid JSON: it ends in the middle" in note for note in source.notes)
    assert source.name == f"{tmp_path} (1 file)"


def test_many_different_reasons_to_leave_files_out_are_told_in_few_notes(tmp_path):
    (tmp_path / "runs.csv").write_bytes(TABLE)
    for i in range(20):
        (tmp_path / f"cut_{i:02}.json").write_text('{"a": "' + "x" * i)
    (source,) = read_trials(tmp_path).sources
    assert len(source.notes) == 4
    assert source.notes[-1] == (
        "left out, for other reasons: cut_03.json, cut_04.json, cut_05.json and 14 more"
    )


def test_notes_name_their_file_by_its_place_in_the_folder(tmp_path):
    for name in ("1", "2"):
        (tmp_path / name).mkdir()
    (tmp_path / "1" / "runs.csv").write_bytes(b"task,passed,colour\nt,1,red\nt,0,red\n")
    (tmp_path / "2" / "runs.csv").write_bytes(b"task,passed\nt,1\nt,0\nt,0\n")
    (source,) = read_trials(tmp_path).sources
    (note,) = source.notes
    assert note.startswith(f"1{os.sep}runs.csv: columns not used: colour")


def test_a_table_of_other_columns_is_left_out_of_a_folder_that_has_better_ones(tmp_path):
    (tmp_path / "good.csv").write_bytes(b"Frage,ok\nf,1\nf,0\n")
    other = tmp_path / "other.csv"
    other.write_bytes(b"colour,size\nred,1\n")
    mapping = ColumnMap(task="Frage", passed="ok")
    trials = read_trials(tmp_path, mapping=mapping)
    assert len(trials) == 2
    assert trials.sources[0].notes == (
        "1 file that passhat cannot read or without the columns, left out: other.csv",
    )
    named = r'other.csv: has no column "Frage" for `task`; it has colour, size'
    with pytest.raises(ReadError, match=named):
        read_trials(other, mapping=mapping)
    (tmp_path / "good.csv").unlink()
    with pytest.raises(ReadError, match=named):
        read_trials(tmp_path, mapping=mapping)
    (tmp_path / "third.csv").write_bytes(b"x,y\n1,2\n")
    with pytest.raises(ReadError, match=r"looked at .*third\.csv\. .*" + named):
        read_trials(tmp_path, mapping=mapping)


def test_a_bad_row_in_a_folder_is_never_passed_over(tmp_path):
    (tmp_path / "good.csv").write_bytes(TABLE)
    (tmp_path / "bad.csv").write_bytes(b"task,passed\nt,maybe\n")
    with pytest.raises(ReadError, match=r"bad.csv, line 2, column \"passed\": 'maybe'"):
        read_trials(tmp_path)


def test_what_is_not_there_is_said(tmp_path):
    with pytest.raises(ReadError, match=r"nothing.csv: no such file or folder$"):
        read_trials(tmp_path / "nothing.csv")
    with pytest.raises(ReadError, match=r"holds no result file that passhat can read"):
        read_trials(tmp_path)
    with pytest.raises(ReadError, match=r"input: holds no trial"):
        read_trials(b"task,passed\n")


def test_an_unknown_format_suggests_the_near_one():
    with pytest.raises(ArgumentError, match=r"format must be one of .* \(did you mean inspect\?\)"):
        read_trials(TABLE, format="inspekt")
    assert len(read_trials(TABLE, format="table")) == 2


def test_duplicates_are_listed_kept_or_the_last_wins():
    twice = TABLE + b"a,t,1,1\n"
    with pytest.raises(
        ReadError, match=r"input: 1 trial occurs more than once: a / t / line 3, line 4\."
    ):
        read_trials(twice)
    assert read_trials(twice, duplicates="last").outcome.tolist() == [1, 1]
    kept = read_trials(twice, duplicates="keep")
    assert (kept.trial.tolist(), kept.outcome.tolist()) == ([0, 1, 2], [1, 0, 1])
    with pytest.raises(ArgumentError, match="duplicates must be error, keep or last, got 'first'"):
        read_trials(twice, duplicates="first")


def test_trials_without_numbers_are_numbered_on_from_file_to_file(tmp_path):
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    line = '{"task_id": "t", "completion": "", "result": "%s", "passed": %s}\n'
    first.write_text(line % ("passed", "true") + line % ("failed", "false"))
    second.write_text(line % ("passed", "true"))
    trials = read_trials([first, second], mapping=ColumnMap(name="model"))
    assert trials.trial.tolist() == [0, 1, 2]


def test_sources_carry_the_hash_of_the_bytes_as_they_lie(tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(TABLE))
    source = read_trials(path).sources[0]
    assert source.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert (source.name, source.format) == (str(path), "table")


def test_every_reader_is_listed_under_its_own_name_and_describes_itself():
    assert all(name == reader.name and reader.reading.task for name, reader in READERS.items())
    assert list(READERS)[-1] == "table"


def test_a_reader_is_asked_about_every_kind_of_document_that_it_knows(samples):
    def known_by(reader, document):
        try:
            return reader.recognises(document)
        except ReadError:  # it knows the file, and that it holds no trials
            return True

    def knowing(readers, document):
        return [reader.name for reader in readers if known_by(reader, document)]

    paths = [path for path in samples.rglob("*") if path.is_file()]
    known = set()
    for path in paths:
        document = Document(str(path), path=path, data=None, limits=Limits())
        names = knowing(READERS.values(), document)
        assert knowing(readers_of(document), document) == names, path
        known.update(names)
    assert len(known) >= 8


def test_reading_a_table_loads_no_reader_of_another_kind():
    program = (
        "import sys, passhat; passhat.read_trials(b'task,passed\\na,1\\n');"
        "print(*(m for m in sys.modules if m.startswith('passhat.ingest.formats.')))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    loaded = {name.rpartition(".")[2] for name in ran.stdout.decode().split()}
    assert loaded == {"tables"}


def test_what_some_files_of_a_folder_say_is_said_of_those_files(tmp_path):
    for domain in ("airline", "telecom"):
        results = {
            "info": {
                "agent_info": {"llm": "m"},
                "environment_info": {"domain_name": domain},
            },
            "tasks": [],
            "simulations": [{"task_id": domain, "trial": 0, "reward_info": {"reward": 1.0}}],
        }
        (tmp_path / f"{domain}.json").write_text(json.dumps(results))
    (source,) = read_trials(tmp_path).sources
    assert set(source.notes) == {
        'airline.json: tasks of the domain "airline"',
        'telecom.json: tasks of the domain "telecom"',
    }
    (alone,) = read_trials(tmp_path / "airline.json").sources
    assert alone.notes == ('tasks of the domain "airline"',)


def test_columns_may_be_named_without_a_mapping():
    table = b"case,passed,mark\na,1,0.9\na,1,0.7\nb,0,0.8\n"
    mapped = read_trials(table, mapping=ColumnMap(task="case", pass_if="mark>=0.8"))
    by_name = read_trials(table, task="case", pass_if="mark>=0.8")
    both = read_trials(table, mapping=ColumnMap(task="case"), pass_if="mark>=0.8")
    assert list(by_name) == list(both) == list(mapped)
    assert mapped.tally().passed.tolist() == [1, 1]
