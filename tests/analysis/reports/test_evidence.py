import numpy as np
import pytest

from passhat import compare, plan, profile, rank, simulate
from passhat.analysis.comparing.trends import CountedRun, trends
from passhat.analysis.gates.judge import judge
from passhat.analysis.reports.evidence import count_evidence, typical_runs
from passhat.analysis.reports.measure import measure
from passhat.analysis.reports.metrics import headline_number
from passhat.arguments import ReportOptions
from passhat.errors import ArgumentError
from passhat.records import Trials

PAIR = simulate(tasks=4, runs=3, rate={"a": 0.9, "b": 0.5})
ONE = PAIR.where(system="a")


def _evidence(**columns):
    return count_evidence(Trials.from_columns(**columns).tally())


@pytest.mark.parametrize(
    ("scores", "expected"),
    [([1, 0, 0], True), ([1, 0.5, 0], False), ([0.5, 0.5, 0], False), ([1, 1, 0], False)],
)
def test_scores_are_all_or_nothing_when_they_say_what_the_outcome_says(scores, expected):
    found = _evidence(task=["a", "a", "b"], passed=[True, False, False], score=scores)
    assert found.all_or_nothing is expected


@pytest.mark.parametrize("errors", ["fail", "exclude"])
def test_errored_runs_leave_all_or_nothing_scores_so(errors):
    table = Trials.from_columns(task=["a", "a", "b"], outcome=["passed", "errored", "errored"])
    assert count_evidence(table.tally(), ReportOptions(errors=errors)).all_or_nothing


@pytest.mark.parametrize("runs", [[3], [2, 5], [1, 9, 4], [4, 4, 1, 9], [1, 2, 3, 4, 5, 6]])
def test_most_tasks_have_the_typical_runs_and_no_more_than_half_have_more(runs):
    counts = np.array(runs)
    typical = typical_runs(counts)
    assert 2 * np.count_nonzero(counts >= typical) > counts.size
    assert 2 * np.count_nonzero(counts > typical) <= counts.size


@pytest.mark.parametrize(
    "ask",
    [
        lambda errors: measure(PAIR, errors=errors),
        lambda errors: compare(PAIR, errors=errors),
        lambda errors: rank(PAIR, errors=errors),
        lambda errors: profile(ONE, PAIR, errors=errors),
        lambda errors: judge(PAIR, "pass^1 >= 0.5", errors=errors),
        lambda errors: plan(errors=errors),
        lambda errors: headline_number(ONE.tally(), errors=errors),
        lambda errors: trends(
            [CountedRun(key="1", label="1", started="", tallies=(ONE.tally(),))], errors=errors
        ),
    ],
    ids=["measure", "compare", "rank", "profile", "judge", "plan", "headline number", "trends"],
)
def test_an_unknown_error_policy_is_refused_by_everything_that_takes_one(ask):
    with pytest.raises(ArgumentError, match="errors must be one of 'fail', 'exclude', got 'drop'"):
        ask("drop")
