"""What makes an interval wide, in words."""

import pytest

from passhat.reporters.data import to_json
from passhat.reporters.wording import noise_sentence, noise_shape
from passhat.stats.estimate import Unavailable
from passhat.stats.sufficient_statistics import TaskSums
from passhat.stats.variance import noise_sources


@pytest.mark.parametrize(
    ("passes", "advice"),
    [
        ([10, 10, 9, 1, 0] * 4, "Buy tasks, unless making a new task costs more than "),
        ([8, 7, 8, 7, 9] * 4, "Buy trials: these tasks show no difference"),
        ([10, 8, 6, 9, 7] * 2, "Too little was run to say which to buy; going by these shares, "),
        ([10, 0, 10, 0], "only new tasks would reduce it."),
    ],
)
def test_the_sentence_ends_with_what_to_buy(passes, advice):
    found = noise_sources(TaskSums.of_passes([10] * len(passes), passes))
    assert advice in noise_sentence(found)


def test_two_systems_pay_for_runs_of_each():
    sides = [TaskSums.of_passes([5] * 6, passes) for passes in ([5, 4, 4, 3, 2, 1], [0, 4, 1] * 2)]
    assert "trials of each agent" in noise_sentence(noise_sources(*sides), systems=2)


def test_what_cannot_be_known_is_data_with_its_reason():
    shapes = noise_shape(noise_sentence).shapes
    assert to_json(Unavailable("one run"), shapes) == {"value": None, "reason": "one run"}
