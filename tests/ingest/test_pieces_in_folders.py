"""Files without a system of their own: pieces of one system, its runs, or systems side by side."""

import pytest

from passhat.errors import ReadError
from passhat.ingest import read_trials
from passhat.records.columns import ColumnMap

HEADER = "task,run,passed\n"


def put(folder, files):
    for name, rows in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(rows)
    return folder


def in_pieces(names):
    """A run of each of three tasks a file, by their names."""
    return {
        name: HEADER + "".join(f"{task},{number},1\n" for task in "abc")
        for number, name in enumerate(names)
    }


def read(folder, **options):
    return read_trials(folder, mapping=ColumnMap(**options))


def runs_of(trials):
    """How many runs each task has, in the order of the tasks."""
    return [int(runs) for runs in (trials.tally().passed + trials.tally().failed)]


@pytest.fixture
def agent(tmp_path):
    return tmp_path / "agent"


@pytest.mark.parametrize(
    "names",
    [
        ["0.csv", "1.csv", "10.csv"],
        ["shard-00001.csv", "shard-00002.csv"],
        ["results_1.csv", "results_2.csv"],
        ["run-1.csv", "seed3.csv"],
        ["2026-11-16T00-12-00.csv", "2026-11-16T00-13-00.csv"],
        ["3f9c01b2.csv", "aa9c01b3ef.csv"],
        ["0b5b1a52-58a1-4c25-8b8f-3a3f3e1d2c4b.csv", "0b5b1a52-58a1-4c25-8b8f-3a3f3e1d2c4c.csv"],
    ],
)
def test_numbered_files_in_which_no_run_occurs_twice_are_one_system(agent, names):
    trials = read(put(agent, in_pieces(names)))
    assert trials.systems == ("agent",)
    assert runs_of(trials) == [len(names)] * 3
    facts = dict(trials.sources[0].read_as)
    assert facts["system"] == (
        f"folder name: {len(names)} files hold no trial twice "
        "(`name` renames it; named one by one, each is an agent)"
    )


def test_files_that_hold_the_same_runs_are_systems_side_by_side(agent):
    # the same runs, ended alike; copies to the byte are refused
    rows = ["a,0,1\n", "a,1,0\n", "b,0,1\n", "b,1,1\n"]
    names = ("gpt-4.csv", "gpt-5.csv", "1.csv", "2.csv")
    files = {name: HEADER + "".join(rows[n:] + rows[:n]) for n, name in enumerate(names)}
    trials = read(put(agent, files))
    assert set(trials.systems) == {"gpt-4", "gpt-5", "1", "2"}


@pytest.mark.parametrize("names", [["gpt-4.csv", "gpt-5.csv"], ["gpt-4o-2024-08-06.csv", "o3.csv"]])
def test_files_with_names_of_their_own_stay_apart_and_say_what_makes_them_one(agent, names):
    put(agent, in_pieces(names))
    trials = read(agent)
    assert set(trials.systems) == {name.removesuffix(".csv") for name in names}
    assert any("`name` reads them as one agent" in note for note in trials.sources[0].notes)
    one = read(agent, name="mine")
    assert one.systems == ("mine",)
    assert not any("`name` reads them" in note for note in one.sources[0].notes)


def test_files_that_are_named_one_by_one_are_systems(agent):
    put(agent, in_pieces(["1.csv", "2.csv"]))
    assert read_trials([agent / "1.csv", agent / "2.csv"]).systems == ("1", "2")


def test_a_name_given_by_the_user_is_the_systems(agent):
    assert read(put(agent, in_pieces(["1.csv", "2.csv"])), name="mine").systems == ("mine",)


def test_files_of_one_trial_each_are_pieces_whatever_they_are_called(agent):
    files = {
        f"{word}.csv": f"{HEADER}{task},0,1\n" for task, word in zip("abc", "xyz", strict=True)
    }
    assert read(put(agent, files)).systems == ("agent",)


def test_files_called_by_their_tasks_are_pieces(agent):
    rows = "task,passed\n{0}-1,1\n{0}-1,0\n{0}-2,1\n"
    trials = read(put(agent, {f"{name}.csv": rows.format(name) for name in ("airline", "retail")}))
    assert trials.systems == ("agent",)
    assert trials.tasks == ("airline-1", "airline-2", "retail-1", "retail-2")


def test_reports_of_test_classes_are_pieces(agent):
    report = "<testsuites>{}</testsuites>"
    suite = '<testsuite name="{0} {1}"><testcase classname="{0}" name="t{1}"/></testsuite>'
    files = {
        f"TEST-{name}.xml": report.format(suite.format(name, 1) + suite.format(name, 2))
        for name in ("com.acme.Cart", "com.acme.Login")
    }
    assert read(put(agent, files)).systems == ("agent",)


def test_numbered_files_without_run_numbers_are_runs(agent):
    files = {
        "run-1.csv": "task,passed\na,1\nb,0\nc,1\n",
        "run-2.csv": "task,passed\na,1\nb,1\nc,1\n",
    }
    trials = read(put(agent, files))
    assert trials.systems == ("agent",)
    assert runs_of(trials) == [2, 2, 2]


def test_runs_of_one_trial_in_numbered_files_may_be_the_same_to_the_byte(agent):
    trials = read(put(agent, dict.fromkeys(["1.csv", "2.csv", "3.csv"], "task,passed\na,1\n")))
    assert (trials.systems, runs_of(trials)) == (("agent",), [3])


def test_small_files_that_differ_are_runs_and_copies_are_refused(agent):
    one = '{"system": "m", "task": "a", "passed": true, "answer": "%s"}'
    put(agent, {"x.json": one % "yes", "y.json": one % "no"})
    assert runs_of(read(agent)) == [2]
    put(agent, {"z.json": one % "no"})
    with pytest.raises(ReadError, match=r"z\.json: says the same as .*y\.json, trial for trial"):
        read(agent)


def test_a_log_that_was_copied_under_another_number_is_refused(agent):
    rows = "task,passed\n" + "".join(f"{task},1\n" for task in "abcdef")
    with pytest.raises(ReadError, match=r"2\.csv: says the same as .*1\.csv, trial for trial"):
        read(put(agent, {"1.csv": rows, "2.csv": rows}))


def test_folders_of_two_systems_stay_apart(tmp_path):
    files = {
        f"{system}/{number}{system[0]}7d01b2ee.csv": f"{HEADER}a,{number},1\nb,{number},{passed}\n"
        for passed, system in enumerate(["alpha", "beta"])
        for number in range(3)
    }
    trials = read(put(tmp_path, files))
    assert trials.systems == ("alpha", "beta")
    assert trials.tally("beta").passed.tolist() == [3, 3]


def test_folders_of_runs_and_of_tasks_are_one_system(agent):
    runs = {f"run-{n}/{task}.csv": f"{HEADER}{task},{n},1\n" for n in (1, 2) for task in "ab"}
    assert read(put(agent, runs)).systems == ("agent",)


def test_a_folder_reads_as_one_file_with_the_rows_of_all(agent, tmp_path):
    put(agent, {f"{n}.csv": f"{HEADER}t{n % 3},{n},{n % 2}\n" for n in range(12)})
    rows = "".join(f"t{n % 3},{n},{n % 2}\n" for n in sorted(range(12), key=str))
    whole = put(tmp_path, {"one.csv": HEADER + rows}) / "one.csv"
    assert read(agent).to_columns() == read(whole, name="agent").to_columns()
