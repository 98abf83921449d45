"""Tasks with steps: how many runs reach and pass each, and all of them."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat import Trials, render_json, targets
from passhat.analysis.reports.measure import measure
from passhat.records.trial import STEP_FAILED, STEP_PASSED
from passhat.reporters import wording
from passhat.stats.estimate import Unavailable

NAMES = ("fetch", "book", "pay")


def trials_of(reached, names=NAMES, task="trip"):
    """A trial for each number of steps that were passed before one failed."""
    rows = []
    for number, passed in enumerate(reached):
        tags = [f"{STEP_PASSED}{name}" for name in names[:passed]]
        tags += [f"{STEP_FAILED}{name}" for name in names[passed : passed + 1]]
        whole = passed == len(names)
        rows.append({"task": task, "trial": number, "passed": whole, "tags": [*tags, "travel"]})
    return Trials.from_records(rows)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=30))
def test_a_step_is_counted_among_the_runs_that_reached_it_and_all_steps_are_the_pass_rate(reached):
    system = measure(trials_of(reached)).system()
    chain = system.steps
    for step, (name, rate) in enumerate(chain.steps.items()):
        there = [one for one in reached if one >= step]
        assert (name, rate.runs) == (NAMES[step], len(there))
        assert rate.value == pytest.approx(sum(one > step for one in there) / len(there))
    assert all(one.runs >= other.runs for one, other in pairwise(chain.steps.values()))
    assert chain.all_steps.value == pytest.approx(sum(one == 3 for one in reached) / len(reached))
    assert chain.steps[chain.weakest].value == min(one.value for one in chain.steps.values())


def test_steps_have_names_in_gates_and_are_no_tags_of_a_report():
    report = measure(trials_of([3, 3, 2, 1, 3, 0]))
    found = {name: value for name, value in targets(report).items() if name.startswith("steps")}
    assert list(found) == [
        *("steps.all", "steps.weakest"),
        *(f"steps[{name}].pass_rate" for name in NAMES),
    ]
    assert not [name for name in report.system().tags if name.startswith("step-")]
    assert wording.steps(report.system().steps) == (
        "Passed, of the trials that reached it: fetch 5 of 6 (83%), book 4 of 5 (80%), "
        "pay 3 of 4 (75%). All steps: 50% (13 to 87%). Weakest: pay."
    )


def test_tasks_with_other_steps_have_no_product():
    one, other = trials_of([2, 1, 2], ("a", "b")), trials_of([2, 2, 0], ("x", "y"), "other")
    chain = measure(Trials.concat([one, other])).system().steps
    assert isinstance(chain.all_steps, Unavailable)
    assert set(chain.steps) == {"a", "b", "x", "y"}


def test_trials_without_steps_have_none():
    assert measure(Trials.from_columns(task=["a"], passed=[True])).system().steps is None


def test_json_has_the_steps_and_null_without_any():
    report = measure(trials_of([2, 0, 3, 2]))
    found = json.loads(render_json(report))["systems"][0]["steps"]
    chain = report.system().steps
    assert {name: step["value"] for name, step in found["steps"].items()} == {
        name: rate.value for name, rate in chain.steps.items()
    }
    assert found["all_steps"]["value"] == chain.all_steps.value
    assert found["weakest"] == chain.weakest
    plain = measure(Trials.from_columns(task=["a", "a"], passed=[1, 0]))
    assert json.loads(render_json(plain))["systems"][0]["steps"] is None
