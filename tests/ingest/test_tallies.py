"""Big tables are counted by an engine; what comes out is what the rows would have given."""

import numpy as np
import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passhat.analysis.reports.measure import measure
from passhat.errors import ReadError
from passhat.ingest import ColumnMap, count_big, query_engines, read_tallies, read_trials, tallies

ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "system": st.sampled_from(["a", "b"]),
            "task": st.sampled_from(["t1", "t 2", "t'3"]),
            "passed": st.sampled_from(["pass", "fail", "error"]),
            "score": st.sampled_from([None, 0.0, 0.25, 1.0]),
            "seconds": st.sampled_from([None, 0.5, 2.0]),
            "error": st.sampled_from([None, "boom", ""]),
        }
    ),
    min_size=1,
    max_size=30,
)


@pytest.fixture
def streamed(monkeypatch):
    """Every table is big enough to be counted by an engine."""
    monkeypatch.setattr(tallies, "BIG_BYTES", 1)
    monkeypatch.setattr(tallies, "BIG_ROWS", 1)


@pytest.fixture(params=["polars", "duckdb"])
def engine(request, monkeypatch):
    if request.param == "duckdb":
        pytest.importorskip("duckdb", reason="DuckDB is not installed: polars stands in")
    else:
        monkeypatch.setattr(query_engines, "has_duckdb", lambda: False)


def write(rows, path):
    frame = polars.DataFrame(rows, infer_schema_length=None)
    if path.suffix == ".csv":
        frame.write_csv(path)
    elif path.suffix == ".jsonl":
        frame.write_ndjson(path)
    else:
        frame.write_parquet(path)
    return path


def assert_same(found, expected):
    order = np.argsort(expected.tasks)
    assert found.tasks == tuple(np.array(expected.tasks)[order].tolist())
    for name in ("passed", "failed", "errored", "score_total", "score_squares"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name)[order])
    for name, sums in found.features.items():
        for part in ("count", "total", "squares"):
            wanted = getattr(expected.features[name], part)[:, order]
            np.testing.assert_allclose(getattr(sums, part), wanted)


@pytest.mark.usefixtures("streamed", "engine")
@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
@pytest.mark.parametrize("name", ["t[1]", "t?", "t*", "t'1"])
def test_a_name_is_a_name_and_no_pattern(name, ending, tmp_path):
    write([{"task": "a", "passed": 1}] * 3, tmp_path / f"t1{ending}")
    path = write([{"task": "a", "passed": 0}] * 2, tmp_path / f"{name}{ending}")
    (found,) = read_tallies(path)
    assert (found.passed.tolist(), found.failed.tolist()) == ([0], [2])


@pytest.mark.usefixtures("streamed", "engine")
@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_an_engine_counts_as_the_rows_do(ending, tmp_path):
    @given(ROWS)
    @settings(max_examples=15)
    def check(rows):
        for number, row in enumerate(rows):
            row["trial"] = number
        rows[0] |= {"score": 0.5, "seconds": 1.5, "error": "late"}  # settles the columns' types
        path = write(rows, tmp_path / f"t{ending}")
        trials = read_trials(path)
        found = read_tallies(path)
        assert [tally.system for tally in found] == sorted(trials.systems)
        for tally in found:
            assert_same(tally, trials.tally(tally.system))

    check()


@pytest.mark.usefixtures("streamed", "engine")
@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
@pytest.mark.parametrize("first", [0, 1])
def test_a_trial_that_is_there_twice_is_found_even_where_another_is_missing(
    ending, first, tmp_path
):
    def rows(numbers):
        return [{"task": "t", "trial": number + first, "passed": True} for number in numbers]

    path = write(rows(range(12)), tmp_path / f"t{ending}")
    assert read_tallies(path)[0].passed.tolist() == [12]
    path = write(rows([0, 1, 2, 5, 9]), tmp_path / f"gaps{ending}")
    assert read_tallies(path)[0].passed.tolist() == [5]
    # The same number of rows, the same sum, and the same sum of squares as 0..8.
    fooling = write(rows([0, 2, 2, 3, 3, 4, 7, 7, 8]), tmp_path / f"twice{ending}")
    with pytest.raises(ReadError, match=r"trials occur more than once: t / \d"):
        read_tallies(fooling)
    assert read_tallies(fooling, duplicates="keep")[0].passed.tolist() == [9]


@pytest.mark.usefixtures("streamed", "engine")
def test_trials_by_name_are_compared_one_by_one(tmp_path):
    rows = [{"task": "t", "run": name, "passed": 1} for name in ("x", "y", "x")]
    with pytest.raises(ReadError, match=r"trials occur more than once: t / x\."):
        read_tallies(write(rows, tmp_path / "t.csv"))
    assert read_tallies(write(rows[:2], tmp_path / "t.csv"))[0].passed.tolist() == [2]


