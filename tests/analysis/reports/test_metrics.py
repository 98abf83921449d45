import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passhat.analysis.reports.evidence import count_evidence
from passhat.analysis.reports.metrics import measure_metrics
from passhat.records import Trials
from passhat.stats.estimate import Estimate

KS = (1, 2, 3, 4, 5)
passes_of_five = st.lists(st.integers(0, 5), min_size=2, max_size=12)


def _evidence(passes, runs=5):
    rows = [(f"t{i}", run < count) for i, count in enumerate(passes) for run in range(runs)]
    task, passed = zip(*rows, strict=True)
    return count_evidence(Trials.from_columns(task=task, passed=passed).tally())


@pytest.mark.parametrize("scope", ["this suite", "tasks like these"])
@settings(max_examples=40)
@given(passes=passes_of_five)
def test_from_all_of_many_to_any_of_many_values_and_both_ends_rise(scope, passes):
    metrics = measure_metrics(_evidence(passes), KS, confidence=0.95)
    names = [f"pass^{k}" for k in reversed(KS)] + [f"pass@{k}" for k in KS]
    chain = [metrics[name].within(scope) for name in names]
    for number in chain:
        assert number.interval.low <= number.value <= number.interval.high
    for ends in ([n.interval.low for n in chain], [n.interval.high for n in chain]):
        assert (np.diff(ends) >= 0).all()
    assert (np.diff([n.value for n in chain]) >= -1e-12).all()


@settings(max_examples=20)
@given(passes=passes_of_five, asked=st.sets(st.sampled_from(KS), min_size=1))
def test_no_number_depends_on_which_others_are_shown(passes, asked):
    evidence = _evidence(passes)
    every = measure_metrics(evidence, KS, confidence=0.95)
    some = measure_metrics(evidence, sorted(asked), confidence=0.95)
    assert list(some) == ["mean_score", *(f"pass{s}{k}" for s in "^@" for k in sorted(asked))]
    for name, metric in some.items():
        assert metric == every[name]


def test_any_of_one_attempt_is_all_of_it():
    metrics = measure_metrics(_evidence([5, 3, 0]), (1,), confidence=0.95)
    hat, at = metrics["pass^1"], metrics["pass@1"]
    assert isinstance(hat.this_suite, Estimate)
    assert (hat.this_suite, hat.tasks_like_these) == (at.this_suite, at.tasks_like_these)
