"""Counts, a column for each run, and maps of tasks to runs say what a row for each run says."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passhat.errors import ReadError
from passhat.ingest import ColumnMap, read_trials
from passhat.records.trial import how_read

TASKS = st.lists(st.lists(st.booleans(), min_size=1, max_size=5), min_size=2, max_size=5).filter(
    lambda tasks: any(len(runs) > 1 for runs in tasks)
)


def counts(trials):
    tally = trials.tally()
    ended = zip(tally.tasks, tally.passed, tally.failed, tally.errored, strict=True)
    return {task: tuple(map(int, numbers)) for task, *numbers in ended}


def truth(tasks):
    return {f"t{n}": (sum(runs), len(runs) - sum(runs), 0) for n, runs in enumerate(tasks)}


def table(header, rows):
    return "\n".join([header, *(",".join(map(str, row)) for row in rows)]).encode() + b"\n"


@settings(max_examples=40)
@given(
    tasks=TASKS,
    passes=st.sampled_from(["passed", "n_pass", "passes", "successes", "num_correct"]),
    runs=st.sampled_from(["total", "n", "trials", "n_runs", "num_samples"]),
)
def test_a_table_of_counts_is_so_many_runs(tasks, passes, runs):
    rows = [(f"t{n}", sum(own), len(own)) for n, own in enumerate(tasks)]
    trials = read_trials(table(f"task,{passes},{runs}", rows))
    assert counts(trials) == truth(tasks)
    assert "as counts of trials" in how_read(trials.sources[0])


@settings(max_examples=15)
@given(tasks=TASKS)
def test_passes_beside_failures_and_ratios_are_counts_too(tasks):
    both = [(f"t{n}", sum(own), len(own) - sum(own)) for n, own in enumerate(tasks)]
    assert counts(read_trials(table("task,passed,failed", both))) == truth(tasks)
    ratios = [(f"t{n}", f"{sum(own)}/{len(own)}") for n, own in enumerate(tasks)]
    assert counts(read_trials(table("task,passed", ratios))) == truth(tasks)


@pytest.mark.parametrize("written", ["{:.4f}", "{:.2f}", "{}", "{:.1%}"])
@settings(max_examples=15)
@given(tasks=TASKS)
def test_a_rate_of_a_number_of_trials_is_so_many_passes(tasks, written):
    rows = [(f"t{n}", written.format(sum(own) / len(own)), len(own)) for n, own in enumerate(tasks)]
    trials = read_trials(table("task,pass_rate,n", rows))
    assert counts(trials) == truth(tasks)
    assert '"pass_rate" of "n" as counts of trials' in how_read(trials.sources[0])


@pytest.mark.parametrize("n", [5, 20, 200])
@pytest.mark.parametrize("rates", [(1, 0, 1), (0.4, 1.0), ("1.0", "0.0"), (0.2,)])
def test_a_share_of_one_digit_that_is_a_whole_number_of_passes_everywhere_is_exact(rates, n):
    trials = read_trials(table("task,pass_rate,n", [(i, rate, n) for i, rate in enumerate(rates)]))
    tally = trials.tally()
    assert tally.passed.tolist() == [round(float(rate) * n) for rate in rates]
    assert (tally.passed + tally.failed).tolist() == [n] * len(rates)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([("a", "0.67", 200)], "'a', 0.67 of 200 trials, is 133 to 135 passes"),
        ([("a", "45%", 200)], "'a', 45 of 200 trials, is 89 to 91 passes"),
        ([("a", "0.5", 1), ("b", 1, 5)], "'a', 0.5 of 1 trial, is no whole number of passes"),
        ([("a", "0.50", 3)], "'a', 0.50 of 3 trials, is no whole number of passes"),
        # seven tasks of 20 trials that all passed an even number of times: rounded
        ([(i, 0.7, 20) for i in range(7)], "'0', 0.7 of 20 trials, is 13 to 15 passes"),
    ],
)
def test_a_rate_that_is_not_surely_a_number_of_passes_is_refused(rows, said):
    with pytest.raises(ReadError, match=said):
        read_trials(table("task,pass_rate,n", rows))


@pytest.mark.parametrize(
    "content",
    [
        "model,task,score\ngpt,airline,0.42\ngpt,retail,0.61\nclaude,airline,0.5\n",
        "task,score\na,0.2\nb,0\n",
        "task,pass_rate\na,0.5\nb,1\n",
        "model,pass@1,pass@4\ngpt,0.71,0.9\nclaude,0.8,0.93\n",
        "model,benchmark,accuracy\ngpt,airline,0.42\nclaude,airline,0.5\n",
        "agent,dataset,f1\ngpt,web,0.42\ngpt,shop,\nclaude,web,0\n",
    ],
)
def test_means_are_never_read_as_trials_that_failed(content):
    with pytest.raises(ReadError, match=r"(give|with) a row for each\s+trial"):
        read_trials(content.encode())


def test_sums_over_all_tasks_are_said_to_be_that():
    summary = {"gpt": {"passed": 73, "total": 172}, "claude": {"passed": 12, "total": 172}}
    with pytest.raises(ReadError, match=r"holds sums over all tasks \(total\), not trials"):
        read_trials(json.dumps(summary).encode())


def test_a_message_offers_the_verdict_that_is_called_so_and_no_constant_as_the_task():
    table = b"judge,fixture,untouched,tests_passed\nj,a,yes,no\nj,b,yes,yes\n"
    with pytest.raises(ReadError, match=r"`task='fixture'` and `passed='tests_passed'`"):
        read_trials(table)


def test_scores_that_are_no_means_stay_scores():
    means = b"task,score\na,0.2\nb,0.4\n"
    assert len(read_trials(means, pass_if="score>=0.3")) == 2
    assert len(read_trials(means, score="score")) == 2  # the user says what they are
    for rows in (b"a,0.2\na,0.4\nb,0.4\n", b"a,0.2\nb,1\n", b"a,0\nb,0\n", b"a,0.3\n"):
        assert len(read_trials(b"task,score\n" + rows)) == rows.count(b"\n")


@pytest.mark.parametrize("header", ["run_{}", "Run {}", "passed_{}", "trial{}", "seed{}", "{}"])
@settings(max_examples=8)
@given(tasks=TASKS)
def test_a_column_for_each_run_is_a_row_for_each(tasks, header):
    most = max(map(len, tasks))
    names = ",".join(header.format(n) for n in range(1, most + 1))
    rows = [(f"t{n}", *map(int, own), *[""] * (most - len(own))) for n, own in enumerate(tasks)]
    trials = read_trials(table(f"task,{names}", rows))
    assert counts(trials) == truth(tasks)
    assert "as trials" in how_read(trials.sources[0])


@settings(max_examples=15)
@given(tasks=TASKS)
def test_maps_of_tasks_to_runs_are_those_runs(tasks):
    plain = {f"t{n}": own for n, own in enumerate(tasks)}
    objects = {task: [{"pass": ok} for ok in own] for task, own in plain.items()}
    lists = [{"task": task, "passed": own} for task, own in plain.items()]
    for content in (plain, {"model": "m", "evals": objects}, objects, {"rows": lists}):
        trials = read_trials(json.dumps(content).encode())
        assert counts(trials) == truth(tasks)


@pytest.mark.parametrize("names", [("with_skill", "without_skill"), ("few_shot", "no_few_shot")])
def test_conditions_as_keys_are_systems(names):
    runs = {names[0]: {"a": [1, 1], "b": [1, 0]}, names[1]: {"a": [0, 0], "b": [0, 1]}}
    trials = read_trials(json.dumps(runs).encode())
    assert trials.tally(names[0]).passed.tolist() == [2, 1]
    assert trials.tally(names[1]).passed.tolist() == [0, 1]
    turned = {task: {name: runs[name][task] for name in names} for task in "ab"}
    trials = read_trials(json.dumps(turned).encode())
    assert trials.tally(names[0]).passed.tolist() == [2, 1]


def test_entries_that_hold_the_runs_under_two_conditions_are_two_agents():
    ends = {"a": (True, False), "b": (True, True), "c": (False, False)}
    objects = [
        {"eval_id": task, "with_skill": {"pass": new, "cost": 2}, "without_skill": {"pass": old}}
        for task, (new, old) in ends.items()
    ]
    lists = [
        {"eval_id": task, "with_skill": [new, True], "without_skill": [old]}
        for task, (new, old) in ends.items()
    ]
    trials = read_trials(json.dumps(objects).encode())
    assert trials.tally("with_skill").passed.tolist() == [1, 1, 0]
    assert trials.tally("without_skill").passed.tolist() == [0, 1, 0]
    assert [one.cost for one in trials.where(system="with_skill")] == [2, 2, 2]
    trials = read_trials(json.dumps({"results": lists}).encode())
    assert trials.tally("with_skill").passed.tolist() == [2, 2, 1]
    # of bare verdicts nobody knows whether these are agents
    with pytest.raises(ReadError, match="each say how trials ended"):
        read_trials(table("task,errors,no_errors", [("a", 1, 0), ("b", 0, 1)]))


def test_a_message_names_the_columns_of_every_row():
    rows = b'{"name": "a", "x": 1}\n{"name": "a", "fn": 2, "mcc": 0.4}\n'
    with pytest.raises(ReadError, match="It has name, x, fn, mcc"):
        read_trials(rows)


def test_columns_of_pandas_are_a_table():
    columns = {"task": {"0": "a", "1": "b"}, "passed": {"0": True, "1": False}}
    lists = {name: list(cells.values()) for name, cells in columns.items()}
    split = {"columns": list(lists), "data": [["a", True], ["b", False]]}
    for content in (columns, lists, split):
        found = counts(read_trials(json.dumps(content).encode()))
        assert found == {"a": (1, 0, 0), "b": (0, 1, 0)}


@pytest.mark.parametrize(
    "content",
    [
        {"config": {"verbose": True, "stream": False}, "notes": "x"},
        {"gpt": {"score": 0.8}, "claude": {"score": 0.7}},
        {"a": {"gpt": [1, 0], "o3": [1, 1]}, "b": {"gpt": [1, 0], "o3": [1, 1]}},
        {"resolved": ["x"], "unresolved": ["y"]},
        {"scores": [1, 0, 1], "rewards": [1, 0, 1]},
    ],
)
def test_settings_means_and_what_has_two_readings_are_no_runs(content):
    with pytest.raises(ReadError, match=r"not a file that passhat can read|which are the agents"):
        read_trials(json.dumps(content).encode())


def test_a_verdict_beside_attempts_is_asked_about():
    rows = table("task,passed,attempts", [("a", 1, 3), ("b", 0, 3)])
    with pytest.raises(ReadError, match="the passes of so many trials, or how a trial ended"):
        read_trials(rows)
    assert len(read_trials(rows, mapping=ColumnMap(passed="passed"))) == 2


def test_what_is_neither_passed_nor_failed_did_not_end():
    trials = read_trials(table("task,passed,failed,total", [("a", 1, 1, 3), ("b", 2, 1, 3)]))
    assert counts(trials) == {"a": (1, 1, 1), "b": (2, 1, 0)}


def test_a_number_of_runs_that_no_memory_holds_is_refused():
    with pytest.raises(ReadError, match="at most 5,000,000 are read"):
        read_trials(table("task,passed,total", [("a", 1, 4_000_000), ("b", 1, 4_000_000)]))


def test_files_of_counts_are_counts_however_many_there_are(tmp_path):
    for name in "abcdef":
        (tmp_path / f"{name}.csv").write_bytes(table("task,passed,total", [(name, 1, 3)]))
    assert len(read_trials(tmp_path)) == 18


def test_a_success_that_never_varies_beside_a_score_that_does_is_asked_about():
    rows = [("a", "true", 0.86), ("b", "true", 1)]
    content = table("task,success,overall_score", rows)
    with pytest.raises(ReadError, match="that a trial passed, or only that it ran"):
        read_trials(content)
    assert counts(read_trials(content, mapping=ColumnMap(passed="success")))["a"] == (1, 0, 0)
    judged = read_trials(content, mapping=ColumnMap(pass_if="overall_score>=1"))
    assert counts(judged)["a"] == (0, 1, 0)


@settings(max_examples=15)
@given(st.lists(st.integers(4_000, 90_000), min_size=1, max_size=5))
def test_durations_in_milliseconds_are_not_taken_for_seconds(values):
    content = table("task,passed,duration", [(f"t{n}", 1, ms) for n, ms in enumerate(values)])
    trials = read_trials(content)
    assert "seconds" not in trials.features
    assert any("may be milliseconds" in note for note in trials.sources[0].notes)
    asked = read_trials(content, mapping=ColumnMap(seconds="duration"))
    assert asked.features["seconds"].tolist() == values


GRIDS = st.lists(st.lists(st.booleans(), min_size=2, max_size=4), min_size=2, max_size=4).filter(
    lambda grid: len({len(row) for row in grid}) == 1
)


@settings(max_examples=15)
@given(grid=GRIDS)
def test_a_column_for_each_agent_or_task_is_asked_about_and_read_once_it_is_said(grid):
    width = len(grid[0])
    agents = ",".join(f"bot{n}" for n in range(width))
    content = table(f"task,{agents}", [(f"t{n}", *map(int, row)) for n, row in enumerate(grid)])
    with pytest.raises(ReadError, match=f"If each is an agent, say `system='{agents}'`"):
        read_trials(content)
    trials = read_trials(content, system=agents)
    assert len(trials) == len(grid) * width
    for n in range(width):
        assert trials.tally(f"bot{n}").passed.tolist() == [row[n] for row in grid]
    tasks = ",".join(f"t{n}" for n in range(width))
    content = table(f"run,{tasks}", [(n, *map(int, row)) for n, row in enumerate(grid)])
    with pytest.raises(ReadError, match=f"If each is a task, say `task='{tasks}'`"):
        read_trials(content)
    trials = read_trials(content, task=tasks)
    assert counts(trials) == truth(list(zip(*grid, strict=True)))
    assert "as tasks" in how_read(trials.sources[0])


def test_columns_that_join_as_a_name_stay_names_beside_a_verdict():
    trials = read_trials(table("task,cot,passed", [("a", 1, 0), ("a", 0, 1)]), system="task,cot")
    assert set(trials.systems) == {"a/0", "a/1"}


@settings(max_examples=10)
@given(grid=GRIDS)
def test_maps_two_levels_deep_are_read_once_a_key_says_what_the_outer_one_is(grid):
    bare = {f"x{n}": {f"y{m}": [bool(ok), True] for m, ok in enumerate(row)}
            for n, row in enumerate(grid)}  # fmt: skip
    with pytest.raises(ReadError, match="which are the agents"):
        read_trials(json.dumps(bare).encode())
    by_agent = read_trials(json.dumps({"agents": bare}).encode())
    assert set(by_agent.systems) == set(bare)
    for n, row in enumerate(grid):
        assert by_agent.tally(f"x{n}").passed.tolist() == [1 + ok for ok in row]
    by_task = read_trials(json.dumps({"tasks": bare}).encode())
    for m in range(len(grid[0])):
        assert by_task.tally(f"y{m}").passed.tolist() == [1 + row[m] for row in grid]


@settings(max_examples=15)
@given(tasks=TASKS)
def test_yaml_markdown_and_objects_one_after_another_say_what_a_list_says(tmp_path_factory, tasks):
    folder = tmp_path_factory.mktemp("shapes")
    rows = [
        {"task": f"t{n}", "trial": trial, "passed": ok}
        for n, own in enumerate(tasks)
        for trial, ok in enumerate(own)
    ]
    lines = [f"| {r['task']} | {r['trial']} | {'yes' if r['passed'] else 'no'} |" for r in rows]
    head = ["# Results", "", "Some words.", "", "| task | trial | passed |", "|:--|--:|---|"]
    listed = "".join(
        f"- task: {r['task']}\n  trial: {r['trial']}\n  passed: {str(r['passed']).lower()}\n"
        for r in rows
    )
    indented = "results:\n" + "".join(f"  {line}\n" for line in listed.splitlines())
    written = {
        "a.md": "\n".join([*head, *lines, "", "More words."]),
        "a.yaml": f"# by hand\n{listed}",
        "b.yml": indented,
        "a.json": "\n".join(json.dumps(row, indent=2) for row in rows),
        "b.json": " ".join(json.dumps(row) for row in rows),
        "c.json": json.dumps({"model": "m", "data": {"items": rows}}),
    }
    for name, text in written.items():
        (folder / name).write_text(text)
        assert counts(read_trials(folder / name)) == truth(tasks), name


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.md", "| task | passed |\n|---|---|\n| a | maybe |\n", r"a.md, line 3, column \"passed"),
        ("a.md", "| task | passed |\n|---|---|\n| a |\n", r"line 3: has 1 cell where the header"),
        ("a.md", "|a|b|\n|-|-|\n|1|2|\n\n|c|d|\n|-|-|\n|1|2|\n", r"has several tables .* line 5\)"),
        ("a.md", "# Only words\n\nand more of them\n", "is Markdown without a table"),
        ("a.yml", "- task: a\n  passed: maybe\n", "'maybe' does not say whether"),
        ("a.yml", "- {name: a, verdict_: 1}\n", "which columns"),
        ("a.yml", "- task: a\n passed: 1\n", "line 2: not valid YAML"),
        ("a.yml", "- task: a\n  task: b\n", "not valid YAML .*duplicate key"),
        ("a.yml", "- &x [*x]\n", "not valid YAML"),
        ("a.yml", "a: 1\n" + "#" * 500_000, "up to 400,000 are read; save it as JSON or CSV"),
        ("a.json", '{\n"task": "a",\n"passed": 1}\n{\n"task": ', "line 4: not valid JSON: it ends"),
        ("a.json", "// made today\n[]", "is JSON with comments"),
    ],
)
def test_what_is_wrong_in_such_a_file_is_said_with_its_line(tmp_path, name, content, said):
    (tmp_path / name).write_text(content)
    with pytest.raises(ReadError, match=said):
        read_trials(tmp_path / name)


def test_anchors_that_stand_for_a_billion_values_are_refused(tmp_path):
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    (tmp_path / "bomb.yml").write_text("\n".join(levels))
    with pytest.raises(ReadError, match="its anchors repeat too much"):
        read_trials(tmp_path / "bomb.yml")


@pytest.mark.parametrize(
    ("column", "bad", "good"), [("failed", 1, 0), ("failure", "yes", "no"), ("exit_code", 2, 0)]
)
def test_a_column_of_failures_is_never_offered_as_the_verdict(column, bad, good):
    content = table(f"task,{column}", [("a", good), ("a", bad), ("b", good)])
    with pytest.raises(ReadError, match=f"`pass_if='{column}=={good}'`") as refused:
        read_trials(content)
    assert f"passed='{column}'" not in str(refused.value)
    assert counts(read_trials(content, pass_if=f"{column}=={good}"))["a"] == (1, 1, 0)


@pytest.mark.parametrize("rows", ["passes,n\na,5,10\nb,10,10\n{},15,20\n",
                                  "pass_rate,n\na,0.5,10\nb,1,10\n{},0.75,20\n",
                                  "run_1,run_2\na,1,0\nb,1,1\n{},2,1\n"])  # fmt: skip
@pytest.mark.parametrize("word", ["total", "Overall"])
def test_a_row_that_sums_up_the_others_is_no_task_and_is_said(rows, word, tmp_path):
    (file := tmp_path / "counts.csv").write_text(f"task,{rows.format(word)}")
    trials = read_trials(file)
    assert list(trials.tasks) == ["a", "b"]
    assert f'"{word}", sums up the others' in str(trials.sources[0].read_as)


CELLS = st.lists(
    st.lists(st.sampled_from(["pass", "fail", "", "N/A", "timeout"]), min_size=3, max_size=3),
    min_size=3,
    max_size=6,
)


@settings(max_examples=40)
@given(cells=CELLS, missing=st.sampled_from(["fail", "error", "exclude"]))
def test_empty_cells_and_words_for_errors_mean_the_same_in_every_layout(cells, missing):
    rows = [["pass", "fail", "pass"], *cells]  # each column has a verdict
    names = [f"t{n}" for n in range(len(rows))]
    options = ColumnMap(missing=missing, error_words="timeout")
    long = [(t, n, one) for t, own in zip(names, rows, strict=True) for n, one in enumerate(own)]
    expected = counts(read_trials(table("task,trial,passed", long), mapping=options))
    lines = [(name, *own) for name, own in zip(names, rows, strict=True)]
    wide = read_trials(table("task,run_1,run_2,run_3", lines), mapping=options)
    assert counts(wide) == expected
    agents = [(t, n + 1, *[one] * 2) for t, n, one in long]
    by_agent = ColumnMap(missing=missing, error_words="timeout", system="gpt,claude")
    each = read_trials(table("task,trial,gpt,claude", agents), mapping=by_agent)
    for system in ("gpt", "claude"):
        assert counts(each.where(system=system)) == expected


def test_a_word_nobody_knows_in_a_column_of_a_run_is_named_with_its_line():
    content = table("id,run_1,run_2", [("a", "pass", "fail"), ("b", "pass", "hung")])
    with pytest.raises(ReadError, match=r'line 3, columns "run_1" to "run_2": .hung. does not say'):
        read_trials(content)
    assert counts(read_trials(content, error_words="hung")) == {"a": (1, 1, 0), "b": (1, 0, 1)}