@pytest.mark.usefixtures("streamed", "engine")
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_what_passes_can_be_said_for_big_tables_too(ending, tmp_path):
    rows = [{"case": "t", "score": score, "state": "done"} for score in (0.2, 0.8, 0.9)]
    path = write(rows, tmp_path / f"t{ending}")
    mapping = ColumnMap(task="case", pass_if="score>=0.8 and state==Done")
    tally = read_tallies(path, mapping=mapping)[0]
    assert (tally.passed.tolist(), tally.failed.tolist()) == ([2], [1])
    assert tally.score_total.tolist() == pytest.approx([1.9])


@pytest.mark.usefixtures("streamed", "engine")
def test_faults_of_big_tables_are_named(tmp_path):
    def read(rows):
        return read_tallies(write(rows, tmp_path / "t.csv"))

    with pytest.raises(ReadError, match=r"passed: 'maybe', in 2 rows, does not say .* holds"):
        read([{"task": "t", "passed": word} for word in ("yes", "maybe", "maybe")])
    with pytest.raises(ReadError, match=r'"score": scores must lie in \[0, 1\], but reach from'):
        read([{"task": "t", "score": 3.5}])
    with pytest.raises(ReadError, match=r'"task": some rows name no task'):
        read([{"task": name, "passed": 1, "note": "x"} for name in ("t", None)])
    with pytest.raises(ReadError, match=r'"cost": must hold numbers for cost'):
        read([{"task": "t", "passed": 1, "cost": "cheap"}])
    with pytest.raises(ReadError, match=r"passed: some rows are empty"):
        read([{"task": "t", "passed": value, "note": "x"} for value in (1, None)])


@pytest.mark.usefixtures("streamed", "engine")
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_counted_table_says_that_gates_ended_its_trials(ending, tmp_path):
    rows = [{"task": "t", "passed": 1, "ended": word} for word in ("early", "by gates")]
    ((source,),) = (t.sources for t in count_big(write(rows, tmp_path / f"t.{ending}")))
    assert (source.ended, "left out" in dict(source.read_as)) == ("early", False)
    rows[0]["ended"] = "2026-01-01"
    ((source,),) = (t.sources for t in count_big(write(rows, tmp_path / f"u.{ending}")))
    assert (source.ended, dict(source.read_as)["left out"]) == (None, "column ended")


@pytest.mark.usefixtures("streamed")
def test_other_formats_and_choices_that_engines_lack_are_read_row_by_row(samples, tmp_path):
    log = read_tallies(samples / "promptfoo" / "out.jsonl")
    assert log[0].passed.sum() == 17
    rows = [{"suite": "s", "task": "t", "passed": 1}]
    joined = ColumnMap(task="suite,task")
    assert read_tallies(write(rows, tmp_path / "t.csv"), mapping=joined)[0].tasks == ("s/t",)


def test_only_single_plain_tables_are_big(tmp_path, samples, monkeypatch):
    small = write([{"task": "t", "passed": 1}], tmp_path / "t.parquet")
    assert count_big(small) is None
    assert count_big([small, small]) is None
    monkeypatch.setattr(tallies, "BIG_BYTES", 1)
    monkeypatch.setattr(tallies, "BIG_ROWS", 1)
    assert count_big(small)[0].passed.tolist() == [1]
    assert count_big(b"task,passed\n") is None
    assert count_big("-") is None
    assert count_big(samples / "inspect" / "flaky_5x5_two_scorers_1error.eval") is None
    assert count_big(samples / "promptfoo" / "out.jsonl") is None
    unusual = tmp_path / "u.csv"
    unusual.write_text("question,right\nq,1\n")
    assert count_big(unusual) is None
    mapping = ColumnMap(task="question", passed="right")
    assert count_big(unusual, mapping=mapping)[0].tasks == ("q",)


def test_a_small_table_gives_the_tallies_of_its_trials():
    table = b"agent,task,passed\nb,t,1\na,t,0\n"
    assert [tally.system for tally in read_tallies(table)] == ["b", "a"]


@pytest.mark.usefixtures("streamed", "engine")
def test_big_tables_take_the_users_name_and_judge_grades_beyond_one(tmp_path):
    rows = [{"task": "t", "score": 10 * grade} for grade in (3, 8, 9)]
    path = write(rows, tmp_path / "nightly.csv")
    mapping = ColumnMap(pass_if="score>=80", name="gpt-5")
    tally = read_tallies(path, mapping=mapping)[0]
    assert (tally.system, tally.passed.tolist(), tally.score_total.tolist()) == ("gpt-5", [2], [2])
    two = write([{"agent": name, "task": "t", "passed": 1} for name in "ab"], tmp_path / "two.csv")
    with pytest.raises(ReadError, match=r'two.csv: holds 2 agents \(a, b\); one name, "x"'):
        read_tallies(two, mapping=ColumnMap(name="x"))


