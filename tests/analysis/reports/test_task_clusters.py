"""Groups of tasks: all of them once, in an order that nothing but the rates decides."""

import random

from hypothesis import given
from hypothesis import strategies as st

from passhat.analysis.reports.plots import MOST_CLUSTERS, MOST_PATTERNS, cluster_tasks

RATES = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])
TABLES = st.integers(1, 4).flatmap(
    lambda systems: st.lists(st.tuples(*[RATES] * systems), min_size=1, max_size=30)
)


def rates_of(table):
    return {f"s{j}": {f"t{i}": row[j] for i, row in enumerate(table)} for j in range(len(table[0]))}


@given(TABLES)
def test_every_task_and_every_system_is_in_one_place(table):
    found = cluster_tasks(rates_of(table))
    assert sorted(found.tasks) == sorted(f"t{i}" for i in range(len(table)))
    assert sorted(found.systems) == sorted(f"s{j}" for j in range(len(table[0])))
    assert len(found.clusters) <= MOST_CLUSTERS + 2


@given(TABLES, st.randoms(use_true_random=False))
def test_the_order_of_the_log_does_not_matter(table, rng):
    rates = rates_of(table)
    mixed = {
        name: dict(rng.sample(list(tasks.items()), len(tasks)))
        for name, tasks in rng.sample(list(rates.items()), len(rates))
    }
    assert cluster_tasks(mixed) == cluster_tasks(rates)


@given(TABLES)
def test_what_always_passes_and_what_never_does_are_groups_of_their_own(table):
    for cluster in cluster_tasks(rates_of(table)).clusters:
        rows = [table[int(task[1:])] for task in cluster.tasks]
        always = [all(rate == 1 for rate in row) for row in rows]
        never = [all(rate == 0 for rate in row) for row in rows]
        assert all(always) or not any(always)
        assert all(never) or not any(never)
        assert ("every agent passes in every trial" in cluster.sentence) == all(always)
        assert ("no agent passes even once" in cluster.sentence) == all(never)


def test_planted_groups_are_found_and_named():
    rng = random.Random(3)
    often = lambda: rng.choice([0.8, 1.0])  # noqa: E731
    seldom = lambda: rng.choice([0.0, 0.2])  # noqa: E731
    kinds = {
        "easy": lambda: (1.0, 1.0, 1.0),
        "only-a": lambda: (often(), seldom(), seldom()),
        "not-b": lambda: (often(), seldom(), often()),
        "hard": lambda: (0.0, 0.0, 0.0),
    }
    table = {f"{kind}-{i}": draw() for kind, draw in kinds.items() for i in range(9)}
    rates = {name: {t: row[j] for t, row in table.items()} for j, name in enumerate("abc")}
    sentences = [one.sentence for one in cluster_tasks(rates).clusters]
    assert sentences[0] == "9 tasks that every agent passes in every trial"
    assert sentences[-1] == "9 tasks that no agent passes even once"
    assert [s.split(",")[0] for s in sentences[1:-1]] == [
        "9 tasks that only a and c mostly pass",
        "9 tasks that only a mostly passes",
    ]


def test_tasks_that_a_system_did_not_run_are_placed_by_the_others():
    found = cluster_tasks({"a": {"x": 1.0, "y": 0.0}, "b": {"x": 1.0}})
    assert [cluster.tasks for cluster in found.clusters] == [("x",), ("y",)]


def test_more_patterns_than_can_be_ordered_stay_in_order_of_their_means():
    table = {f"t{i}": i / 1000 for i in range(1, MOST_PATTERNS + 50)}
    found = cluster_tasks({"a": table, "b": dict.fromkeys(table, 0.5)})
    rates = [table[task] for task in found.tasks]
    assert rates == sorted(rates, reverse=True)


def test_rates_that_look_like_distances_give_no_warning():
    table = {"a": {"x": 0.0, "y": 0.5, "z": 0.5}, "b": {"x": 0.5, "y": 0.0, "z": 0.25}}
    table["c"] = {"x": 0.5, "y": 0.25, "z": 0.0}
    assert len(cluster_tasks(table).tasks) == 3
