import copy
import pickle
from threading import Barrier, Thread

import pytest

from passhat.analysis.reports.measure import measure
from passhat.dataclass import LazyMapping, LazyValue
from passhat.records import Trials


class _Counted:
    """Makes 7, and counts how often it had to."""

    def __init__(self):
        self.times = 0

    def __call__(self):
        self.times += 1
        return 7


def test_an_answer_is_made_at_the_first_look_and_only_then():
    make = _Counted()
    later = LazyValue(make)
    assert make.times == 0
    assert [later.look(), later.look()] == [7, 7]
    assert make.times == 1


def test_two_that_look_at_the_same_time_get_one_answer():
    together, seen = Barrier(8), []
    later = LazyValue(object)

    def look():
        together.wait()
        seen.append(later.look())

    threads = [Thread(target=look) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, seen))) == 1


def test_what_could_not_be_made_is_tried_again_at_the_next_look():
    answers = iter([ZeroDivisionError("no"), 5])

    def make():
        if isinstance(found := next(answers), Exception):
            raise found
        return found

    later = LazyValue(make)
    with pytest.raises(ZeroDivisionError, match="no"):
        later.look()
    assert later.look() == 5


def test_the_names_of_parts_cost_nothing():
    makers = {name: _Counted() for name in "ab"}
    parts = LazyMapping({name: LazyValue(make) for name, make in makers.items()})
    assert (list(parts), len(parts), "a" in parts, "z" in parts) == (["a", "b"], 2, True, False)
    assert repr(parts) == "<Parts: 'a', 'b'>"
    assert [make.times for make in makers.values()] == [0, 0]
    assert parts["a"] == 7
    assert [make.times for make in makers.values()] == [1, 0]
    with pytest.raises(KeyError, match="z"):
        parts["z"]


@pytest.mark.parametrize("again", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_what_is_copied_or_sent_elsewhere_is_made(again):
    parts = LazyMapping({"a": LazyValue(lambda: 1), "b": LazyValue(lambda: 2)})
    assert again(parts) == parts == {"a": 1, "b": 2}
    assert type(again(parts)) is dict
    assert again(LazyValue(lambda: [3])).look() == [3]


def test_a_report_that_is_sent_elsewhere_brings_its_labels_and_advice():
    passed = [1, 1, 1, 1, 0, 1, 0, 1]
    report = measure(Trials.from_columns(task=[*"aaaabbbb"], passed=passed))
    there = pickle.loads(pickle.dumps(report)).system()
    here = report.system()
    assert there.unsettled == here.unsettled
    assert there.noise == here.noise
    assert list(there.tasks) == list(here.tasks)
