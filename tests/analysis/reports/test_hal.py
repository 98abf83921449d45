"""HAL's metrics: its own values by its own formulas, and ours with intervals beside them."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat import measure, render_terminal
from passhat.analysis.reports.targets import targets
from passhat.ingest import read_trials
from passhat.records import Trials
from passhat.stats.factors import outcome_consistency
from passhat.stats.probability_calibration import brier_by_task, discrimination

FIXTURES = Path(__file__).parents[2] / "samples" / "handmade" / "hal" / "taubench_airline"


def test_the_fixtures_of_hal_give_its_numbers_by_its_formulas():
    found = measure(read_trials(FIXTURES)).system().hal
    values = {name: one.hal_value for name, one in found.items()}
    assert values == {
        "consistency_outcome": None,
        "robustness_fault_injection": 0.0,
        "predictability_calibration": pytest.approx(0.8),
        "predictability_roc_auc": 1.0,
        "predictability_brier_score": pytest.approx(0.95),
    }
    assert "5 tasks" in found["predictability_roc_auc"].number.reason
    assert "predictability_roc_auc" in render_terminal(measure(read_trials(FIXTURES)), verbose=True)


def test_the_metrics_are_targets():
    rng = np.random.default_rng(1)
    stated = rng.uniform(size=200)
    table = Trials.from_columns(
        task=[f"t{i % 20}" for i in range(200)],
        passed=(rng.uniform(size=200) < stated).tolist(),
        stated_confidence=stated.tolist(),
    )
    named = targets(measure(table))
    assert named["predictability_calibration"].value > 0.8
    assert 0.7 < named["predictability_roc_auc"].value < 0.95
    assert named["consistency_outcome"].interval.low < named["consistency_outcome"].value


@pytest.mark.parametrize(
    ("passes", "runs", "ours", "theirs"),
    [(1, 2, -1, 0), (1, 3, -0.3333, 0.1111), (2, 5, -0.2, 0.04), (4, 5, 0.2, 0.36), (5, 5, 1, 1)],
)
def test_consistency_is_what_the_recipe_of_both_formulas_says(passes, runs, ours, theirs):
    assert outcome_consistency([runs] * 2, [passes] * 2).value == pytest.approx(ours, abs=1e-4)
    columns = {"task": [t for t in "ab" for _ in range(runs)]}
    columns["passed"] = [i < passes for _ in "ab" for i in range(runs)]
    table = Trials.from_columns(columns, stated_confidence=[0.5] * (2 * runs))
    metric = measure(table).system().hal["consistency_outcome"]
    assert metric.hal_value == pytest.approx(theirs, abs=1e-4)


@given(st.integers(0, 10_000))
def test_discrimination_is_the_share_of_pairs_in_order(seed):
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(10), 4)
    stated = rng.integers(0, 5, 40) / 4
    ended = (rng.uniform(size=40) < 0.5).astype(int)
    found = discrimination(stated, ended, task)
    if not found:
        return
    pairs = [(a > b) + (a == b) / 2 for a in stated[ended == 1] for b in stated[ended == 0]]
    assert found.value == pytest.approx(np.mean(pairs))
    assert found.interval is None or found.value in found.interval
    assert brier_by_task(stated, ended, task).value == pytest.approx(((stated - ended) ** 2).mean())


@pytest.mark.slow("simulates stated confidence")
def test_intervals_of_discrimination_and_consistency_cover():
    rng = np.random.default_rng(20261119)
    truth_rng = np.random.default_rng(1)

    def world(generator, tasks, runs=5):
        ease = generator.normal(0.5, 1.2, tasks)
        chance = 1 / (1 + np.exp(-ease))
        sure = 1 / (1 + np.exp(-(ease[:, None] + generator.normal(0, 1, (tasks, runs)))))
        return chance, sure, generator.random((tasks, runs)) < chance[:, None]

    chance, sure, ended = world(truth_rng, 4000)
    auc = discrimination(sure.ravel(), ended.ravel(), np.repeat(np.arange(4000), 5)).value
    consistency = 1 - 4 * float((chance * (1 - chance)).mean())
    hits = np.zeros(2)
    for _ in range(100):
        _, sure, ended = world(rng, 26)
        one = discrimination(sure.ravel(), ended.ravel(), np.repeat(np.arange(26), 5))
        two = outcome_consistency(np.full(26, 5), ended.sum(axis=1))
        hits += [auc in one.interval, consistency in two.interval]
    assert (hits >= 89).all(), hits
