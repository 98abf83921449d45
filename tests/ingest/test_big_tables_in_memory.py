"""Big tables are decoded column by column, and say the same as small ones."""

import csv
import io
import json
import sys
import tracemalloc
from pathlib import Path

import pytest

from passhat.errors import ReadError
from passhat.ingest import ColumnMap, Limits, read_trials, read_with_transcripts, rows
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


def decoded_columns(document):
    """How often a whole column is decoded while a document is read."""
    counted = 0

    def count(frame, event, _):
        nonlocal counted
        counted += event == "call" and frame.f_code is rows._Undecoded.decoded.__code__

    reader = next(one for one in readers_of(document) if one.recognises(document))
    sys.setprofile(count)
    try:
        reader.read(document, USUAL)
    finally:
        sys.setprofile(None)
    return reader.name, counted


@pytest.mark.parametrize("tool", EXPORTS)
def test_a_big_export_is_decoded_as_often_however_many_rows_it_has(monkeypatch, tool):
    monkeypatch.setattr(rows, "_BIG", 0)
    path = SAMPLES / EXPORTS[tool]
    text = path.read_text()
    found = [json.loads(line) for line in text.splitlines()] if path.suffix == ".jsonl" else None
    found = json.loads(text) if found is None else found
    once, often = (
        Document("export", path=None, data=json.dumps(entries).encode(), limits=Limits())
        for entries in (found, _repeated(found))
    )
    assert decoded_columns(once) == decoded_columns(often)
    assert decoded_columns(once)[0] == tool
    assert decoded_columns(once)[1] > 0


def _repeated(found):
    """The rows five times, also where they are in an object."""
    if isinstance(found, list):
        return found * 5
    return {key: value * 5 if isinstance(value, list) else value for key, value in found.items()}
