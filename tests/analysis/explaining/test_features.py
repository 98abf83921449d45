"""Properties of runs: each holds for the runs it says, and none looks at the outcome."""

import pytest

from passhat.analysis.explaining.causes import KINDS, RunFeature, feature_words, features


def having(*runs):
    found = features(runs, [range(len(runs))])
    return {feature: sorted(numbers) for feature, numbers in found.items()}


def test_calls_counts_pairs_and_ends(make_run):
    found = having(make_run("P", "a", "b", "b"), make_run("F", "b", trial=1))
    assert found[RunFeature("called", "a")] == [0]
    assert found[RunFeature("times", "b", ("2",))] == [0]
    assert found[RunFeature("pair", "b", ("a",))] == [0]
    assert found[RunFeature("first call", "b")] == [1]
    assert found[RunFeature("last call", "b")] == [0, 1]
    assert RunFeature("times", "b", ("3",)) not in found


def test_the_same_call_twice_is_a_repeat_and_two_calls_of_one_tool_are_not(make_run):
    found = having(
        make_run("P", ("f", {"x": 1}), ("f", {"x": 1})),
        make_run("P", ("f", {"x": 1}), ("f", {"x": 2}), trial=1),
    )
    assert found[RunFeature("repeated call", "f")] == found[RunFeature("repeated call")] == [0]


def test_an_error_is_mended_by_a_later_success_of_its_tool_alone(make_run):
    broken = ("pay", {}, "Error: card 17 refused")
    found = having(
        make_run("P", broken, "pay"),
        make_run("F", "pay", broken, trial=1),
        make_run("F", broken, "look", trial=2),
    )
    assert found[RunFeature("error", "pay")] == [0, 1, 2]
    assert found[RunFeature("unmended error", "pay")] == [1, 2]
    assert found[RunFeature("error text", "pay", ("Error: card <n> refused",))] == [0, 1, 2]


def test_without_first_needs_a_tool_that_comes_first_in_at_least_half_of_the_runs(make_run):
    found = having(
        make_run("P", "look", "refund"),
        make_run("P", "look", "refund", trial=1),
        make_run("F", "refund", "look", trial=2),
        make_run("F", "think", "refund", trial=3),
    )
    assert found[RunFeature("without first", "refund", ("look",))] == [2, 3]
    assert RunFeature("without first", "refund", ("think",)) not in found


def test_arguments_lists_and_values_that_nobody_mentioned(make_run):
    found = having(
        make_run("P", ("book", {"city": "Oslo", "bags": [1, 2]}), prompt="To Oslo please"),
        make_run("F", ("book", {"city": "Bergen", "bags": [1]}), trial=1, prompt="To Oslo please"),
        make_run("P", ("book", {"city": "Oslo", "bags": [1, 2]}), trial=2, prompt="To OSLO"),
    )
    assert found[RunFeature("argument", "book", ("city", "Oslo"))] == [0, 2]
    assert found[RunFeature("list length", "book", ("bags", "1"))] == [1]
    assert found[RunFeature("unmentioned", "book", ("city",))] == [1]
    assert found[RunFeature("unusual argument", "book", ("city",))] == [1]


def test_what_a_tool_answered_before_a_call_was_mentioned_and_after_it_was_not(make_run):
    found = having(
        make_run("P", ("find", {}, "order W4711"), ("refund", {"order": "W4711"})),
        make_run("F", ("refund", {"order": "W4711"}), ("find", {}, "order W4711"), trial=1),
    )
    assert found[RunFeature("unmentioned", "refund", ("order",))] == [1]


def test_what_sets_a_run_apart_from_its_task(make_run):
    usual = [make_run("P", "look", "act", trial=i) for i in range(5)]
    found = having(*usual, make_run("F", "act", "odd", "odd", trial=5))
    assert found[RunFeature("left out")] == found[RunFeature("rare tool")] == [5]
    assert found[RunFeature("many calls")] == [5]


def test_no_property_depends_on_how_the_runs_ended(make_run):
    calls = [("look", "act"), ("act",), ("look", "look", "act")]
    one = having(*(make_run("P", *c, trial=i) for i, c in enumerate(calls)))
    other = having(*(make_run("F", *c, trial=i) for i, c in enumerate(calls)))
    assert one == other


@pytest.mark.parametrize("lacking", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_words_in_which_braces_are_only_text(kind, lacking):
    words = feature_words(RunFeature(kind, "{tool}", ("{0}", "{x}")), lacking=lacking)
    assert "{1}" not in words
    assert feature_words(RunFeature(kind, "f", ("a", "b")), lacking=lacking)
