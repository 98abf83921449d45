import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passhat.stats.decay import extrapolate_pass_hat_k
from passhat.stats.suite_mean import suite_estimate
from passhat.stats.task_labels import label_tasks


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 6), min_size=2, max_size=30))
def test_beyond_the_runs_the_line_falls_and_stays_inside_what_needs_no_model(passes):
    n = [6] * len(passes)
    seen = suite_estimate(n, passes, k=6).value
    before = seen
    for k in (7, 8, 12, 32, 100):
        found = extrapolate_pass_hat_k(n, passes, k)
        assert found.value <= before + 1e-9
        assert seen ** (k / 6) - 1e-9 <= found.value <= seen + 1e-9
        assert found.value in found.interval
        before = found.value


def test_hopeless_tasks_among_good_ones_do_not_inflate_the_far_end():
    """A tenth of the tasks never pass, the rest are Beta(30, 1): a beta alone said .63."""
    rng = np.random.default_rng(0)
    truth, inside, values = 0.9 * 30 / 62, 0, []
    for _ in range(10):
        rate = np.where(rng.random(150) < 0.1, 0.0, rng.beta(30, 1, 150))
        found = extrapolate_pass_hat_k([8] * 150, rng.binomial(8, rate), 32)
        inside += truth in found.interval
        values.append(found.value)
    assert inside >= 9
    assert np.mean(values) == pytest.approx(truth, abs=0.05)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 12), st.booleans()), min_size=1, max_size=20))
def test_a_task_whose_runs_all_ended_alike_is_never_flaky(tasks):
    n, c = zip(*((runs, runs if passed else 0) for runs, passed in tasks), strict=True)
    assert "flaky" not in label_tasks([*n, 10], [*c, 5]).labels[:-1].tolist()
