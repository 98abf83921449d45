"""The frontier of cost and reliability: who may be on it, and how sure that is."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from passhat import journeys
from passhat.analysis.comparing.ranking import find_frontier
from passhat.errors import ArgumentError
from passhat.records import Trials
from passhat.stats.estimate import Unavailable
from passhat.stats.usage import smaller_ratio_p


def agents(prices, tasks=20, runs=5, seed=0, spread=1.0):
    """Trials of agents: each has a shift in logits and a price of a trial."""
    rng = np.random.default_rng(seed)
    ease = rng.normal(0.5, spread, tasks)
    columns = {"system": [], "task": [], "trial": [], "passed": [], "cost": [], "seconds": []}
    for name, (shift, price) in prices.items():
        chance = 1 / (1 + np.exp(-(ease + shift)))
        for task in range(tasks):
            for run in range(runs):
                columns["system"].append(name)
                columns["task"].append(f"t{task}")
                columns["trial"].append(run)
                columns["passed"].append(bool(rng.random() < chance[task]))
                columns["cost"].append(price * rng.lognormal(0, 0.3))
                columns["seconds"].append(price * rng.lognormal(0, 0.3))
    return Trials.from_columns(columns)


def test_an_agent_that_is_dearer_and_less_reliable_is_beaten():
    table = agents({"good": (1.5, 1.0), "cheap": (0.0, 0.2), "waste": (-1.0, 3.0)})
    found = find_frontier(table)
    assert [one.name for one in found.candidates] == ["cheap", "good"]
    (waste,) = [one for one in found.systems if one.beaten_by]
    assert (waste.name, waste.beaten_by) in {("waste", "good"), ("waste", "cheap")}
    assert waste.p_value <= 0.05
    assert [one.name for one in find_frontier(table, by="seconds").candidates] == ["cheap", "good"]
    assert journeys.compare(table, by="latency") == journeys.compare(table, by="seconds")


@given(st.integers(0, 10_000))
@settings(max_examples=15)
def test_what_is_cheaper_or_more_reliable_than_every_other_is_a_candidate(seed):
    table = agents({"a": (0.0, 1.0), "b": (0.3, 1.1), "c": (1.0, 0.9)}, tasks=8, seed=seed)
    found = find_frontier(table)
    values = {one.name: (one.price.value, one.reliability.value) for one in found.systems}
    names = {one.name for one in found.candidates}
    cheapest = min(values, key=lambda name: values[name][0])
    assert cheapest in names
    assert max(values, key=lambda name: (values[name][1], -values[name][0])) in names


def test_the_test_of_prices_is_students_where_each_task_has_one_success():
    rng = np.random.default_rng(3)
    a, b = rng.lognormal(0, 0.01, 12), rng.lognormal(0.01, 0.01, 12)
    ours = smaller_ratio_p(a, np.ones(12), b, np.ones(12))
    theirs = stats.ttest_rel(a, b, alternative="less").pvalue
    assert ours == pytest.approx(theirs, rel=0.05)


def test_what_cannot_be_known_is_said():
    table = agents({"a": (0, 1.0), "b": (0, 1.0)}, tasks=2)
    assert "3 tasks" in find_frontier(table).reason
    plain = Trials.from_columns(system=["a", "b"], task=["t", "t"], passed=[1, 0])
    assert isinstance(find_frontier(plain), Unavailable)
    with pytest.raises(ArgumentError, match="cost, tokens, seconds"):
        find_frontier(table, by="beauty")


@pytest.mark.slow("simulates frontiers")
def test_an_agent_on_the_frontier_is_left_out_at_most_as_often_as_promised():
    """The worst case: agents that are equal on both, so that all are on the frontier."""
    wrong = sum(
        len(find_frontier(agents(dict.fromkeys("abcd", (0.0, 1.0)), seed=seed)).candidates) < 4
        for seed in range(60)
    )
    assert wrong <= 7
