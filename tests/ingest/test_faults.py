"""What cannot be read is told in a sentence: which file, where in it, what came, the way out."""

import json
import os
import struct
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passhat.errors import ReadError
from passhat.ingest import (
    ColumnMap,
    Limits,
    document,
    read_tallies,
    read_trials,
    read_with_transcripts,
    tallies,
)
from passhat.ingest.document import Archive, Document
from passhat.ingest.rows import table_of

BIG = int("1" * 400)
CASE, OK = (
    {"key": "case", "value": {"stringValue": "a"}},
    {"key": "ok", "value": {"boolValue": True}},
)
SPANS = ColumnMap(task="case", passed="ok")


def table(**cells):
    return json.dumps([{"task": "a", "passed": 1, **cells}]).encode()


def span(*attributes, **fields):
    one = {"traceId": "t", "spanId": "s", "name": "n", "attributes": [CASE, OK, *attributes]}
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [one | fields]}]}]}).encode()


def pair(key, kind, value):
    return {"key": key, "value": {kind: value}}


CHAT = pair("gen_ai.operation.name", "stringValue", "chat")


@pytest.mark.parametrize(
    ("content", "mapping", "told"),
    [
        pytest.param(
            b'{"id": "1", "n_total_trials": 1, "stats": {"n_completed_trials": 1}}',
            None,
            r"^input: holds no trial \(it is the summary of a Harbor job; give the job's folder",
            id="the summary of a Harbor job",
        ),
        pytest.param(
            b'{"question": {"id": "a"}, "result": {"success": true}}',
            None,
            r"If it is one trial, name its keys with .* \(a key inside another as outer.inner\)",
            id="a run of an own shape",
        ),
        pytest.param(
            b'{"runs": [{"task": "a", "passed": 1},\n{"task": "caf\xe9", "passed": 1}]}',
            None,
            r"^input, line 2: not text in UTF-8 \(byte 51\); save it as UTF-8$",
            id="JSON in Latin-1",
        ),
        pytest.param(
            b'<?xml version="1.0" encoding="foo"?><testsuite><testcase name="a"/></testsuite>',
            None,
            r"^input, line 1: its encoding cannot be read \(unknown encoding: foo\); save it as",
            id="XML in an encoding that nobody knows",
        ),
        pytest.param(
            b'<?xml version="1.0" encoding="utf-7"?><testsuite><testcase name="a"/></testsuite>',
            None,
            r"^input, line 1: its encoding cannot be read \(multi-byte .*\); save it as UTF-8$",
            id="XML in an encoding that cannot be read",
        ),
        pytest.param(
            span(pair("n", "intValue", "many")),
            SPANS,
            r'^input, span "n" \(s\), attribute n, field intValue: must be a whole number of 64 '
            r"bits, got 'many'$",
            id="a whole number of OTLP that is none",
        ),
        pytest.param(
            span(startTimeUnixNano="noon"),
            SPANS,
            r'^input, span "n" \(s\), field startTimeUnixNano: must be a whole .*, got \'noon\'$',
            id="a time of OTLP that is none",
        ),
        pytest.param(
            span(endTimeUnixNano=10**400),
            SPANS,
            r'^input, span "n" \(s\), field endTimeUnixNano: must be a whole number of 64 .*got 1',
            id="a time beyond all times",
        ),
        pytest.param(
            span(CHAT, pair("gen_ai.usage.input_tokens", "stringValue", "many")),
            SPANS,
            r"^input, span .*, attribute gen_ai.usage.input_tokens: must be a number, got 'many'$",
            id="tokens in words",
        ),
        pytest.param(
            span(pair("grade", "stringValue", "good")),
            ColumnMap(task="case", score="grade"),
            r'^input, span "n" \(s\), attribute grade: must be a number, got \'good\'$',
            id="a score of spans in words",
        ),
        pytest.param(
            span(pair("grade", "stringValue", "good")),
            ColumnMap(task="case", pass_if="grade>=1"),
            r'^input, span "n" \(s\), attribute grade: must be a number, got \'good\'$',
            id="a word of spans held against a number",
        ),
        pytest.param(
            table(score=BIG),
            None,
            "^input, entry 0, field score: must be finite, and a number that a float can hold$",
            id="a score of 400 digits",
        ),
        pytest.param(
            table(cost=BIG), None, "^input, entry 0, field cost: must be finite", id="such a cost"
        ),
        pytest.param(
            table(duration_ms=BIG),
            None,
            "^input, entry 0, field seconds: must be finite",
            id="such a duration",
        ),
        pytest.param(
            json.dumps([{"task": "a", "score": BIG}]).encode(),
            None,
            '^input, entry 0, column "score": 1+… does not say whether the trial passed',
            id="such a score alone",
        ),
        pytest.param(
            table(score=BIG),
            ColumnMap(pass_if="score>=1"),
            "^input, entry 0: `pass_if` compares with a number, but score is 1+…$",
            id="such a score held against a number",
        ),
        pytest.param(
            table(seed=1e300),
            None,
            r"^input, entry 0, field seed: must be a whole number below 2\*\*63, or empty, got 1e",
            id="a seed beyond 64 bits",
        ),
        pytest.param(
            table(tags=["a\0b"]),
            None,
            "^input: tags must be lists of words",
            id="what no column may hold",
        ),
        pytest.param(
            table(score=[1])[:-1] + b"," + table(score=[0])[1:],
            None,
            r"^input, entry 0, field score: must be a number or empty, got \[1\]",
            id="a column of lists of one",
        ),
        pytest.param(
            table(cost=[1, 2])[:-1] + b"," + table(cost=[3, 4])[1:],
            None,
            r"^input, entry 0, field cost: must be a number or empty, got \[1, 2\]",
            id="a column of lists of two",
        ),
        pytest.param(
            b"task,passed,task\na,1,b\n",
            None,
            "^input, line 1: the column task occurs twice$",
            id="a column twice",
        ),
    ],
)
def test_a_fault_is_told_by_its_place_and_by_what_came(content, mapping, told):
    with pytest.raises(ReadError, match=told):
        read_trials(content, mapping=mapping)


