"""Two runs beside each other: nothing is lost, order is kept, likes stand beside likes."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.analysis.explaining.run_diff import align, first_differing_pair
from passhat.analysis.explaining.runs import NormalizedCall

made = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 1), st.booleans()), max_size=6)


def calls(rows):
    return [
        NormalizedCall(
            tool=tool,
            arguments={"x": str(x)},
            key=f"{tool} {x}",
            error="broke" if broke else None,
            place=i,
            said_in=i,
        )
        for i, (tool, x, broke) in enumerate(rows)
    ]


def best_score(left, right):
    """The best of all pairings that keep the order, tried one by one."""
    best = 0
    for size in range(min(len(left), len(right)) + 1):
        for mine in combinations(left, size):
            for theirs in combinations(right, size):
                pairs = list(zip(mine, theirs, strict=True))
                if all(one.tool == other.tool for one, other in pairs):
                    best = max(best, sum(4 if a.key == b.key else 2 for a, b in pairs))
    return best


@given(made, made)
def test_every_call_stands_once_and_in_its_order(one, other):
    left, right = calls(one), calls(other)
    pairs = align(left, right)
    assert [pair.left for pair in pairs if pair.left] == left
    assert [pair.right for pair in pairs if pair.right] == right


@given(made, made)
def test_no_other_pairing_has_more_alike(one, other):
    left, right = calls(one), calls(other)
    scores = {"same": 4, "other result": 4, "other arguments": 2}
    pairs = align(left, right)
    assert sum(scores.get(pair.relation, 0) for pair in pairs) == best_score(left, right)


@given(made)
def test_a_run_beside_itself_is_the_same_all_along(one):
    pairs = align(calls(one), calls(one))
    assert all(pair.relation == "same" for pair in pairs)
    assert first_differing_pair(pairs) is None


def test_relations_and_the_first_parting():
    left = calls([("a", 0, False), ("b", 0, False), ("c", 0, False)])
    right = calls([("a", 0, True), ("b", 1, False), ("a", 1, False)])
    pairs = align(left, right)
    assert [pair.relation for pair in pairs] == [
        *("other result", "other arguments", "left only", "right only")
    ]
    assert pairs[1].arguments == ("x",)
    assert first_differing_pair(pairs) == 0


@pytest.mark.parametrize("size", [0, 1, 1_500])
def test_long_runs_end_with_calls_that_stand_alone(size):
    left = calls([("a", 0, False)] * size)
    right = calls([("b", 0, False), *[("a", 0, False)] * size])
    pairs = align(left, right)
    assert sum(pair.left is not None for pair in pairs) == size
    assert sum(pair.right is not None for pair in pairs) == size + 1


def test_the_same_call_with_an_empty_result_in_one_run_is_another_result(make_run):
    full, empty = ("find", {"id": 1}, '["x"]'), ("find", {"id": 1}, "[]")
    (pair,) = align(make_run("P", full).calls, make_run("F", empty).calls)
    assert pair.relation == "other result"
    (pair,) = align(make_run("P", empty).calls, make_run("F", empty).calls)
    assert pair.relation == "same"
