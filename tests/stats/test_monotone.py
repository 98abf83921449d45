import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from passhat.analysis.reports.measure import measure
from passhat.records import Trials
from passhat.stats.estimate import Estimate, Interval, Unavailable
from passhat.stats.monotone import rising

ENDS = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=8)


def estimate(low, high, *, tasks=5):
    return Estimate(
        value=high, interval=Interval(low, high), method="m", confidence=0.95, tasks=tasks
    )


@given(ENDS)
def test_ends_rise_and_no_interval_grows(pairs):
    # intervals around values in order share a point with all that come after: they never cross
    values = sorted(max(pair) for pair in pairs)
    given_ = [
        estimate(min(low, value), value) for (low, _), value in zip(pairs, values, strict=True)
    ]
    found = rising(given_)
    lows, highs = ([getattr(one.interval, end) for one in found] for end in ("low", "high"))
    assert lows == sorted(lows)
    assert highs == sorted(highs)
    for before, after in zip(given_, found, strict=True):
        assert before.interval.low <= after.interval.low
        assert after.interval.high <= before.interval.high
        assert after.value in after.interval


def test_only_numbers_over_the_same_tasks_bound_each_other():
    few = estimate(0.1, 0.4, tasks=2)
    unknown = Unavailable("too few runs")
    both = [estimate(0.5, 0.9), few, unknown, estimate(0.2, 0.9)]
    assert rising(both) == both


def test_a_report_never_bounds_pass_at_10_below_pass_at_5():
    rng = np.random.default_rng(1)
    rates = rng.beta(3, 1, 12)
    passed = rng.random((12, 10)) < rates[:, None]
    table = Trials.from_columns(
        task=np.repeat([f"t{i}" for i in range(12)], 10).tolist(), passed=passed.ravel().tolist()
    )
    metrics = measure(table, ks=range(1, 11)).system().metrics
    chain = [f"pass^{k}" for k in range(10, 0, -1)] + [f"pass@{k}" for k in range(1, 11)]
    for scope in ("this suite", "tasks like these"):
        intervals = [metrics[name].within(scope).interval for name in chain]
        for end in ("low", "high"):
            ends = [getattr(interval, end) for interval in intervals]
            assert ends == sorted(ends)


def test_ends_that_cross_in_their_last_digit_meet():
    above = float(np.nextafter(0.3, 1))
    first, second = rising([estimate(above, 0.6), estimate(0.1, 0.3)])
    assert first.interval == second.interval == Interval(above, above)
