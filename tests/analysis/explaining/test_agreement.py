"""Agreement: a tool is named when passing runs agree on its calls and failing ones depart."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.analysis.explaining.run_diff import departures, divergences
from passhat.analysis.explaining.runs import compared_runs
from passhat.stats.multiple_testing import shuffled_in_strata

outcomes_and_values = st.lists(
    st.tuples(st.booleans(), st.integers(0, 2)), min_size=3, max_size=7
).filter(lambda rows: 2 <= sum(ok for ok, _ in rows) < len(rows))


def shuffles(compared, count=499):
    rng = np.random.default_rng(0)
    return shuffled_in_strata(compared.failed, compared.stratum, shuffles=count, rng=rng)


@given(outcomes_and_values)
def test_the_statistic_is_the_share_of_differing_pairs_counted_one_by_one(rows):
    from passhat.analysis.explaining.run_diff import _disagreement

    passing = np.array([ok for ok, _ in rows])
    codes = np.unique([value for _, value in rows], return_inverse=True)[1]
    good, bad = codes[passing], codes[~passing]
    within = np.mean([one != other for one, other in combinations(good, 2)])
    across = np.mean([one != other for one in good for other in bad])
    if codes.max():
        assert _disagreement(codes, passing[None, :])[0] == pytest.approx(across - within, abs=1e-6)


def test_a_value_of_its_own_in_each_task_is_found_though_no_value_is_shared(make_run):
    runs = []
    for task in range(8):
        right = {"amount": 10 * task}
        for trial in range(6):
            wrong = {"amount": 1000 + 10 * task + trial}
            failed = trial < 3
            calls = ("look", ("refund", wrong if failed else right))
            runs.append(make_run("F" if failed else "P", *calls, task=str(task), trial=trial))
    compared = compared_runs(runs)
    (found,) = departures(compared, shuffles(compared))
    assert (found.tool, found.failing, found.failing_of) == ("refund", 24, 24)
    assert (found.passing, found.passing_of, found.tasks) == (0, 24, 8)
    assert (found.more, found.fewer, found.other) == (0, 0, 24)
    assert found.p == pytest.approx(1 / 500)


def test_calls_that_failed_are_not_what_a_run_did(make_run):
    broken = ("refund", {"amount": 1}, "Error: no")
    runs = [
        make_run("P", ("refund", {"amount": 5}), trial=0),
        make_run("P", broken, ("refund", {"amount": 5}), trial=1),
        make_run("F", ("refund", {"amount": 9}), trial=2),
    ]
    compared = compared_runs(runs)
    (found,) = departures(compared, shuffles(compared))
    assert (found.failing, found.passing) == (1, 0)


def test_more_fewer_and_other_are_against_the_nearest_passing_run(make_run):
    calls = [("cancel", {"id": 1}), ("cancel", {"id": 2})]
    runs = [
        make_run("P", *calls, trial=0),
        make_run("P", *calls, trial=1),
        make_run("F", *calls, ("cancel", {"id": 3}), trial=2),
        make_run("F", calls[0], trial=3),
        make_run("F", calls[0], ("cancel", {"id": 4}), trial=4),
    ]
    compared = compared_runs(runs)
    (found,) = departures(compared, shuffles(compared))
    assert (found.more, found.fewer, found.other) == (1, 1, 1)


def test_sentences_on_two_tools_say_how_the_calls_of_each_differ(make_run):
    from passhat.analysis.explaining.causes import _from_departure

    right = {"tool": 1, "to": "ann", "amount": 5, "day": 2}
    changed = [{"to": "bo"}, {"to": "bo", "amount": 6}, {"to": "bo", "amount": 6, "day": 3}]
    ways = [*({**right, **change} for change in changed), None, right]

    def sentence(wrong):
        runs = [make_run("P", ("send", right), trial=trial) for trial in (0, 1)]
        extra = ("send", {"tool": 2})
        calls = [] if wrong is None else [("send", wrong), *([extra] if wrong == right else [])]
        runs.append(make_run("F", *calls, trial=2))
        compared = compared_runs(runs)
        (found,) = departures(compared, shuffles(compared))
        return _from_departure(found, divergences(compared)).sentence

    told = [sentence(wrong) for wrong in ways]
    start, end = (
        "1 of 1 failing trial called send as no passing trial of the task did (1 ",
        ("); 0 of 2 passing ones did (1 task)."),
    )
    assert [one.removeprefix(start).removesuffix(end) for one in told] == [
        "with another to",
        "with another amount or to",
        "with other arguments",
        "less often",
        "more often",
    ]


def test_a_task_with_one_passing_run_says_nothing_of_agreement(make_run):
    runs = [make_run("P", ("f", {"x": 1})), make_run("F", ("f", {"x": 2}), trial=1)]
    compared = compared_runs(runs)
    assert departures(compared, shuffles(compared)) == ()
