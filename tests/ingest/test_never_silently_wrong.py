"""Files that were once read wrong without a word, most of them written by the tool itself."""

import json

import pytest

from passhat import journeys
from passhat.errors import InputError, ReadError
from passhat.ingest import ColumnMap, read_tallies, read_trials, tallies
from passhat.records.trial import how_read


def notes_of(trials):
    return " ".join(note for source in trials.sources for note in source.notes)


def test_reruns_are_failures_though_subtests_make_the_suite_count_more_than_it_lists(
    samples, counts
):
    # pytest itself: 1 failed, 6 passed, 8 subtests passed, 5 rerun
    trials = read_trials(samples / "junit" / "junit_reruns_subtests.xml")
    assert counts(trials) == {
        "test_agent::test_steady": (1, 0, 0),
        "test_agent::test_third_time": (1, 2, 0),
        "test_agent::test_place[x]": (1, 0, 0),
        "test_agent::test_place[a/b]": (1, 1, 0),
        "test_agent::test_never": (0, 3, 0),
        "test_agent::test_parts": (1, 0, 0),
        "test_agent::test_parts_too": (1, 0, 0),
    }
    assert "5 attempts count as failures" in notes_of(trials)


def test_the_same_reruns_are_told_by_ctrf(samples, counts):
    by_junit = counts(read_trials(samples / "junit" / "junit_reruns_subtests.xml"))
    by_ctrf = counts(read_trials(samples / "ctrf" / "pytest_reruns.json"))
    assert list(by_ctrf.values()) == list(by_junit.values())


def test_parameters_that_look_like_steps_are_no_repeats(samples, counts):
    alone = read_trials(samples / "junit" / "junit_parameters.xml")
    assert len(alone.tasks) == 3
    repeated = counts(read_trials(samples / "junit" / "junit_parameters_repeated.xml"))
    assert repeated == {
        "test_param::test_ratio[1-2]": (3, 0, 0),
        "test_param::test_ratio[2-2]": (0, 3, 0),
        "test_param::test_other": (3, 0, 0),
    }


@pytest.mark.parametrize("submission", ["goose_claude-4-opus", "chaterm_claude-4-sonnet"])
def test_a_submission_of_five_runs_is_one_system(shared, submission):
    home = shared / "terminal_bench" / "leaderboard"
    folder = next(one for one in home.iterdir() if one.name.endswith(submission))
    trials = read_trials(folder)
    assert trials.systems == (submission,)
    tally = trials.tally()
    assert set((tally.passed + tally.failed).tolist()) == {5}
    files = list(folder.rglob("*results.json"))
    told = [json.loads(path.read_bytes())["results"] for path in files]
    assert tally.passed.sum() == sum(bool(one["is_resolved"]) for run in told for one in run)


def test_several_submissions_stay_apart(shared):
    trials = read_trials(shared / "terminal_bench" / "leaderboard")
    assert len(trials.systems) == 2
    assert len(trials) == 2 * 80 * 5


def test_systems_of_one_name_in_two_submissions_stay_apart(tmp_path):
    result = {"task_id": "t", "trial_name": "t.1-of-1.x", "is_resolved": True}
    for submission in ("one", "two"):
        for run in ("2026-01-01__00-00-00", "2026-01-02__00-00-00"):
            folder = tmp_path / submission / run
            folder.mkdir(parents=True)
            whole = {"id": run + submission, "results": [result], "pass_at_k": {}, "n_resolved": 1}
            started = {**result, "trial_started_at": run}
            (folder / "results.json").write_text(json.dumps({**whole, "results": [started]}))
            metadata = {"agent_name": "a", "model_name": "m"}
            (folder / "run_metadata.json").write_text(json.dumps(metadata))
    assert read_trials(tmp_path).systems == ("a/m (one)", "a/m (two)")
    assert read_trials(tmp_path / "one").systems == ("a/m",)