def test_words_are_not_held_against_a_number(samples):
    told = r"sample 0, field task: `pass_if` compares it with a number, but it is 'flaky_task/t0'$"
    with pytest.raises(ReadError, match=told):
        read_trials(
            samples / "inspect" / "flaky_5x5_two_scorers_1error.eval",
            mapping=ColumnMap(pass_if="task>=3"),
        )


def test_a_torn_file_of_results_beside_lm_eval_samples_is_named(samples, tmp_path):
    for path in (samples / "lm_eval").iterdir():
        content = path.read_bytes()
        (tmp_path / path.name).write_bytes(content[: 900 if path.suffix == ".json" else None])
    (torn,) = tmp_path.glob("results_*.json")
    told = rf"{torn.name} \(read for the model's name\).*: not valid JSON: it ends in the middle"
    with pytest.raises(ReadError, match=told):
        read_trials(next(tmp_path.glob("samples_*")))


def test_words_that_are_not_utf8_are_named_where_they_are_asked_for():
    log = (
        b'{"spec": {"completion_fns": ["m"]}}\n'
        b'{"sample_id": "a", "type": "sampling", "data": {"prompt": "caf\xe9"}}\n'
        b'{"sample_id": "a", "type": "match", "data": {"correct": true}}\n'
    )
    assert len(read_trials(log)) == 1
    with pytest.raises(ReadError, match=r"^input, line 2, field data: not text in UTF-8"):
        read_with_transcripts(log)


def test_a_name_too_long_for_a_file_is_no_file():
    with pytest.raises(ReadError, match=r"^x{199}…: (cannot be looked up|no such file)"):
        read_trials("x" * 5000)


