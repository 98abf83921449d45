"""Conditions that trials took place under: a task under each of them is a task of its own."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.analysis.reports.evidence import count_evidence
from passhat.analysis.reports.measure import measure
from passhat.errors import ArgumentError, ReadError
from passhat.history import History
from passhat.history.store import TRIAL_COLUMNS, trial_row
from passhat.ingest import read_tallies, read_trials, write_trials
from passhat.records import Outcome, Trial, Trials
from passhat.records.columns import ColumnMap
from passhat.records.trial import POOLED, POOLED_ROUNDS, SAMPLED

SAMPLES = Path(__file__).parents[1] / "samples"


def crossed_table(tasks=12, levels=("a", "b"), runs=4, **more):
    rows = [(t, u, r) for t in range(tasks) for u in levels for r in range(runs)]
    passed = [(t * 7 + r * 3 + ord(u[0]) * (t % 3)) % 5 > 1 for t, u, r in rows]
    return Trials.from_columns(
        task=[f"t{t}" for t, _, _ in rows],
        at=[(f"user={u}",) for _, u, _ in rows],
        trial=[r for _, _, r in rows],
        passed=passed,
        **more,
    )


def stored_run(history, trials):
    run = history.start_run("suite")
    history.add_trials(run, trials)
    return history.finish_run(run)


def test_a_task_under_each_condition_is_a_task_of_its_own():
    table = crossed_table(tasks=2)
    assert table.tasks == ("t0 [user=a]", "t0 [user=b]", "t1 [user=a]", "t1 [user=b]")
    assert table.base.names == ("t0", "t1")
    assert table.crossed() is table


def test_a_condition_that_is_the_same_everywhere_changes_no_name():
    table = crossed_table(tasks=2, levels=("a",))
    assert table.tasks == ("t0", "t1")
    assert table.words("at") == ("user=a",)


def test_trials_without_numbers_are_numbered_within_each_condition():
    table = Trials.from_columns(
        task=["t"] * 4, at=[["user=a"], ["user=b"]] * 2, passed=[1, 0, 1, 1]
    )
    assert table.trial.tolist() == [0, 0, 1, 1]


@given(st.permutations(["a", "b", "c"]))
def test_the_names_do_not_depend_on_which_condition_comes_first(levels):
    assert set(crossed_table(levels=levels).tasks) == set(crossed_table(levels="abc").tasks)


def test_trials_of_tasks_as_they_are_come_before_those_under_conditions():
    table = Trials.from_columns(
        task=["a", "b", "a [fault=all]"], base=[None, "b", "a"], passed=[1, 0, 0]
    )
    assert table.at_reference().tasks == ("a", "b")
    assert table.tally().at_reference().tasks == ("a", "b")
    assert measure(table).system().pass_hat(1).value == 0.5
    only = table.take(np.array([2]))
    assert only.at_reference() is only


@pytest.mark.parametrize("at", [["terse"], ["=terse"], ["user="], ["user=a", "user=b"]])
def test_a_condition_is_a_factor_and_its_level(at):
    with pytest.raises(ArgumentError, match="factor"):
        Trials.from_columns(task=["t"], at=[at], passed=[1])


@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".parquet"])
def test_files_and_stores_keep_conditions(ending, tmp_path):
    table = crossed_table(stated_confidence=[0.5] * 96)
    write_trials(table, path := tmp_path / f"t{ending}")
    assert read_trials(path).to_columns() == table.to_columns()
    with History.open(tmp_path / "store.db") as history:
        run = stored_run(history, table)
        stored = history.trials(run)
        assert list(stored) == list(table)
        assert history.tallies(run)[0].base == table.tally().base


def test_columns_and_patterns_name_conditions(tmp_path):
    rows = ["task,user,passed", *(f"t{i},{u},{i % 2}" for i in range(3) for u in "ab")]
    (tmp_path / "t.csv").write_text("\n".join(rows))
    by_column = read_trials(tmp_path / "t.csv", mapping=ColumnMap(factor="user"))
    assert by_column.tasks[:2] == ("t0 [user=a]", "t0 [user=b]")
    assert read_tallies(tmp_path / "t.csv", mapping=ColumnMap(factor="user"))[0].base[0] == "t0"
    rows = ["task,passed", *(f"t{i}{w},{i % 2}" for i in range(3) for w in ("", "#typos"))]
    (tmp_path / "t.csv").write_text("\n".join(rows))
    pattern = r"(?P<task>.+)#(?P<wording>.+)"
    by_name = read_trials(tmp_path / "t.csv", mapping=ColumnMap(factor=pattern))
    assert by_name.tasks[:2] == ("t0", "t0#typos")
    assert by_name.base.texts()[:2] == ["t0", "t0"]
    assert by_name.to_columns()["at"][:2] == [(), ("wording=typos",)]
    assert by_name.at_reference().tasks == ("t0", "t1", "t2")


def test_trials_that_a_condition_tells_apart_are_refused_with_the_way_to_name_it(tmp_path):
    rows = ["task,user,trial,passed", *(f"t{i},{u},0,1" for i in range(3) for u in "ab")]
    (tmp_path / "t.csv").write_text("\n".join(rows))
    with pytest.raises(ReadError, match="`factor='user'` if it is a condition"):
        read_trials(tmp_path / "t.csv")


@pytest.mark.parametrize("factor", ["(", "(.*)#(.*)", "(?P<task>.*)"])
def test_a_pattern_names_the_task_and_a_factor(factor):
    with pytest.raises(ArgumentError, match="factor must be a column, or a pattern"):
        ColumnMap(factor=factor).factor_pattern  # noqa: B018


def test_a_column_called_at_that_is_not_ours_is_left_alone(tmp_path):
    (tmp_path / "t.csv").write_text("task,at,passed\nt,12:30,1\nt,12:31,0\n")
    assert read_trials(tmp_path / "t.csv").at is None


def test_results_of_two_simulated_users_are_two_tasks_each(tmp_path):
    for user in ("gpt-5", "haiku"):
        simulations = [
            {"task_id": t, "trial": r, "reward": 1.0} for t in range(2) for r in range(2)
        ]
        info = {
            "agent_info": {"llm": "m", "implementation": "llm_agent"},
            "environment_info": {"domain_name": "retail"},
            "user_info": {"llm": user},
        }
        content = {"info": info, "tasks": [], "simulations": simulations}
        (tmp_path / f"{user}.json").write_text(json.dumps(content))
    one = read_trials(tmp_path / "haiku.json")
    assert (one.tasks, one.words("at")) == (("retail/0", "retail/1"), ("user=haiku",))
    both = read_trials(tmp_path)
    assert set(both.tasks) == {f"retail/{t} [user={u}]" for t in "01" for u in ("gpt-5", "haiku")}


def test_phases_of_hal_are_conditions_of_one_agent():
    trials = read_trials(SAMPLES / "handmade" / "hal" / "taubench_airline")
    assert trials.systems == ("taubench_toolcalling",)
    assert trials.tasks == ("0", "1", "0 [fault=injected]")
    assert trials.at_reference().tasks == ("0", "1")
    assert trials.stated_confidence.tolist() == [0.9, 0.3, 0.1]


def test_one_task_under_several_conditions_is_one_of_the_tasks_that_were_drawn():
    table = crossed_table()
    evidence = count_evidence(table.tally())
    assert evidence.crossed
    assert evidence.family == tuple(name.partition(" [")[0] for name in evidence.tasks)
    as_families = replace(table, base=None, at=None, family=table.base)
    ours, theirs = (
        measure(one).system().metrics["pass^2"].tasks_like_these for one in (table, as_families)
    )
    assert ours.interval == theirs.interval
    three = [f"f{code % 3}" for code in table.base.codes.tolist()]
    few = replace(crossed_table(), family=type(table.base).of(three))
    assert count_evidence(few.tally()).family == evidence.family


def test_runs_that_were_sealed_before_there_were_conditions_stay_whole(tmp_path):
    trials = [Trial(system="s", task="t", trial=i, outcome=Outcome.PASSED) for i in range(3)]
    with History.open(tmp_path / "store.db") as history:
        run = stored_run(history, trials)
        sealed = history.query(f"SELECT sealed FROM runs WHERE id = {run.id}")[1][0][0]
        old = TRIAL_COLUMNS[: TRIAL_COLUMNS.index("base")]
        digest = hashlib.blake2b(digest_size=16)
        for number, trial in enumerate(trials):
            row = dict(zip(TRIAL_COLUMNS, trial_row(trial, number), strict=True))
            digest.update(msgspec.msgpack.encode(("s", "t", *(row[name] for name in old))))
        assert sealed.split(" ")[1] == digest.hexdigest()


def users_table(order, *, tasks=12, runs=5, numbered=False, levels=("kind", "curt"), seed=0):
    """Rows of a table whose second user is much harder; the order of rows varies."""
    rng = np.random.default_rng(seed)
    rows = []
    for task in range(tasks):
        own = [(user, run) for user in levels for run in range(runs)]
        if order == "user by user":
            own = [(user, run) for run in range(runs) for user in levels]
        if order == "at random":
            own = [own[i] for i in rng.permutation(len(own))]
        for place, (user, _) in enumerate(own):
            rate = 0.95 if user == levels[0] else 0.3
            number = {"trial": place} if numbered else {}
            rows.append({"task": f"t{task}", "user": user, **number, "ok": rng.random() < rate})
    return rows


@pytest.mark.parametrize("numbered", [False, True])
@pytest.mark.parametrize("order", ["run by run", "user by user", "at random"])
def test_a_condition_that_nobody_named_is_named_and_no_round_is_called_out_of_line(
    order, numbered, tmp_path
):
    kinds = set()
    for seed in range(4):
        rows = users_table(order, numbered=numbered, seed=seed)
        (tmp_path / "t.jsonl").write_text(
            "\n".join(json.dumps({**row, "ok": int(row["ok"])}) for row in rows)
        )
        read = read_trials(tmp_path / "t.jsonl", mapping=ColumnMap(passed="ok"))
        framed = Trials.from_frame(pandas.DataFrame(rows), passed="ok")
        for trials in (read, framed):
            notes = [note for note in trials.sources[0].notes if "`factor='user'`" in note]
            assert len(notes) == 1
            assert (POOLED_ROUNDS in notes[0]) == (order != "at random")
            kinds |= {event.kind for event in measure(trials).system().disturbances}
        assert not any("not used: user" in note for note in read.sources[0].notes)
    assert kinds <= {"pooled conditions"}
    assert bool(kinds) == (order != "at random")


def sampled_table(name, order, *, runs, numbered, seed, tasks=12, levels=6):
    """Rows of a table at levels of a sample, of which some are much harder."""
    rng = np.random.default_rng(seed)
    rates = rng.permutation([0.95, 0.95, 0.9, 0.9, 0.3, 0.2])
    own = [(level, run) for level in range(levels) for run in range(runs)]
    if order == "in turn":
        own.sort(key=lambda one: one[::-1])
    rows = []
    for task in range(tasks):
        for place, (level, run) in enumerate(own):
            number = {"anew": {"trial": run}, "on": {"trial": place}, "no": {}}[numbered]
            passed = int(rng.random() < rates[level])
            rows.append({"task": f"t{task}", name: level + 41, **number, "passed": passed})
    return rows


@pytest.mark.parametrize(
    "name", ["seed", pytest.param("day", marks=pytest.mark.slow("the same under another name"))]
)
@pytest.mark.parametrize("order", ["one by one", "in turn"])
@pytest.mark.parametrize(("runs", "numbered"), [(1, "no"), (4, "no"), (4, "on"), (4, "anew")])
def test_no_round_is_out_of_line_where_levels_of_a_sample_differ(
    name, order, runs, numbered, tmp_path
):
    rows = sampled_table(name, order, runs=runs, numbered=numbered, seed=runs)
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    named = read_trials(tmp_path / "t.jsonl", mapping=ColumnMap(factor=name))
    tables = [named, Trials.from_frame(pandas.DataFrame(rows), factor=name)]
    if name == "seed":  # the column of seeds is one, whether it is called a factor or not
        tables += [read_trials(tmp_path / "t.jsonl"), Trials.from_frame(pandas.DataFrame(rows))]
    reports = [measure(trials).system() for trials in tables]
    for trials, system in zip(tables, reports, strict=True):
        assert (len(trials.tasks), len(trials)) == (12, 72 * runs)
        assert system.disturbances == ()
        assert [(one.name, one.matters) for one in system.factors] == [(name, True)]
        intervals = [
            {key: metric.this_suite.interval for key, metric in one.metrics.items()}
            for one in (system, reports[0])
        ]
        assert intervals[0] == intervals[1]
    note = reports[0].pass_hat(1).this_suite.notes[-1]
    assert note.startswith("includes the spread between ")


@pytest.mark.parametrize("name", SAMPLED)
def test_a_round_that_went_wrong_at_every_level_of_a_sample_is_still_named(name):
    rng = np.random.default_rng(2)
    rows = [(t, level, r) for t in range(12) for r in range(4) for level in range(6)]
    trials = Trials.from_columns(
        task=[f"t{t}" for t, _, _ in rows],
        at=[[f"{name}={level}"] for _, level, _ in rows],
        passed=[r != 2 and bool(rng.random() < 0.9) for _, _, r in rows],
    )
    (event,) = measure(trials).system().disturbances
    assert (event.kind, event.rounds, event.tasks) == ("rounds out of line", (3,), 12)


def test_seeds_that_only_number_the_rounds_of_a_run_are_no_factor():
    passed = [r != 3 for _ in range(20) for r in range(6)]
    columns = {"task": [f"t{t}" for t in range(20) for _ in range(6)], "passed": passed}
    trials = Trials.from_columns(**columns, trial=[*range(6)] * 20, seed=[*range(6)] * 20)
    system = measure(trials).system()
    assert system.factors == ()
    assert [event.rounds for event in system.disturbances] == [(4,)]
    chosen = Trials.from_columns(
        **columns,
        base=columns["task"],
        trial=[*range(6)] * 20,
        at=[[f"seed={r}"] for r in [*range(6)] * 20],
        seed=[*range(6)] * 20,
    )
    system = measure(chosen).system()
    assert [one.name for one in system.factors] == ["seed"]
    assert system.disturbances == ()


def test_what_a_trial_came_to_is_no_condition(tmp_path):
    rng = np.random.default_rng(5)
    named = 0
    for _ in range(50):
        rows = ["task,finish,attempt no,passed"]
        for task in range(8):
            rows += [f"t{task},{rng.choice(['stop', 'length'])},{r},{r % 2}" for r in range(4)]
        (tmp_path / "t.csv").write_text("\n".join(rows))
        notes = " ".join(read_trials(tmp_path / "t.csv").sources[0].notes)
        assert "'attempt no'" not in notes
        named += "factor=" in notes
    assert named <= 1


def test_a_round_that_went_wrong_is_still_named_beside_a_condition_that_rounds_share():
    rng = np.random.default_rng(1)
    rows = [
        {"task": f"t{t}", "user": "ab"[(t + r) % 2], "ok": r != 3 and rng.random() < 0.9}
        for t in range(40)
        for r in range(6)
    ]
    trials = Trials.from_frame(pandas.DataFrame(rows), passed="ok")
    assert any(POOLED in note for note in trials.sources[0].notes)
    assert [event.rounds for event in measure(trials).system().disturbances] == [(4,)]


def test_a_condition_that_is_left_out_by_name_is_no_longer_mentioned(tmp_path):
    rows = users_table("run by run")
    trials = Trials.from_frame(pandas.DataFrame(rows), passed="ok", factor="")
    assert trials.sources[0].notes == ()