def test_a_score_beyond_one_is_left_out_where_a_verdict_decides(tmp_path):
    table = b"task,passed,score\na,1,1.06\na,0,0.2\n"
    trials = read_trials(table)
    assert trials.outcome.tolist() == [1, 0]
    assert "scores reach beyond [0, 1] (1.06): left out" in notes_of(trials)
    with pytest.raises(ReadError, match=r"must lie in \[0, 1\], got 1.06"):
        read_trials(b"task,score\na,1.06\n")


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_big_table_leaves_such_scores_out_too(tmp_path, monkeypatch, ending):
    monkeypatch.setattr(tallies, "BIG_BYTES", 1)
    rows = [{"task": "a", "passed": 1, "score": 1.06}, {"task": "a", "passed": 0, "score": 0.2}]
    path = tmp_path / f"big.{ending}"
    lines = [json.dumps(row) for row in rows]
    if ending == "csv":
        lines = ["task,passed,score", *(",".join(map(str, row.values())) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    (tally,) = read_tallies(path)
    assert (tally.passed.tolist(), tally.failed.tolist()) == ([1], [1])
    assert any("left out" in note for note in tally.sources[0].notes)


def test_suites_of_jest_are_parts_of_one_system(samples, counts):
    trials = read_trials(samples / "junit" / "jest.xml")
    assert counts(trials) == {
        "agent always answers": (1, 0, 0),
        "agent answers at the third attempt": (1, 0, 0),
        "agent never answers": (0, 1, 0),
        "tool always answers": (1, 0, 0),
    }
    assert trials.systems == ("jest tests",)


@pytest.mark.parametrize("file", ["junit/jest.xml", "junit/junit_reruns.xml", "promptfoo/out.json"])
def test_every_reader_obeys_a_name_and_an_empty_system(samples, file):
    path = samples / file
    assert read_trials(path, mapping=ColumnMap(name="mine")).systems == ("mine",)
    assert read_trials(path, mapping=ColumnMap(system="")).systems == (path.stem,)


def test_suites_are_systems_where_the_user_says_so(samples):
    trials = read_trials(samples / "junit" / "jest.xml", mapping=ColumnMap(system="suite"))
    assert trials.systems == ("agent", "tool")


def test_an_unscored_log_is_refused_with_how_to_score_it(samples):
    with pytest.raises(ReadError, match=r"has no scores.*inspect score"):
        read_trials(samples / "refused" / "unscored.json")
    with pytest.raises(ReadError, match=r'scorer "listed" says .*no grade'):
        read_trials(samples / "refused" / "listed_scores.json")


def test_letters_of_inspect_are_grades_with_half_credit(samples):
    trials = read_trials(samples / "inspect" / "letter_grades.json")
    scores = dict(zip(trials.task.texts(), trials.score.tolist(), strict=True))
    assert scores == {"agent/t0": 1.0, "agent/t1": 0.5, "agent/t2": 0.0}
    frame = read_trials(samples / "inspect_dataframe" / "letters.csv")
    assert frame.score.tolist() == trials.score.tolist()


def test_a_system_prompt_is_no_agent(samples, counts):
    trials = read_trials(samples / "inspect_dataframe" / "prompts.csv")
    assert trials.systems == ("prompts",)
    assert counts(trials) == {"france": (3, 1, 0), "italy": (3, 1, 0)}
    assert 'column "system" holds prompts' in notes_of(trials)
    row = {"task_id": "a", "system": "You are a helpful assistant. Be brief.", "passed": 1}
    named = read_trials(json.dumps([row | {"model": "gpt-5"}]).encode())
    assert named.systems == ("gpt-5",)


def test_columns_that_disagree_are_refused_and_one_can_be_chosen(samples, counts):
    table = samples / "refused" / "two_verdicts.csv"
    with pytest.raises(ReadError, match=r'line 4: the columns "passed" .* "correct" .* disagree'):
        read_trials(table)
    strict = read_trials(table, mapping=ColumnMap(passed="correct"))
    assert counts(strict) == {"france": (2, 2, 0), "italy": (2, 2, 0)}
    lenient = read_trials(table, mapping=ColumnMap(passed="passed"))
    assert counts(lenient) == {"france": (3, 1, 0), "italy": (3, 1, 0)}
    # "status" as often says that a run came to its end: it is no second verdict
    assert read_trials(b"task,passed,status\na,0,ok\n").outcome.tolist() == [0]


def test_a_big_table_whose_columns_disagree_is_refused_too(tmp_path, monkeypatch):
    monkeypatch.setattr(tallies, "BIG_BYTES", 1)
    path = tmp_path / "big.csv"
    path.write_text("task,passed,outcome\na,1,pass\na,1,fail\n")
    with pytest.raises(ReadError, match=r"disagree on whether the trial passed"):
        read_tallies(path)


def test_aggregates_are_no_trials():
    rows = [{"task": "a", "num_trials": 5, "pass_rate": 0.4, "score": 0.4}]
    with pytest.raises(ReadError, match=r"one row for all trials of a task.*trials\.json"):
        read_trials(json.dumps({"results": rows}).encode())


@pytest.mark.parametrize("schema", ["passhat.plan/1", "passhat.ranking/1", "passhat.comparison/1"])
def test_an_answer_of_passhat_is_no_trials(schema):
    answer = {"schema": schema, "systems": [{"task": "a", "passed": 1}]}
    with pytest.raises(ReadError, match=r"is an answer that passhat wrote .* rates, not trials"):
        read_trials(json.dumps(answer).encode())


def test_rows_that_are_numbered_by_name_are_runs(samples, counts):
    report = samples / "junit" / "node_numbered.xml"  # its own end says: pass 8, fail 3
    trials = read_trials(report)
    assert counts(trials) == {"test::weather selection": (7, 3, 0), "test::greeting": (1, 0, 0)}
    assert "read as trials of one task" in notes_of(trials)
    assert len(read_trials(report, mapping=ColumnMap(task="name")).tasks) == 11
    rows = "\n".join(f"weather selection #{run},{run % 2}" for run in range(1, 11))
    table = f"task,passed\n{rows}\n".encode()
    assert counts(read_trials(table)) == {"weather selection": (5, 5, 0)}
    assert len(read_trials(table, mapping=ColumnMap(task="task")).tasks) == 10


def test_tests_of_one_name_in_different_blocks_are_no_reruns(samples, counts):
    trials = read_trials(samples / "junit" / "node_nested.xml")  # its own end says: pass 3, fail 1
    assert counts(trials) == {
        "email::test::is offered": (1, 0, 0),
        "email > refund::test::is offered": (1, 0, 0),
        "chat::test::is offered": (1, 0, 0),
        "chat > refund::test::is offered": (0, 1, 0),
    }


def test_issues_that_are_numbered_with_gaps_stay_tasks():
    assert len(read_trials(b"task,passed\nissue #7,1\nissue #12,0\n").tasks) == 2


def test_hidden_results_of_deepeval_are_read_once(samples, tmp_path):
    latest = json.loads((samples / "deepeval" / "latest_test_run.json").read_bytes())
    home = tmp_path / ".deepeval"
    home.mkdir()
    (home / ".latest_test_run.json").write_text(json.dumps(latest))
    alone = read_trials(tmp_path)
    (home / ".latest_run_full.json").write_text(json.dumps(latest["testRunData"]))
    assert read_trials(tmp_path).to_columns() == alone.to_columns()


@pytest.mark.parametrize(
    ("table", "told"),
    [
        (b"agent,case,passed,cost\nx,a,1,2\n", 'agent = column "agent", task = column "case"'),
        (b"task,score\na,1\n", 'outcome = a "score" of 1 passes'),
        (b"task,passed,colour\na,1,red\n", "; left out: column colour"),
    ],
)
def test_every_table_says_how_it_was_read(table, told):
    assert told in how_read(read_trials(table).sources[0])


def inspect_log(order, model="m", samples=4):
    """A log whose scorer gives two values in an order, as code that builds them from a set does."""
    values = {"main": True, "side": False}
    value = {name: values[name] for name in order}
    return {
        "version": 2,
        "status": "success",
        "eval": {"task": "t", "model": model},
        "samples": [
            {"id": n, "epoch": 1, "scores": {"scorer": {"value": value}}} for n in range(samples)
        ],
    }


def test_two_logs_are_never_compared_on_two_different_scores(tmp_path):
    for name, order in (("a", ["main", "side"]), ("b", ["side", "main"])):
        (tmp_path / f"{name}.json").write_text(json.dumps(inspect_log(order, model=name)))
    files = tmp_path / "a.json", tmp_path / "b.json"
    with pytest.raises(ReadError, match=r'"scorer\.main", and .* by "scorer\.side"'):
        read_trials(files)
    with pytest.raises(InputError, match="two different measures"):
        journeys.compare([str(file) for file in files])
    with pytest.raises(InputError, match="two different measures"):
        journeys.gate(str(files[0]), against=str(files[1]))
    for scorer, outcome in (("scorer.main", 1), ("scorer.side", 0)):
        trials = read_trials(files, mapping=ColumnMap(scorer=scorer))
        assert set(trials.outcome.tolist()) == {outcome}


def test_logs_of_different_scorers_are_read_where_no_score_is_in_both(tmp_path):
    for name, order in (("a", ["main"]), ("b", ["side"])):
        (tmp_path / f"{name}.json").write_text(json.dumps(inspect_log(order, model=name)))
    assert len(read_trials([tmp_path / "a.json", tmp_path / "b.json"])) == 8


@pytest.mark.parametrize("first", ["timeout", ""])
def test_rows_without_a_verdict_and_words_for_errors_are_both_told_in_one_go(tmp_path, first):
    cells = [first, "yes", "no", "" if first else "timeout"]
    rows = "".join(f"a,{i},{cell}\n" for i, cell in enumerate(cells))
    (tmp_path / "m.csv").write_text(f"task,trial,passed\n{rows}")
    with pytest.raises(ReadError) as refused:
        read_trials(tmp_path / "m.csv")
    assert "`missing" in str(refused.value)
    assert "`error_words`" in str(refused.value)