@pytest.fixture
def locked():
    """A folder that whoever asks may know of, but not list; nor read the file in it."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        inside = Path(folder) / "locked"
        inside.mkdir()
        (inside / "runs.csv").write_bytes(b"task,passed\na,1\n")
        (inside / "runs.csv").chmod(0)
        inside.chmod(0o111)
        user = os.geteuid()
        os.seteuid(65534 if user == 0 else user)
        try:
            yield inside
        finally:
            os.seteuid(user)
            inside.chmod(0o755)


@pytest.mark.skipif(sys.platform == "win32", reason="folders are locked otherwise there")
def test_what_may_not_be_opened_is_said(locked):
    for path in (locked, locked / "runs.csv"):
        with pytest.raises(ReadError, match=rf"^{path}: cannot be opened \(Permission denied\)"):
            read_trials(path)


def test_a_path_of_the_usual_length_is_told_whole(tmp_path):
    path = tmp_path / "results of a long evening" / "and of a longer night" / "nothing.csv"
    with pytest.raises(ReadError, match=rf"^{path}: no such file or folder"):
        read_trials(path)


def test_a_trial_that_is_called_by_thousands_of_digits_is_a_trial():
    results = [
        {"task_id": "t", "trial_name": f"t.{digits}-of-2.x", "is_resolved": True}
        for digits in ("1" * 5000, "2" * 5000)
    ]
    log = json.dumps({"results": results, "pass_at_k": {}, "n_resolved": 2}).encode()
    assert read_trials(log).trial.tolist() == [0, 1]
    cases = [{"name": f"t [{'1' * 5000}/2]", "assertions": {"x": {"value": True}}}]
    report = json.dumps({"name": "e", "cases": cases, "failures": []}).encode()
    assert len(read_trials(report)) == 1


@pytest.mark.parametrize("count", ["999999999", "9" * 5000])
def test_a_test_that_claims_any_number_of_repeats_is_read_as_it_stands(count):
    xml = f'<testsuite tests="{count}"><testcase name="t[1-{count}]"/></testsuite>'
    assert read_trials(xml.encode()).tasks == (f"t[1-{count}]",)


@pytest.mark.parametrize("as_file", [True, False])
def test_an_archive_whose_directory_points_anywhere_is_damaged(samples, tmp_path, as_file):
    log = samples / "inspect" / "flaky_5x5_two_scorers_1error.eval"
    content = bytearray(log.read_bytes())
    at = content.rindex(b"PK\5\6")
    content[at + 16 : at + 20] = b"\xf0\xff\xff\xff"  # so that all members begin before the file
    path = tmp_path / "log.eval"
    path.write_bytes(content)
    told = r", header\.json: a damaged .* \(it is not where the directory says\); copy it again"
    with pytest.raises(ReadError, match=told):
        read_trials(path if as_file else bytes(content))


@pytest.mark.parametrize("words", [0, 1])
def test_an_archive_that_promises_wide_sizes_and_has_none_is_damaged(tmp_path, words):
    path = tmp_path / "log.eval"
    member = zipfile.ZipInfo("header.json")
    member.extra = struct.pack("<HH", 2, 8 * words) + bytes(8 * words)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, "{}")
    content = bytearray(path.read_bytes())
    at = content.index(b"PK\1\2")
    content[at + 20 : at + 28] = b"\xff" * 8  # both sizes stand in the field of zip64
    content[at + 46 + len("header.json")] = 1  # which is this, but too short for them
    path.write_bytes(content)
    told = r"^log\.eval, header\.json: a damaged .* \(its directory is broken\)"
    with path.open("rb") as stream, pytest.raises(ReadError, match=told):
        Archive(path.name, stream, Limits()).read("header.json")


def test_a_member_that_declares_gigabytes_is_refused_before_any_byte_of_it_is_read(tmp_path):
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", "{}")
    content = bytearray(path.read_bytes())
    at = content.index(b"PK\1\2")
    content[at + 24 : at + 28] = (2**31).to_bytes(4, "little")
    path.write_bytes(content)
    told = r"log.eval, header.json: holds 2,147,483,648 bytes or more, above max_bytes = 1,000,000"
    with path.open("rb") as stream, pytest.raises(ReadError, match=told):
        Archive(path.name, stream, Limits(max_bytes=10**6)).read("header.json")


LONG = "x" * 5000
SPAN = {"context": {"trace_id": "t", "span_id": LONG}, "name": LONG, "parent_id": None}
MANY = {f"{LONG}{i}": 1 for i in range(40)}


def as_json(value):
    return json.dumps(value)


@pytest.mark.parametrize(
    ("content", "mapping"),
    [
        (",".join(MANY) + "\n", None),
        (f"task,passed\na,{LONG}\n", None),
        (f"task,passed,{LONG}\na,1,2\n", ColumnMap(task="who")),
        (f"task,{LONG}\na,maybe\n", ColumnMap(passed=LONG)),
        (f"task,passed,score\na,1,{'1,111' + ',111' * 2000}\n", None),
        (f'task;passed;score\na;1;"{"1" * 5000},5"\nb;1;x\n', None),
        (f"task,trial,passed\n{LONG},1,1\n{LONG},1,1\n", None),
        (f"{LONG},{LONG},task,passed\n1,2,a,1\n", None),
        (f'"[p] prompt",Status,Score\nhi,PASS,{LONG}\n', None),
        (as_json({"runs": [{"task": "a", "passed": 1}, LONG]}), None),
        (as_json({LONG: [{"task": "a", "passed": 1}, 3]}), None),
        (as_json([{"task": "a", "passed": {LONG: 1}}]), None),
        (as_json([{"task": "a", "passed": 1, "seed": LONG}]), None),
        (
            as_json([{"task": "a", "passed": 1, "system": name} for name in MANY]),
            ColumnMap(name="n", system="system"),
        ),
        (as_json(SPAN | {"attributes": {"a": 1, LONG: 2}}), ColumnMap(task="a")),
        (as_json(SPAN | {"attributes": MANY}), None),
    ],
)
def test_no_message_is_longer_than_a_screen_whatever_the_file_holds(content, mapping):
    with pytest.raises(ReadError, match=r"^input.{20,3900}\Z"):
        read_trials(content.encode(), mapping=mapping)


@settings(max_examples=20)
@given(st.lists(st.sampled_from("abcdef"), min_size=2, max_size=6))
def test_a_header_names_each_column_once(names):
    text = ",".join(names) + "\n" + ",".join("1" * len(names)) + "\n"
    document = Document("t", path=None, data=text.encode(), limits=Limits())
    if len(set(names)) == len(names):
        assert list(table_of(document).columns) == names
        return
    with pytest.raises(ReadError, match=r"^t, line 1: the column .(, .)* occurs twice$"):
        table_of(document)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "my suite.yml",
            "name: a\ntasks:\n  - name: t\n",
            r"run it with `passhat run '.*suite.yml'`",
        ),
        ("values.yaml", "accuracy: 0.9\n", "is YAML, which holds settings or means"),
        ("agents.py", '"""Agents."""\n\nimport os\n', "is a Python program, not its results"),
        ("a.jsonl", '{"passhat":"cassette/1","sum":"77","system":"m"}\n', "is a cassette"),
    ],
)
def test_a_file_that_belongs_to_a_suite_is_called_what_it_is(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(ReadError, match=message):
        read_trials(tmp_path / name)


def test_a_folder_whose_results_are_empty_names_the_files_looked_at(tmp_path):
    (tmp_path / "empty.csv").write_text("task,passed\n")
    with pytest.raises(ReadError, match=r"holds no trial; looked at .*empty\.csv"):
        read_trials(tmp_path)


ROWS = [
    {"task": "a", "passed": True, "cost": 1.5e3, "said": [None, -1.5, {"é": 'a "quote"\n'}]},
    {"task": "a", "passed": False, "cost": 2, "said": []},
    {"task": "b", "passed": True, "cost": 10, "said": [True]},
]


@pytest.mark.parametrize("way", ["small", "streamed", "big"])
def test_a_last_line_that_ends_in_the_middle_is_left_out_with_a_note(tmp_path, monkeypatch, way):
    if way == "streamed":
        monkeypatch.setattr(document, "_SMALL", 0)
        monkeypatch.setattr(document, "_STREAMED", 10)
        monkeypatch.setattr(document, "PIECE", 4)
        first = document._first_of_many
        monkeypatch.setattr(document, "_first_of_many", lambda path: _whole_lines(first, path))
    if way == "big":
        monkeypatch.setattr(tallies, "BIG_BYTES", 1)
    lines = [json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in ROWS]
    data, path = b"".join(lines), tmp_path / "log.jsonl"
    for cut in range(len(lines[0]) + 2, len(data) + 1, 1 if way == "small" else 7):
        path.write_bytes(data[:cut])
        whole = data[:cut].count(b"\n") + data[:cut].endswith(b"}")
        read = read_tallies(path) if way == "big" else [read_trials(path).tally()]
        assert sum(one.trials for one in read) == whole
        notes = " ".join(note for source in read[0].sources for note in source.notes)
        torn = not data[:cut].endswith((b"}", b"\n"))
        assert ("its last line ends in the middle and is left out" in notes) == torn, data[:cut]


def _whole_lines(first, path):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(document, "_STREAMED", 2**20)
        patched.setattr(document, "PIECE", 2**20)
        return first(path)


@pytest.mark.parametrize(
    "last", [b'{"task": "b", "pas\n', b'{"task": "b"} x', b'{"task": b}', b"Traceback (most recent"]
)
def test_a_last_line_that_is_wrong_and_not_cut_off_is_refused_as_any_other(tmp_path, last):
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"task": "a", "passed": true}\n' + last)
    with pytest.raises(ReadError, match=r"log\.jsonl, line 2"):
        read_trials(path)


def test_a_folder_of_logs_is_read_while_one_of_them_is_being_written(tmp_path):
    for n in range(6):
        (tmp_path / f"{n}.jsonl").write_text(f'{{"task": "t{n}", "passed": true}}\n' * 2)
    with (tmp_path / "3.jsonl").open("a") as log:
        log.write('{"task": "t3", "pas')
    trials = read_trials(tmp_path, mapping=ColumnMap(name="agent"))
    assert len(trials) == 12
    (note,) = [n for one in trials.sources for n in one.notes if "in the middle" in n]
    assert note.startswith("3.jsonl: its last line"), note
