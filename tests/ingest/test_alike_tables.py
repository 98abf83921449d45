"""Small tables of one shape are read together, and nothing but the time it takes shows that."""

import csv
import io
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from passhat.errors import ReadError
from passhat.ingest import Limits, assemble, read, read_trials
from passhat.ingest.document import Document
from passhat.records.columns import ColumnMap

CELLS = {
    "task": ["a", "b", "a #1", "a #2", "", " a ", "7"],
    "task_id": ["x", "y", "y"],
    "system": ["m", "n", "", "You are a helpful assistant. Be brief."],
    "run": ["0", "1", "2", "run-1", "run-2", "", "first"],
    "passed": ["true", "false", "P", "F", "C", "I", "1", "0", "", "maybe"],
    "outcome": ["pass", "fail", "error", "p"],
    "score": ["0", "1", "0.5", "0,5", "1,5", "66%", "100%", "C", "P", "7", "", "x"],
    "cost": ["0.1", "$0.1", "€2", "1,5", "", "-1"],
    "error": ["", "boom", "none"],
    "output": ["yes", "no, never", 'said "so"\nand left'],
    "num_trials": ["1", "5"],
}
MAPPINGS = [
    ColumnMap(),
    ColumnMap(name="mine"),
    ColumnMap(system=""),
    ColumnMap(trial=""),
    ColumnMap(pass_if="score>=0.5"),
    ColumnMap(task="output"),
    ColumnMap(family="(.)"),
]


@st.composite
def folders(draw):
    """Files of few shapes, most of whose cells are harmless, and some of whose are not."""
    tricky = draw(st.booleans())
    shapes = draw(
        st.lists(
            st.lists(st.sampled_from(sorted(CELLS)), min_size=1, max_size=4, unique=True).map(
                lambda names: list(dict.fromkeys(["task", *names, "passed"]))
            ),
            min_size=1,
            max_size=2,
        )
    )
    return draw(
        st.lists(
            st.sampled_from(shapes).flatmap(lambda names: files(names, tricky)),
            min_size=2,
            max_size=6,
        )
    )


def files(names, tricky):
    cells = {name: st.sampled_from(CELLS[name] if tricky else CELLS[name][:2]) for name in names}
    return st.tuples(
        st.sampled_from(["csv", "semicolons", "json", "jsonl", "array"]),
        st.lists(st.fixed_dictionaries(cells), min_size=1, max_size=3),
    )


def written(kind, rows):
    """The suffix and the text of a file."""
    if kind in ("csv", "semicolons"):
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, list(rows[0]), delimiter=";" if kind == "semicolons" else ",")
        writer.writeheader()
        writer.writerows(rows)
        return "csv", text.getvalue()
    if kind == "json":
        return "json", json.dumps(rows[0] | {"messages": [{"role": "user", "content": "Hi"}]})
    if kind == "jsonl":
        return "jsonl", "\n".join(json.dumps(row) for row in rows)
    return "json", json.dumps(rows)


def put_all(folder, contents):
    for number, (kind, rows) in enumerate(contents):
        suffix, text = written(kind, rows)
        (folder / f"{number:02}.{suffix}").write_text(text, newline="")


def said_of(folder, mapping, duplicates, *, together):
    """All that is read of a folder, or the error."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(read, "MOST_BYTES", 2**16 if together else 0)
        patch.setattr(read, "FEWEST_FILES", 1)
        patch.setattr(assemble, "FEWEST_FILES", 1 if together else 10**9)
        try:
            trials = read_trials(folder, mapping=mapping, duplicates=duplicates)
        except ReadError as error:
            return str(error)
    return trials.to_columns(), trials.sources


@settings(
    max_examples=3 * settings.default.max_examples,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(folders(), st.sampled_from(MAPPINGS), st.sampled_from(["error", "keep", "last"]))
@example(
    [("csv", [{"task": "a", "passed": "P"}]), ("csv", [{"task": "b", "passed": "F"}])],
    ColumnMap(),
    "error",
)
@example(
    [
        ("csv", [{"task": "bench", "task_id": "x", "passed": "1"}]),
        ("csv", [{"task": "bench", "task_id": i, "passed": "1"} for i in "xy"]),
        ("csv", [{"task": "other", "task_id": "x", "passed": "0"}]),
    ],
    ColumnMap(),
    "keep",
)
def test_files_read_together_say_what_they_say_one_by_one(contents, mapping, duplicates):
    with tempfile.TemporaryDirectory() as folder:
        put_all(Path(folder), contents)
        alone = said_of(folder, mapping, duplicates, together=False)
        assert said_of(folder, mapping, duplicates, together=True) == alone


@pytest.mark.parametrize("kind", ["csv", "semicolons", "json", "jsonl", "array"])
def test_plain_files_of_one_shape_are_read_together(kind):
    documents = [
        Document(f"{number}.{suffix}", path=None, data=text.encode(), limits=Limits())
        for number in range(5)
        for suffix, text in [written(kind, [{"task": "a", "run": number, "passed": 1}])]
    ]
    assert len({read.shape_of(document, ColumnMap()) for document in documents} - {None}) == 1
    found = read.read_same_schema(documents, ColumnMap())
    assert [int(table.columns["trial"][0]) for table in found] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["task,passed\na,1\n"] * 3 + ["task,passed\na,1\nb\n"], "3.csv, line 3: has 1 cell"),
        (["task,passed\na,1\n"] * 3 + ["task,passed\na,1\nb,?\n"], "3.csv, line 3, column"),
        (["task,run,passed\na,1,1\n"] * 3 + ["task,run,passed\n\n,1,1\n"], "3.csv, line 3, f"),
    ],
)
def test_an_error_names_its_own_file_and_line(tmp_path, texts, message):
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.csv").write_text(text)
    with pytest.raises(ReadError, match=message):
        read_trials(tmp_path, duplicates="keep")


def test_what_is_not_utf8_is_refused_in_any_column(tmp_path):
    for number in range(6):
        (tmp_path / f"{number}.json").write_text(f'{{"task":"a","run":{number},"passed":1,"x":""}}')
    (tmp_path / "6.json").write_bytes(b'{"task":"a","run":6,"passed":1,"x":"\xff"}')
    with pytest.raises(ReadError, match=r"6\.json: not text in UTF-8"):
        read_trials(tmp_path)


def test_what_is_nested_too_deeply_is_refused(tmp_path):
    deep = "[" * 5000 + "]" * 5000
    for number in range(6):
        (tmp_path / f"{number}.json").write_text(f'{{"task":"a","run":{number},"passed":1,"x":1}}')
    (tmp_path / "6.json").write_text(f'{{"task":"a","run":6,"passed":1,"x":{deep}}}')
    trials = read_trials(tmp_path)
    assert len(trials) == 6
    assert "left out: 6.json: nested too deeply to be a result file" in trials.sources[0].notes
