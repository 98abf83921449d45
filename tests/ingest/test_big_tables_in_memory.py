"""Big tables are decoded column by column, and say the same as small ones."""

import csv
import hashlib
import io
import json
import sys
import tracemalloc
from itertools import islice
from pathlib import Path

import pytest

from passhat.errors import ReadError
from passhat.ingest import ColumnMap, Limits, read_trials, read_with_transcripts, rows
from passhat.ingest import document as document_module
from passhat.ingest.document import Document
from passhat.ingest.readers import readers_of
from passhat.records.columns import USUAL

ROWS = [
    {
        "task": f"t{number % 3}",
        "trial": number // 3,
        "passed": number % 2 > 0,
        "output": f"o{number}",
    }
    for number in range(9)
]
ROWS[4]["note"] = {"deep": {"score": 0.5}}


def as_csv(found):
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=["task", "trial", "passed", "output"], restval="")
    writer.writeheader()
    writer.writerows({key: row[key] for key in writer.fieldnames} for row in found)
    return text.getvalue()


SHAPES = {
    "array": json.dumps,
    "lines": lambda found: "\n".join(map(json.dumps, found)),
    "object": lambda found: json.dumps({"agent": "me", "runs": found}),
    "csv": as_csv,
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_big_table_says_the_same_as_a_small_one(monkeypatch, shape):
    data = SHAPES[shape](ROWS).encode()
    small, said = read_with_transcripts(data)
    monkeypatch.setattr(rows, "_BIG", 0)
    big, also = read_with_transcripts(data)
    assert big.to_columns() == small.to_columns()
    assert big.sources == small.sources
    assert dict(also) == dict(said)
    assert len(said) == len(ROWS)


@pytest.mark.parametrize("shape", ["array", "lines", "object"])
def test_a_path_leads_into_the_cells_of_a_big_table(monkeypatch, shape):
    monkeypatch.setattr(rows, "_BIG", 0)
    mapping = ColumnMap(passed="output", pass_if="output==o4")
    trials = read_trials(SHAPES[shape](ROWS).encode(), mapping=mapping)
    assert trials.outcome.tolist().count(1) == 1
    with pytest.raises(ReadError, match=r'no column "nothing\.deep"'):
        read_trials(SHAPES[shape](ROWS).encode(), mapping=ColumnMap(score="nothing.deep"))


@pytest.mark.parametrize("shape", SHAPES)
def test_the_words_of_a_log_are_held_once_beside_the_log(tmp_path, shape):
    word = "The agent wrote a note. " * 400
    found = [row | {"output": word} for row in ROWS] * 60
    path = tmp_path / f"log.{'csv' if shape == 'csv' else 'jsonl' if shape == 'lines' else 'json'}"
    path.write_text(SHAPES[shape]([row | {"trial": n} for n, row in enumerate(found)]))
    size = path.stat().st_size
    read_trials(path)  # what is loaded on first use is no part of it
    tracemalloc.start()
    try:
        read_with_transcripts(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2.5 * size


SAMPLES = Path(__file__).parents[1] / "samples"
EXPORTS = {
    "braintrust": "braintrust/experiment.jsonl",
    "langfuse": "langfuse_v3/scores.json",
    "phoenix": "phoenix/experiment.json",
    "weave": "weave/calls.jsonl",
}


def cells_asked_for(document):
    """How often the cells of a whole column are asked for while a document is read."""
    counted = 0

    def count(frame, event, _):
        nonlocal counted
        counted += event == "call" and frame.f_code is rows.Table.cells.__code__

    reader = next(one for one in readers_of(document) if one.recognises(document))
    sys.setprofile(count)
    try:
        reader.read(document, USUAL)
    finally:
        sys.setprofile(None)
    return reader.name, counted


@pytest.mark.parametrize("tool", EXPORTS)
def test_a_big_export_is_looked_through_as_often_however_many_rows_it_has(monkeypatch, tool):
    monkeypatch.setattr(rows, "_BIG", 0)
    path = SAMPLES / EXPORTS[tool]
    text = path.read_text()
    found = [json.loads(line) for line in text.splitlines()] if path.suffix == ".jsonl" else None
    found = json.loads(text) if found is None else found
    once, often = (
        Document("export", path=None, data=json.dumps(entries).encode(), limits=Limits())
        for entries in (found, _repeated(found))
    )
    assert cells_asked_for(once) == cells_asked_for(often)
    assert cells_asked_for(once)[0] == tool
    assert cells_asked_for(once)[1] > 0


def _repeated(found):
    """The rows five times, also where they are in an object."""
    if isinstance(found, list):
        return found * 5
    return {key: value * 5 if isinstance(value, list) else value for key, value in found.items()}


def _talk(rows_of, word):
    return [
        {
            "task": f"t{n % 5}",
            "trial": n // 5,
            "passed": n % 3 > 0,
            "started": f"2026-11-17T02:40:{n % 60:02}Z",
            "messages": [{"role": "user", "content": f"{n} {word}"}],
            "end": {"state": "done", "log": word},
        }
        for n in range(rows_of)
    ]


@pytest.mark.parametrize("shape", ["lines", "array"])
def test_columns_that_are_not_kept_give_the_same_trials_and_transcripts(
    tmp_path, monkeypatch, shape
):
    path = tmp_path / ("log.jsonl" if shape == "lines" else "log.json")
    path.write_text(SHAPES[shape](_talk(60, "word " * 40)))
    mapping = ColumnMap(pass_if="end.state==done")
    kept = [read_with_transcripts(path), read_with_transcripts(path, mapping=mapping)]
    monkeypatch.setattr(document_module, "_STREAMED", 0)
    monkeypatch.setattr(document_module, "_SMALL", 0)
    monkeypatch.setattr(rows, "_BIG", 0)
    monkeypatch.setattr(rows, "_MOST_KEPT", 100)
    table = rows.table_of(Document(str(path), path=path, data=None, limits=Limits()))
    again = [name for name, cells in table.columns.items() if isinstance(cells, rows._ReadAgain)]
    assert again == ["messages", "end"]
    for (trials, said), one in zip(kept, (None, mapping), strict=True):
        lean, lean_said = read_with_transcripts(path, mapping=one)
        assert lean.outcome.tolist() == trials.outcome.tolist()
        assert lean.task.texts() == trials.task.texts()
        assert dict(lean_said) == dict(said)
        assert [source.sha256 for source in lean.sources] == [s.sha256 for s in trials.sources]


def test_memory_does_not_grow_with_transcripts_that_nobody_asks_for(tmp_path, monkeypatch):
    monkeypatch.setattr(document_module, "_STREAMED", 2**20)
    monkeypatch.setattr(rows, "_MOST_KEPT", 2**18)
    peaks = []
    for words in (400, 8_000):
        path = tmp_path / f"{words}.jsonl"
        path.write_text(SHAPES["lines"](_talk(1_000, "word " * words)))
        read_trials(path)
        tracemalloc.start()
        try:
            read_trials(path)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] < 16 * 2**20 < path.stat().st_size / 4


def test_a_log_that_is_written_to_while_it_is_read_ends_where_it_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(document_module, "_STREAMED", 0)
    monkeypatch.setattr(document_module, "_SMALL", 0)
    path = tmp_path / "log.jsonl"
    path.write_text(SHAPES["lines"](_talk(20, "word")) + "\n")
    read = hashlib.sha256(path.read_bytes()).hexdigest()
    document = Document(str(path), path=path, data=None, limits=Limits())
    with path.open("a") as stream:
        stream.write(SHAPES["lines"](_talk(3, "more")))
    assert len(rows.table_of(document)) == 20
    assert document.sha256 == read


@pytest.mark.parametrize("end", ["", "\n", '\n{"task": "t'])
def test_the_hash_of_lines_is_that_of_the_file_whether_all_some_or_none_were_read(
    tmp_path, monkeypatch, end
):
    monkeypatch.setattr(document_module, "_STREAMED", 0)
    monkeypatch.setattr(document_module, "_SMALL", 0)
    path = tmp_path / "log.jsonl"
    path.write_text(SHAPES["lines"](_talk(20, "word")) + end)
    for count in (0, 5, None):
        document = Document(str(path), path=path, data=None, limits=Limits())
        assert len(list(islice(document.lines(dict), count))) == (20 if count is None else count)
        assert document.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("shape", ["lines", "array"])
def test_keys_without_number_are_no_columns(monkeypatch, shape):
    monkeypatch.setattr(rows, "_BIG", 0)
    monkeypatch.setattr(rows, "_MOST_COLUMNS", 50)
    wide = [{"task": "a", "passed": True, f"key {n}": 1, f"id {n}": 2} for n in range(40)]
    with pytest.raises(ReadError, match="more than 50 columns; give a table of a row per trial"):
        read_trials(SHAPES[shape](wide).encode())


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "json"])
def test_a_small_file_of_too_many_columns_is_refused_before_they_are_looked_at(
    tmp_path, monkeypatch, ending
):
    monkeypatch.setattr(rows, "_MOST_COLUMNS", 50)
    row = {"task": "a", "passed": 1} | {f"c{place}": 1 for place in range(60)}
    separator = "\t" if ending == "tsv" else ","
    table = "\n".join(separator.join(map(str, line)) for line in (row, row.values()))
    texts = {"jsonl": json.dumps(row) + "\n", "json": json.dumps([row])}
    path = tmp_path / f"wide.{ending}"
    path.write_text(texts.get(ending, table))
    with pytest.raises(ReadError, match="more than 50 columns; give a table of a row per trial"):
        read_trials(path)
