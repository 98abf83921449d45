"""Reports that passhat saved as JSON are read back: the same runs, the same numbers."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passhat.analysis.reports.measure import measure
from passhat.errors import ReadError
from passhat.ingest import ColumnMap, read_tallies, read_trials
from passhat.records import Trials
from passhat.records.trial import how_read
from passhat.reporters import render
from passhat.reporters.answers.report import REPORT

WORDS = {"P": "pass", "F": "fail", "E": "error"}
# A task without a completed run is in no report that excludes errors.
RUNS = st.text("PFE", min_size=1, max_size=9).filter(lambda runs: runs.strip("E"))
SYSTEMS = st.dictionaries(
    st.sampled_from(["old", "new", "a b"]),
    st.dictionaries(st.sampled_from(["t1", "t2", "t10", "é"]), RUNS, min_size=1, max_size=4),
    min_size=1,
    max_size=2,
)


def trials_of(systems, **columns):
    rows = [
        {"system": system, "task": task, "trial": trial, "outcome": WORDS[letter]}
        for system, tasks in systems.items()
        for task, runs in tasks.items()
        for trial, letter in enumerate(runs)
    ]
    return Trials.from_records([{**row, **columns} for row in rows])


def saved(trials, **options):
    return render(measure(trials, **options), "json").encode()


def without_origin(data):
    """The numbers of a report: not where they were read, nor what can only be read from logs."""
    answer = json.loads(data)
    del answer["provenance"], answer["notes"]
    for system in answer["systems"]:
        del system["notes"], system["error_policy"]["kinds"]
    return answer


def edited(data, change):
    answer = json.loads(data)
    change(answer["systems"][0]["task_table"][0])
    return json.dumps(answer).encode()


@settings(max_examples=25, deadline=None)
@given(systems=SYSTEMS, errors=st.sampled_from(["fail", "exclude"]))
def test_a_saved_report_gives_every_number_and_label_again(systems, errors):
    first = saved(trials_of(systems), errors=errors)
    again = read_trials(first)
    assert without_origin(saved(again, errors=errors)) == without_origin(first)


def test_a_saved_report_gives_the_same_trials_again():
    trials = trials_of({"old": {"t1": "PFE", "é": "F"}, "new": {"t1": "EEP", "t10": "PP"}})
    names = ("system", "task", "trial", "outcome")
    rows = [
        sorted(zip(*(table.to_columns()[name] for name in names), strict=True))
        for table in (trials, read_trials(saved(trials)))
    ]
    assert rows[0] == rows[1]


def test_the_report_inside_of_a_saved_run_is_read(tmp_path):
    data = saved(trials_of({"agent": {"a": "PPF"}}))
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"schema": "passhat.run/1", "report": json.loads(data)}))
    assert read_trials(path).outcome.tolist() == [1, 1, 0]


def test_what_the_json_does_not_hold_is_said():
    trials = trials_of({"agent": {"a": "PPFE", "b": "PFFP"}}, seed=7, seconds=2.5)
    line = how_read(read_trials(saved(trials)).sources[0])
    assert line.startswith("read as: passhat report, ")
    assert line.endswith("; left out: seeds, texts of errors, seconds")


def test_scores_that_are_left_out_are_said():
    trials = Trials.from_records([{"task": "a", "passed": False, "score": 0.5}] * 3)
    assert "left out: scores" in how_read(read_trials(saved(trials)).sources[0])


def test_other_options_than_the_usual_ones_are_said():
    data = saved(trials_of({"agent": {"a": "PPFE", "b": "E"}}), errors="exclude", confidence=0.9)
    notes = " ".join(read_trials(data).sources[0].notes)
    assert "`errors='exclude'` `confidence=0.9`" in notes
    assert "1 errored trials of tasks" in notes


def test_weights_that_are_not_in_the_file_are_said():
    rows = [{"task": "a", "passed": 1, "weight": 3.0}, {"task": "b", "passed": 0, "weight": 1.0}]
    notes = " ".join(read_trials(saved(Trials.from_records(rows * 3))).sources[0].notes)
    assert 'pass@1 of "' in notes
    assert "weights or families are not in the file" in notes


def test_a_report_on_counts_gives_the_counts_again(tmp_path):
    trials = trials_of({"agent": {"a": "PPFE", "b": "PFFP"}})
    first = render(measure([trials.tally("agent")]), "json").encode()
    path = tmp_path / "saved.json"
    path.write_bytes(first)
    for source in (first, path):
        tallies = read_tallies(source)
        assert without_origin(render(measure(tallies), "json")) == without_origin(first)
        assert "counts of trials" in how_read(tallies[0].sources[0])
    with pytest.raises(ReadError, match=r"but not their order; `passhat report`"):
        read_trials(path)
    assert read_tallies(path, mapping=ColumnMap(name="mine"))[0].system == "mine"
    with pytest.raises(ReadError, match="`pass_if` has nothing to compare"):
        read_tallies(path, mapping=ColumnMap(pass_if="score>=1"))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"sequence": "PPX"}, "task \"a\", sequence: must be written in P, F and E, got 'X'"),
        ({"passed": 1}, "2 passed, 1 failed and 0 errored, but it counts 1 passed"),
        ({"failed": -1}, "failed"),
        ({"passed": 10**30}, "passed"),
        ({"name": "b"}, 'task "b": occurs twice'),
    ],
)
def test_a_saved_report_that_was_edited_is_refused(change, told):
    data = saved(trials_of({"agent": {"a": "PPF", "b": "P"}}))
    with pytest.raises(ReadError) as refused:
        read_trials(edited(data, lambda task: task.update(change)))
    assert told in str(refused.value)


def test_a_saved_report_in_a_folder_of_results_is_not_counted_with_them(tmp_path):
    log = tmp_path / "log.csv"
    log.write_text("system,task,trial,passed\nagent,a,1,1\nagent,a,2,0\n")
    report = tmp_path / "report.json"
    report.write_bytes(saved(read_trials(log)))
    trials = read_trials(tmp_path)
    assert len(trials) == 2
    assert "made by passhat from other results" in " ".join(trials.sources[0].notes)
    with pytest.raises(ReadError, match=r"saved report on \"agent\", and .*log\.csv has trials"):
        read_trials([log, report])
    assert len(read_trials([log, report], duplicates="keep")) == 4


def test_every_kind_of_answer_but_reports_and_runs_is_refused():
    assert REPORT(measure(trials_of({"agent": {"a": "PF"}})))["schema"] == "passhat.report/1"
    for schema in ("passhat.report/2", "passhat.verdicts/1", "passhat.profile/1"):
        with pytest.raises(ReadError, match="is an answer that passhat wrote"):
            read_trials(json.dumps({"schema": schema, "systems": []}).encode())


EVENTS = [
    {"event": "run_opened", "time": "t", "schema": "passhat.events/1", "suite": "s", "run": "r"},
    {"event": "trial_started", "time": "t", "system": "a", "task": "x", "trial": 0},
    {"event": "trial_finished", "system": "a", "task": "x", "trial": 0, "outcome": "passed"},
    {
        "event": "trial_finished",
        "system": "a",
        "task": "x",
        "trial": 1,
        "outcome": "errored",
        "error": "boom",
        "cost": 0.5,
        "tools": ["f"],
        "tags": ["hard"],
    },
    {"event": "verdict", "system": "a", "verdict": "PASS"},
    {"event": "answer", "outcome": "passed", "exit_code": 0},
]


def stream(*events):
    return "\n".join(map(json.dumps, events)).encode()


def test_the_trials_in_an_event_stream_are_read():
    trials = read_trials(stream(*EVENTS))
    first, second = trials
    assert (first.system, first.task, first.trial, first.outcome.name) == ("a", "x", 0, "PASSED")
    assert (second.outcome.name, second.error, second.cost) == ("ERRORED", "boom", 0.5)
    assert (second.tools, second.tags) == (("f",), ("hard",))
    assert trials.sources[0].notes == ()


def test_an_event_stream_of_a_run_that_has_not_ended_says_so():
    (note,) = read_trials(stream(*EVENTS[:4])).sources[0].notes
    assert note == "the run had not ended: trials that ran later are missing"


def test_a_line_of_an_event_stream_that_lacks_its_outcome_is_named():
    broken = {"event": "trial_finished", "system": "a", "task": "x", "trial": 0}
    with pytest.raises(ReadError, match=r"line 2.*outcome"):
        read_trials(stream(EVENTS[0], broken))
