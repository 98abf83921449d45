"""Causes: planted ones are named, luck is not, and what cannot be known is not claimed."""

import numpy as np
import pytest
from bench.calibrate.simulated_agents import SHARED_CAUSES, omitted, simulate_runs, wrong_amount

from passhat.analysis.explaining.causes import find_causes, smallest_possible_p
from passhat.analysis.explaining.run_diff import divergences
from passhat.analysis.explaining.runs import compared_runs

STRONG = (0.95, 0.05)


def causes(compared, *, alpha=0.05, shuffles=499):
    rng = np.random.default_rng(0)
    found = divergences(compared)
    return find_causes(compared, found, alpha=alpha, shuffles=shuffles, rng=rng)


@pytest.mark.parametrize("plant", SHARED_CAUSES, ids=lambda plant: plant.__name__)
def test_a_strong_cause_that_ten_tasks_share_is_named_first(plant):
    world = simulate_runs(10, 10, np.random.default_rng(3), plant=plant, fails=STRONG)
    named = causes(world.compared)
    words = {
        "omitted": "get_order",
        "wrong_value": "voucher",
        "extra": "cancel_order",
        "unmended": "error from refund",
        "repeated": "refund twice",
        "stopped": "max_turns",
    }
    assert words[plant.__name__] in named[0].sentence
    assert named[0].failing / named[0].failing_of > 0.8
    assert named[0].passing / named[0].passing_of < 0.2


def test_the_sentence_names_the_call_that_was_left_out_and_counts_both_sides():
    world = simulate_runs(
        10, 10, np.random.default_rng(3), plant=omitted, share=0.3, fails=(1.0, 0.0)
    )
    (cause,) = causes(world.compared)
    failing = int(world.compared.failed.sum())
    assert cause.sentence.startswith(
        f"{failing} of {failing} failing trials called refund without calling get_order first; 0 "
        f"of "
    )
    assert cause.example.failing[1] == cause.example.passing[1]


def test_what_failing_runs_never_did_is_counted_among_passing_runs_as_done(make_run):
    runs = [make_run("P", "look", "send", trial=i) for i in range(8)]
    runs += [make_run("F", "look", trial=i) for i in range(8, 16)]
    (cause,) = causes(compared_runs(runs))
    assert cause.sentence == (
        "8 of 8 failing trials never called send; all 8 passing trials called send (1 task)."
    )


def test_a_wrong_value_of_each_task_is_named_by_its_tool():
    world = simulate_runs(
        10, 8, np.random.default_rng(5), plant=wrong_amount, share=0.6, fails=STRONG
    )
    assert [cause.tool for cause in causes(world.compared)] == ["refund"]


@pytest.mark.slow("simulates an error rate")
def test_where_outcomes_are_luck_nothing_is_named_more_often_than_promised():
    rng = np.random.default_rng(6)
    named = [bool(causes(simulate_runs(5, 8, rng).compared, shuffles=199)) for _ in range(60)]
    assert sum(named) <= 8  # 3 expected at most; 9 or more happen once in 250 times


def test_five_runs_of_one_task_can_never_name_a_cause(make_run):
    runs = [make_run("P", "look", "act", trial=i) for i in range(3)]
    runs += [make_run("F", "act", trial=i) for i in (3, 4)]
    compared = compared_runs(runs)
    assert smallest_possible_p(compared) > 0.05
    assert causes(compared) == ()


def test_equal_runs_give_no_cause(make_run):
    runs = [make_run("PF"[i % 2], "look", trial=i) for i in range(20)]
    assert causes(compared_runs(runs)) == ()
    assert causes(compared_runs([])) == ()


def test_a_second_property_is_told_only_if_it_holds_among_runs_alike_in_the_first(make_run):
    # Every run without `look` also lacks `note`: one cause, two names for it.
    runs = []
    for task in range(6):
        for trial in range(8):
            calls = ("act",) if trial < 4 else ("look", "note", "act")
            runs.append(make_run("F" if trial < 4 else "P", *calls, task=str(task), trial=trial))
    assert len(causes(compared_runs(runs))) == 1


def test_two_causes_that_do_not_hang_together_are_both_told(make_run):
    rng = np.random.default_rng(8)
    runs = []
    for task in range(12):
        for trial in range(10):
            skips, doubles = (rng.random(2) < 0.35).tolist()
            calls = ["act", *["act"] * doubles] if skips else ["look", "act", *["act"] * doubles]
            failed = skips or doubles
            runs.append(make_run("F" if failed else "P", *calls, task=str(task), trial=trial))
    told = " ".join(cause.words for cause in causes(compared_runs(runs)))
    assert "look" in told
    assert "act twice" in told


def test_a_tool_that_returns_nothing_is_named_though_the_calls_are_the_same(make_run):
    found = ("find_order", {"id": "A1"}, '{"status": "shipped"}')
    runs = [make_run("P", found, trial=i) for i in range(8)]
    runs += [make_run("F", ("find_order", {"id": "A1"}, " {}\n"), trial=i) for i in range(8, 16)]
    (cause,) = causes(compared_runs(runs))
    assert cause.sentence == (
        "8 of 8 failing trials got an empty result from find_order; 0 of 8 passing ones did "
        "(1 task)."
    )
