"""What moves the result: factors of trials in reports, on screens, in gates."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passhat import render_json, render_terminal
from passhat.analysis.gates.judge import judge
from passhat.analysis.reports.measure import measure
from passhat.records import Trials
from passhat.stats.factors import factor_effect, level_test, stratified_exact_test


def crossed(rates, tasks=12, runs=5, seed=1, factor="user", more=()):
    """Trials of tasks at each level, which passes so often."""
    rng = np.random.default_rng(seed)
    rows = [(t, name, r) for t in range(tasks) for name in rates for r in range(runs)]
    return Trials.from_columns(
        task=[f"t{t}" for t, _, _ in rows],
        at=[(f"{factor}={name}", *more) for _, name, _ in rows],
        trial=[r for _, _, r in rows],
        passed=[bool(rng.random() < rates[name]) for _, name, _ in rows],
    )


def test_a_factor_is_what_its_statistics_say_of_the_table_of_levels():
    table = crossed({"kind": 0.95, "terse": 0.5})
    (found,) = measure(table).system().factors
    runs = np.full((12, 2), 5)
    passes = np.array(
        [
            [np.sum(table.where(task=f"t{t} [user={u}]").outcome == 1) for u in ("kind", "terse")]
            for t in range(12)
        ]
    )
    assert found.effect == factor_effect(runs, passes)
    assert found.test == level_test(runs, passes)
    assert (found.worst_levels, found.levels[0].name) == (("terse",), "kind")
    assert found.levels[1].difference.value == pytest.approx(
        (passes[:, 1] - passes[:, 0]).sum() / 60
    )
    assert found.matters


@pytest.mark.parametrize(
    ("passes", "worst", "said"),
    [
        ({"a": 5, "b": 3, "c": 4}, ("b",), "b, 60"),
        ({"a": 5, "b": 3, "c": 3}, ("b", "c"), "b and c alike, 60"),
        ({"a": 3, "b": 3, "c": 3}, ("a", "b", "c"), "all alike, 60"),
        ({"a": 5, "b": 3, "c": 3, "d": 3, "e": 3}, tuple("bcde"), "b, c, d and 1 more alike, 60"),
    ],
)
def test_levels_that_pass_alike_are_the_worst_together(passes, worst, said):
    rows = [(t, name, r) for t in range(9) for name in passes for r in range(5)]
    trials = Trials.from_columns(
        task=[f"t{t}" for t, _, _ in rows],
        at=[(f"user={name}",) for _, name, _ in rows],
        trial=[r for _, _, r in rows],
        passed=[r < passes[name] for _, name, r in rows],
    )
    report = measure(trials)
    assert report.system().factors[0].worst_levels == worst
    assert f"Worst: {said}" in " ".join(render_terminal(report, verbose=True).split())


def test_the_reference_is_the_level_of_tasks_as_they_are():
    cells = crossed({"b": 0.4, "a": 0.9})
    own = np.array(["user=a" in text for text in cells.at.texts()])
    names = [
        base if plain else task
        for base, task, plain in zip(cells.base.texts(), cells.task.texts(), own, strict=True)
    ]
    columns = cells.to_columns() | {"task": names}
    table = Trials.from_columns(columns)
    report = measure(table)
    (found,) = report.system().factors
    assert [level.name for level in found.levels] == ["a", "b"]
    rate = float((table.take(own).outcome == 1).mean())
    assert report.pass_hat(1).value == pytest.approx(rate)
    verdict = judge(table, ["pass@1 >= 0.6"])[0]
    assert verdict.estimate.value == pytest.approx(rate)


def test_factors_that_were_varied_one_at_a_time_are_each_compared_with_the_reference():
    rng = np.random.default_rng(4)
    cells = [("kind", "none", 0.9), ("terse", "none", 0.4), ("kind", "all", 0.85)]
    rows = [(t, *cell, r) for t in range(10) for cell in cells for r in range(4)]
    table = Trials.from_columns(
        task=[f"t{t}" for t, *_ in rows],
        at=[(f"user={u}", f"fault={f}") for _, u, f, *_ in rows],
        passed=[bool(rng.random() < p) for *_, p, _ in rows],
    )
    found = {one.name: one for one in measure(table).system().factors}
    assert {name: [level.runs for level in one.levels] for name, one in found.items()} == {
        "user": [40, 40],
        "fault": [40, 40],
    }
    assert found["user"].matters
    assert not found["fault"].matters


def test_of_factors_that_are_as_sure_the_first_is_the_one_that_moves_most():
    cells = {("a", "x"): 6, ("b", "x"): 3, ("a", "y"): 0}
    rows = [(t, *cell, r) for t in range(10) for cell in cells for r in range(6)]
    table = Trials.from_columns(
        task=[f"t{t}" for t, *_ in rows],
        at=[(f"order={order}", f"environment={place}") for _, order, place, _ in rows],
        passed=[r < cells[order, place] for _, order, place, r in rows],
    )
    report = measure(table)
    first, second = report.system().factors
    assert (first.name, second.name) == ("environment", "order")
    assert first.p_value == second.p_value
    assert "It depends on the environment" in render_terminal(report, verbose=False)
    assert "\nEnvironment\n          Worst: y" in render_terminal(report, verbose=True)


def test_who_names_no_level_is_at_that_of_tasks_as_they_are_and_a_factor_alone_has_a_reason():
    """Tasks as they are name every factor, and each cell names only what it changes."""
    conditions = [("fault=none", "wording=plain"), ("fault=all",), ("wording=polite",)]
    rows = [(t, at, r) for t in range(9) for at in conditions for r in range(4)]
    columns = {
        "task": [f"t{t}" + (f" [{at[0]}]" if len(at) == 1 else "") for t, at, _ in rows],
        "base": [f"t{t}" for t, *_ in rows],
        "at": [at for _, at, _ in rows],
        "passed": [r < 3 + (t % 2) - (len(at) == 1) for t, at, r in rows],
        "stated_confidence": [0.8] * len(rows),
    }
    system = measure(Trials.from_columns(columns)).system()
    assert {one.name: [own.name for own in one.levels] for one in system.factors} == {
        "fault": ["none", "all"],
        "wording": ["plain", "polite"],
    }
    assert system.hal["robustness_fault_injection"].number.interval is not None
    apart = measure(Trials.from_columns(columns | {"base": columns["task"]})).system()
    assert "two levels of it" in apart.hal["robustness_fault_injection"].number.reason


def test_one_level_is_no_factor_and_levels_like_these_need_five():
    assert measure(crossed({"a": 0.5})).system().factors == ()
    (two,) = measure(crossed({"1": 0.5, "2": 0.6}, factor="seed")).system().factors
    assert "5 levels" in two.like_these.reason
    (five,) = measure(crossed(dict.fromkeys("12345", 0.6), factor="seed")).system().factors
    assert five.like_these.interval.width > 0
    assert five.sampled


@given(st.integers(0, 10_000))
@settings(max_examples=10)
def test_the_first_screen_has_at_most_fifteen_lines_and_names_a_factor_that_matters(seed):
    table = crossed({"kind": 0.97, "terse": 0.3, "angry": 0.6}, tasks=10, seed=seed)
    report = measure(table)
    text = render_terminal(report, verbose=False)
    assert len(text.splitlines()) <= 15
    assert "It depends on the user" in text
    assert "What moves the result" in render_terminal(report, verbose=True)
    assert '"factors":' in render_json(report).replace(" ", "")


def test_tasks_that_a_factor_is_nothing_to_are_at_no_level_of_it():
    """A suite with a task that has a user and another that has wordings."""
    cells = [
        ("refund", "refund", ["user=kind"]),
        ("refund [user=terse]", "refund", ["user=terse"]),
        ("greet", "greet", ["wording=as written"]),
        ("greet [wording=polite]", "greet", ["wording=polite"]),
        ("plain", "plain", []),
    ]
    rows = [cell for cell in cells for _ in range(6)]
    trials = Trials.from_columns(
        task=[task for task, _, _ in rows],
        base=[base for _, base, _ in rows],
        at=[at for _, _, at in rows],
        trial=list(range(6)) * len(cells),
        passed=[i % 3 > 0 for i in range(len(rows))],
    )
    found = {
        one.name: [level.name for level in one.levels] for one in measure(trials).system().factors
    }
    assert found == {"user": ["kind", "terse"], "wording": ["as written", "polite"]}


def worded(agents, *, broken=("t0",), runs=5, tasks=12):
    """Trials of agents that are as good in either wording, but for tasks that its text breaks."""
    rng = np.random.default_rng(4)
    rows = [
        (agent, f"t{t}", wording)
        for agent in range(agents)
        for t in range(tasks)
        for wording in ("as written", "formal")
        for _ in range(runs)
    ]
    return Trials.from_columns(
        system=[f"agent {agent}" for agent, _, _ in rows],
        task=[
            t if wording == "as written" else f"{t} [wording={wording}]" for _, t, wording in rows
        ],
        base=[t for _, t, _ in rows],
        at=[(f"wording={wording}",) for _, _, wording in rows],
        passed=[
            bool(rng.random() < 0.95) and not (wording == "formal" and t in broken)
            for _, t, wording in rows
        ],
        tags=[("not reviewed",) if wording == "formal" else () for _, _, wording in rows],
    )


def test_a_wording_that_every_agent_fails_is_suspect_and_one_agent_alone_shows_nothing():
    said = " ".join(measure(worded(3)).notes)
    assert "suspect wording: every agent passes the task as it is and fails" in said
    assert "t0 [wording=formal]" in said
    assert "t1 " not in said
    assert "12 of 12 wordings were reviewed by nobody" in said
    assert "suspect" not in " ".join(measure(worded(1)).notes)
    assert "suspect" not in " ".join(measure(worded(3, broken=())).notes)
    assert "suspect wording" in render_terminal(measure(worded(3)))


@given(
    st.lists(
        st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(0, 3), st.integers(0, 3)),
        min_size=1,
        max_size=2,
    )
)
def test_the_stratified_exact_test_is_the_share_of_allotments_with_so_few_passes(strata):
    strata = [(n, min(c, n), m, min(d, m)) for n, m, c, d in strata]
    ways = [
        [
            sum(chosen)
            for chosen in set(itertools.permutations([1] * (c + d) + [0] * (n + m - c - d), n + m))
            for chosen in [chosen[:n]]
        ]
        for n, c, m, d in strata
    ]
    totals = [sum(one) for one in itertools.product(*ways)]
    seen = sum(c for _, c, _, _ in strata)
    expected = sum(total <= seen for total in totals) / len(totals)
    assert stratified_exact_test(*zip(*strata, strict=True)) == pytest.approx(expected)