@pytest.mark.usefixtures("streamed", "engine")
@pytest.mark.parametrize("kind", [bool, int, float])
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_outcomes_of_zero_and_one_are_counted_alike_whatever_their_type(kind, ending, tmp_path):
    passes = [1, 0, 1, 1, 0, 0]
    rows = [
        {"agent": "ab"[i % 2], "task": f"t{i % 3}", "trial": 0, "passed": kind(passed)}
        for i, passed in enumerate(passes)
    ]
    path = write(rows, tmp_path / f"t{ending}")
    trials = read_trials(path)
    for tally in read_tallies(path):
        assert_same(tally, trials.tally(tally.system))
    odd = write([*rows, rows[0] | {"trial": 1, "passed": kind(2)}], tmp_path / f"odd{ending}")
    if kind is not bool:
        with pytest.raises(ReadError, match=r"passed: 2.*, in 1 row, does not say"):
            read_tallies(odd)


@pytest.mark.usefixtures("streamed", "engine")
def test_what_is_not_zero_or_one_is_not_added_up(tmp_path):
    def read(*values, kind=None):
        path = tmp_path / "t.parquet"
        frame = polars.DataFrame({"task": ["t"] * len(values), "passed": list(values)})
        (frame if kind is None else frame.cast({"passed": kind})).write_parquet(path)
        return [tally.passed.tolist() for tally in read_tallies(path)]

    assert read(1, 0, 1) == [[2]]
    assert read(1, 0, 1, kind=polars.Int8) == read(1, 0, 1, kind=polars.UInt64) == [[2]]
    assert read(1.0, 0.0) == [[1]]
    assert read(True, True) == [[2]]
    with pytest.raises(ReadError, match=r"passed: 0.5, in 1 row"):
        read(0.0, 0.5, 1.0)
    with pytest.raises(ReadError, match=r"passed: Decimal.*does not say whether"):
        read(0.0, 0.5, 1.0, kind=polars.Decimal(5, 2))
    with pytest.raises(ReadError, match=r"passed: some rows are empty"):
        read(1, None)
    with pytest.raises(ReadError, match=r"passed: some rows are empty"):
        read(True, None)


# What the columns are, and how the user reads them; each says something else about the table.
NOTED = {
    "pooled": ({"task": "t", "passed": True, "colour": "red"}, ColumnMap()),
    "numbered": ({"task": "t", "passed": True, "colour": "red", "trial": 0}, ColumnMap()),
    "chosen": ({"question": "t", "ok": True, "size": 2}, ColumnMap(task="question", passed="ok")),
    "scored": ({"task": "t", "score": 1.0, "note": "x"}, ColumnMap()),
    "judged": ({"task": "t", "score": 7.5}, ColumnMap(pass_if="score>=5")),
    "plain": ({"system": "a", "task": "t", "trial": 0, "passed": True}, ColumnMap()),
}


@pytest.mark.usefixtures("streamed", "engine")
@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
@pytest.mark.parametrize("kind", NOTED)
def test_an_engine_notes_what_the_rows_would_have_noted(kind, ending, tmp_path):
    row, mapping = NOTED[kind]
    rows = [row | ({"trial": i} if "trial" in row else {}) for i in range(3)]
    path = write(rows, tmp_path / f"t{ending}")
    (small,) = read_trials(path, mapping=mapping).sources
    (tally,) = read_tallies(path, mapping=mapping)
    (big,) = tally.sources
    assert (big.name, big.format, big.notes) == (small.name, small.format, small.notes)
    assert bool(small.notes) is (kind not in ("plain", "numbered"))


@pytest.mark.usefixtures("streamed", "engine")
@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_a_report_from_counts_has_the_numbers_and_the_notes_of_one_from_rows(ending, tmp_path):
    rows = [
        {"task": f"t{i % 4}", "passed": i % 3 > 0, "colour": "red", "score": (i % 3) / 2}
        for i in range(24)
    ]
    path = write(rows, tmp_path / f"t{ending}")
    small, big = measure(read_trials(path)), measure(read_tallies(path))
    assert big.system().metrics == small.system().metrics
    assert [row.rate for row in big.system().tasks] == [row.rate for row in small.system().tasks]
    counted, *notes = big.notes
    assert counted.startswith("read as counts per task")
    assert tuple(notes) == small.notes
    assert "columns not used: colour" in notes[0]
    assert [source.name for source in big.provenance.sources] == [str(path)]


@pytest.mark.usefixtures("streamed", "engine")
def test_passhats_own_file_has_no_columns_left_aside(tmp_path):
    path = tmp_path / "own.jsonl"
    path.write_text('{"schema":"passhat.trials/1"}\n' + '{"task":"t","passed":true,"x":1}\n' * 2)
    assert read_trials(path).sources[0].notes == ()
    assert read_tallies(path)[0].sources[0].notes == ()
