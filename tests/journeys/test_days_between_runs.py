"""What is compared with a stored run includes how far the agent moves from day to day."""

import numpy as np
import pytest
from scipy.special import expit

from passhat import journeys
from passhat.history import History
from passhat.journeys import (
    review_change,
    store_results,
)
from passhat.journeys.results import Results
from passhat.records import Trials

TASKS, RUNS = 20, 5
NOTE = "includes the spread between runs"  # all are stored within one day


def write_day(path, rng, skill, shift):
    passed = rng.random((TASKS, RUNS)) < expit(skill + shift)[:, None]
    rows = [f"bot,t{i},{r},{int(passed[i, r])}" for i in range(TASKS) for r in range(RUNS)]
    path.write_text("\n".join(["system,task,trial,passed", *rows]) + "\n")


@pytest.fixture
def nightly(tmp_path):
    """A store with seven nights of one agent that moves from night to night, and their files."""
    rng = np.random.default_rng(4)
    skill = rng.normal(0.5, 1, TASKS)
    store, keys = tmp_path / "history.db", []
    for night, shift in enumerate(rng.normal(0, 0.5, 7)):
        path = tmp_path / f"night{night}.csv"
        write_day(path, rng, skill, shift)
        keys.append(store_results(path, suite="nightly", store=store).run.key)
    return store, keys, tmp_path


def test_a_comparison_of_stored_runs_includes_the_days_and_one_of_their_files_cannot(nightly):
    store, keys, folder = nightly
    runs = journeys.compare(Results(paths=(keys[-1], keys[0]), store=store))
    files = journeys.compare([folder / "night6.csv", folder / "night0.csv"])
    assert runs.headline.value == files.headline.value
    assert runs.headline.this_suite.interval.width > 1.2 * files.headline.this_suite.interval.width
    assert any(NOTE in note for note in runs.notes)
    assert not any(NOTE in note for note in files.notes)


def test_a_file_against_a_stored_run_includes_them_as_a_gate_does(nightly):
    store, keys, folder = nightly
    new = str(folder / "night6.csv")
    found = journeys.compare(Results(paths=(new, keys[0]), store=store))
    assert any(NOTE in note for note in found.notes)
    gate = journeys.gate(Results(paths=(new,), store=store), [f"no_worse_than {keys[0]} by 0.01"])[
        0
    ]
    assert any(NOTE in note for note in gate.notes)


def test_a_baseline_that_is_named_apart_from_the_demand_includes_them_too(nightly):
    store, keys, folder = nightly
    results = Results(paths=(str(folder / "night6.csv"),), store=store)
    named = journeys.gate(results, [f"no_worse_than {keys[0]} by 0.01"])[0]
    apart = journeys.gate(results, against=keys[0], margin=0.01)[0]
    assert (apart.sentence, apart.notes) == (named.sentence, named.notes)


def test_two_systems_of_the_same_results_are_compared_without_them(nightly):
    store, keys, folder = nightly
    path = folder / "both.csv"
    header, *rows = (folder / "night6.csv").read_text().splitlines()
    other = [row.replace("bot,", "other,", 1) for row in rows]
    path.write_text("\n".join([header, *rows, *other]) + "\n")
    results, require = Results(paths=(str(path),), store=store), "no_worse_than other by 0.01"
    alone = journeys.gate(results, [require], only=["bot"])[0]
    beside = journeys.gate(results, [require], only=["bot"], against=keys[0])[0]
    assert (beside.sentence, beside.notes) == (alone.sentence, alone.notes)


def test_a_review_compares_as_a_comparison_does(nightly):
    store, keys, _ = nightly
    found = review_change(Results(paths=(keys[6],), store=store), against=keys[0])
    compared = journeys.compare(Results(paths=(keys[6], keys[0]), store=store))
    assert found.comparisons["bot"].differences == compared.differences


def test_a_run_is_no_other_day_than_itself(nightly):
    store, keys, _ = nightly
    found = journeys.compare(Results(paths=(keys[0], keys[0]), store=store))
    assert not any(NOTE in note for note in found.notes)


@pytest.mark.slow("starts a process for each of fifty-six trials")
def test_a_gate_at_the_end_of_a_run_includes_them(tmp_path):
    suite = tmp_path / "suite.yml"
    suite.write_text(
        """
name: coin
defaults: {runs: 4}
systems:
  - name: coin
    command: [python, -c, "import os, random; print(random.random() < 0.5)"]
tasks:
  - {name: one, prompt: x, expect: [{contains: "True"}]}
  - {name: two, prompt: x, expect: [{contains: "True"}]}
"""
    )
    store = tmp_path / "history.db"
    for _ in range(6):
        journeys.run(suite, store=store)
    with History.open(store, read_only=True) as history:
        earlier = next(iter(history.runs())).key
    answer = journeys.run(suite, store=store, require=[f"no_worse_than {earlier} by 0.5"])
    assert any(NOTE in note for note in answer.verdicts[0].notes)


@pytest.mark.parametrize("first", ["A", "B"])
@pytest.mark.parametrize("gates", [["no_worse_than A by 0.1"], ["B: better_than A", "sentence?"]])
def test_the_agent_that_gates_compare_with_is_the_second_side_whoever_ran_first(
    tmp_path, first, gates
):
    names = [first, "B" if first == "A" else "A"]
    table = Trials.from_columns(
        system=[name for name in names for _ in range(8)],
        task=["t0", "t1"] * 8,
        passed=[name == "B" for name in names for _ in range(8)],
    )
    store = tmp_path / "history.db"
    with History.open(store) as history:
        run = history.start_run("pair", options={"gates": gates})
        history.add_trials(run, table)
    found = journeys.compare(Results(paths=("latest",), store=store))
    assert (found.first, found.second, found.headline.value) == ("B", "A", 1.0)
    chosen = journeys.compare(Results(paths=("latest",), store=store), only=["A", "B"])
    assert (chosen.first, chosen.headline.value) == ("A", -1.0)
