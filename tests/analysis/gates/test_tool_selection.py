"""The floor under tool selection, in the line that its users know."""

import pytest

from passhat.analysis.gates.run_answer import selection_floor, suite_floors
from passhat.records import CommandSystem, Pairing, Task, ToolSelection, Trials


def runs(selected, total, *, tokens=1840):
    return Trials.from_columns(
        task=["weather selection"] * total,
        outcome=[1] * total,
        tools=[("list_cities", "get_weather")] * selected + [("search",)] * (total - selected),
        tokens_in=[float(tokens - 40)] * total,
        tokens_out=[40.0] * total,
    )


def floor_of(selected, total, *, tokens=1840, **terms):
    demand = ToolSelection(expected_tool="get_weather", **terms)
    return selection_floor(runs(selected, total, tokens=tokens), demand, label="weather selection")


def test_the_line_has_exactly_the_known_form():
    assert floor_of(9, 10, min_selection_rate=0.8).line == (
        "tool-selection floor [PASS] weather selection: "
        "selection 9/10 (90%), pass^k 90%, max tokens 1840"
    )


def test_one_run_over_the_tokens_fails_the_floor_even_at_every_selection():
    assert floor_of(10, 10, max_total_tokens=1840).passed
    over = floor_of(10, 10, max_total_tokens=1839)
    assert (over.passed, over.status) == (False, "FAIL")


@pytest.mark.parametrize(("bound", "word"), [(False, "PASS"), (True, "FAIL")])
def test_the_lower_bound_may_be_asked_for(bound, word):
    assert floor_of(9, 10, min_selection_rate=0.8, bound=bound).status == word


def test_the_detail_says_how_sure_the_rate_is():
    detail = floor_of(9, 10).detail
    assert "9 of 10 trials: 55 to >99% at 95% confidence, at least 61% one-sided" in detail


def test_the_detail_says_that_pass_k_in_the_line_is_a_plain_share():
    share = "`pass^k` above is this share of trials, not the chance that k of them all pass."
    assert floor_of(2, 6).detail.endswith(share)


def test_a_name_that_merely_contains_the_tool_is_not_the_tool():
    table = Trials.from_columns(task=["t"], outcome=[1], tools=[("get_weather_history",)])
    demand = ToolSelection(expected_tool="get_weather")
    floor = selection_floor(table, demand, label="t")
    assert (floor.selected, floor.status) == (0, "FAIL")
    assert "max tokens unknown; get_weather was called in 0% of the trials" in floor.line


def test_a_suite_has_a_floor_for_every_pairing_that_asks_for_one():
    system = CommandSystem(name="system", argv=("agent",))
    demand = ToolSelection(expected_tool="get_weather", min_selection_rate=0.8)
    with_floor = Task(name="weather selection", tool_selection=demand)
    pairs = [
        Pairing(system=system, task=task, runs=10, label=f"{task.name} [gpt-5]")
        for task in (with_floor, Task(name="other"))
    ]
    (floor,) = suite_floors(pairs, runs(9, 10))
    assert floor.label == "weather selection [gpt-5]"


def test_a_floor_that_fails_by_its_cap_says_so():
    table = Trials.from_columns(
        task=["t"] * 2, outcome=[1, 1], tools=[("get_weather",)] * 2, tokens=[900.0, 5200.0]
    )
    demand = ToolSelection(expected_tool="get_weather", max_total_tokens=4000)
    floor = selection_floor(table, demand, label="t")
    assert floor.line.endswith("a trial took 5200 tokens, and 4000 are allowed")
