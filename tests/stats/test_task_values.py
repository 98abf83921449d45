import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.stats.passk import pass_at_k, pass_hat_k
from passhat.stats.task_values import task_values

counts = st.integers(0, 6).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n)))


@pytest.mark.parametrize(("metric", "formula"), [("pass^k", pass_hat_k), ("pass@k", pass_at_k)])
@given(tasks=st.lists(counts, max_size=8), k=st.integers(1, 5))
def test_each_task_has_its_own_value_in_its_place_or_none_for_want_of_runs(
    metric, formula, tasks, k
):
    runs, passes = np.array(tasks, dtype=np.int64).reshape(-1, 2).T
    expected = [formula(n, c, k) if n >= k else np.nan for n, c in tasks]
    np.testing.assert_allclose(task_values(runs, passes, k, metric=metric), expected)
