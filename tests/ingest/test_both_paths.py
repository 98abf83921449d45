"""A table is understood by the same rules whether it is read as rows or counted by an engine."""

import csv
import json

import pyarrow
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from passhat.errors import ReadError
from passhat.ingest import read_tallies, read_trials, tallies

WORDS = (("pass", "fail", "error"), ("P", "F"), ("C", "I", "P", "N"), ("C", "I"), (1, 0))
TASKS = ("refund", "refund #1", "refund #2", "refund #4", "booking #1", "booking #2")


@st.composite
def tables(draw):
    """Rows with a verdict or a score, and at times columns that give another meaning to them."""
    words = draw(st.sampled_from(WORDS))
    columns = {"task": st.sampled_from(draw(st.lists(st.sampled_from(TASKS), min_size=1)))}
    if draw(st.booleans()):
        columns["outcome"] = st.sampled_from(words)
    else:
        grades = draw(st.sampled_from([(0.0, 0.25, 1.0), (0.25, 0.5), ("C", "I", "P")]))
        columns["score"] = st.sampled_from(grades)
    extra = {
        "agent": st.sampled_from(["one", "two"]),
        "error": st.sampled_from(["", "Timeout"]),
        "num_trials": st.sampled_from(draw(st.sampled_from([(1,), (1, 5)]))),
        "pass_rate": st.sampled_from(draw(st.sampled_from([(0, 1), (0, 0.5, 1)]))),
        "cost": st.sampled_from([0.5, 2.0]),
        "model": st.sampled_from(["x", "y"]),
        "condition": st.sampled_from(["dry", "wet"]),
        "question": st.sampled_from(["who?", "when?"]),
    }
    for name in draw(st.lists(st.sampled_from(sorted(extra)), unique=True, max_size=3)):
        columns[name] = extra[name]
    return draw(st.lists(st.fixed_dictionaries(columns), min_size=1, max_size=12))


ABOVE = (
    "",
    "sep=,\n",
    "# made by hand\n",
    "# by hand, today\n#2\n",
    "sep=,\n# a note\n",
    "Results,,\n\n",
)


def write(path, rows, above=""):
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path
    if path.suffix == ".parquet":
        parquet.write_table(pyarrow.Table.from_pylist(rows), path)
        return path
    with path.open("w", newline="") as stream:
        stream.write(above)
        writer = csv.DictWriter(stream, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def counted(tallies_of_systems):
    """Passes, failures, errors and sums of scores by system and task, in whatever order."""
    found = {}
    for tally in tallies_of_systems:
        columns = (
            tally.passed,
            tally.failed,
            tally.errored,
            tally.score_total,
            tally.score_squares,
        )
        rows = zip(*(column.tolist() for column in columns), strict=True)
        found |= {(tally.system, task): row for task, row in zip(tally.tasks, rows, strict=True)}
    return found


def outcome_of(read):
    try:
        return counted(read())
    except ReadError:
        return "refused"


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(rows=tables(), above=st.sampled_from(ABOVE))
def test_rows_and_engines_count_a_table_alike(tmp_path, monkeypatch, ending, rows, above):
    path = write(tmp_path / f"table{ending}", rows, above)

    def by_rows():
        trials = read_trials(path)
        return [trials.tally(system) for system in trials.systems]

    with monkeypatch.context() as patched:
        patched.setattr(tallies, "BIG_BYTES", 1)
        patched.setattr(tallies, "BIG_ROWS", 1)
        by_engine = outcome_of(lambda: read_tallies(path))
    assert by_engine == outcome_of(by_rows)


@pytest.mark.parametrize(
    ("rows", "note"),
    [
        ([{"task": f"refund #{n}", "passed": n % 2} for n in (1, 2)], "were read as trials of one"),
        ([{"task": "a", "outcome": word} for word in "CIPN"], None),
    ],
)
def test_an_engine_is_asked_and_says_what_rows_say(tmp_path, monkeypatch, rows, note):
    path = write(tmp_path / "table.csv", rows)
    expected = counted([read_trials(path).tally()])
    monkeypatch.setattr(tallies, "BIG_BYTES", 1)
    found = tallies.count_big(path)
    assert counted(found) == expected
    if note:
        assert any(note in one for one in found[0].sources[0].notes)


def test_means_are_refused_in_the_same_words_by_rows_and_by_an_engine(tmp_path, monkeypatch):
    rows = [
        {"model": model, "task": f"t{n}", "score": n / 8} for model in "xy" for n in range(1, 8)
    ]
    path = write(tmp_path / "means.csv", rows)
    with pytest.raises(ReadError, match="are they means") as by_rows:
        read_trials(path)
    monkeypatch.setattr(tallies, "BIG_BYTES", 1)
    with pytest.raises(ReadError, match="are they means") as by_engine:
        read_tallies(path)
    assert str(by_engine.value) == str(by_rows.value)
    write(path, [*rows, {"model": "y", "task": "t7", "score": 0.5}])
    assert counted(read_tallies(path)) == counted(read_trials(path).tally(one) for one in "xy")
